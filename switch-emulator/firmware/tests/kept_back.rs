//! A driver that keeps frames back until the board has something to do with them, as the simulator does.

mod testbed;

use std::collections::VecDeque;

use proptest::prelude::*;
use testbed::{everything, message, output, port, FlowMod};
use zodiac_firmware::{
    is_pause_frame, Board, Config, Duration, Instant, KeptFrame, Output, OutputKind, Passage,
    PortMask, Profile, Quirks, ZODIAC_FX,
};

/// What reaches the board, in order of time.
#[derive(Clone, Debug)]
enum Door {
    Frame(u8, Vec<u8>),
    Segment(Vec<u8>),
    Link(u8, bool),
}

fn pause(quanta: u16) -> Vec<u8> {
    let mut frame = vec![
        0x01, 0x80, 0xc2, 0, 0, 1, 2, 2, 2, 2, 2, 2, 0x88, 0x08, 0, 1,
    ];
    frame.extend(quanta.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// A UDP packet in a frame of this length, as far as it fits.
fn packet(length: usize) -> Vec<u8> {
    let mut frame = testbed::udp(length.max(60), 0);
    frame.truncate(length);
    frame
}

fn door() -> impl Strategy<Value = Door> {
    let frame = prop_oneof![
        20 => prop::sample::select(vec![60_usize, 302, 302, 398]).prop_map(packet),
        3 => (60_usize..400).prop_map(packet),
        2 => (10_usize..1_540).prop_map(packet),
        1 => (0_u16..200).prop_map(pause),
    ];
    prop_oneof![
        30 => (1_u8..=4, frame).prop_map(|(number, frame)| Door::Frame(number, frame)),
        1 => prop::sample::select(vec![message(18, &[]), message(2, &[]), message(99, &[])])
            .prop_map(Door::Segment),
        1 => (1_u8..=4, any::<bool>()).prop_map(|(number, up)| Door::Link(number, up)),
    ]
}

fn board(config: &Config, seed: u64) -> (Board, Instant) {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    let mut board = Board::new(&profile, config.clone(), seed).unwrap();
    let mut now = Instant::ZERO;
    board.connected(now);
    let entry = FlowMod::add(everything(), 1, output(3)).message();
    for segment in [message(0, &[]), message(5, &[]), entry] {
        now += Duration::from_millis(10);
        board.segment(now, &segment);
    }
    now += Duration::from_millis(10);
    board.advance(now);
    while board.poll_output().is_some() {}
    (board, now)
}

/// Lets a board do what is due until `until`, and takes what it gives.
fn work(board: &mut Board, until: Instant, outputs: &mut Vec<Output>) {
    while let Some(at) = board.poll_at().filter(|at| *at <= until) {
        board.advance(at);
        outputs.extend(std::iter::from_fn(|| board.poll_output()));
    }
}

/// Gives the frames as late as the board allows.
struct Keeping {
    board: Board,
    kept: VecDeque<(Instant, u8, Vec<u8>)>,
    outputs: Vec<Output>,
    /// Frames that came later than they arrived.
    late: u64,
    /// Whether frames pass in one step where they can, how many of the first have arrived and wait since the last did so, and
    /// how many have.
    passes: bool,
    waiting: usize,
    passed: u64,
}

fn kept((at, number, frame): &(Instant, u8, Vec<u8>)) -> KeptFrame {
    KeptFrame {
        arrival: *at,
        port: port(*number),
        bytes: frame.len(),
        is_pause: is_pause_frame(frame),
    }
}

impl Keeping {
    fn new(board: Board, passes: bool) -> Self {
        Self {
            board,
            kept: VecDeque::new(),
            outputs: Vec::new(),
            late: 0,
            passes,
            waiting: 0,
            passed: 0,
        }
    }

    fn give(&mut self, now: Instant) {
        self.waiting = 0;
        while let Some((at, number, frame)) = self.kept.pop_front() {
            if at > now {
                return self.kept.push_front((at, number, frame));
            }
            self.late += u64::from(at < now);
            self.board.frame_owned(at, port(number), frame);
            self.outputs
                .extend(std::iter::from_fn(|| self.board.poll_output()));
        }
    }

    fn work(&mut self, until: Instant) {
        loop {
            let due = match self.kept.front() {
                Some((at, _, frame)) if is_pause_frame(frame) => *at,
                Some((at, number, frame)) => self.board.due_with(*at, port(*number), frame.len()),
                None => return work(&mut self.board, until, &mut self.outputs),
            };
            let due = due.min(self.board.poll_at().unwrap());
            let behind_waiting = self.kept.get(self.waiting).map(kept);
            let behind_waiting = behind_waiting.filter(|_| self.waiting > 0);
            let urgent = behind_waiting.filter(|frame| !self.board.keeps(frame));
            let due = urgent.map_or(due, |frame| due.min(frame.arrival));
            if due > until {
                return;
            }
            if self.passes && self.pass_on(due) {
                continue;
            }
            self.give(due);
            self.board.advance(due);
            self.outputs
                .extend(std::iter::from_fn(|| self.board.poll_output()));
        }
    }
}

impl Keeping {
    /// Lets the first frame pass in one step if it can.
    fn pass_on(&mut self, now: Instant) -> bool {
        let arrived = self.kept.iter().take_while(|(at, ..)| *at <= now).count();
        let Some(first) = self.kept.front().filter(|_| arrived > 0) else {
            return false;
        };
        let behind: Vec<_> = self.kept.range(1..arrived).map(kept).collect();
        let Some(passage) = self.board.pass_on(now, &kept(first), &first.2, &behind) else {
            return false;
        };
        let (_, _, data) = self.kept.pop_front().unwrap();
        if let Passage::Departs(at, port) = passage {
            let ports = PortMask::from_bits(1 << (port.get() - 1));
            let kind = OutputKind::Frame { ports, data };
            self.outputs.push(Output { at, kind });
        }
        self.waiting = arrived - 1;
        self.passed += 1;
        true
    }
}

/// Outputs in the order of their instants: what an arrival and a pass give at one instant has no order.
fn in_order(mut outputs: Vec<Output>) -> Vec<String> {
    outputs.retain(|output| !matches!(output.kind, OutputKind::Connect));
    let mut texts: Vec<_> = outputs
        .iter()
        .map(|output| (output.at, format!("{output:?}")))
        .collect();
    texts.sort();
    texts.into_iter().map(|(_, text)| text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The same comes out, to the nanosecond, as if each frame had been given when it arrived, and the same is counted.
    #[test]
    fn frames_may_be_kept_back_until_they_are_due(
        steps in prop::collection::vec((prop::sample::select(vec![0_u64, 7_000, 30_000, 150_000, 700_000]), door()), 1..150),
        quirks in prop::sample::select(vec![Quirks::Firmware, Quirks::Spec]),
        seed in any::<u64>(),
        passes in any::<bool>(),
    ) {
        let config = Config { quirks, ..Config::default() };
        let (mut plain, mut now) = board(&config, seed);
        let (other, _) = board(&config, seed);
        let mut keeping = Keeping::new(other, passes);
        let mut outputs = Vec::new();
        for (gap_ns, door) in steps {
            now += Duration::from_nanos(gap_ns);
            work(&mut plain, now, &mut outputs);
            keeping.work(now);
            match door {
                Door::Frame(number, frame) => {
                    plain.frame(now, port(number), &frame);
                    keeping.kept.push_back((now, number, frame));
                }
                Door::Segment(bytes) => {
                    keeping.give(now);
                    plain.segment(now, &bytes);
                    keeping.board.segment(now, &bytes);
                }
                Door::Link(number, up) => {
                    keeping.give(now);
                    plain.link_state(now, port(number), up);
                    keeping.board.link_state(now, port(number), up);
                }
            }
        }
        now += Duration::from_millis(900);
        work(&mut plain, now, &mut outputs);
        keeping.work(now);
        prop_assert_eq!(in_order(outputs), in_order(keeping.outputs));
        prop_assert_eq!(plain.counters(), keeping.board.counters());
        prop_assert_eq!(plain.flows(), keeping.board.flows());
        prop_assert_eq!(plain.poll_at(), keeping.board.poll_at());
    }
}

/// It is worth while: nearly all frames may be kept back.
#[test]
fn a_burst_is_taken_in_when_the_first_of_it_is_due() {
    let (board, now) = board(&Config::default(), 1);
    let mut keeping = Keeping::new(board, false);
    for number in 0..4 {
        let at = now + Duration::from_nanos(1_000 + number * 30_000);
        keeping.kept.push_back((at, 1, packet(302)));
    }
    keeping.work(now + Duration::from_millis(5));
    assert_eq!(keeping.late, 4);
    let frames = keeping.outputs.iter();
    let frames = frames.filter(|output| matches!(output.kind, OutputKind::Frame { .. }));
    assert_eq!(frames.count(), 4);
}

/// So is this: all but the first frame of a kind pass in one step, those that find others before them, too.
#[test]
fn frames_like_one_before_pass_in_one_step() {
    let (board, now) = board(&Config::default(), 1);
    let mut keeping = Keeping::new(board, true);
    for (burst, frames) in [1, 3, 4].into_iter().enumerate() {
        for number in 0..frames {
            let at = now + Duration::from_nanos(burst as u64 * 5_000_000 + number * 30_000);
            keeping.kept.push_back((at, 1, packet(302)));
        }
    }
    keeping.work(now + Duration::from_millis(20));
    assert_eq!(keeping.outputs.len(), 8);
    assert_eq!(keeping.passed, 7);
}
