//! The token bucket that shapes a source, exact in integers.

use crate::error::Error;

/// One bit is this many units of the bucket's level: at a whole number of bits a second, a nanosecond brings
/// a whole number of units, so that nothing is ever rounded while time passes.
const UNITS_PER_BIT: u64 = 1_000_000_000;
const UNITS_PER_BYTE: u64 = 8 * UNITS_PER_BIT;
/// Largest rate and burst that keep the arithmetic in 64 bits.
const MAX_RATE_BPS: f64 = 1e12;
const MAX_BURST_BYTES: f64 = 1e9;

/// A token bucket: over any span t, it lets at most `burst + rate x t` pass. It begins full.
///
/// The rate is rounded down to whole bits a second and the burst down to a billionth of a bit, both once, on
/// construction: a bucket never lets more pass than was asked for.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    rate_bps: u64,
    capacity: u64,
    level: u64,
    updated_ns: u64,
}

impl TokenBucket {
    /// Creates a full bucket of `burst_bytes` that fills with `rate_bps`.
    ///
    /// # Errors
    /// [`Error::Value`] if the rate is not in 1 .. 10^12 bit/s or the burst not in 1 .. 10^9 bytes.
    #[inline]
    pub fn new(rate_bps: f64, burst_bytes: f64) -> Result<Self, Error> {
        Error::check("shaper_rate_bps", rate_bps, 1.0, MAX_RATE_BPS)?;
        Error::check("shaper_burst_bytes", burst_bytes, 1.0, MAX_BURST_BYTES)?;
        #[allow(clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let capacity = (burst_bytes * UNITS_PER_BYTE as f64) as u64;
        #[allow(clippy::cast_sign_loss)]
        let rate_bps = rate_bps as u64;
        Ok(Self {
            rate_bps,
            capacity,
            level: capacity,
            updated_ns: 0,
        })
    }

    /// The most that can pass at once, in whole bytes.
    #[must_use]
    #[inline]
    pub fn burst_bytes(&self) -> u64 {
        self.capacity / UNITS_PER_BYTE
    }

    /// The most that can pass within `span_ns`, in whole bytes.
    pub(crate) fn most_bytes(&self, span_ns: u64) -> u64 {
        let units = u128::from(self.capacity) + u128::from(self.rate_bps) * u128::from(span_ns);
        (units / u128::from(UNITS_PER_BYTE)) as u64
    }

    /// Returns the first instant, not before `from_ns`, when the bucket holds `bytes`, or `None` if it never does.
    #[must_use]
    #[inline]
    pub fn ready_at(&self, from_ns: u64, bytes: u64) -> Option<u64> {
        let needed = bytes * UNITS_PER_BYTE;
        if needed > self.capacity {
            return None;
        }
        let missing = needed.saturating_sub(self.level);
        Some(from_ns.max(self.updated_ns + missing.div_ceil(self.rate_bps)))
    }

    /// Takes `bytes` out at `now_ns`, an instant not before the one given by [`Self::ready_at`].
    #[inline]
    pub fn take(&mut self, now_ns: u64, bytes: u64) {
        let gained = u128::from(now_ns - self.updated_ns) * u128::from(self.rate_bps);
        // The capacity is below 2^63, so the minimum fits.
        let level = (u128::from(self.level) + gained).min(u128::from(self.capacity)) as u64;
        self.level = level - bytes * UNITS_PER_BYTE;
        self.updated_ns = now_ns;
    }

    /// Whole bits a second that the bucket lets pass in the long run.
    #[must_use]
    #[inline]
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }
}

#[cfg(test)]
mod tests;
