//! The wall clock, on which hosts agree, and sleeping by it.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{clock_gettime, clock_gettime_dynamic, ClockId, DynamicClockId, Timespec};
use zodiac_firmware::Instant;

pub(crate) const NS_PER_S: u64 = 1_000_000_000;

pub(crate) fn now() -> Instant {
    Instant::from_nanos(whole_ns(clock_gettime(ClockId::Realtime)))
}

/// The clock that ETF goes by: the wall clock without leap seconds.
pub(crate) fn tai_ns() -> u64 {
    clock_gettime_dynamic(DynamicClockId::Tai).map_or_else(|_| now().as_nanos(), whole_ns)
}

/// Returns by how much that clock is ahead of the wall clock: whole seconds, 0 where nobody has told the kernel. The
/// clocks are read one after the other, so their difference is not exactly that, and may be less than 0.
pub(crate) fn leap_ns(tai_ns: u64, wall_ns: u64) -> u64 {
    (tai_ns + NS_PER_S / 2).saturating_sub(wall_ns) / NS_PER_S * NS_PER_S
}

fn whole_ns(time: Timespec) -> u64 {
    time.tv_sec.unsigned_abs() * NS_PER_S + time.tv_nsec.unsigned_abs()
}

pub(crate) fn sleep_until(at_ns: u64) {
    let at = Timespec {
        tv_sec: i64::try_from(at_ns / NS_PER_S).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(at_ns % NS_PER_S).unwrap_or_default(),
    };
    while clock_nanosleep_absolute(ClockId::Realtime, &at).is_err() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_time_is_whole_seconds_ahead_whenever_the_clocks_are_read() {
        let wall_ns = 1_800_000_000 * NS_PER_S;
        for (tai_ns, expected) in [
            (wall_ns - 40, 0),
            (wall_ns + 37 * NS_PER_S - 40, 37 * NS_PER_S),
            (wall_ns + 37 * NS_PER_S, 37 * NS_PER_S),
        ] {
            assert_eq!(leap_ns(tai_ns, wall_ns), expected);
        }
    }
}
