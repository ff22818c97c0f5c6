//! The flow table: at most 128 entries in the order of their installation.

mod diagnosis;
mod flow_mod;
mod message;
mod spec;
mod timeout;

use std::sync::Arc;

use serde::Serialize;

use crate::actions::{Actions, SLOTS, SLOT_BYTES};
use crate::block_pool::{BlockPool, PoolBlock};
use crate::cost::Costs;
use crate::event::count;
use crate::matching::{Found, Search};
use crate::packet::Key;
use crate::quirks::{Quirk, Quirks};
use crate::time::Instant;
use openflow::bytes::{be16, be48};
use openflow::v1_0::flow_mod::{field, FLOW_MOD_BYTES};
use openflow::v1_0::{Match, MATCH_BYTES};

pub(crate) use message::{FlowMod, Outcome, RemovedFlow};
pub(crate) use spec::check_actions;
pub(crate) use timeout::Expired;

/// Action slots of an entry.
const ACTION_BYTES: usize = SLOTS * SLOT_BYTES;

/// An entry of the flow table, as a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Match fields.
    pub fields: Match,
    /// Its priority; higher wins.
    pub priority: u16,
    /// Cookie.
    pub cookie: u64,
    /// Idle timeout as sent; the firmware does not use it.
    pub idle_timeout_s: u16,
    /// Hard timeout as sent; the firmware does not use it.
    pub hard_timeout_s: u16,
    /// Flags as sent.
    pub flags: u16,
    /// Action slots, including what earlier entries left in them. Length 0 in bytes 2 and 3: empty.
    pub actions: [[u8; SLOT_BYTES]; SLOTS],
    /// Frames that used it: the firmware's counter has 16 bits.
    pub packets: u64,
    /// Bytes that used it: the firmware's counter has 31 bits and a sign.
    pub bytes: i64,
}

/// One entry.
#[derive(Debug)]
pub(crate) struct TableEntry {
    /// Block with the head of the `FLOW_MOD`.
    head: PoolBlock,
    /// Block with the action slots.
    slots: PoolBlock,
    actions: Actions,
    packets: u64,
    bytes: i64,
    /// Time of the agent.
    installed: Instant,
    /// Time of the agent.
    matched: Instant,
}

/// View of an entry for statistics and `FLOW_REMOVED` messages.
pub(crate) struct EntryView<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) slots: &'a [u8],
    /// The slots and what lies behind them: a long action reaches beyond its slot.
    pub(crate) memory: &'a [u8],
    pub(crate) packets: u64,
    pub(crate) bytes: i64,
    pub(crate) installed: Instant,
}

/// Hits of an entry by frames of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HitCount {
    /// Index of the entry.
    pub(crate) entry: usize,
    pub(crate) frames: u32,
    /// Length of each, without FCS.
    pub(crate) frame_bytes: usize,
}

impl HitCount {
    /// Adds them as the firmware does: packets in 16 bits, bytes in 31 bits and a sign.
    pub(crate) fn add_to(self, packets: &mut u64, bytes: &mut i64) {
        *packets = u64::from((*packets as u16).wrapping_add(self.frames as u16));
        let more = self.frames.wrapping_mul(self.frame_bytes as u32);
        *bytes = i64::from((*bytes as i32).wrapping_add(more as i32));
    }
}

/// The flow table.
#[derive(Debug)]
pub(crate) struct FlowTable {
    capacity: usize,
    quirks: Quirks,
    costs: Arc<Costs>,
    memory: BlockPool,
    /// Where the first block that can hold the head of an entry lies in the board's memory.
    memory_address: u32,
    entries: Vec<TableEntry>,
    search: Search,
    /// Addresses of the action blocks by index, with those of former entries behind the last one.
    slot_addresses: Vec<u32>,
    lookups: u64,
    matched: u64,
    /// The count of entries has fallen to -1 (quirk 52).
    underflowed: bool,
    /// Counters that the next entry takes over from one that vanished with an expired one.
    inherited: Option<(usize, u64, i64)>,
}

impl FlowTable {
    /// An empty table whose first block for an entry lies at `address` of the board's memory.
    pub(crate) fn new(costs: Arc<Costs>, capacity: usize, address: u32, quirks: Quirks) -> Self {
        let mut table = Self {
            capacity,
            quirks,
            costs,
            memory: BlockPool::new(),
            memory_address: address,
            entries: Vec::with_capacity(capacity),
            search: Search::default(),
            slot_addresses: vec![0; capacity + SLOT_BYTES],
            lookups: 0,
            matched: 0,
            underflowed: false,
            inherited: None,
        };
        table.rebuild();
        table
    }

    /// Erases all entries and counters. The memory keeps its contents.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.memory.free_all();
        self.underflowed = false;
        self.inherited = None;
        if self.quirks.has(Quirk::TableCountersPerSession) {
            self.lookups = 0;
            self.matched = 0;
        }
        self.rebuild();
    }

    /// Returns the firmware's count of entries; -1 after a lone entry has timed out.
    pub(crate) fn count(&self) -> i32 {
        if self.underflowed {
            -1
        } else {
            self.entries.len() as i32
        }
    }

    /// Returns whether the count of entries has fallen to -1: frames are dropped without a search.
    pub(crate) const fn is_underflowed(&self) -> bool {
        self.underflowed
    }

    pub(crate) const fn lookups(&self) -> u64 {
        self.lookups
    }

    pub(crate) const fn matched(&self) -> u64 {
        self.matched
    }

    /// Counts a table miss, or a frame that is not looked up because the count of entries is -1.
    pub(crate) fn count_lookup(&mut self) {
        self.lookups += 1;
    }

    /// Looks up a frame of `bytes` bytes (without FCS) and counts it.
    pub(crate) fn lookup(&mut self, key: &Key, bytes: usize, now: Instant) -> Found {
        let found = self.search.find(key);
        match found.index {
            Some(index) => self.record_match(index, bytes, now),
            None => self.count_lookup(),
        }
        found
    }

    /// Counts a frame of `bytes` bytes (without FCS) that matches this entry. By the specification, counters do not wrap.
    pub(crate) fn record_match(&mut self, entry: usize, bytes: usize, now: Instant) {
        if self.quirks.has(Quirk::LimitedMatching) {
            let hits = HitCount {
                entry,
                frames: 1,
                frame_bytes: bytes,
            };
            return self.record_hits(hits, now);
        }
        self.lookups += 1;
        self.matched += 1;
        let entry = &mut self.entries[entry];
        entry.packets += 1;
        entry.bytes += bytes as i64;
        entry.matched = now;
    }

    /// Counts frames that match the same entry, the last one at `now`.
    pub(crate) fn record_hits(&mut self, hits: HitCount, now: Instant) {
        count(&mut self.lookups, hits.frames.into());
        count(&mut self.matched, hits.frames.into());
        if let Some(entry) = self.entries.get_mut(hits.entry) {
            hits.add_to(&mut entry.packets, &mut entry.bytes);
            entry.matched = now;
        }
    }

    pub(crate) const fn pool(&self) -> &BlockPool {
        &self.memory
    }

    /// Continues with the pool as the other version has left it.
    pub(crate) fn take_over(&mut self, pool: &BlockPool) {
        self.memory.clone_from(pool);
    }

    /// Returns where a block lies in the board's memory.
    fn address(&self, block: PoolBlock) -> u32 {
        self.memory_address + block.behind_first_entry()
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn actions(&self, index: usize) -> Actions {
        self.entries[index].actions
    }

    /// Entries in table order, for messages.
    pub(crate) fn views(&self) -> impl Iterator<Item = EntryView<'_>> {
        self.entries.iter().map(|entry| EntryView {
            head: self.memory.read(entry.head, FLOW_MOD_BYTES),
            slots: self.memory.read(entry.slots, ACTION_BYTES),
            memory: self.memory.read_on(entry.slots),
            packets: entry.packets,
            bytes: entry.bytes,
            installed: entry.installed,
        })
    }

    /// Entries in table order, as values.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        self.views().map(|view| view.flow()).collect()
    }

    fn head(&self, entry: &TableEntry) -> &[u8] {
        self.memory.read(entry.head, FLOW_MOD_BYTES)
    }

    /// Reads the entries again after a change, into the forms that are quick to search and to perform.
    fn rebuild(&mut self) {
        for entry in &mut self.entries {
            entry.actions = Actions::read(self.memory.read(entry.slots, ACTION_BYTES));
        }
        let heads = self.entries.iter().map(|entry| {
            let head = self.memory.read(entry.head, FLOW_MOD_BYTES);
            (
                &head[field::MATCH..field::MATCH + MATCH_BYTES],
                be16(head, field::PRIORITY),
            )
        });
        self.search.rebuild(&self.costs, heads);
    }
}

impl EntryView<'_> {
    fn flow(&self) -> Flow {
        let slot = |index: usize| core::array::from_fn(|i| self.slots[index * SLOT_BYTES + i]);
        Flow {
            fields: Match::read(&self.head[field::MATCH..]),
            priority: be16(self.head, field::PRIORITY),
            cookie: be48(self.head, field::COOKIE) << 16
                | u64::from(be16(self.head, field::COOKIE + 6)),
            idle_timeout_s: be16(self.head, field::IDLE_TIMEOUT),
            hard_timeout_s: be16(self.head, field::HARD_TIMEOUT),
            flags: be16(self.head, field::FLAGS),
            actions: core::array::from_fn(slot),
            packets: self.packets,
            bytes: self.bytes,
        }
    }
}
