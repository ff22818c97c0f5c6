//! Lookup, forwarding, and frames while the session changes: quirks 61 to 71, 73 to 78 and 81 to 83.

use super::testbed::{everything, fields, output, port, udp, Fields, FlowMod};
use super::*;
use zodiac_firmware::{Event, FailState};

/// Returns the ports by which a frame leaves with a single entry; none if it does not match or drops.
fn ports(quirks: Quirks, entry: &FlowMod, frame: &[u8]) -> Vec<u8> {
    let mut bed = bed(quirks);
    bed.install([entry.clone()]);
    bed.frame(1, frame)
        .iter()
        .map(|departure| departure.ports.bits())
        .collect()
}

fn matches(quirks: Quirks, fields: [u8; 40], frame: &[u8]) -> bool {
    !ports(quirks, &FlowMod::add(fields, 5, output(3)), frame).is_empty()
}

/// The frame as it leaves after these actions.
fn rewritten(quirks: Quirks, actions: &[u8], frame: &[u8]) -> Vec<u8> {
    let mut bed = bed(quirks);
    bed.install([FlowMod::add(
        everything(),
        5,
        [actions, &output(3)].concat(),
    )]);
    bed.frame(1, frame).remove(0).data
}

/// A match with all fields open but those whose wildcard bits are given, with these bytes at these places.
fn only(bits: u32, values: &[(usize, &[u8])]) -> [u8; 40] {
    let mut bytes = everything();
    bytes[..4].copy_from_slice(&(0x003f_ffff & !bits).to_be_bytes());
    for (at, value) in values {
        bytes[*at..*at + value.len()].copy_from_slice(value);
    }
    bytes
}

const DL_VLAN: u32 = 1 << 1;
const DL_TYPE: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
const NW_SRC: u32 = 0x3f << 8;
const DL_VLAN_PCP: u32 = 1 << 20;
const NW_TOS: u32 = 1 << 21;
const IPV4: (usize, &[u8]) = (22, &[8, 0]);

fn tagged(control: u16) -> Vec<u8> {
    let mut frame = udp(302, 0);
    frame.splice(12..12, [&[0x81, 0][..], &control.to_be_bytes()].concat());
    frame
}

fn of_type(kind: u16) -> Vec<u8> {
    let mut frame = udp(306, 0);
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
    frame
}

fn icmp(kind: u8, code: u8) -> Vec<u8> {
    let mut frame = udp(98, 0);
    frame[23] = 1;
    frame[34..36].copy_from_slice(&[kind, code]);
    frame
}

fn arp(operation: u8) -> Vec<u8> {
    let mut frame = of_type(0x0806);
    frame.truncate(60);
    frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, operation]);
    frame[28..32].copy_from_slice(&[10, 0, 0, 1]);
    frame
}

#[test]
fn q61_only_arp_and_ipv4_can_match() {
    for kind in [0x86dd, 0x88cc, 0x8847] {
        assert!(
            !matches(FIRMWARE, everything(), &of_type(kind)),
            "{kind:#x}"
        );
        assert!(matches(SPEC, everything(), &of_type(kind)), "{kind:#x}");
    }
    let mut igmp = udp(98, 0);
    igmp[23] = 2;
    assert!(!matches(FIRMWARE, everything(), &igmp));
    assert!(matches(SPEC, everything(), &igmp));
}

#[test]
fn q61_is_said_once_if_there_are_entries_to_match() {
    for (quirks, events) in [
        (
            FIRMWARE,
            &[Event::FrameUnmatchable { ethertype: 0x88b5 }][..],
        ),
        (SPEC, &[]),
    ] {
        let mut empty = bed(quirks);
        empty.frame(1, &of_type(0x86dd));
        assert!(empty.events.is_empty());
        let mut bed = bed(quirks);
        bed.install([FlowMod::add(everything(), 5, output(3))]);
        bed.frame(1, &udp(306, 0));
        bed.frame(1, &of_type(0x88b5));
        bed.frame(1, &of_type(0x86dd));
        assert_eq!(bed.events, events);
    }
}

#[test]
fn q62_a_vlan_matches_any_tag() {
    let vlan_5 = only(DL_VLAN, &[(18, &[0, 5])]);
    let untagged = only(DL_VLAN, &[(18, &[0xff, 0xff])]);
    for (quirks, other_vlan, tagged_as_untagged) in [(FIRMWARE, true, true), (SPEC, false, false)] {
        assert!(matches(quirks, vlan_5, &tagged(5)));
        assert_eq!(matches(quirks, vlan_5, &tagged(6)), other_vlan);
        assert!(!matches(quirks, vlan_5, &udp(306, 0)));
        assert!(matches(quirks, untagged, &udp(306, 0)));
        assert_eq!(matches(quirks, untagged, &tagged(5)), tagged_as_untagged);
    }
}

#[test]
fn q63_vlan_priority_and_type_of_service_do_not_count() {
    let priority_3 = only(DL_VLAN | DL_VLAN_PCP, &[(18, &[0, 5]), (20, &[3])]);
    let tos_8 = only(DL_TYPE | NW_TOS, &[IPV4, (24, &[8])]);
    for (quirks, any) in [(FIRMWARE, true), (SPEC, false)] {
        assert!(matches(quirks, priority_3, &tagged(3 << 13 | 5)));
        assert_eq!(matches(quirks, priority_3, &tagged(2 << 13 | 5)), any);
        assert_eq!(matches(quirks, tos_8, &udp(306, 0)), any);
    }
}

/// Of no fragment, not even the first, are the ports examined (figure 4).
#[test]
fn q64_fragments_have_no_ports() {
    let port_0 = only(DL_TYPE | NW_PROTO | TP_SRC, &[IPV4, (25, &[17])]);
    let any_port = only(DL_TYPE | NW_PROTO, &[IPV4, (25, &[17])]);
    let [mut first, mut later] = [udp(306, 0), udp(306, 0)];
    first[20..22].copy_from_slice(&[0x20, 0]);
    later[20..22].copy_from_slice(&[0, 5]);
    for fragment in [first, later] {
        assert!(matches(SPEC, any_port, &fragment));
        assert!(matches(SPEC, port_0, &fragment));
        let [high, low] = [fragment[34], fragment[35]];
        let its_bytes = only(
            DL_TYPE | NW_PROTO | TP_SRC,
            &[IPV4, (25, &[17]), (36, &[high, low])],
        );
        assert!(!matches(SPEC, its_bytes, &fragment));
    }
}

#[test]
fn q64_zero_is_a_wildcard() {
    let port_0 = only(DL_TYPE | NW_PROTO | TP_SRC, &[IPV4, (25, &[17])]);
    let address_0 = only(DL_TYPE | NW_SRC, &[IPV4]);
    let mac_0 = only(1 << 2, &[]);
    for (quirks, any) in [(FIRMWARE, true), (SPEC, false)] {
        assert_eq!(matches(quirks, port_0, &udp(306, 0)), any);
        assert_eq!(matches(quirks, address_0, &udp(306, 0)), any);
        assert!(!matches(quirks, mac_0, &udp(306, 0)));
    }
}

#[test]
fn q65_icmp_type_0_cannot_be_told() {
    let echo_reply = only(DL_TYPE | NW_PROTO | TP_SRC, &[IPV4, (25, &[1])]);
    let code_3 = only(DL_TYPE | NW_PROTO | TP_DST, &[IPV4, (25, &[1]), (39, &[3])]);
    let mut tagged_code_3 = icmp(3, 3);
    tagged_code_3.splice(12..12, [0x81, 0, 0, 5]);
    for (quirks, any) in [(FIRMWARE, true), (SPEC, false)] {
        assert!(matches(quirks, echo_reply, &icmp(0, 0)));
        assert_eq!(matches(quirks, echo_reply, &icmp(8, 0)), any);
        assert_eq!(
            matches(quirks, code_3, &tagged_code_3),
            !any,
            "read from the wrong byte"
        );
    }
}

#[test]
fn q66_arp_operations_and_addresses_do_not_count() {
    let request = only(DL_TYPE | NW_PROTO, &[(22, &[8, 6]), (25, &[1])]);
    let other = only(DL_TYPE | NW_SRC, &[(22, &[8, 6]), (28, &[10, 9, 9, 9])]);
    for (quirks, any) in [(FIRMWARE, true), (SPEC, false)] {
        assert!(matches(quirks, request, &arp(1)));
        assert_eq!(matches(quirks, request, &arp(2)), any);
        assert_eq!(matches(quirks, other, &arp(1)), any);
    }
}

#[test]
fn q67_exact_entries_have_no_precedence() {
    let mut exact = fields(Fields::All, 0);
    exact[..4].fill(0);
    exact[6..18].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    exact[18..20].copy_from_slice(&[0xff, 0xff]);
    for (quirks, port) in [(FIRMWARE, 0b010), (SPEC, 0b100)] {
        let mut bed = bed(quirks);
        bed.install([
            FlowMod::add(exact, 1, output(3)),
            FlowMod::add(everything(), 9, output(2)),
        ]);
        assert_eq!(bed.frame(1, &udp(306, 0))[0].ports.bits(), port);
    }
}

#[test]
fn q68_frames_with_a_length_have_no_type_05ff() {
    let llc = only(DL_TYPE, &[(22, &[0x05, 0xff])]);
    assert!(!matches(FIRMWARE, llc, &of_type(100)));
    assert!(matches(SPEC, llc, &of_type(100)));
}

#[test]
fn q69_packet_in_tells_the_length_of_what_it_carries() {
    let to_controller = FlowMod::add(everything(), 5, vec![0, 0, 0, 8, 0xff, 0xfd, 0, 50]);
    for (quirks, length) in [(FIRMWARE, 50), (SPEC, 302)] {
        let mut bed = bed(quirks);
        bed.install([to_controller.clone()]);
        bed.frame(1, &udp(306, 0));
        let notice = &bed.replies[0];
        assert_eq!(
            (number(&notice[12..14]), notice.len(), notice[16]),
            (length, 18 + length as usize, 1)
        );
    }
}

/// After six acknowledged messages the window is larger than the send buffer.
#[test]
fn q70_at_most_24_messages_wait() {
    for (quirks, come) in [(FIRMWARE, 24), (SPEC, 40)] {
        let config = Config {
            acknowledgement_ns: 20_000_000,
            ..with(quirks)
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        for _ in 0..8 {
            bed.wait(Duration::from_millis(25));
            bed.frame(1, &udp(64, 0));
        }
        bed.wait(Duration::from_millis(100));
        bed.replies.clear();
        for _ in 0..40 {
            bed.board.frame(bed.now, port(1), &udp(64, 0));
            bed.wait(Duration::from_micros(100));
        }
        bed.wait(Duration::from_millis(10));
        assert_eq!(bed.replies.len(), come);
        let lost = Event::SendBufferFull {
            message_type: 10,
            stalled: false,
        };
        assert_eq!(bed.events.contains(&lost), come < 40);
    }
}

#[test]
fn q71_flood_is_all() {
    for (quirks, flood) in [(FIRMWARE, 0b1110), (SPEC, 0b0110)] {
        // Port 4 is in no VLAN: neither OpenFlow nor native.
        let config = Config {
            native_ports: vec![],
            ..with(quirks)
        };
        for reserved in [0xfffb, 0xfffc] {
            let mut bed = Testbed::connected(&quiet_profile(), config.clone());
            bed.install([FlowMod::add(everything(), 5, output(reserved))]);
            let reached = bed
                .frame(1, &udp(306, 0))
                .iter()
                .fold(0, |mask, it| mask | it.ports.bits());
            assert_eq!(reached, flood);
        }
    }
    let mut bed = bed(FIRMWARE);
    bed.install([FlowMod::add(everything(), 5, output(0xfffb))]);
    assert_eq!(
        bed.frame(1, &udp(306, 0))[0].ports.bits(),
        0b0110,
        "never a native port"
    );
}

#[test]
fn q73_ports_that_do_not_exist_lead_nowhere() {
    for wrong in [5, 8, 9, 200] {
        let entry = FlowMod::add(everything(), 5, output(wrong));
        assert!(ports(FIRMWARE, &entry, &udp(306, 0)).is_empty());
        assert_eq!(errors(&bed(SPEC).exchange(&entry.message())), [(2, 4)]);
    }
}

#[test]
fn q74_vlan_actions_go_by_the_tag_at_the_beginning() {
    let vid_9 = [0, 1, 0, 8, 0, 9, 0, 0];
    let pcp_6 = [0, 2, 0, 8, 6, 0, 0, 0];
    let both = [vid_9, pcp_6].concat();
    assert_eq!(
        rewritten(FIRMWARE, &both, &udp(306, 0))[12..20],
        [0x81, 0, 6 << 5, 0, 0x81, 0, 0, 9],
        "two tags"
    );
    assert_eq!(
        rewritten(SPEC, &both, &udp(306, 0))[12..18],
        [0x81, 0, 6 << 5, 9, 8, 0]
    );
    let tag = 5 << 13 | 7;
    assert_eq!(
        rewritten(FIRMWARE, &vid_9, &tagged(tag))[14..16],
        [0, 9],
        "the priority is lost"
    );
    assert_eq!(rewritten(SPEC, &vid_9, &tagged(tag))[14..16], [5 << 5, 9]);
    assert_eq!(
        rewritten(FIRMWARE, &pcp_6, &tagged(tag))[14..16],
        [6 << 5, 0],
        "the VLAN is lost"
    );
    assert_eq!(rewritten(SPEC, &pcp_6, &tagged(tag))[14..16], [6 << 5, 7]);
}

/// Sum of the 16-bit words of a UDP packet with its pseudo-header: 0xffff if the checksum is right.
fn udp_sum(frame: &[u8]) -> u32 {
    let length = number(&frame[38..40]) as usize;
    let words = [
        &frame[26..34],
        &[0, 17],
        &frame[38..40],
        &frame[34..34 + length],
    ]
    .concat();
    let sum: u32 = words
        .chunks(2)
        .map(|pair| number(&[pair[0], *pair.get(1).unwrap_or(&0)]) as u32)
        .sum();
    (sum & 0xffff) + (sum >> 16)
}

/// Returns a UDP packet with `payload` bytes and right checksums.
fn sound(payload: u16) -> Vec<u8> {
    let mut frame = udp(64.max(usize::from(payload) + 46), 0);
    frame[16..18].copy_from_slice(&(28 + payload).to_be_bytes());
    frame[38..40].copy_from_slice(&(8 + payload).to_be_bytes());
    frame[42] = 0x55;
    let sum = udp_sum(&frame);
    frame[40..42].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
    frame
}

#[test]
fn q75_set_tp_dst_leaves_the_checksum() {
    let to_99 = [0, 10, 0, 8, 0, 99, 0, 0];
    assert_eq!(udp_sum(&sound(100)), 0xffff);
    assert_ne!(udp_sum(&rewritten(FIRMWARE, &to_99, &sound(100))), 0xffff);
    let frame = rewritten(SPEC, &to_99, &sound(100));
    assert_eq!((udp_sum(&frame), &frame[36..38]), (0xffff, &[0, 99][..]));
}

#[test]
fn q76_checksums_of_short_packets_count_the_padding() {
    let from_10_9 = [0, 6, 0, 8, 10, 9, 9, 9];
    assert_eq!(
        udp_sum(&rewritten(FIRMWARE, &from_10_9, &sound(100))),
        0xffff,
        "long ones are right"
    );
    assert_ne!(udp_sum(&rewritten(FIRMWARE, &from_10_9, &sound(4))), 0xffff);
    assert_eq!(udp_sum(&rewritten(SPEC, &from_10_9, &sound(4))), 0xffff);
}

#[test]
fn q77_network_fields_are_written_into_any_frame() {
    let from_10_9 = [0, 6, 0, 8, 10, 9, 9, 9];
    assert_ne!(rewritten(FIRMWARE, &from_10_9, &arp(1)), arp(1));
    assert_eq!(rewritten(SPEC, &from_10_9, &arp(1)), arp(1));
    let tos_8 = [0, 8, 0, 8, 8, 0, 0, 0];
    let mut congested = sound(100);
    congested[15] = 3;
    assert_eq!(
        rewritten(FIRMWARE, &tos_8, &congested)[15],
        8,
        "the congestion bits are lost"
    );
    assert_eq!(rewritten(SPEC, &tos_8, &congested)[15], 8 | 3);
}

#[test]
fn q78_frames_that_are_too_long_are_counted_and_dropped() {
    let mut bed = bed(FIRMWARE);
    let vid_9 = [0, 1, 0, 8, 0, 9, 0, 0];
    bed.install([FlowMod::add(
        everything(),
        5,
        [&vid_9[..], &output(3)].concat(),
    )]);
    assert!(bed.frame(1, &udp(1518, 0)).is_empty());
    assert_eq!(bed.board.counters().dropped_size, 1);
    let reply = statistics(&mut bed, 4, &[0, 3, 0, 0, 0, 0, 0, 0]).remove(0);
    assert_eq!(number(&reply[28..36]), 1, "sent by port 3");
}

#[test]
fn q81_secure_mode_erases_all_flows_with_the_connection() {
    let mut bed = bed(FIRMWARE);
    bed.install([FlowMod::add(everything(), 5, output(3))]);
    bed.board.disconnected(bed.now);
    assert!(bed.frame(1, &udp(306, 0)).is_empty());
    assert!(bed.board.flows().is_empty());
    bed.board.connected(bed.now);
    bed.frame(1, &udp(306, 0));
    assert_eq!(
        types(&bed.replies),
        [0],
        "HELLO, and no PACKET_IN before the controller's"
    );
}

#[test]
fn q82_safe_mode_pauses_between_connection_and_hello() {
    for (quirks, forwarded) in [(FIRMWARE, 0), (SPEC, 1)] {
        let config = Config {
            fail_state: FailState::Safe,
            ..with(quirks)
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        bed.install([FlowMod::add(everything(), 5, output(3))]);
        bed.board.disconnected(bed.now);
        assert_eq!(bed.frame(1, &udp(306, 0)).len(), 1);
        bed.board.connected(bed.now);
        assert_eq!(bed.frame(1, &udp(306, 0)).len(), forwarded);
    }
}

#[test]
fn q83_reading_counters_stops_forwarding() {
    let lost = |ofchecks| {
        let mut bed = Testbed::connected(
            &quiet_profile(),
            Config {
                ofchecks,
                ..with(FIRMWARE)
            },
        );
        bed.install([FlowMod::add(everything(), 5, output(3))]);
        for _ in 0..3_100 {
            bed.board.frame(bed.now, port(1), &udp(306, 0));
            bed.wait(Duration::from_millis(1));
        }
        let counters = bed.board.counters();
        counters.dropped_buffer + counters.dropped_switch
    };
    assert_eq!(lost(false), 0);
    // Twice the CPU is away for 25 ms; 8 frames of 306 bytes fit into the ring.
    assert!((30..=36).contains(&lost(true)), "{}", lost(true));
}
