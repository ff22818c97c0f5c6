//! When the CPU looks for work: the passes of the main loop.
//!
//! An idle CPU begins a pass every `loop`. A pass that finds a frame works on it and begins the next one when it
//! is done. The timers of the IP stack take time between two passes.

use crate::profile::Cpu;
use crate::time::{Duration, Instant};

/// The main loop between two pieces of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MainLoop {
    loop_ps: u64,
    timer_period: Duration,
    timer_cost: Duration,
    /// When the first pass begins that has found nothing yet.
    free_at: Instant,
    timer_at: Instant,
}

impl MainLoop {
    /// The first pass begins `loop_phase` after power-up, the timers first run `timer_phase` after it.
    pub(crate) fn new(cpu: &Cpu, loop_phase: Duration, timer_phase: Duration) -> Self {
        Self {
            loop_ps: cpu.loop_ps.unsigned_abs(),
            timer_period: Duration::from_nanos(cpu.timers.period_ns),
            timer_cost: Duration::from_picos_rounded(cpu.timers.cost_ps),
            free_at: Instant::ZERO + loop_phase,
            timer_at: Instant::ZERO + timer_phase,
        }
    }

    /// The power comes on at `boot`.
    pub(crate) fn power_up(&mut self, boot: Instant) {
        let since_zero = boot.saturating_since(Instant::ZERO);
        self.free_at += since_zero;
        self.timer_at += since_zero;
    }

    /// Begin of the pass that finds work which has arrived at `arrival`, if nothing else comes before.
    pub(crate) fn pass_for(&self, arrival: Instant) -> Instant {
        let pass = self.poll(arrival);
        if self.timer_at > pass {
            return pass;
        }
        let mut ahead = *self;
        ahead.run_timers(pass);
        ahead.poll(arrival)
    }

    /// A pass has begun at `pass` and keeps the CPU busy for `busy`.
    pub(crate) fn worked(&mut self, pass: Instant, busy: Duration) {
        self.run_timers(pass);
        self.free_at = pass + busy;
    }

    /// Runs the timers that are due at a pass until `now`.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        while self.timer_at <= now {
            let pass = self.poll(self.timer_at);
            if pass > now {
                return;
            }
            self.free_at = pass + self.timer_cost;
            self.timer_at += self.timer_period;
        }
    }

    /// The first pass not before `arrival`.
    fn poll(&self, arrival: Instant) -> Instant {
        if arrival <= self.free_at {
            return self.free_at;
        }
        let waited_ps = u128::from(arrival.saturating_since(self.free_at).as_nanos()) * 1_000;
        let loop_ps = u128::from(self.loop_ps);
        let passes = match u64::try_from(waited_ps) {
            Ok(waited_ps) => u128::from(waited_ps.div_ceil(self.loop_ps)),
            Err(_) => waited_ps.div_ceil(loop_ps),
        };
        let ahead_ns = (passes * loop_ps).div_ceil(1_000);
        self.free_at + Duration::from_nanos(u64::try_from(ahead_ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
