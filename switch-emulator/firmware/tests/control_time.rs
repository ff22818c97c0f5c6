//! CPU time of the controller's messages, and how they and the frames delay each other: section 3.2 of the Loko paper.

mod testbed;

use testbed::{
    everything, fields, message, output, port, quiet_config, quiet_profile, udp, Fields, FlowMod,
    Testbed, DELETE, DELETE_STRICT, MODIFY, MODIFY_STRICT, SETTLE,
};
use zodiac_firmware::{Config, Duration, Instant, OutputKind};

const ECHO_REQUEST: u8 = 2;
const STATS_REQUEST: u8 = 16;
const BARRIER_REQUEST: u8 = 18;

fn bed() -> Testbed {
    Testbed::connected(&quiet_profile(), quiet_config())
}

/// Time from a segment's arrival until the first reply departs: the `p_FX` of equation 1, whose tap takes off the
/// transmission of the request and the preamble of the reply.
fn time_ns(bed: &mut Testbed, segment: &[u8]) -> u64 {
    let arrival = bed.now;
    bed.board.segment(arrival, segment);
    let mut departed = None;
    bed.now += SETTLE;
    bed.board.advance(bed.now);
    while let Some(output) = bed.board.poll_output() {
        if matches!(output.kind, OutputKind::Controller(_)) {
            departed = departed.or(Some(output.at));
        }
    }
    (departed.expect("a reply") - arrival).as_nanos()
}

/// Mean over the phases of the main loop, with a table of `entries`.
fn mean_ns(entries: &[FlowMod], segment: &[u8]) -> u64 {
    const PHASES: u64 = 49;
    let step = quiet_profile().cpu.loop_ps.unsigned_abs() / 1_000 / PHASES;
    let time = |phase: u64| {
        let config = Config {
            loop_phase_ns: Some(phase * step),
            ..quiet_config()
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        bed.install(entries.to_vec());
        time_ns(&mut bed, segment)
    };
    (0..PHASES).map(time).sum::<u64>() / PHASES
}

/// Equation 2: time of a message without a reply, from the barrier that is written right behind it.
fn without_reply_ns(entries: &[FlowMod], subject: &FlowMod) -> u64 {
    let barrier = message(BARRIER_REQUEST, &[]);
    let mut bed = bed();
    bed.install(entries.to_vec());
    let both = time_ns(&mut bed, &[subject.message(), barrier.clone()].concat());
    let mut bed = self::bed();
    both - time_ns(&mut bed, &barrier)
}

fn table(count: u16) -> Vec<FlowMod> {
    (0..count)
        .map(|number| FlowMod::add(fields(Fields::FiveTuple, number), 5, output(3)))
        .collect()
}

/// 7.9 us beside the call (both transits, interrupt, mean wait), the call of 72.1 us, 12.0 us on the inner link.
#[test]
fn a_barrier_takes_92_us() {
    let mean = mean_ns(&[], &message(BARRIER_REQUEST, &[]));
    assert!((91_800..=92_400).contains(&mean), "{mean} ns");
    let mean = mean_ns(&[], &message(ECHO_REQUEST, &[]));
    assert!((91_000..=95_000).contains(&mean), "echo: {mean} ns");
}

/// Section 3.2.3: the times vary by less than 2 us for a fixed state.
#[test]
fn times_of_a_fixed_state_vary_by_the_wait_for_the_loop_only() {
    let mut bed = bed();
    let times: Vec<u64> = (0..100_u64)
        .map(|index| {
            bed.wait(Duration::from_nanos(index * 137));
            time_ns(&mut bed, &message(BARRIER_REQUEST, &[]))
        })
        .collect();
    let mean = times.iter().sum::<u64>() / 100;
    let variance = times
        .iter()
        .map(|time| time.abs_diff(mean).pow(2))
        .sum::<u64>()
        / 100;
    assert!(variance < 2_000 * 2_000, "{variance} ns^2");
    assert!(variance > 0);
}

/// A segment with `subject` and a barrier: what the CPU needs until the barrier's reply, less the barrier alone.
#[test]
fn a_delete_of_128_entries_takes_2300_us() {
    let delete = FlowMod::add(everything(), 0, vec![]).command(DELETE);
    let mean = mean_ns(
        &table(128),
        &[delete.message(), message(BARRIER_REQUEST, &[])].concat(),
    );
    let alone = mean - 32_100 - 12_000;
    assert!((2_280_000..=2_310_000).contains(&alone), "{alone} ns");
}

#[test]
fn an_add_costs_the_same_at_any_length_of_the_table_and_more_with_actions() {
    let add =
        |actions: usize| FlowMod::add(fields(Fields::FiveTuple, 200), 5, output(3).repeat(actions));
    let flat: Vec<u64> = [0, 16, 127]
        .map(|count| without_reply_ns(&table(count), &add(1)))
        .to_vec();
    assert!(
        flat.iter().all(|time| time.abs_diff(flat[0]) < 5_000),
        "{flat:?}"
    );
    let rising: Vec<u64> = (0..=4)
        .map(|actions| without_reply_ns(&table(16), &add(actions)))
        .collect();
    assert!(
        rising.windows(2).all(|pair| pair[1] > pair[0] + 2_000),
        "{rising:?}"
    );
    assert!(rising[4] > rising[0] + 15_000, "{rising:?}");
}

/// The orderings that section 3.2.3 states of fig. 7.
#[test]
fn table_changes_are_ordered_as_in_the_paper() {
    let same =
        |count: u16| vec![FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(3)); count.into()];
    let hit_all = FlowMod::add(everything(), 5, vec![]);
    let hit_same = FlowMod::add(fields(Fields::FiveTuple, 0), 5, vec![]);
    let hit_none = FlowMod::add(fields(Fields::FiveTuple, 999), 5, vec![]);
    let mut last = [0; 8];
    for count in [32, 64, 127] {
        let (all, same) = (table(count), same(count));
        let time = |table: &[FlowMod], subject: &FlowMod, command| {
            without_reply_ns(table, &subject.clone().command(command))
        };
        let delete_all = time(&all, &hit_all, DELETE);
        let modify_all = time(&all, &hit_all, MODIFY);
        let delete_strict_all = time(&same, &hit_same, DELETE_STRICT);
        let modify_strict_all = time(&same, &hit_same, MODIFY_STRICT);
        let delete_none = time(&all, &hit_none, DELETE);
        let modify_none = time(&all, &hit_none, MODIFY);
        let delete_strict_none = time(&all, &hit_none, DELETE_STRICT);
        let modify_strict_none = time(&all, &hit_none, MODIFY_STRICT);
        assert!(delete_all > modify_all, "all: {delete_all} {modify_all}");
        assert!(
            delete_strict_all > modify_strict_all,
            "{delete_strict_all} {modify_strict_all}"
        );
        assert!(
            modify_none >= delete_none,
            "none: {modify_none} {delete_none}"
        );
        assert!(modify_strict_none >= delete_strict_none);
        for (strict, loose) in [
            (delete_strict_all, delete_all),
            (modify_strict_all, modify_all),
            (delete_strict_none, delete_none),
            (modify_strict_none, modify_none),
        ] {
            assert!(strict < loose, "strict {strict}, non-strict {loose}");
        }
        for (none, all) in [
            (delete_none, delete_all),
            (modify_none, modify_all),
            (delete_strict_none, delete_strict_all),
            (modify_strict_none, modify_strict_all),
        ] {
            assert!(none < all, "none {none}, all {all}");
        }
        let times = [
            delete_all,
            modify_all,
            delete_strict_all,
            modify_strict_all,
            delete_none,
            modify_none,
            delete_strict_none,
            modify_strict_none,
        ];
        assert!(
            times.iter().zip(last).all(|(time, last)| *time > last),
            "rising in the entries"
        );
        last = times;
    }
}

#[test]
fn flow_statistics_cost_their_entries_and_actions() {
    let request = message(STATS_REQUEST, &[&[0, 1, 0, 0][..], &[0; 44]].concat());
    let with = |entries: u16, actions: usize| {
        let entry = |number| {
            FlowMod::add(
                fields(Fields::FiveTuple, number),
                5,
                output(3).repeat(actions),
            )
        };
        let mut bed = bed();
        bed.install((0..entries).map(entry));
        time_ns(&mut bed, &request)
    };
    let times = [with(1, 1), with(5, 1), with(10, 1), with(20, 1)];
    assert!(
        times.windows(2).all(|pair| pair[1] > pair[0] + 50_000),
        "{times:?}"
    );
    assert!(with(10, 4) > with(10, 1) + 50_000);
    let difference = with(20, 1).abs_diff(with(40, 1));
    assert!(
        difference < 5_000,
        "20 entries at most, and a wait for the loop: {difference} ns"
    );
}

/// A frame behind a DELETE of 128 entries waits for it, and a barrier behind a frame for the frame.
#[test]
fn messages_and_frames_delay_each_other() {
    let arrival_to_departure = |delete: bool| {
        let mut bed = bed();
        bed.install(table(128));
        if delete {
            let nothing = FlowMod::add(fields(Fields::Port, 3), 5, vec![]).command(DELETE);
            let everything = FlowMod::add(everything(), 5, vec![]).command(DELETE);
            bed.board.segment(bed.now, &nothing.message());
            bed.board.segment(bed.now, &everything.message());
        }
        bed.wait(Duration::from_micros(10));
        let arrival = bed.now;
        bed.board.frame(arrival, port(1), &udp(306, 0));
        bed.wait(Duration::from_millis(10));
        let forwarded = bed.departures.first().map(|departure| departure.at);
        (forwarded, arrival, bed.replies.len())
    };
    let (departed, arrival, _) = arrival_to_departure(false);
    assert!((departed.unwrap() - arrival).as_nanos() < 1_400_000);
    let (departed, _, missed) = arrival_to_departure(true);
    assert_eq!(
        (departed, missed),
        (None, 1),
        "the entries had gone before the frame's turn"
    );

    let barrier = |frame: bool| {
        let mut bed = bed();
        bed.install(table(128));
        if frame {
            bed.board.frame(bed.now, port(1), &udp(64, 127));
            bed.wait(Duration::from_micros(20));
        }
        time_ns(&mut bed, &message(BARRIER_REQUEST, &[]))
    };
    assert!(barrier(true) > barrier(false) + 1_200_000);
}

/// The frame that arrives just behind a DELETE that finds all 128 entries departs 2.3 ms later than alone.
#[test]
fn a_frame_waits_for_a_delete() {
    let departed_after = |delete: bool| {
        let mut bed = bed();
        // Entries that the DELETE selects, and one of another kind that it leaves.
        bed.install(
            (0..127).map(|number| FlowMod::add(fields(Fields::FiveTuple, number), 5, output(3))),
        );
        if delete {
            let delete = FlowMod::add(everything(), 5, vec![]).command(DELETE);
            let add = FlowMod::add(everything(), 5, output(3));
            bed.board
                .segment(bed.now, &[delete.message(), add.message()].concat());
        } else {
            bed.install([FlowMod::add(everything(), 5, output(3)).command(DELETE)]);
            bed.install([FlowMod::add(everything(), 5, output(3))]);
        }
        bed.wait(Duration::from_micros(20));
        let arrival = bed.now;
        let departures = bed.frame(1, &udp(306, 0));
        (departures[0].at - arrival).as_nanos()
    };
    let waited = departed_after(true) - departed_after(false);
    assert!((2_250_000..=2_350_000).contains(&waited), "{waited} ns");
}

/// Echo requests load the CPU: frames that would just fit are lost or late.
#[test]
fn echo_requests_delay_frames() {
    let last_departure = |echoes: bool| -> Vec<Instant> {
        let mut bed = bed();
        bed.install(table(17));
        for step in 0..200_u64 {
            bed.board.frame(bed.now, port(1), &udp(306, 16));
            if echoes && step % 2 == 0 {
                bed.board.segment(bed.now, &message(ECHO_REQUEST, &[]));
            }
            bed.wait(Duration::from_micros(230));
        }
        bed.wait(Duration::from_millis(20));
        bed.departures
            .iter()
            .map(|departure| departure.at)
            .collect()
    };
    let (alone, loaded) = (last_departure(false), last_departure(true));
    assert_eq!(alone.len(), 200);
    assert!(
        loaded.len() < 200,
        "{} frames: one beside 115 us of control every 460 us is too much",
        loaded.len()
    );
    let late = (loaded[20] - alone[20]).as_nanos();
    assert!(late > 300_000, "{late} ns");
}

/// Every second segment that gets no reply is acknowledged by a segment of its own.
#[test]
fn segments_without_a_reply_are_acknowledged_in_pairs() {
    let mut bed = bed();
    bed.install(table(1));
    let busy = |bed: &mut Testbed| {
        bed.wait(SETTLE);
        bed.board.segment(bed.now, &message(3, &[]));
        bed.wait(Duration::from_micros(1));
        // The frame waits for the CPU: its departure tells how long the segment kept it.
        let start = bed.now;
        bed.frame(1, &udp(306, 0))[0]
            .at
            .saturating_since(start)
            .as_nanos()
    };
    let times: Vec<u64> = (0..4).map(|_| busy(&mut bed)).collect();
    let (low, high) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(high - low >= 10_000, "{times:?}");
}

/// Fig. 6a: with the unmodified firmware the times of echo requests spike every 1.5 s; without OFCHECKS they do not.
#[test]
fn housekeeping_makes_echo_times_spike() {
    let times = |ofchecks: bool| -> Vec<(u64, u64)> {
        let config = Config {
            ofchecks,
            ..quiet_config()
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        let mut sent = std::collections::VecDeque::new();
        let mut times = Vec::new();
        for step in 0..9_000_u64 {
            bed.board.segment(bed.now, &message(ECHO_REQUEST, &[]));
            sent.push_back(bed.now);
            bed.now += Duration::from_micros(1_000);
            bed.board.advance(bed.now);
            while let Some(output) = bed.board.poll_output() {
                if matches!(output.kind, OutputKind::Controller(_)) {
                    let asked: Instant = sent.pop_front().unwrap();
                    times.push((step, output.at.saturating_since(asked).as_nanos()));
                }
            }
        }
        times
    };
    let slow = |times: &[(u64, u64)]| -> Vec<u64> {
        let mut steps: Vec<u64> = times
            .iter()
            .filter(|(_, time)| *time > 20_000_000)
            .map(|(step, _)| *step)
            .collect();
        steps.dedup_by(|a, b| *a - *b < 500);
        steps
    };
    let stock = slow(&times(true));
    assert!(
        (5..=6).contains(&stock.len()),
        "9 s hold 6 spikes: {stock:?}"
    );
    assert!(
        stock
            .windows(2)
            .all(|pair| (1_400..1_700).contains(&(pair[1] - pair[0]))),
        "{stock:?}"
    );
    assert!(slow(&times(false)).is_empty());
}
