//! OpenFlow 1.3 of a board with `quirks = "spec"`: what 1.3.4 asks, where the firmware does something else. A stranger's
//! tester tries matches and actions field by field (`docs/openflow13.md`).

mod testbed;

use testbed::openflow13::{
    all_flows, apply, bucket, goto, group, group_mod, in_port, ipv4, masked, meter_mod, metered,
    of13, output, oxm, request, set_field, with_actions, Flow, ALL, ANY, CONTROLLER, DELETE,
    MODIFY,
};
use testbed::{message, quiet_config, quiet_profile, udp, Testbed};
use zodiac_firmware::{Config, Duration, Quirks};

const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const FEATURES: u8 = 5;
const PACKET_IN: u8 = 10;
const FLOW_REMOVED: u8 = 11;
const PACKET_OUT: u8 = 13;
const PORT_MOD: u8 = 16;
const BARRIER_REQUEST: u8 = 20;
const ROLE_REQUEST: u8 = 24;
const SET_ASYNC: u8 = 28;

fn spec() -> Config {
    Config {
        quirks: Quirks::Spec,
        ..quiet_config()
    }
}

/// Returns a board in a session of OpenFlow 1.3.
fn bed_with(config: Config) -> Testbed {
    let mut bed = Testbed::new(&quiet_profile(), config);
    bed.board.connected(bed.now);
    bed.exchange(&of13(0, &[]));
    bed.exchange(&of13(FEATURES, &[]));
    bed.replies.clear();
    bed
}

fn bed() -> Testbed {
    bed_with(spec())
}

/// Adds an entry that must not be refused.
fn install(bed: &mut Testbed, flow: &Flow) {
    let replies = bed.exchange(&flow.message());
    assert!(replies.is_empty(), "{replies:?}");
}

fn errors(replies: &[Vec<u8>]) -> Vec<(u8, u8)> {
    let errors = replies.iter().filter(|reply| reply[1] == ERROR);
    errors.map(|reply| (reply[9], reply[11])).collect()
}

/// Sets this bit of a port's configuration.
fn set_flag(bed: &mut Testbed, port: u8, flag: u8) {
    let flag = [0, 0, 0, flag];
    let body = [
        &[0, 0, 0, port, 0, 0, 0, 0][..],
        &[0x70, 0xb3, 0xd5, 0x6c, 0, 1 + port],
        &[0; 2],
        &flag,
        &flag,
        &[0; 8],
    ];
    let replies = bed.exchange(&of13(PORT_MOD, &body.concat()));
    assert!(replies.is_empty(), "{replies:?}");
}

/// Ports of the frames that leave when a frame comes in at a port.
fn ports_of(bed: &mut Testbed, ingress: u8, frame: &[u8]) -> Vec<u8> {
    let departures = bed.frame(ingress, frame);
    departures.iter().map(|it| it.ports.bits()).collect()
}

#[test]
fn the_highest_version_that_both_name_is_spoken() {
    let bitmap = |bits: u32| [&[0, 1, 0, 8], &bits.to_be_bytes()[..]].concat();
    for (forced, hello, answer) in [
        (0, of13(0, &[]), Some(4)),
        (0, message(0, &[]), Some(1)),
        (0, of13(0, &bitmap(1 << 1)), Some(1)),
        (0, of13(0, &bitmap(1 << 4 | 1 << 1)), Some(4)),
        (0, of13(0, &bitmap(1 << 2 | 1 << 5)), None),
        (4, message(0, &[]), None),
        (1, of13(0, &[]), Some(1)),
        (4, of13(0, &[]), Some(4)),
    ] {
        let config = Config {
            openflow_version: forced,
            ..spec()
        };
        let mut bed = Testbed::new(&quiet_profile(), config);
        bed.board.connected(bed.now);
        bed.wait(Duration::from_millis(1));
        let greeting = std::mem::take(&mut bed.replies).remove(0);
        assert_eq!(greeting[0], if forced == 1 { 1 } else { 4 });
        let named = greeting.get(12..16).map(<[u8]>::to_vec);
        let expected = match forced {
            0 => Some(vec![0, 0, 0, 0b1_0010]),
            4 => Some(vec![0, 0, 0, 0b1_0000]),
            _ => None,
        };
        assert_eq!(named, expected, "versions named by the board");
        let refused = errors(&bed.exchange(&hello));
        let Some(version) = answer else {
            assert_eq!(refused, [(0, 0)], "HELLO_FAILED");
            continue;
        };
        let mut features = message(FEATURES, &[]);
        features[0] = version;
        let reply = bed.exchange(&features).remove(0);
        assert_eq!(reply[..2], [version, 6]);
    }
}

#[test]
fn messages_are_put_together_and_echo_keeps_its_payload() {
    let mut bed = bed();
    let echo = of13(ECHO_REQUEST, &[7; 600]);
    assert!(bed.exchange(&echo[..500]).is_empty());
    let reply = bed.exchange(&echo[500..]).remove(0);
    assert_eq!((reply[0], reply[1], reply.len()), (4, 3, 608));
    // Replies come in the order of their requests.
    let both = [request(3, &[]), of13(BARRIER_REQUEST, &[])].concat();
    let types: Vec<u8> = bed.exchange(&both).iter().map(|it| it[1]).collect();
    assert_eq!(types, [19, 21]);
    let mut wrong = of13(BARRIER_REQUEST, &[]);
    wrong[0] = 1;
    assert_eq!(errors(&bed.exchange(&wrong)), [(1, 0)], "BAD_VERSION");
}

#[test]
fn a_miss_drops_unless_an_entry_says_otherwise() {
    let mut bed = bed();
    assert!(ports_of(&mut bed, 1, &udp(64, 0)).is_empty() && bed.replies.is_empty());
    let mut miss = Flow::new(&[], &apply(&[output(CONTROLLER)]));
    miss.priority = 0;
    miss.cookie = 5;
    install(&mut bed, &miss);
    bed.frame(2, &udp(306, 0));
    let packet_in = std::mem::take(&mut bed.replies).remove(0);
    assert_eq!(packet_in[1], PACKET_IN);
    assert_eq!(
        packet_in[12..16],
        [1, 46, 0, 0],
        "302 bytes, NO_MATCH, table 0"
    );
    assert_eq!(packet_in[16..24], 5_u64.to_be_bytes());
    assert_eq!(packet_in[32..36], [0, 0, 0, 2], "ingress port");
    assert_eq!(packet_in.len(), 42 + 302, "the whole frame");
}

/// By section 7.2.1 of 1.3.4 the flag is about misses: spanning-tree applications send LLDP and BPDU of a blocked port to
/// the controller by an entry.
#[test]
fn no_packet_in_silences_misses_only() {
    let mut bed = bed();
    let mut miss = Flow::new(&[], &apply(&[output(CONTROLLER)]));
    miss.priority = 0;
    install(&mut bed, &miss);
    install(
        &mut bed,
        &Flow::new(&in_port(2), &apply(&[output(CONTROLLER)])),
    );
    for port in [1, 2] {
        set_flag(&mut bed, port, 0x40);
        bed.frame(port, &udp(306, 0));
        let told = std::mem::take(&mut bed.replies).len();
        assert_eq!(told, usize::from(port == 2), "port {port}");
    }
}

#[test]
fn action_sets_and_metadata_go_from_table_to_table() {
    let mut bed = bed();
    let metadata = [
        &[0, 2, 0, 24, 0, 0, 0, 0][..],
        &[0, 0, 0, 0, 0, 0, 0, 9],
        &[0xff; 8],
    ]
    .concat();
    let first = [with_actions(3, &[output(2)]), metadata, goto(3)].concat();
    install(&mut bed, &Flow::new(&in_port(1), &first));
    let mut second = Flow::new(
        &oxm(2, &[0, 0, 0, 0, 0, 0, 0, 9]),
        &with_actions(3, &[output(3)]),
    );
    second.table = 3;
    install(&mut bed, &second);
    assert_eq!(
        ports_of(&mut bed, 1, &udp(64, 0)),
        [0b100],
        "the later output"
    );
    let mut cleared = Flow::new(&[], &[0, 5, 0, 8, 0, 0, 0, 0]);
    cleared.table = 3;
    cleared.priority = 2;
    install(&mut bed, &cleared);
    assert!(
        ports_of(&mut bed, 1, &udp(64, 0)).is_empty(),
        "the set was cleared"
    );
}

#[test]
fn modify_changes_what_it_covers_and_keeps_the_counts() {
    let mut bed = bed();
    let narrow = [ipv4(), masked(12, &[10, 0, 0, 0], &[255, 0, 0, 0])].concat();
    install(&mut bed, &Flow::new(&narrow, &apply(&[output(2)])));
    assert_eq!(ports_of(&mut bed, 1, &udp(64, 0)), [0b010]);
    let mut wide = Flow::new(&ipv4(), &apply(&[output(3)]));
    wide.command = MODIFY;
    install(&mut bed, &wide);
    assert_eq!(ports_of(&mut bed, 1, &udp(64, 0)), [0b100]);
    let [flow] = &bed.board.flows13()[..] else {
        panic!("one entry")
    };
    assert_eq!((flow.packets, flow.bytes), (2, 120));
}

#[test]
fn overlaps_are_refused_and_the_same_entry_replaced() {
    let mut bed = bed();
    let [one, other] = [3, 4].map(|port| Flow::new(&in_port(port), &apply(&[output(2)])));
    install(&mut bed, &one);
    let mut checked = Flow::new(&ipv4(), &[]);
    checked.flags = 2;
    assert_eq!(errors(&bed.exchange(&checked.message())), [(5, 3)]);
    install(&mut bed, &other);
    // The order of fields does not matter.
    let fields = [ipv4(), oxm(10, &[17])].concat();
    install(
        &mut bed,
        &Flow::new(&[fields.clone(), in_port(1)].concat(), &[]),
    );
    install(&mut bed, &Flow::new(&[in_port(1), fields].concat(), &[]));
    assert_eq!(bed.board.flows13().len(), 3);
}

#[test]
fn deletes_mean_what_they_say() {
    let mut bed = bed();
    for port in 1..=3 {
        let mut flow = Flow::new(&in_port(port), &apply(&[output(u32::from(port) % 3 + 1)]));
        flow.cookie = u64::from(port);
        flow.flags = 1; // notice
        install(&mut bed, &flow);
    }
    let mut delete = Flow::new(&[], &[]);
    delete.command = DELETE;
    delete.table = 0xff;
    delete.out_port = 3;
    let [notice] = &bed.exchange(&delete.message())[..] else {
        panic!("one notice")
    };
    assert_eq!((notice[1], notice[15]), (FLOW_REMOVED, 2), "by its port");
    delete.out_port = ANY;
    (delete.cookie, delete.cookie_mask) = (3, 0xff);
    assert_eq!(bed.exchange(&delete.message())[0][15], 3, "by its cookie");
    assert_eq!(bed.board.flows13().len(), 1);
}

#[test]
fn as_many_entries_fit_as_on_the_board() {
    // 28 bytes of match, 24 of instructions: a learning switch's (quirk 121).
    let mut bed = bed();
    let flow = |number: u32| {
        let [_, a, b, c] = number.to_be_bytes();
        let address = [2, 0, 0, a, b, c];
        let fields = [in_port(1), oxm(3, &address), oxm(4, &address)].concat();
        Flow::new(&fields, &apply(&[output(2)])).message()
    };
    let refused = (0..512).find(|number| !bed.exchange(&flow(*number)).is_empty());
    assert_eq!(refused, Some(298));
    // A refusal costs nothing, and what has gone makes room.
    assert_eq!(errors(&bed.exchange(&flow(900))), [(5, 1)]);
    assert!(bed.exchange(&flow(0)).is_empty(), "the same entry again");
    let mut delete = Flow::new(&oxm(3, &[2, 0, 0, 0, 0, 7]), &[]);
    delete.command = DELETE;
    install(&mut bed, &delete);
    assert!(bed.exchange(&flow(900)).is_empty());
    assert_eq!(errors(&bed.exchange(&flow(901))), [(5, 1)]);
}

#[test]
fn what_is_wrong_is_refused_with_the_error_that_says_so() {
    let port = |number: u32| apply(&[output(number)]);
    for (fields, instructions, error) in [
        (oxm(11, &[10, 0, 0, 1]), vec![], (4, 9)), // no ETH_TYPE
        (oxm(5, &[8]), vec![], (4, 1)),
        ([ipv4(), ipv4()].concat(), vec![], (4, 10)),
        (oxm(38, &[0; 8]), vec![], (4, 6)), // tunnel
        (masked(3, &[1; 6], &[0; 6]), vec![], (4, 5)),
        (masked(5, &[8, 0], &[255; 2]), vec![], (4, 8)),
        (oxm(6, &[0, 5]), vec![], (4, 7)), // tag without its mark
        (vec![], port(5), (2, 4)),
        (vec![], port(0xffff_fffa), (2, 4)), // NORMAL
        (vec![], apply(&[group(1)]), (2, 9)),
        (vec![], apply(&[vec![0, 21, 0, 8, 0, 0, 0, 0]]), (2, 8)),
        (vec![], apply(&[vec![0; 8]]), (2, 1)),
        (vec![], apply(&[set_field(&oxm(12, &[1; 4]))]), (2, 10)),
        (vec![], goto(0), (3, 2)),
        (vec![], goto(10), (3, 2)),
        (vec![], vec![0, 9, 0, 8, 0, 0, 0, 0], (3, 0)),
        (vec![], vec![0, 6, 0, 8, 0, 0, 0, 1], (12, 3)),
    ] {
        let mut bed = bed();
        let replies = bed.exchange(&Flow::new(&fields, &instructions).message());
        assert_eq!(errors(&replies), [error], "{fields:?} {instructions:?}");
        assert!(bed.board.flows13().is_empty());
    }
    let mut bed = bed();
    assert_eq!(errors(&bed.exchange(&of13(30, &[]))), [(1, 1)]);
    assert_eq!(errors(&bed.exchange(&of13(4, &[0; 8]))), [(1, 3)]);
    assert_eq!(errors(&bed.exchange(&request(14, &[]))), [(1, 2)]);
}

#[test]
fn checksums_follow_every_field() {
    let mut bed = bed();
    let fields = [ipv4(), oxm(10, &[17])].concat();
    let actions = [
        set_field(&oxm(11, &[1, 2, 3, 4])),
        set_field(&oxm(15, &[0x30, 0x39])),
        set_field(&oxm(8, &[46])),
        vec![0, 24, 0, 8, 0, 0, 0, 0],
        output(2),
    ];
    install(&mut bed, &Flow::new(&fields, &apply(&actions)));
    let mut frame = udp(306, 0);
    let datagram = frame.len() as u16 - 34;
    frame[38..40].copy_from_slice(&datagram.to_be_bytes());
    let header = checksum(&frame[14..34], &[]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    let transport = transport_checksum(&frame);
    frame[40..42].copy_from_slice(&transport.to_be_bytes());
    let sent = bed.frame(1, &frame).remove(0).data;
    assert_eq!(sent[26..30], [1, 2, 3, 4]);
    assert_eq!((sent[15] >> 2, sent[22]), (46, frame[22] - 1));
    assert_eq!(checksum(&sent[14..34], &[]), 0, "IP header");
    assert_eq!(transport_checksum(&sent), 0, "UDP");
}

/// Checksum of the UDP datagram in a frame.
fn transport_checksum(frame: &[u8]) -> u16 {
    let length = u16::from_be_bytes([frame[38], frame[39]]);
    let pseudo = [&frame[26..34], &[0, 17], &length.to_be_bytes()].concat();
    checksum(&frame[34..34 + usize::from(length)], &pseudo)
}

/// Returns the Internet checksum (RFC 1071), straight from its definition.
fn checksum(bytes: &[u8], pseudo: &[u8]) -> u16 {
    let mut all = [pseudo, bytes].concat();
    all.resize(all.len().next_multiple_of(2), 0);
    let sum: u32 = all
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[test]
fn groups_send_as_their_type_says() {
    for (kind, expected) in [(0, vec![0b010, 0b100]), (3, vec![0b100])] {
        let mut bed = bed();
        if kind == 3 {
            bed.board.link_state(bed.now, testbed::port(2), false);
        }
        let buckets = [bucket(2, 0, &[output(2)]), bucket(3, 0, &[output(3)])];
        assert!(bed.exchange(&group_mod(0, kind, 7, &buckets)).is_empty());
        install(&mut bed, &Flow::new(&[], &apply(&[group(7)])));
        assert_eq!(ports_of(&mut bed, 1, &udp(64, 0)), expected, "type {kind}");
        // With the group its entries go.
        assert!(bed.exchange(&group_mod(2, kind, 7, &[])).is_empty());
        assert!(bed.board.flows13().is_empty());
    }
    let mut bed = bed();
    let buckets = [bucket(ANY, 1, &[output(2)]), bucket(ANY, 3, &[output(3)])];
    assert!(bed.exchange(&group_mod(0, 1, 1, &buckets)).is_empty());
    install(&mut bed, &Flow::new(&[], &apply(&[group(1)])));
    let mut sent = [0; 2];
    for flow in 0..400_u16 {
        let frame = udp(64, flow);
        let ports = ports_of(&mut bed, 1, &frame);
        assert_eq!(
            ports_of(&mut bed, 1, &frame),
            ports,
            "a flow keeps its bucket"
        );
        sent[usize::from(ports == [0b100])] += 1;
    }
    assert!((60..=140).contains(&sent[0]), "one in four: {sent:?}");
    for (message, error) in [
        (group_mod(0, 1, 1, &buckets), (6, 0)),
        (group_mod(1, 1, 2, &buckets), (6, 8)),
        (group_mod(0, 4, 2, &buckets), (6, 10)),
        (group_mod(0, 0, 2, &[bucket(ANY, 0, &[group(1)])]), (6, 5)),
        (
            group_mod(0, 0, 2, &[buckets.clone(), buckets.clone()].concat()),
            (6, 4),
        ),
    ] {
        assert_eq!(errors(&bed.exchange(&message)), [error]);
    }
}

/// A port is not live if its link is down or `PORT_MOD` has switched it off (section 6.5).
#[test]
fn fast_failover_avoids_a_port_that_is_switched_off() {
    let mut bed = bed();
    let buckets = [bucket(2, 0, &[output(2)]), bucket(3, 0, &[output(3)])];
    assert!(bed.exchange(&group_mod(0, 3, 7, &buckets)).is_empty());
    install(&mut bed, &Flow::new(&[], &apply(&[group(7)])));
    assert_eq!(ports_of(&mut bed, 1, &udp(64, 0)), [0b010]);
    set_flag(&mut bed, 2, 1);
    assert_eq!(ports_of(&mut bed, 1, &udp(64, 0)), [0b100]);
    let description = &bed.exchange(&request(13, &[]))[0];
    let state = |port: usize| description[16 + 64 * (port - 1) + 39];
    assert_eq!([1, 2, 3].map(state), [4, 0, 4], "LIVE");
}

/// An action set that sends the frame nowhere drops it (section 5.10): its time to live is not looked at.
#[test]
fn an_action_set_without_output_does_nothing() {
    const DEC_NW_TTL: [u8; 8] = [0, 24, 0, 8, 0, 0, 0, 0];
    let mut bed = bed();
    let wanted = [[0, 0, 0, 7], [0; 4], [0; 4], [0; 4], [0; 4], [0; 4]].concat();
    assert!(bed.exchange(&of13(SET_ASYNC, &wanted)).is_empty());
    let mut frame = udp(64, 0);
    frame[22] = 1; // time to live
    for (actions, told) in [
        (vec![DEC_NW_TTL.to_vec()], 0),
        (vec![DEC_NW_TTL.to_vec(), output(2)], 1),
    ] {
        install(&mut bed, &Flow::new(&ipv4(), &with_actions(3, &actions)));
        assert!(ports_of(&mut bed, 1, &frame).is_empty());
        assert_eq!(std::mem::take(&mut bed.replies).len(), told);
    }
}

/// Neither the action set nor a bucket belongs to one entry, so the cookie is −1 (section 7.4.1).
#[test]
fn packet_in_of_action_sets_and_buckets_has_no_cookie() {
    let mut bed = bed();
    let buckets = [bucket(ANY, 0, &[output(CONTROLLER)])];
    assert!(bed.exchange(&group_mod(0, 2, 7, &buckets)).is_empty());
    let told = [output(CONTROLLER)];
    for (port, instructions, cookie) in [
        (1, apply(&told), 0x1122),
        (2, with_actions(3, &told), u64::MAX),
        (3, apply(&[group(7)]), u64::MAX),
    ] {
        let mut flow = Flow::new(&in_port(port), &instructions);
        flow.cookie = 0x1122;
        install(&mut bed, &flow);
        bed.frame(port, &udp(64, 0));
        let replies = std::mem::take(&mut bed.replies);
        assert_eq!(replies[0][1], PACKET_IN);
        assert_eq!(replies[0][16..24], cookie.to_be_bytes(), "port {port}");
    }
}

/// Only SELECT weighs its buckets, and INDIRECT has one (sections 5.6.1 and 6.5).
#[test]
fn a_group_that_its_type_does_not_allow_is_invalid() {
    let mut bed = bed();
    let [light, heavy] = [0, 1].map(|weight| bucket(2, weight, &[output(2)]));
    for (kind, group, refused) in [
        (0, &heavy, true),
        (1, &heavy, false),
        (1, &light, false),
        (2, &heavy, true),
        (2, &[light.clone(), light.clone()].concat(), true),
        (2, &Vec::new(), true),
        (2, &light, false),
        (3, &heavy, true),
        (3, &light, false),
    ] {
        for command in [0, 1] {
            let done =
                errors(&bed.exchange(&group_mod(command, kind, 1, std::slice::from_ref(group))));
            let expected: &[_] = match (refused, command) {
                (false, _) => &[],
                (true, 0) => &[(6, 1)],
                (true, _) => &[(6, 8)], // it was not added
            };
            assert_eq!(done, expected, "command {command}, type {kind}");
        }
        assert!(errors(&bed.exchange(&group_mod(2, 0, 1, &[]))).is_empty());
    }
    assert!(errors(&bed.exchange(&group_mod(0, 2, 1, &[light]))).is_empty());
    let changed = errors(&bed.exchange(&group_mod(1, 2, 1, &[heavy])));
    assert_eq!(changed, [(6, 1)], "a MODIFY is judged likewise");
}

#[test]
fn a_meter_lets_its_rate_pass() {
    let metered = [metered(), apply(&[output(2)])].concat();
    // 1000 frames of 302 bytes in 10 s: 242 kbit/s and 100 frames a second.
    for (flags, rate, expected) in [(1, 121, 500), (2, 50, 500)] {
        let mut bed = bed();
        assert!(bed.exchange(&meter_mod(0, flags, rate)).is_empty());
        install(&mut bed, &Flow::new(&[], &metered));
        let passed: usize = (0..1_000)
            .map(|_| ports_of(&mut bed, 1, &udp(306, 0)).len())
            .sum();
        assert!(
            passed.abs_diff(expected) <= 25,
            "{passed} passed a rate of {rate}"
        );
    }
    let mut bed = bed();
    assert_eq!(errors(&bed.exchange(&meter_mod(0, 3, 5))), [(12, 5)]);
    assert_eq!(errors(&bed.exchange(&meter_mod(0, 1, 0))), [(12, 6)]);
}

#[test]
fn packet_out_performs_all_actions() {
    let mut bed = bed();
    let packet_out = |actions: &[Vec<u8>], in_port: u32| {
        let actions = actions.concat();
        let head = [
            &ANY.to_be_bytes()[..],
            &in_port.to_be_bytes(),
            &(actions.len() as u16).to_be_bytes(),
            &[0; 6],
        ];
        of13(
            PACKET_OUT,
            &[&head.concat()[..], &actions, &udp(306, 0)].concat(),
        )
    };
    let actions = [output(1), set_field(&oxm(3, &[9; 6])), output(2)];
    assert!(bed.exchange(&packet_out(&actions, CONTROLLER)).is_empty());
    bed.wait(Duration::from_millis(5));
    let sent = std::mem::take(&mut bed.departures);
    let ports: Vec<u8> = sent.iter().map(|it| it.ports.bits()).collect();
    assert_eq!(ports, [0b001, 0b010]);
    assert_ne!(sent[0].data[..6], [9; 6]);
    assert_eq!(sent[1].data[..6], [9; 6]);
    bed.exchange(&packet_out(&[output(ALL)], 1));
    bed.wait(Duration::from_millis(5));
    let reached = bed
        .departures
        .iter()
        .fold(0, |bits, it| bits | it.ports.bits());
    assert_eq!(reached, 0b110, "all but the ingress port");
    assert_eq!(errors(&bed.exchange(&packet_out(&[], 9))), [(1, 11)]);
}

#[test]
fn statistics_tell_what_was_asked_for() {
    let mut bed = bed();
    for number in 0..40 {
        let mut flow = Flow::new(&oxm(3, &[2, 0, 0, 0, 0, number]), &apply(&[output(2)]));
        flow.table = number % 2;
        install(&mut bed, &flow);
    }
    let parts = bed.exchange(&request(1, &all_flows()));
    assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= 2_048));
    let more: Vec<u8> = parts.iter().map(|part| part[11]).collect();
    assert_eq!(more.iter().rev().position(|flag| *flag == 0), Some(0));
    assert!(more[..more.len() - 1].iter().all(|flag| *flag == 1));
    let records: usize = parts.iter().map(|part| (part.len() - 16) / 88).sum();
    assert_eq!(records, 40);
    let mut one_table = all_flows();
    one_table[0] = 1;
    let aggregate = bed.exchange(&request(2, &one_table)).remove(0);
    assert_eq!(aggregate[32..36], [0, 0, 0, 20]);
    assert_eq!(
        errors(&bed.exchange(&request(4, &[0, 0, 0, 9, 0, 0, 0, 0]))),
        [(1, 11)]
    );
    // Ten tables, each described by itself.
    let features: usize = bed
        .exchange(&request(12, &[]))
        .iter()
        .map(|part| {
            let mut at = 16;
            let mut tables = 0;
            while at < part.len() {
                at += usize::from(u16::from_be_bytes([part[at], part[at + 1]]));
                tables += 1;
            }
            assert_eq!(at, part.len());
            tables
        })
        .sum();
    assert_eq!(features, 10);
}

#[test]
fn entries_go_when_their_timeouts_are_over() {
    let mut bed = bed_with(Config {
        ofchecks: true,
        ..spec()
    });
    for (timeouts, reason) in [([2, 0], 0), ([0, 2], 1)] {
        bed.replies.clear();
        for port in 1..=3 {
            let mut flow = Flow::new(&in_port(port), &[]);
            (flow.timeouts, flow.flags) = (timeouts, 1);
            install(&mut bed, &flow);
        }
        bed.replies.clear();
        bed.wait(Duration::from_millis(1_900));
        assert_eq!(bed.board.flows13().len(), 3);
        bed.wait(Duration::from_millis(700));
        assert!(bed.board.flows13().is_empty(), "all at once");
        let notices: Vec<u8> = bed
            .replies
            .iter()
            .filter(|reply| reply[1] == FLOW_REMOVED)
            .map(|reply| reply[18])
            .collect();
        assert_eq!(notices, [reason; 3]);
    }
}

#[test]
fn a_slave_changes_nothing() {
    let mut bed = bed();
    let role = |role: u8, generation: u8| {
        of13(
            ROLE_REQUEST,
            &[0, 0, 0, role, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, generation],
        )
    };
    let reply = bed.exchange(&role(3, 5)).remove(0);
    assert_eq!((reply[11], reply[23]), (3, 5));
    let flow = Flow::new(&[], &[]).message();
    assert_eq!(errors(&bed.exchange(&flow)), [(1, 10)], "IS_SLAVE");
    assert_eq!(errors(&bed.exchange(&role(2, 4))), [(11, 0)], "STALE");
    assert_eq!(bed.exchange(&role(2, 6)).remove(0)[11], 2);
    assert!(bed.exchange(&flow).is_empty());
}
