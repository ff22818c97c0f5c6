//! The data thread: reads interfaces, runs the boards, sends frames at their departure instants.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use zodiac_firmware::{Duration, Instant, Output, OutputKind, PortMask, PortNumber};

use crate::boards::Boards;
use crate::checksum;
use crate::clock::{Clock, ClockPair};
use crate::console::{self, ConsolePort};
use crate::control::{ControlCommand, ControlPort, Notice, SessionNumber};
use crate::data_port::{DataPorts, PortError};
use crate::departure_lead::DepartureLead;
use crate::link_watch::LinkChange;
use crate::pending_flag::PendingFlag;
use crate::segmentation;
use crate::send_lead::SendLead;
use crate::telemetry::{Note, Telemetry, TelemetryMessage, TraceRecord};
use crate::timer_queue::TimerQueue;
use live_host::ancillary::Checksum;
use live_host::packet_socket::{is_link_down, LinkState, ReceiveBuffer};
use live_host::stall::StallWatch;

/// A departure so near is waited for in a tight loop; the kernel's send path and one iteration of the outer loop
/// together take less.
const SPIN: Duration = Duration::from_micros(16);
/// With nothing due for so long the thread rests a little: a core on which a real-time thread never sleeps starves the
/// kernel's own threads there, and with them other programs. Whatever arrives meanwhile is stamped by the kernel, and no
/// frame leaves sooner than 30 us after the pass that finds it.
const QUIET: Duration = Duration::from_micros(50);
/// Shortest rest; the kernel adds some microseconds. A longer one (`process.rest_us`) ends this much before `QUIET`.
const LEAST_REST: Duration = Duration::from_micros(10);
/// How long the relation between the two clocks is taken as constant.
const PAIR_VALID: Duration = Duration::from_millis(1);
/// Longest frame without FCS that the interface may deliver: 1514 bytes and two VLAN tags.
const MAX_FRAME_BYTES: usize = 1522;
/// Frames read from one interface in a row, so that a flood there cannot keep the thread from the rest.
const READS_PER_PASS: usize = 64;

/// A board's connection as the data thread sees it.
#[derive(Debug)]
struct BoardSession {
    control: ControlPort,
    number: SessionNumber,
    /// The connection that the board has closed, until it begins another.
    closed: Option<SessionNumber>,
    behind_told: bool,
    /// Whether the board's own connection, if it keeps one, was established at the last look.
    was_connected: bool,
}

/// Channels between the data thread and the other threads.
#[derive(Debug)]
pub struct Channels {
    /// Ends of the boards' connections, one a board.
    pub controls: Vec<ControlPort>,
    /// Ends of the boards' consoles, one a board.
    pub consoles: Vec<ConsolePort>,
    /// Link changes of the data ports.
    pub links: Receiver<LinkChange>,
    /// Whether any of them has something.
    pub pending: PendingFlag,
}

/// All that the data thread works with.
#[derive(Debug)]
pub struct DataPlane {
    clock: Clock,
    pair: ClockPair,
    watch: StallWatch,
    boards: Boards,
    ports: DataPorts,
    /// Ports that have frames, while they are read.
    ready: Vec<usize>,
    /// A frame that came before this instant and was not read yet is held back by the host, not by this thread's other
    /// work. The instant is the beginning of the last pass that left no frame unread, or the end of a rest after it, less
    /// the time by which the rest was meant to be longer than `LEAST_REST`.
    emptied: Instant,
    sessions: Vec<BoardSession>,
    consoles: Vec<ConsolePort>,
    links: Receiver<LinkChange>,
    pending: PendingFlag,
    /// Boards on a network of their own.
    networked: Vec<usize>,
    /// Pending outputs of boards: frames, messages, connects, closes and console text.
    outgoing: TimerQueue<(usize, OutputKind)>,
    departure_lead: DepartureLead,
    longest_rest: Duration,
    /// Place of the sequence number in frames, if departures are traced.
    trace_offset: Option<usize>,
    flow_statistics: bool,
    telemetry: Telemetry,
    buffer: ReceiveBuffer,
}

/// How the data plane keeps time.
#[derive(Debug)]
pub struct DataPlaneTiming {
    /// A longer gap between two looks at the clock is a stall.
    pub stall_threshold: Duration,
    /// How much before its departure a frame is handed to the kernel.
    pub send_lead: SendLead,
    /// Longest time for which the thread sleeps if nothing is due.
    pub longest_rest: Duration,
    /// Place of the sequence number in frames, if departures are traced.
    pub trace_offset: Option<usize>,
    /// Whether the boards' entries are sent with their counters.
    pub flow_statistics: bool,
}

impl DataPlane {
    /// Ready to run; instants count from the start of `clock`, which is the boards' power-up. What they did until now
    /// is done at once.
    #[must_use]
    pub fn new(
        clock: Clock,
        boards: Boards,
        ports: DataPorts,
        channels: Channels,
        timing: DataPlaneTiming,
        telemetry: Telemetry,
    ) -> Self {
        let pair = clock.pair();
        let one_board = channels.controls.len() == 1;
        let networked = (0..channels.controls.len())
            .filter(|board| boards.own_connection(*board).is_some())
            .collect();
        let sessions = channels
            .controls
            .into_iter()
            .map(|control| BoardSession {
                control,
                number: 0,
                closed: None,
                behind_told: false,
                was_connected: false,
            })
            .collect();
        Self {
            clock,
            pair,
            watch: StallWatch::new(timing.stall_threshold, pair.now),
            boards,
            ports,
            ready: Vec::new(),
            emptied: pair.now,
            sessions,
            consoles: channels.consoles,
            links: channels.links,
            pending: channels.pending,
            networked,
            outgoing: TimerQueue::new(),
            departure_lead: DepartureLead::new(timing.send_lead, one_board, pair.now),
            longest_rest: timing.longest_rest,
            trace_offset: timing.trace_offset,
            flow_statistics: timing.flow_statistics,
            telemetry,
            buffer: ReceiveBuffer::new(),
        }
    }

    /// Runs until asked to stop. Reports after the first iteration that it runs, and how it is scheduled.
    pub fn run(mut self, scheduling: String) {
        let mut pass_began = self.read_clock();
        self.pass(pass_began);
        self.telemetry.send(TelemetryMessage::Running {
            scheduling,
            send_lead_ns: self.departure_lead.initial().as_nanos(),
        });
        while !self.telemetry.shared.stop.load(Relaxed) {
            self.pass(pass_began);
            let now = self.read_clock();
            self.telemetry
                .shared
                .passes
                .record(now.saturating_since(pass_began).as_nanos());
            if self.telemetry.shared.counters_wanted() {
                self.send_counters();
            }
            pass_began = self.rest(now);
        }
        self.send_counters();
    }

    /// Sleeps briefly if nothing is due soon. Returns the time afterwards.
    fn rest(&mut self, now: Instant) -> Instant {
        let quiet_until = now + QUIET;
        let next_at = self.outgoing.next_at();
        if next_at.is_some_and(|at| at < quiet_until) {
            return now;
        }
        let room = next_at.map_or(self.longest_rest, |at| at.saturating_since(quiet_until));
        let wanted = self.longest_rest.min(room.max(LEAST_REST));
        std::thread::sleep(std::time::Duration::from_nanos(wanted.as_nanos()));
        let rested = self.clock.now();
        // As far as a rest was meant to be long, the host did not hold back what came meanwhile.
        let meant = now + (wanted - LEAST_REST);
        self.emptied = now + rested.saturating_since(meant);
        // A long rest is a stall only if something should have left meanwhile.
        if self.outgoing.next_at().is_none_or(|at| at > rested) {
            self.watch.rested(rested);
        }
        self.read_clock()
    }

    /// Does all work due at `now`. Interfaces come first, so all frames that arrived by `now` are known.
    fn pass(&mut self, now: Instant) {
        if now.saturating_since(self.pair.now) > PAIR_VALID {
            self.pair = self.clock.pair();
        }
        self.receive(now);
        self.run_boards(now);
        if self.pending.take() {
            while let Ok(change) = self.links.try_recv() {
                self.change_link(change, now);
            }
            for board in 0..self.sessions.len() {
                self.take_notices(board, now);
                while let Some(typed) = self.consoles[board].typed() {
                    self.boards.typed(board, now, &typed);
                }
            }
            self.run_boards(now);
        }
        self.report_connections(now);
        self.depart();
        if let Some(next_at) = self.outgoing.next_at() {
            self.departure_lead.warm_cache(next_at, self.clock);
        }
        self.watch.caught_up(now);
    }

    /// Sends due frames between pieces of work, so that long work does not delay known departures.
    fn send_due_frames(&mut self) {
        let now = self.read_clock();
        if self.outgoing.next_at().is_some_and(|at| at <= now + SPIN) {
            self.depart();
        }
    }

    /// Reports when a board on a network of its own has gained or lost its connection.
    fn report_connections(&mut self, now: Instant) {
        for &board in &self.networked {
            let session = &mut self.sessions[board];
            let Some(connected) = self.boards.own_connection(board) else {
                continue;
            };
            if connected != session.was_connected {
                session.was_connected = connected;
                self.telemetry.send(TelemetryMessage::Connection {
                    at_ns: self.pair.realtime_of(now),
                    board,
                    connected,
                });
            }
        }
    }

    /// Reads the clock and checks for a stall.
    fn read_clock(&mut self) -> Instant {
        let now = self.clock.now();
        if let Some(stall) = self.watch.observe(now) {
            self.telemetry
                .stall(self.pair.realtime_of(stall.start), stall);
        }
        now
    }

    fn receive(&mut self, now: Instant) {
        let mut ready = core::mem::take(&mut self.ready);
        let mut emptied = self.ports.poll(&mut ready);
        for &index in &ready {
            emptied &= self.read(index);
        }
        self.ready = ready;
        if emptied {
            self.emptied = now;
        }
    }

    /// Reads an interface, and returns whether nothing is left there.
    fn read(&mut self, index: usize) -> bool {
        for _ in 0..READS_PER_PASS {
            self.send_due_frames();
            match self.ports[index].socket.receive(&mut self.buffer) {
                Ok(None) => return true,
                Ok(Some(received))
                    if self.ports[index].native && segmentation::is_bundle(&received.data) =>
                {
                    // The controller's kernel leaves the segmentation to hardware that is not there.
                    for mut frame in segmentation::cut(&received.data) {
                        // This cannot fail: a segment of a bundle is TCP and complete.
                        let _ = checksum::complete(&mut frame);
                        self.arrive(index, received.stamp_realtime_ns, frame);
                    }
                }
                Ok(Some(received)) if received.interface_bytes > MAX_FRAME_BYTES => {
                    let bytes = received.interface_bytes;
                    self.report_error(index, PortError::Oversize, || {
                        format!("delivered a frame of {bytes} bytes, which no link carries: it is lost; turn segmentation offload off")
                    });
                }
                Ok(Some(mut received)) => {
                    if received.checksum == Checksum::Partial
                        && checksum::complete(&mut received.data).is_err()
                    {
                        self.report_error(index, PortError::Checksum, || {
                            "delivered a frame whose checksum is left to hardware: it passes with a wrong one; turn checksum offload off".into()
                        });
                    }
                    self.arrive(index, received.stamp_realtime_ns, received.data);
                }
                Err(error) if is_link_down(&error) => return true,
                Err(error) => {
                    self.report_error(index, PortError::Receive, || {
                        format!("cannot be read: {error}")
                    });
                    return true;
                }
            }
        }
        false
    }

    fn arrive(&mut self, index: usize, stamp_realtime_ns: u64, frame: Vec<u8>) {
        let now = self.clock.now();
        // The wall clock may have been set since the stamp: nothing arrives from the future.
        let stamp = self.pair.instant_of(stamp_realtime_ns).min(now);
        if let Some(stall) = self.watch.delivered(stamp, self.emptied, now) {
            self.telemetry.stall(stamp_realtime_ns, stall);
        }
        let port = &mut self.ports[index];
        match port.receive.arrival(stamp, frame.len()) {
            Ok(at) => self.boards.arrive(port.address, at, frame),
            Err(_) => self.report_error(index, PortError::Overrun, || {
                "gets more than a 100 Mbit/s link carries: frames are lost; shape the sender".into()
            }),
        }
    }

    fn run_boards(&mut self, now: Instant) {
        while self.step_boards(now) {
            self.send_due_frames();
        }
    }

    fn step_boards(&mut self, now: Instant) -> bool {
        let Self {
            boards,
            outgoing,
            telemetry,
            pair,
            ..
        } = self;
        boards.step(now, |board, Output { at, kind }| match kind {
            OutputKind::Event(event) => telemetry.send(TelemetryMessage::Note {
                at_ns: pair.realtime_of(at),
                board: Some(board),
                note: Note::Firmware(event),
            }),
            kind => outgoing.add(at, (board, kind)),
        })
    }

    /// The carrier of an interface has come or gone.
    fn change_link(&mut self, LinkChange { address, link }: LinkChange, now: Instant) {
        let Some(index) = self.ports.find(address.board, address.port) else {
            return;
        };
        let port = &mut self.ports[index];
        port.is_up = link == LinkState::Up;
        let text = format!(
            "port {} is {}: interface {} {}",
            address.port,
            if port.is_up { "up again" } else { "down" },
            port.socket.interface(),
            match link {
                LinkState::Up => "has a carrier",
                LinkState::NoCarrier => "has lost its carrier; set its other end up",
                LinkState::Down => "is down; set it up",
                LinkState::Gone => "is gone; it is taken up again when it comes back",
            }
        );
        self.boards.link(address, now, link == LinkState::Up);
        self.note(address.board, text);
    }

    fn take_notices(&mut self, board: usize, now: Instant) {
        while let Some(notice) = self.sessions[board].control.notice() {
            let BoardSession {
                number: current,
                closed,
                ..
            } = self.sessions[board];
            match notice {
                Notice::Connected(number) if number == current => self.boards.connected(board, now),
                Notice::Finished(number) if number == current || Some(number) == closed => {
                    self.boards.finished(board, now);
                }
                Notice::Reset(number) if number == current || Some(number) == closed => {
                    self.boards.reset(board, now);
                }
                Notice::Segment(number, bytes) if number == current => {
                    self.boards.segment(board, now, &bytes);
                }
                // These are of a connection that the board has given up since.
                Notice::Connected(_)
                | Notice::Finished(_)
                | Notice::Reset(_)
                | Notice::Segment(..) => {}
            }
        }
    }

    /// Sends all outputs that are due, spinning for those due at once.
    fn depart(&mut self) {
        loop {
            let now = self.read_clock();
            if self.outgoing.next_at().is_none_or(|at| at > now + SPIN) {
                return;
            }
            let Some((at, (board, kind))) = self.outgoing.pop() else {
                return;
            };
            match kind {
                OutputKind::Frame { ports, data } => {
                    self.send(board, at, ports, &data);
                    self.boards.recycle(board, data);
                }
                OutputKind::Controller(message) => {
                    self.command(board, ControlCommand::Send(message));
                }
                OutputKind::Connect => {
                    self.sessions[board].number += 1;
                    self.sessions[board].closed = None;
                    let redirected = self.boards.redirected(board);
                    let number = self.sessions[board].number;
                    self.command(board, ControlCommand::Connect(number, redirected));
                }
                OutputKind::Close => {
                    // Of this connection's notices, from now on only those of its end count.
                    let session = &mut self.sessions[board];
                    session.closed.get_or_insert(session.number);
                    session.number += 1;
                    self.command(board, ControlCommand::Close);
                }
                OutputKind::Console(text) => {
                    self.console(board, console::ConsoleCommand::Print(text));
                }
                OutputKind::Detach => self.console(board, console::ConsoleCommand::Detach),
                OutputKind::Attach => self.console(board, console::ConsoleCommand::Attach),
                OutputKind::Eeprom(image) => {
                    self.console(board, console::ConsoleCommand::Save(image));
                }
                OutputKind::Event(_) => {}
            }
        }
    }

    fn send(&mut self, board: usize, at: Instant, ports: PortMask, frame: &[u8]) {
        for port in ports.iter() {
            // A port without an interface, or whose interface has no carrier, has no link: what leaves by it is gone.
            let Some(index) = self.ports.find(board, port) else {
                continue;
            };
            if !self.ports[index].is_up {
                continue;
            }
            let next_at = self.outgoing.next_at();
            let native = self.ports[index].native;
            let lead = self.departure_lead.of(native, frame.len(), at, next_at);
            let mut now = self.read_clock();
            while now + lead.time < at {
                std::hint::spin_loop();
                now = self.read_clock();
            }
            let socket = &self.ports[index].socket;
            let result = if lead.is_stamped {
                socket.send_stamped(frame)
            } else {
                socket.send(frame)
            };
            if lead.is_stamped {
                let buffer = &mut self.buffer;
                self.departure_lead
                    .observe(lead, socket, buffer, self.pair, now, frame);
            }
            // A stall within the call delays the frame, too.
            self.read_clock();
            match result {
                Ok(()) => self.account(board, port, at, now + lead.time, frame),
                Err(error) if is_link_down(&error) => {}
                Err(error) => self.report_error(index, PortError::Send, || {
                    format!("refuses a frame: {error}: it is lost")
                }),
            }
        }
    }

    fn account(
        &mut self,
        board: usize,
        port: PortNumber,
        at: Instant,
        left: Instant,
        frame: &[u8],
    ) {
        let in_stall = self.watch.excuses(at);
        let lateness_ns = left.saturating_since(at).as_nanos();
        let shared = &self.telemetry.shared;
        let histogram = if in_stall {
            &shared.lateness_in_stalls
        } else {
            &shared.lateness
        };
        histogram.record(lateness_ns);
        if let Some(offset) = self.trace_offset {
            let number = frame
                .get(offset..offset + 4)
                .and_then(|bytes| bytes.try_into().ok());
            self.telemetry
                .send(TelemetryMessage::Departure(TraceRecord {
                    board,
                    port,
                    sequence: number.map_or(0, u32::from_be_bytes),
                    intended_ns: self.pair.realtime_of(at),
                    left_ns: self.pair.realtime_of(left),
                    in_stall,
                }));
        }
    }

    fn command(&mut self, board: usize, command: ControlCommand) {
        let session = &mut self.sessions[board];
        if session.control.command(command).is_err() && !session.behind_told {
            session.behind_told = true;
            let text = "the control thread gets no time: a message to the controller is lost; give the machine more cores";
            self.note(board, text.into());
        }
    }

    fn console(&mut self, board: usize, command: console::ConsoleCommand) {
        if self.consoles[board].command(command).is_err() {
            let text = "the console thread gets no time: output of the console is lost; give the machine more cores";
            self.note(board, text.into());
        }
    }

    fn report_error(&mut self, index: usize, error: PortError, text: impl FnOnce() -> String) {
        let port = &mut self.ports[index];
        if !port.is_new(error) {
            return;
        }
        let text = format!(
            "interface {} of port {} {}",
            port.socket.interface(),
            port.address.port,
            text()
        );
        let board = port.address.board;
        self.note(board, text);
    }

    fn note(&mut self, board: usize, text: String) {
        let at_ns = self.pair.realtime_of(self.clock.now());
        self.telemetry.send(TelemetryMessage::Note {
            at_ns,
            board: Some(board),
            note: Note::Text(text),
        });
    }

    fn send_counters(&mut self) {
        for board in 0..self.sessions.len() {
            let counters = self.boards.counters(board);
            let flow_statistics = if self.flow_statistics {
                self.boards.flow_statistics(board)
            } else {
                Vec::new()
            };
            self.telemetry.send(TelemetryMessage::Counters {
                board,
                counters,
                flow_statistics,
            });
        }
    }
}
