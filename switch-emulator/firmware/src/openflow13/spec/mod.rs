//! A correct OpenFlow 1.3 switch (1.3.4) of the board's capacity: what `quirks = "spec"` puts in the place of the
//! firmware's. Ten tables whose entries share the same block pool, four groups of 64 bytes of buckets, eight meters of three
//! bands. No session and no clock.
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

use super::Flow13;
use crate::block_pool::BlockPool;
use crate::matched_entries::MatchedEntries;
use crate::port::PortMask;
use crate::profile::OpenFlow13Costs;
use flows::Flows;
use groups::SpecGroups;
use meters::SpecMeters;
use openflow::{ErrorCode, FlowRemovedReason};

pub(super) use check::{check_entry, check_group};
pub(crate) use flows::{FlowModOutcome, Removed};
pub(crate) use pipeline::{PacketInReason, SpecEffect, SpecRun};

/// Groups or meters, by their identifiers.
pub(super) trait Ids: std::fmt::Debug {
    /// Returns whether there is one with this identifier.
    fn has(&self, id: u32) -> bool;
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
    ) -> Result<Vec<Removed>, ErrorCode> {
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
    ) -> Result<Vec<Removed>, ErrorCode> {
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
