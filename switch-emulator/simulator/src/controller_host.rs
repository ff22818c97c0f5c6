//! A controller host: its network stack, and its sessions with boards.
//!
//! Its cables belong to one network, but it does not pass frames on between them. It takes no time of its own.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::Deserialize;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, Ipv4Cidr};
use zodiac_firmware::{FrameQueues, MacAddress};

use crate::controller::{echo_replies, Messages, ECHO_DELAY_NS};
use crate::error::Error;
use crate::inbox::Inbox;

/// The stack's clock runs slower by this factor, since its shortest retransmission timeout is 10 ms: a usual kernel
/// waits 200 ms, and a board may acknowledge as late as that.
const CLOCK_DIVISOR: u64 = 20;
const CLOCK_STEP_NS: u64 = 1_000 * CLOCK_DIVISOR;
/// How long an acknowledgement waits for data that carries it, on that clock: 40 ms.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(2);
/// Within this time after the connection a controller should have said something: before the board's next tick.
const SILENCE_NS: u64 = 100_000_000;
/// A board that tolerates silence for this long has no such timeout: boards that have one give up within 6.5 s.
const BORNE_NS: u64 = 7_000_000_000;
const PREFIX_BITS: u8 = 24;
/// Room for what was written and not yet acknowledged, and for what has come and was not yet read.
const BUFFER_BYTES: usize = 1 << 14;

/// Addresses of a controller by name; the default is what a board from the factory looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerConfig {
    /// MAC address.
    pub mac: MacAddress,
    /// IP address, on a network of 256 addresses.
    pub ip_address: Ipv4Addr,
    /// TCP port on which it listens.
    pub tcp_port: u16,
}

impl ControllerConfig {
    /// Refuses addresses that no controller can have.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |name, value: String, range: &str| {
            Err(Error::Value {
                name,
                value,
                range: range.into(),
            })
        };
        let address = self.ip_address;
        if self.mac.0[0] & 1 != 0 || self.mac.0 == [0; 6] {
            let range = "the addresses of single stations";
            return refuse("mac", self.mac.to_string(), range);
        }
        if address.is_unspecified()
            || address.is_broadcast()
            || address.is_multicast()
            || address.is_loopback()
        {
            let range = "the addresses of single stations";
            return refuse("ip_address", address.to_string(), range);
        }
        if self.tcp_port == 0 {
            return refuse("tcp_port", "0".into(), "1 .. 65535");
        }
        Ok(())
    }
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            mac: MacAddress([2, 0, 0, 0, 0, 8]),
            ip_address: Ipv4Addr::new(10, 0, 1, 8),
            tcp_port: 6633,
        }
    }
}

/// A connection with a board.
#[derive(Debug)]
struct ControllerSession {
    socket: SocketHandle,
    board: Ipv4Addr,
    messages: Messages,
    /// Answers to echo requests and when they leave.
    answers: Vec<(u64, Vec<u8>)>,
    /// When it was established, and whether anything was said since.
    since_ns: u64,
    spoken: bool,
}

/// A controller and its stack.
pub(crate) struct ControllerHost {
    pub(crate) name: String,
    /// Outgoing links, by port from 1.
    pub(crate) links: BTreeMap<u8, usize>,
    pub(crate) inbox: Inbox,
    tcp_port: u16,
    stack: Interface,
    queues: FrameQueues,
    sockets: SocketSet<'static>,
    listening: SocketHandle,
    /// From the oldest to the newest.
    sessions: Vec<ControllerSession>,
    /// By which port a MAC address is reached.
    learned: BTreeMap<[u8; 6], u8>,
}

impl std::fmt::Debug for ControllerHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerHost")
            .field("name", &self.name)
            .field("sessions", &self.sessions)
            .finish_non_exhaustive()
    }
}

impl ControllerHost {
    /// `seed` draws its sequence numbers.
    pub(crate) fn new(name: &str, config: ControllerConfig, seed: u64) -> Self {
        let mut settings = Config::new(HardwareAddress::Ethernet(EthernetAddress(config.mac.0)));
        settings.random_seed = seed;
        let mut queues = FrameQueues::default();
        let mut stack = Interface::new(settings, &mut queues, Instant::ZERO);
        stack.update_ip_addrs(|addresses| {
            // A new interface has room for its first address.
            let address = Ipv4Cidr::new(config.ip_address, PREFIX_BITS);
            let _ = addresses.push(IpCidr::Ipv4(address));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let listening = sockets.add(listening_socket(config.tcp_port));
        Self {
            name: name.into(),
            links: BTreeMap::new(),
            inbox: Inbox::default(),
            tcp_port: config.tcp_port,
            stack,
            queues,
            sockets,
            listening,
            sessions: Vec::new(),
            learned: BTreeMap::new(),
        }
    }

    /// A frame has arrived on `port`.
    pub(crate) fn receive(&mut self, now_ns: u64, port: u8, frame: Vec<u8>) {
        if let Some(Ok(source)) = frame.get(6..12).map(<[u8; 6]>::try_from) {
            self.learned.insert(source, port);
        }
        self.queues.received.push_back(frame);
        self.work(now_ns);
    }

    /// Does what is due: repetitions, answers.
    pub(crate) fn work(&mut self, now_ns: u64) {
        loop {
            self.poll(now_ns);
            let changed = self.accept(now_ns) | self.read(now_ns) | self.answer(now_ns);
            if !changed {
                return;
            }
        }
    }

    fn poll(&mut self, now_ns: u64) {
        self.stack
            .poll(stack_instant(now_ns), &mut self.queues, &mut self.sockets);
    }

    /// Takes a new connection.
    fn accept(&mut self, now_ns: u64) -> bool {
        let socket = self.sockets.get::<tcp::Socket>(self.listening);
        let Some(peer) = socket.remote_endpoint() else {
            return false;
        };
        let IpAddress::Ipv4(board) = peer.addr;
        self.sessions.push(ControllerSession {
            socket: self.listening,
            board,
            messages: Messages::default(),
            answers: Vec::new(),
            since_ns: now_ns,
            spoken: false,
        });
        self.listening = self.sockets.add(listening_socket(self.tcp_port));
        true
    }

    /// Reads what has come, and lets connections go that the boards have ended.
    fn read(&mut self, now_ns: u64) -> bool {
        let mut changed = false;
        for session in &mut self.sessions {
            let socket = self.sockets.get_mut::<tcp::Socket>(session.socket);
            while let Ok(bytes) = socket.recv(|bytes| (bytes.len(), bytes.to_vec())) {
                if bytes.is_empty() {
                    break;
                }
                changed = true;
                for message in session.messages.take(&bytes) {
                    // Before the controller's HELLO the board asks in version 0 (quirk 6), and would not take an answer.
                    if let Some(reply) = echo_replies(&message).filter(|_| message[0] != 0) {
                        session.answers.push((now_ns + ECHO_DELAY_NS, reply));
                    }
                    session.messages.received.push(message);
                }
            }
            if socket.state() == tcp::State::CloseWait {
                socket.close();
                changed = true;
            }
        }
        let sockets = &mut self.sockets;
        self.sessions.retain(|session| {
            let open = sockets.get::<tcp::Socket>(session.socket).is_open();
            if !open {
                sockets.remove(session.socket);
            }
            open
        });
        changed
    }

    fn answer(&mut self, now_ns: u64) -> bool {
        let mut changed = false;
        for session in &mut self.sessions {
            let socket = self.sockets.get_mut::<tcp::Socket>(session.socket);
            while let Some((_, reply)) = session.answers.first().filter(|(at, _)| *at <= now_ns) {
                // A connection that takes no more has ended.
                let _ = socket.send_slice(reply);
                session.answers.remove(0);
                changed = true;
            }
        }
        changed
    }

    /// Returns whether a board listens: its newest connection is established, and the board will not end it for
    /// silence, because the controller has already said something, or the connection is too young (`SILENCE_NS`) or old
    /// enough (`BORNE_NS`).
    pub(crate) fn is_heard(&self, now_ns: u64, board: Ipv4Addr) -> bool {
        self.session(board).is_some_and(|session| {
            let socket = self.sockets.get::<tcp::Socket>(session.socket);
            let silent_ns = now_ns.saturating_sub(session.since_ns);
            let lasts = session.spoken || !(SILENCE_NS..=BORNE_NS).contains(&silent_ns);
            socket.state() == tcp::State::Established && lasts
        })
    }

    /// Writes bytes to a board's newest connection.
    pub(crate) fn send(&mut self, now_ns: u64, board: Ipv4Addr, bytes: &[u8]) {
        let mut sessions = self.sessions.iter_mut().rev();
        if let Some(session) = sessions.find(|session| session.board == board) {
            session.spoken = true;
            let socket = self.sockets.get_mut::<tcp::Socket>(session.socket);
            // The rest is lost: no segment is that long.
            let _ = socket.send_slice(bytes);
        }
        self.work(now_ns);
    }

    /// Takes the messages that a board has sent, whatever the connection.
    pub(crate) fn take_messages(&mut self, board: Ipv4Addr) -> Vec<Vec<u8>> {
        let sessions = self.sessions.iter_mut();
        sessions
            .filter(|session| session.board == board)
            .flat_map(|session| std::mem::take(&mut session.messages.received))
            .collect()
    }

    fn session(&self, board: Ipv4Addr) -> Option<&ControllerSession> {
        self.sessions
            .iter()
            .rev()
            .find(|session| session.board == board)
    }

    /// Returns when [`work`](Self::work) has next something to do.
    pub(crate) fn work_at_ns(&mut self, now_ns: u64) -> Option<u64> {
        let due = self.stack.poll_at(stack_instant(now_ns), &self.sockets);
        let due = due.map(|at| at.total_micros().unsigned_abs() * CLOCK_STEP_NS);
        let answers = self.sessions.iter().flat_map(|session| &session.answers);
        let answer = answers.map(|(at_ns, _)| *at_ns).min();
        let next = due.into_iter().chain(answer).min()?;
        Some(next.max(now_ns + CLOCK_STEP_NS))
    }

    /// The next frame that leaves, and by which links: the one behind which its destination was seen, else all.
    pub(crate) fn take_frame(&mut self) -> Option<(Vec<usize>, Vec<u8>)> {
        let frame = self.queues.sent.pop_front()?;
        let destination = frame.get(..6).map(<[u8; 6]>::try_from);
        let port = destination.and_then(|address| self.learned.get(&address.ok()?));
        let links = match port.and_then(|port| self.links.get(port)) {
            Some(link) => vec![*link],
            None => self.links.values().copied().collect(),
        };
        Some((links, frame))
    }
}

fn listening_socket(port: u16) -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(Some(ACKNOWLEDGE_AFTER));
    socket
        .listen(port)
        .expect("a new socket can listen, and the builder refuses port 0");
    socket
}

#[allow(clippy::cast_possible_wrap)] // microseconds stay below 2^63
fn stack_instant(now_ns: u64) -> Instant {
    Instant::from_micros((now_ns / CLOCK_STEP_NS) as i64)
}
