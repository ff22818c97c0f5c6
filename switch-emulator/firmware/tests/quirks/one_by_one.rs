//! Each deviation that can be switched, by an exchange whose outcome only its absence changes.

use super::testbed::openflow13::{apply, of13, output as output13, request, Flow};
use super::testbed::{everything, output, port, udp, FlowMod, DELETE};
use super::*;
use zodiac_firmware::{FailState, Quirk, QuirkSet};

const V1_0: u8 = 1;
const V1_3: u8 = 4;
const ECHO: u8 = 2;
const FEATURES: u8 = 5;
const STATISTICS: u8 = 16;
const PORT: u8 = 4;

/// An exchange whose outcome only one deviation decides.
struct Case {
    quirk: Quirk,
    exchange: fn(Config) -> String,
    with: &'static str,
    without: &'static str,
    /// In OpenFlow 1.3, with the firmware's tables.
    in_13: Option<fn(Config) -> String>,
}

impl Case {
    const fn of_10(
        quirk: Quirk,
        exchange: fn(Config) -> String,
        with: &'static str,
        without: &'static str,
    ) -> Self {
        Self {
            quirk,
            exchange,
            with,
            without,
            in_13: None,
        }
    }

    const fn and_13(self, exchange: fn(Config) -> String) -> Self {
        Self {
            in_13: Some(exchange),
            ..self
        }
    }
}

const fn cases() -> [Case; 22] {
    use Quirk as Q;
    [
        Case::of_10(Q::NewestHello, hello, "no versions", "all versions").and_13(hello),
        Case::of_10(Q::SpeaksBeforeHello, speaks_before_hello, "asks", "waits")
            .and_13(speaks_before_hello),
        Case::of_10(
            Q::NeedsFeaturesRequest,
            |config| closes_without_features(V1_0, config),
            "1 closed",
            "0 closed",
        )
        .and_13(|config| closes_without_features(V1_3, config)),
        Case::of_10(
            Q::SilenceBeforeSession,
            closes_after_a_silent_start,
            "1 closed",
            "0 closed",
        )
        .and_13(closes_after_a_silent_start),
        Case::of_10(
            Q::NoReassembly,
            |config| split_echo(V1_0, config),
            "[]",
            "[3]",
        )
        .and_13(|config| split_echo(V1_3, config)),
        Case::of_10(
            Q::TruncatedReplies,
            |config| two_echoes(V1_0, config),
            "[]",
            "[3, 3]",
        )
        .and_13(|config| two_echoes(V1_3, config)),
        Case::of_10(Q::RandomPortAddresses, port_addresses, "change", "stay"),
        Case::of_10(Q::HiddenLinkChanges, link_reports, "0 reports", "1 reports"),
        Case::of_10(
            Q::CoarsePortCounters,
            |config| port_bytes(V1_0, config),
            "0 bytes",
            "306 bytes",
        )
        .and_13(|config| port_bytes(V1_3, config)),
        Case::of_10(Q::LongSeconds, |config| age(V1_0, config), "598 s", "600 s")
            .and_13(|config| age(V1_3, config)),
        Case::of_10(
            Q::TableCountersPerSession,
            lookups_of_the_last_session,
            "0 lookups",
            "1 lookups",
        ),
        Case::of_10(Q::BrokenFlowMods, added_twice, "2 entries", "1 entries"),
        Case::of_10(
            Q::FlowRemovedByDeleteFlag,
            |config| types_of_delete(0, config),
            "[11]",
            "[]",
        ),
        Case::of_10(Q::TimeoutsByAddress, timed_out, "1 entries", "0 entries"),
        Case::of_10(
            Q::FlowRemovedByteOrder,
            removed_counter,
            "[1, 0, 0, 0, 0, 0, 0, 0]",
            "[0, 0, 0, 0, 0, 0, 0, 1]",
        ),
        Case::of_10(Q::LimitedMatching, ipv6, "to no port", "to port 3"),
        Case::of_10(
            Q::ArpFieldsUnmatched,
            arp_from_another,
            "to port 3",
            "to no port",
        ),
        Case::of_10(Q::FloodIsAll, flood, "to ports 2, 3", "to port 2"),
        Case::of_10(
            Q::ActionsByFirstTag,
            two_vlan_actions,
            "[129, 0, 0, 6, 129, 0, 0, 5]",
            "[129, 0, 0, 6, 8, 0, 69, 0]",
        ),
        Case::of_10(
            Q::PauseBeforeHello,
            |config| safe_without_hello(V1_0, config),
            "to no port",
            "to port 3",
        )
        .and_13(|config| safe_without_hello(V1_3, config)),
        Case::of_10(
            Q::InsertedTagOverwrites,
            barrier_behind_tag,
            "lost",
            "answered",
        ),
        Case::of_10(Q::OpenFlow13, echo_13, "8 bytes", "12 bytes"),
    ]
}

#[test]
fn each_deviation_is_switched_by_itself() {
    let cases = cases();
    assert!(cases.iter().map(|case| case.quirk).eq(Quirk::ALL));
    for case in cases {
        let outcome = |quirks| (case.exchange)(with(quirks));
        let name = case.quirk;
        assert_eq!(outcome(FIRMWARE), case.with, "{name}");
        assert_eq!(outcome(SPEC), case.without, "{name}, specification");
        for absent in Quirk::ALL {
            let expected = if absent == case.quirk {
                case.without
            } else {
                case.with
            };
            assert_eq!(
                outcome(without(absent)),
                expected,
                "{name}, without {absent}"
            );
        }
    }
}

#[test]
fn those_of_sessions_and_time_are_switched_by_themselves_in_1_3() {
    for case in cases() {
        let name = case.quirk;
        assert_eq!(
            case.in_13.is_some(),
            name.is_of_13() && name.is_of_10(),
            "{name}"
        );
        let Some(exchange) = case.in_13 else {
            continue;
        };
        let outcome = |quirks| {
            exchange(Config {
                openflow_version: V1_3,
                ..with(quirks)
            })
        };
        for absent in Quirk::ALL {
            if absent.is_of_13() && absent.is_of_10() {
                let expected = if absent == name {
                    case.without
                } else {
                    case.with
                };
                assert_eq!(
                    outcome(without(absent)),
                    expected,
                    "{name}, without {absent}"
                );
            }
        }
    }
}

/// Further parts of an answer wait for an acknowledgement (quirk 102), of which a session that loses nothing has none.
#[test]
fn long_answers_of_1_3_are_complete_when_all_replies_are_sent() {
    let mut bed = session(
        V1_3,
        Config {
            openflow_version: V1_3,
            ..with(without(Quirk::TruncatedReplies))
        },
    );
    for priority in 0..40 {
        let flow = Flow {
            priority,
            ..Flow::new(&[], &apply(&[output13(3)]))
        };
        bed.exchange(&flow.message());
    }
    let replies = bed.exchange(&request(1, &super::testbed::openflow13::all_flows()));
    assert_eq!(replies.len(), 3);
}

fn without(quirk: Quirk) -> Quirks {
    Quirks::Without(QuirkSet::from_iter([quirk]))
}

fn watched(config: Config) -> Config {
    Config {
        ofchecks: true,
        ..config
    }
}

fn of(version: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    match version {
        V1_3 => of13(kind, body),
        _ => message(kind, body),
    }
}

/// A board with a session that has asked for the features.
fn session(version: u8, config: Config) -> Testbed {
    let mut bed = Testbed::new(&quiet_profile(), config);
    bed.board.connected(bed.now);
    bed.exchange(&of(version, 0, &[]));
    bed.exchange(&of(version, FEATURES, &[]));
    bed.replies.clear();
    bed
}

fn add(bed: &mut Testbed, version: u8) {
    let entry = match version {
        V1_3 => Flow::new(&[], &apply(&[output13(3)])).message(),
        _ => FlowMod::add(everything(), 7, output(3)).message(),
    };
    assert!(bed.exchange(&entry).is_empty());
}

/// Returns the ports by which a frame leaves that port 1 receives.
fn destination(bed: &mut Testbed, frame: &[u8]) -> String {
    let departures = bed.frame(1, frame);
    let ports: Vec<_> = departures
        .iter()
        .flat_map(|departure| departure.ports.iter())
        .map(|port| port.get().to_string())
        .collect();
    match &ports[..] {
        [] => "to no port".into(),
        [port] => format!("to port {port}"),
        ports => format!("to ports {}", ports.join(", ")),
    }
}

fn hello(config: Config) -> String {
    let names_versions = bare(config).replies[0].len() > 8;
    if names_versions {
        "all versions"
    } else {
        "no versions"
    }
    .into()
}

fn speaks_before_hello(config: Config) -> String {
    let mut bed = bare(config);
    bed.wait(Duration::from_millis(4_000));
    let asks = bed.replies.iter().any(|message| message[1] == ECHO);
    if asks { "asks" } else { "waits" }.into()
}

fn closes_without_features(version: u8, config: Config) -> String {
    let mut bed = bare(watched(config));
    bed.exchange(&of(version, 0, &[]));
    bed.wait(Duration::from_millis(4_000));
    format!("{} closed", bed.closes.len())
}

fn closes_after_a_silent_start(config: Config) -> String {
    let mut bed = Testbed::new(&quiet_profile(), watched(config));
    bed.wait(Duration::from_millis(10_000));
    bed.board.connected(bed.now);
    bed.wait(TICK);
    format!("{} closed", bed.closes.len())
}

fn split_echo(version: u8, config: Config) -> String {
    let mut bed = session(version, config);
    let echo = of(version, ECHO, &[]);
    bed.exchange(&echo[..5]);
    format!("{:?}", types(&bed.exchange(&echo[5..])))
}

fn two_echoes(version: u8, config: Config) -> String {
    let mut bed = session(version, config);
    let echo = of(version, ECHO, &[]);
    format!("{:?}", types(&bed.exchange(&[&echo[..], &echo].concat())))
}

fn port_addresses(config: Config) -> String {
    let mut bed = session(V1_0, config);
    let mut address = || bed.exchange(&message(FEATURES, &[]))[0][34..40].to_vec();
    let stays = address() == address();
    if stays { "stay" } else { "change" }.into()
}

fn link_reports(config: Config) -> String {
    let mut bed = session(V1_0, watched(config));
    bed.board.link_state(bed.now, port(2), false);
    bed.exchange(&message(FEATURES, &[]));
    for _ in 0..4 {
        bed.wait(TICK);
    }
    let reports = bed.replies.iter().filter(|reply| reply[1] == 12);
    format!("{} reports", reports.count())
}

/// Returns the bytes of port 1 in port statistics, before the firmware reads the counters of the hardware.
fn port_bytes(version: u8, config: Config) -> String {
    let mut bed = session(version, config);
    add(&mut bed, version);
    bed.frame(1, &udp(306, 0));
    let bytes = if version == V1_3 {
        let reply = bed.exchange(&request(PORT, &[0, 0, 0, 1, 0, 0, 0, 0]));
        number(&reply[0][40..48])
    } else {
        let reply = statistics(&mut bed, PORT.into(), &[0, 1, 0, 0, 0, 0, 0, 0]);
        number(&reply[0][36..44])
    };
    format!("{bytes} bytes")
}

/// Returns the age of an entry in flow statistics after ten minutes.
fn age(version: u8, config: Config) -> String {
    let mut bed = session(version, config);
    add(&mut bed, version);
    bed.wait(Duration::from_millis(600_100));
    bed.replies.clear();
    let seconds = if version == V1_3 {
        let body = super::testbed::openflow13::all_flows();
        number(&bed.exchange(&request(1, &body))[0][20..24])
    } else {
        number(&statistics(&mut bed, 1, &all_flows())[0][56..60])
    };
    format!("{seconds} s")
}

fn lookups_of_the_last_session(config: Config) -> String {
    let mut bed = session(V1_0, config);
    bed.frame(1, &udp(306, 0));
    bed.board.disconnected(bed.now);
    bed.connect();
    let reply = bed.exchange(&message(STATISTICS, &[0, 3, 0, 0])).remove(0);
    let lookups = number(&reply[reply.len() - 16..reply.len() - 8]);
    format!("{lookups} lookups")
}

fn added_twice(config: Config) -> String {
    let mut bed = session(V1_0, config);
    add(&mut bed, V1_0);
    add(&mut bed, V1_0);
    format!("{} entries", bed.board.flows().len())
}

/// Returns what answers a DELETE that asks for `FLOW_REMOVED` as the firmware wants it, of an entry with these flags.
fn delete(flags: u16, config: Config) -> Vec<Vec<u8>> {
    let mut bed = session(V1_0, config);
    let entry = FlowMod {
        flags,
        ..FlowMod::add(everything(), 7, output(3))
    };
    bed.install([entry.clone()]);
    bed.frame(1, &udp(306, 0));
    let delete = FlowMod {
        flags: 0x0100,
        ..entry
    };
    bed.exchange(&delete.command(DELETE).message())
}

fn types_of_delete(flags: u16, config: Config) -> String {
    format!("{:?}", types(&delete(flags, config)))
}

fn removed_counter(config: Config) -> String {
    format!("{:?}", &delete(1, config)[0][72..80])
}

fn timed_out(config: Config) -> String {
    let mut bed = session(V1_0, watched(config));
    let mut entry = FlowMod::add(everything(), 7, output(3)).message();
    entry[58..60].copy_from_slice(&1_u16.to_be_bytes()); // idle timeout
    bed.exchange(&entry);
    bed.wait(Duration::from_millis(2_500));
    format!("{} entries", bed.board.flows().len())
}

fn ipv6(config: Config) -> String {
    let mut bed = session(V1_0, config);
    add(&mut bed, V1_0);
    let mut frame = udp(306, 0);
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    destination(&mut bed, &frame)
}

fn arp_from_another(config: Config) -> String {
    let mut bed = session(V1_0, config);
    let mut fields = everything();
    let (dl_type, nw_src) = (1_u32 << 4, 0x3f_u32 << 8);
    fields[..4].copy_from_slice(&(0x003f_ffff & !(dl_type | nw_src)).to_be_bytes());
    fields[22..24].copy_from_slice(&[8, 6]);
    fields[28..32].copy_from_slice(&[10, 9, 9, 9]);
    bed.install([FlowMod::add(fields, 7, output(3))]);
    let mut frame = udp(64, 0);
    frame[12..14].copy_from_slice(&[8, 6]);
    frame[21] = 1;
    frame[28..32].copy_from_slice(&[10, 0, 0, 1]);
    destination(&mut bed, &frame)
}

fn flood(config: Config) -> String {
    let mut bed = session(
        V1_0,
        Config {
            openflow_ports: vec![port(1), port(2)],
            ..config
        },
    );
    bed.install([FlowMod::add(everything(), 7, output(0xfffb))]);
    destination(&mut bed, &udp(306, 0))
}

fn vlan_action(vid: u8) -> Vec<u8> {
    vec![0, 1, 0, 8, 0, vid, 0, 0]
}

fn two_vlan_actions(config: Config) -> String {
    let mut bed = session(V1_0, config);
    let actions = [vlan_action(5), vlan_action(6), output(3)].concat();
    bed.install([FlowMod::add(everything(), 7, actions)]);
    format!("{:?}", &bed.frame(1, &udp(306, 0))[0].data[12..20])
}

fn safe_without_hello(version: u8, config: Config) -> String {
    let mut bed = session(
        version,
        Config {
            fail_state: FailState::Safe,
            ..config
        },
    );
    add(&mut bed, version);
    bed.board.disconnected(bed.now);
    assert_eq!(destination(&mut bed, &udp(306, 0)), "to port 3");
    bed.board.connected(bed.now);
    destination(&mut bed, &udp(306, 0))
}

fn barrier_behind_tag(config: Config) -> String {
    let mut bed = session(V1_0, config);
    let actions = [vlan_action(5), output(3)].concat();
    bed.install([FlowMod::add(everything(), 7, actions)]);
    let to_table = [&[0xff; 4][..], &[0, 1, 0, 8], &output(0xfff9), &udp(100, 0)].concat();
    let segment = [message(13, &to_table), message(18, &[])].concat();
    let answered = types(&bed.exchange(&segment)).contains(&19);
    if answered { "answered" } else { "lost" }.into()
}

fn echo_13(config: Config) -> String {
    let mut bed = session(V1_3, config);
    let reply = bed.exchange(&of13(ECHO, &[1, 2, 3, 4])).remove(0);
    format!("{} bytes", reply.len())
}
