use super::*;

const FRAME: usize = 1_000;
const MS: u64 = 1_000_000;

fn frame(mark: u8) -> QueuedFrame {
    QueuedFrame {
        data: vec![mark; FRAME],
    }
}

fn source_traits(queue: &mut LeafQueue, now_ns: u64) -> Vec<u8> {
    std::iter::from_fn(|| queue.pop(now_ns).map(|frame| frame.data[0])).collect()
}

#[test]
fn a_frame_leaves_in_time_or_never() {
    let mut queue = LeafQueue::new(10, Some(DropsConfig::Late { after_ns: 5 * MS }));
    queue.push(0, frame(1), Some(0));
    queue.push(MS, frame(2), Some(MS));
    // The very last instant still counts.
    assert_eq!(queue.pop(5 * MS).map(|frame| frame.data[0]), Some(1));
    assert_eq!(queue.pop(6 * MS + 1), None);
    assert_eq!((queue.dropped().full, queue.dropped().policed), (0, 1));
    assert_eq!(queue.bytes(), 0);
}

#[test]
fn what_is_known_to_be_late_is_dropped_as_it_comes() {
    let mut queue = LeafQueue::new(10, Some(DropsConfig::Late { after_ns: 5 * MS }));
    queue.push(MS, frame(1), Some(6 * MS));
    queue.push(MS, frame(2), Some(6 * MS + 1));
    queue.push(MS, frame(3), None);
    assert_eq!(queue.dropped().policed, 2);
    assert_eq!(source_traits(&mut queue, MS), [1]);
}

#[test]
fn late_frames_make_room() {
    let mut queue = LeafQueue::new(1, Some(DropsConfig::Late { after_ns: MS }));
    queue.push(0, frame(1), Some(0));
    queue.push(0, frame(2), Some(0));
    queue.expire(3 * MS);
    queue.push(3 * MS, frame(3), Some(3 * MS));
    assert_eq!((queue.dropped().full, queue.dropped().policed), (1, 1));
    assert_eq!(source_traits(&mut queue, 3 * MS), [3]);
}

#[test]
fn without_a_choice_nothing_but_a_full_queue_drops() {
    let mut queue = LeafQueue::new(2, None);
    for mark in 1..=3 {
        queue.push(0, frame(mark), None);
    }
    assert_eq!((queue.dropped().full, queue.dropped().policed), (1, 0));
    assert_eq!(source_traits(&mut queue, 1_000_000 * MS), [1, 2]);
}

const CODEL: DropsConfig = DropsConfig::Codel {
    target_ns: 5 * MS,
    interval_ns: 100 * MS,
};

/// Drops until `end_ms` of a queue that is served a frame a millisecond and in which each has waited so long.
fn codel_drops(waited_ms: u64, end_ms: u64) -> Vec<u64> {
    let mut codel = Codel::new(5 * MS, 100 * MS);
    (0..end_ms)
        .filter(|at_ms| codel.drops(at_ms * MS, waited_ms * MS, 10_000))
        .collect()
}

#[test]
fn codel_waits_an_interval_and_then_drops_faster_and_faster() {
    assert!(codel_drops(4, 1_000).is_empty());
    // The next one comes 100 ms / sqrt(n) after the n-th.
    let drops = codel_drops(6, 600);
    assert_eq!(drops[..5], [100, 200, 271, 329, 379]);
}

#[test]
fn codel_leaves_the_last_frame_alone() {
    let mut codel = Codel::new(5 * MS, 100 * MS);
    let drops = (0..1_000).filter(|at_ms| codel.drops(at_ms * MS, 50 * MS, FULL_FRAME_BYTES));
    assert_eq!(drops.count(), 0);
}

#[test]
fn codel_goes_on_about_as_fast_if_it_dropped_a_short_time_ago() {
    let mut codel = Codel::new(5 * MS, 100 * MS);
    let mut drops_between = |from_ms: u64, to_ms: u64, waited_ms: u64| {
        let dropped = |at_ms: &u64| codel.drops(at_ms * MS, waited_ms * MS, 10_000);
        (from_ms..to_ms).filter(dropped).count()
    };
    let first = drops_between(0, 600, 6);
    assert_eq!(drops_between(600, 650, 1), 0);
    assert!(drops_between(650, 1_250, 6) > first + 5);
}

#[test]
fn codel_takes_what_it_drops_from_the_head() {
    let mut queue = LeafQueue::new(1_000, Some(CODEL));
    for mark in 0..200 {
        queue.push(0, frame(mark), None);
    }
    let sent: Vec<u8> = (0..150)
        .filter_map(|at_ms| queue.pop((10 + at_ms) * MS))
        .map(|frame| frame.data[0])
        .collect();
    assert_eq!(sent[99..102], [99, 101, 102]);
    assert!(sent.is_sorted());
    assert_eq!(queue.dropped().policed, 1);
}
