//! OpenFlow 1.0 (1.0.1, section 4.6): which entries of a table a `FLOW_MOD` means. How a table stores them is its own
//! business.

use openflow::bytes::be16;
use openflow::v1_0::flow_mod::{field, flag};
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
    /// Its match, normalised.
    pub fields: Match,
    /// Its priority.
    pub priority: u16,
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
            fields: Match::read(message.get(field::MATCH..).unwrap_or(&[])).normalised(),
            priority: be16(message, field::PRIORITY),
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

    /// Returns whether a MODIFY or DELETE means the entry with this match, normalised, and this priority, or an ADD
    /// replaces it.
    #[must_use]
    pub fn selects(&self, fields: &Match, priority: u16) -> bool {
        match self.command {
            1 | 3 => self.fields.covers(fields),
            _ => self.priority == priority && self.fields == *fields,
        }
    }

    /// Returns whether an ADD is refused because of the entry with this match, normalised, and this priority.
    #[must_use]
    pub fn conflicts(&self, fields: &Match, priority: u16) -> bool {
        self.flags & flag::CHECK_OVERLAP != 0
            && self.priority == priority
            && self.fields.overlaps(fields)
    }

    /// Returns whether it asks for an emergency entry.
    #[must_use]
    pub const fn is_emergency(&self) -> bool {
        self.flags & flag::EMERGENCY != 0
    }
}
