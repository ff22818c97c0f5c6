//! Replies of the handshake: quirks 19 to 25.

use super::testbed::{everything, output, port, udp, FlowMod};
use super::*;

const VENDOR: u8 = 4;
const FEATURES: u8 = 5;

#[test]
fn q19_addresses_of_ports_are_new_in_every_reply() {
    for (quirks, same) in [(FIRMWARE, false), (SPEC, true)] {
        let mut bed = bed(quirks);
        let [first, second] = [0, 1].map(|_| bed.exchange(&message(FEATURES, &[])).remove(0));
        assert_eq!(first[34..40] == second[34..40], same);
        assert_eq!(&first[40..44], b"eth0", "port 1");
    }
}

#[test]
fn q20_ports_say_100_mbit_copper_and_nothing_else() {
    let reply = bed(FIRMWARE).exchange(&message(FEATURES, &[])).remove(0);
    assert_eq!(
        reply[64..80],
        [0, 0, 0, 0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}

#[test]
fn q21_a_link_change_first_seen_by_features_is_not_reported() {
    for (quirks, reports) in [(FIRMWARE, 0), (SPEC, 1)] {
        let mut bed = Testbed::new(
            &quiet_profile(),
            Config {
                ofchecks: true,
                ..with(quirks)
            },
        );
        bed.connect();
        bed.board.link_state(bed.now, port(2), false);
        let reply = bed.exchange(&message(FEATURES, &[])).remove(0);
        assert_eq!(reply[80 + 31], 1, "down");
        for _ in 0..4 {
            bed.wait(TICK);
        }
        assert_eq!(
            bed.replies.iter().filter(|reply| reply[1] == 12).count(),
            reports
        );
    }
}

#[test]
fn q22_there_are_no_buffers() {
    let mut bed = bed(FIRMWARE);
    assert_eq!(bed.exchange(&message(FEATURES, &[]))[0][16..20], [0; 4]);
    let mut with_buffer = FlowMod::add(everything(), 1, output(3)).message();
    with_buffer[64..68].copy_from_slice(&[0, 0, 0, 9]);
    assert!(bed.exchange(&with_buffer).is_empty());
    assert_eq!(bed.board.flows().len(), 1);
    let mut bed = self::bed(SPEC);
    for command in 0..5 {
        with_buffer[57] = command;
        let deletes = command > 2;
        let refused = errors(&bed.exchange(&with_buffer));
        assert_eq!(refused.is_empty(), deletes, "of no meaning in a DELETE");
        assert!(deletes || refused == [(1, 8)], "BUFFER_UNKNOWN");
    }
    assert!(bed.board.flows().is_empty());
}

#[test]
fn q23_set_config_has_no_effect() {
    for (quirks, first, after) in [
        (FIRMWARE, [0, 0, 0x80, 0], [0, 0, 0x80, 0]),
        (SPEC, [0, 0, 0, 128], [0, 1, 0, 99]),
    ] {
        let mut bed = bed(quirks);
        assert_eq!(bed.exchange(&message(7, &[]))[0][8..], first);
        bed.exchange(&message(9, &[0, 1, 0, 99]));
        assert_eq!(bed.exchange(&message(7, &[]))[0][8..], after);
    }
    let mut bed = bed(FIRMWARE);
    bed.exchange(&message(9, &[0, 0, 0, 10]));
    bed.frame(1, &udp(306, 0));
    assert_eq!(bed.replies[0].len(), 18 + 302, "the whole frame");
}

#[test]
fn q23_fragments_are_dropped_if_set_config_asks() {
    let whole = udp(306, 0);
    let fragment = |place: u16| {
        let mut frame = udp(306, 0);
        frame[20..22].copy_from_slice(&place.to_be_bytes());
        frame
    };
    let tagged = [
        &fragment(0x2000)[..12],
        &[0x81, 0, 0, 5],
        &fragment(0x2000)[12..],
    ]
    .concat();
    for (quirks, flag, forwarded) in [(FIRMWARE, 1, true), (SPEC, 1, false), (SPEC, 0, true)] {
        let mut bed = bed(quirks);
        bed.install([FlowMod::add(everything(), 1, output(3))]);
        bed.exchange(&message(9, &[0, flag, 0, 99]));
        for frame in [fragment(0x2000), fragment(3), tagged.clone()] {
            assert_eq!(bed.frame(1, &frame).len(), usize::from(forwarded));
        }
        assert_eq!(bed.frame(1, &whole).len(), 1);
    }
    let mut bed = bed(SPEC);
    bed.exchange(&message(9, &[0, 1, 0, 99]));
    for put_together in [2, 3] {
        let refused = bed.exchange(&message(9, &[0, put_together, 0, 98]));
        assert_eq!(errors(&refused), [(1, 5)], "EPERM");
        assert_eq!(bed.exchange(&message(7, &[]))[0][8..], [0, 1, 0, 99]);
    }
}

#[test]
fn q24_the_error_for_vendor_messages_has_no_data() {
    let vendor = message(VENDOR, &[0, 0, 0, 1]);
    for (quirks, length) in [(FIRMWARE, 12), (SPEC, 24)] {
        let replies = bed(quirks).exchange(&vendor);
        assert_eq!((errors(&replies), replies[0].len()), (vec![(1, 3)], length));
    }
}

/// Garbage is memory that the firmware never wrote; here it is 0, but the bytes are there.
#[test]
fn q25_padding_holds_whatever_memory_held() {
    let mut bed = bed(FIRMWARE);
    assert_eq!(bed.exchange(&message(FEATURES, &[]))[0][21..24], [0; 3]);
    assert_eq!(statistics(&mut bed, 3, &[])[0][13..52], [0; 39]);
    let mut bed = super::bed(SPEC);
    assert!(statistics(&mut bed, 3, &[])[0][16..].starts_with(b"classifier\0"));
}
