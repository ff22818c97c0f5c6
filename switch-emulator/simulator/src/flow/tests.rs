use super::*;

fn flows() -> (Vec<TrafficFlow>, Identities) {
    let flow = |id, length, from, to| {
        TrafficFlow::new(
            id,
            vec![0xee; length],
            50,
            true,
            (from, to),
            ConformanceChecker::new(1e9, 1e6),
        )
    };
    let flows = vec![
        flow(7, 302, 0, Some(2)),
        flow(1, 302, 1, None),
        flow(1000, 100, 1, Some(0)),
    ];
    let identities = Identities::new(&flows);
    (flows, identities)
}

fn received_ns(flow: &TrafficFlow) -> Vec<i64> {
    flow.records.clone().take(flow.recorded()).1
}

#[test]
fn a_frame_is_known_by_its_bytes() {
    let (mut flows, identities) = flows();
    for index in 0..3 {
        assert_eq!(flows[index].send(10), 0);
        assert_eq!(flows[index].send(20), 1);
        let to = [2, 3, 0][index];
        let data = flows[index].frame(1).to_vec();
        assert_eq!(
            data[46..54],
            [flows[index].id.to_be_bytes(), 1u32.to_be_bytes()].concat()
        );
        assert!(identities.receive(&mut flows, to, 99, &data));
        assert_eq!(received_ns(&flows[index]), [LOST, 99]);
    }
}

#[test]
fn frames_are_certain_unless_they_may_have_anothers_identifier() {
    let (flows, identities) = flows();
    assert!((0..3).all(|index| identities.are_identifiable(&flows, index)));
    let flow = |id, frame, offset| {
        let conformance = ConformanceChecker::new(1e9, 1e6);
        TrafficFlow::new(id, frame, offset, true, (0, None), conformance)
    };
    // Flow 2 is looked for at byte 20 first, where some frames of flow 1 have the same bytes.
    for (at_byte_20, is_identifiable) in [([0, 0, 0, 2], false), ([0, 0, 0, 3], true)] {
        let mut frame = vec![0; 302];
        frame[20..24].copy_from_slice(&at_byte_20);
        let flows = [flow(1, frame, 50), flow(2, vec![0; 302], 24)];
        let identities = Identities::new(&flows);
        assert_eq!(identities.are_identifiable(&flows, 0), is_identifiable);
        assert!(identities.are_identifiable(&flows, 1));
    }
}

#[test]
fn the_first_copy_counts() {
    let (mut flows, identities) = flows();
    flows[0].send(10);
    let data = flows[0].frame(0).to_vec();
    assert!(identities.receive(&mut flows, 2, 50, &data));
    assert!(identities.receive(&mut flows, 2, 60, &data));
    assert_eq!(received_ns(&flows[0]), [50]);
    assert_eq!(
        (flows[0].counters.received, flows[0].counters.duplicates),
        (1, 1)
    );
}

#[test]
fn a_wrong_host_does_not_receive() {
    let (mut flows, identities) = flows();
    flows[0].send(10);
    flows[1].send(10);
    let (data, other) = (flows[0].frame(0).to_vec(), flows[1].frame(0).to_vec());
    assert!(identities.receive(&mut flows, 3, 50, &data));
    assert!(
        identities.receive(&mut flows, 1, 50, &other),
        "back at its sender"
    );
    for flow in &flows[..2] {
        assert_eq!(
            (received_ns(flow), flow.counters.misdelivered),
            (vec![LOST], 1)
        );
    }
}

#[test]
fn damage_is_noticed() {
    let (mut flows, identities) = flows();
    flows[0].send(10);
    let sent = flows[0].frame(0).to_vec();
    let mut payload = sent.clone();
    payload[301] ^= 1;
    let mut sequence = sent.clone();
    sequence[53] = 1;
    for data in [&payload, &sequence] {
        assert!(identities.receive(&mut flows, 2, 50, data));
    }
    assert_eq!(flows[0].counters.corrupted, 2);
    let mut flow = sent.clone();
    flow[46] = 0xff;
    assert!(!identities.receive(&mut flows, 2, 50, &flow));
    assert!(!identities.receive(&mut flows, 2, 50, &sent[..300]));
    assert!(!identities.receive(&mut flows, 2, 50, &[]));
    assert_eq!(received_ns(&flows[0]), [LOST]);
}

#[test]
fn a_flow_that_is_not_observed_counts_the_same_and_keeps_nothing() {
    let (mut flows, identities) = flows();
    flows[0].observed = false;
    flows[0].latest = Latest::new(LATEST_FRAMES);
    // Many times round all that is remembered; every third frame is lost, every fifth comes twice.
    for number in 0..32 * LATEST_FRAMES as u32 {
        assert_eq!(flows[0].send(10), number);
        let data = flows[0].frame(number).to_vec();
        let copies = if number % 3 == 0 {
            0
        } else {
            1 + u32::from(number % 5 == 0)
        };
        for _ in 0..copies {
            assert!(identities.receive(&mut flows, 2, 50, &data));
        }
    }
    let counters = flows[0].counters;
    assert_eq!(counters.sent, 131_072);
    assert_eq!(counters.received, 131_072 - 43_691);
    assert_eq!(counters.duplicates, 26_215 - 8_739);
    assert_eq!(counters.max_delay_ns, 40);
    assert!(received_ns(&flows[0]).is_empty());
}
