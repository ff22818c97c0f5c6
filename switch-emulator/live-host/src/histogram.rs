//! Counts of durations in buckets of constant relative width, written and read by different threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

/// A power of two is divided into `2^SUB_BITS` buckets: a quantile is at most 1/64 too high.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Longer durations (18 minutes) count into the last bucket; the maximum stays exact.
const MAX_BITS: u32 = 40;
const BUCKETS: usize = ((MAX_BITS - SUB_BITS + 1) as usize) << SUB_BITS;

/// A histogram of nanoseconds. Recording never blocks and never allocates.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    max: AtomicU64,
}

/// Quantiles of a [`Histogram`], in nanoseconds; all zero if nothing was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// How many durations were recorded.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 99 % are not longer.
    pub p99: u64,
    /// 99.9 % are not longer.
    pub p999: u64,
    /// The longest, exactly.
    pub max: u64,
}

impl Histogram {
    /// Creates an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            max: AtomicU64::new(0),
        }
    }

    /// Counts one duration.
    pub fn record(&self, nanos: u64) {
        self.buckets[bucket(nanos)].fetch_add(1, Relaxed);
        self.max.fetch_max(nanos, Relaxed);
    }

    /// Returns the quantiles so far. While another thread records, the newest durations may be missing.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let max = self.max.load(Relaxed);
        let quantile = |per_mille: u64| {
            let rank = (count * per_mille).div_ceil(1000).max(1);
            let mut seen = 0;
            counts
                .iter()
                .position(|n| {
                    seen += n;
                    seen >= rank
                })
                .map_or(0, |index| upper_end(index).min(max))
        };
        Quantiles {
            count,
            p50: quantile(500),
            p99: quantile(990),
            p999: quantile(999),
            max,
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

fn bucket(nanos: u64) -> usize {
    let nanos = nanos.min((1 << MAX_BITS) - 1);
    if nanos < SUB {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - SUB_BITS;
    ((u64::from(shift + 1) << SUB_BITS) + ((nanos >> shift) & (SUB - 1))) as usize
}

/// The longest duration that counts into the bucket.
fn upper_end(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = (index >> SUB_BITS) - 1;
    ((SUB + (index & (SUB - 1))) << shift) + (1 << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_histogram_is_all_zero() {
        assert_eq!(Histogram::new().quantiles(), Quantiles::default());
    }

    #[test]
    fn quantiles_of_a_thousand() {
        let histogram = Histogram::new();
        (1..=1000).for_each(|n| histogram.record(n));
        let summary = histogram.quantiles();
        assert_eq!((summary.count, summary.max), (1000, 1000));
        for (quantile, exact) in [(summary.p50, 500), (summary.p99, 990), (summary.p999, 999)] {
            assert!(
                (exact..=exact + exact / 64 + 1).contains(&quantile),
                "{quantile} for {exact}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_durations(nanos in 0..u64::MAX) {
            let index = bucket(nanos);
            prop_assert!(index < BUCKETS);
            let clamped = nanos.min((1 << MAX_BITS) - 1);
            prop_assert!(clamped <= upper_end(index));
            prop_assert!(upper_end(index) - clamped <= clamped / SUB);
            if index > 0 {
                prop_assert!(upper_end(index - 1) < clamped);
            }
        }
    }
}
