//! The queue of a class: what has no room is dropped, and by choice what would leave too late, or what `CoDel` picks.
//!
//! *Late* (the scheduler that the conclusion of the slicing paper asks for): a frame leaves at most `after_ns` after it
//! came, or never. It is dropped on arrival if the backlog before it takes longer than that, even if sent as fast as the
//! ceilings allow; otherwise when its time is over. A dropped frame takes no tokens, and those behind it move up.
//!
//! *`CoDel`* (RFC 8289) looks at how long a frame has waited when it leaves: if that stays above `target_ns` for
//! `interval_ns`, it drops frames from the head, at intervals that shrink with the square root of their number. This is
//! what `fq_codel` does to each of its flows.

use std::collections::VecDeque;

use super::config::DropsConfig;
use super::{DropCounters, QueuedFrame};

/// A full frame as the kernel counts it: `CoDel` drops nothing while no more than this waits.
const FULL_FRAME_BYTES: u64 = 1_514;

#[derive(Debug)]
struct WaitingFrame {
    came_ns: u64,
    frame: QueuedFrame,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct LeafQueue {
    entries: VecDeque<WaitingFrame>,
    bytes: u64,
    limit: usize,
    late_after_ns: Option<u64>,
    codel: Option<Codel>,
    dropped: DropCounters,
}

impl LeafQueue {
    pub(super) fn new(limit_frames: u64, drops: Option<DropsConfig>) -> Self {
        let (late_after_ns, codel) = match drops {
            None => (None, None),
            Some(DropsConfig::Late { after_ns }) => (Some(after_ns), None),
            Some(DropsConfig::Codel {
                target_ns,
                interval_ns,
            }) => (None, Some(Codel::new(target_ns, interval_ns))),
        };
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            limit: usize::try_from(limit_frames).unwrap_or(usize::MAX),
            late_after_ns,
            codel,
            dropped: DropCounters::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of all frames that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length of the frame that leaves next; 0 if there is none.
    pub(super) fn head_bytes(&self) -> u64 {
        let head = self.entries.front();
        head.map_or(0, |entry| entry.frame.frame_bytes())
    }

    pub(super) fn dropped(&self) -> DropCounters {
        self.dropped
    }

    /// Returns whether [`Self::push`] wants to know when a frame can leave.
    pub(super) fn has_deadline(&self) -> bool {
        self.late_after_ns.is_some()
    }

    /// A frame comes, which cannot leave before `soonest_ns`, or `None` if it never can.
    pub(super) fn push(&mut self, now_ns: u64, frame: QueuedFrame, soonest_ns: Option<u64>) {
        if let Some(after_ns) = self.late_after_ns {
            let in_time = |soonest_ns| soonest_ns <= now_ns.saturating_add(after_ns);
            if !soonest_ns.is_some_and(in_time) {
                self.dropped.policed += 1;
                return;
            }
        }
        if self.entries.len() >= self.limit {
            self.dropped.full += 1;
            return;
        }
        self.bytes += frame.frame_bytes();
        self.entries.push_back(WaitingFrame {
            came_ns: now_ns,
            frame,
        });
    }

    /// Drops what can no longer leave in time.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let Some(after_ns) = self.late_after_ns else {
            return;
        };
        let is_late = |entry: &WaitingFrame| entry.came_ns.saturating_add(after_ns) < now_ns;
        while self.entries.front().is_some_and(is_late) {
            self.take();
            self.dropped.policed += 1;
        }
    }

    /// Removes and returns the frame that leaves now, or `None` if none waits.
    pub(super) fn pop(&mut self, now_ns: u64) -> Option<QueuedFrame> {
        self.expire(now_ns);
        let mut entry = self.take()?;
        while let Some(codel) = &mut self.codel {
            if !codel.drops(now_ns, now_ns - entry.came_ns, self.bytes) {
                break;
            }
            // `CoDel` never drops the last frame, so that there is another.
            let Some(next) = self.take() else { break };
            entry = next;
            self.dropped.policed += 1;
        }
        Some(entry.frame)
    }

    fn take(&mut self) -> Option<WaitingFrame> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.frame.frame_bytes();
        Some(entry)
    }
}

/// The state of RFC 8289, section 5.
#[derive(Debug)]
struct Codel {
    target_ns: u64,
    interval_ns: u64,
    /// If waiting times are above the target: when they will have been so for `interval_ns`.
    long_enough_ns: Option<u64>,
    /// While it drops: when it drops next.
    next_ns: Option<u64>,
    /// Drops since it began to drop.
    count: u64,
    /// `count` when it began to drop.
    began_with: u64,
    /// When it would have dropped next, had it not stopped the last time.
    ended_ns: Option<u64>,
}

impl Codel {
    const fn new(target_ns: u64, interval_ns: u64) -> Self {
        Self {
            target_ns,
            interval_ns,
            long_enough_ns: None,
            next_ns: None,
            count: 0,
            began_with: 0,
            ended_ns: None,
        }
    }

    /// Returns whether to drop the frame that has waited so long, with so many bytes behind it.
    fn drops(&mut self, now_ns: u64, waited_ns: u64, behind_bytes: u64) -> bool {
        if !self.is_long_enough(now_ns, waited_ns, behind_bytes) {
            self.ended_ns = self.next_ns.take().or(self.ended_ns);
            return false;
        }
        match self.next_ns {
            Some(next_ns) if now_ns < next_ns => false,
            Some(next_ns) => {
                self.count += 1;
                self.next_ns = Some(self.after(next_ns));
                true
            }
            None => {
                // If it dropped a short time ago, it goes on about as fast as then.
                let delta = self.count - self.began_with;
                let recent = self.ended_ns.is_some_and(|ended_ns| {
                    now_ns < ended_ns.saturating_add(16 * self.interval_ns)
                });
                self.count = if recent && delta > 1 { delta } else { 1 };
                self.began_with = self.count;
                self.next_ns = Some(self.after(now_ns));
                true
            }
        }
    }

    fn is_long_enough(&mut self, now_ns: u64, waited_ns: u64, behind_bytes: u64) -> bool {
        if waited_ns < self.target_ns || behind_bytes <= FULL_FRAME_BYTES {
            self.long_enough_ns = None;
            return false;
        }
        let since_ns = *self
            .long_enough_ns
            .get_or_insert(now_ns.saturating_add(self.interval_ns));
        now_ns >= since_ns
    }

    fn after(&self, at_ns: u64) -> u64 {
        #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]
        let wait_ns = (self.interval_ns as f64 / (self.count as f64).sqrt()) as u64;
        at_ns.saturating_add(wait_ns)
    }
}

#[cfg(test)]
mod tests;
