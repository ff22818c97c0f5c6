//! Whatever comes in, the board goes on: no panic, no growth, and every frame accounted for.

mod testbed;

use proptest::prelude::*;
use testbed::{everything, message, output, port, quiet_config, udp, FlowMod, Testbed};
use zodiac_firmware::{
    Board, Config, Duration, FailState, Instant, OutputKind, Profile, Quirk, QuirkSet, Quirks,
    ZODIAC_FX,
};

/// Something that a driver does.
#[derive(Clone, Debug)]
enum Step {
    Frame(u8, Vec<u8>),
    Segment(Vec<u8>),
    Connected,
    Disconnected,
    Link(u8, bool),
    Wait(u64),
}

fn frame_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..1_600),
        (18_usize..400, any::<u16>())
            .prop_map(|(length, number)| udp(length.max(64), number % 100)),
        // A likely beginning, then anything.
        (
            prop::sample::select(vec![[0x81, 0x00], [0x08, 0x00], [0x08, 0x06], [0x88, 0x47]]),
            prop::collection::vec(any::<u8>(), 0..90)
        )
            .prop_map(|(kind, rest)| [&[2; 12], &kind[..], &rest].concat()),
    ]
}

/// Returns an action with any type, length and contents.
fn action() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..13_u16, any::<[u8; 4]>()).prop_map(|(kind, rest)| [
            &kind.to_be_bytes()[..],
            &[0, 8],
            &rest
        ]
        .concat()),
        (4..12_u16, any::<[u8; 12]>()).prop_map(|(kind, rest)| [
            &kind.to_be_bytes()[..],
            &[0, 16],
            &rest
        ]
        .concat()),
        prop::collection::vec(any::<u8>(), 0..40),
        (1..5_u16).prop_map(output),
        Just(output(0xfffd)),
        Just(output(0xfffb)),
    ]
}

fn segment() -> impl Strategy<Value = Vec<u8>> {
    let flow_mod = (
        any::<[u8; 40]>(),
        any::<bool>(),
        0..6_u16,
        any::<u16>(),
        prop::collection::vec(action(), 0..6),
    )
        .prop_map(|(fields, wild, command, priority, actions)| {
            let fields = if wild { everything() } else { fields };
            FlowMod::add(fields, priority, actions.concat())
                .command(command)
                .message()
        });
    let any_message = (0..32_u8, prop::collection::vec(any::<u8>(), 0..100))
        .prop_map(|(kind, body)| message(kind, &body));
    let messages = prop::collection::vec(prop_oneof![flow_mod, any_message], 0..5)
        .prop_map(|list| list.concat());
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..600),
        messages.clone(),
        // Cut anywhere, or with one byte changed.
        (messages.clone(), any::<prop::sample::Index>())
            .prop_map(|(bytes, at)| bytes[..at.index(bytes.len() + 1)].to_vec()),
        (messages, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, at, value)| {
            let length = bytes.len();
            if length > 0 {
                bytes[at.index(length)] = value;
            }
            bytes
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..5_u8, frame_bytes()).prop_map(|(port, frame)| Step::Frame(port, frame)),
        6 => segment().prop_map(Step::Segment),
        1 => Just(Step::Connected),
        1 => Just(Step::Disconnected),
        1 => (1..5_u8, any::<bool>()).prop_map(|(port, up)| Step::Link(port, up)),
        4 => prop_oneof![0..10_000_u64, 0..2_000_000_000_u64].prop_map(Step::Wait),
    ]
}

/// All deviations, none, and any of them.
fn quirks() -> impl Strategy<Value = Quirks> {
    let set = prop::sample::subsequence(Quirk::ALL.to_vec(), 0..=Quirk::ALL.len());
    let set = set.prop_map(QuirkSet::from_iter);
    prop_oneof![
        1 => Just(Quirks::Firmware),
        1 => Just(Quirks::Spec),
        2 => set.prop_map(Quirks::Without),
    ]
}

/// Quirks that a board can have that always speaks this version.
fn of_version(quirks: Quirks, openflow_version: u8) -> Quirks {
    let Quirks::Without(set) = quirks else {
        return quirks;
    };
    let applies = |quirk: &Quirk| match openflow_version {
        1 => quirk.is_of_10(),
        4 => quirk.is_of_13(),
        _ => true,
    };
    Quirks::Without(set.iter().filter(applies).collect())
}

fn config() -> impl Strategy<Value = Config> {
    (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![0, 1, 1, 4]),
        quirks(),
        prop::sample::select(vec![0, 200_000, 50_000_000]),
    )
        .prop_map(
            |(safe, ethertype_filter, ofchecks, openflow_version, quirks, acknowledgement_ns)| {
                Config {
                    quirks: of_version(quirks, openflow_version),
                    acknowledgement_ns,
                    fail_state: if safe {
                        FailState::Safe
                    } else {
                        FailState::Secure
                    },
                    ethertype_filter,
                    ofchecks,
                    openflow_version,
                    ..Config::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn anything_may_come(config in config(), seed in any::<u64>(), steps in prop::collection::vec(step(), 0..60)) {
        let profile = Profile::from_toml(ZODIAC_FX).unwrap();
        let mut board = Board::new(&profile, config, seed).unwrap();
        let mut now = Instant::from_nanos(seed % 1_000_000_007);
        board.connected(now);
        board.segment(now, &message(0, &[]));
        let mut departures = 0;
        for step in steps {
            match step {
                Step::Frame(number, frame) => board.frame(now, port(number), &frame),
                Step::Segment(payload) => board.segment(now, &payload),
                Step::Connected => board.connected(now),
                Step::Disconnected => board.disconnected(now),
                Step::Link(number, up) => board.link_state(now, port(number), up),
                Step::Wait(nanos) => now += Duration::from_nanos(nanos),
            }
            board.advance(now);
            prop_assert!(board.poll_at().unwrap() > now);
            while let Some(output) = board.poll_output() {
                match output.kind {
                    OutputKind::Frame { ports, data } => {
                        prop_assert!((60..=1_517).contains(&data.len()) && !ports.is_empty());
                        departures += ports.len() as u64;
                    }
                    OutputKind::Event(event) => prop_assert!(!event.to_string().contains('\n')),
                    _ => {}
                }
            }
            prop_assert!(board.flows().len() <= 128);
        }
        board.advance(now + Duration::from_millis(5_000));
        while let Some(output) = board.poll_output() {
            if let OutputKind::Frame { ports, .. } = output.kind {
                departures += ports.len() as u64;
            }
        }
        let counters = board.counters();
        prop_assert_eq!(counters.forwarded, departures);
        prop_assert!(counters.ring_units_peak <= 24);
        let accounted = counters.processed
            + counters.dropped_buffer
            + counters.dropped_switch
            + counters.bridged;
        prop_assert!(counters.received >= accounted);
        prop_assert!(counters.received - accounted <= counters.dropped_size + counters.dropped_policy);
    }

    /// Every cut of a stream into segments is survived, and a board that was cut up still answers.
    #[test]
    fn any_segmentation_is_survived(cuts in prop::collection::vec(1..536_usize, 1..20)) {
        let mut bed = Testbed::connected(&testbed::quiet_profile(), quiet_config());
        let stream: Vec<u8> = (0..20)
            .flat_map(|priority| FlowMod::add(everything(), priority, output(3)).message())
            .collect();
        let mut at = 0;
        for cut in cuts {
            let end = (at + cut).min(stream.len());
            bed.exchange(&stream[at..end]);
            at = end;
        }
        prop_assert_eq!(bed.exchange(&message(18, &[])).len(), 1);
    }
}

/// Three ports at line rate are more than the link to the CPU carries: the integrated switch drops.
#[test]
fn overload_from_all_ports_is_bounded() {
    let mut bed = Testbed::connected(&testbed::quiet_profile(), quiet_config());
    bed.install([FlowMod::add(everything(), 1, output(3))]);
    let frame = udp(1516, 0);
    for _ in 0..3_000 {
        for number in 1..4 {
            bed.board.frame(bed.now, port(number), &frame);
        }
        bed.wait(Duration::from_nanos(1536 * 80));
    }
    bed.wait(Duration::from_millis(100));
    let counters = bed.board.counters();
    assert!(counters.dropped_switch > 5_000, "{counters:?}");
    let accounted =
        counters.processed + counters.dropped_buffer + counters.dropped_switch + counters.bridged;
    assert_eq!(counters.received, accounted);
}
