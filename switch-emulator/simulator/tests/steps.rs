//! Networks that are advanced step by step.

use zodiac_firmware::{Config, Profile, ZODIAC_FX};
use zodiac_simulator::{BurstsConfig, Error, Network, Offered, SourceConfig, StepOutputKind};

/// wire(l) of the shortest frame, and the time until the next one may begin.
const WIRE_NS: u64 = (8 + 64) * 80;
const SLOT_NS: u64 = WIRE_NS + 12 * 80;
const PROPAGATION_NS: u64 = 1000;
const MS: u64 = 1_000_000;

fn two_hosts() -> Network {
    let mut network = Network::new(1);
    for host in ["A", "B"] {
        network.add_host(host).expect("a new host");
    }
    network
        .connect(("A", 1), ("B", 1), 1e8, PROPAGATION_NS)
        .expect("free ports");
    network
}

fn board_between_hosts() -> Network {
    let profile = Profile::from_toml(ZODIAC_FX).expect("the built-in profile");
    let mut network = Network::new(1);
    network
        .add_board("s", &profile, Config::default())
        .expect("a new board");
    for (port, host) in [(1, "A"), (2, "B")] {
        network.add_host(host).expect("a new host");
        network
            .connect((host, 1), ("s", port), 1e8, 0)
            .expect("free ports");
    }
    network
}

/// Returns when each frame reached a host, which, and its last byte.
fn frames(network: &mut Network) -> Vec<(u64, String, u8)> {
    let outputs = network.step_outputs().into_iter();
    outputs
        .filter_map(|output| match output.kind {
            StepOutputKind::Frame(data) => Some((output.at_ns, output.node, data[data.len() - 1])),
            _ => None,
        })
        .collect()
}

#[test]
fn frames_of_a_host_follow_one_another_on_its_line() {
    let mut network = two_hosts();
    network.advance(MS).expect("later");
    assert_eq!(network.now_ns(), MS);
    assert_eq!(network.send("A", vec![1; 60], MS), Ok(MS + SLOT_NS));
    assert_eq!(network.send("A", vec![2; 60], MS), Ok(MS + 2 * SLOT_NS));
    assert_eq!(network.send("B", vec![3; 60], MS), Ok(MS + SLOT_NS));
    let first_ns = MS + PROPAGATION_NS;
    network.advance(first_ns - 1).expect("later");
    assert_eq!(frames(&mut network), [], "what lies ahead is not told yet");
    network.advance(2 * MS).expect("later");
    let reached = |at_ns, host: &str, byte| (at_ns, host.to_owned(), byte);
    assert_eq!(
        frames(&mut network),
        [
            reached(first_ns, "B", 1),
            reached(first_ns, "A", 3),
            reached(first_ns + SLOT_NS, "B", 2)
        ]
    );
    assert!(frames(&mut network).is_empty());
}

#[test]
fn the_caller_keeps_the_session_of_a_board() {
    let mut network = board_between_hosts();
    network.advance(3_000 * MS).expect("later");
    let kinds = |network: &mut Network| -> Vec<_> {
        let outputs = network.step_outputs().into_iter();
        outputs.map(|output| (output.node, output.kind)).collect()
    };
    assert!(kinds(&mut network).contains(&("s".into(), StepOutputKind::Connect)));
    network.connected("s").expect("a board");
    network
        .segment("s", &[1, 0, 0, 8, 0, 0, 0, 1])
        .expect("a board");
    network
        .segment("s", &[1, 18, 0, 8, 0, 0, 0, 2])
        .expect("a board");
    network
        .segment("s", &[1, 5, 0, 8, 0, 0, 0, 3])
        .expect("a board");
    network.advance(3_010 * MS).expect("later");
    let told = kinds(&mut network);
    let barrier = |(_, kind): &(String, StepOutputKind)| matches!(kind, StepOutputKind::Controller(bytes) if bytes[1] == 19);
    assert!(told.iter().any(barrier), "{told:?}");
    network.advance(30_000 * MS).expect("later");
    let told = kinds(&mut network);
    let echo = |(_, kind): &(String, StepOutputKind)| matches!(kind, StepOutputKind::Controller(bytes) if bytes[1] == 2);
    assert!(
        told.iter().any(echo),
        "nobody answers in the caller's place: {told:?}"
    );
    network.disconnected("s").expect("a board");
    assert!(network.zodiac("s").expect("a board").flows().is_empty());
}

#[test]
fn ports_without_a_cable_have_no_link() {
    let mut network = board_between_hosts();
    network.advance(3_000 * MS).expect("later");
    network.connected("s").expect("a board");
    for (kind, xid) in [(0, 1), (5, 2)] {
        network
            .segment("s", &[1, kind, 0, 8, 0, 0, 0, xid])
            .expect("a board");
    }
    network.advance(3_010 * MS).expect("later");
    let outputs = network.step_outputs().into_iter();
    let features: Vec<_> = outputs
        .filter_map(|output| match output.kind {
            StepOutputKind::Controller(bytes) if bytes[1] == 6 => Some(bytes),
            _ => None,
        })
        .collect();
    assert_eq!(features.len(), 1);
    let states: Vec<_> = features[0][32..]
        .chunks_exact(48)
        .map(|port| (port[1], port[31] == 0))
        .collect();
    assert_eq!(states, [(1, true), (2, true), (3, false)]);
}

#[test]
fn a_cable_loses_frames_while_it_is_out() {
    let mut network = board_between_hosts();
    network.advance(3_000 * MS).expect("later");
    let unknown = network.set_link(("s", 3), false).unwrap_err();
    assert!(unknown.to_string().contains("has no cable"), "{unknown}");
    network.set_link(("s", 1), false).expect("a cable");
    network.connected("s").expect("a board");
    network.advance(3_010 * MS).expect("later");
    assert!(network
        .send("A", vec![1; 60], 3_010 * MS)
        .is_ok_and(|free| free > 3_010 * MS));
    let mut straight = two_hosts();
    straight.advance(MS).expect("later");
    straight.set_link(("B", 1), false).expect("a cable");
    straight.send("A", vec![1; 60], MS).expect("a host");
    straight.advance(2 * MS).expect("later");
    assert_eq!(frames(&mut straight), []);
    straight.set_link(("A", 1), true).expect("a cable");
    straight.send("A", vec![2; 60], 2 * MS).expect("a host");
    straight.advance(3 * MS).expect("later");
    assert_eq!(frames(&mut straight).len(), 1);
}

#[test]
fn a_board_restarts_by_its_console() {
    let mut network = board_between_hosts();
    network.advance(3_000 * MS).expect("later");
    network.connected("s").expect("a board");
    network.step_outputs();
    network.console("s", b"\rrestart\r").expect("a board");
    network.advance(9_000 * MS).expect("later");
    let kinds: Vec<_> = network
        .step_outputs()
        .into_iter()
        .map(|told| told.kind)
        .collect();
    let closed = kinds.iter().position(|kind| *kind == StepOutputKind::Close);
    let connects = kinds
        .iter()
        .rposition(|kind| *kind == StepOutputKind::Connect);
    assert!(closed.is_some() && connects > closed, "{kinds:?}");
    assert!(network.console("A", b"\rrestart\r").is_err());
}

#[test]
fn many_small_steps_are_as_good_as_one() {
    let mut results = Vec::new();
    for step_ns in [50 * MS, 7_919] {
        let mut network = board_between_hosts();
        // ADD: everything to port 2.
        let mut add = vec![1, 14, 0, 80, 0, 0, 0, 1, 0, 0x3f, 0xff, 0xff];
        add.resize(64, 0);
        add[62] = 0x80;
        add.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        add.extend([0, 0, 0, 8, 0, 2, 0, 0]);
        let hello = vec![1, 0, 0, 8, 0, 0, 0, 2];
        let features_request = vec![1, 5, 0, 8, 0, 0, 0, 3];
        network
            .control("s", &[hello, features_request, add])
            .expect("a board");
        let begin_ns = network.now_ns();
        for number in 0..8 {
            let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
            frame.resize(100, 0);
            frame[23] = 17; // UDP
            frame[99] = number;
            network.send("A", frame, begin_ns).expect("a host");
        }
        let mut now_ns = begin_ns;
        while now_ns < begin_ns + 50 * MS {
            now_ns = (now_ns + step_ns).min(begin_ns + 50 * MS);
            network.advance(now_ns).expect("later");
        }
        results.push(frames(&mut network));
    }
    assert_eq!(results[0].len(), 8);
    assert_eq!(results[0], results[1]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut network = two_hosts();
    network.advance(5).expect("later");
    assert!(matches!(
        network.advance(4),
        Err(Error::Value { name: "to_ns", .. })
    ));
    assert!(matches!(network.send("C", vec![], 5), Err(Error::Name(_))));
    assert!(matches!(
        network.send("A", vec![0; 1519], 5),
        Err(Error::Value { .. })
    ));
    assert!(matches!(network.connected("A"), Err(Error::Name(_))));
    assert!(matches!(network.run(1, 1), Err(Error::Order(_))));
    let source = SourceConfig {
        flow: 0,
        frame: vec![0; 302],
        sequence_offset: 50,
        shaper_rate_bps: 1e9,
        shaper_burst_bytes: 10_000.0,
        offered: Offered::Bursts(BurstsConfig {
            offered_rate_bps: 1e6,
            burst_bytes: 3060.0,
            queue_bytes: 30_600.0,
        }),
        observed: true,
        destination: Some("B".into()),
    };
    assert!(matches!(
        network.add_source("A", source.clone()),
        Err(Error::Order(_))
    ));
    let mut network = two_hosts();
    network.add_source("A", source).expect("a source");
    assert!(matches!(network.advance(1), Err(Error::Order(_))));
    network.run(1, 1).expect("the first run");
    assert!(matches!(network.advance(10), Err(Error::Order(_))));
}
