//! The data thread's clock, and what the kernel's stamps mean on it.
//!
//! Instants count `CLOCK_MONOTONIC` nanoseconds from the boards' power-up, which may be a while before the program
//! started, so that setting the wall clock disturbs nothing. The kernel stamps frames with `CLOCK_REALTIME`; [`ClockPair`] carries stamps over.

use rustix::time::{clock_gettime, ClockId};
use zodiac_firmware::{Duration, Instant};

/// `CLOCK_MONOTONIC`, counted from the boards' power-up.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start_ns: u64,
}

/// Two clocks at (almost) one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// The program's clock.
    pub now: Instant,
    /// `CLOCK_REALTIME` in nanoseconds since 1970.
    pub realtime_ns: u64,
}

/// Both clocks were read at one moment if not more time passed between.
const PAIR_TOLERANCE: Duration = Duration::from_nanos(300);
const PAIR_ATTEMPTS: usize = 4;

impl Clock {
    /// A clock that shows zero now.
    #[must_use]
    pub fn start() -> Self {
        Self::showing(Duration::ZERO)
    }

    /// A clock that shows `shown` now: it began so long ago.
    #[must_use]
    pub fn showing(shown: Duration) -> Self {
        Self {
            start_ns: read(ClockId::Monotonic).saturating_sub(shown.as_nanos()),
        }
    }

    /// Returns the time now.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(ClockId::Monotonic).saturating_sub(self.start_ns))
    }

    /// Returns the time now on both clocks.
    #[must_use]
    pub fn pair(&self) -> ClockPair {
        let mut before = self.now();
        for _ in 0..PAIR_ATTEMPTS {
            let realtime_ns = read(ClockId::Realtime);
            let after = self.now();
            let between = after.saturating_since(before);
            if between <= PAIR_TOLERANCE {
                let middle = before + Duration::from_nanos(between.as_nanos() / 2);
                return ClockPair {
                    now: middle,
                    realtime_ns,
                };
            }
            before = after;
        }
        ClockPair {
            realtime_ns: read(ClockId::Realtime),
            now: before,
        }
    }
}

impl ClockPair {
    /// Returns the instant of a kernel stamp.
    #[must_use]
    pub fn instant_of(&self, stamp_realtime_ns: u64) -> Instant {
        let sum = u128::from(self.now.as_nanos()) + u128::from(stamp_realtime_ns);
        let nanos = sum.saturating_sub(u128::from(self.realtime_ns));
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// `CLOCK_REALTIME` of an instant, past or future.
    #[must_use]
    pub fn realtime_of(&self, instant: Instant) -> u64 {
        (self.realtime_ns.saturating_add(instant.as_nanos())).saturating_sub(self.now.as_nanos())
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both clocks count from a moment in the past, so neither part is negative.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_and_its_instant_are_one() {
        let pair = ClockPair {
            now: Instant::from_nanos(5_000),
            realtime_ns: 1_000_000,
        };
        for (stamp, instant) in [(999_000, 4_000), (1_000_000, 5_000), (1_002_000, 7_000)] {
            assert_eq!(pair.instant_of(stamp), Instant::from_nanos(instant));
            assert_eq!(pair.realtime_of(Instant::from_nanos(instant)), stamp);
        }
        assert_eq!(pair.instant_of(0), Instant::ZERO, "older than the program");
    }

    #[test]
    fn the_clocks_move_together() {
        let clock = Clock::start();
        let (first, second) = (clock.pair(), clock.pair());
        let passed = clock.now();
        assert!(second.now >= first.now);
        // No more apart than the reads are, however long the machine took between them.
        let drift = second.realtime_of(first.now).abs_diff(first.realtime_ns);
        assert!(
            drift <= passed.as_nanos(),
            "{drift} ns in {} ns",
            passed.as_nanos()
        );
    }
}
