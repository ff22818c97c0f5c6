//! Control traffic as frames: boards that reach a controller by their native ports, in virtual time.

use std::net::Ipv4Addr;

use zodiac_firmware::{Config, ControlCarrier, MacAddress, Profile, ZODIAC_FX};
use zodiac_simulator::{ControllerConfig, Network};

const HELLO: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];
const FEATURES_REQUEST: [u8; 8] = [1, 5, 0, 8, 0, 0, 0, 2];
const BARRIER_REQUEST: [u8; 8] = [1, 18, 0, 8, 0, 0, 0, 3];
const RATE_BPS: f64 = 100e6;
const SECOND_NS: u64 = 1_000_000_000;

fn config(number: u8) -> Config {
    Config {
        mac: MacAddress([0x70, 0xb3, 0xd5, 0x6c, 0, number]),
        ip_address: Ipv4Addr::new(10, 0, 1, 100 + number),
        control: ControlCarrier::Network,
        ofchecks: false,
        ..Config::default()
    }
}

/// Two boards, each with a cable to the controller.
fn network(seed: u64) -> Network {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    let mut network = Network::new(seed);
    network
        .add_controller("C", ControllerConfig::default())
        .unwrap();
    for (number, name) in [(1, "s1"), (2, "s2")] {
        network.add_board(name, &profile, config(number)).unwrap();
        network
            .connect(("C", number), (name, 4), RATE_BPS, 0)
            .unwrap();
    }
    network
}

fn types(messages: &[Vec<u8>]) -> Vec<u8> {
    messages.iter().map(|message| message[1]).collect()
}

#[test]
fn several_boards_reach_one_controller() {
    let mut network = network(1);
    for name in ["s1", "s2"] {
        let replies = network
            .control(name, &[HELLO.into(), FEATURES_REQUEST.into()])
            .unwrap();
        assert_eq!(types(&replies), [0, 6]);
        assert_eq!(replies[1].len(), 176);
    }
    let replies = network.control("s1", &[BARRIER_REQUEST.into()]).unwrap();
    assert_eq!(types(&replies), [19]);
}

#[test]
fn a_write_longer_than_a_segment_loses_messages() {
    let mut network = network(1);
    network
        .control("s1", &[HELLO.into(), FEATURES_REQUEST.into()])
        .unwrap();
    let barriers = BARRIER_REQUEST.repeat(65);
    let replies = network.control("s1", &[barriers]).unwrap();
    // 536 bytes hold 67 of them.
    assert_eq!(replies.len(), 65);
    let echo = [&[1, 2, 2, 0x20, 0, 0, 0, 9][..], &[0; 0x218]].concat();
    let replies = network.control("s1", &[echo]).unwrap();
    assert!(
        replies.is_empty(),
        "{} replies to a split message",
        replies.len()
    );
}

#[test]
fn the_same_seed_gives_the_same_frames() {
    let replies = |seed| {
        let mut network = network(seed);
        let script = [
            HELLO.into(),
            FEATURES_REQUEST.into(),
            BARRIER_REQUEST.into(),
        ];
        let replies = network.control("s1", &script).unwrap();
        (replies, network.run(5 * SECOND_NS, 0).unwrap())
    };
    assert_eq!(replies(3), replies(3));
}

#[test]
fn a_session_lives_through_a_run() {
    let mut network = network(1);
    network
        .control("s1", &[HELLO.into(), FEATURES_REQUEST.into()])
        .unwrap();
    let result = network.run(20 * SECOND_NS, 0).unwrap();
    let board = &result.boards[0];
    assert_eq!(board.counters.received, 0);
    // Every 3 s an echo request, its answer, and an acknowledgement of that; the handshake before.
    assert!(
        (8..15).contains(&board.counters.native_received),
        "{board:?}"
    );
    assert!((14..20).contains(&board.counters.native_sent), "{board:?}");
    assert!(
        result.events.iter().all(|event| event.board == "s2"),
        "{:?}",
        result.events
    );
}

#[test]
fn without_a_controller_a_board_on_a_network_is_refused() {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    let mut network = Network::new(1);
    network.add_board("s1", &profile, config(1)).unwrap();
    let error = network.control("s1", &[]).unwrap_err();
    assert!(error.to_string().contains("add_controller()"), "{error}");
    network
        .add_controller(
            "C",
            ControllerConfig {
                tcp_port: 6653,
                ..ControllerConfig::default()
            },
        )
        .unwrap();
    network.connect(("C", 1), ("s1", 4), RATE_BPS, 0).unwrap();
    let error = network.control("s1", &[]).unwrap_err();
    assert!(error.to_string().contains("controller_port"), "{error}");
}
