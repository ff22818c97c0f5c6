//! OpenFlow 1.3 (1.3.4): tables in one list of entries, groups, meters. No session and no clock.
//!
//! Optional features that this switch lacks are refused with the error that 1.3 names: queues, tunnels, groups of
//! groups, ports NORMAL and LOCAL, experimenters, tables that a controller shapes.

mod actions;
mod check;
mod flows;
mod groups;
mod instructions;
mod meters;
mod multipart;
mod pipeline;

use std::fmt::Debug;

use crate::{MatchedEntries, PortSets};
use flows::Flows;
use groups::SpecGroups;
use meters::SpecMeters;
use openflow::v1_3::{ParsedPacket, Wanted};
use openflow::{ErrorCode, FlowRemovedReason};

pub use actions::SpecAction;
pub use check::{check_entry, check_group};
pub use flows::{Removed, SpecEntry};
pub use meters::Metered;
pub use multipart::in_parts;
pub use pipeline::{PacketInReason, SpecEffect, SpecRun};

/// How much a switch holds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tables.
    pub tables: u8,
    /// Entries of all tables.
    pub entries: usize,
    /// Groups.
    pub groups: usize,
    /// Bytes of the buckets of a group.
    pub bucket_bytes: usize,
    /// Meters.
    pub meters: usize,
    /// Bands of a meter.
    pub bands: usize,
}

/// Memory in which a switch keeps entries and meters, and which limits them beside [`Limits`]. Only its room counts: the
/// switch writes nothing into it.
pub trait Memory: Debug {
    /// A piece of it.
    type Block: Copy + Debug;

    /// Takes so many bytes. Returns `None` if there is no room.
    fn take(&mut self, bytes: usize) -> Option<Self::Block>;

    /// Frees a piece.
    fn free(&mut self, block: Self::Block);

    /// Frees all pieces.
    fn free_all(&mut self);
}

/// One step of the switch in handling a frame.
#[derive(Clone, Copy, Debug)]
pub enum PipelineStep<'a> {
    /// It passes over an entry of another table.
    OtherTable,
    /// It passes over an entry because of its priority.
    Skipped,
    /// It begins to compare an entry, after another one has matched or not.
    Examined {
        /// Whether another entry of the table has matched.
        after_hit: bool,
    },
    /// It compares a field.
    Field {
        /// The field and value that the entry matches on.
        wanted: &'a Wanted,
        /// Whether the frame has it.
        holds: bool,
    },
    /// An entry matches.
    Matched {
        /// Its number of fields.
        fields: usize,
    },
    /// It goes on to another table.
    NextTable,
    /// The frame passes a meter.
    Meter,
    /// The frame goes to a group.
    Group,
    /// An action changes the frame, which is as it was before.
    Rewrite(SpecAction, &'a ParsedPacket),
    /// It sends the frame by ports.
    Output {
        /// The frame as it is sent.
        packet: &'a ParsedPacket,
        /// Whether it is the first time.
        is_first: bool,
    },
    /// It sends the frame to the controller.
    PacketIn(&'a ParsedPacket),
    /// Nothing is sent.
    Drop(&'a ParsedPacket),
}

/// Follows the work of a switch on a frame.
pub trait Observer {
    /// The switch takes this step.
    fn step(&mut self, step: PipelineStep);
}

/// Groups or meters, by their identifiers.
pub trait Ids: Debug {
    /// Returns whether there is one with this identifier.
    fn has(&self, id: u32) -> bool;
}

/// The switch.
#[derive(Debug)]
pub struct Switch<M: Memory> {
    limits: Limits,
    memory: M,
    flows: Flows<M::Block>,
    groups: SpecGroups,
    meters: SpecMeters<M::Block>,
}

impl<M: Memory> Switch<M> {
    /// Creates an empty switch.
    #[must_use]
    pub fn new(limits: Limits, memory: M) -> Self {
        Self {
            limits,
            memory,
            flows: Flows::new(limits.tables),
            groups: SpecGroups::default(),
            meters: SpecMeters::new(),
        }
    }

    /// Erases entries, groups and meters.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.groups.clear();
        self.meters.clear();
        self.memory.free_all();
    }

    /// Returns the number of entries of all tables.
    #[must_use]
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Counts a frame of `bytes` bytes for which the searches find these entries.
    #[inline]
    pub fn record_match(&mut self, matched: MatchedEntries, bytes: usize, now_ns: u64) {
        for position in matched.iter() {
            self.flows.record_match(position, bytes, now_ns);
        }
    }

    /// Returns the entries in the order in which they were added.
    pub fn entries(&self) -> impl Iterator<Item = &SpecEntry<M::Block>> {
        self.flows.iter()
    }

    /// Carries out a `GROUP_MOD`. Returns the entries that go with a group.
    ///
    /// # Errors
    ///
    /// Type and code of the error that OpenFlow 1.3.4 asks for.
    pub fn group_mod(
        &mut self,
        message: &[u8],
        ports: PortSets,
        now_ns: u64,
    ) -> Result<Vec<Removed<M::Block>>, ErrorCode> {
        let gone = self.groups.modify(message, ports, self.limits, now_ns)?;
        Ok(self
            .flows
            .remove_where(&mut self.memory, FlowRemovedReason::Group, |entry| {
                entry.program.uses_group(&gone)
            }))
    }

    /// Carries out a `METER_MOD`. Returns the entries that go with a meter.
    ///
    /// # Errors
    ///
    /// Type and code of the error that OpenFlow 1.3.4 asks for.
    pub fn meter_mod(
        &mut self,
        message: &[u8],
        now_ns: u64,
    ) -> Result<Vec<Removed<M::Block>>, ErrorCode> {
        let gone = self
            .meters
            .modify(&mut self.memory, self.limits, message, now_ns)?;
        Ok(self
            .flows
            .remove_where(&mut self.memory, FlowRemovedReason::Delete, |entry| {
                entry
                    .program
                    .meter
                    .is_some_and(|meter| gone.contains(&meter))
            }))
    }
}
