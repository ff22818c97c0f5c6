//! Main loop: when the CPU looks for work.
//!
//! An idle CPU begins an iteration every `loop`. One that finds a frame works on it and begins the next one when it is
//! done. The timers of the IP stack take time between two iterations.

use crate::profile::Cpu;
use crate::time::{Duration, Instant};

/// The main loop between two pieces of work.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // what each frame needs comes first, as in the board
pub(crate) struct MainLoop {
    /// Cached result: an arrival and its iteration, until the CPU works again.
    cached: (Instant, Instant),
    /// When the CPU is or was last free: from then on it begins idle iterations.
    free_at: Instant,
    timer_at: Instant,
    loop_ps: u64,
    timer_period: Duration,
    timer_cost: Duration,
}

/// Empty cache.
const EMPTY: (Instant, Instant) = (Instant::NEVER, Instant::NEVER);

impl MainLoop {
    /// The first iteration begins `loop_phase` after power-up, the timers first run `timer_phase` after it.
    pub(crate) fn new(cpu: &Cpu, loop_phase: Duration, timer_phase: Duration) -> Self {
        Self {
            loop_ps: cpu.loop_ps.unsigned_abs(),
            timer_period: Duration::from_nanos(cpu.timers.period_ns),
            timer_cost: Duration::from_picos_rounded(cpu.timers.cost_ps),
            free_at: Instant::ZERO + loop_phase,
            timer_at: Instant::ZERO + timer_phase,
            cached: EMPTY,
        }
    }

    /// The power comes on at `boot`.
    pub(crate) fn power_up(&mut self, boot: Instant) {
        let since_zero = boot.saturating_since(Instant::ZERO);
        self.free_at += since_zero;
        self.timer_at += since_zero;
        self.cached = EMPTY;
    }

    /// Returns the begin of the iteration that finds work which arrives at `arrival`, if nothing else comes before.
    ///
    /// The driver asks when a frame is due, and the fast path then asks again, so the last result is cached.
    #[inline(always)]
    pub(crate) fn iteration_for(&mut self, arrival: Instant) -> Instant {
        match self.cached {
            (same, iteration_at) if same == arrival => iteration_at,
            _ => self.compute_iteration(arrival),
        }
    }

    fn compute_iteration(&mut self, arrival: Instant) -> Instant {
        let mut iteration_at = self.poll(arrival);
        if self.timer_at <= iteration_at {
            let mut ahead = *self;
            ahead.run_timers(iteration_at);
            iteration_at = ahead.poll(arrival);
        }
        self.cached = (arrival, iteration_at);
        iteration_at
    }

    /// Returns when the CPU is first free, not before `at`.
    #[inline]
    pub(crate) fn free_from(&self, at: Instant) -> Instant {
        self.free_at.max(at)
    }

    /// Charges an iteration that began at `iteration_at` with `busy` of CPU time.
    #[inline(always)]
    pub(crate) fn charge(&mut self, iteration_at: Instant, busy: Duration) {
        if self.timer_at <= iteration_at {
            self.run_timers(iteration_at);
        }
        self.free_at = iteration_at + busy;
        self.cached = EMPTY;
    }

    /// Returns when the timers first run, not before `at`.
    pub(crate) fn timers_after(&self, at: Instant) -> Instant {
        let late_ns = at.saturating_since(self.timer_at).as_nanos();
        let periods = late_ns.div_ceil(self.timer_period.as_nanos().max(1));
        self.timer_at + Duration::from_nanos(periods * self.timer_period.as_nanos())
    }

    /// Runs the timers that are due at an iteration until `now`.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        self.cached = EMPTY;
        while self.timer_at <= now {
            let iteration_at = self.poll(self.timer_at);
            if iteration_at > now {
                return;
            }
            self.free_at = iteration_at + self.timer_cost;
            self.timer_at += self.timer_period;
        }
    }

    /// Returns the first iteration not before `arrival`: a whole number of idle iterations later, rounded up to a
    /// nanosecond.
    #[inline]
    fn poll(&self, arrival: Instant) -> Instant {
        if arrival <= self.free_at {
            return self.free_at;
        }
        let waited_ns = (arrival - self.free_at).as_nanos();
        let ahead_ns = if waited_ns <= u64::MAX / 2_000 {
            let passes = (waited_ns * 1_000).div_ceil(self.loop_ps);
            (passes * self.loop_ps).div_ceil(1_000)
        } else {
            // More than a hundred days: far from any frame, so whole nanoseconds are exact enough.
            waited_ns
        };
        self.free_at + Duration::from_nanos(ahead_ns)
    }
}
