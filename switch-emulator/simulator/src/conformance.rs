//! Conformance of a host's frames to its token bucket.

/// As in the shaper's bucket, at a whole number of bits a second each nanosecond adds a whole number of units.
const UNITS_PER_BYTE: u64 = 8_000_000_000;

/// Checks a stream of frames against a token bucket by virtual scheduling (ITU-T I.371, annex A). It shares neither
/// code nor method with the shaper's [`TbfParameters`](crate::TokenBucket), which it is there to check: a packet record that
/// breaks its bucket proves nothing about a guarantee.
#[derive(Debug, Clone)]
pub struct ConformanceChecker {
    rate_bps: u64,
    burst: u64,
    /// Theoretical arrival time of the next frame, if all came evenly, in units: nanoseconds times the rate.
    due: u128,
}

impl ConformanceChecker {
    /// Creates a checker for whole bits a second and bytes, as promised to the sender; less than a billionth of a bit
    /// is cut off.
    #[must_use]
    pub fn new(rate_bps: f64, burst_bytes: f64) -> Self {
        #[allow(clippy::cast_sign_loss, clippy::cast_precision_loss)]
        Self {
            rate_bps: rate_bps as u64,
            burst: (burst_bytes * UNITS_PER_BYTE as f64) as u64,
            due: 0,
        }
    }

    /// Returns whether a frame sent at `at_ns`, not before the previous one, conforms. A frame that does not conform
    /// takes no tokens.
    #[inline]
    pub fn conforms(&mut self, at_ns: u64, frame_bytes: u64) -> bool {
        let now = u128::from(at_ns) * u128::from(self.rate_bps);
        let due = self.due.max(now) + u128::from(frame_bytes) * u128::from(UNITS_PER_BYTE);
        let conforms = due <= now + u128::from(self.burst);
        if conforms {
            self.due = due;
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TokenBucket;

    /// Checks the definition: in no interval passes more than burst + rate x length (Le Boudec and Thiran, section
    /// 1.2.2).
    fn keeps_to(rate_bps: u64, burst_bytes: u64, frames: &[(u64, u64)]) -> bool {
        (0..frames.len()).all(|first| {
            let mut bytes = 0;
            frames[first..].iter().all(|(at_ns, frame_bytes)| {
                bytes += u128::from(*frame_bytes);
                let span_ns = u128::from(at_ns - frames[first].0);
                bytes * 8_000_000_000
                    <= u128::from(burst_bytes) * 8_000_000_000 + span_ns * u128::from(rate_bps)
            })
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            rate_bps in 1u64..20_000_000,
            burst_bytes in 64u64..4000,
            gaps in proptest::collection::vec((0u64..2_000_000, 64u64..1519), 1..40),
        ) {
            let mut at_ns = 0;
            let frames: Vec<_> = gaps.iter().map(|(gap_ns, bytes)| { at_ns += gap_ns; (at_ns, *bytes) }).collect();
            #[allow(clippy::cast_precision_loss)]
            let mut checker = ConformanceChecker::new(rate_bps as f64, burst_bytes as f64);
            let all = frames.iter().all(|(at_ns, bytes)| checker.conforms(*at_ns, *bytes));
            prop_assert_eq!(all, keeps_to(rate_bps, burst_bytes, &frames));
        }

        #[test]
        #[allow(clippy::cast_precision_loss)]
        fn what_the_shaper_lets_pass_conforms(
            rate_bps in 1000u64..20_000_000,
            burst_bytes in 1518u64..4000,
            gaps in proptest::collection::vec((0u64..2_000_000, 64u64..1519), 1..40),
        ) {
            let (rate, burst) = (rate_bps as f64, burst_bytes as f64);
            let mut bucket = TokenBucket::new(rate, burst).expect("in range");
            let mut checker = ConformanceChecker::new(rate, burst);
            let mut frames = Vec::new();
            let mut now_ns = 0;
            for (gap_ns, bytes) in gaps {
                now_ns = bucket.ready_at(now_ns + gap_ns, bytes).expect("the burst holds a frame");
                bucket.take(now_ns, bytes);
                frames.push((now_ns, bytes));
                prop_assert!(checker.conforms(now_ns, bytes));
            }
            prop_assert!(keeps_to(rate_bps, burst_bytes, &frames));
        }
    }

    #[test]
    fn a_frame_too_early_does_not_conform() {
        let mut checker = ConformanceChecker::new(8e6, 200.0); // a byte each microsecond
        assert!(checker.conforms(0, 100));
        assert!(checker.conforms(0, 100));
        assert!(!checker.conforms(99_999, 100));
        assert!(checker.conforms(100_000, 100));
    }
}
