//! Clock of the agent: the firmware counts seconds by housekeeping ticks.

use crate::openflow13::TableClock;
use crate::quirks::{Quirk, Quirks};
use crate::time::Instant;

/// Clock of the agent.
#[derive(Debug)]
pub(super) struct Timekeeping {
    /// Seconds are two ticks.
    by_ticks: bool,
    /// When the power came on.
    pub(super) powered_up: Instant,
    /// Begin of the latest iteration that found work.
    pub(super) iteration_began: Instant,
    /// Housekeeping ticks since power-up.
    pub(super) ticks: u32,
    /// Which of the three housekeeping jobs comes next.
    pub(super) job: u32,
}

impl Timekeeping {
    pub(super) fn new(quirks: Quirks) -> Self {
        Self {
            by_ticks: quirks.has(Quirk::LongSeconds),
            powered_up: Instant::ZERO,
            iteration_began: Instant::ZERO,
            ticks: 0,
            job: 0,
        }
    }

    /// Returns the agent's time, from which the ages of flows are computed. The firmware counts seconds of two ticks.
    #[inline]
    pub(super) const fn now(&self) -> Instant {
        if self.by_ticks {
            Instant::from_nanos((self.ticks / 2) as u64 * 1_000_000_000)
        } else {
            self.iteration_began
        }
    }

    /// Returns the clocks of the tables of 1.3.
    pub(super) fn clock(&self) -> TableClock {
        let running = self.iteration_began.saturating_since(self.powered_up);
        TableClock {
            now_s: self.now().saturating_since(Instant::ZERO).whole_seconds(),
            now_ms: running.as_nanos() / 1_000_000,
        }
    }

    /// Returns the seconds since `installed`.
    pub(super) const fn age_s(&self, installed: Instant) -> u32 {
        self.now().saturating_since(installed).whole_seconds()
    }
}
