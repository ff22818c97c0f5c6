//! The board on its control network: MAC and IP address, ARP, ping, and TCP connections to the controller.
//!
//! [`Native`] is the IP stack of the board on queues: frames of the native ports go in, frames come out, time is
//! passed in. Ethernet, ARP, IP and ping are `smoltcp`'s. TCP follows the board's own stack (lwIP 1.4.1), because what
//! it does there reaches the controller: which replies share a segment, which part of it the link driver sends, also
//! when it is repeated, how often a SYN comes again, and which connections stay behind.

mod frame_queues;
mod interface;
mod neighbours;
mod round_trip;
mod send_queue;
mod socket;

use std::net::SocketAddrV4;

use smoltcp::wire::{TcpPacket, TcpSeqNumber};

pub use frame_queues::FrameQueues;
pub use send_queue::MSS as MAX_SEGMENT_BYTES;
pub(crate) use send_queue::{Full, MemoryClass, Room, SendQueue};
pub(crate) use socket::Change;

use crate::config::Config;
use crate::time::Instant;
use interface::{Interface, Received};
use socket::{refusal, Socket, SocketState};

/// TCP connections that the stack has memory for.
const SOCKETS: usize = 12;
/// Connections begin at this port and count upwards.
const FIRST_PORT: u16 = 49_153;
/// Between the initial sequence numbers of two connections.
const SEQUENCE_STEP: usize = 64_000;

/// A received frame and its meaning for the agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) kind: ArrivalKind,
    /// Payload of the controller's segment.
    pub(crate) payload: Vec<u8>,
    pub(crate) change: Option<Change>,
}

/// Kind of a received frame; the CPU's work depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArrivalKind {
    /// Nothing for the board.
    #[default]
    Ignored,
    /// Answered by the stack itself: ARP, ping, or a segment of no connection.
    Answered,
    /// A TCP segment without data.
    Acknowledgement,
    /// A TCP segment with data, or one that begins or ends a connection.
    Segment,
}

/// The board's IP stack and its connections.
#[derive(Debug)]
pub(crate) struct Native {
    interface: Interface,
    /// From the oldest to the newest.
    sockets: Vec<Socket>,
    /// Port of the connection to which messages are written: the newest.
    current: Option<u16>,
    controller: SocketAddrV4,
    faithful: bool,
    next_port: u16,
    next_sequence: TcpSeqNumber,
    /// When the stack has something to do.
    due_at: Option<Instant>,
}

impl Native {
    /// `seed` draws the sequence numbers. With `faithful` messages are lost as on the board.
    pub(crate) fn new(config: &Config, faithful: bool, seed: u64) -> Self {
        Self {
            interface: Interface::new(config, seed),
            sockets: Vec::with_capacity(SOCKETS),
            current: None,
            controller: SocketAddrV4::new(config.controller_address, config.controller_port),
            faithful,
            next_port: FIRST_PORT,
            next_sequence: TcpSeqNumber(seed as i32),
            due_at: None,
        }
    }

    /// Returns whether all messages are sent, however many wait for their acknowledgement.
    pub(crate) const fn is_lossless(&self) -> bool {
        !self.faithful
    }

    /// Where connections go, from the next one on.
    pub(crate) fn set_controller(&mut self, controller: SocketAddrV4) {
        self.controller = controller;
    }

    /// Begins a new connection. One that exists is not closed.
    pub(crate) fn connect(&mut self, now: Instant) {
        self.sockets
            .retain(|socket| socket.state != SocketState::Closed);
        if self.sockets.len() == SOCKETS {
            let ended = |socket: &Socket| socket.state == SocketState::TimeWait;
            let given_up = self.sockets.iter().position(ended).unwrap_or(0);
            self.sockets
                .remove(given_up)
                .abort(now, &mut self.interface);
        }
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
        self.next_sequence += SEQUENCE_STEP;
        let mut socket = Socket::new(port, self.controller, self.next_sequence, self.faithful);
        socket.connect(now, &mut self.interface);
        self.sockets.push(socket);
        self.current = Some(port);
        self.plan(now);
    }

    /// Ends the board's half of the current connection.
    pub(crate) fn close(&mut self, now: Instant) {
        if let Some(socket) = self.current_mut() {
            socket.close();
        }
        self.transmit(now);
    }

    /// Returns whether the current connection is established.
    pub(crate) fn is_established(&self) -> bool {
        self.current()
            .is_some_and(|socket| socket.state == SocketState::Established)
    }

    /// Writes a message to the current connection, if it takes any. Returns whether there was room, and whether the
    /// connection is stalled.
    pub(crate) fn write(
        &mut self,
        buffer: MemoryClass,
        message: &[u8],
    ) -> Option<(Result<(), Full>, bool)> {
        let others = self
            .sockets
            .iter()
            .filter(|socket| Some(socket.local_port()) != self.current);
        let elsewhere_bytes = others.map(|socket| socket.queue.heap_bytes()).sum();
        let socket = self.current_mut()?;
        if !socket.accepts_messages() {
            return None;
        }
        let written = socket.queue.write(buffer, message, elsewhere_bytes);
        Some((written, socket.queue.is_stalled()))
    }

    /// Returns whether an acknowledgement leaves by itself as soon as the stack may send.
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        let mut sockets = self.sockets.iter();
        sockets.any(|socket| socket.owes_acknowledgement() && !socket.queue.has_unsent())
    }

    /// Takes a frame. What it makes the stack send comes out of [`take_frame`](Self::take_frame), segments of
    /// connections after [`transmit`](Self::transmit).
    pub(crate) fn receive(&mut self, now: Instant, frame: &[u8]) -> Arrival {
        let arrival = match self.interface.receive(now, frame) {
            Received::Tcp(from, packet) => {
                self.segment(now, SocketAddrV4::new(from, packet.src_port()), &packet)
            }
            Received::Answered => Arrival {
                kind: ArrivalKind::Answered,
                ..Arrival::default()
            },
            Received::Ignored => Arrival::default(),
        };
        self.plan(now);
        arrival
    }

    fn segment(&mut self, now: Instant, from: SocketAddrV4, packet: &TcpPacket<&[u8]>) -> Arrival {
        let port = packet.dst_port();
        let mut sockets = self.sockets.iter_mut();
        let Some(socket) = sockets.find(|socket| socket.owns(from, port)) else {
            if let Some(refusal) = refusal(packet) {
                self.interface.send(now, *from.ip(), &refusal, 0);
            }
            return Arrival {
                kind: ArrivalKind::Answered,
                ..Arrival::default()
            };
        };
        let delivery = socket.receive(now, packet);
        if delivery.change == Some(Change::Reset) {
            socket.abort(now, &mut self.interface);
        }
        let kind = if delivery.payload.is_empty() && delivery.change.is_none() {
            ArrivalKind::Acknowledgement
        } else {
            ArrivalKind::Segment
        };
        Arrival {
            kind,
            payload: delivery.payload.to_vec(),
            // The agent ignores the fate of a connection that was given up, but not that it is established.
            change: delivery
                .change
                .filter(|change| *change == Change::Established || self.current == Some(port)),
        }
    }

    /// Lets all connections send what they may.
    pub(crate) fn transmit(&mut self, now: Instant) {
        for socket in &mut self.sockets {
            socket.transmit(now, &mut self.interface);
        }
        self.plan(now);
    }

    /// Does what is due by time: repetitions, delayed acknowledgements, questions for addresses. Returns if the current
    /// connection has come to its end by that.
    pub(crate) fn run_timers(&mut self, now: Instant) -> Option<Change> {
        self.interface.poll(now);
        let mut change = None;
        for socket in &mut self.sockets {
            if socket.due_at().is_some_and(|at| at <= now) {
                let own = socket.run_timers(now, &mut self.interface);
                if self.current == Some(socket.local_port()) {
                    change = own;
                }
            }
        }
        self.transmit(now);
        change
    }

    /// Returns when [`run_timers`](Self::run_timers) has next something to do.
    pub(crate) const fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// Returns, once, the payload of a truncated frame's segment on any connection, and the part of it that was sent.
    pub(crate) fn take_truncation(&mut self) -> Option<(u16, u16)> {
        let mut sockets = self.sockets.iter_mut();
        sockets.find_map(|socket| socket.queue.take_truncation())
    }

    /// Returns whether anything was acknowledged on any connection since this was asked last.
    pub(crate) fn take_acknowledged(&mut self) -> bool {
        let mut any = false;
        for socket in &mut self.sockets {
            any |= socket.queue.take_acknowledged();
        }
        any
    }

    /// Bytes that the send buffer of the current connection has free.
    pub(crate) fn free_bytes(&self) -> usize {
        self.current().map_or(0, |socket| socket.queue.free_bytes())
    }

    /// Returns the next frame to send.
    pub(crate) fn take_frame(&mut self) -> Option<Vec<u8>> {
        self.interface.take_frame()
    }

    fn plan(&mut self, now: Instant) {
        let sockets = self.sockets.iter().filter_map(Socket::due_at);
        self.due_at = sockets.chain(self.interface.poll_at(now)).min();
    }

    fn current(&self) -> Option<&Socket> {
        let port = self.current?;
        let mut sockets = self.sockets.iter();
        sockets.find(|socket| socket.local_port() == port)
    }

    fn current_mut(&mut self) -> Option<&mut Socket> {
        let port = self.current?;
        let mut sockets = self.sockets.iter_mut();
        sockets.find(|socket| socket.local_port() == port)
    }
}
