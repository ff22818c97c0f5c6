//! Frames beyond the maximum throughput: sections 3.4.2 and 3.5 of the Loko paper, `docs/overload.md`.

#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss)] // counts of half a second

mod testbed;

use testbed::{fields, output, port, quiet_config, quiet_profile, udp, Fields, FlowMod, Testbed};
use zodiac_firmware::{Counters, Duration, Profile};

/// Flow 0 is the first of `count` five-tuple entries in decreasing priority and leaves by port 3 (fig. 12a).
fn decreasing_first(count: u16) -> Vec<FlowMod> {
    (0..count)
        .map(|index| FlowMod::add(fields(Fields::FiveTuple, index), count - index, output(3)))
        .collect()
}

/// A table for which a frame takes 1.3 ms: the used entry is the last of 128, and all are examined.
fn increasing_last() -> Vec<FlowMod> {
    (0..128)
        .map(|index| FlowMod::add(fields(Fields::FiveTuple, 127 - index), index, output(3)))
        .collect()
}

/// Hands in frames of 64 bytes at line rate.
fn send_burst(bed: &mut Testbed, frames: usize) {
    for _ in 0..frames {
        bed.board.frame(bed.now, port(1), &udp(64, 0));
        bed.wait(Duration::from_nanos(84 * 80));
    }
}

/// Sends frames of 64 bytes at a steady rate for half a second, each up to half a gap late so that they keep no phase
/// to the CPU's work. Returns what became of them.
fn after_steady_input(profile: &Profile, entries: u16, rate_pps: f64) -> Counters {
    let mut bed = Testbed::connected(profile, quiet_config());
    bed.install(decreasing_first(entries));
    let (frame, begin) = (udp(64, 0), bed.now);
    for number in 0..(rate_pps / 2.0) as u64 {
        let late = (number * 7_919 % 1_000) as f64 / 2_000.0;
        let due_ns = ((number as f64 + late) * 1e9 / rate_pps) as u64;
        bed.wait(Duration::from_nanos(due_ns) - (bed.now - begin));
        bed.board.frame(bed.now, port(1), &frame);
    }
    bed.wait(Duration::from_millis(20));
    let counters = bed.board.counters();
    let lost = counters.dropped_buffer + counters.dropped_switch + counters.dropped_return;
    assert_eq!(counters.received, counters.forwarded + lost, "{counters:?}");
    assert_eq!(bed.departures.len() as u64, counters.forwarded);
    counters
}

/// Slope of the least-squares line through the points, and how much of their variance it explains.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        xx += (x - mean_x) * (x - mean_x);
        xy += (x - mean_x) * (y - mean_y);
        yy += (y - mean_y) * (y - mean_y);
    }
    (xy / xx, xy * xy / (xx * yy))
}

/// Fig. 12a: beyond the maximum the output falls linearly with the input.
#[test]
fn the_output_falls_linearly_beyond_the_maximum() {
    // p_CPU without the integrated switch's share of it, in ns
    for (entries, p_cpu_ns) in [(17, 55_394.0), (33, 68_501.0)] {
        let maximum_pps = 1e9 / p_cpu_ns;
        let below = after_steady_input(&quiet_profile(), entries, 0.97 * maximum_pps);
        assert_eq!(below.forwarded, below.received, "{below:?}");
        assert_eq!((below.pauses_sent, below.dropped_return), (0, 0));
        let points: Vec<_> = [1.07, 1.43, 1.83, 2.27, 2.71, 3.37, 4.13, 5.19]
            .map(|load| {
                let counters = after_steady_input(&quiet_profile(), entries, load * maximum_pps);
                assert!(counters.pauses_sent > 0, "{counters:?}");
                (load, counters.forwarded as f64 / 0.5 / maximum_pps)
            })
            .to_vec();
        let (slope, determination) = line(&points);
        assert!(determination > 0.99, "{points:?}");
        // Each frame beyond takes room for the time that it needs to be received and to pass.
        let expected = -maximum_pps * (72.0 * 80.0 + 2_070.0) / 1e9;
        assert!((slope / expected - 1.0).abs() < 0.15, "{slope} {expected}");
    }
}

/// Section 3.5: the integrated switch holds nothing until the first frame is lost, so that the ring alone decides when.
#[test]
fn nothing_pauses_before_the_first_loss() {
    for (frames, pauses, lost) in [(25, 0, 0), (26, 1, 1), (27, 1, 2)] {
        let mut profile = quiet_profile();
        profile.flow_control.held_frames = 500;
        let mut bed = Testbed::connected(&profile, quiet_config());
        bed.install(increasing_last());
        send_burst(&mut bed, frames);
        bed.wait(Duration::from_millis(100));
        let counters = bed.board.counters();
        assert_eq!(counters.pauses_sent, pauses, "{frames} frames");
        // One more is on its way when the pause begins.
        assert_eq!(counters.dropped_buffer, lost, "{frames} frames");
    }
}

/// Frames held by the paused integrated switch come through as soon as the ring has room.
#[test]
fn held_frames_are_not_lost() {
    let burst = |held_frames| {
        let mut profile = quiet_profile();
        profile.flow_control.held_frames = held_frames;
        let mut bed = Testbed::connected(&profile, quiet_config());
        bed.install(increasing_last());
        send_burst(&mut bed, 32);
        bed.wait(Duration::from_millis(100));
        bed.board.counters()
    };
    let (none, three) = (burst(0), burst(3));
    assert!(none.dropped_switch > 3, "{none:?}");
    assert_eq!(three.dropped_switch, none.dropped_switch - 3);
    assert_eq!(three.forwarded, none.forwarded + 3);
}

/// A pause that nobody calls off ends by itself.
#[test]
fn a_pause_lasts_its_quanta() {
    let lost_behind = |quanta, wait_ns| {
        let mut profile = quiet_profile();
        profile.flow_control.pause_quanta = quanta;
        let mut bed = Testbed::connected(&profile, quiet_config());
        bed.install(increasing_last());
        send_burst(&mut bed, 26);
        bed.wait(Duration::from_nanos(wait_ns));
        bed.board.frame(bed.now, port(1), &udp(64, 0));
        bed.wait(Duration::from_millis(100));
        bed.board.counters().dropped_switch
    };
    assert_eq!(lost_behind(65_535, 100_000), 1);
    assert_eq!(lost_behind(16, 40_000), 1);
    assert_eq!(lost_behind(16, 100_000), 0);
    assert_eq!(lost_behind(0, 0), 0);
}

/// Returns a pause frame for all bridges, without FCS.
fn pause_frame(quanta: u16) -> Vec<u8> {
    let mut frame = vec![
        0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0, 1,
    ];
    frame.extend(quanta.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// The chip acts on a pause frame that arrives on a front port, and never forwards it.
#[test]
fn a_peer_can_pause_a_front_port() {
    let delay_ns = |profile: &Profile, requests: &[u16]| {
        let mut bed = Testbed::connected(profile, quiet_config());
        bed.install(decreasing_first(1));
        for quanta in requests {
            bed.board.frame(bed.now, port(3), &pause_frame(*quanta));
        }
        let arrival = bed.now;
        let departures = bed.frame(1, &udp(64, 0));
        assert_eq!(departures.len(), 1, "the pause frame itself stays inside");
        assert_eq!(bed.board.counters().pauses_received, requests.len() as u64);
        (departures[0].at - arrival).as_nanos()
    };
    let profile = quiet_profile();
    let usual = delay_ns(&profile, &[]);
    assert_eq!(delay_ns(&profile, &[1_000]), 1_000 * 512 * 10);
    assert_eq!(delay_ns(&profile, &[1_000, 0]), usual);
    let mut deaf = quiet_profile();
    deaf.flow_control.front_ports = 0;
    assert_eq!(delay_ns(&deaf, &[1_000]), usual);
}
