//! The sending side of the TCP connection, as far as it decides what reaches the controller.
//!
//! The firmware's link driver sends only the first buffer of a TCP segment (quirks 14 and 15). A reply that is
//! appended to a segment whose last buffer has no room left makes a second buffer: the receiver discards the
//! truncated frame, and nothing behind it arrives any more. Which buffers have room, how much waits at most and how
//! much may be on the way is what the IP stack of the board does (TCP of lwIP 1.4.1).

use std::collections::VecDeque;

use crate::event::Event;
use crate::outbox::Outbox;
use crate::time::{Duration, Instant};

/// Longest payload of a TCP segment, both ways.
const MSS: usize = 536;
/// Bytes that wait for acknowledgement at most.
const SEND_BUFFER_BYTES: usize = 3_216;
/// Buffers that wait for acknowledgement at most.
const SEND_BUFFERS: usize = 24;
/// Congestion window from which it grows slowly.
const SLOW_GROWTH_BYTES: usize = 10 * MSS;
/// Congestion window of a new connection.
const FIRST_WINDOW_BYTES: usize = 2 * MSS;

/// What memory a message gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffer {
    /// A whole segment's, so that later messages find room behind it.
    Roomy,
    /// Its exact size.
    Exact,
}

/// A TCP segment that has not been sent.
#[derive(Clone, Copy, Debug)]
struct Segment {
    bytes: usize,
    /// Bytes in its first buffer: all that the link driver sends.
    first_bytes: usize,
    buffers: usize,
    /// What its last buffer has free.
    room: usize,
}

/// A TCP segment that waits for its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    bytes: usize,
    buffers: usize,
    departed: Instant,
    /// When the acknowledgement comes if no data carries it before.
    acknowledged: Instant,
}

/// The sending side of one TCP connection.
#[derive(Debug)]
pub(super) struct Transmitter {
    /// Whether messages are lost as on the board. Otherwise everything arrives.
    faithful: bool,
    acknowledgement_delay: Duration,
    /// Messages that have not been sent completely, with the position of their end in the stream.
    messages: VecDeque<(usize, Vec<u8>)>,
    written: usize,
    sent: usize,
    unsent: VecDeque<Segment>,
    in_flight: VecDeque<InFlight>,
    window: usize,
    /// A truncated frame has been sent: nothing reaches the controller any more.
    wedged: bool,
    /// A lost message has been reported since there was room last.
    reported: bool,
}

impl Transmitter {
    pub(super) fn new(faithful: bool, acknowledgement_delay: Duration) -> Self {
        Self {
            faithful,
            acknowledgement_delay,
            messages: VecDeque::new(),
            written: 0,
            sent: 0,
            unsent: VecDeque::new(),
            in_flight: VecDeque::new(),
            window: FIRST_WINDOW_BYTES,
            wedged: false,
            reported: false,
        }
    }

    /// A new connection: nothing of the old one is left.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.faithful, self.acknowledgement_delay);
    }

    /// Whether something waits to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        !self.messages.is_empty() && (!self.faithful || !self.unsent.is_empty())
    }

    /// Puts a message into the send buffer; lost if that is full (quirk 70).
    pub(super) fn write(
        &mut self,
        now: Instant,
        buffer: Buffer,
        message: Vec<u8>,
        out: &mut Outbox,
    ) {
        if self.faithful && !self.reserve(buffer, message.len()) {
            if !self.reported {
                self.reported = true;
                out.event(
                    now,
                    Event::SendBufferFull {
                        message_type: message[1],
                        wedged: self.wedged,
                    },
                );
            }
            return;
        }
        self.written += message.len();
        self.messages.push_back((self.written, message));
    }

    /// Lays a message of `bytes` into segments; `false` if there is no room.
    fn reserve(&mut self, buffer: Buffer, bytes: usize) -> bool {
        let roomy = buffer == Buffer::Roomy;
        let (waiting_bytes, waiting_buffers) = self.waiting();
        let room = self.unsent.back().map_or(0, |last| last.room);
        let space = self.unsent.back().map_or(0, |last| MSS - last.bytes);
        let chained = usize::from(bytes > room && space > room);
        let new_buffers = chained + bytes.saturating_sub(space).div_ceil(MSS);
        if waiting_bytes + bytes > SEND_BUFFER_BYTES
            || waiting_buffers >= SEND_BUFFERS
            || waiting_buffers + new_buffers > SEND_BUFFERS
        {
            return false;
        }
        let mut left = bytes;
        if let Some(last) = self.unsent.back_mut() {
            let within = left.min(last.room);
            last.bytes += within;
            last.room -= within;
            if last.buffers == 1 {
                last.first_bytes += within;
            }
            left -= within;
            let space = MSS - last.bytes;
            let appended = left.min(space);
            if appended > 0 {
                last.bytes += appended;
                last.buffers += 1;
                last.room = if roomy { space - appended } else { 0 };
                left -= appended;
            }
        }
        while left > 0 {
            let bytes = left.min(MSS);
            let room = if roomy { MSS - bytes } else { 0 };
            self.unsent.push_back(Segment {
                bytes,
                first_bytes: bytes,
                buffers: 1,
                room,
            });
            left -= bytes;
        }
        true
    }

    /// Bytes and buffers that wait, sent or not.
    fn waiting(&self) -> (usize, usize) {
        let flying = self
            .in_flight
            .iter()
            .map(|segment| (segment.bytes, segment.buffers));
        self.unsent
            .iter()
            .map(|segment| (segment.bytes, segment.buffers))
            .chain(flying)
            .fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
    }

    /// Sends what the window allows, at `now`.
    pub(super) fn transmit(&mut self, now: Instant, out: &mut Outbox) {
        if !self.faithful {
            while let Some((_, message)) = self.messages.pop_front() {
                let departed = out.control_frame(now, message.len());
                out.controller(departed, message);
            }
            return;
        }
        while let Some(segment) = self.unsent.front().copied() {
            let flying: usize = self.in_flight.iter().map(|segment| segment.bytes).sum();
            if flying + segment.bytes > self.window {
                return;
            }
            self.unsent.pop_front();
            self.sent += segment.bytes;
            let departed = out.control_frame(now, segment.first_bytes);
            if segment.buffers > 1 {
                if !self.wedged {
                    self.wedged = true;
                }
                out.event(
                    departed,
                    Event::ReplyTruncated {
                        segment_bytes: segment.bytes as u16,
                        sent_bytes: segment.first_bytes as u16,
                    },
                );
            }
            while self
                .messages
                .front()
                .is_some_and(|(end, _)| *end <= self.sent)
            {
                let Some((_, message)) = self.messages.pop_front() else {
                    return;
                };
                if !self.wedged {
                    out.controller(departed, message);
                }
            }
            let acknowledged = if self.wedged {
                Instant::NEVER
            } else {
                departed + self.acknowledgement_delay
            };
            self.in_flight.push_back(InFlight {
                bytes: segment.bytes,
                buffers: segment.buffers,
                departed,
                acknowledged,
            });
        }
    }

    /// When the next acknowledgement without data comes.
    pub(super) fn acknowledgement_at(&self) -> Option<Instant> {
        self.in_flight
            .front()
            .map(|segment| segment.acknowledged)
            .filter(|at| *at != Instant::NEVER)
    }

    /// Acknowledgements without data have come until `now`.
    pub(super) fn acknowledged_until(&mut self, now: Instant) {
        self.acknowledge(|segment| segment.acknowledged <= now);
    }

    /// Data from the controller arrived at `at`: it acknowledges what had left before.
    pub(super) fn acknowledged_by_data(&mut self, at: Instant) {
        self.acknowledge(|segment| segment.acknowledged != Instant::NEVER && segment.departed < at);
    }

    fn acknowledge(&mut self, come: impl Fn(&InFlight) -> bool) {
        let count = self
            .in_flight
            .iter()
            .take_while(|segment| come(segment))
            .count();
        if count == 0 {
            return;
        }
        self.in_flight.drain(..count);
        self.reported = false;
        self.window += if self.window < SLOW_GROWTH_BYTES {
            MSS
        } else {
            MSS * MSS / self.window
        };
    }
}
