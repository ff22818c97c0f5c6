//! The serial console: the command line on the USB port, as `docs/console.md` lists it.
//!
//! | module | what |
//! |---|---|
//! | `line` | editing a line |
//! | `iteration` | the work of one pass of the main loop: what it prints, costs and leaves to the board |
//! | `root`, `configuration`, `vlans`, `openflow`, `flows`, `debug` | the commands of each context |
//! | `upload` | the firmware upload of `update` |
//! | `text` | banner and help |

mod configuration;
mod debug;
mod flows;
mod iteration;
mod line;
mod openflow;
mod root;
mod text;
mod upload;
mod vlans;

use std::collections::VecDeque;

use crate::event::Counters;
use crate::openflow::Agent;
use crate::outbox::Outbox;
use crate::profile::ConsoleCosts;
use crate::settings::{EepromImage, Settings};
use crate::time::{Duration, Instant};

use debug::Registers;
use iteration::ConsoleIteration;
use line::{Edit, LineEditor};
use upload::{Upload, UploadProgress};

/// Version of the emulated firmware.
const FIRMWARE_VERSION: &str = "0.84";
/// Words of a command that count: its name and three parameters.
const WORDS: usize = 4;

/// Which commands are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Root,
    Config,
    OpenFlow,
    Debug,
}

/// Who gets what is typed.
#[derive(Debug)]
enum Mode {
    /// Nothing was typed yet: the first key is greeted.
    Silent,
    /// The line editor.
    Line,
    /// Everything is logged until a key is pressed.
    Trace,
    /// `update` receives a file.
    Upload(Upload),
}

/// Outcome of a console iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleOutcome {
    /// The CPU was busy for so long.
    Done(Duration),
    /// The board restarts after so long.
    Restart(Duration),
}

/// The console of one board.
#[derive(Debug)]
pub(crate) struct Console {
    costs: ConsoleCosts,
    /// Characters typed and not yet read.
    typed: VecDeque<(Instant, u8)>,
    line: LineEditor,
    context: Context,
    mode: Mode,
    settings: Settings,
    eeprom: Box<EepromImage>,
    registers: Registers,
    powered_up: Instant,
}

impl Console {
    /// Returns the console of a board with `settings` in RAM, which has read `eeprom` at its boot.
    pub(crate) fn new(costs: ConsoleCosts, settings: Settings, eeprom: Box<EepromImage>) -> Self {
        Self {
            costs,
            typed: VecDeque::new(),
            line: LineEditor::default(),
            context: Context::Root,
            mode: Mode::Silent,
            settings,
            eeprom,
            registers: Registers::new(),
            powered_up: Instant::ZERO,
        }
    }

    /// The boot began at `now`.
    pub(crate) fn power_up(&mut self, now: Instant) {
        self.powered_up = now;
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) const fn eeprom(&self) -> &EepromImage {
        &self.eeprom
    }

    /// Characters have come by USB.
    pub(crate) fn typed(&mut self, now: Instant, characters: &[u8]) {
        self.typed
            .extend(characters.iter().map(|byte| (now, *byte)));
    }

    /// Returns when there is something to do for the console.
    pub(crate) fn pending_at(&self) -> Option<Instant> {
        let typed = self.typed.front().map(|(at, _)| *at);
        match &self.mode {
            Mode::Upload(upload) => {
                Some(typed.map_or(upload.due_at(), |at| at.min(upload.due_at())))
            }
            Mode::Silent | Mode::Line | Mode::Trace => typed,
        }
    }

    /// Reads what was typed until `now`, at most to the end of one command line, and carries that out.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        agent: &mut Agent,
        out: &mut Outbox,
    ) -> ConsoleOutcome {
        if agent.is_halted() {
            self.typed.clear();
            self.mode = Mode::Line;
            return ConsoleOutcome::Done(Duration::ZERO);
        }
        let mut iteration = ConsoleIteration::new(now, self.costs.clone(), agent, out);
        if let Mode::Upload(upload) = &mut self.mode {
            let progress = upload.wait(now, &mut iteration);
            self.uploaded(progress, &mut iteration);
        }
        while self.typed.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, byte)) = self.typed.pop_front() else {
                break;
            };
            iteration.spend(self.costs.character_ps);
            if self.key(byte, &mut iteration) {
                break;
            }
        }
        iteration.finish()
    }

    /// Handles a character, and returns whether it has completed a command line.
    fn key(&mut self, byte: u8, iteration: &mut ConsoleIteration) -> bool {
        match &mut self.mode {
            Mode::Silent => {
                self.mode = Mode::Line;
                iteration.print(text::BANNER);
                self.prompt(iteration);
                false
            }
            Mode::Trace => {
                self.mode = Mode::Line;
                iteration.line("Trace stopped");
                self.prompt(iteration);
                false
            }
            Mode::Upload(upload) => {
                let progress = upload.byte(byte, iteration);
                self.uploaded(progress, iteration);
                false
            }
            Mode::Line => match self.line.key(byte, iteration) {
                Edit::Going => false,
                Edit::Entered(line) => {
                    iteration.line("");
                    iteration.spend(self.costs.command_ps);
                    self.command(&line, iteration);
                    if matches!(self.mode, Mode::Line) && !iteration.restarts() {
                        self.prompt(iteration);
                    }
                    true
                }
            },
        }
    }

    fn command(&mut self, line: &str, iteration: &mut ConsoleIteration) {
        let words: Vec<&str> = line.split_ascii_whitespace().take(WORDS).collect();
        let known = match words.as_slice() {
            [] => true,
            ["help"] => {
                iteration.print(text::HELP);
                true
            }
            ["exit"] if self.context != Context::Root => {
                self.context = Context::Root;
                true
            }
            words => match self.context {
                Context::Root => self.root_command(words, iteration),
                Context::Config => self.config_command(words, iteration),
                Context::OpenFlow => Self::openflow_command(&mut self.settings, words, iteration),
                Context::Debug => self.debug_command(words, iteration),
            },
        };
        if !known {
            iteration.line("Unknown command");
        }
    }

    fn prompt(&self, iteration: &mut ConsoleIteration) {
        let context = match self.context {
            Context::Root => "",
            Context::Config => "(config)",
            Context::OpenFlow => "(openflow)",
            Context::Debug => "(debug)",
        };
        iteration.print(&format!("{}{context}# ", self.settings.name));
    }

    fn uploaded(&mut self, progress: UploadProgress, iteration: &mut ConsoleIteration) {
        match progress {
            UploadProgress::Going => {}
            UploadProgress::Complete => {
                iteration.line("Firmware upload complete: the checksum is right");
                iteration.restart();
            }
            UploadProgress::Failed(reason) => {
                self.mode = Mode::Line;
                iteration.line(&format!("Firmware upload failed: {reason}"));
                self.prompt(iteration);
            }
        }
    }

    pub(crate) const fn is_tracing(&self) -> bool {
        matches!(self.mode, Mode::Trace)
    }

    /// Logs a piece of work that ended at `at`, by what it has changed of the counters. Returns what that costs.
    pub(crate) fn trace(
        &self,
        at: Instant,
        what: &str,
        before: &Counters,
        agent: &mut Agent,
        out: &mut Outbox,
    ) -> Duration {
        let now = out.counters;
        let outcomes = [
            ("forwarded", now.forwarded - before.forwarded),
            ("missed", now.missed - before.missed),
            ("dropped", now.dropped_flow - before.dropped_flow),
            ("not allowed", now.dropped_policy - before.dropped_policy),
        ];
        let since = at.saturating_since(self.powered_up).as_nanos();
        let mut iteration = ConsoleIteration::new(at, self.costs.clone(), agent, out);
        let (seconds, micros) = (since / 1_000_000_000, since / 1_000 % 1_000_000);
        iteration.print(&format!("{seconds}.{micros:06} {what}"));
        for (outcome, count) in outcomes.iter().filter(|(_, count)| *count > 0) {
            iteration.print(&format!(", {outcome} {count}"));
        }
        iteration.line("");
        match iteration.finish() {
            ConsoleOutcome::Done(busy) | ConsoleOutcome::Restart(busy) => busy,
        }
    }
}
