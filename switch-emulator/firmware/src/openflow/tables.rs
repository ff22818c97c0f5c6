//! The flow tables of both OpenFlow versions.

use std::sync::Arc;

use super::clock::Timekeeping;
use super::flow_cache::TableKind;
use crate::block_pool::BlockPool;
use crate::config::Config;
use crate::cost::Costs;
use crate::openflow13::spec::SpecSwitch;
use crate::openflow13::Switch13;
use crate::profile::Profile;
use crate::quirks::Quirk;
use crate::table::FlowTable;
use of_switch::MatchedEntries;
use openflow::wire::VERSION_1_3;

/// The tables of both versions.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) table: FlowTable,
    /// The firmware's tables of OpenFlow 1.3, on boards that speak it.
    pub(super) switch13: Option<Box<Switch13>>,
    /// The 1.3 tables by the specification, on boards that follow it.
    pub(super) spec13: Option<Box<SpecSwitch>>,
    /// Whether 1.3 is the version that was agreed on last; before that, whether it is the configured one.
    is_13: bool,
}

impl Tables {
    pub(super) fn new(profile: &Profile, config: &Config, costs: &Arc<Costs>) -> Self {
        let costs_of_13 = &profile.cpu.openflow13;
        let is_firmware13 = config.quirks.has(Quirk::OpenFlow13);
        let table = FlowTable::new(
            Arc::clone(costs),
            profile.table.entries as usize,
            config.flow_memory_address,
            config.quirks,
        );
        Self {
            switch13: costs_of_13
                .clone()
                .filter(|_| is_firmware13)
                .map(|costs| Box::new(Switch13::new(costs, table.pool().clone()))),
            spec13: costs_of_13
                .clone()
                .filter(|_| !is_firmware13)
                .map(|costs| Box::new(SpecSwitch::new(costs))),
            table,
            is_13: config.openflow_version == VERSION_1_3,
        }
    }

    /// Erases the entries of both versions: their count is one number.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        if let Some(switch) = &mut self.switch13 {
            switch.clear();
        }
        if let Some(switch) = &mut self.spec13 {
            switch.tables.clear();
        }
    }

    /// Returns whether there are tables of OpenFlow 1.3.
    pub(super) const fn know_13(&self) -> bool {
        self.switch13.is_some() || self.spec13.is_some()
    }

    /// Returns whether 1.3 is the version that was agreed on last, or the configured one.
    pub(super) const fn are_13(&self) -> bool {
        self.is_13 && self.know_13()
    }

    /// Returns whether frames are looked up in the tables of the correct 1.3 switch, as the version that was agreed on
    /// last is 1.3.
    pub(super) const fn use_spec13(&self) -> bool {
        self.spec13.is_some() && self.is_13
    }

    /// Counts a frame of `bytes` bytes that matches these entries. A cold function, since boards with the firmware's
    /// OpenFlow 1.0 table skip it on the fast path.
    #[cold]
    #[inline(never)]
    pub(super) fn record_match(
        &mut self,
        table: TableKind,
        matched: MatchedEntries,
        bytes: usize,
        time: &Timekeeping,
    ) {
        match table {
            TableKind::Firmware10 => self.table.record_match(matched.only(), bytes, time.now()),
            TableKind::Spec10 => {
                let table = &mut self.table;
                table.record_match_by_spec(matched.only(), bytes, time.now());
            }
            TableKind::Firmware13 => {
                if let Some(switch) = &mut self.switch13 {
                    switch.record_match(matched, bytes, time.clock().now_s);
                }
            }
            TableKind::Spec13 => {
                if let Some(switch) = &mut self.spec13 {
                    let now_ns = time.iteration_began.as_nanos();
                    switch.tables.record_match(matched, bytes, now_ns);
                }
            }
        }
    }

    /// The block pool, which both versions share: that of the version that was agreed on last.
    pub(super) fn pool(&self) -> &BlockPool {
        match &self.switch13 {
            Some(switch) if self.is_13 => switch.pool(),
            _ => self.table.pool(),
        }
    }

    /// Switches to the negotiated version. By the specification, removes the entries of the other one. On the board, both
    /// share the block pool, and the version finds it as the other one has left it.
    pub(super) fn agree_on(&mut self, version: u8) {
        let was_13 = std::mem::replace(&mut self.is_13, version == VERSION_1_3);
        match &mut self.switch13 {
            Some(switch) if self.is_13 && !was_13 => switch.take_over(self.table.pool()),
            Some(switch) if was_13 && !self.is_13 => self.table.take_over(switch.pool()),
            _ => {}
        }
        if let Some(switch) = &mut self.spec13 {
            if self.is_13 {
                self.table.clear();
            } else {
                switch.tables.clear();
            }
        }
    }
}
