use super::*;

fn port(flow_id: u8) -> PortNumber {
    PortNumber::new(flow_id).expect("a front port")
}

/// A UDP packet whose bytes are all different from zero and from each other's neighbours.
fn packet() -> Vec<u8> {
    let mut frame: Vec<u8> = (1..=60).collect();
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[23] = 17;
    frame
}

fn read(frame: &[u8], in_port: u8) -> Option<FlowKey> {
    FlowKey::read(frame).map(|key| key.with_port(port(in_port)))
}

fn time(busy_ns: u64) -> FrameTime {
    FrameTime {
        work: Duration::from_nanos(100),
        busy: Duration::from_nanos(busy_ns),
    }
}

fn action(entry: usize) -> CachedAction {
    let ports = PortMask::EMPTY.with(port(3));
    let matched = MatchedEntries::NONE.with(entry).expect("one");
    CachedAction::new(HitCounting::Deferred, matched, 1, ports, time(200)).expect("small numbers")
}

fn lookup(cache: &FlowCache, key: &FlowKey) -> Option<CachedAction> {
    cache.lookup(key).map(|(_, action)| *action)
}

#[test]
fn an_entry_fills_a_cache_line() {
    assert_eq!(size_of::<CacheEntry>(), 64);
    assert_eq!(action(1).time(), time(200));
    let long = time(1 << 32);
    assert_eq!(
        CachedAction::new(
            HitCounting::Deferred,
            MatchedEntries::NONE,
            1,
            PortMask::EMPTY,
            long
        ),
        None
    );
}

#[test]
fn every_byte_that_the_lookup_reads_is_in_the_key() {
    let key = read(&packet(), 1);
    let unread = |at: &usize| matches!(at, 16..=19 | 22 | 24 | 25 | 38..);
    for at in 0..60 {
        let mut other = packet();
        other[at] ^= 0x01;
        let same = read(&other, 1) == key;
        assert_eq!(same, unread(&at), "byte {at}");
    }
    assert_ne!(read(&packet(), 2), key);
    let longer = [packet(), vec![0]].concat();
    assert_ne!(read(&longer, 1), key);
}

#[test]
fn only_ipv4_without_tags_and_options_has_a_key() {
    for (at, value) in [(12, 0x81), (13, 0x06), (14, 0x46), (14, 0x44)] {
        let mut frame = packet();
        frame[at] = value;
        assert_eq!(read(&frame, 1), None, "byte {at}: {value:#x}");
    }
    assert_eq!(read(&packet()[..37], 1), None);
}

#[test]
fn an_entry_is_cached_until_the_cache_is_invalidated() {
    let key = read(&packet(), 1).expect("IPv4");
    let mut cache = FlowCache::default();
    assert_eq!(lookup(&cache, &key), None);
    assert!(cache.insert(key, action(7)).is_none());
    assert_eq!(lookup(&cache, &key), Some(action(7)));
    assert!(cache.invalidate().is_empty(), "no hits");
    assert_eq!(lookup(&cache, &key), None);
}

#[test]
fn an_entry_counts_its_hits_until_it_is_invalidated_or_evicted() {
    let key = read(&packet(), 1).expect("IPv4");
    let mut cache = FlowCache::default();
    assert!(cache.insert(key, action(7)).is_none());
    let (index, _) = cache.lookup(&key).expect("just inserted");
    cache.record_hit(index);
    cache.record_hit(index);
    let counts = |deferred: DeferredCounters| {
        (
            deferred.hits.entry,
            deferred.frames(),
            deferred.wire_bytes(),
        )
    };
    let ports = |deferred: DeferredCounters| [deferred.in_port, deferred.out_port];
    assert!(cache.deferred_counters().map(counts).eq([(7, 2, 128)]));
    assert!(cache
        .deferred_counters()
        .map(ports)
        .eq([[port(1), port(3)]]));
    assert_eq!(cache.insert(key, action(8)).map(counts), Some((7, 2, 128)));
    assert_eq!(cache.deferred_counters().count(), 0);
    cache.record_hit(index);
    assert!(cache.invalidate().into_iter().map(counts).eq([(8, 1, 64)]));
    assert_eq!(cache.deferred_counters().count(), 0);
}

/// Looks up a flow ID as a board does. Returns the matched entry, and whether the hint table had it.
fn look_up_by_flow_id(cache: &mut FlowCache, key: &FlowKey, flow_id: u32) -> (usize, bool) {
    let in_port = key.in_port().expect("it has come in");
    let hint = cache.lookup_by_hint(flow_id, in_port);
    let is_hinted = hint.is_some();
    let hint = hint.map(|(index, action)| (index, *action));
    let (index, action) = hint
        .or_else(|| {
            let (index, action) = cache.lookup_and_promote(key, flow_id)?;
            Some((index, *action))
        })
        .expect("a cached action");
    cache.record_hit(index);
    (action.matched.only(), is_hinted)
}

#[test]
fn a_flow_id_finds_the_action_once_its_key_has_been_seen() {
    let first = read(&packet(), 1).expect("IPv4");
    let others = (0..=u8::MAX).filter_map(|flow_id| {
        let mut frame = packet();
        frame[37] = flow_id;
        read(&frame, 1)
    });
    let mut others = others.filter(|key| key.bucket() != first.bucket());
    let second = others.next().expect("there are many buckets");
    let same_slot =
        (6..100).find(|other| FlowCache::hint_index(*other) == FlowCache::hint_index(5));
    let same_slot = same_slot.expect("there are few slots");
    let mut cache = FlowCache::default();
    for (key, entry) in [(first, 7), (second, 9)] {
        assert!(cache.insert(key, action(entry)).is_none());
    }
    assert_eq!(look_up_by_flow_id(&mut cache, &first, 5), (7, false));
    assert_eq!(look_up_by_flow_id(&mut cache, &first, 5), (7, true));
    assert!(cache.lookup_by_hint(5, port(2)).is_none());
    assert_eq!(
        look_up_by_flow_id(&mut cache, &second, same_slot),
        (9, false)
    );
    assert_eq!(
        look_up_by_flow_id(&mut cache, &second, same_slot),
        (9, true)
    );
    assert_eq!(look_up_by_flow_id(&mut cache, &first, 5), (7, false));
    let frames_of = |entry| {
        let of_entry = cache
            .deferred_counters()
            .filter(|deferred| deferred.hits.entry == entry);
        of_entry.map(|deferred| deferred.frames()).sum::<u64>()
    };
    assert_eq!([7, 9].map(frames_of), [3, 2]);
    let all: u64 = cache
        .invalidate()
        .iter()
        .map(DeferredCounters::frames)
        .sum();
    assert_eq!(all, 5);
    assert!(cache.lookup_by_hint(5, port(1)).is_none());
}

#[test]
fn a_hint_does_not_outlive_its_entry() {
    let key = read(&packet(), 1).expect("IPv4");
    let mut cache = FlowCache::default();
    assert!(cache.insert(key, action(7)).is_none());
    look_up_by_flow_id(&mut cache, &key, 5);
    look_up_by_flow_id(&mut cache, &key, 5);
    let left = cache.insert(key, action(8)).expect("two frames");
    assert_eq!((left.hits.entry, left.frames()), (7, 2));
    assert_eq!(look_up_by_flow_id(&mut cache, &key, 5), (8, false));
    assert_eq!(look_up_by_flow_id(&mut cache, &key, 5), (8, true));
}

#[test]
fn keys_that_share_a_bucket_are_not_mixed_up() {
    let keys = (0..=u8::MAX).map(|flow_id| {
        let mut frame = packet();
        frame[37] = flow_id;
        read(&frame, 1).expect("IPv4")
    });
    let mut cache = FlowCache::default();
    for (entry, key) in (0..).zip(keys.clone()) {
        let _ = cache.insert(key, action(entry));
        assert_eq!(lookup(&cache, &key), Some(action(entry)));
    }
    let all_found = (0..)
        .zip(keys)
        .filter_map(|(entry, key)| Some((entry, lookup(&cache, &key)?)));
    let mut count = 0;
    for (entry, slot) in all_found {
        assert_eq!(slot, action(entry));
        count += 1;
    }
    assert!((1..=BUCKETS).contains(&count), "{count}");
}
