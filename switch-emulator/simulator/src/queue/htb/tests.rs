use super::super::config::{ClassConfig, DropsConfig};
use super::*;

const FRAME: u64 = 1_000;
const MBPS: u64 = 1_000_000;

fn class(name: &str, parent: Option<&str>, queue: u32, rate_mbps: u64) -> ClassConfig {
    ClassConfig {
        name: name.into(),
        parent: parent.map(Into::into),
        queue,
        rate_bps: rate_mbps * MBPS,
        ceil_bps: rate_mbps * MBPS,
        burst_bytes: FRAME,
        cburst_bytes: FRAME,
        quantum_bytes: FRAME,
        priority: 0,
        limit_frames: 1_000,
        drops: None,
    }
}

fn htb(classes: Vec<ClassConfig>, group_frames: u64, timer_ns: u64) -> Htb {
    Htb::new(&HtbConfig {
        classes,
        group_frames,
        timer_ns,
    })
    .unwrap()
}

fn fill(htb: &mut Htb, queue: u32, frames: u64) {
    for _ in 0..frames {
        let mut data = vec![0; FRAME as usize];
        data[0] = queue as u8;
        htb.enqueue(0, queue, QueuedFrame { data });
    }
}

/// Instants and queues of what leaves until `end_ns` over a wire on which a frame takes `slot_ns`.
fn departures(htb: &mut Htb, slot_ns: u64, end_ns: u64) -> Vec<(u64, u8)> {
    let (mut now_ns, mut found) = (0, Vec::new());
    while now_ns <= end_ns {
        if let Some(frame) = htb.dequeue(now_ns) {
            found.push((now_ns, frame.data[0]));
            now_ns += slot_ns;
        } else if let Some(wake_ns) = htb.wake_ns() {
            assert!(
                wake_ns > now_ns || htb.timer_ns == 0,
                "it asks again for nothing"
            );
            now_ns = wake_ns;
        } else {
            break;
        }
    }
    found
}

fn instants(departures: &[(u64, u8)]) -> Vec<u64> {
    departures.iter().map(|(at_ns, _)| *at_ns).collect()
}

fn count(departures: &[(u64, u8)], queue: u8) -> usize {
    departures.iter().filter(|(_, its)| *its == queue).count()
}

#[test]
fn a_full_bucket_lets_one_frame_more_pass_than_it_holds_then_comes_one_at_a_time() {
    let mut limited = class("a", None, 0, 8);
    (limited.burst_bytes, limited.cburst_bytes) = (3 * FRAME, 3 * FRAME);
    let mut htb = htb(vec![limited], 1, 0);
    fill(&mut htb, 0, 7);
    // 8 Mbit/s are a frame a millisecond. The level is at least 0 before the fourth frame: it goes too.
    assert_eq!(
        instants(&departures(&mut htb, 0, 10_000_000)),
        [0, 0, 0, 0, 1_000_000, 2_000_000, 3_000_000]
    );
}

#[test]
fn who_sleeps_wakes_when_it_can_pay_for_a_whole_group() {
    let mut grouped = class("a", None, 0, 8);
    (grouped.burst_bytes, grouped.cburst_bytes) = (3 * FRAME, 3 * FRAME);
    let mut htb = htb(vec![grouped], 4, 0);
    fill(&mut htb, 0, 12);
    let mut expected = vec![0; 4];
    expected.extend([4_000_000; 4]);
    expected.extend([8_000_000; 4]);
    assert_eq!(instants(&departures(&mut htb, 0, 20_000_000)), expected);
}

#[test]
fn a_group_is_no_longer_on_a_slow_wire_and_costs_no_rate() {
    let mut grouped = class("a", None, 0, 8);
    (grouped.burst_bytes, grouped.cburst_bytes) = (4 * FRAME, 4 * FRAME);
    let mut htb = htb(vec![grouped], 4, 0);
    fill(&mut htb, 0, 400);
    // A frame takes half as long on the wire as its tokens.
    let found = instants(&departures(&mut htb, 500_000, 100_000_000));
    let begins: Vec<u64> = found
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > 500_000)
        .map(|pair| pair[1])
        .collect();
    assert!(begins.len() > 20);
    assert!(begins.windows(2).all(|pair| pair[1] - pair[0] == 4_000_000));
}

#[test]
fn a_timer_that_comes_late_makes_groups_and_a_small_bucket_loses_rate_by_it() {
    let late = |burst_bytes| {
        let mut one = class("a", None, 0, 8);
        (one.burst_bytes, one.cburst_bytes) = (burst_bytes, burst_bytes);
        let mut htb = htb(vec![one], 1, 2_000_000);
        fill(&mut htb, 0, 1_000);
        count(&departures(&mut htb, 0, 300_000_000), 0)
    };
    // Two milliseconds late with a bucket of two frames: three frames every three milliseconds.
    assert!(
        (300..=304).contains(&late(2 * FRAME)),
        "{}",
        late(2 * FRAME)
    );
    // A bucket of one frame: two of them every three or four.
    assert!((150..=202).contains(&late(FRAME)), "{}", late(FRAME));
}

#[test]
fn leaves_share_what_their_parent_has_beyond_their_rates_by_quantum() {
    let mut classes = vec![class("root", None, 0, 80)];
    for (queue, rate_mbps, quantum) in [(0, 8, FRAME), (1, 16, 2 * FRAME)] {
        let mut leaf = class(&format!("leaf{queue}"), Some("root"), queue, rate_mbps);
        leaf.ceil_bps = 80 * MBPS;
        leaf.quantum_bytes = quantum;
        classes.push(leaf);
    }
    let mut htb = htb(classes, 1, 0);
    fill(&mut htb, 0, 1_000);
    fill(&mut htb, 1, 1_000);
    // 10 frames a millisecond: 1 and 2 of them assured, the other 7 by quanta as 1 to 2.
    let found = departures(&mut htb, 1_000, 60_000_000);
    let (first, second) = (count(&found, 0), count(&found, 1));
    assert!((first + second).abs_diff(600) < 5, "{first} + {second}");
    assert!(first.abs_diff(60 + 7 * 60 / 3) < 18, "{first}");
}

#[test]
fn what_one_leaf_leaves_the_other_borrows_and_gives_back() {
    let mut classes = vec![class("root", None, 0, 80)];
    for queue in [0, 1] {
        let mut leaf = class(&format!("leaf{queue}"), Some("root"), queue, 40);
        leaf.ceil_bps = 80 * MBPS;
        classes.push(leaf);
    }
    let mut alone = htb(classes.clone(), 1, 0);
    fill(&mut alone, 0, 1_000);
    assert!(count(&departures(&mut alone, 1_000, 50_000_000), 0) >= 500);
    let mut both = htb(classes, 1, 0);
    fill(&mut both, 0, 1_000);
    fill(&mut both, 1, 1_000);
    let found = departures(&mut both, 1_000, 50_000_000);
    assert!(count(&found, 0).abs_diff(count(&found, 1)) <= 2);
}

#[test]
fn a_ceiling_holds_however_much_the_parent_has() {
    let mut classes = vec![class("root", None, 0, 800)];
    let mut leaf = class("leaf", Some("root"), 0, 8);
    leaf.ceil_bps = 40 * MBPS;
    classes.push(leaf);
    let mut htb = htb(classes, 1, 0);
    fill(&mut htb, 0, 1_000);
    let sent = count(&departures(&mut htb, 0, 100_000_000), 0);
    assert!((500..=503).contains(&sent), "{sent}");
}

#[test]
fn two_levels_up_is_borrowed_only_where_the_class_between_may() {
    let mut classes = vec![class("root", None, 0, 800)];
    let mut between = class("between", Some("root"), 0, 8);
    between.ceil_bps = 16 * MBPS;
    classes.push(between);
    let mut leaf = class("leaf", Some("between"), 0, 8);
    leaf.ceil_bps = 800 * MBPS;
    classes.push(leaf);
    let mut htb = htb(classes, 1, 0);
    fill(&mut htb, 0, 1_000);
    let sent = count(&departures(&mut htb, 1_000, 100_000_000), 0);
    assert!((200..=204).contains(&sent), "{sent}");
}

#[test]
fn the_lower_priority_goes_first_and_an_assured_class_before_a_borrowing_one() {
    let mut classes = vec![class("root", None, 0, 80)];
    for (queue, priority) in [(0, 1), (1, 0)] {
        let mut leaf = class(&format!("leaf{queue}"), Some("root"), queue, 8);
        leaf.ceil_bps = 80 * MBPS;
        leaf.priority = priority;
        classes.push(leaf);
    }
    let mut htb = htb(classes, 1, 0);
    fill(&mut htb, 0, 1_000);
    fill(&mut htb, 1, 1_000);
    // The excess goes to priority 0 alone; the other keeps its assured frame a millisecond.
    let found = departures(&mut htb, 100_000, 100_000_000);
    assert!(count(&found, 0).abs_diff(100) <= 3, "{}", count(&found, 0));
    assert!(count(&found, 1) > 850, "{}", count(&found, 1));
}

#[test]
fn a_full_queue_loses_what_comes_and_an_unknown_queue_is_the_first() {
    let mut small = class("a", None, 5, 8);
    small.limit_frames = 2;
    let mut htb = htb(vec![small], 1, 0);
    fill(&mut htb, 9, 3);
    assert_eq!(
        htb.dropped(),
        DropCounters {
            full: 1,
            policed: 0
        }
    );
    assert_eq!(htb.dequeue(0).map(|frame| frame.data[0]), Some(9));
}

const MS: u64 = 1_000_000;

/// Returns when each frame of a queue that another frame comes to every `every_ns` came and left; the sender never
/// stops.
fn came_and_left(class: ClassConfig, group_frames: u64, every_ns: u64) -> Vec<(u64, u64)> {
    let mut htb = htb(vec![class], group_frames, 60_000);
    let (mut found, mut next_ns) = (Vec::new(), 0);
    for now_ns in (0..200 * MS).step_by(10_000) {
        while next_ns <= now_ns {
            let mut data = vec![0; FRAME as usize];
            data[..8].copy_from_slice(&now_ns.to_be_bytes());
            htb.enqueue(now_ns, 0, QueuedFrame { data });
            next_ns += every_ns;
        }
        while let Some(frame) = htb.dequeue(now_ns) {
            let came = frame.data[..8].try_into().unwrap();
            found.push((u64::from_be_bytes(came), now_ns));
        }
    }
    found
}

#[test]
fn what_comes_late_is_dropped_and_costs_no_rate() {
    for group_frames in [1, 4] {
        for after_ms in [4, 10] {
            let mut plain = class("a", None, 0, 8);
            (plain.burst_bytes, plain.cburst_bytes) = (5 * FRAME, 5 * FRAME);
            let bounded = ClassConfig {
                drops: Some(DropsConfig::Late {
                    after_ns: after_ms * MS,
                }),
                ..plain.clone()
            };
            // Twice as many as the rate of one a millisecond.
            let without = came_and_left(plain, group_frames, MS / 2);
            let with = came_and_left(bounded, group_frames, MS / 2);
            assert!(without.iter().any(|(came, left)| left - came > 50 * MS));
            assert!(with.iter().all(|(came, left)| left - came <= after_ms * MS));
            assert!(
                with.len() + 4 >= without.len(),
                "{} of {}",
                with.len(),
                without.len()
            );
        }
    }
}

#[test]
fn a_frame_is_refused_at_once_if_those_before_it_take_too_long() {
    let mut bounded = class("a", None, 0, 8);
    bounded.drops = Some(DropsConfig::Late { after_ns: 3 * MS });
    let mut htb = htb(vec![bounded], 1, 0);
    // The bucket pays for one at once, a level of zero for another, then comes one a millisecond: the last at 3 ms.
    fill(&mut htb, 0, 9);
    assert_eq!(htb.dropped().policed, 4);
    assert_eq!(
        instants(&departures(&mut htb, 0, 20 * MS)),
        [0, 0, MS, 2 * MS, 3 * MS]
    );
}

#[test]
fn a_class_that_others_keep_waiting_drops_at_the_head() {
    let mut classes = vec![class("root", None, 0, 8)];
    for (queue, priority) in [(0, 1), (1, 0)] {
        let mut leaf = class(&format!("leaf{queue}"), Some("root"), queue, 1);
        leaf.ceil_bps = 8 * MBPS;
        leaf.priority = priority;
        classes.push(leaf);
    }
    classes[1].drops = Some(DropsConfig::Late { after_ns: 12 * MS });
    let mut htb = htb(classes, 1, 0);
    fill(&mut htb, 0, 4);
    fill(&mut htb, 1, 1_000);
    assert_eq!(htb.dropped().policed, 0);
    // Its ceiling would do, but all that it may borrow goes to the other: it has one every eight milliseconds.
    let found = departures(&mut htb, 1_000, 100 * MS);
    assert!(found
        .iter()
        .all(|(at_ns, queue)| *queue == 1 || *at_ns <= 12 * MS));
    assert_eq!(count(&found, 0) as u64 + htb.dropped().policed, 4);
    assert!(htb.dropped().policed > 0);
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let refused = |classes| {
        let config = HtbConfig {
            classes,
            group_frames: 1,
            timer_ns: 0,
        };
        Htb::new(&config).unwrap_err()
    };
    assert_eq!(refused(vec![]), "classes: there is none: add one");
    let mut above = class("a", None, 0, 8);
    above.ceil_bps = 1;
    assert_eq!(
        refused(vec![above]),
        "class \"a\": ceil_bps is 1: give a number in 8000000 .. 1000000000000"
    );
    let mut never = class("a", None, 0, 8);
    never.drops = Some(DropsConfig::Late { after_ns: 0 });
    assert_eq!(
        refused(vec![never]),
        "class \"a\": drops: after_ns is 0: give a number in 1 .. 1000000000"
    );
    let orphan = class("a", Some("b"), 0, 8);
    assert_eq!(
        refused(vec![orphan]),
        "class \"a\": no class \"b\" comes before it: put its parent first"
    );
    let twice = class("a", None, 0, 8);
    assert!(refused(vec![twice.clone(), twice.clone()]).contains("is there twice"));
    let mut other = twice.clone();
    other.name = "b".into();
    assert!(refused(vec![twice, other]).contains("queue 0 belongs to two classes"));
}
