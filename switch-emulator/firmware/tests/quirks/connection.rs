//! Connection and framing: quirks 1 to 18.

use super::testbed::{fields, message, output, udp, Fields, FlowMod};
use super::*;
use zodiac_firmware::{Event, FailState};

const ECHO: u8 = 2;
const FEATURES: u8 = 5;
const GET_CONFIG: u8 = 7;
const BARRIER: u8 = 18;

#[test]
fn q01_hello_says_version_4() {
    assert_eq!(bare(with(FIRMWARE)).replies, [[4, 0, 0, 8, 0, 0, 0, 1]]);
    // The highest version that it speaks; behind it the names of all.
    let greeting = &bare(with(SPEC)).replies;
    assert_eq!(greeting.len(), 1);
    assert_eq!(greeting[0][..8], [4, 0, 0, 16, 0, 0, 0, 1]);
}

#[test]
fn q02_hello_of_another_version_leaves_the_board_mute() {
    for (quirks, refused) in [(FIRMWARE, &[][..]), (SPEC, &[(0, 0)])] {
        let mut bed = bare(with(quirks));
        assert_eq!(errors(&bed.exchange(&[2, 0, 0, 8, 0, 0, 0, 9])), refused);
        assert!(bed.exchange(&message(BARRIER, &[])).is_empty());
    }
    let forced = Config {
        openflow_version: 4,
        ..with(SPEC)
    };
    let mut bed = bare(forced);
    assert_eq!(
        errors(&bed.exchange(&message(0, &[]))),
        [(0, 0)],
        "HELLO_FAILED"
    );
    assert_eq!(bed.closes.len(), 1);
}

#[test]
fn q03_a_later_hello_changes_the_version() {
    for (quirks, version) in [(FIRMWARE, 4), (SPEC, 1)] {
        let mut bed = bed(quirks);
        bed.exchange(&[4, 0, 0, 8, 0, 0, 0, 9]);
        assert_eq!(bed.exchange(&message(ECHO, &[]))[0][0], version);
    }
}

#[test]
fn q04_the_version_of_messages_is_not_checked() {
    let barrier = [3, BARRIER, 0, 8, 0, 0, 0, 7];
    assert_eq!(types(&bed(FIRMWARE).exchange(&barrier)), [19]);
    assert_eq!(errors(&bed(SPEC).exchange(&barrier)), [(1, 0)]);
}

#[test]
fn q05_echo_loses_its_payload() {
    let echo = message(ECHO, b"payload!");
    assert_eq!(bed(FIRMWARE).exchange(&echo)[0].len(), 8);
    assert_eq!(bed(SPEC).exchange(&echo)[0][8..], *b"payload!");
}

#[test]
fn q06_echo_before_hello_is_answered_with_version_0() {
    for (quirks, version) in [(FIRMWARE, 0), (SPEC, 1)] {
        let mut bed = bare(with(quirks));
        bed.replies.clear();
        assert_eq!(bed.exchange(&message(ECHO, &[]))[0][0], version);
    }
}

/// Unsolicited messages have version 0 before HELLO, too; by the specification the board waits until both sides have
/// agreed on a version.
#[test]
fn q06_notices_before_hello_have_version_0() {
    for (quirks, versions) in [(FIRMWARE, &[0; 5][..]), (SPEC, &[])] {
        let mut bed = bare(Config {
            fail_state: FailState::Safe,
            ..with(quirks)
        });
        bed.replies.clear();
        // By the specification a miss, then for both silence.
        bed.frame(1, &udp(306, 0));
        for _ in 0..10 {
            bed.wait(TICK);
        }
        let said: Vec<u8> = bed.replies.iter().map(|notice| notice[0]).collect();
        assert_eq!(said, versions, "{:?}", types(&bed.replies));
        bed.exchange(&message(0, &[]));
        bed.frame(1, &udp(306, 0));
        assert_eq!(types(&bed.replies).last(), Some(&10), "PACKET_IN");
    }
}

#[test]
fn q07_echo_requests_come_every_tick_of_silence() {
    for quirks in [FIRMWARE, SPEC] {
        let mut bed = Testbed::new(
            &quiet_profile(),
            Config {
                ofchecks: true,
                ..with(quirks)
            },
        );
        bed.connect();
        for _ in 0..13 {
            bed.wait(TICK);
        }
        assert_eq!(bed.replies, vec![[1, ECHO, 0, 8, 0xd2, 4, 0, 0]; 8]);
        assert_eq!(bed.closes.len(), 1, "after 13 ticks");
    }
}

#[test]
fn q08_a_session_without_features_request_is_closed() {
    for (quirks, closed_after_7_ticks) in [(FIRMWARE, 1), (SPEC, 0)] {
        let mut bed = bare(Config {
            ofchecks: true,
            ..with(quirks)
        });
        bed.exchange(&message(0, &[]));
        for _ in 0..7 {
            bed.wait(TICK);
        }
        assert_eq!(bed.closes.len(), closed_after_7_ticks);
    }
}

#[test]
fn q09_a_controller_must_talk_before_the_next_tick() {
    for (quirks, closes) in [(FIRMWARE, 1), (SPEC, 0)] {
        let config = Config {
            ofchecks: true,
            ..with(quirks)
        };
        let mut bed = Testbed::new(&quiet_profile(), config);
        bed.wait(Duration::from_millis(10_000));
        bed.board.connected(bed.now);
        bed.wait(TICK);
        assert_eq!(bed.closes.len(), closes);
    }
}

#[test]
fn q10_messages_are_not_put_together_from_segments() {
    let mut written: Vec<u8> = (0..8)
        .flat_map(|number| FlowMod::add(fields(Fields::FiveTuple, number), 1, output(3)).message())
        .collect();
    written.extend(message(BARRIER, &[]));
    for (quirks, flows, replies) in [(FIRMWARE, 6, 0), (SPEC, 8, 1)] {
        let mut bed = bed(quirks);
        let answered: usize = written
            .chunks(536)
            .map(|segment| bed.exchange(segment).len())
            .sum();
        assert_eq!((bed.board.flows().len(), answered), (flows, replies));
    }
}

#[test]
fn q11_messages_longer_than_a_segment_never_work() {
    let head = [&[0xff; 4][..], &[0xff, 0xff, 0, 8], &output(3)].concat();
    let packet_out = message(13, &[&head[..], &udp(604, 0)].concat());
    for (quirks, sent) in [(FIRMWARE, 0), (SPEC, 1)] {
        let mut bed = bed(quirks);
        for segment in packet_out.chunks(536) {
            bed.exchange(segment);
        }
        assert_eq!(bed.departures.len(), sent);
    }
}

#[test]
fn q12_a_bad_header_discards_the_rest_of_the_segment() {
    let unknown = [&[1, 31, 0, 8, 0, 0, 0, 7][..], &message(BARRIER, &[])].concat();
    let mut bed = bed(FIRMWARE);
    assert!(bed.exchange(&unknown).is_empty());
    assert!(matches!(
        bed.events[..],
        [Event::HeaderRefused {
            message_type: 31,
            ..
        }]
    ));
    let replies = super::bed(SPEC).exchange(&unknown);
    assert_eq!(
        (errors(&replies), types(&replies)),
        (vec![(1, 1)], vec![1, 19])
    );
}

/// A barrier of length 4, then a header that begins in its middle.
#[test]
fn q13_lengths_below_8_are_stepped_over() {
    let odd = [1, BARRIER, 0, 4, 1, BARRIER, 0, 8, 0, 0, 0, 9];
    assert_eq!(types(&bed(FIRMWARE).exchange(&odd)), [19, 19]);
    assert_eq!(errors(&bed(SPEC).exchange(&odd)), [(1, 6)]);
}

#[test]
fn q14_two_replies_of_the_exact_class_wedge_the_connection() {
    let two = [message(ECHO, &[]), message(GET_CONFIG, &[])].concat();
    let mut bed = bed(FIRMWARE);
    assert!(bed.exchange(&two).is_empty());
    assert_eq!(
        bed.events,
        [Event::ReplyTruncated {
            segment_bytes: 20,
            sent_bytes: 8
        }]
    );
    assert!(
        bed.exchange(&message(BARRIER, &[])).is_empty(),
        "nothing comes any more"
    );
    bed.board.disconnected(bed.now);
    bed.connect();
    assert_eq!(
        bed.exchange(&message(BARRIER, &[])).len(),
        1,
        "until the next connection"
    );
    assert_eq!(super::bed(SPEC).exchange(&two).len(), 2);
}

#[test]
fn q14_a_barrier_makes_room_for_what_follows() {
    let barrier_first = [
        message(BARRIER, &[]),
        message(ECHO, &[]),
        message(GET_CONFIG, &[]),
    ]
    .concat();
    let mut bed = bed(FIRMWARE);
    assert_eq!(types(&bed.exchange(&barrier_first)), [19, 3, 8]);
    // FEATURES and DESC fill two segments and end in a third of the exact class.
    let description = message(16, &[0; 4]);
    let spilt = [message(FEATURES, &[]), description, message(BARRIER, &[])].concat();
    assert_eq!(types(&bed.exchange(&spilt)), [6]);
    assert!(matches!(bed.events[..], [Event::ReplyTruncated { .. }]));
}

#[test]
fn q15_a_burst_of_packet_ins_wedges_the_connection() {
    for (quirks, all) in [(FIRMWARE, false), (SPEC, true)] {
        let config = Config {
            acknowledgement_ns: 50_000_000,
            ..with(quirks)
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        for _ in 0..8 {
            bed.board
                .frame(bed.now, super::testbed::port(1), &udp(306, 0));
            bed.wait(Duration::from_micros(300));
        }
        bed.wait(Duration::from_millis(300));
        assert_eq!(bed.replies.len() == 8, all, "{} came", bed.replies.len());
        assert_eq!(
            bed.events
                .iter()
                .any(|event| matches!(event, Event::ReplyTruncated { .. })),
            !all
        );
    }
}

/// The board's half of the connection stays open: no end of its own follows the controller's.
#[test]
fn q16_the_end_of_the_session_is_not_answered() {
    let mut bed = bed(FIRMWARE);
    bed.board.disconnected(bed.now);
    bed.wait(Duration::from_millis(3_000));
    assert!(bed.closes.is_empty());
    assert_eq!(bed.connects.len(), 1);
}

/// A new attempt every four ticks, and no end of the old one.
#[test]
fn q17_attempts_to_connect_follow_each_other() {
    let mut bed = Testbed::new(&quiet_profile(), with(FIRMWARE));
    bed.wait(Duration::from_millis(8_500));
    assert_eq!((bed.connects.len(), bed.closes.len()), (4, 0));
}

#[test]
fn q18_unsupported_types_are_ignored() {
    let port_mod = message(
        15,
        &[
            &[0, 2][..],
            &[0x70, 0xb3, 0xd5, 0x6c, 0, 3],
            &[0, 0, 0, 1, 0, 0, 0, 1],
            &[0; 8],
        ]
        .concat(),
    );
    let queues = message(20, &[0, 1, 0, 0]);
    for (quirks, answers, forwarded) in [(FIRMWARE, 0, 1), (SPEC, 1, 0)] {
        let mut bed = bed(quirks);
        bed.install([FlowMod::add(fields(Fields::FiveTuple, 0), 1, output(2))]);
        assert!(bed.exchange(&port_mod).is_empty());
        assert_eq!(bed.exchange(&queues).len(), answers);
        let told = |event: &Event| event.to_string().contains("quirk 18");
        assert_eq!(
            bed.events.iter().filter(|event| told(event)).count(),
            2 * (1 - answers)
        );
        assert_eq!(
            bed.frame(1, &udp(306, 0)).len(),
            forwarded,
            "port 2 is down"
        );
    }
    assert_eq!(
        errors(&bed(SPEC).exchange(&message(21, &[0; 8]))),
        [(1, 1)],
        "BAD_TYPE"
    );
}
