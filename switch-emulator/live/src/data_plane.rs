//! The data thread: reads interfaces, runs the boards, sends frames at their departure instants.

use std::sync::mpsc::Receiver;

use zodiac_firmware::{Instant, Output, OutputKind, PortMask};

use crate::boards::Boards;
use crate::checksum;
use crate::console::{self, ConsolePort};
use crate::control::{ControlCommand, ControlPort, Notice, SessionNumber};
use crate::data_port::{DataPort, DataPorts, PortError};
use crate::link_watch::LinkChange;
use crate::pending_flag::PendingFlag;
use crate::real_time::RealTime;
use crate::segmentation;
use crate::telemetry::{Note, TelemetryMessage};
use live_host::ancillary::Checksum;
use live_host::packet_socket::{is_link_down, LinkState};

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
    /// With the boards' pending outputs: frames, messages, connects, closes and console text.
    time: RealTime<(usize, OutputKind)>,
    boards: Boards,
    ports: DataPorts,
    /// Ports that have frames, while they are read.
    ready: Vec<usize>,
    sessions: Vec<BoardSession>,
    consoles: Vec<ConsolePort>,
    links: Receiver<LinkChange>,
    pending: PendingFlag,
    /// Boards on a network of their own.
    networked: Vec<usize>,
    flow_statistics: bool,
}

impl DataPlane {
    /// Ready to run; instants count from the start of the clock, which is the boards' power-up. What they did until now
    /// is done at once.
    #[must_use]
    pub fn new(
        time: RealTime<(usize, OutputKind)>,
        boards: Boards,
        ports: DataPorts,
        channels: Channels,
        flow_statistics: bool,
    ) -> Self {
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
            time,
            boards,
            ports,
            ready: Vec::new(),
            sessions,
            consoles: channels.consoles,
            links: channels.links,
            pending: channels.pending,
            networked,
            flow_statistics,
        }
    }

    /// Runs until asked to stop. Reports after the first iteration that it runs, and how it is scheduled.
    pub fn run(mut self, scheduling: String) {
        let mut pass_began = self.time.now();
        self.pass(pass_began);
        self.time.report_running(scheduling);
        while !self.time.is_stopped() {
            self.pass(pass_began);
            let (now, counters_wanted) = self.time.passed(pass_began);
            if counters_wanted {
                self.send_counters();
            }
            pass_began = self.time.rest(now);
        }
        self.send_counters();
    }

    /// Does all work due at `now`. Interfaces come first, so all frames that arrived by `now` are known.
    fn pass(&mut self, now: Instant) {
        self.time.compare_clocks(now);
        self.receive(now);
        self.run_boards(now);
        if self.pending.take() {
            while let Ok(change) = self.links.try_recv() {
                self.change_link(change, now);
            }
            for board in 0..self.sessions.len() {
                self.take_notices(board, now);
                while let Some(typed) = self.consoles[board].notice() {
                    self.boards.typed(board, now, &typed);
                }
            }
            self.run_boards(now);
        }
        self.report_connections(now);
        self.depart();
        self.time.caught_up(now);
    }

    /// Sends due frames between pieces of work, so that long work does not delay known departures.
    fn send_due_frames(&mut self) {
        if self.time.is_due() {
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
                let at_ns = self.time.realtime_ns(now);
                self.time.telemetry.send(TelemetryMessage::Connection {
                    at_ns,
                    board,
                    connected,
                });
            }
        }
    }

    fn receive(&mut self, now: Instant) {
        let mut ready = core::mem::take(&mut self.ready);
        let mut emptied = self.ports.poll(&mut ready);
        for &index in &ready {
            emptied &= self.read(index);
        }
        self.ready = ready;
        if emptied {
            self.time.emptied(now);
        }
    }

    /// Reads an interface, and returns whether nothing is left there.
    fn read(&mut self, index: usize) -> bool {
        for _ in 0..READS_PER_PASS {
            self.send_due_frames();
            match self.ports[index].socket.receive(&mut self.time.buffer) {
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
        let stamp = self.time.arrived(stamp_realtime_ns);
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
        let Self { boards, time, .. } = self;
        boards.step(now, |board, Output { at, kind }| match kind {
            OutputKind::Event(event) => {
                let at_ns = time.realtime_ns(at);
                time.telemetry.send(TelemetryMessage::Note {
                    at_ns,
                    board: Some(board),
                    note: Note::Firmware(event),
                });
            }
            kind => time.outgoing.add(at, (board, kind)),
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
        self.time.note(Some(address.board), text);
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
        while let Some((at, (board, kind))) = self.time.pop_due() {
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
            let DataPort { socket, native, .. } = &self.ports[index];
            match self.time.send(socket, *native, at, frame) {
                Ok(left) => self.time.account((board, port), at, left, frame),
                Err(error) if is_link_down(&error) => {}
                Err(error) => self.report_error(index, PortError::Send, || {
                    format!("refuses a frame: {error}: it is lost")
                }),
            }
        }
    }

    fn command(&mut self, board: usize, command: ControlCommand) {
        let session = &mut self.sessions[board];
        if session.control.command(command).is_err() && !session.behind_told {
            session.behind_told = true;
            let text = "the control thread gets no time: a message to the controller is lost; give the machine more cores";
            self.time.note(Some(board), text.into());
        }
    }

    fn console(&mut self, board: usize, command: console::ConsoleCommand) {
        if self.consoles[board].command(command).is_err() {
            let text = "the console thread gets no time: output of the console is lost; give the machine more cores";
            self.time.note(Some(board), text.into());
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
        self.time.note(Some(board), text);
    }

    fn send_counters(&mut self) {
        for board in 0..self.sessions.len() {
            let counters = self.boards.counters(board);
            let flow_statistics = if self.flow_statistics {
                self.boards.flow_statistics(board)
            } else {
                Vec::new()
            };
            self.time.telemetry.send(TelemetryMessage::Counters {
                board,
                counters,
                flow_statistics,
            });
        }
    }
}
