//! The table as OpenFlow 1.0.1 describes it ([`of_switch::v1_0`]) in the board's memory: what `quirks = "spec"` puts in
//! the place of the firmware's. It has the same size and four action slots for each entry.

use super::{EntryBlocks, EntryView, Expired, FlowTable, RemovedFlow, ACTION_BYTES};
use crate::actions::{Actions, SLOTS, SLOT_BYTES};
use crate::block_pool::BlockPool;
use crate::matching::Found;
use crate::port::PORTS;
use crate::quirks::Quirk;
use crate::time::Instant;
use of_switch::v1_0::{ActionLimits, Backing, FlowEntry};
use openflow::bytes::be16;
use openflow::ethernet::ARP;
use openflow::v1_0::flow_mod::FLOW_MOD_BYTES;
use openflow::v1_0::{action, error, wildcards, Match};
use openflow::ErrorCode;

/// Types of actions that the board performs, a bit each.
pub(crate) const ACTION_TYPES: u32 = 0x07ff;

const LIMITS: ActionLimits = ActionLimits {
    types: ACTION_TYPES,
    ports: PORTS as u16,
    actions: SLOTS,
};

/// Checks an action list. Returns the slots that hold it.
pub(crate) fn check_actions(
    list: &[u8],
    packet_out: bool,
) -> Result<[u8; ACTION_BYTES], ErrorCode> {
    let mut slots = [0; ACTION_BYTES];
    let actions = LIMITS.split(list, packet_out)?;
    for (slot, action) in slots.chunks_exact_mut(SLOT_BYTES).zip(actions) {
        slot[..action.len()].copy_from_slice(action);
    }
    Ok(slots)
}

/// The memory of the table.
#[derive(Debug)]
pub(super) struct EntryMemory {
    pub(super) pool: BlockPool,
    /// Entries that fit.
    pub(super) capacity: usize,
    /// The count of entries has fallen to -1 (quirk 52).
    pub(super) underflowed: bool,
}

impl EntryMemory {
    pub(super) fn view(&self, entry: &FlowEntry<EntryBlocks>) -> EntryView<'_> {
        EntryView {
            head: self.pool.read(entry.held.head, FLOW_MOD_BYTES),
            slots: self.pool.read(entry.held.slots, ACTION_BYTES),
            memory: self.pool.read_on(entry.held.slots),
            packets: entry.packets,
            bytes: entry.bytes as i64,
            installed: Instant::from_nanos(entry.installed_ns),
        }
    }

    pub(super) fn removed_flow(&self, entry: &FlowEntry<EntryBlocks>) -> RemovedFlow {
        let mut head = [0; FLOW_MOD_BYTES];
        head.copy_from_slice(self.pool.read(entry.held.head, FLOW_MOD_BYTES));
        RemovedFlow {
            head,
            packets: entry.packets,
            bytes: entry.bytes as i64,
            installed: Instant::from_nanos(entry.installed_ns),
        }
    }

    /// Returns whether the count of entries was -1, and sets it to 0: the entry to be added is lost. The firmware writes in
    /// front of its tables; what that destroys is unknown.
    pub(super) fn take_underflow(&mut self) -> bool {
        std::mem::take(&mut self.underflowed)
    }
}

impl Backing for EntryMemory {
    type Actions = [u8; ACTION_BYTES];
    type Held = EntryBlocks;

    fn read(&self, list: &[u8], _: &Match) -> Result<Self::Actions, ErrorCode> {
        check_actions(list, false)
    }

    /// The entry that is replaced leaves its memory to the new one.
    fn install(
        &mut self,
        head: &[u8],
        actions: Self::Actions,
        entries: &[FlowEntry<EntryBlocks>],
        replaced: Option<usize>,
        _: u64,
    ) -> Result<Option<EntryBlocks>, ErrorCode> {
        if self.take_underflow() {
            return Ok(None);
        }
        let mut blocks = match replaced {
            Some(index) => entries[index].held,
            None if entries.len() >= self.capacity => return Err(error::ALL_TABLES_FULL),
            None => EntryBlocks::take(&mut self.pool).ok_or(error::ALL_TABLES_FULL)?,
        };
        self.pool.write(blocks.head, 0, head);
        self.pool.write(blocks.slots, 0, &actions);
        blocks.actions = Actions::read(&actions);
        Ok(Some(blocks))
    }

    fn change(
        &mut self,
        entries: &mut [FlowEntry<EntryBlocks>],
        changes: Vec<(usize, Self::Actions)>,
    ) -> Result<(), ErrorCode> {
        for (index, actions) in changes {
            let held = &mut entries[index].held;
            self.pool.write(held.slots, 0, &actions);
            held.actions = Actions::read(&actions);
        }
        Ok(())
    }

    fn release(&mut self, gone: &FlowEntry<EntryBlocks>, _: u64) {
        self.pool.free(gone.held.head);
        self.pool.free(gone.held.slots);
    }

    fn sends_to(&self, held: &EntryBlocks, port: u16) -> bool {
        let slots = self.pool.read(held.slots, ACTION_BYTES);
        slots.chunks_exact(SLOT_BYTES).any(|slot| {
            be16(slot, 2) != 0 && be16(slot, 0) == action::OUTPUT && be16(slot, 4) == port
        })
    }
}

impl EntryBlocks {
    fn take(pool: &mut BlockPool) -> Option<Self> {
        let head = pool.take(FLOW_MOD_BYTES)?;
        let Some(slots) = pool.take(ACTION_BYTES) else {
            pool.free(head);
            return None;
        };
        Some(Self::new(head, slots))
    }
}

impl FlowTable {
    /// Returns the entries that a request for statistics means.
    pub(crate) fn chosen(
        &self,
        fields: &Match,
        out_port: u16,
    ) -> impl Iterator<Item = EntryView<'_>> {
        let chosen = self
            .table
            .chosen(&self.memory, fields.normalised(), out_port);
        chosen.map(|entry| self.memory.view(entry))
    }

    /// Removes all entries whose own timeouts are over.
    pub(super) fn spec_expire(&mut self, now: Instant) -> Vec<Expired> {
        let gone = self.table.expire(&mut self.memory, now.as_nanos());
        let expired = gone.iter().filter_map(|entry| {
            Some(Expired {
                flow: self.memory.removed_flow(entry),
                reason: entry.overdue(now.as_nanos())?,
                wants_flow_removed: entry.request.wants_flow_removed(),
                another_lost: false,
            })
        });
        let expired = expired.collect();
        self.rebuild();
        expired
    }

    /// Searches for a frame with these fields, of `bytes` bytes, and counts it.
    pub(crate) fn spec_lookup(&mut self, fields: &Match, bytes: usize, now: Instant) -> Found {
        let opens_arp = self.quirks.has(Quirk::ArpFieldsUnmatched);
        let index = self.table.find(|entry| {
            let mut wanted = entry.request.fields;
            if opens_arp {
                open_arp_fields(&mut wanted);
            }
            wanted.agrees(fields)
        });
        match index {
            Some(index) => self.record_match(index, bytes, now),
            None => self.count_lookup(),
        }
        self.search.all_examined(index)
    }
}

/// Opens operation and addresses of a match of ARP.
fn open_arp_fields(fields: &mut Match) {
    if fields.wildcards & wildcards::DL_TYPE == 0 && fields.dl_type == ARP {
        fields.wildcards |=
            wildcards::NW_PROTO | 0x3f << wildcards::NW_SRC_SHIFT | 0x3f << wildcards::NW_DST_SHIFT;
    }
}
