//! A correct OpenFlow 1.3 switch (1.3.4) of the board's capacity: what `quirks = "spec"` puts in the place of the
//! firmware's. Ten tables whose entries share the same block pool, four groups of 64 bytes of buckets, eight meters of three
//! bands. No session and no clock.
//!
//! Optional features that this switch lacks are refused with the error that 1.3 names: queues, tunnels, groups of
//! groups, ports NORMAL and LOCAL, experimenters, tables that a controller shapes.

mod actions;
mod check;
mod fields;
mod flows;
mod groups;
mod instructions;
mod meters;
mod multipart;
mod packet;
mod pipeline;

use super::Flow13;
use crate::block_pool::BlockPool;
use crate::flow_removed_reason::FlowRemovedReason;
use crate::matched_entries::MatchedEntries;
use crate::port::PortMask;
use crate::profile::OpenFlow13Costs;
use flows::Flows;
use groups::SpecGroups;
use meters::SpecMeters;

pub(super) use check::{check_entry, check_group};
pub(super) use fields::OxmMatch;
pub(crate) use flows::{FlowModOutcome, Removed};
pub(crate) use pipeline::{PacketInReason, SpecEffect, SpecRun};

/// Type and code of an error message.
pub(crate) type SpecRefusal = (u16, u16);

/// Groups or meters, by their identifiers.
pub(super) trait Ids: std::fmt::Debug {
    /// Returns whether there is one with this identifier.
    fn has(&self, id: u32) -> bool;
}

/// The errors of 1.3 that this switch sends (section 7.4.4): type and code.
pub(crate) mod error {
    use super::SpecRefusal;

    pub(crate) const BAD_TYPE: SpecRefusal = (1, 1);
    pub(crate) const BAD_MULTIPART: SpecRefusal = (1, 2);
    pub(crate) const BAD_EXPERIMENTER: SpecRefusal = (1, 3);
    pub(crate) const BAD_LENGTH: SpecRefusal = (1, 6);
    pub(crate) const BUFFER_UNKNOWN: SpecRefusal = (1, 8);
    pub(crate) const BAD_REQUEST_TABLE: SpecRefusal = (1, 9);
    pub(crate) const IS_SLAVE: SpecRefusal = (1, 10);
    pub(crate) const BAD_REQUEST_PORT: SpecRefusal = (1, 11);
    pub(crate) const BAD_ACTION_TYPE: SpecRefusal = (2, 0);
    pub(crate) const BAD_ACTION_LENGTH: SpecRefusal = (2, 1);
    pub(crate) const BAD_ACTION_EXPERIMENTER: SpecRefusal = (2, 2);
    pub(crate) const BAD_OUT_PORT: SpecRefusal = (2, 4);
    pub(crate) const BAD_ARGUMENT: SpecRefusal = (2, 5);
    pub(crate) const BAD_ACTION_QUEUE: SpecRefusal = (2, 8);
    pub(crate) const BAD_OUT_GROUP: SpecRefusal = (2, 9);
    pub(crate) const MATCH_INCONSISTENT: SpecRefusal = (2, 10);
    pub(crate) const BAD_SET_TYPE: SpecRefusal = (2, 13);
    pub(crate) const BAD_SET_LENGTH: SpecRefusal = (2, 14);
    pub(crate) const BAD_SET_ARGUMENT: SpecRefusal = (2, 15);
    pub(crate) const UNKNOWN_INSTRUCTION: SpecRefusal = (3, 0);
    pub(crate) const UNSUPPORTED_INSTRUCTION: SpecRefusal = (3, 1);
    pub(crate) const BAD_NEXT_TABLE: SpecRefusal = (3, 2);
    pub(crate) const BAD_INSTRUCTION_EXPERIMENTER: SpecRefusal = (3, 5);
    pub(crate) const BAD_INSTRUCTION_LENGTH: SpecRefusal = (3, 7);
    pub(crate) const BAD_MATCH_TYPE: SpecRefusal = (4, 0);
    pub(crate) const BAD_MATCH_LENGTH: SpecRefusal = (4, 1);
    pub(crate) const BAD_WILDCARDS: SpecRefusal = (4, 5);
    pub(crate) const BAD_FIELD: SpecRefusal = (4, 6);
    pub(crate) const BAD_VALUE: SpecRefusal = (4, 7);
    pub(crate) const BAD_MASK: SpecRefusal = (4, 8);
    pub(crate) const BAD_PREREQUISITE: SpecRefusal = (4, 9);
    pub(crate) const DUPLICATE_FIELD: SpecRefusal = (4, 10);
    pub(crate) const TABLE_FULL: SpecRefusal = (5, 1);
    pub(crate) const BAD_TABLE: SpecRefusal = (5, 2);
    pub(crate) const OVERLAP: SpecRefusal = (5, 3);
    pub(crate) const BAD_FLOW_COMMAND: SpecRefusal = (5, 6);
    pub(crate) const BAD_FLOW_FLAGS: SpecRefusal = (5, 7);
    pub(crate) const GROUP_EXISTS: SpecRefusal = (6, 0);
    pub(crate) const INVALID_GROUP: SpecRefusal = (6, 1);
    pub(crate) const OUT_OF_GROUPS: SpecRefusal = (6, 3);
    pub(crate) const OUT_OF_BUCKETS: SpecRefusal = (6, 4);
    pub(crate) const CHAINING_UNSUPPORTED: SpecRefusal = (6, 5);
    pub(crate) const UNKNOWN_GROUP: SpecRefusal = (6, 8);
    pub(crate) const BAD_GROUP_TYPE: SpecRefusal = (6, 10);
    pub(crate) const BAD_GROUP_COMMAND: SpecRefusal = (6, 11);
    pub(crate) const BAD_BUCKET: SpecRefusal = (6, 12);
    pub(crate) const BAD_WATCH: SpecRefusal = (6, 13);
    pub(crate) const BAD_PORT: SpecRefusal = (7, 0);
    pub(crate) const BAD_PORT_ADDRESS: SpecRefusal = (7, 1);
    pub(crate) const BAD_PORT_CONFIG: SpecRefusal = (7, 2);
    pub(crate) const BAD_TABLE_MOD: SpecRefusal = (8, 0);
    pub(crate) const BAD_TABLE_CONFIG: SpecRefusal = (8, 1);
    pub(crate) const BAD_QUEUE_PORT: SpecRefusal = (9, 0);
    pub(crate) const BAD_CONFIG_FLAGS: SpecRefusal = (10, 0);
    pub(crate) const STALE_ROLE: SpecRefusal = (11, 0);
    pub(crate) const BAD_ROLE: SpecRefusal = (11, 2);
    pub(crate) const METER_EXISTS: SpecRefusal = (12, 1);
    pub(crate) const INVALID_METER: SpecRefusal = (12, 2);
    pub(crate) const UNKNOWN_METER: SpecRefusal = (12, 3);
    pub(crate) const BAD_METER_COMMAND: SpecRefusal = (12, 4);
    pub(crate) const BAD_METER_FLAGS: SpecRefusal = (12, 5);
    pub(crate) const BAD_RATE: SpecRefusal = (12, 6);
    pub(crate) const BAD_BAND: SpecRefusal = (12, 8);
    pub(crate) const OUT_OF_METERS: SpecRefusal = (12, 10);
    pub(crate) const OUT_OF_BANDS: SpecRefusal = (12, 11);
    pub(crate) const FIXED_TABLES: SpecRefusal = (13, 5);
}

/// The ports as the tables need to know them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortSets {
    /// The OpenFlow ports: those that exist for a controller.
    pub(crate) all: PortMask,
    /// Those that frames leave by: not switched off, not barred from forwarding.
    pub(crate) forwarding: PortMask,
    /// Those with a link that are not switched off (section 6.5).
    pub(crate) live: PortMask,
}

impl PortSets {
    /// Returns whether a port with this number exists.
    fn exists(self, number: u32) -> bool {
        self.all.iter().any(|port| u32::from(port.get()) == number)
    }

    /// Returns whether it exists and is live.
    fn is_live(self, number: u32) -> bool {
        self.live.iter().any(|port| u32::from(port.get()) == number) && self.exists(number)
    }
}

/// The switch.
#[derive(Debug)]
pub(crate) struct SpecSwitch {
    costs: OpenFlow13Costs,
    pool: BlockPool,
    flows: Flows,
    groups: SpecGroups,
    meters: SpecMeters,
}

impl SpecSwitch {
    pub(crate) fn new(costs: OpenFlow13Costs) -> Self {
        Self {
            costs,
            pool: BlockPool::new(),
            flows: Flows::new(),
            groups: SpecGroups::default(),
            meters: SpecMeters::default(),
        }
    }

    /// Erases entries, groups and meters.
    pub(crate) fn clear(&mut self) {
        self.flows.clear();
        self.groups.clear();
        self.meters.clear();
        self.pool.free_all();
    }

    pub(crate) const fn costs(&self) -> &OpenFlow13Costs {
        &self.costs
    }

    /// Entries of all tables.
    pub(crate) fn count(&self) -> usize {
        self.flows.len()
    }

    /// Counts a frame of `bytes` bytes for which the searches find these entries.
    #[inline]
    pub(crate) fn record_match(
        &mut self,
        matched: MatchedEntries,
        bytes: usize,
        now: crate::time::Instant,
    ) {
        for position in matched.iter() {
            self.flows.record_match(position, bytes, now);
        }
    }

    /// Entries in the order in which they were added, as values.
    pub(crate) fn values(&self) -> Vec<Flow13> {
        let value = |entry: &flows::SpecEntry| Flow13 {
            head: entry.head.to_vec(),
            oxms: entry.oxms.clone(),
            instructions: entry.instructions.clone(),
            packets: entry.packets,
            bytes: entry.bytes as i64,
        };
        self.flows.iter().map(value).collect()
    }

    /// Carries out a `GROUP_MOD`. Returns the entries that go with a group.
    pub(crate) fn group_mod(
        &mut self,
        message: &[u8],
        ports: PortSets,
        now: crate::time::Instant,
    ) -> Result<Vec<Removed>, SpecRefusal> {
        let gone = self.groups.modify(message, ports, now)?;
        Ok(self
            .flows
            .remove_where(&mut self.pool, FlowRemovedReason::Group, |entry| {
                entry.program.uses_group(&gone)
            }))
    }

    /// Carries out a `METER_MOD`. Returns the entries that go with a meter.
    pub(crate) fn meter_mod(
        &mut self,
        message: &[u8],
        now: crate::time::Instant,
    ) -> Result<Vec<Removed>, SpecRefusal> {
        let gone = self.meters.modify(&mut self.pool, message, now)?;
        Ok(self
            .flows
            .remove_where(&mut self.pool, FlowRemovedReason::Delete, |entry| {
                entry
                    .program
                    .meter
                    .is_some_and(|meter| gone.contains(&meter))
            }))
    }
}
