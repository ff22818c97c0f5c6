//! What happens next: a fixed set of timers, ordered by (instant, order of arming).
//!
//! Nearly everything that can happen in the network has one pending instant: a board's next work, the head
//! of a link, the next release of a source. A winner tree over those few slots needs no allocation and one
//! comparison a level, where a general event queue would push and pop an element for each frame.

/// Identifies a timer: its index below the count given to [`Schedule::new`].
pub(crate) type Slot = u32;

const SLOT_BITS: u32 = 20;
const SEQUENCE_BITS: u32 = 44;
/// As many timers as slots can tell apart.
pub(crate) const MOST_TIMERS: usize = 1 << SLOT_BITS;
/// A timer that is not armed; later than every armed one.
const IDLE: u128 = u128::MAX;

/// Timers ordered by instant; those of the same instant fire in the order in which they were armed.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// A complete binary tree: children of `i` at `2i` and `2i + 1`, the root at 1, the leaves last. A node
    /// is the smaller of its children; a key is (instant, sequence number, slot) from high to low bits.
    nodes: Vec<u128>,
    leaves: usize,
    sequence: u64,
}

impl Schedule {
    /// `timers` timers, none armed.
    pub(crate) fn new(timers: usize) -> Self {
        assert!(timers <= MOST_TIMERS, "the builder counts them");
        let leaves = timers.next_power_of_two().max(2);
        Self {
            nodes: vec![IDLE; 2 * leaves],
            leaves,
            sequence: 0,
        }
    }

    /// Arms `slot` to fire at `at_ns`, in place of what it was armed to before; `None` disarms it.
    pub(crate) fn arm(&mut self, slot: Slot, at_ns: Option<u64>) {
        let key = match at_ns {
            Some(at_ns) => {
                self.sequence += 1;
                (u128::from(at_ns) << (SLOT_BITS + SEQUENCE_BITS))
                    | (u128::from(self.sequence) << SLOT_BITS)
                    | u128::from(slot)
            }
            None => IDLE,
        };
        let mut node = self.leaves + slot as usize;
        let mut least = key;
        self.nodes[node] = key;
        while node > 1 {
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = least;
        }
    }

    /// The timer that fires first and its instant. It stays armed.
    pub(crate) fn first(&self) -> Option<(u64, Slot)> {
        let key = self.nodes[1];
        let slot = key & (MOST_TIMERS as u128 - 1);
        (key != IDLE).then_some(((key >> (SLOT_BITS + SEQUENCE_BITS)) as u64, slot as Slot))
    }
}

#[cfg(test)]
mod tests;
