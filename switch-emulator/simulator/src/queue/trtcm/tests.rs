use super::super::config::PolicerConfig;
use super::*;

const POLL_NS: u64 = 10_000;

fn trtcm(policers: Vec<PolicerConfig>, group_frames: u64) -> Trtcm {
    Trtcm::new(&TrtcmConfig {
        policers,
        group_frames,
        poll_ns: POLL_NS,
        limit_frames: 100,
        transmit_frames: 100,
    })
    .unwrap()
}

fn policer(cir_mbps: u64, cbs_bytes: u64, eir_mbps: u64, ebs_bytes: u64) -> PolicerConfig {
    PolicerConfig {
        queue: 0,
        cir_bps: cir_mbps * 1_000_000,
        cbs_bytes,
        eir_bps: eir_mbps * 1_000_000,
        ebs_bytes,
    }
}

/// Returns a frame that holds an IP packet of `packet_bytes`.
fn frame(packet_bytes: usize) -> QueuedFrame {
    QueuedFrame {
        data: vec![0; 14 + packet_bytes],
    }
}

fn passed(trtcm: &mut Trtcm, now_ns: u64) -> usize {
    std::iter::from_fn(|| trtcm.dequeue(now_ns)).count()
}

#[test]
fn a_poll_takes_a_group_and_the_next_one_what_is_left() {
    let mut trtcm = trtcm(vec![policer(1_000, 100_000, 0, 0)], 8);
    for _ in 0..20 {
        trtcm.enqueue(1, 0, frame(1_000));
    }
    assert_eq!(passed(&mut trtcm, POLL_NS), 0);
    assert_eq!(trtcm.wake_ns(), Some(1 + POLL_NS));
    for (poll, expected) in [(1, 8), (2, 8), (3, 4), (4, 0)] {
        let now_ns = 1 + poll * POLL_NS;
        assert_eq!(passed(&mut trtcm, now_ns), expected, "poll {poll}");
    }
    assert_eq!(trtcm.wake_ns(), None);
    // Nothing waited: the next frame begins anew.
    trtcm.enqueue(1_000_000, 0, frame(1_000));
    assert_eq!(trtcm.wake_ns(), Some(1_000_000 + POLL_NS));
}

#[test]
fn what_finds_no_tokens_in_either_bucket_is_dropped() {
    let mut trtcm = trtcm(vec![policer(8, 3_000, 0, 2_000)], 100);
    for _ in 0..9 {
        trtcm.enqueue(0, 0, frame(1_000));
    }
    // Three are green and two yellow. The level never falls below zero.
    assert_eq!(passed(&mut trtcm, POLL_NS), 5);
    assert_eq!(
        trtcm.dropped(),
        DropCounters {
            full: 0,
            policed: 4
        }
    );
    // A millisecond later the committed bucket has one more, and the excess bucket none: its rate is 0.
    for _ in 0..3 {
        trtcm.enqueue(1_000_000, 0, frame(1_000));
    }
    assert_eq!(passed(&mut trtcm, 1_000_000 + POLL_NS), 1);
}

#[test]
fn it_counts_ip_packets() {
    let mut exact = trtcm(vec![policer(8, 2_000, 0, 0)], 100);
    exact.enqueue(0, 0, frame(1_000));
    exact.enqueue(0, 0, frame(1_000));
    assert_eq!(passed(&mut exact, POLL_NS), 2);
    let mut short = trtcm(vec![policer(8, 1_999, 0, 0)], 100);
    short.enqueue(0, 0, frame(1_000));
    short.enqueue(0, 0, frame(1_000));
    assert_eq!(passed(&mut short, POLL_NS), 1);
}

#[test]
fn a_bucket_smaller_than_the_packet_passes_none_ever() {
    let mut trtcm = trtcm(vec![policer(1_000, 999, 0, 0)], 100);
    trtcm.enqueue(0, 0, frame(1_000));
    trtcm.enqueue(1_000_000_000, 0, frame(1_000));
    assert_eq!(passed(&mut trtcm, 2_000_000_000), 0);
    assert_eq!(trtcm.dropped().policed, 2);
}

#[test]
fn queues_have_buckets_of_their_own_but_wait_together() {
    let mut other = policer(1_000, 100_000, 0, 0);
    other.queue = 7;
    let mut trtcm = trtcm(vec![policer(8, 1_000, 0, 0), other], 100);
    for _ in 0..3 {
        trtcm.enqueue(0, 0, frame(1_000));
        trtcm.enqueue(0, 7, frame(1_000));
    }
    assert_eq!(passed(&mut trtcm, POLL_NS), 4);
    for _ in 0..101 {
        trtcm.enqueue(2 * POLL_NS, 0, frame(1_000));
    }
    assert_eq!(trtcm.dropped().full, 1, "the room is one for all queues");
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let refused = |policers| {
        Trtcm::new(&TrtcmConfig {
            policers,
            group_frames: 1,
            poll_ns: 1,
            limit_frames: 1,
            transmit_frames: 1,
        })
        .unwrap_err()
    };
    assert_eq!(refused(vec![]), "policers: there is none: add one");
    let twice = policer(1, 1, 0, 0);
    assert!(refused(vec![twice.clone(), twice]).contains("has two policers"));
    assert!(refused(vec![policer(0, 1, 0, 0)]).contains("cir_bps is 0"));
}
