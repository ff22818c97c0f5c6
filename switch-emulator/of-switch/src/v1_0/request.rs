//! `FLOW_MOD` (1.0.1, section 4.6): which entries of a table it means.

use openflow::bytes::{be16, be32, be64};
use openflow::v1_0::flow_mod::{field, flag, NO_BUFFER};
use openflow::v1_0::{error, Match};
use openflow::ErrorCode;

/// Operation of a `FLOW_MOD` on entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the standard's names
pub enum FlowCommand {
    Add,
    Modify,
    Delete,
}

/// A `FLOW_MOD` without its actions.
#[derive(Clone, Copy, Debug)]
pub struct FlowRequest {
    command: u16,
    flags: u16,
    has_buffer: bool,
    /// Its match, normalised.
    pub fields: Match,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Seconds without a frame after which its entry goes; 0 for never.
    pub idle_timeout_s: u16,
    /// Seconds after which its entry goes; 0 for never.
    pub hard_timeout_s: u16,
    /// The port to which entries have to send in order to be deleted; `OFPP_NONE` if that does not matter.
    pub out_port: u16,
}

impl FlowRequest {
    /// Reads the message; bytes beyond its end count as 0.
    #[must_use]
    pub fn read(message: &[u8]) -> Self {
        Self {
            command: be16(message, field::COMMAND),
            flags: be16(message, field::FLAGS),
            has_buffer: be32(message, field::BUFFER) != NO_BUFFER,
            fields: Match::read(message.get(field::MATCH..).unwrap_or(&[])).normalised(),
            priority: be16(message, field::PRIORITY),
            cookie: be64(message, field::COOKIE),
            idle_timeout_s: be16(message, field::IDLE_TIMEOUT),
            hard_timeout_s: be16(message, field::HARD_TIMEOUT),
            out_port: be16(message, field::OUT_PORT),
        }
    }

    /// Returns its command.
    ///
    /// # Errors
    ///
    /// There is no such command.
    pub const fn command(&self) -> Result<FlowCommand, ErrorCode> {
        match self.command {
            0 => Ok(FlowCommand::Add),
            1 | 2 => Ok(FlowCommand::Modify),
            3 | 4 => Ok(FlowCommand::Delete),
            _ => Err(error::BAD_COMMAND),
        }
    }

    /// Returns its match, normalised, and its priority: no two entries of a table have the same.
    #[must_use]
    pub const fn key(&self) -> (Match, u16) {
        (self.fields, self.priority)
    }

    /// Returns whether it means entries with its own match and priority only.
    #[must_use]
    pub const fn is_strict(&self) -> bool {
        !matches!(self.command, 1 | 3)
    }

    /// Returns whether a MODIFY or DELETE means the entry with this match, normalised, and this priority, or an ADD
    /// replaces it.
    #[must_use]
    pub fn selects(&self, fields: &Match, priority: u16) -> bool {
        if self.is_strict() {
            self.priority == priority && self.fields == *fields
        } else {
            self.fields.covers(fields)
        }
    }

    /// Returns whether an ADD is refused if an entry of its priority [overlaps](Self::overlaps) it.
    #[must_use]
    pub const fn checks_overlap(&self) -> bool {
        self.flags & flag::CHECK_OVERLAP != 0
    }

    /// Returns whether a frame can match both it and the entry with this match, normalised, and the same priority.
    #[must_use]
    pub fn overlaps(&self, fields: &Match, priority: u16) -> bool {
        self.priority == priority && self.fields.overlaps(fields)
    }

    /// Returns the rank of an entry with its match among those that a frame matches: one without wildcards comes before all
    /// others, whatever its priority (section 3.4).
    #[must_use]
    pub fn rank(&self) -> (bool, u16) {
        (self.fields.is_exact(), self.priority)
    }

    /// Returns whether it names a frame that the switch is to hold.
    #[must_use]
    pub const fn has_buffer(&self) -> bool {
        self.has_buffer
    }

    /// Returns whether it asks for `FLOW_REMOVED` when its entry goes.
    #[must_use]
    pub const fn wants_flow_removed(&self) -> bool {
        self.flags & flag::SEND_FLOW_REMOVED != 0
    }

    /// Returns whether it asks for an emergency entry.
    #[must_use]
    pub const fn is_emergency(&self) -> bool {
        self.flags & flag::EMERGENCY != 0
    }
}
