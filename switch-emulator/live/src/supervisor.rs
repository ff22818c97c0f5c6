//! Starts the threads, watches signals, ends everything in order.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{mpsc, Arc};
use std::thread::{self, JoinHandle};
use std::time::{Duration as Pause, Instant as Deadline};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use zodiac_firmware::{Duration, Instant, PortMask, Profile};

use crate::boards::Boards;
use crate::clock::Clock;
use crate::config::{PortAddress, ProgramConfig};
use crate::console::Consoles;
use crate::control::ControllerLinks;
use crate::data_plane::{Channels, DataPlane};
use crate::data_port::{DataPort, DataPorts};
use crate::eeprom;
use crate::journal::Journal;
use crate::link_watch::LinkWatch;
use crate::pending_flag::PendingFlag;
use crate::real_time::{DataThreadTiming, RealTime};
use crate::receive_port::{LinkTiming, ReceivePort};
use crate::send_lead::SendLead;
use crate::telemetry::{Note, Shared, Telemetry, TelemetryMessage};
use crate::waker::Waker;
use live_host::error::{RunError, StartError};
use live_host::packet_socket::{Carrier, Losses, PacketSocket};
use live_host::realtime::{check_cpu, prepare_thread, Scheduling, UnlimitedRuntime};

/// How often signals and messages are looked at.
const POLL_INTERVAL: Pause = Pause::from_millis(5);
/// Interval while somebody waits for a report.
const REPORT_POLL_INTERVAL: Pause = Pause::from_millis(1);
/// How long the data thread may take to hand over its counters.
const COUNTERS_WAIT: Pause = Pause::from_secs(1);

/// Set by signals.
pub(crate) struct Signals {
    pub(crate) stop: Arc<AtomicBool>,
    report: Arc<AtomicBool>,
}

impl Signals {
    /// SIGTERM and SIGINT end the program cleanly, a second one at once; SIGUSR1 asks for a report.
    pub(crate) fn install() -> io::Result<Self> {
        let signals = Self {
            stop: Arc::default(),
            report: Arc::default(),
        };
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&signals.stop))?;
            signal_hook::flag::register(signal, Arc::clone(&signals.stop))?;
        }
        signal_hook::flag::register(SIGUSR1, Arc::clone(&signals.report))?;
        Ok(signals)
    }
}

/// Runs the boards until a signal ends it.
///
/// # Errors
/// `Start` for whatever keeps the boards from running, `Ended` if they stop by themselves.
pub fn run(config: &ProgramConfig) -> Result<(), RunError> {
    let start_failed =
        |what: &str, error: io::Error| StartError::new(format!("cannot {what}: {error}"));
    let signals = Signals::install().map_err(|error| start_failed("watch signals", error))?;
    if let Some(cpu) = config.process.cpu {
        check_cpu(cpu)?;
    }
    let clock = Clock::showing(Duration::from_millis(config.process.powered_for_ms));
    let OpenPorts {
        ports,
        losses,
        carriers,
    } = open_ports(config)?;
    let boards = power_up(config)?;
    let shared = Arc::new(Shared::default());
    let (telemetry, messages) = Telemetry::channel(Arc::clone(&shared));
    let (line_sender, lines) = mpsc::channel();
    let controllers: Vec<_> = config.boards.iter().map(|board| board.controller).collect();
    let behaviours = config.boards.iter().map(|board| board.settings.quirks);
    let destinations: Vec<_> = controllers.iter().copied().zip(behaviours).collect();
    let pending = PendingFlag::default();
    let (mut link_watch, changed_links) = LinkWatch::new(carriers, pending.clone())
        .map_err(|error| start_failed("watch the links", error))?;
    let (consoles, console_ports) = Consoles::open(config, clock, &pending, &line_sender)?;
    let (control, controls) = ControllerLinks::new(clock, &destinations, &pending, line_sender)
        .map_err(|error| start_failed("set up the control thread", error))?;
    let names = config.boards.iter().map(|board| board.name.clone());
    let mut journal = Journal::open(
        &config.process,
        (names.collect(), controllers),
        clock,
        Arc::clone(&shared),
        messages,
        lines,
        losses,
    )?;

    // Restored when all threads have ended.
    let real_time = config.process.scheduling != Scheduling::Other;
    let _unlimited = real_time.then(UnlimitedRuntime::obtain);
    let wakers = [control.waker(), consoles.waker()];
    let channels = Channels {
        controls,
        consoles: console_ports,
        links: changed_links,
        pending,
    };
    let data = start_data_thread(
        config,
        DataParts {
            clock,
            boards,
            ports,
            channels,
            telemetry,
        },
    )?;
    let stop = Arc::clone(&shared);
    let control = start_thread("control", move || control.run(&stop.stop))?;
    let stop = Arc::clone(&shared);
    let consoles = start_thread("console", move || consoles.run(&stop.stop))?;
    let threads = Threads {
        shared,
        wakers,
        data,
        control,
        consoles,
    };
    watch(&signals, &threads, &mut link_watch, &mut journal);
    let ended = threads.end();
    journal.collect();
    journal.close();
    ended
}

/// Looks after the links and keeps the journal until a signal comes or a thread ends.
fn watch(signals: &Signals, threads: &Threads, link_watch: &mut LinkWatch, journal: &mut Journal) {
    let mut reports = Reports::default();
    while !signals.stop.load(Relaxed) && !threads.any_ended() {
        link_watch.look();
        journal.collect();
        thread::sleep(reports.poll(signals, &threads.shared, journal));
    }
}

/// Writes the report whenever a signal asks for it.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    due: Option<Deadline>,
}

impl Reports {
    /// Writes it as soon as the data thread has sent its counters, or without them if that takes long. Returns the
    /// pause until the next call.
    pub(crate) fn poll(
        &mut self,
        signals: &Signals,
        shared: &Shared,
        journal: &mut Journal,
    ) -> Pause {
        if signals.report.swap(false, Relaxed) {
            journal.expect_counters();
            shared.ask_for_counters();
            self.due = Some(Deadline::now() + COUNTERS_WAIT);
        }
        if self
            .due
            .is_some_and(|due| journal.has_counters() || Deadline::now() >= due)
        {
            self.due = None;
            journal.write_report();
        }
        if self.due.is_some() {
            REPORT_POLL_INTERVAL
        } else {
            POLL_INTERVAL
        }
    }
}

/// The data ports, and what other threads look at of their sockets.
struct OpenPorts {
    ports: DataPorts,
    losses: Vec<Losses>,
    carriers: Vec<(PortAddress, Carrier)>,
}

fn open_ports(config: &ProgramConfig) -> Result<OpenPorts, StartError> {
    let (mut ports, mut losses, mut carriers) = (Vec::new(), Vec::new(), Vec::new());
    for (board, settings) in config.boards.iter().enumerate() {
        for (&port, interface) in &settings.ports {
            let owner = format!("board {}", settings.name);
            let socket = if config.process.links_may_be_down {
                PacketSocket::open_up_or_down(interface, &owner)?
            } else {
                PacketSocket::open(interface, &owner)?
            };
            losses.push(socket.losses().map_err(StartError::new)?);
            let receive = ReceivePort::new(link_timing(&settings.profile));
            let native = settings.is_on_network() && settings.settings.native_ports.contains(&port);
            let address = PortAddress { board, port };
            carriers.push((address, socket.carrier().map_err(StartError::new)?));
            ports.push(DataPort::new(address, socket, receive, native));
        }
    }
    let ports = DataPorts::new(ports, config.boards.len())
        .map_err(|error| StartError::new(format!("cannot watch the interfaces: {error}")))?;
    Ok(OpenPorts {
        ports,
        losses,
        carriers,
    })
}

fn power_up(config: &ProgramConfig) -> Result<Boards, StartError> {
    let boards = config.boards.iter().map(|board| {
        let firmware = board
            .power_up()
            .map_err(|error| StartError::new(format!("board {}: {error}", board.name)))?;
        let firmware = match &board.eeprom {
            Some(path) => eeprom::insert(firmware, path, &format!("board {}, eeprom", board.name))?,
            None => firmware,
        };
        Ok((firmware, link_timing(&board.profile)))
    });
    let mut boards = Boards::new(
        boards.collect::<Result<_, StartError>>()?,
        &config.internal_links,
    );
    for (board, settings) in config.boards.iter().enumerate() {
        // The effect of the saved VLANs on a port is not known here, so every port counts.
        for port in PortMask::from_bits(u8::MAX).iter() {
            let address = PortAddress { board, port };
            if !settings.settings.native_ports.contains(&port)
                && !settings.ports.contains_key(&port)
                && !config
                    .internal_links
                    .iter()
                    .flatten()
                    .any(|end| *end == address)
            {
                boards.link(address, Instant::ZERO, false);
            }
        }
    }
    Ok(boards)
}

fn link_timing(profile: &Profile) -> LinkTiming {
    LinkTiming {
        rate_bps: profile.ports.link_rate_bps,
        preamble_bytes: profile.ports.preamble_bytes,
        gap_bytes: profile.ports.interframe_gap_bytes,
    }
}

/// Parts that move to the data thread.
struct DataParts {
    clock: Clock,
    boards: Boards,
    ports: DataPorts,
    channels: Channels,
    telemetry: Telemetry,
}

/// Starts the data thread and waits until it is scheduled as far as possible.
fn start_data_thread(
    config: &ProgramConfig,
    parts: DataParts,
) -> Result<JoinHandle<()>, StartError> {
    let process = &config.process;
    let (cpu, scheduling, required) =
        (process.cpu, process.scheduling, process.scheduling_required);
    let configured_lead = process.send_lead_ns.map(Duration::from_nanos);
    let stall_threshold = Duration::from_micros(process.stall_threshold_us);
    let longest_rest = Duration::from_micros(process.rest_us);
    let trace_offset = process
        .trace
        .is_some()
        .then_some(process.trace_sequence_offset);
    let flow_statistics = process.flow_statistics;
    let (ready, prepared) = mpsc::channel();
    let thread = thread::Builder::new().name("data".into()).spawn(move || {
        let DataParts {
            clock,
            boards,
            ports,
            channels,
            mut telemetry,
        } = parts;
        let (scheduling, warning) = match prepare_thread(cpu, scheduling, required) {
            Ok(obtained) => obtained,
            Err(error) => return drop(ready.send(Err(error))),
        };
        let send_lead = configured_lead.map_or_else(|| SendLead::measured(clock), SendLead::fixed);
        if let Some(text) = warning {
            let at_ns = clock.pair().realtime_ns;
            telemetry.send(TelemetryMessage::Note {
                at_ns,
                board: None,
                note: Note::Text(text),
            });
        }
        let timing = DataThreadTiming {
            stall_threshold,
            send_lead,
            longest_rest,
            trace_offset,
        };
        let time = RealTime::new(clock, timing, channels.controls.len() == 1, telemetry);
        let plane = DataPlane::new(time, boards, ports, channels, flow_statistics);
        // The starter waits for this and cannot be gone.
        let _ = ready.send(Ok(()));
        plane.run(scheduling);
    });
    let thread = thread
        .map_err(|error| StartError::new(format!("cannot start the data thread: {error}")))?;
    prepared.recv().map_err(|_| {
        StartError::new("the data thread ended before it began; report this as a bug")
    })??;
    Ok(thread)
}

/// Starts a thread of ordinary priority.
fn start_thread(
    name: &str,
    run: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<io::Result<()>>, StartError> {
    let thread = thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|error| StartError::new(format!("cannot start the {name} thread: {error}")))
}

struct Threads {
    shared: Arc<Shared>,
    wakers: [Waker; 2],
    data: JoinHandle<()>,
    control: JoinHandle<io::Result<()>>,
    consoles: JoinHandle<io::Result<()>>,
}

impl Threads {
    fn any_ended(&self) -> bool {
        self.data.is_finished() || self.control.is_finished() || self.consoles.is_finished()
    }

    fn end(self) -> Result<(), RunError> {
        self.shared.stop.store(true, Relaxed);
        for waker in &self.wakers {
            waker.wake();
        }
        let bug =
            |name: &str| RunError::Ended(format!("the {name} thread failed; report this as a bug"));
        self.data.join().map_err(|_| bug("data"))?;
        for (name, thread) in [("control", self.control), ("console", self.consoles)] {
            let ended = thread.join().map_err(|_| bug(name))?;
            ended.map_err(|error| RunError::Ended(format!("the {name} thread failed: {error}")))?;
        }
        Ok(())
    }
}
