use proptest::prelude::*;

use super::*;

fn bursts() -> BurstsConfig {
    BurstsConfig {
        offered_rate_bps: 790_000.0,
        burst_bytes: 688.0,
        queue_bytes: 100_000.0,
    }
}

fn offering(offered: Offered) -> SourceConfig {
    SourceConfig {
        flow: 3,
        frame: vec![0; 302],
        sequence_offset: 50,
        shaper_rate_bps: 790_000.0,
        shaper_burst_bytes: 688.0,
        offered,
        observed: true,
        destination: None,
    }
}

fn config() -> SourceConfig {
    offering(Offered::Bursts(bursts()))
}

fn line() -> Timing {
    Timing::new(1e8, 0).expect("in range")
}

/// Departures of a source that has its line for itself, and what it counted.
fn departures(config: &SourceConfig, seed: u64, stop_ns: u64) -> (Vec<u64>, SourceCounters, u64) {
    let mut source = Source::new(config, line(), seed).expect("a source that can send");
    source.start(0, stop_ns);
    let mut at_ns = Vec::new();
    let mut line_free_ns = 0;
    while let Some(now_ns) = source.next_release_ns(line_free_ns) {
        source.release(now_ns);
        line_free_ns = now_ns + line().slot_ns(source.frame_bytes());
        at_ns.push(now_ns);
    }
    let unsent = source.finish();
    (at_ns, source.counters, unsent)
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn the_mean_offered_rate_is_as_asked() {
    let offered = Offered::Bursts(BurstsConfig {
        offered_rate_bps: 2e6,
        burst_bytes: 1300.0,
        ..bursts()
    });
    let (_, counters, _) = departures(&offering(offered), 1, 100_000_000_000);
    let rate_bps = counters.offered as f64 * 306.0 * 8.0 / 100.0;
    assert!((rate_bps / 2e6 - 1.0).abs() < 0.02, "{rate_bps}");
}

#[test]
fn a_burst_comes_at_line_rate() {
    let bursty = SourceConfig {
        shaper_rate_bps: 1e9,
        shaper_burst_bytes: 1e6,
        ..offering(Offered::Bursts(BurstsConfig {
            burst_bytes: 5.0 * 306.0 + 305.0,
            offered_rate_bps: 1e4,
            ..bursts()
        }))
    };
    let (at_ns, ..) = departures(&bursty, 1, 20_000_000_000);
    assert!(at_ns.len() >= 10);
    for burst in at_ns.chunks_exact(5) {
        assert!(
            burst.windows(2).all(|pair| pair[1] - pair[0] == 326 * 80),
            "{burst:?}"
        );
    }
}

#[test]
fn nothing_leaves_once_the_source_has_stopped() {
    let overloaded = offering(Offered::Bursts(BurstsConfig {
        offered_rate_bps: 5e6,
        queue_bytes: 3060.0,
        ..bursts()
    }));
    let (at_ns, counters, unsent) = departures(&overloaded, 1, 1_000_000_000);
    assert!(at_ns.last().is_some_and(|last_ns| *last_ns < 1_000_000_000));
    assert!(counters.dropped > 0);
    assert_eq!(unsent, 10, "the queue is full all the time");
    assert_eq!(
        counters.offered,
        at_ns.len() as u64 + counters.dropped + unsent
    );
}

#[test]
fn says_what_it_cannot_send() {
    let refuse = |config: SourceConfig, word: &str| {
        let error = Source::new(&config, line(), 0)
            .expect_err("refused")
            .to_string();
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
    };
    refuse(
        SourceConfig {
            frame: vec![0; 13],
            ..config()
        },
        "14",
    );
    refuse(
        SourceConfig {
            frame: vec![0; 1519],
            ..config()
        },
        "1518",
    );
    refuse(
        SourceConfig {
            sequence_offset: 3,
            ..config()
        },
        "sequence_offset",
    );
    refuse(
        SourceConfig {
            sequence_offset: usize::MAX,
            ..config()
        },
        "sequence_offset",
    );
    refuse(
        SourceConfig {
            sequence_offset: 299,
            ..config()
        },
        "sequence_offset",
    );
    refuse(
        SourceConfig {
            shaper_burst_bytes: 305.0,
            ..config()
        },
        "shaper_burst_bytes",
    );
    refuse(
        offering(Offered::Bursts(BurstsConfig {
            queue_bytes: 305.0,
            ..bursts()
        })),
        "queue_bytes",
    );
    refuse(
        offering(Offered::Bursts(BurstsConfig {
            offered_rate_bps: f64::NAN,
            ..bursts()
        })),
        "offered_rate_bps",
    );
    refuse(
        offering(Offered::Bursts(BurstsConfig {
            burst_bytes: -1.0,
            ..bursts()
        })),
        "burst_bytes",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Traffic at the tap keeps to burst + rate x t over every window, and no frame is lost.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn the_tap_sees_the_shapers_curve(
        rate_bps in 1e5f64..5e7,
        burst_bytes in 306.0f64..5000.0,
        offered_rate_bps in 1e5f64..9e7,
        offered_burst_bytes in 0.0f64..10_000.0,
        queue_bytes in 306.0f64..20_000.0,
        seed in any::<u64>(),
    ) {
        let config = SourceConfig {
            shaper_rate_bps: rate_bps,
            shaper_burst_bytes: burst_bytes,
            ..offering(Offered::Bursts(BurstsConfig {
                offered_rate_bps,
                burst_bytes: offered_burst_bytes,
                queue_bytes,
            }))
        };
        let (at_ns, counters, unsent) = departures(&config, seed, 50_000_000);
        prop_assert_eq!(counters.offered, at_ns.len() as u64 + counters.dropped + unsent);
        for first in 0..at_ns.len() {
            for last in first..at_ns.len().min(first + 40) {
                let passed = ((last - first + 1) * 306) as f64;
                let span_ns = (at_ns[last] - at_ns[first]) as f64;
                prop_assert!(passed <= burst_bytes + rate_bps * span_ns / 8e9 + 1e-6);
            }
        }
        prop_assert!(at_ns.windows(2).all(|pair| pair[1] - pair[0] >= 326 * 80));
    }
}

fn pattern(instants_ns: &[u64]) -> SourceConfig {
    SourceConfig {
        shaper_rate_bps: 2_448_000.0, // a frame each millisecond
        shaper_burst_bytes: 612.0,
        ..offering(Offered::Pattern(instants_ns.to_vec()))
    }
}

#[test]
fn a_pattern_is_sent_as_soon_as_the_bucket_allows() {
    let instants_ns = [5, 5, 5, 900_000, 10_000_000];
    let mut source =
        Source::new(&pattern(&instants_ns), line(), 1).expect("a source that can send");
    source.start(1_000, 11_000_000);
    let mut at_ns = Vec::new();
    while let Some(now_ns) = source.next_release_ns(0) {
        source.release(now_ns);
        at_ns.push(now_ns);
    }
    assert_eq!(at_ns, [1_005, 1_005, 1_001_005, 2_001_005, 10_001_000]);
    assert_eq!((source.finish(), source.counters.offered), (0, 5));
}

#[test]
fn a_pattern_that_goes_back_is_refused() {
    let error = Source::new(&pattern(&[7, 6]), line(), 1).expect_err("instants that fall");
    assert_eq!(
        error.to_string(),
        "flow 3: its instants fall: give them in order"
    );
}
