use proptest::prelude::*;

use super::*;

/// Instants at which a greedy sender gets `count` frames of `bytes` through, asking first at `asks_ns`.
fn departures(bucket: &mut TokenBucket, bytes: u64, asks_ns: &[u64]) -> Vec<u64> {
    let mut previous_ns = 0;
    asks_ns
        .iter()
        .map(|&ask_ns| {
            let at_ns = bucket
                .ready_at(ask_ns.max(previous_ns), bytes)
                .expect("the burst holds a frame");
            bucket.take(at_ns, bytes);
            previous_ns = at_ns;
            at_ns
        })
        .collect()
}

#[test]
fn a_full_bucket_passes_its_burst_at_once_then_its_rate() {
    let mut bucket = TokenBucket::new(790_000.0, 688.0).expect("in range");
    let at_ns = departures(&mut bucket, 306, &[1_000_000; 4]);
    // 688 = 2 x 306 + 76 bytes: the third waits for 230 bytes, the fourth for 306 more.
    assert_eq!(at_ns[..2], [1_000_000, 1_000_000]);
    assert_eq!(
        at_ns[2],
        1_000_000 + (230 * 8_000_000_000_u64).div_ceil(790_000)
    );
    assert_eq!(
        at_ns[3],
        1_000_000 + (536 * 8_000_000_000_u64).div_ceil(790_000)
    );
}

#[test]
fn a_frame_above_the_burst_never_passes() {
    let bucket = TokenBucket::new(1e6, 305.9).expect("in range");
    assert_eq!(bucket.ready_at(0, 306), None);
}

#[test]
fn refuses_numbers_that_mean_nothing() {
    for (rate_bps, burst_bytes) in [
        (0.0, 100.0),
        (f64::NAN, 100.0),
        (1e6, 0.0),
        (1e6, f64::INFINITY),
        (-1.0, 1.0),
    ] {
        assert!(
            TokenBucket::new(rate_bps, burst_bytes).is_err(),
            "{rate_bps} {burst_bytes}"
        );
    }
}

proptest! {
    /// No window of any length lets more through than burst + rate x length.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn no_window_exceeds_the_curve(
        rate_bps in 1_000.0f64..1e8,
        burst_bytes in 64.0f64..5000.0,
        bytes in 1u64..64,
        mut asks_ns in prop::collection::vec(0u64..2_000_000_000, 1..60),
    ) {
        asks_ns.sort_unstable();
        let mut bucket = TokenBucket::new(rate_bps, burst_bytes).expect("in range");
        let at_ns = departures(&mut bucket, bytes, &asks_ns);
        for first in 0..at_ns.len() {
            for last in first..at_ns.len() {
                let passed = (last - first + 1) as f64 * bytes as f64;
                let span_ns = (at_ns[last] - at_ns[first]) as f64;
                prop_assert!(passed <= burst_bytes + rate_bps * span_ns / 8e9 + 1e-6);
            }
        }
    }

    /// A greedy sender loses nothing of its rate to rounding: n frames take no longer than they must. (A bucket
    /// no deeper than one frame cannot keep what a fraction of a nanosecond brings.)
    #[test]
    fn long_run_rate_is_exact(rate_bps in 1_000u32..100_000_000, frames in 2u64..300) {
        let mut bucket = TokenBucket::new(f64::from(rate_bps), 307.0).expect("in range");
        let at_ns = departures(&mut bucket, 306, &vec![0; frames as usize]);
        let needed_ns = ((frames * 306 - 307) * 8_000_000_000).div_ceil(u64::from(rate_bps));
        prop_assert_eq!(at_ns[at_ns.len() - 1], needed_ns);
    }
}
