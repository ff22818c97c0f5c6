//! One piece of the agent's work.

use super::state::AgentState;
use crate::buffers::length_with_fcs;
use crate::event::{Event, Hang};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::time::{Duration, Instant};
use openflow::bytes::be32;
use openflow::message;
use openflow::wire::{MessageBuilder, VERSION_1_0};
use openflow::ErrorCode;

/// Bytes of an offending message that an error repeats.
const ERROR_DATA_BYTES: usize = 64;

/// Context of a dataplane's work: the state that all versions share, and the main-loop iteration that it is part of.
pub(super) struct AgentContext<'a, 'b> {
    pub(super) state: &'a mut AgentState,
    pub(super) iteration: &'a mut LoopIteration<'b>,
}

impl AgentContext<'_, '_> {
    /// Drops a frame of `length` bytes with FCS that is not looked up. Returns how long the CPU is busy.
    pub(super) fn drop_frame(&mut self, data: Vec<u8>, length: usize) -> Duration {
        self.iteration.out.counters.dropped_policy += 1;
        self.iteration.out.pool.recycle(data);
        self.state
            .costs
            .frame(length, self.state.costs.drop_ps(length))
            .busy
    }

    /// Charges for the bytes of the frame of a `PACKET_OUT`.
    pub(super) fn charge_packet_out(&mut self, frame: &[u8]) {
        let extra_bytes = length_with_fcs(frame.len()) as i64 - 64;
        self.iteration.cost_ps += self.state.costs.control().packet_out_per_byte_ps * extra_bytes;
    }

    /// Queues a message for the controller.
    pub(super) fn send(&mut self, buffer: MemoryClass, message: impl Into<Vec<u8>>) {
        self.state.session.write(
            self.iteration.began,
            buffer,
            message.into(),
            self.iteration.out,
        );
    }

    /// Queues an unsolicited message: an error or a notification.
    pub(super) fn notify(&mut self, message: impl Into<Vec<u8>>) {
        self.iteration.cost_ps += self.state.costs.control().send_ps;
        self.send(MemoryClass::Exact, message);
    }

    /// Sends a message that answers nothing; it leaves as soon as it is written, if the window lets it.
    pub(super) fn send_at_once(&mut self, message: impl Into<Vec<u8>>) {
        self.iteration.cost_ps += self.state.costs.control().send_ps;
        let at = self.iteration.reached();
        self.state
            .session
            .write(at, MemoryClass::Exact, message.into(), self.iteration.out);
        self.state.session.transmit(at, self.iteration.out);
    }

    /// Sends a `PACKET_IN`: with the replies to a segment, or else at once.
    pub(super) fn packet_in(&mut self, at: Instant, message: impl Into<Vec<u8>>) {
        self.state
            .session
            .write(at, MemoryClass::Exact, message.into(), self.iteration.out);
        if !self.iteration.in_segment {
            self.state.session.transmit(at, self.iteration.out);
        }
    }

    /// Answers an `ECHO_REQUEST` as the firmware does: without its payload.
    pub(super) fn echo(&mut self, bytes: &[u8]) {
        self.iteration.cost_ps += self.state.costs.control().echo_ps;
        let version = match self.state.version {
            0 if !self.state.may_speak() => bytes[0],
            agreed => agreed,
        };
        let xid = be32(bytes, 4).to_be_bytes();
        let reply = MessageBuilder::new(version, message::ECHO_REPLY, xid);
        self.send(MemoryClass::Exact, reply);
    }

    /// Refuses a whole message as the specification asks.
    pub(super) fn refuse(&mut self, bytes: &[u8], error: ErrorCode) {
        self.iteration.cost_ps += self.state.costs.control().send_ps;
        let version = match self.state.version {
            0 => self.state.highest_version(),
            agreed => agreed,
        };
        self.send_error(version, bytes, bytes.len(), error);
    }

    /// Sends an error about the message of `length` bytes at the beginning of `bytes`, and reports it.
    pub(super) fn send_error(
        &mut self,
        version: u8,
        bytes: &[u8],
        length: usize,
        error: ErrorCode,
    ) {
        self.report_refusal(bytes, error);
        let reply = MessageBuilder::new(version, message::ERROR, be32(bytes, 4).to_be_bytes())
            .u16(error.0)
            .u16(error.1)
            .bytes(&bytes[..length.min(ERROR_DATA_BYTES)]);
        self.send(MemoryClass::Exact, reply);
    }

    /// Reports that the message at the beginning of `bytes` is refused with an error of this type and code.
    pub(super) fn report_refusal(&mut self, bytes: &[u8], (error_type, error_code): ErrorCode) {
        let event = Event::MessageRefused {
            version: self.state.version.max(VERSION_1_0),
            message_type: bytes[1],
            error_type,
            error_code,
            quirks: self.state.config.quirks,
        };
        self.iteration.event(event);
    }

    /// Reports a message of a type, or statistics of a kind, that the firmware passes over.
    pub(super) fn report_ignored(&mut self, message_type: u8, statistics: Option<u16>) {
        let event = Event::RequestIgnored {
            version: self.state.version,
            message_type,
            statistics,
        };
        self.iteration.event(event);
    }

    /// The board stops for good.
    pub(super) fn hang(&mut self, at: Instant, cause: Hang) {
        self.state.halted = true;
        self.iteration.out.event(at, Event::BoardHung { cause });
    }
}
