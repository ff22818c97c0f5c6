use super::*;
use crate::config::Config;
use crate::settings::Settings;

const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
const ALL: [u8; 6] = [0xff; 6];

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).unwrap()
}

fn ports(numbers: &[u8]) -> BridgePorts {
    BridgePorts {
        ports: numbers.iter().map(|number| port(*number)).collect(),
        cpu: false,
    }
}

/// Returns ports 1 to 3 in VLAN 100, which is the agent's, and port 4 in VLAN 200, which is native.
fn factory() -> LearningSwitch {
    let settings = Settings::of(&Config::default());
    LearningSwitch::new(&settings.vlans, settings.mac)
}

fn native(numbers: &[u8]) -> LearningSwitch {
    let native_ports = numbers.iter().map(|number| port(*number)).collect();
    let settings = Settings::of(&Config {
        openflow_ports: Vec::new(),
        native_ports,
        ..Config::default()
    });
    LearningSwitch::new(&settings.vlans, settings.mac)
}

fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    let mut frame = [&to[..], &from[..], &[0x08, 0x00]].concat();
    frame.resize(60, 0);
    frame
}

fn tagged(to: [u8; 6], from: [u8; 6], vlan: u16) -> Vec<u8> {
    let mut frame = frame(to, from);
    frame[12..14].copy_from_slice(&TAG_TYPE);
    frame[14..16].copy_from_slice(&vlan.to_be_bytes());
    frame
}

fn seconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(1_000 * count)
}

#[test]
fn an_unknown_address_is_sought_on_all_ports_of_the_vlan_and_a_known_one_on_its_own() {
    let mut switch = factory();
    let now = Instant::ZERO;
    assert_eq!(switch.pass(now, port(1), &frame(B, A)), ports(&[2, 3]));
    assert_eq!(switch.pass(now, port(2), &frame(A, B)), ports(&[1]));
    assert_eq!(switch.pass(now, port(1), &frame(B, A)), ports(&[2]));
    assert_eq!(switch.pass(now, port(1), &frame(ALL, A)), ports(&[2, 3]));
    // It is on the side that the frame came from.
    assert_eq!(switch.pass(now, port(2), &frame(B, A)), ports(&[]));
}

#[test]
fn a_station_that_has_moved_is_found_and_one_that_was_silent_is_forgotten() {
    let mut switch = factory();
    switch.pass(seconds(0), port(1), &frame(ALL, A));
    switch.pass(seconds(1), port(3), &frame(ALL, A));
    assert_eq!(switch.pass(seconds(2), port(2), &frame(A, B)), ports(&[3]));
    assert_eq!(
        switch.pass(seconds(301), port(2), &frame(A, B)),
        ports(&[3])
    );
    assert_eq!(
        switch.pass(seconds(302), port(2), &frame(A, B)),
        ports(&[1, 3])
    );
}

#[test]
fn vlans_are_apart_and_a_tag_names_one() {
    let mut switch = factory();
    let now = Instant::ZERO;
    assert_eq!(
        switch.pass(now, port(1), &tagged(B, A, 100)),
        ports(&[2, 3])
    );
    assert_eq!(switch.pass(now, port(1), &tagged(B, A, 0)), ports(&[2, 3]));
    let to_native = BridgePorts {
        ports: ports(&[4]).ports,
        cpu: true,
    };
    assert_eq!(switch.pass(now, port(1), &tagged(B, A, 200)), to_native);
    // The chip knows no such VLAN, and does not learn from the frame.
    assert_eq!(switch.pass(now, port(2), &tagged(A, B, 7)), ports(&[]));
    assert_eq!(switch.pass(now, port(1), &frame(B, A)), ports(&[2, 3]));
}

#[test]
fn the_cpu_belongs_to_native_vlans_only() {
    let board = Config::default().mac.0;
    let mut switch = native(&[3, 4]);
    let now = Instant::ZERO;
    let cpu = |numbers| BridgePorts {
        cpu: true,
        ..ports(numbers)
    };
    assert_eq!(switch.pass(now, port(4), &frame(board, A)), cpu(&[]));
    assert_eq!(switch.pass(now, port(4), &frame(ALL, A)), cpu(&[3]));
    assert_eq!(switch.pass(now, port(3), &frame(A, B)), ports(&[4]));
    assert_eq!(switch.pass(now, port(1), &frame(ALL, A)), ports(&[]));
    assert_eq!(
        factory().pass(now, port(1), &frame(board, A)),
        ports(&[2, 3])
    );
}

#[test]
fn a_full_table_learns_no_more_until_something_is_forgotten() {
    let mut switch = factory();
    let station = |number: u16| {
        let [high, low] = number.to_be_bytes();
        [2, 1, 0, 0, high, low]
    };
    for number in 0..ADDRESSES as u16 {
        switch.pass(seconds(0), port(1), &frame(ALL, station(number)));
    }
    switch.pass(seconds(1), port(3), &frame(ALL, B));
    assert_eq!(
        switch.pass(seconds(1), port(2), &frame(B, A)),
        ports(&[1, 3])
    );
    switch.pass(seconds(301), port(3), &frame(ALL, B));
    assert_eq!(
        switch.pass(seconds(301), port(2), &frame(B, A)),
        ports(&[3])
    );
}

#[test]
fn a_group_is_no_station() {
    let mut switch = factory();
    let group = [3, 0, 0, 0, 0, 1];
    switch.pass(Instant::ZERO, port(1), &frame(ALL, group));
    let to_group = switch.pass(Instant::ZERO, port(2), &frame(group, B));
    assert_eq!(to_group, ports(&[1, 3]));
}
