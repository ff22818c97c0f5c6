//! The agent's TCP session: kept by the board's own IP stack, or by whoever drives the board.

use std::collections::VecDeque;

use super::connection::Connection;
use crate::config::{Config, Control};
use crate::event::Event;
use crate::native::{Buffer, Full, Native, SendQueue};
use crate::outbox::{Outbox, OutputKind};
use crate::time::{Duration, Instant};

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
        let faithful = config.quirks.has(14);
        match config.control {
            Control::Session => Self::Driven(DrivenSession::new(
                faithful,
                Duration::from_nanos(config.acknowledgement_ns),
            )),
            Control::Network => Self::Native(Box::new(Native::new(config, faithful, seed))),
        }
    }

    /// Whether the session that messages are written to is established.
    pub(super) fn is_established(&self, connection: &Connection) -> bool {
        match self {
            Self::Driven(_) => connection.is_up(),
            Self::Native(native) => native.is_established(),
        }
    }

    /// A session begins or has ended: of the driver's nothing is left. The board's own connections know by themselves.
    pub(super) fn restart(&mut self) {
        if let Self::Driven(session) = self {
            *session = DrivenSession::new(session.faithful, session.acknowledgement_delay);
        }
    }

    /// Begins a connection.
    pub(super) fn connect(&mut self, now: Instant, out: &mut Outbox) {
        match self {
            Self::Driven(_) => out.push(now, OutputKind::Connect),
            Self::Native(native) => native.connect(now),
        }
        self.transmit(now, out);
    }

    /// Closes the connection.
    pub(super) fn close(&mut self, now: Instant, out: &mut Outbox) {
        match self {
            Self::Driven(_) => out.push(now, OutputKind::Close),
            Self::Native(native) => native.close(now),
        }
        self.transmit(now, out);
    }

    /// Queues a message; it leaves with the next [`transmit`](Self::transmit).
    pub(super) fn write(
        &mut self,
        now: Instant,
        buffer: Buffer,
        message: Vec<u8>,
        out: &mut Outbox,
    ) {
        let message_type = message[1];
        let (result, wedged) = match self {
            Self::Driven(session) => (session.write(buffer, message), session.queue.is_wedged()),
            Self::Native(native) => match native.queue() {
                Some(queue) => (queue.write(buffer, &message), queue.is_wedged()),
                None => return,
            },
        };
        if result == Err(Full { is_first: true }) {
            out.event(
                now,
                Event::SendBufferFull {
                    message_type,
                    wedged,
                },
            );
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

    /// When the stack has something to do although nothing comes.
    pub(super) fn due_at(&self) -> Option<Instant> {
        match self {
            Self::Driven(session) => session.acknowledgement_at(),
            Self::Native(native) => native.due_at(),
        }
    }
}

/// A TCP segment of the driver's session that waits for its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct InFlight {
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
    in_flight: VecDeque<InFlight>,
    /// A segment without a reply has come since the last acknowledgement was sent.
    acknowledgement_owed: bool,
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
        }
    }

    fn write(&mut self, buffer: Buffer, message: Vec<u8>) -> Result<(), Full> {
        if self.faithful {
            self.queue.write(buffer, &message)?;
        }
        self.messages.push_back((self.queue.written(), message));
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
            let wedged = self.queue.is_wedged();
            while self.messages.front().is_some_and(|(at, _)| *at <= end) {
                let message = self.messages.pop_front();
                if let Some((_, message)) = message.filter(|_| !wedged) {
                    out.controller(departed, message);
                }
            }
            self.in_flight.push_back(InFlight {
                end,
                departed,
                acknowledged: if wedged {
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

    fn acknowledge(&mut self, come: impl Fn(&InFlight) -> bool) {
        let acknowledged = self.in_flight.iter().take_while(|segment| come(segment));
        let (count, position) = acknowledged.fold((0, 0), |(n, _), last| (n + 1, last.end));
        if count > 0 {
            self.in_flight.drain(..count);
            self.queue.acknowledge(position);
        }
    }
}
