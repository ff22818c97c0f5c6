//! `PACKET_OUT`: quirks 72, 79 and 80.

use super::testbed::{everything, output, udp, FlowMod};
use super::*;

fn packet_out(in_port: u16, actions: &[u8], data: &[u8]) -> Vec<u8> {
    let head = [
        &[0xff; 4][..],
        &in_port.to_be_bytes(),
        &(actions.len() as u16).to_be_bytes(),
    ]
    .concat();
    message(13, &[&head, actions, data].concat())
}

/// Ports by which a frame leaves, and its bytes.
type Frame = (u8, Vec<u8>);

/// Ports by which the frame of a `PACKET_OUT` leaves, its bytes, and the errors.
fn sent(quirks: Quirks, message: &[u8]) -> (Vec<Frame>, Vec<(u8, u8)>) {
    let mut bed = bed(quirks);
    let replies = bed.exchange(message);
    let frames = bed
        .departures
        .iter()
        .map(|it| (it.ports.bits(), it.data.clone()))
        .collect();
    (frames, errors(&replies))
}

fn ports(quirks: Quirks, message: &[u8]) -> Vec<u8> {
    sent(quirks, message)
        .0
        .into_iter()
        .map(|(ports, _)| ports)
        .collect()
}

#[test]
fn q72_packet_out_may_go_to_the_ingress_port() {
    let message = packet_out(1, &output(1), &udp(100, 0));
    assert_eq!(ports(FIRMWARE, &message), [0b001]);
    assert!(ports(SPEC, &message).is_empty());
    for quirks in [FIRMWARE, SPEC] {
        let mut bed = bed(quirks);
        bed.install([FlowMod::add(everything(), 1, output(1))]);
        assert!(bed.frame(1, &udp(306, 0)).is_empty(), "not by an entry");
    }
}

#[test]
fn q79_only_the_last_output_counts() {
    let set_dl_src = [&[0, 4, 0, 16][..], &[9; 6], &[0; 6]].concat();
    let message = packet_out(
        1,
        &[set_dl_src, output(3), output(2)].concat(),
        &udp(100, 0),
    );
    assert_eq!(sent(FIRMWARE, &message).0, [(0b010, udp(100, 0))]);
    let frames = sent(SPEC, &message).0;
    assert_eq!(
        frames.iter().map(|it| it.0).collect::<Vec<_>>(),
        [0b100, 0b010]
    );
    assert!(frames.iter().all(|(_, data)| data[6..12] == [9; 6]));
    // The last action is misread when it is no output: the port stands where STRIP_VLAN has padding.
    let message = packet_out(
        1,
        &[&output(3)[..], &[0, 3, 0, 8, 0, 0, 0, 0]].concat(),
        &udp(100, 0),
    );
    assert!(ports(FIRMWARE, &message).is_empty());
    assert_eq!(ports(SPEC, &message), [0b100]);
}

#[test]
fn q79_the_table_is_one_output_among_others() {
    let mut bed = bed(SPEC);
    bed.install([FlowMod::add(everything(), 1, output(2))]);
    let set_dl_src = |last| [&[0, 4, 0, 16][..], &[last; 6], &[0; 6]].concat();
    let actions = [set_dl_src(8), output(0xfff9), set_dl_src(9), output(3)];
    bed.exchange(&packet_out(1, &actions.concat(), &udp(100, 0)));
    let left: Vec<_> = bed
        .departures
        .iter()
        .map(|it| (it.ports.bits(), it.data[6]))
        .collect();
    assert_eq!(left, [(0b010, 8), (0b100, 9)], "as the frame is by then");
}

#[test]
fn q80_a_buffer_that_is_not_there_is_unknown() {
    let mut message = packet_out(1, &output(3), &udp(100, 0));
    message[8..12].copy_from_slice(&[0, 0, 0, 9]);
    assert_eq!(sent(SPEC, &message), (vec![], vec![(1, 8)]));
}

#[test]
fn q80_reserved_ports_lead_nowhere() {
    for (port, spec) in [
        (0xfffc, vec![0b110]),
        (0xfff8, vec![0b001]),
        (0xfffd, vec![]),
    ] {
        let message = packet_out(1, &output(port), &udp(100, 0));
        assert!(ports(FIRMWARE, &message).is_empty(), "{port:#x}");
        assert_eq!(ports(SPEC, &message), spec, "{port:#x}");
    }
    let no_action = packet_out(2, &[], &udp(100, 0));
    assert_eq!(ports(FIRMWARE, &no_action), [0b010]);
    assert!(ports(SPEC, &no_action).is_empty());
    let no_data = packet_out(1, &output(3), &[]);
    assert_eq!(sent(FIRMWARE, &no_data).0, [(0b100, vec![0; 60])]);
    assert!(ports(SPEC, &no_data).is_empty());
    let to_normal = packet_out(1, &output(0xfffa), &udp(100, 0));
    assert_eq!(sent(SPEC, &to_normal).1, [(2, 4)]);
}
