//! The controllers' TCP connections: a thread of ordinary priority, so that TCP never stalls the data thread.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration as Timeout;

use rtrb::{Consumer, Producer};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{recv, RecvFlags};
use socket2::{Domain, Socket, Type};
use zodiac_firmware::{Instant, Quirk, Quirks};

use crate::clock::Clock;
use crate::pending_flag::PendingFlag;
use crate::stream::{Cut, StreamCutter, SEGMENT_BYTES};
use crate::tcp_info::TcpInfo;
use crate::thread_port::ThreadPort;
use crate::waker::Waker;

/// Commands and notices that fit in the channels.
const CHANNEL_MESSAGES: usize = 4096;
/// Replies that wait for a controller that does not read; what goes beyond is lost, as on a board.
const MAX_UNSENT_BYTES: usize = 1 << 18;
const READ_BYTES: usize = 1 << 16;
/// How soon the thread tries again when the data thread has not taken its notices.
const RETRY: Timeout = Timeout::from_millis(2);

/// Number of a board's connection, which identifies late notices of an old one.
pub type SessionNumber = u64;

/// From the data thread.
#[derive(Debug)]
pub enum ControlCommand {
    /// Begin a new connection; one that exists is given up. An address is one that was set at the board's console, and
    /// replaces the configured one.
    Connect(SessionNumber, Option<SocketAddrV4>),
    /// Close the connection, behind what was to be sent before.
    Close,
    /// Send one message.
    Send(Vec<u8>),
}

/// To the data thread.
#[derive(Debug)]
pub enum Notice {
    /// The connection is established.
    Connected(SessionNumber),
    /// The controller has ended its half of the connection, by a FIN; it may be one that the board has closed.
    Finished(SessionNumber),
    /// The controller has reset the connection, or it was lost.
    Reset(SessionNumber),
    /// The payload of what a board would have got as one TCP segment.
    Segment(SessionNumber, Vec<u8>),
}

/// A line for the log about a board's connection.
#[derive(Debug)]
pub struct Line {
    /// When.
    pub at: Instant,
    /// Which board.
    pub board: usize,
    /// The reason.
    pub text: String,
    /// Whether the connection stands from now on, if that changed.
    pub connected: Option<bool>,
}

/// The data thread's end of a board's connection.
pub type ControlPort = ThreadPort<ControlCommand, Notice>;

/// All boards' connections.
#[derive(Debug)]
pub struct ControllerLinks {
    clock: Clock,
    links: Vec<BoardConnection>,
    waker: Waker,
    log: mpsc::Sender<Line>,
}

impl ControllerLinks {
    /// Connections to these controllers, one a board, which behaves like that; and the data thread's ends of them.
    ///
    /// # Errors
    /// No free file descriptor.
    pub fn new(
        clock: Clock,
        controllers: &[(SocketAddr, Quirks)],
        pending: &PendingFlag,
        log: mpsc::Sender<Line>,
    ) -> io::Result<(Self, Vec<ControlPort>)> {
        let waker = Waker::new()?;
        let mut ports = Vec::new();
        let mut links = Vec::new();
        for (board, &(controller, quirks)) in controllers.iter().enumerate() {
            let (port, commands, notices) = ControlPort::new(CHANNEL_MESSAGES, waker.clone());
            ports.push(port);
            links.push(BoardConnection {
                commands,
                outlet: Outlet {
                    board,
                    quirks,
                    notices,
                    pending: pending.clone(),
                    waiting: VecDeque::new(),
                    log: log.clone(),
                },
                configured: controller,
                controller,
                session: None,
                refusal: None,
            });
        }
        Ok((
            Self {
                clock,
                links,
                waker: waker.clone(),
                log,
            },
            ports,
        ))
    }

    /// Wakes the thread from outside.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Serves the connections until `stop` is set and the thread woken. Closes them at the end.
    ///
    /// # Errors
    /// The kernel cannot wait for sockets.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        while !stop.load(Relaxed) {
            self.turn(&mut buffer)?;
        }
        drop(self.log);
        Ok(())
    }

    /// Waits once, and does what is then to be done.
    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.wait()?;
        let now = self.clock.now();
        for link in &mut self.links {
            link.outlet.deliver();
            link.take_commands(now);
            link.serve(now, buffer);
        }
        Ok(())
    }

    /// Waits until a socket is ready, a command has come or something is due.
    fn wait(&self) -> io::Result<()> {
        let now = self.clock.now();
        let timeout = self.links.iter().filter_map(|link| link.timeout(now)).min();
        let sockets = self.links.iter().filter_map(BoardConnection::interest);
        self.waker.wait(sockets, timeout)
    }
}

/// One board's connection.
#[derive(Debug)]
struct BoardConnection {
    /// Where the configuration sends the board.
    configured: SocketAddr,
    /// Where it connects to.
    controller: SocketAddr,
    commands: Consumer<ControlCommand>,
    outlet: Outlet,
    session: Option<ControlSession>,
    /// Why the last attempts failed; logged once, not with each attempt.
    refusal: Option<ErrorKind>,
}

#[derive(Debug)]
struct ControlSession {
    number: SessionNumber,
    socket: Socket,
    stage: Stage,
    cutter: StreamCutter,
    /// Bytes of the stream read so far, and the segments counted by then.
    taken: TcpInfo,
    unsent: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The connection is being established.
    Connecting,
    Established,
    /// The controller has ended its half; the board's stays open until it connects again (quirk 16).
    HalfOpen,
    /// The board has closed the connection; some of what it has sent before still waits.
    Closing,
    /// The board has ended its half, and listens for the end of the controller's (quirk 200).
    Closed,
}

/// Where a connection's notices and lines go.
#[derive(Debug)]
struct Outlet {
    board: usize,
    /// Whether messages are lost with the remarks, as the firmware loses them.
    quirks: Quirks,
    notices: Producer<Notice>,
    pending: PendingFlag,
    /// Notices that found the channel full; no more is read from the socket until they are gone.
    waiting: VecDeque<Notice>,
    log: mpsc::Sender<Line>,
}

impl Outlet {
    fn deliver(&mut self) {
        while let Some(notice) = self.waiting.pop_front() {
            if let Err(rtrb::PushError::Full(notice)) = self.notices.push(notice) {
                self.waiting.push_front(notice);
                break;
            }
            self.pending.set();
        }
    }

    fn notify(&mut self, notice: Notice) {
        self.waiting.push_back(notice);
        self.deliver();
    }

    fn line(&self, at: Instant, text: String) {
        self.log(at, text, None);
    }

    fn log(&self, at: Instant, text: String, connected: Option<bool>) {
        // The reader is gone only when the program ends.
        let _ = self.log.send(Line {
            at,
            board: self.board,
            text,
            connected,
        });
    }

    fn cut(&mut self, now: Instant, number: SessionNumber, cut: Cut) {
        for remark in cut.remarks {
            if self.quirks.has(Quirk::NoReassembly) || !remark.is_of_firmware() {
                self.line(now, remark.to_string());
            }
        }
        for segment in cut.segments {
            self.notify(Notice::Segment(number, segment));
        }
    }
}

impl BoardConnection {
    fn timeout(&self, now: Instant) -> Option<Timeout> {
        let retry = (!self.outlet.waiting.is_empty()).then_some(RETRY);
        let session = self.session.as_ref();
        let give_up = session.and_then(|session| session.cutter.deadline());
        let give_up = give_up.map(|due| Timeout::from_nanos(due.saturating_since(now).as_nanos()));
        retry.into_iter().chain(give_up).min()
    }

    fn interest(&self) -> Option<PollFd<'_>> {
        let session = self.session.as_ref()?;
        // A reset shows without being asked for.
        let mut flags = PollFlags::empty();
        if session.is_heard() && self.outlet.waiting.is_empty() {
            flags |= PollFlags::IN;
        }
        if session.stage == Stage::Connecting || !session.unsent.is_empty() {
            flags |= PollFlags::OUT;
        }
        Some(PollFd::from_borrowed_fd(session.socket.as_fd(), flags))
    }

    fn take_commands(&mut self, now: Instant) {
        while let Ok(command) = self.commands.pop() {
            match command {
                ControlCommand::Connect(number, redirected) => {
                    self.controller = redirected.map_or(self.configured, SocketAddr::V4);
                    self.connect(now, number);
                }
                ControlCommand::Close => self.close(now),
                ControlCommand::Send(message) => self.send(now, message),
            }
        }
    }

    fn connect(&mut self, now: Instant, number: SessionNumber) {
        if self
            .session
            .take()
            .is_some_and(|session| session.stage == Stage::Established)
        {
            self.outlet.log(
                now,
                format!("board gave up the connection to {}", self.controller),
                Some(false),
            );
        }
        match begin_connect(self.controller) {
            Ok(socket) => {
                self.session = Some(ControlSession {
                    number,
                    socket,
                    stage: Stage::Connecting,
                    cutter: StreamCutter::new(),
                    taken: TcpInfo::default(),
                    unsent: Vec::new(),
                });
            }
            Err(error) => self.refused(now, &error),
        }
    }

    fn refused(&mut self, now: Instant, error: &io::Error) {
        self.session = None;
        if self.refusal.replace(error.kind()) != Some(error.kind()) {
            let controller = self.controller;
            self.outlet.line(
                now,
                format!(
                    "cannot connect to controller {controller}: {error}; the board tries again"
                ),
            );
        }
    }

    /// The board's end of the connection: its FIN leaves behind all that it has sent.
    fn close(&mut self, now: Instant) {
        let Some(session) = &mut self.session else {
            return;
        };
        match session.stage {
            Stage::Established => {
                session.stage = Stage::Closing;
                let text = format!("board closed the connection to {}", self.controller);
                self.outlet.log(now, text, Some(false));
            }
            Stage::Closing | Stage::Closed => {}
            Stage::Connecting | Stage::HalfOpen => self.session = None,
        }
    }

    /// The controller has ended its half.
    fn finished(&mut self, now: Instant) {
        let Some(session) = &mut self.session else {
            return;
        };
        let number = session.number;
        if session.stage == Stage::Established {
            session.stage = Stage::HalfOpen;
            let text = format!("controller {} closed the connection", self.controller);
            self.outlet.log(now, text, Some(false));
        } else {
            self.session = None;
        }
        self.outlet.notify(Notice::Finished(number));
    }

    /// Nothing is left of the connection.
    fn lost(&mut self, now: Instant, error: &io::Error) {
        let Some(session) = self.session.take() else {
            return;
        };
        if session.stage == Stage::Established {
            let text = format!("controller {} {}", self.controller, ending(error));
            self.outlet.log(now, text, Some(false));
        }
        self.outlet.notify(Notice::Reset(session.number));
    }

    fn send(&mut self, now: Instant, message: Vec<u8>) {
        let Some(session) = self.session.as_mut().filter(|session| session.takes()) else {
            return;
        };
        if session.unsent.len() + message.len() > MAX_UNSENT_BYTES {
            let text = format!(
                "controller {} does not read; a message to it is lost",
                self.controller
            );
            self.outlet.line(now, text);
            return;
        }
        session.unsent.extend(message);
    }

    fn serve(&mut self, now: Instant, buffer: &mut [u8]) {
        let is = |session: &ControlSession, stage| session.stage == stage;
        if matches!(&self.session, Some(session) if is(session, Stage::Connecting)) {
            self.finish_connect(now);
        }
        let Some(session) = &mut self.session else {
            return;
        };
        if is(session, Stage::Connecting) {
            return;
        }
        let cut = session.cutter.give_up(now);
        self.outlet.cut(now, session.number, cut);
        // Read first what the controller has sent: its FIN may wait in front of an RST, which makes sending fail.
        if session.is_heard() {
            self.read(now, buffer);
        }
        let Some(session) = &mut self.session else {
            return;
        };
        if let Err(error) = session.flush() {
            return self.lost(now, &error);
        }
        if is(session, Stage::HalfOpen) {
            if let Ok(Some(error)) | Err(error) = session.socket.take_error() {
                self.lost(now, &error);
            }
        }
    }

    fn finish_connect(&mut self, now: Instant) {
        let Some(session) = self.session.as_mut() else {
            return;
        };
        match session.socket.take_error() {
            Ok(None) if session.socket.peer_addr().is_ok() => {
                session.stage = Stage::Established;
                self.refusal = None;
                let number = session.number;
                self.outlet.log(
                    now,
                    format!("connected to controller {}", self.controller),
                    Some(true),
                );
                self.outlet.notify(Notice::Connected(number));
            }
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => self.refused(now, &error),
        }
    }

    fn read(&mut self, now: Instant, buffer: &mut [u8]) {
        while self.outlet.waiting.is_empty() {
            let Some(session) = self.session.as_mut() else {
                return;
            };
            match session.receive(buffer) {
                Ok((0, _)) => return self.finished(now),
                // Messages to a board that has closed the connection are lost.
                Ok(_) if session.stage != Stage::Established => {}
                Ok((length, segments)) => {
                    let cut = session.cutter.read(now, &buffer[..length], segments);
                    self.outlet.cut(now, session.number, cut);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.lost(now, &error),
            }
        }
    }
}

impl ControlSession {
    /// Returns whether messages for the controller are taken.
    fn takes(&self) -> bool {
        matches!(self.stage, Stage::Established | Stage::HalfOpen)
    }

    /// Returns whether the controller can still say something, if only that it has ended.
    fn is_heard(&self) -> bool {
        matches!(
            self.stage,
            Stage::Established | Stage::Closing | Stage::Closed
        )
    }

    /// Reads what has come. Returns how many bytes, 0 at the stream's end, and how many segments brought them.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, usize)> {
        // No more bytes are read than were counted, so that bytes and segments belong together.
        let mut arrived = TcpInfo::read(&self.socket)?;
        if arrived.bytes == self.taken.bytes {
            // Nothing new was counted: this is the stream's end, an error, or data that comes at this moment.
            let (_, length) = recv(&self.socket, &mut [0], RecvFlags::PEEK)?;
            if length == 0 {
                return Ok((0, 0));
            }
            arrived = TcpInfo::read(&self.socket)?;
        }
        let due = usize::try_from(arrived.bytes.saturating_sub(self.taken.bytes));
        let end = due.ok().filter(|due| (1..buffer.len()).contains(due));
        let end = end.unwrap_or(buffer.len());
        let length = (&self.socket).read(&mut buffer[..end])?;
        let segments = arrived.segments.wrapping_sub(self.taken.segments) as usize;
        self.taken.bytes += length as u64;
        self.taken.segments = arrived.segments;
        Ok((length, segments))
    }

    /// Sends what waits, as far as it goes, and the FIN behind it if the board has closed the connection.
    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match (&self.socket).write(&self.unsent) {
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.stage == Stage::Closing {
            self.socket.shutdown(Shutdown::Write)?;
            self.stage = Stage::Closed;
        }
        Ok(())
    }
}

fn ending(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "reset the connection".into(),
        _ => format!("is gone: {error}"),
    }
}

/// Returns a TCP connection on its way, with the board's options: no Nagle delay, segments of 536 bytes.
fn begin_connect(controller: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(controller), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_mss(SEGMENT_BYTES as u32)?;
    match socket.connect(&controller.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

#[cfg(test)]
mod tests;
