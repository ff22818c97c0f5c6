//! Frames that pass the integrated switch without the CPU: while `OpenFlow` is switched off (section 3.4.1 of the Loko
//! paper), and between native ports.

mod testbed;

use testbed::{port, quiet_config, quiet_profile, udp, Testbed};
use zodiac_firmware::{Config, Duration, Event, PortMask};

/// The first byte's time on a link of 100 Mbit/s.
const BYTE_NS: u64 = 80;
/// Frames of Table 1, and the longest that a port receives; the CPU could send no more than 1521 bytes.
const LENGTHS: [usize; 8] = [64, 306, 548, 790, 1032, 1274, 1516, 1535];

/// A board whose integrated switch has this jitter when it forwards frames by itself.
fn switched_off(jitter_ps: Option<u64>) -> Testbed {
    let mut profile = quiet_profile();
    profile.integrated_switch.bridging_jitter_ps = jitter_ps;
    let config = Config {
        openflow_enabled: false,
        ..quiet_config()
    };
    Testbed::new(&profile, config)
}

fn ports(numbers: &[u8]) -> PortMask {
    numbers.iter().map(|number| port(*number)).collect()
}

/// Returns a frame of `length` bytes in the other direction than [`udp`]'s.
fn back(length: usize) -> Vec<u8> {
    let mut frame = udp(length, 0);
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame
}

#[test]
fn frames_of_all_lengths_need_the_chips_own_time_only() {
    let mut bed = switched_off(None);
    let transit_ns = u64::try_from(quiet_profile().integrated_switch.transit_ps).unwrap() / 1_000;
    assert_eq!(bed.frame(2, &back(64))[0].ports, ports(&[1, 3]));
    for length in LENGTHS {
        let arrival = bed.now;
        let departures = bed.frame(1, &udp(length, 0));
        assert_eq!(departures.len(), 1);
        assert_eq!(departures[0].ports, ports(&[2]));
        assert_eq!(departures[0].data, udp(length, 0));
        assert_eq!((departures[0].at - arrival).as_nanos(), transit_ns);
    }
    let counters = bed.board.counters();
    assert_eq!((counters.received, counters.bridged), (9, 9));
    assert_eq!((counters.forwarded, counters.processed), (10, 0));
    assert!(bed.events.is_empty());
}

/// Returns how long frames took that the integrated switch forwarded to one port each.
fn bridging_times_ns(mut bed: Testbed, frames: usize) -> Vec<u64> {
    bed.frame(2, &back(64));
    let mut passed = |length: usize| {
        let arrival = bed.now;
        (bed.frame(1, &udp(length, 0))[0].at - arrival).as_nanos()
    };
    LENGTHS
        .iter()
        .cycle()
        .take(frames)
        .map(|length| passed(*length))
        .collect()
}

#[test]
fn times_without_the_cpu_are_uniform_around_the_transit() {
    let times = bridging_times_ns(switched_off(Some(50_000)), 10_100);
    let mut counts = [0_u32; 101];
    for time in &times {
        counts[usize::try_from(*time).unwrap() - 2_020] += 1;
    }
    // 100 are expected of each, with a standard deviation of 10.
    assert!(
        counts.iter().all(|count| (50..150).contains(count)),
        "{counts:?}"
    );
    assert_eq!(times, bridging_times_ns(switched_off(Some(50_000)), 10_100));
}

#[test]
fn the_ports_of_a_flooded_frame_get_it_at_the_same_instant() {
    let mut bed = switched_off(quiet_profile().integrated_switch.bridging_jitter_ps);
    for _ in 0..20 {
        let departures = bed.frame(1, &udp(64, 0)); // to a station that never spoke
        assert_eq!(departures.len(), 1);
        assert_eq!(departures[0].ports, ports(&[2, 3]));
    }
}

#[test]
fn the_chip_passes_line_rate_and_loses_what_one_port_cannot_carry() {
    let mut bed = switched_off(quiet_profile().integrated_switch.bridging_jitter_ps);
    bed.frame(3, &{
        let mut hello = back(64);
        hello[11] = 2;
        hello
    });
    let on_link = Duration::from_nanos((8 + 1516 + 12) * BYTE_NS);
    for _ in 0..2_000 {
        bed.board.frame(bed.now, port(1), &udp(1516, 0));
        bed.wait(on_link);
    }
    assert_eq!(bed.board.counters().dropped_switch, 0);
    assert_eq!(bed.board.counters().forwarded, 2_002);
    // Two ports send to the third one.
    for _ in 0..2_000 {
        bed.board.frame(bed.now, port(1), &udp(1516, 0));
        bed.board.frame(bed.now, port(2), &udp(1516, 0));
        bed.wait(on_link);
    }
    let counters = bed.board.counters();
    let kept = quiet_profile().integrated_switch.buffer_bytes / (8 + 1516 + 12);
    let expected = 2_000 - kept;
    assert!(
        counters.dropped_switch.abs_diff(expected) <= 2,
        "{counters:?}"
    );
    assert_eq!(counters.forwarded + counters.dropped_switch, 6_002);
}

#[test]
fn while_openflow_is_on_the_cpu_gets_every_frame() {
    let mut bed = Testbed::connected(&quiet_profile(), quiet_config());
    assert!(bed.frame(2, &back(64)).is_empty());
    assert!(bed.frame(1, &udp(64, 0)).is_empty());
    let counters = bed.board.counters();
    assert_eq!((counters.missed, counters.bridged), (2, 0));
}

#[test]
fn native_ports_are_switched_among_each_other() {
    let config = Config {
        openflow_ports: vec![port(1)],
        native_ports: vec![port(2), port(3)],
        ..quiet_config()
    };
    let mut bed = Testbed::new(&quiet_profile(), config);
    assert_eq!(bed.frame(2, &back(64))[0].ports, ports(&[3]));
    assert_eq!(bed.frame(3, &udp(64, 0))[0].ports, ports(&[2]));
    assert!(bed.events.is_empty());
    // In no VLAN at all.
    assert!(bed.frame(4, &udp(64, 0)).is_empty());
    assert_eq!(bed.events, [Event::PortNotOpenFlow { port: 4 }]);
    assert_eq!(bed.board.counters().dropped_policy, 1);
}

#[test]
fn switching_openflow_off_and_on_by_the_console_takes_the_cpu_out_and_in() {
    let mut bed = Testbed::connected(&quiet_profile(), quiet_config());
    for (line, bridged) in [("\ropenflow\rdisable\r", 1), ("enable\r", 1)] {
        bed.board.console(bed.now, line.as_bytes());
        bed.wait(Duration::from_millis(50));
        bed.frame(1, &udp(64, 0));
        assert_eq!(bed.board.counters().bridged, bridged);
    }
}
