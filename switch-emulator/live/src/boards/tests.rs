use zodiac_firmware::{Config, Duration, Profile, ZODIAC_FX};

use super::*;

const TIMING: LinkTiming = LinkTiming {
    rate_bps: 100_000_000,
    preamble_bytes: 8,
    gap_bytes: 12,
};
const HELLO: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).unwrap()
}

fn address(board: usize, number: u8) -> PortAddress {
    PortAddress {
        board,
        port: port(number),
    }
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

fn board() -> (Board, LinkTiming) {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    let config = Config {
        loop_phase_ns: Some(0),
        ofchecks: false,
        ..Config::default()
    };
    (Board::new(&profile, config, 1).unwrap(), TIMING)
}

/// Returns a rule to be added (`ofp_flow_mod`, section 5.3.3): IPv4 UDP frames leave by `output`.
fn forward_udp(output: u8) -> Vec<u8> {
    let mut bytes = vec![1, 14, 0, 80, 0, 0, 0, 2];
    let exact: u32 = 0x003f_ffff & !(1 << 4) & !(1 << 5); // all wildcards but dl_type and nw_proto
    bytes.extend(exact.to_be_bytes());
    let mut fields = [0; 36];
    fields[18..20].copy_from_slice(&[0x08, 0x00]);
    fields[21] = 17;
    bytes.extend(fields);
    bytes.extend([0; 8]); // cookie
    bytes.extend([0; 6]); // command ADD, timeouts
    bytes.extend([0, 100]); // priority
    bytes.extend([0xff; 4]); // no buffer
    bytes.extend([0xff, 0xff, 0, 0]); // out_port, flags
    bytes.extend([0, 0, 0, 8, 0, output, 0, 0]);
    assert_eq!(bytes.len(), 80);
    bytes
}

fn udp_frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.resize(bytes, 0);
    frame[16..18].copy_from_slice(&(bytes as u16 - 14).to_be_bytes());
    frame[23] = 17;
    frame
}

#[test]
fn a_board_that_has_had_power_for_the_longest_time_allowed_has_not_looked_for_its_controller() {
    let mut boards = Boards::new(vec![board()], &[]);
    let mut connects = |until_ms: u64| {
        let mut connects = 0;
        while boards.step(at(until_ms * 1_000), |_, output| {
            connects += u32::from(matches!(output.kind, OutputKind::Connect));
        }) {}
        connects
    };
    assert_eq!(connects(crate::config::LONGEST_POWERED_MS), 0);
    assert_eq!(connects(2_100), 1);
}

/// Boards with a session and a rule each, running since 10 ms.
fn forwarding(rules: &[u8], links: &[[PortAddress; 2]]) -> Boards {
    let mut boards = Boards::new(rules.iter().map(|_| board()).collect(), links);
    for (index, &output) in rules.iter().enumerate() {
        boards.connected(index, at(1_000));
        boards.segment(index, at(2_000), &HELLO);
        boards.segment(index, at(3_000), &forward_udp(output));
    }
    boards.run_until(at(10_000), |_, _| {});
    boards
}

fn frames(boards: &mut Boards, until: Instant) -> Vec<(usize, Instant, PortMask)> {
    let mut frames = Vec::new();
    boards.run_until(until, |board, Output { at, kind }| {
        if let OutputKind::Frame { ports, .. } = kind {
            frames.push((board, at, ports));
        }
    });
    frames
}

#[test]
fn a_frame_waits_for_its_arrival() {
    let mut boards = forwarding(&[2], &[]);
    boards.arrive(address(0, 1), at(20_000), udp_frame(302));
    assert_eq!(frames(&mut boards, at(19_999)), []);
    let seen = frames(&mut boards, at(30_000));
    let [(0, departure, ports)] = seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(ports, [port(2)].into_iter().collect());
    assert!(
        departure > at(20_050) && departure < at(20_200),
        "{departure}"
    );
}

#[test]
fn late_processing_does_not_change_departures() {
    let arrivals = [(1, 20_000), (2, 20_010), (1, 20_500)];
    let departures = |turns: &[u64]| {
        let mut boards = forwarding(&[3], &[]);
        for (number, micros) in arrivals {
            boards.arrive(address(0, number), at(micros), udp_frame(302));
        }
        turns
            .iter()
            .flat_map(|&micros| frames(&mut boards, at(micros)))
            .collect::<Vec<_>>()
    };
    let prompt: Vec<u64> = (20_000..22_000).collect();
    assert_eq!(departures(&prompt).len(), 3);
    assert_eq!(departures(&prompt), departures(&[90_000]));
}

#[test]
fn an_internal_link_adds_exactly_its_wire_time() {
    let link = [address(0, 3), address(1, 3)];
    // A single board tells when the frame leaves the first of two.
    let mut alone = forwarding(&[3], &[]);
    alone.arrive(address(0, 1), at(20_000), udp_frame(302));
    let between = frames(&mut alone, at(30_000))[0].1;
    let mut second = forwarding(&[1], &[]);
    second.arrive(address(0, 3), between + TIMING.wire(302), udp_frame(302));
    let expected = frames(&mut second, at(30_000))[0].1;

    let mut both = forwarding(&[3, 1], &[link]);
    both.arrive(address(0, 1), at(20_000), udp_frame(302));
    // All at once, long after: as after a stall of the host.
    let out = frames(&mut both, at(90_000));
    assert_eq!(out, [(1, expected, [port(1)].into_iter().collect())]);
    assert!(expected - between > Duration::from_micros(75));
    assert_eq!(
        (both.counters(0).forwarded, both.counters(1).received),
        (1, 1)
    );
}

#[test]
fn an_arrival_in_the_past_counts_as_now() {
    let mut boards = forwarding(&[2], &[]);
    boards.run_until(at(50_000), |_, _| {});
    boards.reset(0, at(50_000));
    boards.connected(0, at(50_001));
    boards.arrive(address(0, 1), at(40_000), udp_frame(302));
    boards.run_until(at(60_000), |_, _| {});
    assert_eq!(boards.counters(0).received, 1);
}

/// Returns when a board, silent for three ticks, closes the session behind the one that ended like this.
fn close_of_the_next_session(end: fn(&mut Boards, usize, Instant)) -> Option<Instant> {
    let (_, timing) = board();
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    let alone = Board::new(&profile, Config::default(), 1).unwrap();
    let mut boards = Boards::new(vec![(alone, timing)], &[]);
    let mut closed = None;
    boards.connected(0, at(1_000));
    boards.segment(0, at(2_000), &HELLO);
    boards.run_until(at(1_600_000), |_, _| {});
    end(&mut boards, 0, at(1_600_000));
    boards.connected(0, at(1_900_000));
    boards.run_until(at(9_000_000), |_, output| {
        if matches!(output.kind, OutputKind::Close) {
            closed.get_or_insert(output.at);
        }
    });
    closed
}

/// Quirk 200.
#[test]
fn the_end_of_the_controller_s_half_is_a_sign_of_life_and_a_reset_is_none() {
    let finished = close_of_the_next_session(Boards::finished).unwrap();
    let reset = close_of_the_next_session(Boards::reset).unwrap();
    assert!(finished > reset);
}
