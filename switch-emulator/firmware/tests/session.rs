//! The connection to the controller: hello, signs of life, loss and return.

mod testbed;

use testbed::{
    everything, message, output, port, quiet_config, quiet_profile, udp, FlowMod, Testbed, SETTLE,
};
use zodiac_firmware::{Config, Duration, Event, FailState, Quirks};

const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const FEATURES_REQUEST: u8 = 5;
const PORT_STATUS: u8 = 12;
const BARRIER_REQUEST: u8 = 18;

const TICK: Duration = Duration::from_millis(501);

fn bed() -> Testbed {
    Testbed::connected(&quiet_profile(), quiet_config())
}

fn bed_with_housekeeping(config: Config) -> Testbed {
    Testbed::new(&quiet_profile(), with_housekeeping(config))
}

fn with_housekeeping(config: Config) -> Config {
    Config {
        ofchecks: true,
        loop_phase_ns: Some(0),
        ..config
    }
}

fn ticks(bed: &mut Testbed, count: usize) {
    (0..count).for_each(|_| bed.wait(TICK));
}

#[test]
fn hello_says_1_3_and_is_not_answered() {
    let mut bed = Testbed::new(&quiet_profile(), quiet_config());
    bed.board.connected(bed.now);
    bed.wait(SETTLE);
    assert_eq!(bed.replies, [[4, 0, 0, 8, 0, 0, 0, 1]]);
    bed.replies.clear();
    assert!(bed.exchange(&message(HELLO, &[])).is_empty());
}

#[test]
fn a_forced_version_is_the_one_in_hello() {
    let mut bed = Testbed::new(
        &quiet_profile(),
        Config {
            openflow_version: 1,
            ..quiet_config()
        },
    );
    bed.board.connected(bed.now);
    bed.wait(SETTLE);
    assert_eq!(bed.replies, [[1, 0, 0, 8, 0, 0, 0, 1]]);
    bed.replies.clear();
    bed.exchange(&[4, HELLO, 0, 8, 0, 0, 0, 9]);
    assert_eq!(
        bed.exchange(&message(BARRIER_REQUEST, &[])),
        [[1, 19, 0, 8, 0, 0, 0, 7]]
    );
}

#[test]
fn before_hello_only_echo_is_answered() {
    let mut bed = Testbed::new(&quiet_profile(), quiet_config());
    bed.board.connected(bed.now);
    bed.wait(SETTLE);
    bed.replies.clear();
    assert!(bed.exchange(&message(FEATURES_REQUEST, &[])).is_empty());
    assert_eq!(
        bed.exchange(&message(ECHO_REQUEST, b"payload")),
        [[0, 3, 0, 8, 0, 0, 0, 7]]
    );
}

#[test]
fn a_version_that_is_not_spoken_is_reported() {
    let mut bed = Testbed::new(&quiet_profile(), quiet_config());
    bed.board.connected(bed.now);
    bed.exchange(&[2, HELLO, 0, 8, 0, 0, 0, 9]);
    assert_eq!(bed.events, [Event::VersionUnusable { version: 2 }]);
    assert!(bed.exchange(&message(BARRIER_REQUEST, &[])).is_empty());
}

/// On a board without OpenFlow 1.3 a controller that speaks nothing else sees its sessions end; the events say why, not that
/// it did something wrong.
#[test]
fn a_session_in_openflow_1_3_is_told_of() {
    for (openflow_version, hello, start) in [
        (0, 4, vec![]),
        (0, 5, vec![]),
        (4, 1, vec![Event::NewerVersionForced]),
    ] {
        let config = Config {
            openflow_version,
            ..Config::default()
        };
        let mut profile = quiet_profile();
        profile.cpu.openflow13 = None;
        let mut bed = Testbed::new(&profile, with_housekeeping(config));
        bed.wait(SETTLE);
        assert_eq!(bed.events, start);
        bed.board.connected(bed.now);
        bed.exchange(&[hello, HELLO, 0, 8, 0, 0, 0, 9]);
        bed.exchange(&[4, FEATURES_REQUEST, 0, 8, 0, 0, 0, 10]);
        ticks(&mut bed, 7);
        assert_eq!(bed.closes.len(), 1);
        let told = [
            Event::NewerVersionNegotiated {
                version: hello,
                forced: openflow_version == 4,
            },
            Event::NewerVersionClosed,
        ];
        // Each message that is lost is told of, too.
        bed.events
            .retain(|event| !matches!(event, Event::MessageMisread { .. }));
        assert_eq!(bed.events[start.len()..], told);
        for event in &bed.events {
            let text = event.to_string();
            assert!(text.contains("OpenFlow 1.3"), "{text}");
            assert!(!text.contains("(quirk"), "{text}");
        }
        // The advised setting works.
        let mut bed = Testbed::connected(
            &quiet_profile(),
            Config {
                openflow_version: 1,
                ..Config::default()
            },
        );
        assert_eq!(bed.exchange(&message(BARRIER_REQUEST, &[])).len(), 1);
        assert!(bed.events.is_empty());
    }
}

#[test]
fn the_first_attempt_to_connect_comes_after_four_ticks() {
    let mut bed = bed_with_housekeeping(Config::default());
    bed.wait(Duration::from_millis(9_000));
    let seconds: Vec<_> = bed
        .connects
        .iter()
        .map(|at| at.as_nanos() / 10_000_000)
        .collect();
    assert_eq!(
        seconds,
        [200, 400, 601, 801],
        "hundredths of a second: again and again until it succeeds"
    );
}

#[test]
fn a_session_without_features_request_is_closed() {
    let mut bed = bed_with_housekeeping(Config::default());
    bed.board.connected(bed.now);
    bed.exchange(&message(HELLO, &[]));
    ticks(&mut bed, 7);
    assert_eq!(bed.closes.len(), 1);
    assert_eq!(bed.events, [Event::NoFeaturesRequest]);
}

#[test]
fn silence_leads_to_echo_requests_and_then_to_the_end() {
    let mut bed = bed_with_housekeeping(Config::default());
    bed.connect();
    ticks(&mut bed, 14);
    assert_eq!(bed.replies, vec![vec![1, 2, 0, 8, 0xd2, 4, 0, 0]; 8]);
    assert_eq!(bed.events, [Event::ControllerSilent]);
    let closed = bed.closes[0];
    ticks(&mut bed, 4);
    assert_eq!(
        (bed.connects[0] - closed).as_nanos() / 10_000_000,
        150,
        "three ticks later"
    );
}

#[test]
fn without_ofchecks_silence_does_not_end_the_session() {
    let mut bed = Testbed::new(&quiet_profile(), quiet_config());
    bed.connect();
    ticks(&mut bed, 60);
    assert!(bed.closes.is_empty());
    assert!(bed.replies.iter().all(|reply| reply[1] == ECHO_REQUEST));
    bed.board.link_state(bed.now, port(1), false);
    bed.replies.clear();
    ticks(&mut bed, 6);
    assert!(
        bed.replies.iter().all(|reply| reply[1] == ECHO_REQUEST),
        "nor is the link watched"
    );
}

#[test]
fn a_pulled_cable_is_reported_once() {
    let mut bed = bed_with_housekeeping(Config::default());
    bed.connect();
    bed.board.link_state(bed.now, port(2), false);
    ticks(&mut bed, 4);
    assert_eq!(bed.replies.len(), 1);
    let status = &bed.replies[0];
    assert_eq!(
        (status[1], status[8], status[17], status[47]),
        (12, 2, 2, 1)
    );
}

/// The links are read on whether or not somebody can be told: what nobody was told shows in the next handshake, and is
/// not reported behind it.
#[test]
fn a_cable_pulled_while_the_controller_is_away_shows_in_the_next_handshake() {
    const PORT_DESC: [u8; 8] = [0, 13, 0, 0, 0, 0, 0, 0];
    for (quirks, version) in [Quirks::Firmware, Quirks::Spec]
        .into_iter()
        .flat_map(|quirks| [(quirks, 1), (quirks, 4)])
    {
        let mut bed = bed_with_housekeeping(Config {
            quirks,
            ..Config::default()
        });
        let ask = |bed: &mut Testbed, kind, body: &[u8]| {
            let mut request = message(kind, body);
            request[0] = version;
            bed.exchange(&request)
        };
        bed.board.connected(bed.now);
        ask(&mut bed, HELLO, &[]);
        bed.board.disconnected(bed.now);
        bed.board.link_state(bed.now, port(2), false);
        ticks(&mut bed, 3);
        bed.board.connected(bed.now);
        ask(&mut bed, HELLO, &[]);
        let features = ask(&mut bed, FEATURES_REQUEST, &[]).remove(0);
        let state = if version == 1 {
            features[32 + 48 + 31]
        } else {
            ask(&mut bed, 18, &PORT_DESC).remove(0)[16 + 64 + 39]
        };
        assert_eq!(state & 1, 1, "{quirks:?}, {version}: port 2 is down");
        ticks(&mut bed, 4);
        assert!(
            bed.replies.iter().all(|reply| reply[1] != PORT_STATUS),
            "{quirks:?}, {version}"
        );
    }
}

#[test]
fn fail_states_differ_while_the_controller_is_away() {
    for (fail_state, forwarded) in [(FailState::Secure, 0), (FailState::Safe, 1)] {
        let mut bed = Testbed::connected(
            &quiet_profile(),
            Config {
                fail_state,
                ..quiet_config()
            },
        );
        bed.install([FlowMod::add(everything(), 1, output(3))]);
        bed.board.disconnected(bed.now);
        assert_eq!(bed.frame(1, &udp(306, 0)).len(), forwarded);
        assert_eq!(bed.board.flows().len(), forwarded);
        bed.board.connected(bed.now);
        assert!(bed.frame(1, &udp(306, 0)).is_empty(), "not before HELLO");
        assert!(
            bed.replies.iter().all(|reply| reply[1] == HELLO),
            "nothing missed"
        );
    }
}

#[test]
fn a_controller_that_comes_back_finds_a_working_board() {
    let mut bed = bed();
    for _ in 0..3 {
        bed.install([FlowMod::add(everything(), 1, output(3))]);
        assert_eq!(bed.frame(1, &udp(306, 0)).len(), 1);
        bed.board.disconnected(bed.now);
        bed.wait(Duration::from_millis(3_000));
        assert!(!std::mem::take(&mut bed.connects).is_empty());
        bed.connect();
    }
}
