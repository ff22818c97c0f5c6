//! Each message is carried out, refused, or has a cause: every type of message, every field of each at its limits, and random
//! sequences of both, on a board with the firmware's behaviour and on one that follows the specification. Where the two
//! differ, and where the message is refused, the firmware's board must tell exactly one cause. Boards with all deviations
//! but one, or with one alone, too: a cause that the board has.

mod testbed;

use std::sync::LazyLock;

use testbed::openflow13::{self as of13, Flow};
use testbed::{
    everything, fields, output, quiet_config, quiet_profile, udp, Departure, Fields, FlowMod,
    Testbed,
};
use zodiac_firmware::{
    Cause, Config, Event, Flow as Flow10, Flow13, Profile, Quirk, QuirkSet, Quirks,
};

/// Most bytes of a segment to the board.
const SEGMENT_BYTES: usize = 536;
const ERROR: u8 = 1;
const GET_CONFIG_REQUEST: u8 = 7;
const SET_CONFIG: u8 = 9;
const PACKET_IN: u8 = 10;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;

/// Frames that left, by ports.
type Frames = Vec<(u8, Vec<u8>)>;

/// Effects of a message that a controller and hosts see.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// Replies: their types, and of errors type and code.
    replies: Vec<Vec<u8>>,
    /// Frames that left, by ports.
    frames: Frames,
    /// Fate of later frames, one by one: where they leave, and how many go to the controller.
    later: Vec<(Frames, usize)>,
    /// Replies to requests that come afterwards.
    state: Vec<Vec<u8>>,
    /// Entries of the table, in any order, without their counters.
    table: Vec<String>,
}

impl Seen {
    fn differences(&self, other: &Self) -> Vec<&'static str> {
        let differences = [
            ("replies", self.replies != other.replies),
            ("frames", self.frames != other.frames),
            ("later", self.later != other.later),
            ("state", self.state != other.state),
            ("table", self.table != other.table),
        ];
        let differ = differences.into_iter().filter(|(_, differ)| *differ);
        differ.map(|(name, _)| name).collect()
    }
}

/// Immediate effects of a message.
struct Answered {
    replies: Vec<Vec<u8>>,
    frames: Vec<Departure>,
    /// Of what it tells of the message. What the board's own replies undergo is another matter (quirks 14, 70, 192).
    events: Vec<Event>,
    /// Whether replies were lost, and the board has told it.
    replies_lost: bool,
}

impl Answered {
    fn is_refused(&self) -> bool {
        self.replies.iter().any(|reply| reply[1] == ERROR)
    }
}

fn version_of(is_13: bool) -> u8 {
    if is_13 {
        4
    } else {
        1
    }
}

fn message(is_13: bool, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = testbed::message(kind, body);
    bytes[0] = version_of(is_13);
    bytes
}

static PROFILE: LazyLock<Profile> = LazyLock::new(quiet_profile);

/// A board with two entries, whose session speaks the version.
fn board(quirks: Quirks, is_13: bool) -> Testbed {
    let config = Config {
        quirks,
        openflow_version: version_of(is_13),
        ..quiet_config()
    };
    let mut bed = Testbed::new(&PROFILE, config);
    bed.board.connected(bed.now);
    for kind in [0, 5] {
        bed.exchange(&message(is_13, kind, &[]));
    }
    for number in 0..2_u16 {
        let entry = if is_13 {
            let port = of13::oxm(16, &(2000 + number).to_be_bytes());
            let oxms = [of13::ipv4(), of13::oxm(10, &[17]), port].concat();
            Flow {
                priority: 5,
                cookie: 9,
                ..Flow::new(&oxms, &of13::apply(&[of13::output(2)]))
            }
            .message()
        } else {
            let mut entry = FlowMod::add(fields(Fields::FiveTuple, number), 5, output(2));
            entry.cookie = 9;
            entry.message()
        };
        assert!(bed.exchange(&entry).is_empty());
    }
    assert!(bed.events.is_empty(), "{:?}", bed.events);
    bed
}

fn brief(replies: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let brief = |reply: &Vec<u8>| match reply[1] {
        1 => [&reply[..2], &reply[8..12]].concat(),
        2 | 3 => [&reply[..2], &reply[8..]].concat(),
        // Kind and length: what they tell is compared by the tests of each quirk.
        17 | 19 => [&reply[..2], &reply[8..reply.len().min(10)], &reply[2..4]].concat(),
        25 => [&reply[..2], reply.get(8..12).unwrap_or(&[])].concat(),
        _ => reply[..2].to_vec(),
    };
    replies.iter().map(brief).collect()
}

fn arp() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6]);
    frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    frame
}

fn tagged(vid: u8) -> Vec<u8> {
    let frame = udp(100, 0);
    [&frame[..12], &[0x81, 0, 0, vid], &frame[12..]].concat()
}

fn by_port(frames: Vec<Departure>) -> Vec<(u8, Vec<u8>)> {
    let copies = |frame: Departure| {
        let ports: Vec<_> = frame
            .ports
            .iter()
            .map(zodiac_firmware::PortNumber::get)
            .collect();
        ports
            .into_iter()
            .map(move |port| (port, frame.data.clone()))
    };
    let mut left: Vec<_> = frames.into_iter().flat_map(copies).collect();
    left.sort();
    left
}

fn send(bed: &mut Testbed, message: &[u8]) -> Answered {
    let replies = bed.exchange(message);
    let of_replies = |event: &Event| {
        matches!(
            event,
            Event::ReplyTruncated { .. }
                | Event::SendBufferFull { .. }
                | Event::ReplyHeapFull { .. }
        )
    };
    let events = std::mem::take(&mut bed.events);
    let (of_replies, events): (Vec<_>, _) = events.into_iter().partition(of_replies);
    Answered {
        replies,
        frames: std::mem::take(&mut bed.departures),
        events,
        replies_lost: !of_replies.is_empty(),
    }
}

/// Visible effects of a message that has been answered so.
fn seen(bed: &mut Testbed, is_13: bool, sent: &[u8], answered: Answered) -> Seen {
    let mut later = Vec::new();
    for probe in [udp(100, 0), udp(100, 1), udp(100, 7), arp(), tagged(2)] {
        for port in 1..=2 {
            let frames = bed.frame(port, &probe);
            let told = bed.replies.iter().filter(|reply| reply[1] == PACKET_IN);
            later.push((by_port(frames), told.count()));
            bed.replies.clear();
        }
    }
    bed.events.clear();
    let mut state = Vec::new();
    if sent[1] == SET_CONFIG {
        state = bed.exchange(&message(is_13, GET_CONFIG_REQUEST, &[]));
    }
    Seen {
        replies: brief(&answered.replies),
        frames: by_port(answered.frames),
        later,
        state,
        table: table(bed, is_13),
    }
}

/// Whether 1.3 may leave open which entry counts: two of one table and priority have other fields.
fn is_ambiguous(bed: &Testbed) -> bool {
    let flows = bed.board.flows13();
    let rank = |flow: &Flow13| (flow.head[24], [flow.head[30], flow.head[31]]);
    flows.iter().enumerate().any(|(at, flow)| {
        let mut others = flows[..at].iter();
        others.any(|other| rank(other) == rank(flow) && other.oxms.len() != flow.oxms.len())
    })
}

fn table(bed: &Testbed, is_13: bool) -> Vec<String> {
    let mut table: Vec<_> = if is_13 {
        let flows = bed.board.flows13().into_iter();
        flows
            .map(|flow| format!("{:?}", (flow.head, flow.oxms, flow.instructions)))
            .collect()
    } else {
        let flows = bed.board.flows().into_iter();
        flows
            .map(|flow| {
                let flow = Flow10 {
                    fields: flow.fields.normalised(),
                    packets: 0,
                    bytes: 0,
                    ..flow
                };
                format!("{flow:?}")
            })
            .collect()
    };
    table.sort();
    table
}

/// Values of a field of so many bytes that are worth a try.
fn limits(bytes: usize) -> Vec<u64> {
    let most = u64::MAX >> (64 - 8 * bytes);
    let mut values = vec![0, 1, 2, 4, 5, 17, most / 2 + 1];
    values.extend([0, 1, 2, 3, 4, 5, 7].map(|less| most - less));
    values.retain(|value| *value <= most);
    values.sort_unstable();
    values.dedup();
    values
}

/// The message with each field at its limits, and cut short.
fn variants(base: &[u8], fields: &[(usize, usize)]) -> Vec<Vec<u8>> {
    let mut all = vec![base.to_vec()];
    for (at, bytes) in fields {
        for value in limits(*bytes) {
            let mut changed = base.to_vec();
            changed[*at..at + bytes].copy_from_slice(&value.to_be_bytes()[8 - bytes..]);
            all.push(changed);
        }
    }
    for length in (8..base.len()).step_by(4) {
        let mut short = base[..length].to_vec();
        short[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        all.push(short);
    }
    for version in [2, 3, 5, 6] {
        let mut other = base.to_vec();
        other[0] = version;
        all.push(other);
    }
    all
}

fn halves(from: usize, to: usize) -> Vec<(usize, usize)> {
    (from..to).step_by(2).map(|at| (at, 2)).collect()
}

/// Every type, empty and with some bytes, then the structured ones.
fn of_both(is_13: bool) -> Vec<Vec<u8>> {
    let kinds = 0..=31_u8;
    let plain =
        kinds.flat_map(|kind| [0, 4, 16, 48].map(|length| message(is_13, kind, &vec![0; length])));
    plain
        .chain(variants(
            &message(is_13, 9, &[0, 0, 0x80, 0]),
            &halves(8, 12),
        ))
        .chain(variants(&message(is_13, 2, &[1, 2, 3, 4]), &[]))
        .collect()
}

fn of_10() -> Vec<Vec<u8>> {
    let mut all = of_both(false);
    // Every field of the match at its limits, with the fields that it depends on and with none.
    for mut entry in [
        FlowMod::add(fields(Fields::FiveTuple, 3), 7, output(3)),
        FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(3)),
        FlowMod::add(everything(), 1, output(3)),
    ] {
        entry.cookie = 9;
        for command in 0..=4 {
            let base = entry.clone().command(command).message();
            let fields = halves(8, 80)
                .into_iter()
                .filter(|(at, _)| !matches!(at, 28 | 34));
            all.extend(variants(&base, &fields.collect::<Vec<_>>()));
        }
    }
    // Each field of the match given alone.
    for bit in 0..22 {
        let mut fields = fields(Fields::FiveTuple, 0);
        fields[..4].copy_from_slice(&(0x003f_ffff_u32 & !(1 << bit)).to_be_bytes());
        all.push(FlowMod::add(fields, 9, output(3)).message());
    }
    for port in limits(2) {
        let port = port as u16;
        all.push(FlowMod::add(everything(), 9, [output(port), output(3)].concat()).message());
        for in_port in [0, 1, 4, 257, 0xffff_u16] {
            let head = [&[0xff; 4][..], &in_port.to_be_bytes(), &[0, 8]].concat();
            all.push(testbed::message(
                13,
                &[&head, &output(port)[..], &udp(100, 0)].concat(),
            ));
        }
    }
    let frame = udp(100, 0);
    let out = |list: &[u8], data: &[u8]| {
        let head = [&[0xff; 4][..], &[0, 1], &(list.len() as u16).to_be_bytes()].concat();
        testbed::message(13, &[&head, list, data].concat())
    };
    all.extend(variants(&out(&output(3), &frame), &halves(8, 24)));
    all.push(out(&[], &frame));
    all.push(out(&output(3), &[]));
    all.push(out(&[output(3), output(2)].concat(), &frame));
    all.push(out(&[0, 3, 0, 8, 0, 0, 0, 0], &frame));
    for kind in limits(2) {
        for body in [vec![0; 44], all_flows_10(), vec![0xff; 44]] {
            let head = [&(kind as u16).to_be_bytes()[..], &[0, 0]].concat();
            let base = testbed::message(16, &[&head[..], &body].concat());
            all.extend(variants(&base, &[(54, 2), (52, 1)]));
        }
    }
    for actions in [
        vec![],
        [0, 1, 0, 8, 0, 0, 0, 0].to_vec(),
        [0, 11, 0, 16].iter().chain(&[0; 12]).copied().collect(),
        [0xff, 0xff, 0, 8, 0, 0, 0, 0].to_vec(),
        output(3).repeat(5),
        [0, 0, 0, 0, 0, 3, 0, 0].to_vec(),
    ] {
        all.push(FlowMod::add(everything(), 9, actions.clone()).message());
        all.push(FlowMod::add(everything(), 9, actions).command(1).message());
    }
    all
}

fn all_flows_10() -> Vec<u8> {
    let mut body = vec![0; 44];
    body[..4].copy_from_slice(&0x003f_ffff_u32.to_be_bytes());
    body[40] = 0xff;
    body[42..].fill(0xff);
    body
}

/// Two boards that get the same messages.
struct Pair {
    is_13: bool,
    quirks: Quirks,
    /// The board with these deviations.
    deviating: Testbed,
    /// Powered up when it is needed.
    specification: Option<Testbed>,
}

impl Pair {
    fn new(quirks: Quirks, is_13: bool) -> Self {
        Self {
            is_13,
            quirks,
            deviating: board(quirks, is_13),
            specification: None,
        }
    }

    /// Sends so many messages in one segment to both. Returns whether the deviating board has told a cause, so that the two
    /// may differ from here on.
    ///
    /// # Errors
    ///
    /// How they break the rule.
    fn send(&mut self, sent: &[u8], messages: usize) -> Result<bool, String> {
        let answered = send(&mut self.deviating, sent);
        let events = &answered.events;
        if events.len() > messages || events.is_empty() && answered.is_refused() {
            return Err(format!("{} replies, {events:?}", answered.replies.len()));
        }
        if !events.is_empty() || answered.replies_lost && messages > 1 {
            let told = events.iter().try_for_each(|event| told(event, self.quirks));
            return told.map(|()| true);
        }
        let is_13 = self.is_13;
        let specification = self
            .specification
            .get_or_insert_with(|| board(Quirks::Spec, is_13));
        let meant = send(specification, sent);
        if meant.is_refused() == meant.events.is_empty() || meant.events.len() > messages {
            return Err(format!("the specification's: {:?}", meant.events));
        }
        if is_ambiguous(specification) {
            return Ok(true);
        }
        let deviating = seen(&mut self.deviating, is_13, sent, answered);
        let specification = seen(specification, is_13, sent, meant);
        let differences = deviating.differences(&specification);
        if differences.is_empty() {
            Ok(false)
        } else {
            Err(format!("{differences:?}"))
        }
    }
}

/// Holds the text of an event to what users expect of it: a quirk that there is in this version, and on this board.
fn told(event: &Event, quirks: Quirks) -> Result<(), String> {
    let text = event.to_string();
    let numbers = text
        .split("(quirk")
        .skip(1)
        .filter_map(|behind| Some(numbers(behind.trim_start_matches('s').split(')').next()?)));
    let numbers: Vec<u16> = numbers.flatten().collect();
    let is_misread = matches!(event, Event::MessageMisread { .. });
    let is_foreign = |number: &u16| {
        let mut names = NAMES.iter().filter(|(_, its)| its.contains(number));
        let is_named = names.clone().next().is_some();
        is_named && !names.any(|(name, _)| quirks.has(*name))
    };
    if is_misread && numbers.is_empty() || numbers.iter().any(is_foreign) {
        return Err(text);
    }
    Ok(())
}

/// Numbers of deviations that each name stands for, as the page says.
static NAMES: LazyLock<Vec<(Quirk, Vec<u16>)>> = LazyLock::new(|| {
    let page = include_str!("../../../docs/quirks.md");
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name.parse().ok()?, numbers(rest.split(" |").next()?)))
    };
    let names: Vec<_> = page.lines().filter_map(row).collect();
    assert!(names.iter().map(|(name, _)| *name).eq(Quirk::ALL));
    names
});

/// Parses numbers such as `1, 3 to 5`.
fn numbers(text: &str) -> Vec<u16> {
    let ranges = text.split(',').filter_map(|range| {
        let (first, last) = range.split_once(" to ").unwrap_or((range, range));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Sends each message to a board with each of these sets of deviations.
fn check(sets: &[Quirks], is_13: bool, all: &[Vec<u8>]) {
    let mut wrong = Vec::new();
    for quirks in sets {
        wrong.extend(all.iter().filter_map(|sent| {
            let why = Pair::new(*quirks, is_13).send(sent, 1).err()?;
            Some(format!("{quirks:?}: {}: {why}", hex(sent)))
        }));
    }
    report(&wrong, sets.len() * all.len());
}

fn report(wrong: &[String], tried: usize) {
    let shown = &wrong[..wrong.len().min(50)];
    assert!(
        wrong.is_empty(),
        "{} of {tried}:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[allow(clippy::too_many_lines)] // a table
fn of_13() -> Vec<Vec<u8>> {
    use of13::{
        apply, bucket, goto, group, group_mod, masked, meter_mod, metered, oxm, set_field,
        with_actions,
    };
    let mut all = of_both(true);
    let udp_port = |number: u16| oxm(16, &number.to_be_bytes());
    let flow = |number: u16| [of13::ipv4(), oxm(10, &[17]), udp_port(number)].concat();
    let send = || apply(&[of13::output(3)]);
    for (oxms, priority) in [
        (flow(2007), 7),
        (flow(2000), 5),
        (vec![], 1),
        (of13::ipv4(), 4),
    ] {
        for command in 0..=5 {
            let entry = Flow {
                command,
                priority,
                ..Flow::new(&oxms, &send())
            };
            let mut fields = halves(8, 48);
            fields.extend([(24, 1), (25, 1), (48, 2), (50, 2)]);
            all.extend(variants(&entry.message(), &fields));
            for table in [1, 9, 10, 254, 255] {
                let other = Flow {
                    table,
                    ..entry.clone()
                };
                all.push(other.message());
            }
        }
    }
    // Every field of a match, alone and with what it depends on, at its limits, with and without a mask.
    for number in 0..=40_u8 {
        for bytes in [1, 2, 3, 4, 6, 8, 16] {
            for value in [0, 0xff_u8] {
                for before in [
                    vec![],
                    of13::ipv4(),
                    [of13::ipv4(), oxm(10, &[17])].concat(),
                ] {
                    for own in [
                        oxm(number, &vec![value; bytes]),
                        masked(number, &vec![value; bytes], &vec![value; bytes]),
                    ] {
                        let oxms = [before.clone(), own].concat();
                        all.push(
                            Flow {
                                priority: 9,
                                ..Flow::new(&oxms, &send())
                            }
                            .message(),
                        );
                    }
                }
            }
        }
    }
    // Every action, alone and before an output, and every instruction.
    for kind in (0..=28).chain([0xffff_u16]) {
        for length in [8, 16, 24_u16] {
            let mut action = [kind.to_be_bytes(), length.to_be_bytes()].concat();
            action.resize(length.into(), 0);
            for port in [1, 0x8100_u16] {
                action[4..6].copy_from_slice(&port.to_be_bytes());
                all.push(
                    Flow::new(&flow(2000), &apply(&[action.clone(), of13::output(3)])).message(),
                );
                all.push(Flow::new(&flow(2007), &with_actions(3, &[action.clone()])).message());
                all.push(packet_out_13(
                    1,
                    &[action.clone(), of13::output(3)].concat(),
                ));
            }
        }
    }
    for kind in (0..=8).chain([31, 32, 0xffff_u16]) {
        for length in [8, 16, 24_u16] {
            let mut instruction = [kind.to_be_bytes(), length.to_be_bytes()].concat();
            instruction.resize(length.into(), 1);
            all.push(Flow::new(&flow(2007), &[send(), instruction].concat()).message());
        }
    }
    for port in limits(4) {
        let port = port as u32;
        all.push(
            Flow {
                priority: 9,
                ..Flow::new(&[], &apply(&[of13::output(port)]))
            }
            .message(),
        );
        for in_port in [0, 1, 4, 257, u32::MAX, of13::CONTROLLER] {
            all.push(packet_out_13(in_port, &of13::output(port)));
        }
    }
    all.extend(variants(
        &packet_out_13(1, &of13::output(3)),
        &halves(8, 40),
    ));
    all.push(packet_out_13(1, &[]));
    for kind in limits(2) {
        for body in [vec![], vec![0; 8], vec![0xff; 8], of13::all_flows()] {
            let head = [&(kind as u16).to_be_bytes()[..], &[0; 6]].concat();
            all.extend(variants(&message(true, 18, &[head, body].concat()), &[]));
        }
    }
    all.extend(variants(
        &message(
            true,
            18,
            &[&[0, 1, 0, 0, 0, 0, 0, 0][..], &of13::all_flows()].concat(),
        ),
        &halves(16, 50),
    ));
    for command in 0..=4 {
        for buckets in [
            vec![],
            vec![bucket(of13::ANY, 0, &[of13::output(2)])],
            vec![bucket(of13::ANY, 0, &[of13::output(2)]); 2],
        ] {
            all.extend(variants(
                &group_mod(command, 0, 1, &buckets),
                &[(8, 2), (10, 1), (12, 4)],
            ));
        }
        all.extend(variants(
            &meter_mod(command, 1, 1000),
            &[(8, 2), (10, 2), (12, 4), (16, 2), (18, 2), (20, 4)],
        ));
    }
    for instructions in [
        goto(0),
        goto(1),
        goto(10),
        metered(),
        apply(&[group(1)]),
        apply(&[set_field(&oxm(3, &[1; 6]))]),
    ] {
        all.push(Flow::new(&flow(2007), &instructions).message());
    }
    let role = |role: u8| message(true, 24, &[&[0, 0, 0, role][..], &[0; 12]].concat());
    all.extend(variants(&role(2), &[(8, 4), (16, 8)]));
    all
}

fn packet_out_13(in_port: u32, list: &[u8]) -> Vec<u8> {
    let head = [
        &[0xff; 4][..],
        &in_port.to_be_bytes(),
        &(list.len() as u16).to_be_bytes(),
        &[0; 6],
    ]
    .concat();
    message(true, 13, &[&head[..], list, &udp(100, 0)].concat())
}

#[test]
fn every_message_of_1_0_is_carried_out_refused_or_has_one_cause() {
    check(&[Quirks::Firmware], false, &of_10());
}

#[test]
fn every_message_of_1_3_is_carried_out_refused_or_has_one_cause() {
    check(&[Quirks::Firmware], true, &of_13());
}

/// The deviations of a version, one by one.
fn single_quirks(is_13: bool) -> Vec<QuirkSet> {
    let is_shown = move |quirk: &Quirk| {
        if is_13 {
            quirk.is_of_13()
        } else {
            quirk.is_of_10()
        }
    };
    let shown = Quirk::ALL.into_iter().filter(is_shown);
    shown.map(|quirk| QuirkSet::from_iter([quirk])).collect()
}

/// Boards that lack one deviation, then boards that have one alone, for which some of the messages do.
fn check_mixed_sets(is_13: bool, all: &[Vec<u8>]) {
    let single = single_quirks(is_13);
    let without: Vec<_> = single.iter().copied().map(Quirks::Without).collect();
    check(&without, is_13, all);
    let only: Vec<_> = single.into_iter().map(Quirks::Only).collect();
    let some: Vec<_> = all.iter().step_by(7).cloned().collect();
    check(&only, is_13, &some);
}

#[test]
fn boards_with_some_deviations_name_only_those_in_1_0() {
    check_mixed_sets(false, &of_10());
}

#[test]
fn boards_with_some_deviations_name_only_those_in_1_3() {
    check_mixed_sets(true, &of_13());
}

/// Random sequences of usual messages, with one among them that is at its limits or has bytes changed. Until the firmware's
/// board tells a cause, both must stay alike. Trials take the sets of deviations in turn.
fn check_sequences(sets: &[Quirks], is_13: bool, usual: &[Vec<u8>], odd: &[Vec<u8>]) {
    let trials = std::env::var("DIAGNOSIS_TRIALS").map_or(1_000, |number| number.parse().unwrap());
    let mut wrong = Vec::new();
    for seed in 0..trials {
        let mut random = Random(seed);
        let quirks = sets[seed as usize % sets.len()];
        let mut pair = Pair::new(quirks, is_13);
        let mut sequence = Vec::new();
        let (odd_at, length) = (random.below(8), 10);
        while sequence.len() < length {
            let is_odd = sequence.len() == odd_at;
            let from = if is_odd && random.below(2) == 0 {
                odd
            } else {
                usual
            };
            let mut sent = from[random.below(from.len())].clone();
            let changes = if is_odd { random.below(3) } else { 0 };
            for _ in 0..changes {
                let at = 8 + random.below(sent.len().max(9) - 8);
                if at < sent.len() {
                    sent[at] = [0, 1, 2, 4, 0x10, 0x7f, 0x80, 0xff][random.below(8)];
                }
            }
            let mut messages = 1;
            let other = &usual[random.below(usual.len())];
            if random.below(4) == 0 && sent.len() + other.len() <= SEGMENT_BYTES {
                sent.extend(other);
                messages = 2;
            }
            sequence.push(hex(&sent));
            match pair.send(&sent, messages) {
                Ok(false) => {}
                Ok(true) => break,
                Err(why) => {
                    wrong.push(format!(
                        "trial {seed}, {quirks:?}: {why}\n{}",
                        sequence.join("\n")
                    ));
                    break;
                }
            }
        }
    }
    report(&wrong, trials as usize);
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}

/// Messages of 1.0 that the firmware carries out as they ask.
fn usual_10() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for number in 0..4_u16 {
        for (kind, priority) in [(Fields::FiveTuple, 5), (Fields::Port, 3), (Fields::All, 9)] {
            for port in 1..=3 {
                let mut entry = FlowMod::add(fields(kind, number), priority, output(port));
                entry.cookie = (priority + number).into();
                all.push(entry.message());
                all.push(entry.clone().command(4).message());
                entry.fields[20..22].fill(0); // another way to write it
                all.push(entry.command(3).message());
            }
        }
    }
    all.push(FlowMod::add(everything(), 0, vec![]).command(3).message());
    for port in 1..=4 {
        all.push(packet_out_10(u32::MAX, &output(port)));
    }
    for kind in [2, 5, 7, 18] {
        all.push(testbed::message(kind, &[]));
    }
    all.push(testbed::message(
        16,
        &[&[0, 1, 0, 0][..], &all_flows_10()].concat(),
    ));
    all
}

/// Messages of 1.3 that the firmware carries out as they ask.
fn usual_13() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for number in 0..4_u16 {
        let udp = [
            of13::ipv4(),
            of13::oxm(10, &[17]),
            of13::oxm(16, &(2000 + number).to_be_bytes()),
        ];
        let masked_mac = of13::masked(3, &[2, 0, 0, 0, 0, 2], &[0xff; 6]);
        let prefix = of13::masked(12, &[10, 0, 0, 0], &[255, 255, 0, number as u8 % 2]);
        for (oxms, priority) in [
            (udp.concat(), 5),
            (
                [of13::oxm(3, &[2, 0, 0, 0, 0, 2]), udp.concat()].concat(),
                10,
            ),
            ([udp.concat(), masked_mac].concat(), 10),
            ([of13::ipv4(), prefix].concat(), 30 + number % 2),
            ([udp.concat(), of13::in_port(1)].concat(), 12),
            ([of13::in_port(1), udp.concat()].concat(), 12),
            (of13::oxm(6, &[0, 0]), 21),
            (of13::masked(6, &[0x10, 0], &[0x10, 0]), 20),
            (of13::oxm(5, &[8, 6]), 22),
            (of13::in_port(1 + number as u8), 3),
            (vec![], 1),
        ] {
            for port in 1..=3 {
                for command in [0, 3, 4] {
                    let entry = Flow {
                        command,
                        priority,
                        cookie: number.into(),
                        ..Flow::new(&oxms, &of13::apply(&[of13::output(port)]))
                    };
                    all.push(entry.message());
                }
            }
        }
    }
    for port in 1..=4 {
        all.push(packet_out_13(5 - port, &of13::output(port)));
    }
    for kind in [2, 5, 7, 20] {
        all.push(message(true, kind, &[]));
    }
    for id in 1..=4 {
        let bucket = of13::bucket(of13::ANY, 0, &[of13::output(id)]);
        all.push(of13::group_mod(0, 0, id, &[bucket]));
        all.push(of13::group_mod(2, 0, id, &[]));
        all.push(Flow::new(&of13::ipv4(), &of13::apply(&[of13::group(id)])).message());
    }
    for command in 0..=2 {
        all.push(of13::meter_mod(command, 1, 1_000_000));
    }
    let send = of13::apply(&[of13::output(3)]);
    all.push(Flow::new(&of13::ipv4(), &[of13::metered(), send].concat()).message());
    all.push(of13::request(1, &of13::all_flows()));
    all
}

fn packet_out_10(buffer: u32, list: &[u8]) -> Vec<u8> {
    let length = (list.len() as u16).to_be_bytes();
    let head = [&buffer.to_be_bytes()[..], &[0, 1], &length].concat();
    testbed::message(PACKET_OUT, &[&head, list, &udp(100, 0)].concat())
}

#[test]
fn random_sequences_of_1_0_have_causes() {
    check_sequences(&[Quirks::Firmware], false, &usual_10(), &of_10());
}

#[test]
fn random_sequences_of_1_3_have_causes() {
    check_sequences(&[Quirks::Firmware], true, &usual_13(), &of_13());
}

#[test]
fn random_sequences_have_causes_on_boards_with_some_deviations() {
    for (is_13, usual, odd) in [(false, usual_10(), of_10()), (true, usual_13(), of_13())] {
        let sets = single_quirks(is_13).into_iter();
        let sets: Vec<_> = sets
            .flat_map(|set| [Quirks::Without(set), Quirks::Only(set)])
            .collect();
        check_sequences(&sets, is_13, &usual, &odd);
    }
}

/// Returns the only event of a board about one message.
fn cause_of(is_13: bool, sent: &[u8]) -> Option<Cause> {
    let events = send(&mut board(Quirks::Firmware, is_13), sent).events;
    match events[..] {
        [] => None,
        [Event::MessageMisread {
            version,
            message_type,
            cause,
        }] => {
            assert_eq!((version, message_type), (version_of(is_13), sent[1]));
            Some(cause)
        }
        _ => panic!("{}: {events:?}", hex(sent)),
    }
}

/// Numbers of the ports `IN_PORT`, NORMAL, ALL, CONTROLLER, LOCAL, of NONE, and of ports that no board has.
const NOWHERE: [u16; 9] = [0xfff8, 0xfffa, 0xfffc, 0xfffd, 0xfffe, 0xffff, 0, 5, 9];

#[test]
fn packet_out_to_ports_that_lead_nowhere_is_told() {
    for port in NOWHERE {
        let lost = Some(Cause::OutputNowhere);
        assert_eq!(
            cause_of(false, &packet_out_10(u32::MAX, &output(port))),
            lost,
            "{port:#x}"
        );
        let wide = if port >= 0xff00 { 0xffff_0000 } else { 0 } | u32::from(port);
        assert_eq!(
            cause_of(true, &packet_out_13(1, &of13::output(wide))),
            lost,
            "{wide:#x}"
        );
    }
    assert_eq!(cause_of(false, &packet_out_10(u32::MAX, &output(3))), None);
    assert_eq!(cause_of(true, &packet_out_13(1, &of13::output(3))), None);
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn messages_that_are_misread_name_their_cause() {
    let add = |fields, actions| FlowMod::add(fields, 9, actions);
    let flagged = |flags| {
        FlowMod {
            flags,
            ..add(everything(), output(3))
        }
        .message()
    };
    let timed = |at: usize| {
        let mut sent = add(everything(), output(3)).message();
        sent[at] = 1;
        sent
    };
    let vlan = |vid: u8| add(everything(), vec![0, 1, 0, 8, 0, vid, 0, 0]).message();
    let present = FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(3));
    for (sent, cause) in [
        (packet_out_10(7, &output(3)), Cause::BufferIgnored),
        (packet_out_10(u32::MAX, &[]), Cause::NoActions),
        (
            packet_out_10(u32::MAX, &output(3).repeat(2)),
            Cause::OneOutput,
        ),
        (packet_out_10(u32::MAX, &output(1)), Cause::ToIngress),
        (flagged(2), Cause::FlagsIgnored),
        (flagged(4), Cause::FlagsIgnored),
        (timed(59), Cause::TimeoutsIgnored),
        (timed(61), Cause::TimeoutsIgnored),
        (vlan(0), Cause::VlanZero),
        (
            add(everything(), output(3).repeat(5)).message(),
            Cause::ActionsUnchecked,
        ),
        (
            add(everything(), output(9)).message(),
            Cause::ActionsUnchecked,
        ),
        (present.message(), Cause::Shadowed),
        (present.clone().command(1).message(), Cause::ModifyAppends),
        (
            add(fields(Fields::Port, 3), output(3)).command(2).message(),
            Cause::ModifiesNothing,
        ),
        (present.command(4).message(), Cause::DeletesOthers),
        (
            add(everything(), output(3)).command(5).message(),
            Cause::CommandUnknown,
        ),
        (
            testbed::message(SET_CONFIG, &[0, 0, 0, 128]),
            Cause::ConfigIgnored,
        ),
        (testbed::message(2, &[1]), Cause::EchoPayload),
        (
            testbed::message(16, &[&[0, 1, 0, 0][..], &[0; 44]].concat()),
            Cause::FilterIgnored,
        ),
    ] {
        assert_eq!(cause_of(false, &sent), Some(cause), "{}", hex(&sent));
    }
    let flow = |oxms: &[u8]| Flow::new(oxms, &of13::apply(&[of13::output(3)]));
    let with = |change: fn(&mut Flow)| {
        let mut flow = flow(&[]);
        change(&mut flow);
        flow.message()
    };
    let buffered = |mut sent: Vec<u8>, at: usize| {
        sent[at..at + 4].fill(1);
        sent
    };
    let act = |actions: &[Vec<u8>]| Flow::new(&[], &of13::apply(actions)).message();
    for (sent, cause) in [
        (
            buffered(packet_out_13(1, &of13::output(3)), 8),
            Cause::BufferIgnored,
        ),
        (buffered(flow(&[]).message(), 32), Cause::BufferIgnored),
        (packet_out_13(1, &[]), Cause::NoActions),
        (
            packet_out_13(1, &of13::output(3).repeat(2)),
            Cause::OneOutput,
        ),
        (packet_out_13(1, &of13::output(1)), Cause::ToIngress),
        (with(|flow| flow.flags = 2), Cause::FlagsIgnored),
        (act(&[of13::output(9)]), Cause::Unchecked),
        (act(&[vec![0, 24, 0, 8, 0, 0, 0, 0]]), Cause::ActionsDiffer),
        (
            flow(&of13::oxm(22, &[10, 0, 0, 1])).message(),
            Cause::Unchecked,
        ),
        (
            flow(&[of13::oxm(5, &[8, 6]), of13::oxm(22, &[10, 0, 0, 1])].concat()).message(),
            Cause::MatchNever,
        ),
        (
            Flow::new(&[], &of13::with_actions(3, &[of13::output(3)])).message(),
            Cause::InstructionsIgnored,
        ),
        (
            with(|flow| (flow.command, flow.out_port) = (3, 2)),
            Cause::DeleteByPort,
        ),
        (
            with(|flow| (flow.command, flow.flags) = (3, 1)),
            Cause::NoticeLost,
        ),
        (of13::group_mod(1, 0, 1, &[]), Cause::GroupIgnored),
        (of13::meter_mod(0, 0, 1000), Cause::MeterUnchecked),
        (
            message(true, SET_CONFIG, &[0, 0, 0, 128]),
            Cause::ConfigIgnored,
        ),
    ] {
        assert_eq!(cause_of(true, &sent), Some(cause), "{}", hex(&sent));
    }
}

/// Returns a match of these fields: their bits among the wildcards, where they are, and their values.
fn given(fields: &[(u32, usize, &[u8])]) -> [u8; 40] {
    let mut given = everything();
    let open = fields
        .iter()
        .fold(0x003f_ffff, |open, (bits, ..)| open & !bits);
    given[..4].copy_from_slice(&open.to_be_bytes());
    for (_, at, value) in fields {
        given[*at..at + value.len()].copy_from_slice(value);
    }
    given
}

#[test]
fn a_cause_comes_and_goes_with_its_deviations() {
    use Quirk as Q;
    let add = |fields| FlowMod::add(fields, 9, output(3)).message();
    let mut timed = add(everything());
    timed[59] = 1;
    let (dl_type, nw_proto, dl_vlan) = (1 << 4, 1 << 5, 1 << 1);
    let arp = add(given(&[(dl_type, 22, &[8, 6]), (nw_proto, 25, &[1])]));
    let vlan = add(given(&[(dl_vlan, 18, &[0, 5])]));
    let present = FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(3));
    let type_of_service = [&[0, 8, 0, 8, 0xff, 0, 0, 0], &output(3)[..]].concat();
    let mut flood = packet_out_10(u32::MAX, &output(0xfffb));
    flood[12..14].copy_from_slice(&257_u16.to_be_bytes());
    let outputs = packet_out_10(u32::MAX, &output(3).repeat(2));
    let to_table = [
        packet_out_10(u32::MAX, &output(0xfff9)),
        testbed::message(18, &[]),
    ]
    .concat();
    for (quirks, sent, cause) in [
        (&[Q::NoReassembly][..], outputs, Cause::OneOutput),
        (
            &[Q::NoReassembly],
            testbed::message(2, &[1]),
            Cause::EchoPayload,
        ),
        (
            &[Q::NoReassembly, Q::ActionsByFirstTag],
            flood,
            Cause::IngressByLowByte,
        ),
        (
            &[Q::ActionsByFirstTag],
            packet_out_10(u32::MAX, &type_of_service),
            Cause::ActionsByFirstTag,
        ),
        (&[Q::TimeoutsByAddress], timed, Cause::TimeoutsIgnored),
        (&[Q::ArpFieldsUnmatched], arp, Cause::ArpFieldsOpen),
        (&[Q::LimitedMatching], vlan, Cause::MatchDiffers),
        (&[Q::BrokenFlowMods], present.message(), Cause::Shadowed),
        (
            &[Q::BrokenFlowMods],
            present.command(1).message(),
            Cause::ModifyAppends,
        ),
        (
            &[Q::InsertedTagOverwrites],
            to_table,
            Cause::NextOverwritten,
        ),
    ] {
        let cause_on = |quirks| {
            let mut bed = board(quirks, false);
            let tags = FlowMod::add(
                fields(Fields::FiveTuple, 0),
                6,
                [&[0, 2, 0, 8, 5, 0, 0, 0], &output(2)[..]].concat(),
            );
            bed.exchange(&tags.message());
            bed.events.clear();
            misread(&send(&mut bed, &sent).events)
        };
        for quirk in quirks {
            let only = Quirks::Only(QuirkSet::from_iter([*quirk]));
            assert_eq!(cause_on(only), Some(cause), "{quirk}: {}", hex(&sent));
        }
        let without = Quirks::Without(quirks.iter().copied().collect());
        assert_ne!(cause_on(without), Some(cause), "{quirks:?}: {}", hex(&sent));
    }
}

#[test]
fn flooding_beyond_the_ports_of_openflow_is_told() {
    for (quirk, cause) in [
        (Quirk::FloodIsAll, Some(Cause::FloodElsewhere)),
        (Quirk::ActionsByFirstTag, None),
    ] {
        let config = Config {
            quirks: Quirks::Only(QuirkSet::from_iter([quirk])),
            openflow_version: 1,
            openflow_ports: vec![testbed::port(1), testbed::port(2)],
            ..quiet_config()
        };
        let mut bed = Testbed::new(&PROFILE, config);
        bed.board.connected(bed.now);
        bed.exchange(&testbed::message(0, &[]));
        let flood = packet_out_10(u32::MAX, &output(0xfffb));
        let answered = send(&mut bed, &flood);
        assert_eq!(misread(&answered.events), cause, "{quirk}");
        let ports = by_port(answered.frames).into_iter().map(|(port, _)| port);
        let meant = if cause.is_some() { vec![2, 3] } else { vec![2] };
        assert!(ports.eq(meant), "{quirk}");
    }
}

/// Returns the first cause that the events name, if there is one.
fn misread(events: &[Event]) -> Option<Cause> {
    events.iter().find_map(|event| match event {
        Event::MessageMisread { cause, .. } => Some(*cause),
        _ => None,
    })
}

#[test]
fn a_full_table_names_a_deviation_only_if_the_board_has_it() {
    for quirk in [Quirk::NoReassembly, Quirk::BrokenFlowMods] {
        let quirks = Quirks::Without(QuirkSet::from_iter([quirk]));
        let mut bed = board(quirks, false);
        let mut number = 2;
        let text = loop {
            let entry = FlowMod::add(fields(Fields::FiveTuple, number), 5, output(2));
            if let [refused] = send(&mut bed, &entry.message()).events[..] {
                break refused.to_string();
            }
            number += 1;
        };
        assert_eq!(number, 128);
        let names = quirk != Quirk::BrokenFlowMods;
        assert_eq!(text.contains("quirk 47"), names, "{text}");
    }
}

#[test]
fn an_overlap_is_not_called_a_full_table() {
    let mut bed = board(Quirks::Spec, false);
    let mut entry = FlowMod::add(everything(), 5, output(3));
    entry.flags = 2;
    let answered = send(&mut bed, &entry.message());
    assert_eq!(answered.replies[0][8..12], [0, 3, 0, 1]);
    let text = answered.events[0].to_string();
    assert!(text.contains("OVERLAP") && !text.contains("full"), "{text}");
    let refused = Event::MessageRefused {
        version: 1,
        message_type: FLOW_MOD,
        error_type: 3,
        error_code: 1,
        quirks: Quirks::Spec,
    };
    assert_eq!(answered.events, [refused]);
}
