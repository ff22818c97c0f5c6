//! Hosts and cables without boards.

use proptest::prelude::*;
use zodiac_simulator::{BurstsConfig, Error, Network, Offered, RunResult, SourceConfig};

const SLOT_NS: i64 = (8 + 306 + 12) * 80;

fn source(flow: u32, offered_rate_bps: f64) -> SourceConfig {
    SourceConfig {
        flow,
        frame: vec![0; 302],
        sequence_offset: 50,
        shaper_rate_bps: 1e9,
        shaper_burst_bytes: 10_000.0,
        offered: Offered::Bursts(BurstsConfig {
            offered_rate_bps,
            burst_bytes: 3060.0,
            queue_bytes: 30_600.0,
        }),
        observed: true,
        destination: Some("B".into()),
    }
}

fn two_hosts(seed: u64) -> Network {
    let mut network = Network::new(seed);
    network.add_host("A").expect("a new host");
    network.add_host("B").expect("a new host");
    network
        .connect(("A", 1), ("B", 1), 1e8, 1000)
        .expect("free ports");
    network
}

fn run(seed: u64, sources: &[SourceConfig]) -> RunResult {
    let mut network = two_hosts(seed);
    for config in sources {
        network
            .add_source("A", config.clone())
            .expect("a source that can send");
    }
    network.run(100_000_000, 0).expect("the first run")
}

/// Instants at which any source's frame began on the line, in order.
fn line(result: &RunResult) -> Vec<i64> {
    let mut at_ns: Vec<i64> = result
        .flows
        .iter()
        .flat_map(|flow| flow.sent_ns.clone())
        .collect();
    at_ns.sort_unstable();
    at_ns
}

#[test]
fn sources_of_a_host_share_its_line() {
    let result = run(1, &[source(0, 9e7), source(1, 9e7), source(2, 9e7)]);
    let at_ns = line(&result);
    assert!(at_ns.windows(2).all(|pair| pair[1] - pair[0] >= SLOT_NS));
    // Together they want more than the line carries: it never rests, and nobody starves.
    let carried = 3834; // 100 ms / 26.08 us
    assert!(at_ns.len() > carried * 98 / 100, "{}", at_ns.len());
    for flow in &result.flows {
        assert!(flow.counters.sent > 1200, "{:?}", flow.counters);
        assert!(flow.counters.dropped_at_sender > 0);
    }
}

#[test]
fn what_has_not_arrived_at_the_end_is_in_flight() {
    let mut network = Network::new(1);
    for host in ["A", "B"] {
        network.add_host(host).expect("a new host");
    }
    network
        .connect(("A", 1), ("B", 1), 1e8, 50_000_000)
        .expect("free ports");
    network
        .add_source("A", source(0, 1e6))
        .expect("a source that can send");
    let result = network.run(100_000_000, 10_000_000).expect("the first run");
    let counters = result.flows[0].counters;
    assert!(result.in_flight > 0);
    assert_eq!(counters.sent, counters.received + result.in_flight);
}

#[test]
fn refuses_what_makes_no_sense_in_one_line() {
    let network = || two_hosts(1);
    let check = |error: Error, word: &str| {
        let text = error.to_string();
        assert!(text.contains(word) && !text.contains('\n'), "{text}");
    };
    check(network().add_host("A").unwrap_err(), "already");
    check(
        network().connect(("A", 1), ("B", 1), 1e8, 0).unwrap_err(),
        "already",
    );
    check(
        network().add_source("C", source(0, 1e6)).unwrap_err(),
        "no host",
    );
    check(network().control("A", &[]).unwrap_err(), "no board");
    check(network().run(u64::MAX, 0).unwrap_err(), "duration_ns");
    let mut twice = network();
    twice.run(0, 0).expect("the first run");
    check(twice.run(0, 0).unwrap_err(), "second time");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Frames of any sources leave one after the other, arrive in that order, and none is lost on a cable.
    #[test]
    fn a_cable_keeps_order_and_frames(
        rates_bps in prop::collection::vec(1e5f64..2e8, 1..6),
        seed in any::<u64>(),
    ) {
        let sources: Vec<_> = (0..).zip(&rates_bps).map(|(flow, rate)| source(flow, *rate)).collect();
        let result = run(seed, &sources);
        prop_assert!(line(&result).windows(2).all(|pair| pair[1] - pair[0] >= SLOT_NS));
        for flow in &result.flows {
            prop_assert!(flow.counters.sent - flow.counters.received <= result.in_flight);
            let arrived = flow.received_ns.iter().filter(|at_ns| **at_ns >= 0);
            prop_assert_eq!(arrived.count() as u64, flow.counters.received);
            let mut delays_ns = flow.sent_ns.iter().zip(&flow.received_ns).filter(|(_, at_ns)| **at_ns >= 0);
            prop_assert!(delays_ns.all(|(sent_ns, received_ns)| received_ns - sent_ns == 1000));
        }
    }
}

#[test]
fn ten_thousand_hosts_send_at_once() {
    const PAIRS: u32 = 5000;
    let mut network = Network::new(1);
    for pair in 0..PAIRS {
        let (sender, receiver) = (format!("A{pair}"), format!("B{pair}"));
        network.add_host(&sender).expect("a new host");
        network.add_host(&receiver).expect("a new host");
        network
            .connect((&sender, 1), (&receiver, 1), 1e8, 1000)
            .expect("free ports");
        let config = SourceConfig {
            destination: Some(receiver),
            ..source(pair, 9e7)
        };
        network
            .add_source(&sender, config)
            .expect("a source that can send");
    }
    let result = network.run(5_000_000, 10_000_000).expect("the first run");
    assert_eq!(result.flows.len(), PAIRS as usize);
    for flow in &result.flows {
        assert!(!flow.sent_ns.is_empty());
    }
}

/// Every frame either arrives, or is cut, or is on its way; while the cable is out none arrives, and afterwards all do.
#[test]
fn a_cable_is_pulled_and_plugged() {
    for pulled_at in ["A", "B"] {
        let mut network = two_hosts(1);
        network
            .add_source("A", source(0, 1e7))
            .expect("a source that can send");
        network.unplug((pulled_at, 1), 30_000_000).unwrap();
        network.plug((pulled_at, 1), 60_000_000).unwrap();
        let result = network.run(100_000_000, 10_000_000).expect("the first run");
        let counters = result.flows[0].counters;
        assert!(
            result.lost_on_link_down > 50,
            "{}",
            result.lost_on_link_down
        );
        assert_eq!(
            counters.sent,
            counters.received + result.lost_on_link_down + result.in_flight
        );
        let flow = &result.flows[0];
        for (sent_ns, received_ns) in flow.sent_ns.iter().zip(&flow.received_ns) {
            let is_down = (30_000_000..60_000_000).contains(sent_ns);
            assert_eq!(*received_ns == zodiac_simulator::LOST, is_down, "{sent_ns}");
        }
    }
}

#[test]
fn refuses_cables_that_are_not_there() {
    let mut network = two_hosts(1);
    let mut check = |port: (&str, u8), at_ns: u64, word: &str| {
        let text = network.unplug(port, at_ns).unwrap_err().to_string();
        assert!(text.contains(word) && !text.contains('\n'), "{text}");
    };
    check(("C", 1), 0, "add it first");
    check(("A", 2), 0, "no cable");
    check(("A", 1), u64::MAX, "at_ns");
    network.unplug(("A", 1), 5).unwrap();
    assert!(network.plug(("A", 1), 4).is_err(), "in order of time");
    network.run(0, 0).unwrap();
    assert!(network.plug(("A", 1), 9).is_err(), "after the run");
}
