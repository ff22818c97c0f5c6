//! A driver that defers frames as long as the board allows, as the simulator does, and a board with a flow cache,
//! beside a board that gets each frame in time with an empty cache.

mod testbed;

use std::collections::VecDeque;

use proptest::prelude::*;
use testbed::openflow13::{self as of13, Flow};
use testbed::{everything, fields, message, output, port, Fields, FlowMod};
use zodiac_firmware::{
    is_pause_frame, Board, Config, DeferredFrame, Duration, FlowKey, Instant, Output, OutputKind,
    PortMask, Profile, Quirks, ZODIAC_FX,
};

/// Inputs of the board, in order of time.
#[derive(Clone, Debug)]
enum Door {
    Frame(u8, Vec<u8>),
    Segment(Message),
    Link(u8, bool),
}

/// An instruction of OpenFlow 1.3 that hangs the firmware: it applies an action without a length.
const HANG: [u8; 16] = [0, 4, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A message of OpenFlow 1.0, and one of 1.3: which is sent depends on the board.
#[derive(Clone, Debug)]
struct Message {
    of10: Vec<u8>,
    of13: Vec<u8>,
}

impl Message {
    /// A message that both versions have.
    fn of_both(kind: u8) -> Self {
        Self {
            of10: message(kind, &[]),
            of13: of13::of13(kind, &[]),
        }
    }

    /// One of 1.3, and none to speak of in 1.0.
    fn only13(of13: Vec<u8>) -> Self {
        Self {
            of13,
            ..Self::of_both(2)
        }
    }

    fn of(&self, config: &Config) -> &[u8] {
        match config.openflow_version {
            4 => &self.of13,
            _ => &self.of10,
        }
    }
}

fn pause(quanta: u16) -> Vec<u8> {
    let mut frame = vec![
        0x01, 0x80, 0xc2, 0, 0, 1, 2, 2, 2, 2, 2, 2, 0x88, 0x08, 0, 1,
    ];
    frame.extend(quanta.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// Returns a UDP packet in a frame of this length, as far as it fits.
fn packet(length: usize) -> Vec<u8> {
    let mut frame = testbed::udp(length.max(60), 0);
    frame.truncate(length);
    frame
}

/// Returns the same, and in its head something else: at this place, where a search reads or does not read, this byte.
fn changed((at, byte): (usize, u8)) -> Vec<u8> {
    let mut frame = packet(302);
    frame[at] = byte;
    frame
}

/// Returns an entry of OpenFlow 1.0, or the removal of some.
fn rule10() -> impl Strategy<Value = Vec<u8>> {
    let tos = {
        let mut tos = everything();
        tos[..4].copy_from_slice(&0x001f_ffef_u32.to_be_bytes()); // type and type of service
        tos[22..25].copy_from_slice(&[8, 0, 0xb8]);
        tos
    };
    let wanted = prop::sample::select(vec![
        everything(),
        fields(Fields::Port, 0),
        fields(Fields::FiveTuple, 0),
        fields(Fields::FiveTuple, 1),
        fields(Fields::All, 1),
        tos,
    ]);
    let tos_set = vec![0, 8, 0, 8, 0x28, 0, 0, 0];
    let actions = prop_oneof![
        6 => (1_u16..=5).prop_map(output),
        1 => prop::sample::select(vec![0xfff8_u16, 0xfffb, 0xfffd]).prop_map(output),
        1 => prop::sample::select(vec![
            vec![],
            [output(2), output(3)].concat(),
            [tos_set, output(3)].concat(),
        ]),
    ];
    let command = prop::sample::select(vec![0_u16, 0, 0, 0, 0, 1, 3, 4]);
    let timeouts = prop::sample::select(vec![[0; 4], [0; 4], [0, 1, 0, 0], [0, 0, 0, 1]]);
    (wanted, actions, command, 1_u16..4, timeouts).prop_map(
        |(wanted, actions, command, priority, timeouts)| {
            let entry = FlowMod::add(wanted, priority, actions).command(command);
            let mut message = entry.message();
            message[58..62].copy_from_slice(&timeouts);
            message
        },
    )
}

/// Returns an entry of OpenFlow 1.3, or the removal of some.
fn rule13() -> impl Strategy<Value = Vec<u8>> {
    let udp = [of13::ipv4(), of13::oxm(10, &[17])].concat();
    let wanted = prop::sample::select(vec![
        vec![],
        of13::in_port(1),
        of13::in_port(2),
        of13::ipv4(),
        [of13::ipv4(), of13::oxm(8, &[0x2e])].concat(),
        [
            of13::ipv4(),
            of13::masked(12, &[10, 0, 0, 0], &[255, 0, 0, 0]),
        ]
        .concat(),
        [of13::oxm(3, &[2, 0, 0, 0, 0, 2]), of13::in_port(1)].concat(),
        [udp.clone(), of13::oxm(16, &2_000_u16.to_be_bytes())].concat(),
        [udp.clone(), of13::oxm(15, &1_000_u16.to_be_bytes())].concat(),
        udp,
    ]);
    let outputs = prop_oneof![
        8 => (1_u32..=5).prop_map(|number| vec![of13::output(number)]),
        1 => prop::sample::select(vec![0xffff_fff8_u32, 0xffff_fffb, of13::CONTROLLER])
            .prop_map(|number| vec![of13::output(number)]),
        1 => prop::sample::select(vec![
            vec![],
            vec![of13::output(2), of13::output(3)],
            vec![of13::set_field(&of13::oxm(8, &[0x0a])), of13::output(3)],
            vec![of13::group(1)],
            vec![of13::output(2), of13::group(1)],
        ]),
    ];
    let instructions = (outputs, 0..40, 1_u8..4).prop_map(|(actions, kind, table)| match kind {
        0..16 => of13::apply(&actions),
        16..22 => [of13::metered(), of13::apply(&actions)].concat(),
        22..26 => [of13::apply(&actions), of13::goto(table)].concat(),
        26..30 => [of13::with_actions(3, &actions), of13::goto(table)].concat(),
        30..35 => of13::goto(table),
        35..39 => of13::with_actions(3, &actions),
        _ => HANG.to_vec(),
    });
    let table = prop::sample::select(vec![0_u8, 0, 0, 1, 2, 3]);
    let command = prop::sample::select(vec![of13::ADD; 7]);
    let command = prop_oneof![
        command,
        prop::sample::select(vec![of13::ADD, of13::MODIFY, of13::DELETE])
    ];
    let timeout = || prop::sample::select(vec![0_u16, 0, 0, 1]);
    (
        wanted,
        instructions,
        table,
        command,
        1_u16..4,
        [timeout(), timeout()],
        0_u16..32,
    )
        .prop_map(
            |(wanted, instructions, table, command, priority, timeouts, flags)| {
                let flow = Flow {
                    table,
                    command,
                    priority,
                    timeouts,
                    flags: if flags < 4 { flags << 3 | 1 } else { 0 },
                    ..Flow::new(&wanted, &instructions)
                };
                flow.message()
            },
        )
}

/// Returns a message of OpenFlow 1.3 about the group that entries send to.
fn group13(command: impl Strategy<Value = u8>) -> impl Strategy<Value = Vec<u8>> {
    (command, 0_u8..4, 2_u32..5).prop_map(|(command, kind, number)| {
        let weight = u16::from(kind == 1); // only SELECT groups have weights
        let buckets = [number, 1].map(|to| of13::bucket(to, weight, &[of13::output(to)]));
        // An INDIRECT group has one bucket.
        let count = if kind == 2 { 1 } else { buckets.len() };
        of13::group_mod(command, kind, 1, &buckets[..count])
    })
}

/// Returns a message of OpenFlow 1.3 about the meter that entries send through.
fn meter13(command: impl Strategy<Value = u8>) -> impl Strategy<Value = Vec<u8>> {
    let rates = prop_oneof![1_u32..400, 400_u32..20_000];
    (command, 1_u8..3, rates)
        .prop_map(|(command, flags, rate)| of13::meter_mod(command, flags, rate))
}

/// Returns the first entries of a board, and in OpenFlow 1.3 a meter and a group for them.
fn entries() -> impl Strategy<Value = Vec<Message>> {
    let rules = prop::collection::vec(rule(), 1..8);
    (group13(Just(0)), meter13(Just(0)), rules).prop_map(|(group, meter, rules)| {
        let group_and_meter = [group, meter].map(Message::only13);
        group_and_meter.into_iter().chain(rules).collect()
    })
}

fn rule() -> impl Strategy<Value = Message> {
    let of13 = prop_oneof![8 => rule13(), 1 => group13(0_u8..3), 1 => meter13(0_u8..3)];
    (rule10(), of13).prop_map(|(of10, of13)| Message { of10, of13 })
}

fn door() -> impl Strategy<Value = Door> {
    let frame = prop_oneof![
        40 => Just(packet(302)), // mostly alike, so that their ways are known
        10 => prop::sample::select(vec![60_usize, 398]).prop_map(packet),
        3 => (60_usize..400).prop_map(packet),
        3 => (12_usize..48, 0_u8..4).prop_map(|(at, byte)| changed((at, byte << 2))),
        4 => prop::sample::select(vec![(15, 0xb8), (37, 0xd1), (23, 6), (21, 1), (14, 0x46)])
            .prop_map(changed),
        2 => (10_usize..1_540).prop_map(packet),
        1 => (0_u16..200).prop_map(pause),
    ];
    prop_oneof![
        60 => (prop::sample::select(vec![1_u8, 1, 1, 1, 2, 3, 4]), frame).prop_map(|(number, frame)| Door::Frame(number, frame)),
        1 => prop::sample::select(vec![18, 2, 99])
            .prop_map(|kind| Door::Segment(Message::of_both(kind))),
        1 => rule().prop_map(Door::Segment),
        1 => (1_u8..=4, any::<bool>()).prop_map(|(number, up)| Door::Link(number, up)),
    ]
}

/// Returns a board in a session, with these entries.
fn board_with(config: &Config, seed: u64, entries: &[Message]) -> (Board, Instant) {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    let mut board = Board::new(&profile, config.clone(), seed).unwrap();
    let mut now = Instant::ZERO;
    board.connected(now);
    let opening = [Message::of_both(0), Message::of_both(5)];
    for segment in opening.iter().chain(entries) {
        now += Duration::from_millis(10);
        board.segment(now, segment.of(config));
    }
    now += Duration::from_millis(10);
    board.advance(now);
    while board.poll_output().is_some() {}
    (board, now)
}

/// Returns the same with one entry, for everything.
fn board(config: &Config, seed: u64) -> (Board, Instant) {
    let entry = Message {
        of10: FlowMod::add(everything(), 1, output(3)).message(),
        of13: Flow::new(&[], &of13::apply(&[of13::output(3)])).message(),
    };
    board_with(config, seed, &[entry])
}

/// Boards that behave like firmware and specification, in both versions.
fn configs() -> Vec<Config> {
    let behaviours = [Quirks::Firmware, Quirks::Spec];
    let both = behaviours.map(|quirks| [(quirks, 1), (quirks, 4)]);
    both.into_iter().flatten().map(config_of).collect()
}

/// A board that behaves so and speaks this version.
fn config_of((quirks, openflow_version): (Quirks, u8)) -> Config {
    Config {
        quirks,
        openflow_version,
        ..Config::default()
    }
}

/// Requests for all that the board has counted.
fn requests(config: &Config) -> Vec<Vec<u8>> {
    if config.openflow_version == 4 {
        let any = [of13::ANY.to_be_bytes(), [0; 4]].concat();
        return vec![
            of13::request(1, &of13::all_flows()),
            of13::request(3, &[]),
            of13::request(4, &any),
            of13::request(6, &[of13::ALL.to_be_bytes(), [0; 4]].concat()),
            of13::request(9, &any),
        ];
    }
    let all = [&everything()[..], &[0xff, 0, 0xff, 0xff]].concat();
    let statistics = |kind: u8, body: &[u8]| message(16, &[&[0, kind, 0, 0], body].concat());
    let any_port = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
    vec![
        statistics(1, &all),
        statistics(3, &[]),
        statistics(4, &any_port),
    ]
}

/// Lets a board work until `until`, and drains its outputs.
fn work(board: &mut Board, until: Instant, outputs: &mut Vec<Output>) {
    work_and(board, until, outputs, |_, _| {});
}

/// As above, with `then` after each piece of work.
fn work_and(
    board: &mut Board,
    until: Instant,
    outputs: &mut Vec<Output>,
    then: impl Fn(&mut Board, Instant),
) {
    while let Some(at) = board.poll_at().filter(|at| *at <= until) {
        board.advance(at);
        outputs.extend(std::iter::from_fn(|| board.poll_output()));
        then(board, at);
    }
}

/// Distance between flow IDs: the first 16 share a slot of the hint table.
const SPREAD: u32 = 0x11;

/// Hands over the frames as late as the board allows.
struct DeferringDriver {
    board: Board,
    deferred: VecDeque<(Instant, u8, Vec<u8>)>,
    outputs: Vec<Output>,
    /// Frames that came later than they arrived.
    late: u64,
    /// Whether frames may take the fast path; how many of those that arrived behind the last such frame wait; how many
    /// took it.
    uses_fast_path: bool,
    waiting: usize,
    forwarded: u64,
    /// Keys of the frames so far, whose positions are their flow IDs; `None` if the driver supplies no flow IDs.
    keys: Option<Vec<FlowKey>>,
}

fn info((at, number, frame): &(Instant, u8, Vec<u8>)) -> DeferredFrame {
    DeferredFrame {
        arrival: *at,
        port: port(*number),
        bytes: frame.len(),
        is_pause: is_pause_frame(frame),
    }
}

impl DeferringDriver {
    fn new(board: Board, uses_fast_path: bool, tells: bool) -> Self {
        Self {
            board,
            deferred: VecDeque::new(),
            outputs: Vec::new(),
            late: 0,
            uses_fast_path,
            keys: tells.then(Vec::new),
            waiting: 0,
            forwarded: 0,
        }
    }

    /// Returns how many frames the board has sent.
    fn sent(&self) -> usize {
        let is_frame = |output: &&Output| matches!(output.kind, OutputKind::Frame { .. });
        self.outputs.iter().filter(is_frame).count()
    }

    fn give(&mut self, now: Instant) {
        self.waiting = 0;
        while let Some((at, number, frame)) = self.deferred.pop_front() {
            if at > now {
                return self.deferred.push_front((at, number, frame));
            }
            self.late += u64::from(at < now);
            self.board.frame_owned(at, port(number), frame);
            self.outputs
                .extend(std::iter::from_fn(|| self.board.poll_output()));
        }
    }

    fn work(&mut self, until: Instant) {
        loop {
            let due = match self.deferred.front() {
                Some((at, _, frame)) if is_pause_frame(frame) => *at,
                Some((at, number, frame)) => self.board.deliver_by(*at, port(*number), frame.len()),
                None => return work(&mut self.board, until, &mut self.outputs),
            };
            let due = due.min(self.board.poll_at().unwrap());
            let behind_waiting = self.deferred.get(self.waiting).map(info);
            let behind_waiting = behind_waiting.filter(|_| self.waiting > 0);
            let urgent = behind_waiting.filter(|frame| !self.board.can_defer(frame));
            let due = urgent.map_or(due, |frame| due.min(frame.arrival));
            if due > until {
                return;
            }
            if self.uses_fast_path && self.forward_fast(due) {
                continue;
            }
            self.give(due);
            self.board.advance(due);
            self.outputs
                .extend(std::iter::from_fn(|| self.board.poll_output()));
        }
    }
}

impl DeferringDriver {
    /// Tries to forward the first frame on the fast path.
    fn forward_fast(&mut self, now: Instant) -> bool {
        let arrived = self
            .deferred
            .iter()
            .take_while(|(at, ..)| *at <= now)
            .count();
        let Some(first) = self.deferred.front().filter(|_| arrived > 0) else {
            return false;
        };
        let behind: Vec<_> = self.deferred.range(1..arrived).map(info).collect();
        let key = FlowKey::read(&first.2);
        let flow_id = key.zip(self.keys.as_mut()).map(|(key, keys)| {
            let index = keys.iter().position(|other| *other == key);
            index.unwrap_or_else(|| {
                keys.push(key);
                keys.len() - 1
            })
        });
        let flow_id = flow_id.map(|index| index as u32 * SPREAD);
        let first = info(first);
        let forwarded = (self.board).forward_fast(now, &first, flow_id, || key, &behind);
        let Some(forwarded) = forwarded else {
            return false;
        };
        let (_, _, data) = self.deferred.pop_front().unwrap();
        let ports = PortMask::from_bits(1 << (forwarded.port.get() - 1));
        let kind = OutputKind::Frame { ports, data };
        let at = forwarded.departs;
        self.outputs.push(Output { at, kind });
        self.waiting = arrived - 1;
        self.forwarded += 1;
        true
    }
}

/// Outputs in the order of their instants: those of an arrival and of an iteration at one instant have no order.
fn in_order(mut outputs: Vec<Output>) -> Vec<String> {
    outputs.retain(|output| !matches!(output.kind, OutputKind::Connect));
    let mut texts: Vec<_> = outputs
        .iter()
        .map(|output| (output.at, format!("{output:?}")))
        .collect();
    texts.sort();
    texts.into_iter().map(|(_, text)| text).collect()
}

/// Returns time between two steps: sometimes long enough for entries to expire.
fn gap_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        40 => prop::sample::select(vec![0_u64, 7_000, 30_000, 150_000, 700_000, 3_000_000]),
        1 => Just(400_000_000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Outputs are the same, to the nanosecond, as if each frame had been handed over on arrival and looked up, and so
    /// are counters.
    #[test]
    fn frames_may_be_deferred_until_they_are_due(
        entries in entries(),
        steps in prop::collection::vec((gap_ns(), door()), 1..150),
        config in prop::sample::select(configs()),
        seed in any::<u64>(),
        (passes, tells) in any::<(bool, bool)>(),
    ) {
        let (mut plain, mut now) = board_with(&config, seed, &entries);
        let (other, _) = board_with(&config, seed, &entries);
        let mut driver = DeferringDriver::new(other, passes, tells);
        let mut outputs = Vec::new();
        let mut is_up = true;
        for (gap_ns, door) in steps {
            now += Duration::from_nanos(gap_ns);
            // A board forgets all ways when it learns of a link, even if that stays as it was.
            let forget = |board: &mut Board, at| board.link_state(at, port(1), is_up);
            work_and(&mut plain, now, &mut outputs, forget);
            driver.work(now);
            match door {
                Door::Frame(number, frame) => {
                    plain.frame(now, port(number), &frame);
                    driver.deferred.push_back((now, number, frame));
                }
                Door::Segment(bytes) => {
                    driver.give(now);
                    plain.segment(now, bytes.of(&config));
                    driver.board.segment(now, bytes.of(&config));
                }
                Door::Link(number, up) => {
                    is_up = if number == 1 { up } else { is_up };
                    driver.give(now);
                    plain.link_state(now, port(number), up);
                    driver.board.link_state(now, port(number), up);
                }
            }
        }
        now += Duration::from_millis(900);
        work(&mut plain, now, &mut outputs);
        driver.work(now);
        for request in requests(&config) {
            plain.segment(now, &request);
            driver.board.segment(now, &request);
            now += Duration::from_millis(10);
            work(&mut plain, now, &mut outputs);
            driver.work(now);
        }
        prop_assert_eq!(in_order(outputs), in_order(driver.outputs));
        prop_assert_eq!(plain.counters(), driver.board.counters());
        prop_assert_eq!(plain.flows(), driver.board.flows());
        prop_assert_eq!(plain.flows13(), driver.board.flows13());
        prop_assert_eq!(plain.poll_at(), driver.board.poll_at());
    }
}

/// Nearly all frames may be deferred.
#[test]
fn a_burst_is_taken_in_when_the_first_of_it_is_due() {
    let (board, now) = board(&Config::default(), 1);
    let mut driver = DeferringDriver::new(board, false, true);
    for number in 0..4 {
        let at = now + Duration::from_nanos(1_000 + number * 30_000);
        driver.deferred.push_back((at, 1, packet(302)));
    }
    driver.work(now + Duration::from_millis(5));
    assert_eq!(driver.late, 4);
    assert_eq!(driver.sent(), 4);
}

/// All but the first frame of a flow take the fast path, those that find others before them, too.
#[test]
fn all_but_the_first_frame_of_a_flow_take_the_fast_path() {
    for config in configs() {
        let (board, now) = board(&config, 1);
        let mut driver = DeferringDriver::new(board, true, true);
        for (burst, frames) in [1, 3, 4].into_iter().enumerate() {
            for number in 0..frames {
                let at = now + Duration::from_nanos(burst as u64 * 5_000_000 + number * 30_000);
                driver.deferred.push_back((at, 1, packet(302)));
            }
        }
        driver.work(now + Duration::from_millis(20));
        assert_eq!(driver.outputs.len(), 8, "{config:?}");
        assert_eq!(driver.forwarded, 7, "{config:?}");
    }
}

/// Returns how many of eight frames take the fast path by these entries, each of a table and instructions in OpenFlow
/// 1.3, by firmware and specification. There is a group that sends to port 3, and a meter that lets all pass.
fn forwarded13(entries: &[(u8, Vec<u8>)]) -> [u64; 2] {
    let bucket = of13::bucket(3, 0, &[of13::output(3)]);
    let mut messages = vec![
        of13::group_mod(0, 2, 1, &[bucket]),
        of13::meter_mod(0, 1, 20_000),
    ];
    messages.extend(entries.iter().map(|(table, instructions)| {
        let mut flow = Flow::new(&of13::ipv4(), instructions);
        flow.table = *table;
        flow.message()
    }));
    let messages: Vec<_> = messages.into_iter().map(Message::only13).collect();
    [Quirks::Firmware, Quirks::Spec].map(|quirks| {
        let config = config_of((quirks, 4));
        let (board, now) = board_with(&config, 1, &messages);
        let mut driver = DeferringDriver::new(board, true, true);
        for number in 0..8 {
            let at = now + Duration::from_nanos(number * 5_000_000);
            driver.deferred.push_back((at, 1, packet(302)));
        }
        driver.work(now + Duration::from_millis(60));
        assert_eq!(driver.sent(), 8, "{entries:?}");
        driver.forwarded
    })
}

/// Actions that depend on earlier frames, change a frame or count it separately are carried out for each frame anew.
#[test]
fn only_actions_that_depend_on_the_key_take_the_fast_path() {
    let to_3 = || of13::apply(&[of13::output(3)]);
    let first = |instructions: Vec<u8>| vec![(0, instructions)];
    let rewritten = [of13::set_field(&of13::oxm(8, &[0x0a])), of13::output(3)];
    let cases = [
        ("sent", first(to_3()), [7, 7]),
        (
            "through tables",
            vec![(0, of13::goto(2)), (2, to_3())],
            [7, 7],
        ),
        ("metered", first([of13::metered(), to_3()].concat()), [0, 0]),
        ("rewritten", first(of13::apply(&rewritten)), [0, 0]),
        // Groups of the firmware count nothing.
        (
            "through a group",
            first(of13::apply(&[of13::group(1)])),
            [7, 0],
        ),
    ];
    for (how, entries, passed) in cases {
        assert_eq!(forwarded13(&entries), passed, "{how}");
    }
}

/// A board that hangs forwards nothing, whatever is cached.
#[test]
fn a_board_that_hangs_caches_nothing() {
    let instructions = [(1, of13::apply(&[of13::output(3)])), (2, HANG.to_vec())];
    let entries = instructions.map(|(number, instructions)| {
        Message::only13(Flow::new(&of13::in_port(number), &instructions).message())
    });
    let (board, now) = board_with(&config_of((Quirks::Firmware, 4)), 1, &entries);
    let mut driver = DeferringDriver::new(board, true, true);
    for (number, port) in [1, 1, 2, 1, 1].into_iter().enumerate() {
        let at = now + Duration::from_nanos(number as u64 * 5_000_000);
        driver.deferred.push_back((at, port, packet(302)));
    }
    driver.work(now + Duration::from_millis(60));
    assert_eq!(
        driver.forwarded, 1,
        "the second frame, and none after the third"
    );
}
