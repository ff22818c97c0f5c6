//! `FLOW_MOD`: what it does to the table.

use super::message::{FlowMod, Outcome, RemovedFlow};
use super::{field, EntryBlocks, FlowTable, ACTION_BYTES, FLOW_MOD_BYTES};
use crate::actions::{SLOTS, SLOT_BYTES};
use crate::block_pool::PoolBlock;
use crate::matching::{selects, EVERYTHING};
use crate::quirks::Quirk;
use crate::time::Instant;
use of_switch::v1_0::{FlowEntry, FlowRequest};
use openflow::bytes::be16;
use openflow::v1_0::{action, error, port, Match, MATCH_BYTES};
use openflow::ErrorCode;

/// Copies a message's actions into slots, one entry after the other.
struct ActionCopier<'a> {
    message: FlowMod<'a>,
    at: usize,
    /// Sum of the lengths of the actions read.
    read_bytes: usize,
}

impl<'a> ActionCopier<'a> {
    const fn new(message: FlowMod<'a>) -> Self {
        Self {
            message,
            at: FLOW_MOD_BYTES,
            read_bytes: 0,
        }
    }

    /// The next action and what lies behind it, if there is one, and its length. The list is over when the lengths that
    /// were read add up to its own. A length other than 8 or 16 counts, but is not stepped over.
    fn next(&mut self) -> Option<(&'a [u8], usize)> {
        if self.read_bytes >= self.message.length.saturating_sub(FLOW_MOD_BYTES) {
            return None;
        }
        let action = self.message.bytes.get(self.at..).unwrap_or(&[]);
        let length = usize::from(be16(action, 2));
        self.read_bytes += length;
        if matches!(length, 8 | 16) {
            self.at += length;
        }
        Some((action, length))
    }

    /// Actions that an entry takes from the message.
    fn count(mut self) -> usize {
        (0..SLOTS).map_while(|_| self.next()).count()
    }

    /// Fills the slots of one entry from where the last entry's ended. A length other than 8 or 16 is copied as it is
    /// and spills over the slots behind.
    fn fill(&mut self, table: &mut FlowTable, slots: PoolBlock) -> Result<(), ErrorCode> {
        for slot in 0..SLOTS {
            let Some((action, length)) = self.next() else {
                break;
            };
            let (kind, argument) = (be16(action, 0), be16(action, 4));
            if kind == action::OUTPUT && argument == port::NORMAL {
                return Err(error::BAD_OUT_PORT);
            }
            let offset = slot * SLOT_BYTES;
            table
                .memory
                .pool
                .write(slots, offset, &action[..length.min(action.len())]);
            if kind == action::SET_VLAN_VID && argument == 0 {
                table
                    .memory
                    .pool
                    .write(slots, offset, &action::STRIP_VLAN.to_be_bytes());
            }
        }
        Ok(())
    }
}

impl FlowTable {
    /// Carries out a `FLOW_MOD`; `now` by the time of the agent.
    pub(crate) fn flow_mod(&mut self, message: FlowMod, now: Instant) -> Outcome {
        if !self.quirks.has(Quirk::BrokenFlowMods) {
            return self.spec(message, now);
        }
        let mut gone = Vec::new();
        let mut lost_actions = 0;
        let mut visited = self.table.entries().len();
        // Only the low byte of the command counts, and unknown commands do nothing.
        let (matched, added, done) = match message.command() {
            0 => (0, true, self.add(message, now)),
            1 => {
                let fields = message.fields();
                let selected = |head: &[u8]| selects(&fields, &Match::read(&head[field::MATCH..]));
                let (matched, done) = self.modify(message, now, selected);
                (matched, matched > 0, done)
            }
            2 => {
                let (matched, done) = self.modify(message, now, |head| {
                    same_match(head, message.head())
                        && be16(head, field::PRIORITY) == be16(message.head(), field::PRIORITY)
                });
                (matched, matched > 0, done)
            }
            3 => {
                (gone, lost_actions) = self.delete(message);
                (gone.len(), false, Ok(()))
            }
            4 => {
                (gone, visited) = self.delete_strict(message);
                (gone.len(), false, Ok(()))
            }
            _ => (0, false, Ok(())),
        };
        let mut cost_ps = self.searching_ps(message, matched, visited);
        if added {
            cost_ps += self.adding_ps(message);
        }
        if done.is_err() {
            cost_ps += self.costs.control().flow_refused_ps;
        }
        self.rebuild();
        Outcome {
            done: done.map(|()| gone),
            cost_ps,
            lost_actions,
        }
    }

    /// Cost of a MODIFY or DELETE that visits `visited` entries and selects `matched` of them.
    fn searching_ps(&self, message: FlowMod, matched: usize, visited: usize) -> i64 {
        let costs = self.costs.control();
        let everything = message.fields().wildcards == EVERYTHING;
        let (fixed_ps, hit_ps, miss_ps) = match message.command() {
            1 if everything => (costs.flow_modify_ps, costs.modify_everything_hit_ps, 0),
            1 => (
                costs.flow_modify_ps,
                costs.modify_hit_ps,
                costs.modify_miss_ps,
            ),
            2 => (
                costs.flow_modify_ps,
                costs.modify_strict_hit_ps,
                costs.modify_strict_miss_ps,
            ),
            3 if everything => (costs.flow_delete_ps, costs.delete_everything_hit_ps, 0),
            3 => (
                costs.flow_delete_ps,
                costs.delete_hit_ps,
                costs.delete_miss_ps,
            ),
            4 => (
                costs.flow_delete_ps,
                costs.delete_strict_hit_ps,
                costs.delete_strict_miss_ps,
            ),
            _ => return 0,
        };
        fixed_ps + hit_ps * matched as i64 + miss_ps * (visited - matched) as i64
    }

    /// Carries out a `FLOW_MOD` as the specification asks. Its cost is an assumption: that of the firmware's, if that
    /// visited all entries, and selected and added as many.
    fn spec(&mut self, message: FlowMod, now: Instant) -> Outcome {
        let visited = self.table.entries().len();
        let (head, actions) = (message.head(), message.actions());
        let done = self
            .table
            .flow_mod(&mut self.memory, head, actions, now.as_nanos());
        let selected = done.as_ref().map_or(0, |done| done.selected);
        let mut cost_ps = self.searching_ps(message, selected, visited);
        if selected == 0 && message.command() < 3 {
            cost_ps += self.adding_ps(message);
        }
        if done.is_err() {
            cost_ps += self.costs.control().flow_refused_ps;
        }
        let removed = |entry| self.memory.removed_flow(&entry);
        let done = done.map(|done| done.gone.into_iter().map(removed).collect());
        self.rebuild();
        Outcome {
            done,
            cost_ps,
            lost_actions: 0,
        }
    }

    /// Returns the cost of appending an entry: it grows with the actions and not with the entries.
    fn adding_ps(&self, message: FlowMod) -> i64 {
        let costs = self.costs.control();
        let actions = ActionCopier::new(message).count();
        costs.flow_add_ps + costs.flow_action_ps * actions as i64
    }

    /// Appends an entry, even if there is one like it. Refused actions leave the memory taken.
    fn add(&mut self, message: FlowMod, now: Instant) -> Result<(), ErrorCode> {
        if self.memory.take_underflow() {
            return Ok(());
        }
        if self.table.entries().len() >= self.memory.capacity {
            return Err(error::ALL_TABLES_FULL);
        }
        let head = self
            .memory
            .pool
            .take(FLOW_MOD_BYTES)
            .ok_or(error::ALL_TABLES_FULL)?;
        let slots = self
            .memory
            .pool
            .take(ACTION_BYTES)
            .ok_or(error::ALL_TABLES_FULL)?;
        self.memory.pool.write(head, 0, message.head());
        ActionCopier::new(message).fill(self, slots)?;
        let index = self.table.entries().len();
        self.slot_addresses[index] = self.address(slots);
        let request = FlowRequest::read(message.head());
        let mut entry = FlowEntry::new(request, EntryBlocks::new(head, slots), now.as_nanos());
        if let Some((place, packets, bytes)) = self.inherited.take() {
            if place == index {
                (entry.packets, entry.bytes) = (packets, bytes);
            }
        }
        self.table.entries_mut().push(entry);
        Ok(())
    }

    /// Returns the first selected entry the new actions, and further ones what is left of them; then, if any was
    /// selected, appends the message as a new entry too.
    fn modify(
        &mut self,
        message: FlowMod,
        now: Instant,
        selected: impl Fn(&[u8]) -> bool,
    ) -> (usize, Result<(), ErrorCode>) {
        let mut copier = ActionCopier::new(message);
        let mut matched = 0;
        for index in 0..self.table.entries().len() {
            if selected(self.head(&self.table.entries()[index])) {
                matched += 1;
                let slots = self.table.entries()[index].held.slots;
                if let Err(refusal) = copier.fill(self, slots) {
                    return (matched, Err(refusal));
                }
            }
        }
        if matched > 0 {
            (matched, self.add(message, now))
        } else {
            (matched, Ok(()))
        }
    }

    /// Removes all selected entries. Returns them in order, and how many entries have moved into a gap. The memory of
    /// removed entries stays taken.
    fn delete(&mut self, message: FlowMod) -> (Vec<RemovedFlow>, usize) {
        let wanted = message.fields();
        let mut gone = Vec::new();
        let mut moved = vec![false; self.table.entries().len()];
        let mut index = 0;
        while index < self.table.entries().len() {
            let fields = Match::read(&self.head(&self.table.entries()[index])[field::MATCH..]);
            if selects(&wanted, &fields) {
                gone.push(self.removed_flow(index));
                self.remove_and_leak(index);
                moved[index] = true;
            } else {
                index += 1;
            }
        }
        let moved = moved[..self.table.entries().len()]
            .iter()
            .filter(|moved| **moved);
        (gone, moved.count())
    }

    /// Moves the last entry into the place of the one removed, which keeps its memory. The moved entry loses its actions:
    /// the firmware copies addresses in their place (quirk 46). Then it clears the slots of the last place, whichever entry
    /// was removed (quirk 190).
    fn remove_and_leak(&mut self, index: usize) {
        let last = self.table.entries().len() - 1;
        let last_slots = self.table.entries()[last].held.slots;
        let removed = self.table.entries_mut().swap_remove(index);
        let mut addresses = [0; ACTION_BYTES];
        for (bytes, address) in addresses
            .chunks_exact_mut(4)
            .zip(&self.slot_addresses[last..])
        {
            bytes.copy_from_slice(&address.to_le_bytes());
        }
        self.memory.pool.write(removed.held.slots, 0, &addresses);
        self.memory.pool.write(last_slots, 0, &[0; ACTION_BYTES]);
        if index < last {
            let head = self.removed_flow(index).head;
            self.memory.pool.write(removed.held.head, 0, &head);
            let moved = &mut self.table.entries_mut()[index];
            (moved.held.head, moved.held.slots) = (removed.held.head, removed.held.slots);
        }
    }

    /// Removes the entries with the same match and, in place of the priority, the same cookie. Returns them in order,
    /// and how many entries were looked at: what moves into a gap is not.
    fn delete_strict(&mut self, message: FlowMod) -> (Vec<RemovedFlow>, usize) {
        let mut gone = Vec::new();
        let mut index = 0;
        while index < self.table.entries().len() {
            let head = self.head(&self.table.entries()[index]);
            let cookie = field::COOKIE..field::COOKIE + 8;
            if same_match(head, message.head()) && head[cookie.clone()] == message.head()[cookie] {
                gone.push(self.removed_flow(index));
                let removed = self.table.entries_mut().swap_remove(index);
                self.memory.pool.free(removed.held.head);
                self.memory.pool.free(removed.held.slots);
                if let Some(moved) = self.table.entries().get(index) {
                    self.slot_addresses[index] = self.address(moved.held.slots);
                }
            }
            index += 1;
        }
        (gone, index)
    }

    pub(super) fn removed_flow(&self, index: usize) -> RemovedFlow {
        self.memory.removed_flow(&self.table.entries()[index])
    }
}

pub(super) fn same_match(head: &[u8], other: &[u8]) -> bool {
    let bytes = field::MATCH..field::MATCH + MATCH_BYTES;
    head[bytes.clone()] == other[bytes]
}
