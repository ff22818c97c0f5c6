//! Flow timeouts: quirks 51 to 53 and 201.

use super::testbed::{everything, fields, output, udp, Fields, FlowMod};
use super::*;
use zodiac_firmware::{Event, Quirk, QuirkSet};

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

/// Lets time pass with a controller that shows signs of life. Returns messages other than echoes.
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
    assert!(bed
        .events
        .iter()
        .any(|event| event.to_string().contains("quirks 51")));

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
    let without = QuirkSet::from_iter([Quirk::BrokenFlowMods]);
    for quirks in [FIRMWARE, Quirks::Without(without)] {
        let mut bed = watched(quirks);
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
        bed.install([FlowMod::add(everything(), 9, output(3))]);
        assert_eq!(bed.frame(1, &udp(306, 0)).len(), 1);
        assert_eq!(bed.events.len(), 2);
    }
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

#[test]
fn q201_frames_count_as_looked_up_without_a_table() {
    let mut bed = watched(FIRMWARE);
    bed.install([FlowMod::add(everything(), 9, output(3))]);
    live(&mut bed, IDLE_S + 10);
    let lookups = |bed: &mut Testbed| number(&statistics(bed, 3, &[])[0][60..68]);
    let before = lookups(&mut bed);
    (0..3).for_each(|_| drop(bed.frame(1, &udp(306, 0))));
    assert_eq!(lookups(&mut bed), before + 3);
    assert_eq!(bed.board.counters().dropped_policy, 3);
}

/// How a test of timeouts ends: ages at which entries went, and what was said of them.
struct Gone {
    age: Duration,
    /// Of `FLOW_REMOVED`.
    reason: u8,
    duration_s: u64,
}

/// Installs an entry with a timeout at a phase of the housekeeping, lets frames use it every `period` until `busy` is over,
/// and tells when it went. On the way no duration in the statistics may exceed the true age.
fn gone(phase: Duration, idle_s: u8, hard_s: u8, period: Duration, busy: Duration) -> Gone {
    let mut bed = watched(SPEC);
    bed.wait(phase);
    let entry = FlowMod {
        flags: 1,
        ..FlowMod::add(everything(), 9, output(3))
    };
    let installed = bed.now;
    bed.exchange(&with_timeouts(&entry, idle_s, hard_s));
    let mut next = installed + period;
    loop {
        let age = bed.now.saturating_since(installed);
        bed.replies.retain(|reply| reply[1] == 11);
        if let Some(notice) = bed.replies.first() {
            return Gone {
                age,
                reason: notice[58],
                duration_s: number(&notice[60..64]),
            };
        }
        assert!(age < Duration::from_millis(30_000), "it never went");
        if bed.now >= next && age < busy {
            // Housekeeping may keep the CPU from it for a while.
            bed.frame(1, &udp(100, 0));
            let held = bed.board.flows().len();
            assert_eq!(held, 1, "a busy entry is gone after {age:?}");
            next += period;
            let mut replies = statistics(&mut bed, 1, &all_flows());
            bed.wait(Duration::from_millis(40));
            replies.append(&mut bed.replies);
            let reply = replies.iter().find(|reply| reply[1] == 17).unwrap();
            let truth = bed.now.saturating_since(installed).as_nanos() / 1_000_000_000;
            assert!(number(&reply[12 + 44..12 + 48]) <= truth);
            bed.exchange(&message(2, &[]));
        }
        bed.wait(Duration::from_millis(5));
    }
}

/// By the specification an entry goes when its timeout is over, never before, and at most a tick after.
#[test]
fn timeouts_of_the_specification_are_never_early() {
    let late = Duration::from_millis(501 + 20);
    for phase in (0..1_503).step_by(83) {
        let phase = Duration::from_millis(phase);
        for (idle_s, hard_s, reason) in [(0, 1, 1), (0, 4, 1), (1, 0, 0), (3, 0, 0)] {
            let timeout = Duration::from_millis(1_000 * u64::from(idle_s + hard_s));
            let gone = gone(
                phase,
                idle_s,
                hard_s,
                Duration::from_millis(400),
                Duration::ZERO,
            );
            assert!(
                gone.age >= timeout && gone.age <= timeout + late,
                "{phase:?}: {:?}",
                gone.age
            );
            assert_eq!(gone.reason, reason);
            assert!(gone.duration_s <= gone.age.as_nanos() / 1_000_000_000);
            assert!(gone.duration_s >= u64::from(idle_s + hard_s));
        }
    }
}

/// Without the flag an entry goes in silence.
#[test]
fn a_timeout_without_the_flag_is_not_told() {
    let mut bed = watched(SPEC);
    bed.exchange(&with_timeouts(
        &FlowMod::add(everything(), 9, output(3)),
        0,
        1,
    ));
    bed.wait(Duration::from_millis(1_600));
    assert!(bed.board.flows().is_empty());
    assert!(!types(&bed.replies).contains(&11));
}

/// An entry that is used every 300 ms outlives its idle timeout of 1 s, however the housekeeping falls.
#[test]
fn a_busy_entry_of_the_specification_stays() {
    let busy = Duration::from_millis(8_000);
    for phase in (0..1_503).step_by(83) {
        let phase = Duration::from_millis(phase);
        let gone = gone(phase, 1, 0, Duration::from_millis(300), busy);
        assert!(
            gone.age >= Duration::from_millis(8_500),
            "{phase:?}: {:?}",
            gone.age
        );
        assert!(gone.age <= busy + Duration::from_millis(1_000 + 501 + 30));
    }
}
