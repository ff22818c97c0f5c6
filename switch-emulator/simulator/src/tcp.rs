//! TCP in virtual time: a bulk transfer with its sender and receiver.
//!
//! Both ends follow the RFCs as a usual Linux does: congestion control by CUBIC (RFC 9438, with `HyStart`) or Reno (RFC 5681),
//! selective acknowledgements (RFC 2018), losses found by RACK with a tail loss probe (RFC 8985), the window reduced in proportion
//! (RFC 6937), the timer of RFC 6298 with a least timeout of 200 ms, delayed acknowledgements. A connection is there from the
//! beginning: no handshake, no end. Every segment but an acknowledgement is full, so that all is counted in segments. Frames are
//! real ones, with real headers; their checksums are left out, since nobody here looks at them.
//!
//! A [`TcpConnection`] has no clock and no line: the event loop hands it segments and instants.
//!
//! | module | what it is |
//! |---|---|
//! | `sender` | what is sent when, and what counts as lost |
//! | `congestion` | how the window grows and shrinks |
//! | `receiver` | what is acknowledged when |
//! | `packets` | segments as frames |

use std::collections::VecDeque;

use serde::Deserialize;

use crate::error::Error;
use crate::flow::{FlowCounters, LOST};
use crate::link::size_on_wire;

mod congestion;
mod packets;
mod receiver;
mod sender;

use packets::{Packets, TransferPacket};
use receiver::Receiver;
use sender::Sender;

/// How often the window is recorded at most.
const WINDOW_EVERY_NS: u64 = 1_000_000;

/// How a sender of TCP chooses its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// RFC 9438, with `HyStart`: the default of Linux.
    Cubic,
    /// RFC 5681.
    Reno,
}

/// A bulk transfer over TCP.
#[derive(Debug, Clone)]
pub struct TcpConfig {
    /// The flow's identifier, unique in the network.
    pub flow: u32,
    /// A full segment without frame check sequence: Ethernet, IPv4 and TCP without options, and as much payload as makes the
    /// frame as long as those that are sent. Time stamps take 12 bytes of that.
    pub frame: Vec<u8>,
    /// How the window is chosen.
    pub control: CongestionControl,
    /// Most that may be under way, in bytes of payload: the receiver's window, or the sender's buffer.
    pub window_bytes: u64,
    /// When it begins, after the beginning of the run.
    pub start_ns: u64,
    /// Whether the result has a row for each segment.
    pub observed: bool,
    /// The host that receives.
    pub destination: String,
}

/// Results of a connection. Instants are nanoseconds since the beginning of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpResult {
    /// The flow's identifier.
    pub flow: u32,
    /// Payload of a full segment.
    pub segment_bytes: u64,
    /// Payload that the receiver has, without gaps.
    pub delivered_bytes: u64,
    /// Segments that were sent again, and when.
    pub retransmitted_ns: Vec<i64>,
    /// How often the retransmission timer expired.
    pub timeouts: u64,
    /// When the window was as in `window_segments`; at most once in a millisecond.
    pub window_at_ns: Vec<i64>,
    /// The congestion window in segments.
    pub window_segments: Vec<u64>,
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct TcpConnection {
    pub(crate) id: u32,
    pub(crate) observed: bool,
    /// Hosts of sender and receiver.
    pub(crate) hosts: [usize; 2],
    pub(crate) start_ns: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) counters: FlowCounters,
    pub(crate) sent_ns: Vec<i64>,
    pub(crate) received_ns: Vec<i64>,
    pub(crate) result: TcpResult,
    packets: Packets,
    sender: Sender,
    receiver: Receiver,
    /// Frames in flight to either side, with the instant of complete arrival.
    inboxes: [VecDeque<(u64, TransferPacket)>; 2],
    begin_ns: u64,
    began: bool,
}

impl TcpConnection {
    pub(crate) fn new(config: &TcpConfig, hosts: [usize; 2]) -> Result<Self, Error> {
        let refuse = |reason| Error::Source {
            flow: config.flow,
            reason,
        };
        let packets = Packets::of(&config.frame).map_err(refuse)?;
        let segment_bytes = packets.segment_bytes();
        let window = config.window_bytes / segment_bytes;
        if !(2..=1 << 20).contains(&window) {
            return Err(refuse(format!(
                "window_bytes {}: give 2 to 1048576 segments of {segment_bytes} bytes",
                config.window_bytes
            )));
        }
        Ok(Self {
            id: config.flow,
            observed: config.observed,
            hosts,
            start_ns: config.start_ns,
            frame_bytes: size_on_wire(config.frame.len()),
            counters: FlowCounters::default(),
            sent_ns: Vec::new(),
            received_ns: Vec::new(),
            result: TcpResult {
                flow: config.flow,
                segment_bytes,
                ..TcpResult::default()
            },
            sender: Sender::new(congestion::control(config.control), window),
            receiver: Receiver::default(),
            packets,
            inboxes: [VecDeque::new(), VecDeque::new()],
            begin_ns: 0,
            began: false,
        })
    }

    /// The run begins at `begin_ns`; nothing is sent from `stop_ns` on.
    pub(crate) fn start(&mut self, begin_ns: u64, stop_ns: u64) {
        self.begin_ns = begin_ns;
        self.sender.start(begin_ns + self.start_ns, stop_ns);
        self.began = true;
    }

    /// The beginning of a frame passes the tap at `side` at `begin_ns`; all of it is there at `end_ns`. False if it is none of
    /// this connection's.
    pub(crate) fn deliver(&mut self, side: Side, begin_ns: u64, end_ns: u64, data: &[u8]) -> bool {
        let near = match side {
            Side::Sender => self.sender.next(),
            Side::Receiver => self.receiver.next(),
        };
        let Some(packet) = self.packets.parse(side == Side::Receiver, near, data) else {
            return false;
        };
        if let TransferPacket::Data { number, .. } = packet {
            self.record(number, self.since_begin_ns(begin_ns));
        }
        self.inboxes[side as usize].push_back((end_ns, packet));
        true
    }

    /// A segment's frame passes the receiver's tap.
    fn record(&mut self, number: u32, at_ns: i64) {
        self.counters.received += 1;
        let place = number as usize;
        let sent_ns = self.sent_ns[place];
        self.received_ns[place] = at_ns;
        let delay_ns = (at_ns - sent_ns).unsigned_abs();
        self.counters.max_delay_ns = self.counters.max_delay_ns.max(delay_ns);
    }

    /// Does the work that is due at `side`. Returns the frame that leaves, if there is one and the line `is_free`.
    pub(crate) fn work(
        &mut self,
        side: Side,
        now_ns: u64,
        is_free: bool,
        buffer_pool: &mut Vec<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let inbox = &mut self.inboxes[side as usize];
        while inbox.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            match inbox.pop_front() {
                Some((_, TransferPacket::Data { index, .. })) => {
                    self.receiver.receive(now_ns, index);
                }
                Some((_, TransferPacket::Ack(ack))) => self.sender.acknowledge(now_ns, &ack),
                None => {}
            }
        }
        match side {
            Side::Sender => {
                self.sender.expire(now_ns);
                let sent = if is_free {
                    self.sender.transmit(now_ns)
                } else {
                    None
                };
                self.record_window(now_ns);
                let (index, again) = sent?;
                let at_ns = self.since_begin_ns(now_ns);
                let number = self.counters.sent as u32;
                self.counters.sent += 1;
                self.counters.offered += 1;
                self.sent_ns.push(at_ns);
                self.received_ns.push(LOST);
                if again {
                    self.result.retransmitted_ns.push(at_ns);
                }
                let buffer = buffer_pool.pop().unwrap_or_default();
                Some(self.packets.data(index, number, now_ns, buffer))
            }
            Side::Receiver => {
                self.receiver.expire(now_ns);
                let ack = if is_free { self.receiver.take() } else { None }?;
                let buffer = buffer_pool.pop().unwrap_or_default();
                Some(self.packets.ack(&ack, now_ns, buffer))
            }
        }
    }

    fn record_window(&mut self, now_ns: u64) {
        let window = self.sender.window();
        let at_ns = self.since_begin_ns(now_ns);
        let last = (self.result.window_at_ns.last()).zip(self.result.window_segments.last());
        let is_new = last.is_none_or(|(last_ns, last)| {
            *last != window && at_ns.abs_diff(*last_ns) >= WINDOW_EVERY_NS
        });
        if is_new && self.began {
            self.result.window_at_ns.push(at_ns);
            self.result.window_segments.push(window);
        }
    }

    /// Returns when [`work`](Self::work) has next something to do at `side`, whose line is busy until `busy_until_ns`.
    pub(crate) fn wake_ns(&self, side: Side, now_ns: u64, busy_until_ns: u64) -> Option<u64> {
        let (timer, wants_to_send) = match side {
            Side::Sender => (self.sender.wake_ns(), self.sender.may_send(now_ns)),
            Side::Receiver => (self.receiver.wake_ns(), self.receiver.may_send()),
        };
        let arrival = self.inboxes[side as usize].front().map(|(at_ns, _)| *at_ns);
        let send = wants_to_send.then_some(busy_until_ns);
        let next = timer.into_iter().chain(arrival).chain(send).min()?;
        Some(next.max(now_ns))
    }

    /// Returns the results.
    pub(crate) fn finish(&mut self) -> TcpResult {
        self.result.timeouts = self.sender.timeouts();
        self.result.delivered_bytes = self.receiver.next() * self.result.segment_bytes;
        std::mem::take(&mut self.result)
    }

    #[allow(clippy::cast_possible_wrap)] // instants stay below 2^62
    fn since_begin_ns(&self, at_ns: u64) -> i64 {
        at_ns as i64 - self.begin_ns as i64
    }
}

#[cfg(test)]
mod tests;
