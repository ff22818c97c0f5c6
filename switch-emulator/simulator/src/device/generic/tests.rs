use super::*;
use crate::device::openflow::tests::{add, add_enqueue, from_port};
use crate::queue::{ClassConfig, HtbConfig, SchedulerConfig};

const FRAME: u64 = 1_518;
const LATENCY_NS: u64 = 20_000;

fn profile() -> GenericSwitchProfile {
    GenericSwitchProfile::from_toml(&format!(
        r#"
        format = 1
        kind = "generic-switch"
        name = "test"
        title = "Test"
        ports = {{ count = {{ value = 3, source = "assumption" }}, link_rate_bps = {{ value = 1_000_000_000, source = "assumption" }} }}
        table = {{ entries = {{ value = 8, source = "assumption" }} }}
        forwarding = {{ latency_ns = {{ value = {LATENCY_NS}, source = "assumption" }} }}
        "#
    ))
    .unwrap()
}

fn with_htb(port: u8, classes: Vec<ClassConfig>) -> SwitchConfig {
    let htb = SchedulerConfig::Htb(HtbConfig {
        classes,
        group_frames: 1,
        timer_ns: 0,
    });
    SwitchConfig {
        schedulers: [(port, htb)].into(),
        ..SwitchConfig::default()
    }
}

fn class(queue: u32, rate_bps: u64) -> ClassConfig {
    ClassConfig {
        name: format!("queue{queue}"),
        parent: None,
        queue,
        rate_bps,
        ceil_bps: rate_bps,
        burst_bytes: 1_514,
        cburst_bytes: 1_514,
        quantum_bytes: 1_514,
        priority: 0,
        limit_frames: 1_000,
        drops: None,
    }
}

fn switch(config: &SwitchConfig, flow_mods: &[Vec<u8>]) -> GenericSwitch {
    let mut switch = GenericSwitch::new(&profile(), config, 1).unwrap();
    for message in flow_mods {
        switch.segment(Instant::ZERO, message);
    }
    assert_eq!(
        switch.poll_output().unwrap().kind,
        DeviceOutputKind::Connect
    );
    assert_eq!(switch.poll_output(), None);
    switch
}

fn send(switch: &mut GenericSwitch, at_ns: u64, port: u8, frames: u64) {
    for _ in 0..frames {
        let data = vec![port; FRAME as usize - 4];
        switch.frame(Instant::from_nanos(at_ns), port, data);
    }
}

/// Instant, port, and where it came in, of everything that departs.
fn departures(switch: &mut GenericSwitch) -> Vec<(u64, u8, u8)> {
    switch.advance(Instant::from_nanos(10_000_000_000));
    let mut found = Vec::new();
    while let Some(output) = switch.poll_output() {
        let DeviceOutputKind::Frame { ports, data } = output.kind else {
            panic!("no frame: {output:?}");
        };
        let at_ns = output.at.as_nanos();
        found.extend(ports.iter().map(|port| (at_ns, port, data[0])));
    }
    found
}

#[test]
fn without_queues_frames_leave_after_the_latency_as_fast_as_the_wire() {
    let mut switch = switch(&SwitchConfig::default(), &[add(&from_port(1), 1, &[2])]);
    send(&mut switch, 1_000, 1, 3);
    let slot_ns = (8 + FRAME + 12) * 8;
    let first_ns = 1_000 + LATENCY_NS;
    assert_eq!(
        departures(&mut switch),
        [0, 1, 2].map(|place| (first_ns + place * slot_ns, 2, 1))
    );
    assert_eq!(switch.poll_at(), None);
    assert_eq!(switch.counters().forwarded, 3);
}

#[test]
fn an_entry_chooses_the_queue_and_each_queue_its_rate() {
    let config = with_htb(3, vec![class(0, 8_000_000), class(1, 80_000_000)]);
    let entries = [
        add_enqueue(&from_port(1), 1, 3, 1),
        add_enqueue(&from_port(2), 1, 3, 0),
    ];
    let mut switch = switch(&config, &entries);
    send(&mut switch, 0, 1, 100);
    send(&mut switch, 0, 2, 100);
    let found = departures(&mut switch);
    let last_ns = |from: u8| {
        let of = found.iter().filter(|(.., its)| *its == from);
        of.map(|(at_ns, ..)| *at_ns).max().unwrap()
    };
    // The last of 100 waits for 98 that its bucket did not hold.
    for (from, rate_bps) in [(1, 80_000_000), (2, 8_000_000)] {
        let expected_ns = 98 * 1_514 * 8_000_000_000 / rate_bps;
        let waited_ns = last_ns(from) - LATENCY_NS;
        assert!(
            waited_ns.abs_diff(expected_ns) < 60_000,
            "{waited_ns} {expected_ns}"
        );
    }
}

#[test]
fn what_is_lost_in_a_queue_is_counted() {
    let mut small = class(0, 8_000);
    small.limit_frames = 1;
    let mut switch = switch(&with_htb(2, vec![small]), &[add(&from_port(1), 1, &[2])]);
    send(&mut switch, 0, 1, 9);
    departures(&mut switch);
    let counters = switch.counters();
    // Two leave at once, for they find the level at zero or above; one waits.
    assert_eq!(counters.received, 9);
    assert_eq!(
        counters.forwarded + counters.dropped_transmit,
        counters.received
    );
    assert!(counters.dropped_transmit >= 6, "{counters:?}");
}

#[test]
fn wrong_settings_say_where_and_how_to_mend_them() {
    let config = with_htb(4, vec![class(0, 8_000)]);
    assert_eq!(
        GenericSwitch::new(&profile(), &config, 1).unwrap_err(),
        "schedulers: there is no port 4: choose 1 to 3"
    );
    let config = with_htb(2, vec![]);
    assert_eq!(
        GenericSwitch::new(&profile(), &config, 1).unwrap_err(),
        "schedulers: port 2: classes: there is none: add one"
    );
}

const CHIP: &str = r#"
format = 1
kind = "generic-switch"
name = "chip"
title = "Chip"
ports = { count = 3, link_rate_bps = 1_000_000_000 }

[table]
entries = 8

[[table.rules]]
matches = ["port"]
actions = ["enqueue"]
path = "software"
source = "assumption"

[pipeline]
spread_ns = 0
latency = [{ frame_bytes = 64, latency_ns = 3_000 }]

[software]
entries = 8
waiting_frames = 1
least_ns = 1_000_000
most_ns = 2_000_000
exponent = 1.5

[priorities]
queues = 2
limit_frames = 100
check_ns = 0
"#;

fn chip(text: &str, config: &SwitchConfig, flow_mods: &[Vec<u8>]) -> GenericSwitch {
    let profile = GenericSwitchProfile::from_toml(text).unwrap();
    let mut switch = GenericSwitch::new(&profile, config, 1).unwrap();
    for message in flow_mods {
        switch.segment(Instant::ZERO, message);
    }
    assert_eq!(
        switch.poll_output().unwrap().kind,
        DeviceOutputKind::Connect
    );
    assert_eq!(switch.poll_output(), None);
    switch
}

#[test]
fn a_rule_decides_who_forwards() {
    let entries = [
        add(&from_port(1), 1, &[3]),
        add_enqueue(&from_port(2), 1, 3, 1),
    ];
    let mut switch = chip(CHIP, &SwitchConfig::default(), &entries);
    send(&mut switch, 0, 1, 1);
    send(&mut switch, 0, 2, 4);
    let found = departures(&mut switch);
    assert_eq!(found[0], (3_000, 3, 1));
    // One is worked on, one waits; the others find no room.
    assert_eq!(found.len(), 3);
    assert!((1_000_000..=2_000_000).contains(&found[1].0), "{found:?}");
    assert!(found[2].0 >= found[1].0 + 1_000_000);
    assert_eq!(switch.counters().dropped_buffer, 2);
}

#[test]
fn a_slow_look_up_loses_what_finds_no_room() {
    let text = format!("{CHIP}\n[lookup]\nframes_per_s = 1_000\nwaiting_frames = 2\n");
    let entries = [add(&from_port(1), 1, &[3])];
    let mut switch = chip(&text, &SwitchConfig::default(), &entries);
    send(&mut switch, 0, 1, 5);
    let instants: Vec<_> = departures(&mut switch).iter().map(|one| one.0).collect();
    assert_eq!(instants, [3_000, 1_003_000, 2_003_000]);
    assert_eq!(switch.counters().dropped_switch, 2);
}

#[test]
fn queues_share_a_memory_if_there_is_one() {
    let text = format!("{CHIP}\n[buffer]\npool_bytes = 15_140\nfactor_percent = 100\n");
    let entries = [add(&from_port(1), 1, &[3])];
    let mut switch = chip(&text, &SwitchConfig::default(), &entries);
    send(&mut switch, 0, 1, 20);
    // All come at once: five of them fill half of the memory, which is as much as is free then.
    assert_eq!(departures(&mut switch).len(), 5);
    assert_eq!(switch.counters().dropped_transmit, 15);
}

#[test]
fn reserved_bytes_are_not_shared() {
    let ports = GenericSwitchProfile::from_toml(CHIP).unwrap().ports.count;
    let text = format!(
        "{CHIP}\n[buffer]\npool_bytes = {}\nfactor_percent = 100\nreserved_bytes = 4_542\n",
        u64::from(ports) * 2 * 4_542
    );
    let entries = [add(&from_port(1), 1, &[3])];
    let mut switch = chip(&text, &SwitchConfig::default(), &entries);
    send(&mut switch, 0, 1, 20);
    // Three frames are what is reserved, and that is the whole memory.
    assert_eq!(departures(&mut switch).len(), 3);
    let error = GenericSwitchProfile::from_toml(&text.replace("= 4_542", "= 4_543")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("profile, buffer.reserved_bytes: all queues"),
        "{error}"
    );
}

#[test]
fn ports_can_have_a_lower_rate() {
    let config = SwitchConfig {
        link_rate_bps: Some(100_000_000),
        ..SwitchConfig::default()
    };
    let mut switch = chip(CHIP, &config, &[add(&from_port(1), 1, &[3])]);
    send(&mut switch, 0, 1, 2);
    let found = departures(&mut switch);
    assert_eq!(found[1].0 - found[0].0, (8 + FRAME + 12) * 80);
}

#[test]
fn each_port_sends_at_the_rate_of_its_cable() {
    let both = [add(&from_port(1), 1, &[2, 3])];
    let mut switch = chip(CHIP, &SwitchConfig::default(), &both);
    switch.set_link_rate(3, 100_000_000);
    send(&mut switch, 0, 1, 2);
    let found = departures(&mut switch);
    let gap_ns = |port: u8| {
        let at_ns: Vec<u64> = found
            .iter()
            .filter(|frame| frame.1 == port)
            .map(|frame| frame.0)
            .collect();
        at_ns[1] - at_ns[0]
    };
    assert_eq!(gap_ns(2), (8 + FRAME + 12) * 8);
    assert_eq!(gap_ns(3), (8 + FRAME + 12) * 80);
}

#[test]
fn a_profile_of_parts_that_do_not_fit_is_refused_in_one_line() {
    for (old, new, expected) in [
        ("[software]", "[wrong]", "unknown field `wrong`"),
        (
            "[pipeline]\nspread_ns = 0\nlatency = [{ frame_bytes = 64, latency_ns = 3_000 }]",
            "",
            "profile, forwarding: give either [forwarding], a fixed time, or [pipeline]",
        ),
        (
            "[pipeline]\nspread_ns = 0\nlatency = [{ frame_bytes = 64, latency_ns = 3_000 }]",
            "[forwarding]\nlatency_ns = 3_000",
            "profile, table: rules and misses_tagged are of a chip's table: add [pipeline], or leave them out",
        ),
        (
            "latency = [{ frame_bytes = 64, latency_ns = 3_000 }]",
            "latency = []",
            "profile, pipeline.latency: give at least one length",
        ),
        (
            "queues = 2",
            "queues = 0",
            "profile, priorities: choose 1 to 64 queues",
        ),
        (
            "[priorities]",
            "[server]\nrate_bps = 1_000_000\n[priorities]",
            "profile, server: give either buffer_bytes or buffer_frames",
        ),
        (
            "[priorities]",
            "[server]\nrate_bps = 999\nbuffer_frames = 1\n[priorities]",
            "profile, server.rate_bps: choose 1000",
        ),
        (
            "least_ns = 1_000_000",
            "least_ns = 0",
            "profile, software.least_ns: choose 1 ns to most_ns",
        ),
    ] {
        assert!(CHIP.contains(old), "{old}");
        let error = GenericSwitchProfile::from_toml(&CHIP.replace(old, new)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
    let cut_through = [CHIP, "[cut_through]\nheader_bytes = 64\n"].concat();
    let error = GenericSwitchProfile::from_toml(&cut_through).unwrap_err();
    assert!(error.to_string().contains("whole frames"), "{error}");
    let begin = CHIP.find("[software]").unwrap();
    let end = CHIP.find("[priorities]").unwrap();
    let without = [&CHIP[..begin], &CHIP[end..]].concat();
    let error = GenericSwitchProfile::from_toml(&without).unwrap_err();
    assert!(error.to_string().contains("add [software]"), "{error}");
}

#[test]
fn a_server_forwards_all_ports_together_and_then_the_latency_passes() {
    let text = r#"
        format = 1
        kind = "generic-switch"
        name = "simple"
        title = "Simple"
        ports = { count = 3, link_rate_bps = 1_000_000_000 }
        table = { entries = 8 }
        server = { rate_bps = 100_000_000, buffer_frames = 2 }
        forwarding = { latency_ns = 20_000 }
        "#;
    let profile = GenericSwitchProfile::from_toml(text).unwrap();
    let mut switch = GenericSwitch::new(&profile, &SwitchConfig::default(), 1).unwrap();
    for message in [add(&from_port(1), 1, &[3]), add(&from_port(2), 1, &[3])] {
        switch.segment(Instant::ZERO, &message);
    }
    while switch.poll_output().is_some() {}
    send(&mut switch, 1_000, 1, 1);
    send(&mut switch, 1_000, 2, 2);
    let work_ns = FRAME * 80;
    let found = departures(&mut switch);
    let first_ns = 1_000 + work_ns + LATENCY_NS;
    assert_eq!(found, [(first_ns, 3, 1), (first_ns + work_ns, 3, 2)]);
    assert_eq!(switch.counters().dropped_switch, 1);
}
