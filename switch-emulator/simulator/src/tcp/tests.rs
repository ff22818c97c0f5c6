use super::{CongestionControl, Side, TcpConfig, TcpConnection, TcpResult};
use crate::link::size_on_wire;
use crate::{Network, RunResult};

mod full_segment;
mod switched;

use full_segment::full_segment;

const SECOND_NS: u64 = 1_000_000_000;

fn config(control: CongestionControl) -> TcpConfig {
    TcpConfig {
        flow: 7,
        frame: full_segment(),
        control,
        window_bytes: 3 << 20,
        start_ns: 0,
        observed: true,
        destination: "B".into(),
    }
}

/// One transfer over a cable of 100 Mbit/s.
fn run(control: CongestionControl) -> RunResult {
    let mut network = Network::new(1);
    network.add_host("A").unwrap();
    network.add_host("B").unwrap();
    network.connect(("A", 1), ("B", 1), 1e8, 1_000).unwrap();
    network.add_tcp("A", &config(control)).unwrap();
    network.run(SECOND_NS, SECOND_NS).unwrap()
}

#[test]
fn a_cable_carries_what_headers_leave_and_nothing_is_sent_again() {
    for control in [CongestionControl::Cubic, CongestionControl::Reno] {
        let result = run(control);
        let tcp = &result.tcp[0];
        // A segment takes 1538 bytes on the wire; the last one may begin just before the end.
        let fit = SECOND_NS.div_ceil(1538 * 80);
        let segments = tcp.delivered_bytes / 1448;
        assert!(
            (fit * 99 / 100..=fit).contains(&segments),
            "{segments} of {fit}"
        );
        assert!(tcp.retransmitted_ns.is_empty());
        assert_eq!(tcp.timeouts, 0);
        assert_eq!(result.unidentified, 0);
        let flow = &result.flows[0];
        assert_eq!(flow.counters.sent, flow.counters.received);
        assert_eq!(flow.counters.received * 1448, tcp.delivered_bytes);
    }
}

#[test]
fn the_same_transfer_gives_the_same_records() {
    assert_eq!(run(CongestionControl::Cubic), run(CongestionControl::Cubic));
}

#[test]
fn wrong_transfers_are_refused() {
    let mut network = Network::new(1);
    network.add_host("A").unwrap();
    network.add_host("B").unwrap();
    assert!(network
        .add_tcp("A", &config(CongestionControl::Reno))
        .is_err());
    network.connect(("A", 1), ("B", 1), 1e8, 0).unwrap();
    let short = TcpConfig {
        window_bytes: 1_448,
        ..config(CongestionControl::Reno)
    };
    let no_tcp = TcpConfig {
        frame: vec![0; 100],
        ..config(CongestionControl::Reno)
    };
    for wrong in [short, no_tcp] {
        assert!(network.add_tcp("A", &wrong).is_err());
    }
}

/// A cable of 100 Mbit/s and 1 ms each way that loses what it is told to.
const NS_PER_BYTE: u64 = 80;
const PROPAGATION_NS: u64 = 1_000_000;
/// So many segments are under way at most: fewer than fill the cable, so that nothing else is lost and nothing waits.
const WINDOW: u64 = 12;

/// Returns the result of a transfer of a second, of which the frames for which `loses` says so are lost. It gets a
/// frame's number, in order of sending, and how many segments were sent again by then, this one included if it is one.
fn carried(control: CongestionControl, loses: impl Fn(u64, usize) -> bool) -> TcpResult {
    carried_within(WINDOW, control, loses)
}

fn carried_within(
    window: u64,
    control: CongestionControl,
    loses: impl Fn(u64, usize) -> bool,
) -> TcpResult {
    let config = TcpConfig {
        window_bytes: window * 1448,
        ..config(control)
    };
    let mut connection = TcpConnection::new(&config, [0, 1]).unwrap();
    connection.start(0, SECOND_NS);
    let sides = [Side::Sender, Side::Receiver];
    let mut busy_until_ns = [0; 2];
    let mut now_ns = 0;
    for _ in 0..1_000_000 {
        let next = (sides.iter())
            .filter_map(|side| {
                let at_ns = connection.wake_ns(*side, now_ns, busy_until_ns[*side as usize])?;
                Some((at_ns, *side as usize))
            })
            .min();
        let Some((at_ns, place)) = next else {
            return connection.finish();
        };
        now_ns = at_ns;
        let is_free = busy_until_ns[place] <= now_ns;
        let Some(frame) = connection.work(sides[place], now_ns, is_free, &mut Vec::new()) else {
            continue;
        };
        let wire_ns = size_on_wire(frame.len()) * NS_PER_BYTE;
        busy_until_ns[place] = now_ns + wire_ns;
        let number = connection.counters.sent - 1;
        let again = connection.result.retransmitted_ns.len();
        if place == 0 && loses(number, again) {
            continue;
        }
        let begin_ns = now_ns + PROPAGATION_NS;
        assert!(connection.deliver(sides[1 - place], begin_ns, begin_ns + wire_ns, &frame));
    }
    panic!("the transfer does not end");
}

/// All that was sent has arrived, in order and without gaps; so many segments were sent in vain, or lost.
fn assert_whole(result: &TcpResult, sent_again: usize, timeouts: u64) {
    assert_eq!(result.retransmitted_ns.len(), sent_again, "{result:?}");
    assert_eq!(result.timeouts, timeouts, "{result:?}");
    // A window takes 2 ms and what a segment and its acknowledgement take.
    let fit = SECOND_NS / 2_100_000 * WINDOW;
    let idle = timeouts * fit / 2;
    let segments = result.delivered_bytes / 1448;
    assert!(segments >= fit * 8 / 10 - idle, "{segments} of {fit}");
}

const BOTH: [CongestionControl; 2] = [CongestionControl::Cubic, CongestionControl::Reno];

#[test]
fn a_cable_without_losses_sends_nothing_again() {
    for control in BOTH {
        assert_whole(&carried(control, |_, _| false), 0, 0);
    }
}

#[test]
fn a_lost_segment_is_sent_again_once_and_the_window_shrinks() {
    for (control, tenths) in BOTH.into_iter().zip([7, 5]) {
        let result = carried(control, |number, _| number == 1_000);
        assert_whole(&result, 1, 0);
        let again_ns = result.retransmitted_ns[0];
        let mut windows = result.window_at_ns.iter().zip(&result.window_segments);
        let before = windows.rfind(|(at_ns, _)| **at_ns < again_ns - 3_000_000);
        let before = before.expect("it was recorded").1;
        // Repairing it takes a round trip.
        let mut windows = result.window_at_ns.iter().zip(&result.window_segments);
        let after = windows.rfind(|(at_ns, _)| **at_ns < again_ns + 2_500_000);
        let after = *after.expect("it was recorded").1;
        assert_eq!(after, before * tenths / 10);
    }
}

#[test]
fn several_losses_in_a_window_are_found_by_selective_acknowledgements() {
    for control in BOTH {
        let result = carried(control, |number, _| {
            [1_000, 1_002, 1_003, 1_007].contains(&number)
        });
        assert_whole(&result, 4, 0);
    }
}

#[test]
fn a_segment_that_is_lost_again_is_sent_a_third_time_without_a_timeout() {
    for control in BOTH {
        let first = std::cell::Cell::new(true);
        // With room for new segments after it: only those can tell that it is lost.
        let result = carried_within(1_000, control, |number, again| {
            number == 60 || (again == 1 && first.replace(false))
        });
        assert_whole(&result, 2, 0);
    }
}

#[test]
fn a_lost_window_is_found_by_a_probe() {
    for control in BOTH {
        let result = carried(control, |number, _| {
            (1_000..1_000 + WINDOW).contains(&number)
        });
        assert_whole(&result, WINDOW as usize, 0);
        let gap_ns = 2 * 2_300_000 + 8_000_000;
        assert!(result.retransmitted_ns[0] - result.retransmitted_ns[1] < gap_ns);
    }
}

#[test]
fn the_timer_helps_where_the_probe_is_lost_too() {
    for control in BOTH {
        let result = carried(control, |number, _| {
            (1_000..=1_000 + WINDOW).contains(&number)
        });
        assert_whole(&result, WINDOW as usize + 1, 1);
    }
}

#[test]
fn every_tenth_segment_lost_stops_nothing() {
    for control in BOTH {
        let result = carried(control, |number, _| number % 10 == 9);
        let lost = result.delivered_bytes / 1448 / 9;
        let again = result.retransmitted_ns.len() as u64;
        assert!(
            again.abs_diff(lost) <= lost / 10 + WINDOW,
            "{again} of {lost}"
        );
    }
}
