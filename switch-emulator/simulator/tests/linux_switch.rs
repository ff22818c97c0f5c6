//! A Banana Pi R1 between two hosts: what the Loko paper measured of it, and what its interference does.

use zodiac_simulator::{
    BurstsConfig, DeviceProfile, Network, Offered, RunResult, SourceConfig, SwitchConfig,
    BANANA_PI_R1, LOST,
};

const GIGABIT_BPS: f64 = 1e9;

/// `FLOW_MOD`: what comes in on `from` leaves by `to`.
fn flow_mod(from: u8, to: u8) -> Vec<u8> {
    let mut message = vec![0; 80];
    message[..4].copy_from_slice(&[1, 14, 0, 80]);
    message[8..12].copy_from_slice(&0x003f_fffe_u32.to_be_bytes());
    message[13] = from;
    message[64..68].copy_from_slice(&[0xff; 4]); // no buffer
    message[72..78].copy_from_slice(&[0, 0, 0, 8, 0, to]);
    message
}

fn run(frame_bytes: u16, rate_bps: f64, seed: u64, seconds: u64) -> RunResult {
    let DeviceProfile::Switch(profile) =
        DeviceProfile::from_toml(BANANA_PI_R1).expect("the profile in the repository")
    else {
        panic!("a Banana Pi is no Zodiac FX");
    };
    let mut network = Network::new(seed);
    network
        .add_switch("s1", &profile, &SwitchConfig::default())
        .expect("a new switch");
    for (host, port) in [("H1", 1), ("H2", 5)] {
        network.add_host(host).expect("a new host");
        network
            .connect((host, 1), ("s1", port), GIGABIT_BPS, 0)
            .expect("free ports");
    }
    let barrier = vec![1, 18, 0, 8, 0, 0, 0, 9];
    let replies = network
        .control("s1", &[flow_mod(1, 5), barrier])
        .expect("a switch before its run");
    assert_eq!(replies.last(), Some(&vec![1, 19, 0, 8, 0, 0, 0, 9]));
    let frame = f64::from(frame_bytes);
    network
        .add_source(
            "H1",
            SourceConfig {
                flow: 1,
                frame: vec![0; usize::from(frame_bytes) - 4],
                sequence_offset: 50,
                shaper_rate_bps: rate_bps,
                shaper_burst_bytes: frame,
                offered: Offered::Bursts(BurstsConfig {
                    offered_rate_bps: 2.0 * rate_bps,
                    burst_bytes: frame,
                    queue_bytes: 100.0 * frame,
                }),
                observed: true,
                destination: Some("H2".into()),
            },
        )
        .expect("a source that can send");
    network
        .run(seconds * 1_000_000_000, 100_000_000)
        .expect("the first run")
}

fn delays_ns(result: &RunResult) -> Vec<i64> {
    let flow = &result.flows[0];
    flow.sent_ns
        .iter()
        .zip(&flow.received_ns)
        .filter(|(_, received_ns)| **received_ns != LOST)
        .map(|(sent_ns, received_ns)| received_ns - sent_ns)
        .collect()
}

/// Section 2.3: 645 Mbit/s at 1470 bytes.
#[test]
fn carries_what_the_paper_measured_and_no_more() {
    let result = run(1470, 9e8, 1, 5);
    let flow = &result.flows[0];
    let (first_ns, last_ns) = flow
        .received_ns
        .iter()
        .filter(|at_ns| **at_ns != LOST)
        .fold((i64::MAX, 0), |(first, last), at| {
            (first.min(*at), last.max(*at))
        });
    #[allow(clippy::cast_precision_loss)]
    let rate_mbps =
        (flow.counters.received - 1) as f64 * 1470.0 * 8e3 / (last_ns - first_ns) as f64;
    assert!((rate_mbps - 645.0).abs() < 6.45, "{rate_mbps} Mbit/s");
    let counters = result.boards[0].counters;
    assert_eq!(flow.counters.sent, counters.received);
    assert_eq!(counters.forwarded, flow.counters.received);
    assert_eq!(
        counters.dropped_buffer,
        flow.counters.sent - flow.counters.received
    );
}

/// Most frames find the switch idle: 2 transits, 2 links to the CPU, the interrupt, and the work. A few profit from a
/// CPU that is awake already; and some wait for what else the CPU does.
#[test]
fn delays_have_a_long_tail() {
    let mut delays = delays_ns(&run(306, 5e7, 1, 5));
    delays.sort_unstable();
    let quantile = |share: usize| delays[(delays.len() - 1) * share / 10_000];
    let idle_ns =
        2 * (2_000 + (8 + 306 + 4) * 8) + 10_000 + (9_000_000 + 306 * 6_140 + 500) / 1_000;
    let median = quantile(5_000);
    assert_eq!(median, (8 + 306) * 8 + idle_ns);
    assert!(quantile(0) > median - 10_000, "{}", quantile(0));
    assert!(quantile(9_990) > median + 20_000, "{}", quantile(9_990));
    assert!(quantile(10_000) > median + 200_000, "{}", quantile(10_000));
}

#[test]
fn the_seed_fixes_everything() {
    let one = run(306, 5e7, 1, 1);
    assert_eq!(one, run(306, 5e7, 1, 1));
    assert_ne!(delays_ns(&one), delays_ns(&run(306, 5e7, 2, 1)));
}

#[test]
fn ports_and_rates_come_from_the_profile() {
    let DeviceProfile::Switch(profile) = DeviceProfile::from_toml(BANANA_PI_R1).unwrap() else {
        panic!("a Banana Pi is no Zodiac FX");
    };
    let mut network = Network::new(1);
    network
        .add_switch("s1", &profile, &SwitchConfig::default())
        .unwrap();
    network.add_host("H1").unwrap();
    let refusal = |network: &mut Network, port, rate_bps| {
        network
            .connect(("H1", 1), ("s1", port), rate_bps, 0)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal(&mut network, 6, GIGABIT_BPS),
        "board \"s1\" has no port 6: give 1 .. 5"
    );
    assert_eq!(
        refusal(&mut network, 0, GIGABIT_BPS),
        "board \"s1\" has no port 0: give 1 .. 5"
    );
    assert!(refusal(&mut network, 1, 1e8).contains("1000000000 bit/s"));
}
