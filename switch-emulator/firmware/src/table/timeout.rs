//! Flow timeouts, as broken as the firmware has them (quirks 51 and 52); `spec.rs` has those of the specification.
//!
//! The firmware compares ages not with the timeouts of an entry but with the addresses at which they are stored. So
//! the thresholds depend on where an entry's block lies and on how the firmware was linked: at least 512 s without a
//! frame, and 1024 s of age for most layouts.

use super::{field, FlowTable, RemovedFlow};
use crate::quirks::Quirk;
use crate::time::Instant;
use openflow::FlowRemovedReason;

/// An entry that has expired.
#[derive(Debug)]
pub(crate) struct Expired {
    pub(crate) flow: RemovedFlow,
    pub(crate) reason: FlowRemovedReason,
    /// Whether the controller is told.
    pub(crate) wants_flow_removed: bool,
    /// Whether another entry vanished with it.
    pub(crate) another_lost: bool,
}

/// Seconds that an address stands for: its two low bytes, exchanged.
const fn threshold_s(address: u32) -> u32 {
    (address & 0xff) * 256 + (address >> 8 & 0xff)
}

impl FlowTable {
    /// Removes what has expired at `now`, by the time of the agent: on the board at most one, the first in table order.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Expired> {
        if self.quirks.has(Quirk::TimeoutsByAddress) {
            self.expire_by_address(now).into_iter().collect()
        } else {
            self.spec_expire(now)
        }
    }

    fn expire_by_address(&mut self, now: Instant) -> Option<Expired> {
        let (index, reason) =
            self.table
                .entries()
                .iter()
                .enumerate()
                .find_map(|(index, entry)| {
                    let address = self.address(entry.held.head);
                    let is_over = |since_ns: u64, at: usize| {
                        now.saturating_since(Instant::from_nanos(since_ns))
                            .whole_seconds()
                            >= threshold_s(address + at as u32)
                    };
                    if is_over(entry.matched_ns, field::IDLE_TIMEOUT) {
                        Some((index, FlowRemovedReason::Idle))
                    } else if is_over(entry.installed_ns, field::HARD_TIMEOUT) {
                        Some((index, FlowRemovedReason::Hard))
                    } else {
                        None
                    }
                })?;
        let flow = self.removed_flow(index);
        let wants_flow_removed = if reason == FlowRemovedReason::Idle {
            flow.wants_flow_removed()
        } else {
            // By a slip like the one above, the firmware tests the lowest bit of the flags' address in network byte order.
            let address = self.address(self.table.entries()[index].held.head) + field::FLAGS as u32;
            address >> 8 & 1 != 0
        };
        let another_lost = self.remove_two(index);
        self.rebuild();
        Some(Expired {
            flow,
            reason,
            wants_flow_removed,
            another_lost,
        })
    }

    /// Removes an entry and, as the firmware does by mistake, the one that is then the last. Returns whether there was
    /// one.
    fn remove_two(&mut self, index: usize) -> bool {
        let removed = self.table.entries_mut().swap_remove(index);
        self.memory.pool.free(removed.held.head);
        self.memory.pool.free(removed.held.slots);
        if let Some(moved) = self.table.entries().get(index) {
            self.slot_addresses[index] = self.address(moved.held.slots);
        }
        let lost = self.table.entries_mut().pop();
        // Its memory stays taken.
        self.inherited = lost
            .as_ref()
            .map(|entry| (self.table.entries().len(), entry.packets, entry.bytes));
        self.memory.underflowed = lost.is_none();
        lost.is_some()
    }
}
