use proptest::prelude::*;

use super::*;
use crate::link::Timing;

fn link() -> Link {
    let timing = Timing::new(1e8, 500).expect("in range");
    Link::new(timing, End::Board(0, 1), None)
}

fn frame(arrival_ns: u64, link: u32, number: u32) -> InFlightFrame {
    let payload = Payload::SourceFrame {
        source: link,
        sequence: number,
    };
    InFlightFrame::new(payload, 60, false).on_link(arrival_ns, link as usize, End::Board(0, 1))
}

fn links_in_order(inbox: &mut Inbox) -> Vec<u32> {
    std::iter::from_fn(|| inbox.pop_arrived(u64::MAX))
        .map(|frame| frame.link)
        .collect()
}

#[test]
fn whatever_arrives_first_comes_first() {
    let (mut inbox, mut links) = (Inbox::default(), [link(), link()]);
    assert!(inbox.push(frame(900, 0, 0), &mut links[0], 100));
    assert!(inbox.push(frame(800, 1, 0), &mut links[1], 200));
    assert!(!inbox.push(frame(950, 1, 1), &mut links[1], 300));
    assert_eq!(inbox.first().map(|frame| frame.arrival_ns), Some(800));
    assert!(inbox.pop_arrived(799).is_none());
    assert_eq!(links_in_order(&mut inbox), [1, 0, 1]);
}

#[test]
fn what_waits_is_behind_the_one_that_was_taken_and_before_those_to_come() {
    let (mut inbox, mut links) = (Inbox::default(), [link(), link()]);
    inbox.push(frame(500, 0, 0), &mut links[0], 100);
    inbox.push(frame(600, 1, 0), &mut links[1], 100);
    assert!(inbox.first_pending().is_none());
    assert_eq!(inbox.pop_first(1).map(|frame| frame.link), Some(0));
    assert!(
        inbox.push(frame(900, 0, 1), &mut links[0], 600),
        "the first to arrive"
    );
    assert!(!inbox.push(frame(950, 1, 1), &mut links[1], 600));
    assert_eq!(
        inbox.first_pending().map(|frame| frame.arrival_ns),
        Some(900)
    );
    assert!(
        inbox.pop_arrived(599).is_some(),
        "it waits, whatever the time"
    );
    assert!(inbox.pop_arrived(599).is_none());
    assert!(inbox.first_pending().is_none());
}

#[test]
fn at_one_instant_whoever_has_been_first_on_its_link_for_longest_comes_first() {
    let (mut inbox, mut links) = (Inbox::default(), [link(), link()]);
    inbox.push(frame(500, 0, 0), &mut links[0], 100);
    inbox.push(frame(900, 0, 1), &mut links[0], 150); // the first from 500 on
    inbox.push(frame(900, 1, 0), &mut links[1], 200);
    assert_eq!(links_in_order(&mut inbox), [0, 1, 0]);
}

#[test]
fn a_cable_that_is_pulled_out_takes_its_own_frames_only() {
    let (mut inbox, mut links) = (Inbox::default(), [link(), link()]);
    for number in 0..3 {
        inbox.push(
            frame(500 + u64::from(number), 0, number),
            &mut links[0],
            100,
        );
    }
    inbox.push(frame(501, 1, 0), &mut links[1], 100);
    assert_eq!(inbox.drop_from_link(0, &mut FrameArena::default()), 3);
    assert_eq!(inbox.len(), 1);
    assert_eq!(links_in_order(&mut inbox), [1]);
}

proptest! {
    /// In order of time, and those of a link in the order in which they set out, however cables and frames mix.
    #[test]
    fn frames_come_in_order(offers in prop::collection::vec((0usize..3, 0u64..3_000, 64u64..1519), 1..100)) {
        let (mut inbox, mut links) = (Inbox::default(), [link(), link(), link()]);
        let (mut now_ns, mut numbers) = (0, [0; 3]);
        for &(index, after_ns, bytes) in &offers {
            now_ns += after_ns;
            let link = &mut links[index];
            let begin_ns = link.busy_until_ns().max(now_ns);
            link.occupy(begin_ns, bytes);
            let arrival_ns = link.arrival_ns(begin_ns, bytes);
            inbox.push(frame(arrival_ns, index as u32, numbers[index]), link, now_ns);
            numbers[index] += 1;
        }
        prop_assert_eq!(inbox.len(), offers.len());
        let (mut previous_ns, mut expected) = (0, [0; 3]);
        while let Some(frame) = inbox.pop_arrived(u64::MAX) {
            prop_assert!(frame.arrival_ns >= previous_ns);
            previous_ns = frame.arrival_ns;
            let next = &mut expected[frame.link as usize];
            let in_order = matches!(frame.payload(), Payload::SourceFrame { sequence, .. } if sequence == *next);
            prop_assert!(in_order, "link {}", frame.link);
            *next += 1;
        }
        prop_assert_eq!(expected, numbers);
    }
}
