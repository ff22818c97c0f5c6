//! Hierarchical token bucket, as the documentation of Linux' `htb` describes it.
//!
//! A class has two buckets: `rate` with `burst`, and `ceil` with `cburst`. While both hold tokens it may send; while
//! only the second does it may borrow from its parent, if that may send or borrow in turn; else it waits. A frame
//! may be sent while a bucket's level is not below zero, and lowers it by the frame's length, if need be below zero. Each
//! class from its own to the root pays with tokens of `ceil`, and each one from the lender up also with tokens of `rate`.
//!
//! Classes that need not borrow go first, then those that borrow from the fewest levels up; among these the lower
//! `priority` goes first; then classes take turns, `quantum` bytes each. Lengths count from the Ethernet header on, without
//! frame check sequence.
//!
//! *Groups*: a class sleeps when it may no longer send, and after every `group_frames` frames unless it can pay for as many
//! more. It wakes when it can pay for `group_frames` frames as long as its first one, or when its buckets are full. It is
//! woken by the arrival of a frame, by the wire becoming free, or by a timer, which fires `timer_ns` after the instant that
//! it was set for.

use super::config::HtbConfig;
use super::credit::Credit;
use super::leaf::LeafQueue;
use super::{Discipline, DropCounters, QueuedFrame};

#[derive(Debug)]
struct HtbClass {
    parent: Option<usize>,
    rate: Credit,
    ceil: Credit,
    /// Only if the class is a leaf.
    leaf: Option<Leaf>,
}

#[derive(Debug)]
struct Leaf {
    number: u32,
    queue: LeafQueue,
    priority: u8,
    quantum_bytes: i128,
    /// How many bytes are left of its turn, for each number of levels up that it can borrow from.
    deficits: Vec<i128>,
    asleep: bool,
    /// Frames of the current group that it has sent.
    taken: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Htb {
    classes: Vec<HtbClass>,
    /// Indices of the leaves in `classes`.
    leaves: Vec<usize>,
    /// Whose turn it is, as an index in `leaves`, for each number of levels up that is borrowed from and each priority.
    turns: Vec<[usize; PRIORITIES]>,
    group_frames: u64,
    timer_ns: u64,
    wake_ns: Option<u64>,
}

const PRIORITIES: usize = 8;

impl Htb {
    /// # Errors
    /// Fault in the settings, and how to mend it.
    pub(super) fn new(config: &HtbConfig) -> Result<Self, String> {
        let parents = config.parents()?;
        let mut depths: Vec<usize> = Vec::new();
        for parent in &parents {
            depths.push(parent.map_or(1, |place| depths[place] + 1));
        }
        let levels = depths.iter().copied().max().unwrap_or(1);
        let classes: Vec<HtbClass> = config
            .classes
            .iter()
            .enumerate()
            .map(|(place, class)| HtbClass {
                parent: parents[place],
                rate: Credit::new(class.rate_bps, class.burst_bytes),
                ceil: Credit::new(class.ceil_bps, class.cburst_bytes),
                leaf: (!parents.contains(&Some(place))).then(|| {
                    let quantum_bytes = i128::from(class.quantum_bytes);
                    Leaf {
                        number: class.queue,
                        queue: LeafQueue::new(class.limit_frames, class.drops),
                        priority: class.priority,
                        quantum_bytes,
                        deficits: vec![quantum_bytes; levels],
                        asleep: false,
                        taken: 0,
                    }
                }),
            })
            .collect();
        Ok(Self {
            leaves: (0..classes.len())
                .filter(|place| classes[*place].leaf.is_some())
                .collect(),
            classes,
            turns: vec![[0; PRIORITIES]; levels],
            group_frames: config.group_frames,
            timer_ns: config.timer_ns,
            wake_ns: None,
        })
    }

    fn leaf(&mut self, place: usize) -> &mut Leaf {
        let leaf = self.classes[place].leaf.as_mut();
        leaf.expect("`leaves` holds places of leaves alone")
    }

    /// From how many levels up the class at `place` must borrow to send at `now_ns`: 0 if it need not, or `None` if it
    /// may not send. Its own buckets must hold at least `spare_bytes`, instead of being not below zero.
    fn level(&self, place: usize, now_ns: u64, spare_bytes: u64) -> Option<usize> {
        let (mut at, mut level, mut spare_bytes) = (place, 0, spare_bytes);
        loop {
            let class = &self.classes[at];
            if !class.ceil.holds(now_ns, spare_bytes) {
                return None;
            }
            if class.rate.holds(now_ns, spare_bytes) {
                return Some(level);
            }
            (at, level, spare_bytes) = (class.parent?, level + 1, 0);
        }
    }

    /// The first instant when [`Self::level`] may allow the class to send.
    fn level_at(&self, place: usize, now_ns: u64, spare_bytes: u64) -> Option<u64> {
        let (mut at, mut spare_bytes) = (place, spare_bytes);
        let mut earliest_ns = now_ns;
        let mut found: Option<u64> = None;
        loop {
            let class = &self.classes[at];
            let Some(ceil_ns) = class.ceil.holds_at(now_ns, spare_bytes) else {
                return found;
            };
            earliest_ns = earliest_ns.max(ceil_ns);
            if let Some(rate_ns) = class.rate.holds_at(now_ns, spare_bytes) {
                let here_ns = earliest_ns.max(rate_ns);
                found = Some(found.map_or(here_ns, |found_ns| found_ns.min(here_ns)));
            }
            match class.parent {
                None => return found,
                Some(parent) => (at, spare_bytes) = (parent, 0),
            }
        }
    }

    /// The earliest instant at which a frame that comes now to the class at `place` can leave, after the backlog before it.
    fn soonest_ns(&self, place: usize, now_ns: u64) -> Option<u64> {
        let leaf = self.classes[place].leaf.as_ref();
        let queue = leaf
            .map(|leaf| &leaf.queue)
            .filter(|queue| queue.has_deadline());
        let Some(before_bytes) = queue.map(LeafQueue::bytes) else {
            return Some(now_ns);
        };
        let (mut at, mut soonest_ns) = (Some(place), now_ns);
        while let Some(here) = at {
            let class = &self.classes[here];
            soonest_ns = soonest_ns.max(class.ceil.earned_at(now_ns, before_bytes)?);
            at = class.parent;
        }
        Some(soonest_ns)
    }

    /// Returns the tokens that a sleeping class must hold to wake: those of a group of frames as long as its first one,
    /// less one frame.
    fn spare_bytes(&self, place: usize) -> u64 {
        let leaf = self.classes[place].leaf.as_ref();
        (self.group_frames - 1) * leaf.map_or(0, |leaf| leaf.queue.head_bytes())
    }

    /// Wakes the classes that can pay. Returns each backlogged leaf that may send, as an index in `leaves`, and from
    /// how many levels up it borrows.
    fn candidates(&mut self, now_ns: u64) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for turn in 0..self.leaves.len() {
            let place = self.leaves[turn];
            let (asleep, backlogged) = {
                let leaf = self.leaf(place);
                leaf.queue.expire(now_ns);
                (leaf.asleep, !leaf.queue.is_empty())
            };
            if !backlogged {
                continue;
            }
            let spare_bytes = if asleep { self.spare_bytes(place) } else { 0 };
            let level = self.level(place, now_ns, spare_bytes);
            self.leaf(place).asleep = level.is_none();
            found.extend(level.map(|level| (turn, level)));
        }
        found
    }

    /// Whose turn it is, as an index in `leaves`, and from how many levels up it borrows.
    fn choose(&mut self, now_ns: u64) -> Option<(usize, usize)> {
        let candidates = self.candidates(now_ns);
        let level = candidates.iter().map(|(_, level)| *level).min()?;
        let of_level = || candidates.iter().filter(|(_, its)| *its == level);
        let priority_of = |turn: usize| {
            let leaf = self.classes[self.leaves[turn]].leaf.as_ref();
            leaf.map_or(u8::MAX, |leaf| leaf.priority)
        };
        let priority = of_level().map(|(turn, _)| priority_of(*turn)).min()?;
        let next = self.turns[level][usize::from(priority)];
        let count = self.leaves.len();
        of_level()
            .map(|(turn, _)| *turn)
            .filter(|turn| priority_of(*turn) == priority)
            .min_by_key(|turn| (turn + count - next) % count)
            .map(|turn| (turn, level))
    }

    /// The class at `place` has sent `bytes`, borrowing from `level` levels up: takes the tokens.
    fn charge(&mut self, now_ns: u64, place: usize, level: usize, bytes: u64) {
        let (mut at, mut height) = (Some(place), 0);
        while let Some(here) = at {
            let class = &mut self.classes[here];
            if height >= level {
                class.rate.take(now_ns, bytes);
            }
            class.ceil.take(now_ns, bytes);
            (at, height) = (class.parent, height + 1);
        }
    }

    /// Sets the timer for the class that can wake first.
    fn set_timer(&mut self, now_ns: u64) {
        let backlogged = |place: &usize| {
            let leaf = self.classes[*place].leaf.as_ref();
            leaf.is_some_and(|leaf| !leaf.queue.is_empty())
        };
        let due_ns = self
            .leaves
            .iter()
            .copied()
            .filter(backlogged)
            .filter_map(|place| self.level_at(place, now_ns, self.spare_bytes(place)))
            .min();
        self.wake_ns = due_ns.map(|due_ns| due_ns.saturating_add(self.timer_ns));
    }
}

impl Discipline for Htb {
    fn enqueue(&mut self, now_ns: u64, queue: u32, frame: QueuedFrame) {
        let named = self.leaves.iter().copied().find(|place| {
            let leaf = self.classes[*place].leaf.as_ref();
            leaf.is_some_and(|leaf| leaf.number == queue)
        });
        let place = named.unwrap_or(self.leaves[0]);
        self.leaf(place).queue.expire(now_ns);
        let soonest_ns = self.soonest_ns(place, now_ns);
        self.leaf(place).queue.push(now_ns, frame, soonest_ns);
    }

    fn dequeue(&mut self, now_ns: u64) -> Option<QueuedFrame> {
        let Some((turn, level)) = self.choose(now_ns) else {
            self.set_timer(now_ns);
            return None;
        };
        let (place, count) = (self.leaves[turn], self.leaves.len());
        let leaf = self.leaf(place);
        let frame = leaf.queue.pop(now_ns)?;
        let bytes = frame.frame_bytes();
        leaf.deficits[level] -= i128::from(bytes);
        let done = leaf.deficits[level] < 0;
        let priority = usize::from(leaf.priority);
        if done {
            leaf.deficits[level] += leaf.quantum_bytes;
        }
        self.turns[level][priority] = if done { (turn + 1) % count } else { turn };
        self.charge(now_ns, place, level, bytes);
        let group_frames = self.group_frames;
        let leaf = self.leaf(place);
        leaf.taken += 1;
        let group_ends = leaf.taken >= group_frames || leaf.queue.is_empty();
        if group_ends {
            leaf.taken = 0;
        }
        let spare_bytes = if group_ends {
            self.spare_bytes(place)
        } else {
            0
        };
        let sleeps = self.level(place, now_ns, spare_bytes).is_none();
        let leaf = self.leaf(place);
        leaf.asleep = sleeps;
        if sleeps {
            leaf.taken = 0;
        }
        Some(frame)
    }

    fn wake_ns(&self) -> Option<u64> {
        self.wake_ns
    }

    fn dropped(&self) -> DropCounters {
        let mut dropped = DropCounters::default();
        for leaf in self.classes.iter().filter_map(|class| class.leaf.as_ref()) {
            dropped.full += leaf.queue.dropped().full;
            dropped.policed += leaf.queue.dropped().policed;
        }
        dropped
    }
}

#[cfg(test)]
mod tests;
