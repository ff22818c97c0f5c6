//! Messages of the controller: from segments to the dataplane of the version that is spoken.
//!
//! A message that is lost or changed is reported by one event, whatever the firmware says to the controller. Each message
//! is carried out, refused, or has a cause. The cause is read off the message and the tables before the message is
//! carried out, and is reported only if the message has caused no other event. A board that lacks some of the
//! firmware's deviations has no causes that belong to them.

use super::agent::Agent;
use super::context::AgentContext;
use crate::event::{Cause, Event};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::quirks::Quirk;
use crate::time::Duration;
use openflow::bytes::be16;
use openflow::message;
use openflow::v1_0::error;
use openflow::wire::{HEADER_BYTES, VERSION_1_0, VERSION_1_3};

/// Highest version and type that the firmware takes for a header.
const MAX_VERSION: u8 = 6;
const MAX_TYPE: u8 = 30;

impl Agent {
    /// Handles a new TCP session: sends HELLO. Returns how long the CPU is busy.
    pub(super) fn greet(&mut self, iteration: &mut LoopIteration) -> Duration {
        self.begin_segment(iteration);
        self.state.session.restart();
        self.state.rx.stream.clear();
        self.state.connection.established();
        self.clear_if_secure();
        self.state.version = 0;
        let hello = self.state.greeting();
        self.context(iteration).send(MemoryClass::Exact, hello);
        self.end_segment(iteration)
    }

    fn begin_segment(&self, iteration: &mut LoopIteration) {
        iteration.in_segment = true;
        let costs = self.state.costs.control();
        iteration.cost_ps = costs.interrupt_ps + costs.segment_ps;
    }

    /// Sends the replies to a segment. Returns how long the CPU was busy.
    fn end_segment(&mut self, iteration: &mut LoopIteration) -> Duration {
        let state = &mut self.state;
        iteration.in_segment = false;
        if state.session.acknowledges() {
            iteration.cost_ps += state.costs.control().acknowledge_ps;
        }
        state.session.transmit(iteration.reached(), iteration.out);
        iteration.busy()
    }

    /// Handles the payload of one TCP segment. The firmware parses each segment from its first byte, without
    /// reassembly.
    ///
    /// Returns how long the CPU is busy.
    pub(super) fn segment(&mut self, segment: &[u8], iteration: &mut LoopIteration) -> Duration {
        self.begin_segment(iteration);
        self.state.connection.heard();
        self.state.time.iteration_began = iteration.began;
        if self.state.has(Quirk::NoReassembly) {
            self.buffered_messages(segment, iteration);
        } else {
            self.whole_messages(segment, iteration);
        }
        if self.state.halted {
            return iteration.busy();
        }
        self.end_segment(iteration)
    }

    /// Handles the messages of a segment in the buffer of the firmware, with what longer segments have left behind it.
    fn buffered_messages(&mut self, segment: &[u8], iteration: &mut LoopIteration) {
        let mut buffer = std::mem::take(&mut self.state.rx.buffer);
        buffer.resize(buffer.len().max(segment.len()), 0);
        buffer[..segment.len()].copy_from_slice(segment);
        self.state.rx.stale_bytes = buffer.len() - segment.len();
        if let Some(v13) = &mut self.v13 {
            v13.begin_segment();
        }
        let last_type = self.messages(&mut buffer, segment.len(), iteration);
        if let Some(v13) = self.v13.as_mut().filter(|_| !self.state.halted) {
            if let Some(last_type) = last_type {
                let state = &mut self.state;
                v13.send_collected(&mut AgentContext { state, iteration }, last_type);
            }
            v13.report_uncollected(iteration);
        }
        self.state.rx.buffer = buffer;
    }

    /// Handles the messages in the first `end` bytes of `buffer`. Truncated messages are read beyond `end`. Returns the
    /// type of the last message if the segment ends with it.
    fn messages(
        &mut self,
        buffer: &mut [u8],
        end: usize,
        iteration: &mut LoopIteration,
    ) -> Option<u8> {
        let mut at = 0;
        let mut last_type = message::HELLO;
        while at < end && !self.state.halted {
            let bytes = &buffer[at..];
            let (version, kind, length) = (bytes[0], be16(bytes, 0) as u8, be16(bytes, 2));
            // A whole message that was put together has a header, whatever its type.
            let is_known = kind <= MAX_TYPE || !self.state.has(Quirk::NoReassembly);
            let is_header = (1..=MAX_VERSION).contains(&version) && is_known && length > 0;
            let unread = if !is_header {
                Some(Event::HeaderRefused {
                    offset_bytes: at as u16,
                    version,
                    message_type: kind,
                    length_bytes: length,
                })
            } else if usize::from(length) > end - at {
                Some(Event::MessageSplit {
                    message_type: kind,
                    length_bytes: length,
                    available_bytes: (end - at) as u16,
                })
            } else {
                None
            };
            if let Some(event) = unread {
                iteration.event(event);
                return None;
            }
            last_type = kind;
            self.diagnose_message(bytes, usize::from(length), end - at, iteration);
            at += usize::from(length);
            self.state.rx.overwrite(&mut buffer[at..]);
        }
        Some(last_type)
    }

    /// Handles one message of `length` bytes at the beginning of `bytes`, the rest of the buffer.
    fn message(&mut self, bytes: &[u8], length: usize, iteration: &mut LoopIteration) {
        if bytes[1] == message::HELLO {
            return self.hello(bytes[0], iteration);
        }
        let (dataplane, state) = self.choose(self.state.speaks_13());
        dataplane.message(&mut AgentContext { state, iteration }, bytes, length);
    }

    /// Handles the messages that the stream holds completely after this segment.
    fn whole_messages(&mut self, segment: &[u8], iteration: &mut LoopIteration) {
        let mut stream = std::mem::take(&mut self.state.rx.stream);
        stream.extend_from_slice(segment);
        let mut rest = &mut stream[..];
        while rest.len() >= HEADER_BYTES && !self.state.halted {
            let length = usize::from(be16(rest, 2));
            if length < HEADER_BYTES {
                // Where the next message begins is unknown.
                self.context(iteration).refuse(rest, error::BAD_LENGTH);
                rest = &mut [];
                break;
            }
            if rest.len() < length {
                break;
            }
            let (bytes, behind) = rest.split_at_mut(length);
            let left = length + behind.len();
            self.diagnose_whole_message(bytes, left, iteration);
            self.state.rx.overwrite(behind);
            rest = behind;
        }
        self.state.rx.stream = rest.to_vec();
    }

    fn whole_message(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        if bytes[1] == message::HELLO {
            return self.whole_hello(bytes, iteration);
        }
        let is_known = match self.state.version {
            0 => self.state.may_speak_version(bytes[0]),
            agreed => bytes[0] == agreed,
        };
        if !is_known {
            return self.context(iteration).refuse(bytes, error::BAD_VERSION);
        }
        let speaks_13 = bytes[0] == VERSION_1_3 && self.state.config.knows_13;
        if speaks_13 && self.state.has(Quirk::OpenFlow13) {
            // The firmware's 1.3 reads each message as if it were a segment.
            return self.buffered_messages(bytes, iteration);
        }
        let state = &mut self.state;
        let mut cx = AgentContext { state, iteration };
        match self.v13.as_mut().filter(|_| speaks_13) {
            Some(v13) => v13.message(&mut cx, bytes, bytes.len()),
            None => self.v10.spec_message(&mut cx, bytes),
        }
    }

    /// By the specification, only the first HELLO counts.
    fn whole_hello(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        if self.state.version != 0 {
            return;
        }
        let Some(version) = self.state.agreed_version(bytes) else {
            self.context(iteration).refuse(bytes, error::HELLO_FAILED);
            let at = iteration.reached();
            return self.state.session.close(at, iteration.out);
        };
        self.agree_on(version);
        self.state.report_version(bytes[0], iteration);
    }

    /// Takes the version in the header of the controller's HELLO for what it speaks; nothing else counts (quirk 84).
    fn hello(&mut self, header_version: u8, iteration: &mut LoopIteration) {
        let before = self.state.version;
        let version = self.state.version_by_header(header_version);
        if version != before {
            self.agree_on(version);
        }
        self.state.report_version(header_version, iteration);
        let foreign = match (version, &self.v13) {
            (VERSION_1_0, Some(v13)) => v13.count(),
            (VERSION_1_3, _) => self.v10.table.count(),
            _ => 0,
        };
        let entries = u16::try_from(foreign).unwrap_or(0);
        if version != before && entries > 0 {
            iteration.event(Event::ForeignEntries { entries });
        }
    }

    /// Handles one message of `length` bytes at the beginning of `bytes`, of which `left` are in the segment, and
    /// reports why it was lost or changed.
    fn diagnose_message(
        &mut self,
        bytes: &[u8],
        length: usize,
        left: usize,
        iteration: &mut LoopIteration,
    ) {
        let (before, version) = (iteration.out.events, self.state.version);
        let mut cause = self.predicted_cause(bytes, length);
        self.message(bytes, length, iteration);
        if bytes[1] == message::HELLO && version != 0 && version != self.state.version {
            cause = Some(Cause::VersionChanged);
        }
        self.report_misread(bytes, length, left, cause, before, iteration);
    }

    /// Handles one whole message by the specification, with `left` bytes from its beginning in the stream, and reports why
    /// it was changed: by deviations that are not of how messages are read.
    fn diagnose_whole_message(&mut self, bytes: &[u8], left: usize, iteration: &mut LoopIteration) {
        let before = iteration.out.events;
        let cause = self.v10.whole_message_cause(&self.state, bytes);
        self.whole_message(bytes, iteration);
        self.report_misread(bytes, bytes.len(), left, cause, before, iteration);
    }

    /// Reports the cause, or what shows only after the message, unless it has caused events since there were `before`.
    fn report_misread(
        &mut self,
        bytes: &[u8],
        length: usize,
        left: usize,
        cause: Option<Cause>,
        before: u64,
        iteration: &mut LoopIteration,
    ) {
        let replies_overwritten = std::mem::take(&mut self.state.rx.replies_overwritten);
        if self.state.halted || iteration.out.events != before {
            return;
        }
        let cause = if replies_overwritten {
            Some(Cause::RepliesOverwritten)
        } else if !self.state.rx.pushed_out.is_empty() && length < left {
            Some(Cause::NextOverwritten)
        } else {
            cause.or_else(|| self.v10.find_stale_actions(&self.state, bytes, length))
        };
        if let Some(cause) = cause {
            let event = Event::MessageMisread {
                version: self.state.version,
                message_type: bytes[1],
                cause,
            };
            iteration.event(event);
        }
    }

    /// Returns why the board will not do what a message asks that it reads from a segment; `None` if it will.
    fn predicted_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        let state = &self.state;
        let speaks_13 = state.speaks_13();
        match bytes[1] {
            message::HELLO | message::ERROR | message::ECHO_REPLY => return None,
            message::ECHO_REQUEST if state.version == 0 && state.may_speak() => {
                return Some(Cause::EchoWithoutVersion)
            }
            message::ECHO_REQUEST if speaks_13 && !state.has(Quirk::OpenFlow13) => {}
            message::ECHO_REQUEST if length > 8 => return Some(Cause::EchoPayload),
            message::ECHO_REQUEST if state.version == 0 => return None,
            message::ECHO_REQUEST => {}
            _ if state.version != VERSION_1_0 && !speaks_13 => return Some(Cause::NoVersion),
            _ => {}
        }
        if bytes[0] != state.version {
            return Some(Cause::OtherVersion);
        }
        self.spoken().predicted_cause(state, bytes, length)
    }
}
