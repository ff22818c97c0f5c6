use super::*;

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).expect("a front port")
}

/// A UDP packet whose bytes are all different from zero and from each other's neighbours.
fn packet() -> Vec<u8> {
    let mut frame: Vec<u8> = (1..=60).collect();
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[23] = 17;
    frame
}

fn read(frame: &[u8], in_port: u8) -> Option<Head> {
    Head::read(frame).map(|head| head.by(port(in_port)))
}

fn time(busy_ns: u64) -> FrameTime {
    FrameTime {
        work: Duration::from_nanos(100),
        busy: Duration::from_nanos(busy_ns),
    }
}

fn way(entry: usize) -> Way {
    let ports = PortMask::EMPTY.with(port(3));
    let hits = Hits::NONE.with(entry).expect("one");
    Way::new(Searched::Table, hits, 1, ports, time(200)).expect("small numbers")
}

fn found(ways: &Ways, head: &Head) -> Option<Way> {
    ways.find(head).map(|(_, way)| *way)
}

#[test]
fn a_way_with_its_head_fills_a_line_of_the_cache() {
    assert_eq!(size_of::<Known>(), 64);
    assert_eq!(way(1).time(), time(200));
    let long = time(1 << 32);
    assert_eq!(
        Way::new(Searched::Table, Hits::NONE, 1, PortMask::EMPTY, long),
        None
    );
}

#[test]
fn every_byte_that_the_search_reads_tells_heads_apart() {
    let head = read(&packet(), 1);
    let unread = |at: &usize| matches!(at, 16..=19 | 22 | 24 | 25 | 38..);
    for at in 0..60 {
        let mut other = packet();
        other[at] ^= 0x01;
        let same = read(&other, 1) == head;
        assert_eq!(same, unread(&at), "byte {at}");
    }
    assert_ne!(read(&packet(), 2), head);
    let longer = [packet(), vec![0]].concat();
    assert_ne!(read(&longer, 1), head);
}

#[test]
fn only_ipv4_without_tags_and_options_has_a_head() {
    for (at, value) in [(12, 0x81), (13, 0x06), (14, 0x46), (14, 0x44)] {
        let mut frame = packet();
        frame[at] = value;
        assert_eq!(read(&frame, 1), None, "byte {at}: {value:#x}");
    }
    assert_eq!(read(&packet()[..37], 1), None);
}

#[test]
fn a_way_is_known_until_it_is_forgotten() {
    let head = read(&packet(), 1).expect("IPv4");
    let mut ways = Ways::default();
    assert_eq!(found(&ways, &head), None);
    assert!(ways.learn(head, way(7)).is_none());
    assert_eq!(found(&ways, &head), Some(way(7)));
    assert!(ways.forget().is_empty(), "none of its frames passed");
    assert_eq!(found(&ways, &head), None);
}

#[test]
fn a_way_counts_its_frames_until_it_is_forgotten_or_another_takes_its_place() {
    let head = read(&packet(), 1).expect("IPv4");
    let mut ways = Ways::default();
    assert!(ways.learn(head, way(7)).is_none());
    let (place, _) = ways.find(&head).expect("just learnt");
    ways.take(place);
    ways.take(place);
    let counts = |passed: Passed| (passed.uses.entry, passed.frames(), passed.wire_bytes());
    let ports = |passed: Passed| [passed.in_port, passed.out_port];
    assert!(ways.passed().map(counts).eq([(7, 2, 128)]));
    assert!(ways.passed().map(ports).eq([[port(1), port(3)]]));
    assert_eq!(ways.learn(head, way(8)).map(counts), Some((7, 2, 128)));
    assert_eq!(ways.passed().count(), 0);
    ways.take(place);
    assert!(ways.forget().into_iter().map(counts).eq([(8, 1, 64)]));
    assert_eq!(ways.passed().count(), 0);
}

/// Takes the way of frames of this likeness once, as a board does. Gives its entry, and whether the likeness told it.
fn taken_by_likeness(ways: &mut Ways, head: &Head, likeness: u32) -> (usize, bool) {
    let in_port = head.in_port().expect("it has come in");
    let like = ways.find_like(likeness, in_port);
    let is_told = like.is_some();
    let like = like.map(|(place, way)| (place, *way));
    let (place, way) = like
        .or_else(|| {
            let (place, way) = ways.find_also_like(head, likeness)?;
            Some((place, *way))
        })
        .expect("a known way");
    ways.take(place);
    (way.hits.only(), is_told)
}

#[test]
fn a_likeness_tells_the_way_once_its_head_has_been_seen() {
    let first = read(&packet(), 1).expect("IPv4");
    let others = (0..=u8::MAX).filter_map(|number| {
        let mut frame = packet();
        frame[37] = number;
        read(&frame, 1)
    });
    let mut others = others.filter(|head| head.place() != first.place());
    let second = others.next().expect("there are many places");
    let same_place = (6..100).find(|other| Ways::like(*other) == Ways::like(5));
    let same_place = same_place.expect("there are few places");
    let mut ways = Ways::default();
    for (head, entry) in [(first, 7), (second, 9)] {
        assert!(ways.learn(head, way(entry)).is_none());
    }
    assert_eq!(taken_by_likeness(&mut ways, &first, 5), (7, false));
    assert_eq!(taken_by_likeness(&mut ways, &first, 5), (7, true));
    assert!(ways.find_like(5, port(2)).is_none());
    assert_eq!(
        taken_by_likeness(&mut ways, &second, same_place),
        (9, false)
    );
    assert_eq!(taken_by_likeness(&mut ways, &second, same_place), (9, true));
    assert_eq!(taken_by_likeness(&mut ways, &first, 5), (7, false));
    let frames_of = |entry| {
        let of_entry = ways.passed().filter(|passed| passed.uses.entry == entry);
        of_entry.map(|passed| passed.frames()).sum::<u64>()
    };
    assert_eq!([7, 9].map(frames_of), [3, 2]);
    let all: u64 = ways.forget().iter().map(Passed::frames).sum();
    assert_eq!(all, 5);
    assert!(ways.find_like(5, port(1)).is_none());
}

#[test]
fn a_likeness_does_not_outlive_its_way() {
    let head = read(&packet(), 1).expect("IPv4");
    let mut ways = Ways::default();
    assert!(ways.learn(head, way(7)).is_none());
    taken_by_likeness(&mut ways, &head, 5);
    taken_by_likeness(&mut ways, &head, 5);
    let left = ways.learn(head, way(8)).expect("two frames");
    assert_eq!((left.uses.entry, left.frames()), (7, 2));
    assert_eq!(taken_by_likeness(&mut ways, &head, 5), (8, false));
    assert_eq!(taken_by_likeness(&mut ways, &head, 5), (8, true));
}

#[test]
fn ways_that_share_a_place_are_not_mixed_up() {
    let heads = (0..=u8::MAX).map(|number| {
        let mut frame = packet();
        frame[37] = number;
        read(&frame, 1).expect("IPv4")
    });
    let mut ways = Ways::default();
    for (entry, head) in (0..).zip(heads.clone()) {
        let _ = ways.learn(head, way(entry));
        assert_eq!(found(&ways, &head), Some(way(entry)));
    }
    let all_found = (0..)
        .zip(heads)
        .filter_map(|(entry, head)| Some((entry, found(&ways, &head)?)));
    let mut known = 0;
    for (entry, found) in all_found {
        assert_eq!(found, way(entry));
        known += 1;
    }
    assert!((1..=PLACES).contains(&known), "{known}");
}
