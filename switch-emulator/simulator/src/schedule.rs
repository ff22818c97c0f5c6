//! Event schedule: a fixed set of timers, ordered by (instant, order of arming).
//!
//! Each event source has one pending instant: a board's next work, the head of a link, the next release of a source. A
//! winner tree over those slots needs no allocation and touches one cache line a level, where a general event queue
//! would push and pop an element for each frame.

use crate::prefetch::prefetch;

/// Where a timer is: its index below the count given to [`Schedule::new`].
pub(crate) type Slot = u32;

/// Event of a timer. It is returned when the timer fires, which saves a lookup.
pub(crate) type Tag = u32;

/// Bits of what tells timers of a kind apart.
pub(crate) const INDEX_BITS: u32 = 20;
/// As many timers as that tells apart.
pub(crate) const MOST_TIMERS: usize = 1 << INDEX_BITS;
/// Bits of a tag: there are up to eight kinds.
const TAG_BITS: u32 = INDEX_BITS + 3;
/// Enough for days of arming.
const SEQUENCE_BITS: u32 = u64::BITS - TAG_BITS;
/// A timer that is not armed; later than every armed one.
const IDLE: u128 = u128::MAX;
/// The instant of a timer that is not armed.
const NEVER_NS: u64 = u64::MAX;

/// Children of a node: their keys fill a line of the processor's cache.
const CHILDREN: usize = 4;

/// The keys of the children of a node.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Node([u128; CHILDREN]);

impl Node {
    /// Returns the least of all keys but one.
    #[inline(always)]
    fn least_beside(&self, child: usize) -> u128 {
        let other = |step| self.0[(child + step) % CHILDREN];
        other(1).min(other(2)).min(other(3))
    }
}

/// Timers ordered by instant; those of the same instant fire in the order in which they were armed.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// A complete tree: the root, then its children's nodes, and so on to those of the timers. A node's key is the least of
    /// its children's; a key is (instant, sequence number, tag) from high to low bits.
    nodes: Box<[Node]>,
    /// The node of the first timers.
    first_leaf: usize,
    /// The instant and tag of the root's key: read as they were written, each by itself.
    first: (u64, Tag),
    sequence: u64,
}

impl Schedule {
    /// `timers` timers, none armed.
    pub(crate) fn new(timers: usize) -> Self {
        let (mut first_leaf, mut leaves) = (0, 1);
        while leaves * CHILDREN < timers {
            first_leaf += leaves;
            leaves *= CHILDREN;
        }
        Self {
            nodes: vec![Node([IDLE; CHILDREN]); first_leaf + leaves].into(),
            first_leaf,
            first: (NEVER_NS, 0),
            sequence: 0,
        }
    }

    /// Arms the timer at `slot` to fire at `at_ns`, in place of what it was armed to before; `None` disarms it.
    #[inline(always)]
    pub(crate) fn arm(&mut self, slot: Slot, tag: Tag, at_ns: Option<u64>) {
        let mut key = match at_ns {
            Some(at_ns) => {
                self.sequence += 1;
                (u128::from(at_ns) << (TAG_BITS + SEQUENCE_BITS))
                    | (u128::from(self.sequence) << TAG_BITS)
                    | u128::from(tag)
            }
            None => IDLE,
        };
        let mut child = slot as usize % CHILDREN;
        let mut place = self.first_leaf + slot as usize / CHILDREN;
        loop {
            let node = &mut self.nodes[place];
            // The other levels do not depend on the key, so the processor can look at all levels at once.
            let others = node.least_beside(child);
            node.0[child] = key;
            key = key.min(others);
            if place == 0 {
                break;
            }
            child = (place - 1) % CHILDREN;
            place = (place - 1) / CHILDREN;
            if self.nodes[place].0[child] == key {
                return; // the least is what it was: nothing above changes
            }
        }
        let tag = key as Tag & ((1 << TAG_BITS) - 1);
        self.first = ((key >> (TAG_BITS + SEQUENCE_BITS)) as u64, tag);
    }

    /// Prefetches what arming the timer at `slot` touches.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: Slot) {
        let mut place = self.first_leaf + slot as usize / CHILDREN;
        for _ in 0..2 {
            prefetch(self.nodes[place].0[0] as u64);
            place = place.saturating_sub(1) / CHILDREN;
        }
    }

    /// Returns when the first timer fires, and what it stands for. It stays armed.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, Tag)> {
        (self.first.0 != NEVER_NS).then_some(self.first)
    }
}

#[cfg(test)]
mod tests;
