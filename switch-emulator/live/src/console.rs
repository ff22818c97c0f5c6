//! The boards' serial consoles on pseudo-terminals: a thread of ordinary priority, which also writes the EEPROMs' files.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration as Timeout, Instant as Deadline};

use rtrb::{Consumer, Producer};
use rustix::event::{PollFd, PollFlags};
use zodiac_firmware::EepromImage;

use crate::clock::Clock;
use crate::config::{BoardConfig, ProgramConfig};
use crate::control::Line;
use crate::pending_flag::PendingFlag;
use crate::pseudo_terminal::PseudoTerminal;
use crate::report::write_atomically;
use crate::thread_port::ThreadPort;
use crate::waker::Waker;
use live_host::error::StartError;

/// Pieces of text and of input that fit in the channels.
const CHANNEL_MESSAGES: usize = 1024;
const READ_BYTES: usize = 256;
/// Output buffered for a slow reader; the rest is dropped, as by a full USB endpoint.
const MAX_UNREAD_BYTES: usize = 1 << 17;
/// Text that nobody has read for so long is dropped.
const UNREAD_TIMEOUT: Timeout = Timeout::from_secs(1);
/// How soon the thread reads again when the data thread has not taken what was typed.
const RETRY: Timeout = Timeout::from_millis(20);

/// From the data thread.
#[derive(Debug)]
pub enum ConsoleCommand {
    /// The console prints.
    Print(Vec<u8>),
    /// The board leaves the USB bus.
    Detach,
    /// The board is back.
    Attach,
    /// The configuration was saved.
    Save(Box<EepromImage>),
}

/// The data thread's end of a board's console; it tells what was typed.
pub type ConsolePort = ThreadPort<ConsoleCommand, Vec<u8>>;

/// All boards' consoles.
#[derive(Debug)]
pub struct Consoles {
    consoles: Vec<BoardConsole>,
    waker: Waker,
}

impl Consoles {
    /// Opens a pseudo-terminal for each board that has a path for one. Returns the data thread's ends, one a board.
    ///
    /// # Errors
    /// A pseudo-terminal or its link cannot be had.
    pub fn open(
        config: &ProgramConfig,
        clock: Clock,
        pending: &PendingFlag,
        log: &mpsc::Sender<Line>,
    ) -> Result<(Self, Vec<ConsolePort>), StartError> {
        let waker = Waker::new()
            .map_err(|error| StartError::new(format!("cannot set up the consoles: {error}")))?;
        let (mut consoles, mut ports) = (Vec::new(), Vec::new());
        for (board, settings) in config.boards.iter().enumerate() {
            let (port, commands, typed) = ConsolePort::new(CHANNEL_MESSAGES, waker.clone());
            ports.push(port);
            consoles.push(BoardConsole {
                commands,
                typed,
                pending: pending.clone(),
                terminal: open_terminal(settings)?,
                path: settings.console.clone(),
                eeprom: settings.eeprom.clone(),
                unread: Unread::default(),
                log: Log {
                    board,
                    clock,
                    sender: log.clone(),
                },
            });
        }
        Ok((Self { consoles, waker }, ports))
    }

    /// Wakes the thread from outside.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Serves the consoles until `stop` is set and the thread woken. What was saved before is written.
    ///
    /// # Errors
    /// The kernel cannot wait for terminals.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Relaxed) {
            self.wait()?;
            for console in &mut self.consoles {
                console.serve();
            }
        }
        for console in &mut self.consoles {
            console.take_commands();
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let timeout = self.consoles.iter().filter_map(BoardConsole::timeout).min();
        let terminals = self.consoles.iter().filter_map(BoardConsole::interest);
        self.waker.wait(terminals, timeout)
    }
}

/// Returns a board's pseudo-terminal, if its configuration names one.
fn open_terminal(board: &BoardConfig) -> Result<Option<PseudoTerminal>, StartError> {
    let open = |path: &PathBuf| {
        PseudoTerminal::open(path).map_err(|error| {
            let (name, path) = (&board.name, path.display());
            StartError::new(match error.kind() {
                ErrorKind::AlreadyExists => format!(
                    "board {name}, console: {path} exists and is no symbolic link; remove it or give another path"
                ),
                _ => format!(
                    "board {name}, console: {path} cannot be made: {error}; give a path in a folder that exists"
                ),
            })
        })
    };
    board.console.as_ref().map(open).transpose()
}

/// One board's console.
#[derive(Debug)]
struct BoardConsole {
    commands: Consumer<ConsoleCommand>,
    typed: Producer<Vec<u8>>,
    pending: PendingFlag,
    terminal: Option<PseudoTerminal>,
    path: Option<PathBuf>,
    eeprom: Option<PathBuf>,
    unread: Unread,
    log: Log,
}

/// Text that no program has taken yet.
#[derive(Debug, Default)]
struct Unread {
    bytes: Vec<u8>,
    /// Since when no program has read.
    since: Option<Deadline>,
    /// Dropped since the start.
    dropped: usize,
    /// Whether dropping was logged since somebody last read.
    told: bool,
}

impl BoardConsole {
    fn timeout(&self) -> Option<Timeout> {
        let unread = self
            .unread
            .since
            .map(|since| UNREAD_TIMEOUT.saturating_sub(since.elapsed()));
        let retry = self.typed.is_full().then_some(RETRY);
        unread.into_iter().chain(retry).min()
    }

    fn interest(&self) -> Option<PollFd<'_>> {
        let mut flags = PollFlags::empty();
        if !self.typed.is_full() {
            flags |= PollFlags::IN;
        }
        if !self.unread.bytes.is_empty() {
            flags |= PollFlags::OUT;
        }
        let terminal = self.terminal.as_ref().filter(|_| !flags.is_empty())?;
        Some(PollFd::from_borrowed_fd(terminal.as_fd(), flags))
    }

    fn serve(&mut self) {
        self.take_commands();
        self.read();
        self.flush();
    }

    fn take_commands(&mut self) {
        while let Ok(command) = self.commands.pop() {
            match command {
                ConsoleCommand::Print(text) => self.print(&text),
                ConsoleCommand::Detach => self.detach(),
                ConsoleCommand::Attach => self.attach(),
                ConsoleCommand::Save(image) => self.save(&image),
            }
        }
    }

    fn print(&mut self, text: &[u8]) {
        if self.terminal.is_none() {
            return;
        }
        self.unread.bytes.extend_from_slice(text);
        self.flush();
        if self.unread.bytes.len() > MAX_UNREAD_BYTES {
            self.drop_unread(MAX_UNREAD_BYTES);
        }
    }

    fn detach(&mut self) {
        self.flush();
        self.terminal = None;
        self.unread.bytes.clear();
        self.unread.since = None;
    }

    fn attach(&mut self) {
        let Some(path) = &self.path else { return };
        match PseudoTerminal::open(path) {
            Ok(terminal) => self.terminal = Some(terminal),
            Err(error) => {
                let path = path.display();
                self.log.line(format!(
                    "the console {path} cannot be made again: {error}; start the emulator again"
                ));
            }
        }
    }

    fn save(&self, image: &EepromImage) {
        let Some(path) = &self.eeprom else { return };
        if let Err(error) = write_atomically(path, image) {
            let path = path.display();
            self.log.line(format!(
                "the EEPROM's file {path} cannot be written: {error}; what was saved is lost at the end"
            ));
        }
    }

    /// Reads what was typed, as far as the data thread keeps up: beyond that the program that types has to wait.
    fn read(&mut self) {
        let mut buffer = [0; READ_BYTES];
        while !self.typed.is_full() {
            let Some(terminal) = &self.terminal else {
                return;
            };
            match terminal.read(&mut buffer) {
                Ok(length) if length > 0 => {
                    // There is room: this thread alone fills the channel.
                    let _ = self.typed.push(buffer[..length].to_vec());
                    self.pending.set();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn flush(&mut self) {
        let Some(terminal) = &self.terminal else {
            return;
        };
        let unread = &mut self.unread;
        while !unread.bytes.is_empty() {
            match terminal.write(&unread.bytes) {
                Ok(length) if length > 0 => {
                    drop(unread.bytes.drain(..length));
                    unread.since = None;
                    unread.told = false;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    let since = *unread.since.get_or_insert_with(Deadline::now);
                    if since.elapsed() >= UNREAD_TIMEOUT {
                        self.drop_unread(0);
                    }
                    return;
                }
            }
        }
        unread.since = None;
    }

    /// Drops text that nobody reads, all but the first `kept` bytes.
    fn drop_unread(&mut self, kept: usize) {
        let unread = &mut self.unread;
        unread.dropped += unread.bytes.len().saturating_sub(kept);
        unread.bytes.truncate(kept);
        if kept == 0 {
            unread.since = None;
        }
        if !std::mem::replace(&mut unread.told, true) {
            let dropped = unread.dropped;
            self.log.line(format!(
                "nobody reads the console: what it prints is lost, {dropped} bytes since the start"
            ));
        }
    }
}

/// Where lines about a console go.
#[derive(Debug)]
struct Log {
    board: usize,
    clock: Clock,
    sender: mpsc::Sender<Line>,
}

impl Log {
    fn line(&self, text: String) {
        // The reader is gone only when the program ends.
        let _ = self.sender.send(Line {
            at: self.clock.now(),
            board: self.board,
            text,
            connected: None,
        });
    }
}
