//! `FLOW_MOD` as a message, and what comes of it.

use crate::time::Instant;
use openflow::bytes::be16;
use openflow::v1_0::flow_mod::{field, flag, FLOW_MOD_BYTES};
use openflow::v1_0::Match;
use openflow::ErrorCode;

/// Outcome of a `FLOW_MOD`.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The entries that a DELETE removed, or the error if nothing was installed.
    pub(crate) done: Result<Vec<RemovedFlow>, ErrorCode>,
    /// Cost.
    pub(crate) cost_ps: i64,
    /// Entries that a DELETE has left without their actions.
    pub(crate) lost_actions: usize,
}

/// An entry that has been removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedFlow {
    /// Head of its `FLOW_MOD`.
    pub(crate) head: [u8; FLOW_MOD_BYTES],
    pub(crate) packets: u64,
    pub(crate) bytes: i64,
    /// Time of the agent.
    pub(crate) installed: Instant,
}

impl RemovedFlow {
    /// Returns whether the entry's flags ask for `FLOW_REMOVED`.
    pub(crate) fn wants_flow_removed(&self) -> bool {
        be16(&self.head, field::FLAGS) & flag::SEND_FLOW_REMOVED != 0
    }
}

/// A `FLOW_MOD`: `bytes` begins with its header and runs to the end of the segment, because the firmware reads on when
/// the message is too short; `length` is what the header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowMod<'a> {
    /// From its header to the end of the segment.
    pub(super) bytes: &'a [u8],
    /// Length by the header.
    pub(super) length: usize,
    head: [u8; FLOW_MOD_BYTES],
}

impl<'a> FlowMod<'a> {
    pub(crate) fn new(bytes: &'a [u8], length: usize) -> Self {
        let head = core::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0));
        Self {
            bytes,
            length,
            head,
        }
    }

    /// Returns whether a DELETE asks for `FLOW_REMOVED`: the firmware looks at the flags of the DELETE, not of the
    /// entry, and at the wrong byte.
    pub(crate) fn wants_flow_removed(&self) -> bool {
        be16(&self.head, field::FLAGS) & 0x0100 != 0
    }

    /// Returns the byte of the command that the firmware looks at.
    pub(super) const fn command(&self) -> u8 {
        self.head[field::COMMAND + 1]
    }

    /// Everything before the actions.
    pub(super) const fn head(&self) -> &[u8; FLOW_MOD_BYTES] {
        &self.head
    }

    /// Returns the actions, as far as the message goes.
    pub(super) fn actions(&self) -> &'a [u8] {
        self.bytes.get(FLOW_MOD_BYTES..self.length).unwrap_or(&[])
    }

    pub(super) fn fields(&self) -> Match {
        Match::read(&self.head[field::MATCH..])
    }
}
