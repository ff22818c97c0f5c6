//! Journal of a run: the log on standard error, the report, the trace, the ready file.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{mpsc, Arc};
use std::time::{Duration as Span, UNIX_EPOCH};

use rtrb::Consumer;
use zodiac_firmware::Counters;

use crate::clock::Clock;
use crate::config::Process;
use crate::control::Line;
use crate::report::{
    write_atomically, BoardReport, EventReport, Report, StallReport, MAX_EVENTS, MAX_STALLS,
};
use crate::telemetry::{Note, Shared, TelemetryMessage, TraceRecord};
use live_host::error::StartError;
use live_host::packet_socket::Losses;
use live_host::stall::Stall;

/// Collects the messages of the other threads.
#[derive(Debug)]
pub struct Journal {
    names: Vec<String>,
    clock: Clock,
    shared: Arc<Shared>,
    messages: Consumer<TelemetryMessage>,
    lines: mpsc::Receiver<Line>,
    losses: Vec<Losses>,
    counters: Vec<Option<Counters>>,
    flow_statistics: Vec<Vec<Vec<u8>>>,
    controllers: Vec<SocketAddr>,
    connected: Vec<bool>,
    stalls: Vec<(u64, u64)>,
    threshold_ns: u64,
    events: Vec<EventReport>,
    events_lost: u64,
    scheduling: String,
    send_lead_ns: u64,
    report: Option<PathBuf>,
    ready: Option<PathBuf>,
    trace: Option<BufWriter<File>>,
}

impl Journal {
    /// Opens the files and forgets those of an earlier run. Boards have names, and controllers unless they connect to none.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn open(
        process: &Process,
        (names, controllers): (Vec<String>, Vec<SocketAddr>),
        clock: Clock,
        shared: Arc<Shared>,
        messages: Consumer<TelemetryMessage>,
        lines: mpsc::Receiver<Line>,
        losses: Vec<Losses>,
    ) -> Result<Self, StartError> {
        for (key, path) in [("report", &process.report), ("ready", &process.ready)] {
            check_writable(key, path.as_deref())?;
        }
        if let Some(ready) = &process.ready {
            // Absent is as it should be; anything else shows when the file is created.
            let _ = fs::remove_file(ready);
        }
        let trace = process.trace.as_deref().map(open_trace).transpose()?;
        let boards = names.len();
        Ok(Self {
            names,
            clock,
            shared,
            messages,
            lines,
            losses,
            counters: vec![None; boards],
            flow_statistics: vec![Vec::new(); boards],
            controllers,
            connected: vec![false; boards],
            stalls: Vec::new(),
            threshold_ns: process.stall_threshold_us.saturating_mul(1_000),
            events: Vec::new(),
            events_lost: 0,
            scheduling: String::new(),
            send_lead_ns: 0,
            report: process.report.clone(),
            ready: process.ready.clone(),
            trace,
        })
    }

    /// Takes all messages so far.
    pub fn collect(&mut self) {
        let pair = self.clock.pair();
        while let Ok(line) = self.lines.try_recv() {
            if let Some(connected) = line.connected {
                self.connected[line.board] = connected;
            }
            self.event(pair.realtime_of(line.at), Some(line.board), line.text);
        }
        while let Ok(message) = self.messages.pop() {
            self.take(message);
        }
        // A reader that follows the trace sees whole turns.
        if let Some(Err(error)) = self.trace.as_mut().map(Write::flush) {
            self.trace = None;
            self.program_event(format!("the trace cannot be written any more: {error}"));
        }
    }

    /// Clears the counters, so that [`has_counters`](Self::has_counters) shows when new ones have come.
    pub fn expect_counters(&mut self) {
        self.counters.fill(None);
    }

    /// Returns whether every board's counters have come.
    #[must_use]
    pub fn has_counters(&self) -> bool {
        self.counters.iter().all(Option::is_some)
    }

    /// Writes the report if the configuration asks for one.
    pub fn write_report(&mut self) {
        let Some(path) = self.report.clone() else {
            return;
        };
        if let Err(error) = self.report().write(&path) {
            self.program_event(format!(
                "the report {} cannot be written: {error}",
                path.display()
            ));
        }
    }

    /// Writes the last report and takes the ready file away.
    pub fn close(mut self) {
        self.write_report();
        if let Some(ready) = &self.ready {
            // Somebody else may have taken it away already.
            let _ = fs::remove_file(ready);
        }
    }

    fn take(&mut self, message: TelemetryMessage) {
        match message {
            TelemetryMessage::Running {
                scheduling,
                send_lead_ns,
            } => self.running(scheduling, send_lead_ns),
            TelemetryMessage::Note {
                at_ns,
                board,
                note: Note::Firmware(event),
            } => self.event(at_ns, board, event.to_string()),
            TelemetryMessage::Note {
                at_ns,
                board,
                note: Note::Text(text),
            } => self.event(at_ns, board, text),
            TelemetryMessage::Connection {
                at_ns,
                board,
                connected,
            } => {
                self.connected[board] = connected;
                let what = if connected { "connected to" } else { "lost" };
                let controller = self.controllers[board];
                self.event(
                    at_ns,
                    Some(board),
                    format!("{what} controller {controller}"),
                );
            }
            TelemetryMessage::Stall {
                start_ns,
                stall: Stall { duration, .. },
            } => {
                if self.stalls.len() < MAX_STALLS {
                    self.stalls.push((start_ns, duration.as_nanos()));
                }
            }
            TelemetryMessage::Departure(departure) => self.trace(&departure),
            TelemetryMessage::Counters {
                board,
                counters,
                flow_statistics,
            } => {
                self.counters[board] = Some(counters);
                self.flow_statistics[board] = flow_statistics;
            }
        }
    }

    fn running(&mut self, scheduling: String, send_lead_ns: u64) {
        let boards = self.names.join(", ");
        log(
            self.clock.pair().realtime_ns,
            None,
            &format!("running {boards}; scheduling {scheduling}; send lead {send_lead_ns} ns"),
        );
        self.scheduling = scheduling;
        self.send_lead_ns = send_lead_ns;
        let Some(ready) = self.ready.clone() else {
            return;
        };
        if let Err(error) = write_atomically(&ready, "") {
            self.program_event(format!(
                "the ready file {} cannot be written: {error}",
                ready.display()
            ));
        }
    }

    fn trace(&mut self, departure: &TraceRecord) {
        let Some(trace) = &mut self.trace else { return };
        let TraceRecord {
            board,
            port,
            sequence,
            intended_ns,
            left_ns,
            in_stall,
        } = *departure;
        let name = &self.names[board];
        // An error stays with the writer and shows when it is flushed.
        let _ = writeln!(
            trace,
            "{name},{port},{sequence},{intended_ns},{left_ns},{}",
            u8::from(in_stall)
        );
    }

    fn program_event(&mut self, text: String) {
        self.event(self.clock.pair().realtime_ns, None, text);
    }

    fn event(&mut self, at_ns: u64, board: Option<usize>, text: String) {
        let board = board.map(|board| self.names[board].clone());
        log(at_ns, board.as_deref(), &text);
        if self.events.len() < MAX_EVENTS {
            self.events.push(EventReport { at_ns, board, text });
        } else {
            self.events_lost += 1;
        }
    }

    fn report(&mut self) -> Report {
        let count = self.shared.stalls.load(Relaxed);
        let boards = self.names.iter().zip(&self.counters);
        let boards = boards.zip(&self.connected).zip(&self.flow_statistics);
        Report {
            boards: boards
                .map(|(((name, counters), &connected), flow_statistics)| {
                    (
                        name.clone(),
                        BoardReport {
                            counters: counters.unwrap_or_default(),
                            connected,
                            flow_statistics: flow_statistics
                                .iter()
                                .map(|message| hex(message))
                                .collect(),
                        },
                    )
                })
                .collect(),
            lateness_ns: self.shared.lateness.quantiles(),
            lateness_in_stalls_ns: self.shared.lateness_in_stalls.quantiles(),
            stalls: StallReport {
                count,
                threshold_ns: self.threshold_ns,
                worst_ns: self.shared.worst_stall_ns.load(Relaxed),
                list: self.stalls.clone(),
                truncated: count > self.stalls.len() as u64,
            },
            loop_ns: self.shared.passes.quantiles(),
            scheduling: self.scheduling.clone(),
            send_lead_ns: self.send_lead_ns,
            interface_losses: self
                .losses
                .iter_mut()
                .map(|losses| {
                    let lost = losses.read();
                    (losses.interface().to_owned(), lost)
                })
                .collect(),
            events: self.events.clone(),
            events_lost: self.events_lost + self.shared.lost_messages.load(Relaxed),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// One line on standard error: instant, board, what.
fn log(at_ns: u64, board: Option<&str>, text: &str) {
    let at = humantime::format_rfc3339_micros(UNIX_EPOCH + Span::from_nanos(at_ns));
    let name = board.unwrap_or("zodiac-fx");
    // Nobody may be listening any more; the boards run on.
    let _ = writeln!(std::io::stderr(), "{at} {name}: {text}");
}

fn check_writable(key: &str, path: Option<&Path>) -> Result<(), StartError> {
    let Some(path) = path else { return Ok(()) };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if folder.is_dir() && !path.is_dir() {
        return Ok(());
    }
    Err(StartError::new(format!(
        "process.{key}: {} cannot be written; give a file in a folder that exists",
        path.display()
    )))
}

fn open_trace(path: &Path) -> Result<BufWriter<File>, StartError> {
    let failed = |error| {
        StartError::new(format!(
            "process.trace: {} cannot be written: {error}; give another path",
            path.display()
        ))
    };
    let mut trace = BufWriter::new(File::create(path).map_err(failed)?);
    writeln!(trace, "board,port,sequence,intended_ns,left_ns,in_stall").map_err(failed)?;
    Ok(trace)
}
