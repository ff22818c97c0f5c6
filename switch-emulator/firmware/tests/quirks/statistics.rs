//! Statistics: quirks 26 to 36.

use super::testbed::{everything, fields, output, port, udp, Fields, FlowMod};
use super::*;
use zodiac_firmware::Event;

fn install(bed: &mut Testbed, count: u16, actions: &[u8]) {
    bed.install(
        (0..count)
            .map(|number| FlowMod::add(fields(Fields::FiveTuple, number), 7, actions.to_vec())),
    );
}

#[test]
fn q26_flow_statistics_ignore_the_request_and_stop_at_20() {
    for (quirks, all, one) in [(FIRMWARE, 20, 20), (SPEC, 30, 1)] {
        let mut bed = bed(quirks);
        install(&mut bed, 30, &output(3));
        assert_eq!(
            statistics(&mut bed, 1, &all_flows())[0].len(),
            12 + all * 96
        );
        let mut body = all_flows();
        body[..40].copy_from_slice(&fields(Fields::FiveTuple, 4));
        assert_eq!(statistics(&mut bed, 1, &body)[0].len(), 12 + one * 96);
    }
}

#[test]
fn q27_priority_and_timeouts_are_unrelated() {
    for (quirks, priority) in [(FIRMWARE, [0xff, 0xff]), (SPEC, [0, 7])] {
        let mut bed = bed(quirks);
        install(&mut bed, 1, &output(3));
        assert_eq!(statistics(&mut bed, 1, &all_flows())[0][64..66], priority);
    }
}

#[test]
fn q28_a_reply_of_more_than_2048_bytes_hangs_the_board() {
    for (quirks, dead) in [(FIRMWARE, true), (SPEC, false)] {
        let mut bed = bed(quirks);
        install(&mut bed, 20, &[output(3), output(2)].concat());
        let replies = statistics(&mut bed, 1, &all_flows());
        assert_eq!(replies.is_empty(), dead);
        assert_eq!(bed.exchange(&message(18, &[])).is_empty(), dead);
        assert_eq!(bed.frame(1, &udp(306, 0)).is_empty(), dead);
        let told = bed
            .events
            .iter()
            .any(|event| event.to_string().contains("hangs"));
        assert_eq!(told, dead);
    }
}

#[test]
fn q29_other_kinds_of_statistics_get_no_reply() {
    for (kind, body) in [
        (2, all_flows()),
        (5, vec![0; 8]),
        (0xffff, vec![0; 4]),
        (9, vec![]),
    ] {
        let mut bed = bed(FIRMWARE);
        assert!(statistics(&mut bed, kind, &body).is_empty());
        let mut bed = super::bed(SPEC);
        install(&mut bed, 3, &output(3));
        bed.frame(1, &udp(306, 0));
        let reply = statistics(&mut bed, kind, &body).remove(0);
        match kind {
            2 => assert_eq!(
                (number(&reply[12..20]), number(&reply[20..28]), reply[31]),
                (1, 302, 3)
            ),
            5 => assert_eq!(reply.len(), 12),
            0xffff => assert_eq!(errors(&[reply]), [(1, 3)]),
            _ => assert_eq!(errors(&[reply]), [(1, 2)]),
        }
    }
}

#[test]
fn q30_table_statistics_claim_512_entries() {
    for (quirks, entries) in [(FIRMWARE, 512), (SPEC, 128)] {
        let mut bed = bed(quirks);
        assert_eq!(number(&statistics(&mut bed, 3, &[])[0][52..56]), entries);
    }
}

#[test]
fn q31_bad_ports_get_an_error_without_data() {
    for wanted in [0, 4, 9] {
        let body = [0, wanted, 0, 0, 0, 0, 0, 0];
        let reply = statistics(&mut bed(FIRMWARE), 4, &body).remove(0);
        assert_eq!(reply, [1, 1, 0, 12, 0, 0, 0, 0, 0, 1, 0, 2]);
        let reply = statistics(&mut bed(SPEC), 4, &body).remove(0);
        assert_eq!((reply[7], reply.len()), (7, 32));
    }
}

/// 300 frames of 306 bytes a second are 550 800 bytes between two readings; 16 bits of that are left.
#[test]
fn q32_byte_counters_are_read_every_6_s_and_cut_to_16_bits() {
    let bytes = |quirks| {
        let mut bed = Testbed::new(
            &quiet_profile(),
            Config {
                ofchecks: true,
                ..with(quirks)
            },
        );
        bed.connect();
        bed.install([FlowMod::add(everything(), 1, output(3))]);
        for step in 0..3_600_u32 {
            bed.board.frame(bed.now, port(1), &udp(306, 0));
            bed.wait(Duration::from_micros(3_333));
            if step % 500 == 0 {
                bed.exchange(&message(2, &[]));
            }
        }
        let reply = statistics(&mut bed, 4, &[0, 1, 0, 0, 0, 0, 0, 0]).remove(0);
        (number(&reply[20..28]), number(&reply[36..44]))
    };
    let (frames, seen) = bytes(FIRMWARE);
    assert!(
        frames > 3_000 && seen > 0 && seen < 3 * 65_536,
        "{frames} frames, {seen} bytes"
    );
    let (_, seen) = bytes(SPEC);
    assert_eq!(seen, 3_600 * 306);
}

/// Sends frames of `length` bytes (with FCS) through a single entry, as fast as the CPU takes them. Returns the board.
fn used_by(quirks: Quirks, count: u32, length: usize) -> Testbed {
    let mut bed = bed(quirks);
    bed.install([FlowMod::add(everything(), 1, output(3))]);
    let frame = udp(length, 0);
    for _ in 0..count {
        bed.board.frame(bed.now, port(1), &frame);
        bed.now += Duration::from_micros(130);
        bed.board.advance(bed.now);
        while bed.board.poll_output().is_some() {}
    }
    bed.wait(Duration::from_millis(1));
    bed
}

#[test]
fn q33_packet_counts_wrap() {
    for (quirks, packets) in [(FIRMWARE, 4), (SPEC, 65_540)] {
        let bed = used_by(quirks, 65_540, 64);
        assert_eq!(bed.board.flows()[0].packets, packets);
    }
}

#[test]
fn q33_byte_counts_turn_negative() {
    let mut bed = used_by(FIRMWARE, 1_418_500, 1518);
    let reply = statistics(&mut bed, 1, &all_flows()).remove(0);
    let sum = 1_418_500 * 1_514_i64 - (1 << 32);
    assert!(sum < 0);
    assert_eq!(reply[92..100], sum.to_be_bytes());
}

#[test]
fn q34_a_second_lasts_two_ticks() {
    for (quirks, seconds) in [(FIRMWARE, 598), (SPEC, 600)] {
        let mut bed = bed(quirks);
        install(&mut bed, 1, &output(3));
        bed.wait(Duration::from_millis(600_100));
        bed.replies.clear();
        let reply = statistics(&mut bed, 1, &all_flows()).remove(0);
        assert_eq!(
            (number(&reply[56..60]), number(&reply[60..64])),
            (seconds, 0)
        );
    }
}

#[test]
fn q35_the_description_echoes_the_version_of_the_request() {
    let request = [3, 16, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0];
    assert_eq!(bed(FIRMWARE).exchange(&request)[0][..2], [3, 17]);
    assert_eq!(errors(&bed(SPEC).exchange(&request)), [(1, 0)]);
}

#[test]
fn q36_table_counters_begin_again_with_each_session() {
    for (quirks, lookups) in [(FIRMWARE, 0), (SPEC, 1)] {
        let mut bed = bed(quirks);
        bed.frame(1, &udp(306, 0));
        bed.board.disconnected(bed.now);
        bed.connect();
        assert_eq!(number(&statistics(&mut bed, 3, &[])[0][60..68]), lookups);
    }
}

#[test]
fn q28_the_event_says_what_the_controller_did() {
    let event = Event::StatsReplyOverrun {
        length_bytes: 2_092,
    };
    assert!(
        event.to_string().contains("flow statistics") && event.to_string().contains("quirk 28")
    );
}
