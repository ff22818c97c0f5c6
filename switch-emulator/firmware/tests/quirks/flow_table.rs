//! Flow timeouts: quirks 51 to 53.

use super::testbed::{everything, fields, output, udp, Fields, FlowMod};
use super::*;
use zodiac_firmware::Event;

/// With the pool at this address the first entry's idle field lies at 0x2000db02: a threshold of 2 x 256 + 0xdb s.
const ADDRESS: u32 = 0x2000_dac8;
const IDLE_S: u64 = 2 * 256 + 0xdb;

fn watched(quirks: Quirks) -> Testbed {
    let config = Config {
        ofchecks: true,
        flow_memory_address: ADDRESS,
        ..with(quirks)
    };
    Testbed::connected(&quiet_profile(), config)
}

/// Lets time pass with a controller that gives signs of life; gives what is no echo.
fn live(bed: &mut Testbed, seconds: u64) -> Vec<Vec<u8>> {
    let mut replies = Vec::new();
    for _ in 0..seconds.div_ceil(2) {
        bed.wait(Duration::from_millis(1_996));
        replies.append(&mut bed.replies);
        bed.exchange(&message(2, &[]));
    }
    replies.retain(|reply| !matches!(reply[1], 2 | 3));
    replies
}

fn with_timeouts(entry: &FlowMod, idle_s: u8, hard_s: u8) -> Vec<u8> {
    let mut message = entry.message();
    message[58..62].copy_from_slice(&[0, idle_s, 0, hard_s]);
    message
}

#[test]
fn q51_timeouts_depend_on_memory_addresses() {
    let mut bed = watched(FIRMWARE);
    let entry = FlowMod {
        flags: 1,
        ..FlowMod::add(fields(Fields::FiveTuple, 0), 9, output(3))
    };
    bed.exchange(&with_timeouts(&entry, 1, 0));
    live(&mut bed, IDLE_S - 10);
    assert_eq!(
        bed.board.flows().len(),
        1,
        "after 720 s, though its timeout is 1 s"
    );
    let notices = live(&mut bed, 20);
    assert!(bed.board.flows().is_empty());
    assert_eq!((types(&notices), notices[0][58]), (vec![11], 0), "idle");
    assert!(bed.events[0].to_string().contains("quirks 51"));

    let mut bed = watched(SPEC);
    bed.exchange(&with_timeouts(&entry, 3, 0));
    live(&mut bed, 2);
    assert_eq!(bed.board.flows().len(), 1);
    assert_eq!(types(&live(&mut bed, 4)), [11]);
    bed.exchange(&with_timeouts(&entry, 0, 0));
    live(&mut bed, IDLE_S + 20);
    assert_eq!(bed.board.flows().len(), 1, "permanent");
}

#[test]
fn q51_without_housekeeping_nothing_times_out() {
    let config = Config {
        flow_memory_address: ADDRESS,
        ..quiet_config()
    };
    let mut bed = Testbed::connected(&quiet_profile(), config);
    bed.install([FlowMod::add(everything(), 9, output(3))]);
    live(&mut bed, IDLE_S + 20);
    assert_eq!(bed.board.flows().len(), 1);
}

#[test]
fn q52_an_expiry_takes_another_entry_with_it() {
    for (count, left) in [(2, 0), (4, 2)] {
        let mut bed = watched(FIRMWARE);
        bed.install(
            (0..count).map(|number| FlowMod::add(fields(Fields::FiveTuple, number), 9, output(3))),
        );
        live(&mut bed, IDLE_S + 10);
        assert_eq!(bed.board.flows().len(), left);
        assert!(matches!(
            bed.events[..],
            [Event::FlowExpired {
                another_lost: true,
                ..
            }]
        ));
    }
}

#[test]
fn q52_a_lone_entry_leaves_a_count_of_minus_1() {
    let mut bed = watched(FIRMWARE);
    bed.install([FlowMod::add(everything(), 9, output(3))]);
    live(&mut bed, IDLE_S + 10);
    assert_eq!(
        number(&statistics(&mut bed, 3, &[])[0][56..60]),
        0xffff_ffff
    );
    assert!(bed.frame(1, &udp(306, 0)).is_empty());
    assert!(bed.replies.is_empty(), "no PACKET_IN");
    bed.install([FlowMod::add(everything(), 9, output(3))]);
    assert_eq!(bed.events[1], Event::AddAfterUnderflow);
    assert_eq!(number(&statistics(&mut bed, 3, &[])[0][56..60]), 0);
}

#[test]
fn q53_flow_removed_counts_in_the_byte_order_of_the_cpu() {
    for (quirks, packets, bytes) in [
        (
            FIRMWARE,
            [1, 0, 0, 0, 0, 0, 0, 0],
            [46, 1, 0, 0, 0, 0, 0, 0],
        ),
        (SPEC, [0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1, 46]),
    ] {
        let mut bed = watched(quirks);
        let entry = FlowMod {
            flags: 1,
            ..FlowMod::add(everything(), 9, output(3))
        };
        bed.exchange(&with_timeouts(&entry, 5, 0));
        bed.frame(1, &udp(306, 0));
        let notice = live(&mut bed, IDLE_S + 10).remove(0);
        assert_eq!(
            (&notice[72..80], &notice[80..88]),
            (&packets[..], &bytes[..])
        );
    }
}
