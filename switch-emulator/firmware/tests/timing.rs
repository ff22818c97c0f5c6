//! When frames leave: against the cost model fitted to the Loko paper and its equations.

mod testbed;

use testbed::{
    fields, free_control_profile, message, output, port, quiet_config, quiet_profile, udp, Fields,
    FlowMod, Testbed,
};
use zodiac_firmware::{Config, Duration, Instant, Profile};

use Fields::{All, FiveTuple, Port};
use Used::{DecreasingFirst, IncreasingLast};

const SET_NW_SRC: [u8; 8] = [0, 6, 0, 8, 10, 9, 9, 9];

/// Where the used entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Used {
    /// Last, in increasing priority: all entries are examined.
    IncreasingLast,
    /// First, in decreasing priority: the others are passed over.
    DecreasingFirst,
}

/// Returns a table of `count` entries with flow 0 used, sending to port 3.
fn table(count: u16, kind: Fields, used: Used, more_actions: &[u8]) -> Vec<FlowMod> {
    let actions = [more_actions, &output(3)].concat();
    (0..count)
        .map(|index| match used {
            Used::IncreasingLast => {
                FlowMod::add(fields(kind, count - 1 - index), index, actions.clone())
            }
            Used::DecreasingFirst => {
                FlowMod::add(fields(kind, index), count - index, actions.clone())
            }
        })
        .collect()
}

/// Mean `p_FX` of a lone frame over the phases of the main loop.
fn mean_p_fx_ns(length: usize, entries: &[FlowMod]) -> u64 {
    const PHASES: u64 = 49;
    let profile = quiet_profile();
    let step = profile.cpu.loop_ps.unsigned_abs() / 1_000 / PHASES;
    let mut sum = 0;
    for phase in 0..PHASES {
        let config = Config {
            loop_phase_ns: Some(phase * step),
            ..quiet_config()
        };
        let mut bed = Testbed::connected(&profile, config);
        bed.install(entries.to_vec());
        bed.wait(Duration::from_millis(1));
        let arrival = bed.now;
        let departures = bed.frame(1, &udp(length, 0));
        assert_eq!(departures.len(), 1);
        assert!(departures[0].ports.contains(port(3)));
        sum += (departures[0].at - arrival).as_nanos();
    }
    sum / PHASES
}

/// Name, length, entries, fields, used entry, actions before the output, predicted mean `p_FX` in ns.
type Prediction = (&'static str, usize, u16, Fields, Used, &'static [u8], u64);

/// Predictions of the cost model for the paper's figures, rounded to 0.1 us.
const PREDICTIONS: [Prediction; 16] = [
    ("fig9 smallest", 64, 1, Port, IncreasingLast, &[], 50_600),
    (
        "fig9 largest, output",
        1516,
        128,
        All,
        IncreasingLast,
        &[],
        1_921_500,
    ),
    (
        "fig9 largest, set-nw-src",
        1516,
        128,
        All,
        IncreasingLast,
        &SET_NW_SRC,
        1_979_400,
    ),
    (
        "fig10a decreasing-first",
        790,
        17,
        FiveTuple,
        DecreasingFirst,
        &[],
        202_800,
    ),
    (
        "fig10a the others",
        790,
        17,
        FiveTuple,
        IncreasingLast,
        &[],
        347_500,
    ),
    ("fig10b port", 64, 128, Port, IncreasingLast, &[], 880_000),
    (
        "fig10b five-tuple",
        64,
        128,
        FiveTuple,
        IncreasingLast,
        &[],
        1_306_500,
    ),
    ("fig10b all", 64, 128, All, IncreasingLast, &[], 1_650_100),
    ("fig10c output", 1516, 1, Port, IncreasingLast, &[], 322_000),
    (
        "fig10c set-nw-src",
        1516,
        1,
        Port,
        IncreasingLast,
        &SET_NW_SRC,
        380_000,
    ),
    (
        "fig12a 17 entries",
        64,
        17,
        FiveTuple,
        DecreasingFirst,
        &[],
        67_100,
    ),
    (
        "fig12a 33 entries",
        64,
        33,
        FiveTuple,
        DecreasingFirst,
        &[],
        80_200,
    ),
    (
        "buffer test",
        1516,
        128,
        FiveTuple,
        IncreasingLast,
        &[],
        1_577_900,
    ),
    (
        "evaluation",
        306,
        17,
        FiveTuple,
        IncreasingLast,
        &[],
        257_000,
    ),
    (
        "section 4",
        306,
        128,
        FiveTuple,
        IncreasingLast,
        &[],
        1_351_700,
    ),
    (
        "line rate below 65 entries",
        1516,
        49,
        Port,
        DecreasingFirst,
        &[],
        361_300,
    ),
];

#[test]
fn lone_frames_take_the_predicted_time() {
    for (name, length, count, kind, used, actions, expected_ns) in PREDICTIONS {
        let mean_ns = mean_p_fx_ns(length, &table(count, kind, used, actions));
        assert!(
            mean_ns.abs_diff(expected_ns) < 110,
            "{name}: {mean_ns} ns, predicted {expected_ns} ns"
        );
    }
}

/// The delay terms of one frame, each as it is written down: `p_IS`, inner link, wait, work, inner link, `p_IS`.
#[test]
fn a_lone_frame_takes_exactly_the_sum_of_its_delay_terms() {
    let profile = free_control_profile();
    let mut bed = Testbed::connected(&profile, quiet_config());
    bed.install(table(17, Fields::FiveTuple, Used::IncreasingLast, &[]));
    // The last message was found by a pass, after which the CPU polls every 4.9 us from the bed's zero.
    let arrival = Instant::from_nanos(4_900 * 100_000);
    bed.wait(arrival - bed.now);
    let departure = &bed.frame(1, &udp(306, 0))[0];
    let in_ring = 2_070 + (8 + 306 + 1) * 80;
    let wait = 4_900 - in_ring % 4_900;
    // 30700 + 306 x 26.93 + 17 x 9862.7 - 2 x 2070 - 2450 ns
    let work = 200_016;
    let out = (8 + 306 + 1) * 80 + 2_070;
    assert_eq!(
        (departure.at - arrival).as_nanos(),
        in_ring + wait + work + out
    );
}

#[test]
fn a_frame_that_arrives_as_a_pass_begins_is_found_by_it() {
    let in_ring = 2_070 + (8 + 306 + 1) * 80;
    let out = (8 + 306 + 1) * 80 + 2_070;
    for (late_ns, wait_ns) in [(0, 0), (1, 4_899)] {
        let mut bed = Testbed::connected(&free_control_profile(), quiet_config());
        bed.install(table(17, Fields::FiveTuple, Used::IncreasingLast, &[]));
        let arrival = Instant::from_nanos(4_900 * 100_000 - in_ring + late_ns);
        bed.wait(arrival - bed.now);
        let departure = &bed.frame(1, &udp(306, 0))[0];
        assert_eq!(
            (departure.at - arrival).as_nanos(),
            in_ring + wait_ns + 200_016 + out
        );
    }
}

/// An arrival needs free units before the pass that begins at the same instant frees any.
#[test]
fn a_frame_that_arrives_as_a_pass_begins_finds_the_ring_as_before() {
    const LENGTH: usize = 1516;
    let in_ring = Duration::from_nanos(2_070 + (8 + 1516 + 1) * 80);
    for (late_ns, dropped) in [(0, 1), (1, 0)] {
        let mut bed = Testbed::connected(&free_control_profile(), quiet_config());
        bed.install(table(128, Fields::FiveTuple, Used::IncreasingLast, &[]));
        // A whole number of idle passes from power-up, so that the first frame waits for none.
        let pass = Instant::from_nanos(4_900 * 300_000);
        bed.wait((pass - bed.now) - in_ring);
        for _ in 0..3 {
            bed.board.frame(bed.now, port(1), &udp(LENGTH, 0));
            bed.wait(Duration::from_nanos((LENGTH as u64 + 20) * 80));
        }
        // The first frame keeps the CPU for its p_CPU; the other two fill the ring.
        let next_pass = pass + Duration::from_nanos(1_333_951);
        bed.wait((next_pass - bed.now) - in_ring + Duration::from_nanos(late_ns));
        bed.board.frame(bed.now, port(1), &udp(LENGTH, 0));
        bed.wait(Duration::from_millis(20));
        assert_eq!(
            bed.board.counters().dropped_buffer,
            dropped,
            "{late_ns} ns after the pass"
        );
    }
}

/// Sends frames at line rate into an idle board with an expensive table. Returns how many were kept.
fn kept_of_burst(length: usize, frames: u64) -> u64 {
    let mut bed = Testbed::connected(&quiet_profile(), quiet_config());
    bed.install(table(128, Fields::FiveTuple, Used::IncreasingLast, &[]));
    let frame = udp(length, 0);
    for _ in 0..frames {
        bed.board.frame(bed.now, port(1), &frame);
        bed.wait(Duration::from_nanos((length as u64 + 20) * 80));
    }
    bed.wait(Duration::from_millis(100));
    let counters = bed.board.counters();
    assert_eq!(counters.received, frames);
    assert_eq!(
        counters.forwarded + counters.dropped_buffer + counters.dropped_switch,
        frames
    );
    assert_eq!(bed.departures.len() as u64, counters.forwarded);
    counters.forwarded
}

/// Section 3.5: one packet in work and 24 buffers of 128 bytes, of which a packet needs whole ones.
#[test]
fn the_buffer_holds_what_the_paper_says() {
    for length in [64, 306, 548, 790, 1032, 1274, 1516] {
        let capacity = 1 + 24 / (length as u64).div_ceil(128);
        assert_eq!(kept_of_burst(length, capacity), capacity, "{length} bytes");
        assert_eq!(
            kept_of_burst(length, capacity + 3),
            capacity,
            "{length} bytes"
        );
    }
    assert_eq!(kept_of_burst(306, 20), 9);
}

/// Saturates a board with frames at line rate, without pause frames, which would cost some of them (`overload.rs`).
/// Returns the departures.
fn saturated(profile: &Profile, length: usize, entries: &[FlowMod]) -> Vec<Instant> {
    let mut profile = profile.clone();
    profile.flow_control.pause_quanta = 0;
    let mut bed = Testbed::connected(&profile, quiet_config());
    bed.install(entries.to_vec());
    let frame = udp(length, 0);
    for _ in 0..4_000 {
        bed.board.frame(bed.now, port(1), &frame);
        bed.wait(Duration::from_nanos((length as u64 + 20) * 80));
    }
    let counters = bed.board.counters();
    assert!(
        counters.dropped_switch == 0 && counters.dropped_transmit == 0,
        "{counters:?}"
    );
    bed.departures
        .iter()
        .map(|departure| departure.at)
        .collect()
}

/// Equation 6: `min(8 l / p_CPU, 100 l / (l + 21))`.
#[test]
fn a_saturated_board_has_the_throughput_of_equation_6() {
    // p_CPU in ns
    let cases = [(306, 17, 206_606), (64, 1, 42_286), (1516, 1, 81_389)];
    for (length, count, p_cpu_ns) in cases {
        let entries = table(count, Fields::FiveTuple, Used::IncreasingLast, &[]);
        let departures = saturated(&quiet_profile(), length, &entries);
        let period_ns = p_cpu_ns.max((length as u64 + 21) * 80);
        // Without the first frames, which find the buffer empty.
        let gaps: Vec<u64> = departures[30..]
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_nanos())
            .collect();
        // A CPU that waits for the link takes each frame up to one idle pass later; a busy one never waits.
        let wait_ns = if period_ns == p_cpu_ns { 0 } else { 4_900 };
        for gap in &gaps {
            assert!(
                gap.abs_diff(period_ns) <= wait_ns,
                "{length} bytes: {gap} ns"
            );
        }
        let total: u64 = gaps.iter().sum();
        assert!(
            total.abs_diff(period_ns * gaps.len() as u64) <= wait_ns,
            "{length} bytes: {total} ns for {} frames",
            gaps.len()
        );
    }
}

#[test]
fn the_capacity_factor_scales_the_busy_cpu_only() {
    let entries = table(17, Fields::FiveTuple, Used::IncreasingLast, &[]);
    let mut profile = quiet_profile();
    profile.cpu.capacity_factor = 0.95;
    let departures = saturated(&profile, 306, &entries);
    for pair in departures[30..].windows(2) {
        assert_eq!((pair[1] - pair[0]).as_nanos(), 217_481);
    }
    assert_eq!(
        departures[0],
        saturated(&quiet_profile(), 306, &entries)[0],
        "not a lone frame"
    );
}

#[test]
fn timers_take_time_from_frames() {
    let entries = table(17, Fields::FiveTuple, Used::IncreasingLast, &[]);
    let mut profile = quiet_profile();
    let undisturbed = saturated(&profile, 306, &entries);
    profile.cpu.timers.period_ns = 10_000_000;
    profile.cpu.timers.cost_ps = 100_000_000;
    let disturbed = saturated(&profile, 306, &entries);
    let longer = disturbed
        .windows(2)
        .filter(|pair| (pair[1] - pair[0]).as_nanos() == 306_606)
        .count();
    let usual = disturbed
        .windows(2)
        .filter(|pair| (pair[1] - pair[0]).as_nanos() == 206_606)
        .count();
    assert!(disturbed.len() < undisturbed.len());
    // 4000 frames take 104 ms to come in.
    assert!((9..=11).contains(&longer), "{longer}");
    assert!(usual + longer + 20 > disturbed.len());
}

#[test]
fn frames_wait_for_each_other_at_a_port() {
    let mut bed = Testbed::connected(&quiet_profile(), quiet_config());
    bed.install([FlowMod::add(
        fields(Fields::Port, 0),
        1,
        [output(3), output(2), output(3)].concat(),
    )]);
    let departures = bed.frame(1, &udp(306, 0));
    let ports: Vec<u8> = departures
        .iter()
        .map(|departure| departure.ports.bits())
        .collect();
    assert_eq!(ports, [0b100, 0b010, 0b100]);
    // One after the other over the inner link: preamble, frame, tag and gap.
    let inner_ns = (8 + 306 + 1 + 12) * 80;
    for pair in departures.windows(2) {
        assert_eq!((pair[1].at - pair[0].at).as_nanos(), inner_ns);
    }
}

#[test]
fn what_arrives_first_is_handled_first() {
    let mut bed = Testbed::connected(&quiet_profile(), quiet_config());
    let frame = udp(306, 0);
    // Both lie in wait for the CPU when the entry comes; the second frame comes after it.
    bed.board.frame(bed.now, port(1), &frame);
    bed.wait(Duration::from_micros(30));
    bed.board.segment(
        bed.now,
        &FlowMod::add(fields(Fields::Port, 0), 1, output(3)).message(),
    );
    bed.board.frame(bed.now, port(1), &frame);
    bed.wait(Duration::from_millis(5));
    assert_eq!(bed.replies.len(), 1, "the first frame missed");
    assert_eq!(bed.departures.len(), 1, "the second one found the entry");
}

#[test]
fn early_and_extra_calls_change_nothing() {
    let profile = Profile::from_toml(zodiac_firmware::ZODIAC_FX).unwrap();
    let run = |extra: bool| {
        let mut bed = Testbed::connected(&profile, Config::default());
        bed.install(table(17, Fields::FiveTuple, Used::IncreasingLast, &[]));
        for step in 0..2_000_u64 {
            if step % 3 == 0 {
                bed.board.frame(bed.now, port(1), &udp(306, 0));
            }
            if step % 701 == 0 {
                bed.board.segment(bed.now, &message(18, &[]));
            }
            let step = Duration::from_nanos(61_003);
            if extra {
                bed.wait(Duration::from_nanos(13));
                bed.wait(Duration::ZERO);
                bed.wait(step - Duration::from_nanos(13));
            } else {
                bed.now += step;
            }
        }
        bed.wait(Duration::from_millis(10));
        (bed.departures, bed.replies, bed.board.counters())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn the_counters_tell_how_many_entries_a_search_examines() {
    for (used, examined) in [(IncreasingLast, 17), (DecreasingFirst, 1)] {
        let mut bed = Testbed::connected(&quiet_profile(), quiet_config());
        bed.install(table(17, FiveTuple, used, &[]));
        for _ in 0..3 {
            assert_eq!(bed.frame(1, &udp(306, 0)).len(), 1);
        }
        let counters = bed.board.counters();
        assert_eq!(
            (counters.searches, counters.entries_examined),
            (3, 3 * examined)
        );
    }
}
