//! One pass of the main loop.

use crate::outbox::Outbox;
use crate::time::{Duration, Instant};

/// What the CPU does in one pass of the main loop, handed through all that takes part in it.
pub(crate) struct LoopIteration<'a> {
    /// When it began.
    pub(crate) began: Instant,
    /// What the work since then has cost so far.
    pub(crate) cost_ps: i64,
    /// A segment is being handled: what is written leaves when that is done.
    pub(crate) in_segment: bool,
    /// Whether it has done nothing but forward a frame by a known way, which leaves the agent nothing to do later.
    pub(crate) only_forwarded: bool,
    pub(crate) out: &'a mut Outbox,
}

impl<'a> LoopIteration<'a> {
    #[inline]
    pub(crate) const fn new(began: Instant, out: &'a mut Outbox) -> Self {
        Self {
            began,
            cost_ps: 0,
            in_segment: false,
            only_forwarded: false,
            out,
        }
    }

    /// Returns how long the CPU has been busy.
    #[inline]
    pub(crate) fn busy(&self) -> Duration {
        Duration::from_picos_rounded(self.cost_ps)
    }

    /// Instant that the work has reached.
    #[inline]
    pub(crate) fn reached(&self) -> Instant {
        self.began + self.busy()
    }
}
