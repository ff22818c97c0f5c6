//! One TCP connection to the controller, as the board's IP stack (lwIP 1.4.1) keeps it.

use std::net::SocketAddrV4;

use smoltcp::wire::{TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

use super::interface::Interface;
use super::round_trip::RoundTrip;
use super::send_queue::{SendQueue, MSS};
use crate::time::{Duration, Instant};

/// Receive window: what arrives is read at once, so that it never shrinks.
pub(super) const WINDOW_BYTES: u16 = 2_144;
/// Repetitions of a SYN, always after the same time.
const SYN_REPETITIONS: u8 = 6;
/// Repetitions of anything else.
const REPETITIONS: u8 = 12;
/// Acknowledgements of the same byte that show a loss.
const DUPLICATES: u8 = 3;
/// How long a half of a connection waits that the board has closed.
const FIN_WAIT: Duration = Duration::from_millis(20_000);
const TIME_WAIT: Duration = Duration::from_millis(120_000);

/// State of the connection, by the names of RFC 793. The board never answers the end of the peer's half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketState {
    SynSent,
    Established,
    CloseWait,
    FinWait1,
    FinWait2,
    Closing,
    TimeWait,
    /// Nothing is left of it.
    Closed,
}

/// Whether the peer has to be told what has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledge {
    Nothing,
    /// With the next segment, or when the timers run.
    Later(Instant),
    Now,
}

/// Meaning of a segment for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The connection is established.
    Established,
    /// The peer has ended its half.
    Finished,
    /// The connection is gone.
    Reset,
}

/// Data delivered by a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delivery<'a> {
    pub(super) payload: &'a [u8],
    pub(super) change: Option<Change>,
}

/// One TCP connection.
#[derive(Debug)]
pub(super) struct Socket {
    local_port: u16,
    peer: SocketAddrV4,
    pub(super) state: SocketState,
    pub(super) queue: SendQueue,
    /// Sequence number of the SYN; position 0 of the stream follows it.
    initial: TcpSeqNumber,
    /// Position in the stream up to which the peer has everything, and up to which it was sent.
    acknowledged: usize,
    sent: usize,
    peer_window: usize,
    /// Sequence number that comes next.
    expected: TcpSeqNumber,
    acknowledge: Acknowledge,
    round_trip: RoundTrip,
    duplicates: u8,
    /// When the oldest segment is sent again, or the connection is forgotten.
    deadline: Option<Instant>,
}

impl Socket {
    /// A connection that has yet to send its SYN.
    pub(super) const fn new(
        local_port: u16,
        peer: SocketAddrV4,
        initial: TcpSeqNumber,
        faithful: bool,
    ) -> Self {
        Self {
            local_port,
            peer,
            state: SocketState::SynSent,
            queue: SendQueue::new(faithful),
            initial,
            acknowledged: 0,
            sent: 0,
            peer_window: 0,
            expected: TcpSeqNumber(0),
            acknowledge: Acknowledge::Nothing,
            round_trip: RoundTrip::new(),
            duplicates: 0,
            deadline: None,
        }
    }

    pub(super) const fn local_port(&self) -> u16 {
        self.local_port
    }

    /// Returns whether segments between these two ends are its own.
    pub(super) fn owns(&self, peer: SocketAddrV4, local_port: u16) -> bool {
        self.peer == peer && self.local_port == local_port && self.state != SocketState::Closed
    }

    /// Returns whether messages can be written to it: before, while and after the peer listens.
    pub(super) const fn accepts_messages(&self) -> bool {
        matches!(
            self.state,
            SocketState::SynSent | SocketState::Established | SocketState::CloseWait
        )
    }

    /// Sends the SYN.
    pub(super) fn connect(&mut self, now: Instant, interface: &mut Interface) {
        let syn = TcpRepr {
            control: TcpControl::Syn,
            ack_number: None,
            max_seg_size: Some(MSS as u16),
            ..self.segment(self.initial)
        };
        interface.send(now, *self.peer.ip(), &syn, 0);
        self.deadline = Some(now + self.round_trip.timeout());
    }

    /// Ends the board's half: what was written and then the end are sent.
    pub(super) fn close(&mut self) {
        match self.state {
            SocketState::Established => {
                self.queue.finish();
                self.state = SocketState::FinWait1;
            }
            SocketState::SynSent => self.forget(),
            _ => {}
        }
    }

    /// Ends the connection at once.
    pub(super) fn abort(&mut self, now: Instant, interface: &mut Interface) {
        if !matches!(self.state, SocketState::SynSent | SocketState::Closed) {
            let reset = TcpRepr {
                control: TcpControl::Rst,
                ..self.segment(self.sequence(self.sent))
            };
            interface.send(now, *self.peer.ip(), &reset, 0);
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.state = SocketState::Closed;
        self.deadline = None;
        self.acknowledge = Acknowledge::Nothing;
    }

    /// Handles a segment of the peer.
    pub(super) fn receive<'a>(
        &mut self,
        now: Instant,
        packet: &TcpPacket<&'a [u8]>,
    ) -> Delivery<'a> {
        if self.state == SocketState::SynSent {
            return self.receive_handshake(now, packet);
        }
        let change = |change| Delivery {
            payload: &[],
            change: Some(change),
        };
        let begin = packet.seq_number();
        if packet.rst() {
            let in_window =
                begin >= self.expected && begin < self.expected + usize::from(WINDOW_BYTES);
            if !in_window {
                return Delivery::default();
            }
            self.forget();
            return change(Change::Reset);
        }
        if packet.syn() {
            self.acknowledge = Acknowledge::Now;
            return Delivery::default();
        }
        if packet.ack() {
            self.receive_acknowledgement(now, packet);
        }
        if !packet.payload().is_empty() || packet.fin() {
            return self.receive_data(now, packet);
        }
        Delivery::default()
    }

    fn receive_handshake<'a>(
        &mut self,
        now: Instant,
        packet: &TcpPacket<&'a [u8]>,
    ) -> Delivery<'a> {
        let ours = packet.ack() && packet.ack_number() == self.initial + 1;
        if packet.rst() {
            if ours {
                self.forget();
            }
        } else if packet.syn() && ours {
            self.state = SocketState::Established;
            self.expected = packet.seq_number() + 1;
            self.peer_window = packet.window_len().into();
            self.acknowledge = Acknowledge::Now;
            self.round_trip.acknowledged(now, 0);
            self.deadline = None;
            return Delivery {
                payload: &[],
                change: Some(Change::Established),
            };
        }
        Delivery::default()
    }

    fn receive_acknowledgement(&mut self, now: Instant, packet: &TcpPacket<&[u8]>) {
        let first = self.sequence(0);
        let number = packet.ack_number();
        if number < first || number > self.sequence(self.sent) {
            return;
        }
        let position = number - first;
        let window = usize::from(packet.window_len());
        if position > self.acknowledged {
            self.acknowledged = position;
            self.duplicates = 0;
            if self.queue.acknowledge(position) {
                self.round_trip.acknowledged(now, position);
            }
            let waits = self.queue.has_in_flight();
            self.deadline = waits.then(|| now + self.round_trip.timeout());
            if position == self.queue.written() {
                self.end_acknowledged(now);
            }
        } else if position == self.acknowledged
            && packet.payload().is_empty()
            && window == self.peer_window
            && self.queue.has_in_flight()
        {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        self.peer_window = window;
    }

    /// Everything that was written has arrived, the end included if it was written.
    fn end_acknowledged(&mut self, now: Instant) {
        match self.state {
            SocketState::FinWait1 => {
                self.state = SocketState::FinWait2;
                self.deadline = Some(now + FIN_WAIT);
            }
            SocketState::Closing => self.wait_for_strays(now),
            _ => {}
        }
    }

    fn wait_for_strays(&mut self, now: Instant) {
        self.state = SocketState::TimeWait;
        self.deadline = Some(now + TIME_WAIT);
    }

    fn receive_data<'a>(&mut self, now: Instant, packet: &TcpPacket<&'a [u8]>) -> Delivery<'a> {
        let begin = packet.seq_number();
        let payload = packet.payload();
        let end = begin + payload.len() + usize::from(packet.fin());
        let limit = self.expected + usize::from(WINDOW_BYTES);
        if begin > self.expected || end <= self.expected || end > limit {
            // Lost, repeated or too much: the peer learns what is expected.
            self.acknowledge = Acknowledge::Now;
            return Delivery::default();
        }
        let fresh = &payload[(self.expected - begin).min(payload.len())..];
        if !fresh.is_empty() && !matches!(self.state, SocketState::Established) {
            // The board has closed its half and reads no more.
            return Delivery {
                payload: &[],
                change: Some(Change::Reset),
            };
        }
        self.expected = end;
        self.acknowledge = match self.acknowledge {
            Acknowledge::Nothing if !packet.fin() => Acknowledge::Later(now),
            _ => Acknowledge::Now,
        };
        let change = packet.fin().then(|| self.peer_finished(now));
        Delivery {
            payload: fresh,
            change,
        }
    }

    /// The peer has ended its half. The agent hears of it also if the board has ended its own before.
    fn peer_finished(&mut self, now: Instant) -> Change {
        match self.state {
            SocketState::Established => self.state = SocketState::CloseWait,
            SocketState::FinWait1 => self.state = SocketState::Closing,
            SocketState::FinWait2 => self.wait_for_strays(now),
            _ => {}
        }
        Change::Finished
    }

    /// Sends what the windows allow, and an acknowledgement if one is due that nothing else carries.
    pub(super) fn transmit(&mut self, now: Instant, interface: &mut Interface) {
        if matches!(self.state, SocketState::SynSent | SocketState::Closed) {
            return;
        }
        if self.duplicates == DUPLICATES {
            self.duplicates = 0;
            self.queue.lose_oldest(self.peer_window);
            self.repeat_oldest(now, interface);
        }
        while let Some(segment) = self.queue.next(self.peer_window) {
            let (begin, end) = (segment.begin, segment.end());
            if end > self.sent {
                self.round_trip.sent(now, end);
            }
            let number = self.initial + 1 + begin;
            let repr = TcpRepr {
                control: if segment.is_last {
                    TcpControl::Fin
                } else {
                    TcpControl::Psh
                },
                payload: &segment.payload,
                ..header(self.local_port, self.peer, number, self.expected)
            };
            interface.send(now, *self.peer.ip(), &repr, segment.first_bytes);
            self.sent = self.sent.max(end);
            self.acknowledge = Acknowledge::Nothing;
            self.deadline.get_or_insert(now + self.round_trip.timeout());
        }
        if self.acknowledge == Acknowledge::Now {
            self.acknowledge = Acknowledge::Nothing;
            let empty = self.segment(self.sequence(self.sent));
            interface.send(now, *self.peer.ip(), &empty, 0);
        }
    }

    fn repeat_oldest(&mut self, now: Instant, interface: &mut Interface) {
        let Some(segment) = self.queue.oldest() else {
            return;
        };
        let repr = TcpRepr {
            control: TcpControl::Psh,
            payload: &segment.payload,
            ..self.segment(self.sequence(segment.begin))
        };
        interface.send(now, *self.peer.ip(), &repr, segment.first_bytes);
    }

    /// Returns when [`run_timers`](Self::run_timers) has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let acknowledge = match self.acknowledge {
            Acknowledge::Later(since) => Some(since),
            _ => None,
        };
        self.deadline.into_iter().chain(acknowledge).min()
    }

    /// Sees to it that what was not acknowledged in time is sent again, and that an acknowledgement that waits is sent.
    pub(super) fn run_timers(&mut self, now: Instant, interface: &mut Interface) -> Option<Change> {
        if matches!(self.acknowledge, Acknowledge::Later(_)) {
            self.acknowledge = Acknowledge::Now;
        }
        if self.deadline.is_none_or(|at| at > now) {
            return None;
        }
        self.deadline = None;
        let limit = match self.state {
            SocketState::SynSent => SYN_REPETITIONS,
            SocketState::FinWait2 | SocketState::TimeWait => 0,
            _ => REPETITIONS,
        };
        if self.round_trip.repetitions() >= limit {
            let served = matches!(
                self.state,
                SocketState::Established | SocketState::CloseWait
            );
            self.forget();
            return served.then_some(Change::Reset);
        } else if self.state == SocketState::SynSent {
            self.round_trip.time_out_handshake();
            self.connect(now, interface);
        } else {
            self.round_trip.time_out();
            self.queue.time_out(self.peer_window);
            self.deadline = Some(now + self.round_trip.timeout());
        }
        None
    }

    /// Returns whether an acknowledgement is due at once.
    pub(super) fn owes_acknowledgement(&self) -> bool {
        self.acknowledge == Acknowledge::Now
    }

    fn sequence(&self, position: usize) -> TcpSeqNumber {
        self.initial + 1 + position
    }

    fn segment(&self, number: TcpSeqNumber) -> TcpRepr<'static> {
        header(self.local_port, self.peer, number, self.expected)
    }
}

fn header(
    local_port: u16,
    peer: SocketAddrV4,
    number: TcpSeqNumber,
    expected: TcpSeqNumber,
) -> TcpRepr<'static> {
    TcpRepr {
        src_port: local_port,
        dst_port: peer.port(),
        control: TcpControl::None,
        seq_number: number,
        ack_number: Some(expected),
        window_len: WINDOW_BYTES,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    }
}

/// Returns the answer to a segment that belongs to no connection.
pub(super) fn refusal(packet: &TcpPacket<&[u8]>) -> Option<TcpRepr<'static>> {
    if packet.rst() {
        return None;
    }
    let answered = TcpRepr {
        src_port: packet.dst_port(),
        dst_port: packet.src_port(),
        control: TcpControl::Rst,
        window_len: WINDOW_BYTES,
        ..header(
            0,
            SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0),
            packet.ack_number(),
            packet.seq_number() + packet.segment_len(),
        )
    };
    Some(answered)
}
