//! One iteration of the main loop.

use crate::event::Event;
use crate::outbox::Outbox;
use crate::time::{Duration, Instant};

/// State of one main-loop iteration, passed to all who take part in it.
pub(crate) struct LoopIteration<'a> {
    /// When it began.
    pub(crate) began: Instant,
    /// Cost of the work so far.
    pub(crate) cost_ps: i64,
    /// A segment is being handled: its replies leave at the end.
    pub(crate) in_segment: bool,
    /// Whether it has only forwarded a frame by a cached action, which leaves the agent no further work.
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

    /// Emits an event at its beginning.
    pub(crate) fn event(&mut self, event: Event) {
        self.out.event(self.began, event);
    }
}
