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
use of_switch::v1_0::{EntryOrder, FlowEntry, FlowRequest, SpecTable};
use openflow::bytes::{be16, be64};
use openflow::v1_0::flow_mod::{field, FLOW_MOD_BYTES};
use openflow::v1_0::{Match, MATCH_BYTES};

pub(crate) use message::{FlowMod, Outcome, RemovedFlow};
pub(crate) use spec::{check_actions, ACTION_TYPES};
pub(crate) use timeout::Expired;

use spec::EntryMemory;

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

/// Where an entry lies. Instants of entries are by the time of the agent.
#[derive(Clone, Copy, Debug)]
struct EntryBlocks {
    /// Block with the head of the `FLOW_MOD`.
    head: PoolBlock,
    /// Block with the action slots.
    slots: PoolBlock,
    actions: Actions,
}

impl EntryBlocks {
    /// Blocks of an entry whose actions are still to be read.
    fn new(head: PoolBlock, slots: PoolBlock) -> Self {
        let actions = Actions::read(&[]);
        Self {
            head,
            slots,
            actions,
        }
    }
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
    quirks: Quirks,
    costs: Arc<Costs>,
    memory: EntryMemory,
    /// Where the first block that can hold the head of an entry lies in the board's memory.
    memory_address: u32,
    table: SpecTable<EntryBlocks>,
    search: Search,
    /// Addresses of the action blocks by index, with those of former entries behind the last one.
    slot_addresses: Vec<u32>,
    /// Counters that the next entry takes over from one that vanished with an expired one.
    inherited: Option<(usize, u64, u64)>,
}

impl FlowTable {
    /// An empty table whose first block for an entry lies at `address` of the board's memory.
    pub(crate) fn new(costs: Arc<Costs>, capacity: usize, address: u32, quirks: Quirks) -> Self {
        let mut table = Self {
            quirks,
            costs,
            memory: EntryMemory {
                pool: BlockPool::new(),
                capacity,
                underflowed: false,
            },
            memory_address: address,
            table: SpecTable::new(EntryOrder::Age),
            search: Search::default(),
            slot_addresses: vec![0; capacity + SLOT_BYTES],
            inherited: None,
        };
        table.rebuild();
        table
    }

    /// Erases all entries and counters. The memory keeps its contents.
    pub(crate) fn clear(&mut self) {
        self.table.entries_mut().clear();
        self.memory.pool.free_all();
        self.memory.underflowed = false;
        self.inherited = None;
        if self.quirks.has(Quirk::TableCountersPerSession) {
            self.table.lookups = 0;
            self.table.matches = 0;
        }
        self.rebuild();
    }

    /// Returns the firmware's count of entries; -1 after a lone entry has timed out.
    pub(crate) fn count(&self) -> i32 {
        if self.memory.underflowed {
            -1
        } else {
            self.table.entries().len() as i32
        }
    }

    /// Returns whether the count of entries has fallen to -1: frames are dropped without a search.
    pub(crate) const fn is_underflowed(&self) -> bool {
        self.memory.underflowed
    }

    pub(crate) const fn lookups(&self) -> u64 {
        self.table.lookups
    }

    pub(crate) const fn matched(&self) -> u64 {
        self.table.matches
    }

    /// Counts a table miss, or a frame that is not looked up because the count of entries is -1.
    pub(crate) fn count_lookup(&mut self) {
        self.table.lookups += 1;
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
        self.table.record(Some(entry), bytes, now.as_nanos());
    }

    /// Counts frames that match the same entry, the last one at `now`.
    #[allow(clippy::cast_sign_loss)] // read back with its sign
    pub(crate) fn record_hits(&mut self, hits: HitCount, now: Instant) {
        count(&mut self.table.lookups, hits.frames.into());
        count(&mut self.table.matches, hits.frames.into());
        if let Some(entry) = self.table.entries_mut().get_mut(hits.entry) {
            let mut bytes = entry.bytes as i64;
            hits.add_to(&mut entry.packets, &mut bytes);
            entry.bytes = bytes as u64;
            entry.matched_ns = now.as_nanos();
        }
    }

    pub(crate) const fn pool(&self) -> &BlockPool {
        &self.memory.pool
    }

    /// Continues with the pool as the other version has left it.
    pub(crate) fn take_over(&mut self, pool: &BlockPool) {
        self.memory.pool.clone_from(pool);
    }

    /// Returns where a block lies in the board's memory.
    fn address(&self, block: PoolBlock) -> u32 {
        self.memory_address + block.behind_first_entry()
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.memory.capacity
    }

    pub(crate) fn actions(&self, index: usize) -> Actions {
        self.table.entries()[index].held.actions
    }

    /// Entries in table order, for messages.
    pub(crate) fn views(&self) -> impl Iterator<Item = EntryView<'_>> {
        let entries = self.table.entries().iter();
        entries.map(|entry| self.memory.view(entry))
    }

    /// Entries in table order, as values.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        self.views().map(|view| view.flow()).collect()
    }

    fn head(&self, entry: &FlowEntry<EntryBlocks>) -> &[u8] {
        self.memory.pool.read(entry.held.head, FLOW_MOD_BYTES)
    }

    /// Reads the entries again after a change, into the forms that are quick to search and to perform.
    fn rebuild(&mut self) {
        for entry in self.table.entries_mut() {
            entry.request =
                FlowRequest::read(self.memory.pool.read(entry.held.head, FLOW_MOD_BYTES));
            entry.held.actions =
                Actions::read(self.memory.pool.read(entry.held.slots, ACTION_BYTES));
        }
        let heads = self.table.entries().iter().map(|entry| {
            let head = self.memory.pool.read(entry.held.head, FLOW_MOD_BYTES);
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
            cookie: be64(self.head, field::COOKIE),
            idle_timeout_s: be16(self.head, field::IDLE_TIMEOUT),
            hard_timeout_s: be16(self.head, field::HARD_TIMEOUT),
            flags: be16(self.head, field::FLAGS),
            actions: core::array::from_fn(slot),
            packets: self.packets,
            bytes: self.bytes,
        }
    }
}
