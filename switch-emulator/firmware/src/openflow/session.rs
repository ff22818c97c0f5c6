//! The agent's TCP session: kept by the board's own IP stack, or by whoever drives the board.

use std::collections::VecDeque;

use super::connection::Connection;
use crate::config::{Config, ControlCarrier};
use crate::event::Event;
use crate::native::{Full, MemoryClass, Native, Room, SendQueue};
use crate::outbox::{Outbox, OutputKind};
use crate::quirks::Quirk;
use crate::time::{Duration, Instant};
use openflow::bytes::be16;
use openflow::wire::HEADER_BYTES;

/// Where messages for the controller go.
#[derive(Debug)]
pub(super) enum Session {
    /// The driver has the TCP connection.
    Driven(DrivenSession),
    /// The board has it, on its native ports.
    Native(Box<Native>),
}

impl Session {
    /// `seed` draws what is random in the board's IP stack.
    pub(super) fn new(config: &Config, seed: u64) -> Self {
        let faithful = config.quirks.has(Quirk::TruncatedReplies);
        match config.control {
            ControlCarrier::Session => Self::Driven(DrivenSession::new(
                faithful,
                Duration::from_nanos(config.acknowledgement_ns),
            )),
            ControlCarrier::Network => Self::Native(Box::new(Native::new(config, faithful, seed))),
        }
    }

    /// Returns whether the session that messages are written to is established.
    pub(super) fn is_established(&self, connection: &Connection) -> bool {
        match self {
            Self::Driven(_) => connection.is_up(),
            Self::Native(native) => native.is_established(),
        }
    }

    /// A session begins or has ended: nothing is kept of one of the driver's. The board's own connections keep track of that
    /// themselves.
    pub(super) fn restart(&mut self) {
        if let Self::Driven(session) = self {
            *session = DrivenSession::new(session.faithful, session.acknowledgement_delay);
        }
    }

    /// The controller has ended its half of the driver's session.
    pub(super) fn finished(&mut self) {
        if let Self::Driven(session) = self {
            session.half_open = true;
        }
    }

    /// Returns whether messages are taken although no session is established. The board's own stack takes them also
    /// while a connection begins, and decides that itself.
    pub(super) fn is_half_open(&self) -> bool {
        match self {
            Self::Driven(session) => session.half_open,
            Self::Native(_) => true,
        }
    }

    /// Returns whether all messages are sent, however many wait for their acknowledgement.
    pub(super) const fn is_lossless(&self) -> bool {
        match self {
            Self::Driven(session) => !session.faithful,
            Self::Native(native) => native.is_lossless(),
        }
    }

    /// Begins a connection.
    pub(super) fn connect(&mut self, now: Instant, out: &mut Outbox) {
        match self {
            Self::Driven(_) => {
                self.restart();
                out.push(now, OutputKind::Connect);
            }
            Self::Native(native) => native.connect(now),
        }
        self.transmit(now, out);
    }

    /// Closes the connection.
    pub(super) fn close(&mut self, now: Instant, out: &mut Outbox) {
        match self {
            Self::Driven(_) => {
                // The FIN leaves after what was handed to the MAC before.
                let departed = out.control_frame(now, 0);
                out.push(departed, OutputKind::Close);
            }
            Self::Native(native) => native.close(now),
        }
        self.transmit(now, out);
    }

    /// Queues a message; it leaves with the next [`transmit`](Self::transmit).
    pub(super) fn write(
        &mut self,
        now: Instant,
        buffer: MemoryClass,
        message: Vec<u8>,
        out: &mut Outbox,
    ) {
        let message_type = message[1];
        let (result, stalled) = match self {
            Self::Driven(session) => (session.write(buffer, message), session.queue.is_stalled()),
            Self::Native(native) => match native.write(buffer, &message) {
                Some(written) => written,
                None => return,
            },
        };
        match result {
            Err(Full {
                what: Room::Heap,
                is_first: true,
            }) if !stalled => out.event(now, Event::ReplyHeapFull { message_type }),
            Err(Full { is_first: true, .. }) => out.event(
                now,
                Event::SendBufferFull {
                    message_type,
                    stalled,
                },
            ),
            _ => {}
        }
    }

    /// Returns whether the controller has acknowledged something since this was asked last.
    pub(super) fn take_acknowledged(&mut self) -> bool {
        match self {
            Self::Driven(session) => session.queue.take_acknowledged(),
            Self::Native(native) => native.take_acknowledged(),
        }
    }

    /// Bytes that the send buffer has free.
    pub(super) fn free_bytes(&self) -> usize {
        match self {
            Self::Driven(session) => session.queue.free_bytes(),
            Self::Native(native) => native.free_bytes(),
        }
    }

    /// Sends what may be sent, at `now`.
    pub(super) fn transmit(&mut self, now: Instant, out: &mut Outbox) {
        match self {
            Self::Driven(session) => session.transmit(now, out),
            Self::Native(native) => {
                native.transmit(now);
                if let Some((segment_bytes, sent_bytes)) = native.take_truncation() {
                    out.event(
                        now,
                        Event::ReplyTruncated {
                            segment_bytes,
                            sent_bytes,
                        },
                    );
                }
                while let Some(frame) = native.take_frame() {
                    out.send_native(now, frame);
                }
            }
        }
    }

    /// A segment has been handled; whether an acknowledgement has to leave that no reply carries.
    pub(super) fn acknowledges(&mut self) -> bool {
        match self {
            Self::Driven(session) => session.acknowledges(),
            Self::Native(native) => native.owes_acknowledgement(),
        }
    }

    /// Returns when the stack has something to do although nothing comes.
    pub(super) fn due_at(&self) -> Option<Instant> {
        match self {
            Self::Driven(session) => session.acknowledgement_at(),
            Self::Native(native) => native.due_at(),
        }
    }
}

/// A TCP segment of the driver's session that waits for its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct SegmentsInFlight {
    /// Position in the stream behind it.
    end: usize,
    departed: Instant,
    /// When the acknowledgement comes if no data carries it before.
    acknowledged: Instant,
}

/// A session that the driver keeps: of TCP the board knows what decides which messages reach the controller.
#[derive(Debug)]
pub(super) struct DrivenSession {
    /// Whether messages are lost as on the board. Otherwise everything arrives.
    faithful: bool,
    acknowledgement_delay: Duration,
    queue: SendQueue,
    /// Messages that have not been sent completely, with the position of their end in the stream.
    messages: VecDeque<(usize, Vec<u8>)>,
    in_flight: VecDeque<SegmentsInFlight>,
    /// A segment without a reply has come since the last acknowledgement was sent.
    acknowledgement_owed: bool,
    /// The controller has ended its half, the board has not.
    half_open: bool,
}

impl DrivenSession {
    const fn new(faithful: bool, acknowledgement_delay: Duration) -> Self {
        Self {
            faithful,
            acknowledgement_delay,
            queue: SendQueue::new(faithful),
            messages: VecDeque::new(),
            in_flight: VecDeque::new(),
            acknowledgement_owed: false,
            half_open: false,
        }
    }

    fn write(&mut self, buffer: MemoryClass, message: Vec<u8>) -> Result<(), Full> {
        if self.faithful {
            self.queue.write(buffer, &message, 0)?;
        }
        // Multipart replies are written together; each is a message for the controller.
        let mut end = self.queue.written().saturating_sub(message.len());
        for message in split(message) {
            end += message.len();
            self.messages.push_back((end, message));
        }
        Ok(())
    }

    fn transmit(&mut self, now: Instant, out: &mut Outbox) {
        if !self.faithful {
            while let Some((_, message)) = self.messages.pop_front() {
                let departed = out.control_frame(now, message.len());
                out.controller(departed, message);
            }
            return;
        }
        while let Some(segment) = self.queue.next(usize::MAX) {
            let departed = out.control_frame(now, segment.first_bytes);
            if segment.is_truncated() {
                out.event(
                    departed,
                    Event::ReplyTruncated {
                        segment_bytes: segment.payload.len() as u16,
                        sent_bytes: segment.first_bytes as u16,
                    },
                );
            }
            let end = segment.end();
            let stalled = self.queue.is_stalled();
            while self.messages.front().is_some_and(|(at, _)| *at <= end) {
                let message = self.messages.pop_front();
                if let Some((_, message)) = message.filter(|_| !stalled) {
                    out.controller(departed, message);
                }
            }
            self.in_flight.push_back(SegmentsInFlight {
                end,
                departed,
                acknowledged: if stalled {
                    Instant::NEVER
                } else {
                    departed + self.acknowledgement_delay
                },
            });
        }
    }

    fn acknowledges(&mut self) -> bool {
        let replies = self.queue.has_unsent() || !self.messages.is_empty();
        let now = !replies && self.acknowledgement_owed;
        self.acknowledgement_owed = !replies && !now;
        now
    }

    fn acknowledgement_at(&self) -> Option<Instant> {
        let oldest = self.in_flight.front().map(|segment| segment.acknowledged);
        oldest.filter(|at| *at != Instant::NEVER)
    }

    /// Acknowledgements without data have come until `now`.
    pub(super) fn acknowledged_until(&mut self, now: Instant) {
        self.acknowledge(|segment| segment.acknowledged <= now);
    }

    /// Data from the controller arrived at `at`: it acknowledges what had left before.
    pub(super) fn acknowledged_by_data(&mut self, at: Instant) {
        self.acknowledge(|segment| segment.acknowledged != Instant::NEVER && segment.departed < at);
    }

    fn acknowledge(&mut self, come: impl Fn(&SegmentsInFlight) -> bool) {
        let acknowledged = self.in_flight.iter().take_while(|segment| come(segment));
        let (count, position) = acknowledged.fold((0, 0), |(n, _), last| (n + 1, last.end));
        if count > 0 {
            self.in_flight.drain(..count);
            self.queue.acknowledge(position);
        }
    }
}

/// Returns the messages that lie behind each other in `bytes`, by the lengths in their headers; what is no message
/// stays in one piece.
fn split(mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    loop {
        let length = usize::from(be16(&bytes, 2));
        if length < HEADER_BYTES || length >= bytes.len() {
            messages.push(bytes);
            return messages;
        }
        let rest = bytes.split_off(length);
        messages.push(bytes);
        bytes = rest;
    }
}
