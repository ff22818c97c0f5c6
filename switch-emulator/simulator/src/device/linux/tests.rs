use super::*;
use crate::device::openflow::tests::{add, any, from_port};
use crate::random::Stream;

const FRAME: u64 = 306;

fn profile() -> LinuxSwitchProfile {
    LinuxSwitchProfile::from_toml(BANANA_PI_R1).unwrap()
}

/// Returns the device without interference.
fn quiet() -> LinuxSwitchProfile {
    let mut profile = profile();
    profile.interference.tick_ns = 0;
    profile.interference.stall_gap_ns = u64::MAX / 1_000_000;
    profile
}

/// Sends everything from port 1 to port 2.
fn switch(profile: &LinuxSwitchProfile, seed: u64) -> LinuxSwitch {
    let mut switch = LinuxSwitch::new(profile, &SwitchConfig::default(), seed);
    switch.segment(Instant::ZERO, &add(&from_port(1), 1, &[2]));
    assert_eq!(
        switch.poll_output().unwrap().kind,
        DeviceOutputKind::Connect
    );
    assert_eq!(switch.poll_output(), None);
    switch
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn frame(frame_bytes: u64) -> Vec<u8> {
    vec![0; frame_bytes as usize - 4]
}

/// Returns when each frame departs that comes in on port 1 at the given instants.
fn departures(switch: &mut LinuxSwitch, arrivals_ns: impl Iterator<Item = u64>) -> Vec<u64> {
    for arrival_ns in arrivals_ns {
        switch.frame(at(arrival_ns), 1, frame(FRAME));
    }
    switch.advance(at(100_000_000_000));
    std::iter::from_fn(|| switch.poll_output())
        .map(|output| output.at.as_nanos())
        .collect()
}

fn work_ns(profile: &LinuxSwitchProfile) -> u64 {
    (profile.cpu.base_ps + profile.cpu.per_byte_ps * FRAME + 500) / 1_000
}

#[test]
fn a_lone_frame_needs_the_sum_of_all_parts() {
    let profile = quiet();
    let inner_ns = (8 + FRAME + 4) * 8;
    let expected = 2 * (profile.switch_chip.transit_ns + inner_ns)
        + profile.cpu.interrupt_ns
        + work_ns(&profile);
    let mut switch = switch(&profile, 1);
    assert_eq!(
        departures(&mut switch, [0, 1_000_000].into_iter()),
        [expected, 1_000_000 + expected]
    );
}

#[test]
fn a_busy_cpu_takes_frame_after_frame_and_pauses_between_polls() {
    let profile = quiet();
    let mut switch = switch(&profile, 1);
    let out = departures(&mut switch, (0..129).map(|index| index * 3_000));
    let gaps: Vec<u64> = out.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (index, gap_ns) in gaps.iter().enumerate() {
        let ended = matches!(index + 1, 64 | 128);
        let pause_ns = if ended { profile.cpu.repoll_ns } else { 0 };
        assert_eq!(
            *gap_ns,
            work_ns(&profile) + pause_ns,
            "after frame {}",
            index + 1
        );
    }
}

#[test]
fn what_the_ring_does_not_hold_is_lost() {
    let mut profile = quiet();
    profile.cpu.ring_frames = 3;
    let mut switch = switch(&profile, 1);
    let out = departures(&mut switch, (0..5).map(|index| index * 2_720));
    // All five arrive before the first is done, 10 us of waiting and 10.9 us of work after its arrival; it is taken
    // when the fourth has arrived, which finds the ring full.
    assert_eq!(out.len(), 4);
    let counters = switch.counters();
    assert_eq!(
        (counters.received, counters.processed, counters.forwarded),
        (5, 4, 4)
    );
    assert_eq!((counters.dropped_buffer, counters.ring_units_peak), (1, 3));
}

#[test]
fn frames_that_are_kept_back_until_they_are_due_change_nothing() {
    let mut profile = profile();
    profile.cpu.ring_frames = 8;
    let mut random = Stream::new(3, 0);
    let mut now_ns = 0;
    let arrivals: Vec<(u64, u8)> = (0..20_000_u32)
        .map(|index| {
            // Now and then the CPU has time to become idle.
            now_ns += random.exponential_ns(if index % 200 == 0 { 200_000.0 } else { 4_000.0 });
            (now_ns, (index % 5) as u8 + 1)
        })
        .collect();
    let mut at_once = switch(&profile, 5);
    at_once.segment(at(0), &add(&any(), 0, &[5]));
    let mut outputs = Vec::new();
    for &(at_ns, port) in &arrivals {
        at_once.frame(at(at_ns), port, frame(FRAME));
    }
    at_once.advance(at(now_ns + 1_000_000_000));
    outputs.extend(std::iter::from_fn(|| at_once.poll_output()));

    let mut when_due = switch(&profile, 5);
    when_due.segment(at(0), &add(&any(), 0, &[5]));
    let (mut kept, mut kept_outputs, mut most_kept) = (VecDeque::new(), Vec::new(), 0);
    let mut coming = arrivals.iter().copied().peekable();
    while !kept.is_empty() || coming.peek().is_some() {
        let first = *kept.front().or(coming.peek()).unwrap();
        let due = when_due.deliver_by(at(first.0)).as_nanos();
        while let Some(next) = coming.next_if(|next| next.0 <= due) {
            kept.push_back(next);
        }
        most_kept = most_kept.max(kept.len());
        for (at_ns, port) in kept.drain(..) {
            when_due.frame(at(at_ns), port, frame(FRAME));
        }
        when_due.advance(at(due));
        kept_outputs.extend(std::iter::from_fn(|| when_due.poll_output()));
    }
    when_due.advance(at(now_ns + 1_000_000_000));
    kept_outputs.extend(std::iter::from_fn(|| when_due.poll_output()));
    assert_eq!(kept_outputs, outputs);
    assert_eq!(when_due.counters(), at_once.counters());
    assert!(at_once.counters().dropped_buffer > 0 && most_kept > 2);
}

#[test]
fn frames_of_all_ports_share_the_link_to_the_cpu() {
    let profile = quiet();
    let mut switch = switch(&profile, 1);
    switch.segment(at(0), &add(&any(), 0, &[5]));
    // Five ports at line rate bring five times what the link carries; the chip keeps 128 kB of it.
    for round in 0..500 {
        for port in 1..=5 {
            switch.frame(at(round * (8 + FRAME + 12) * 8), port, frame(FRAME));
        }
    }
    switch.advance(at(1_000_000_000));
    let counters = switch.counters();
    let carried = counters.received - counters.dropped_switch;
    let kept = profile.switch_chip.buffer_bytes / (FRAME + 24);
    let sent_meanwhile = 500 * (FRAME + 20) / (FRAME + 24);
    assert!(carried.abs_diff(kept + sent_meanwhile) <= 3, "{carried}");
    assert_eq!(carried, counters.processed + counters.dropped_buffer);
}

#[test]
fn copies_leave_one_after_the_other() {
    let profile = quiet();
    let mut switch = LinuxSwitch::new(&profile, &SwitchConfig::default(), 1);
    switch.segment(at(0), &add(&from_port(1), 1, &[0xfffb]));
    switch.poll_output();
    let out = departures(&mut switch, [0].into_iter());
    let slot_ns = (8 + FRAME + 4 + 12) * 8;
    let first = out[0];
    assert_eq!(out, [0, 1, 2, 3].map(|copy| first + copy * slot_ns));
    assert_eq!(switch.counters().forwarded, 4);
}

#[test]
fn a_full_transmit_queue_loses_copies() {
    let mut profile = quiet();
    profile.cpu.transmit_frames = 2;
    let mut switch = LinuxSwitch::new(&profile, &SwitchConfig::default(), 1);
    switch.segment(at(0), &add(&from_port(1), 1, &[0xfffb]));
    switch.poll_output();
    assert_eq!(departures(&mut switch, [0].into_iter()).len(), 2);
    assert_eq!(switch.counters().dropped_transmit, 2);
}

#[test]
fn interference_makes_delays_differ_and_the_seed_repeats_them() {
    let run = |seed| {
        let mut switch = switch(&profile(), seed);
        let arrivals = || (0..50_000).map(|index| index * 40_000);
        let out = departures(&mut switch, arrivals());
        out.iter()
            .zip(arrivals())
            .map(|(out, arrival)| out - arrival)
            .collect::<Vec<_>>()
    };
    let delays = run(1);
    assert_eq!(delays, run(1));
    assert_ne!(delays, run(2));
    let least = delays.iter().min().unwrap();
    let most = delays.iter().max().unwrap();
    // 200 stalls in 2 s: the longest of so many is some thirty times the shortest.
    assert!(most - least > 100_000, "{least} .. {most}");
}
