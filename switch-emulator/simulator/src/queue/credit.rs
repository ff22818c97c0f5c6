//! A token bucket whose level may fall below zero, exact in integers.

/// A byte is this many units of the level, so that each nanosecond adds `rate_bps` units.
const UNITS_PER_BYTE: i128 = 8_000_000_000;

/// Tokens that are spent first and paid for later.
#[derive(Clone, Debug)]
pub(super) struct Credit {
    rate_bps: i128,
    capacity: i128,
    level: i128,
    updated_ns: u64,
}

impl Credit {
    /// Creates a full bucket of `burst_bytes` that fills with `rate_bps`.
    pub(super) fn new(rate_bps: u64, burst_bytes: u64) -> Self {
        let capacity = i128::from(burst_bytes) * UNITS_PER_BYTE;
        Self {
            rate_bps: rate_bps.into(),
            capacity,
            level: capacity,
            updated_ns: 0,
        }
    }

    fn level_at(&self, now_ns: u64) -> i128 {
        let gained = i128::from(now_ns - self.updated_ns) * self.rate_bps;
        (self.level + gained).min(self.capacity)
    }

    /// Returns whether it holds `bytes` at `now_ns`, or all that fits if that is less.
    pub(super) fn holds(&self, now_ns: u64, bytes: u64) -> bool {
        self.level_at(now_ns) >= self.needed(bytes)
    }

    /// Returns the first instant, not before `now_ns`, when it holds `bytes`, or all that fits, or `None` if it never
    /// fills.
    pub(super) fn holds_at(&self, now_ns: u64, bytes: u64) -> Option<u64> {
        self.after(now_ns, self.needed(bytes) - self.level_at(now_ns))
    }

    /// The first instant, not before `now_ns`, by which `bytes` could have been taken out, each token as soon as it
    /// came in, or `None` if that is never. The estimate may be too early: tokens that overflow meanwhile are not
    /// deducted.
    pub(super) fn earned_at(&self, now_ns: u64, bytes: u64) -> Option<u64> {
        let needed = i128::from(bytes) * UNITS_PER_BYTE;
        self.after(now_ns, needed - self.level_at(now_ns))
    }

    /// The first instant, not before `now_ns`, when `missing` units will have come in.
    fn after(&self, now_ns: u64, missing: i128) -> Option<u64> {
        if missing <= 0 {
            return Some(now_ns);
        }
        if self.rate_bps == 0 {
            return None;
        }
        // The rate is positive, so this rounds up. The wait for 10^18 bits at 1 bit/s would not fit, but bursts are smaller.
        let wait = (missing + self.rate_bps - 1) / self.rate_bps;
        u64::try_from(wait)
            .ok()
            .and_then(|ns| now_ns.checked_add(ns))
    }

    /// Returns whether `bytes` fit.
    pub(super) fn can_ever_hold(&self, bytes: u64) -> bool {
        i128::from(bytes) * UNITS_PER_BYTE <= self.capacity
    }

    /// Takes `bytes` out, also where it does not hold them.
    pub(super) fn take(&mut self, now_ns: u64, bytes: u64) {
        self.level = self.level_at(now_ns) - i128::from(bytes) * UNITS_PER_BYTE;
        self.updated_ns = now_ns;
    }

    fn needed(&self, bytes: u64) -> i128 {
        (i128::from(bytes) * UNITS_PER_BYTE).min(self.capacity)
    }
}
