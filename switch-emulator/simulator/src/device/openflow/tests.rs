use openflow::v1_0::{port::NONE, wildcards, Match};
use zodiac_firmware::MacAddress;

use super::*;

const ADD: u16 = 0;
const MODIFY_STRICT: u16 = 2;
const DELETE: u16 = 3;

fn agent() -> OpenFlowAgent {
    OpenFlowAgent::new(MacAddress([2, 0, 0, 0, 0, 1]), 5, 3)
}

pub(crate) fn any() -> Match {
    Match::read(&wildcards::ALL.to_be_bytes())
}

pub(crate) fn from_port(port: u16) -> Match {
    Match {
        wildcards: wildcards::ALL & !wildcards::IN_PORT,
        in_port: port,
        ..any()
    }
}

fn to_mac(last: u8) -> Match {
    Match {
        wildcards: wildcards::ALL & !wildcards::DL_DST,
        dl_dst: [2, 0, 0, 0, 0, last],
        ..any()
    }
}

fn flow_mod(
    command: u16,
    fields: &Match,
    priority: u16,
    out_port: u16,
    outputs: &[u16],
) -> Vec<u8> {
    let words = outputs.iter().flat_map(|output| [0, 8, *output, 0xffff]);
    let actions: Vec<u8> = words.flat_map(u16::to_be_bytes).collect();
    flow_mod_of(command, fields, (priority, out_port), &actions)
}

pub(super) fn flow_mod_of(
    command: u16,
    fields: &Match,
    (priority, out_port): (u16, u16),
    actions: &[u8],
) -> Vec<u8> {
    begin(message::FLOW_MOD, 7)
        .bytes(&fields.to_bytes())
        .zeros(8)
        .u16(command)
        .zeros(4)
        .u16(priority)
        .bytes(&[0xff; 4])
        .u16(out_port)
        .zeros(2)
        .bytes(actions)
        .finish()
}

/// Returns a `FLOW_MOD` that adds an entry.
pub(crate) fn add(fields: &Match, priority: u16, outputs: &[u16]) -> Vec<u8> {
    flow_mod(ADD, fields, priority, NONE, outputs)
}

fn frame_to(last: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, last]);
    frame
}

fn forward(ports: &[u8]) -> Verdict {
    Verdict::Forward {
        ports: ports
            .iter()
            .fold(PortSet::default(), |set, port| set.with(*port)),
        queue: 0,
    }
}

/// Returns type and code of the error message, if that is the only answer.
fn error_of(answers: &[Vec<u8>]) -> Option<(u16, u16)> {
    match answers {
        [answer] if answer[1] == message::ERROR => Some((be16(answer, 8), be16(answer, 10))),
        _ => None,
    }
}

#[test]
fn answers_in_order_and_puts_messages_together() {
    let mut agent = agent();
    let mut stream = vec![1, 0, 0, 8, 0, 0, 0, 1, 1, 5, 0, 8, 0, 0, 0, 2];
    stream.extend(add(&any(), 1, &[2]));
    stream.extend([1, 18, 0, 8, 0, 0, 0, 9]);
    let (first, second) = stream.split_at(30);
    let features = agent.segment(0, first);
    assert_eq!(features.len(), 1);
    assert_eq!(features[0].len(), 32 + 5 * 48);
    assert_eq!(
        features[0][..16],
        [1, 6, 1, 16, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 0, 1]
    );
    assert_eq!(agent.segment(0, second), [[1, 19, 0, 8, 0, 0, 0, 9]]);
    assert_eq!(agent.look_up(0, &frame_to(1), 1), forward(&[2]));
}

#[test]
fn links_are_told_at_once_and_when_asked() {
    let mut agent = agent();
    assert_eq!(agent.link_state(1, true), None); // nobody listens yet
    agent.connected();
    let features =
        |agent: &mut OpenFlowAgent| agent.segment(0, &[1, 5, 0, 8, 0, 0, 0, 2]).remove(0);
    let port_states = |features: &[u8]| -> Vec<u32> {
        features[32..]
            .chunks_exact(48)
            .map(|port| be32(port, 28))
            .collect()
    };
    assert_eq!(port_states(&features(&mut agent)), [0, 1, 1, 1, 1]);
    let status = agent.link_state(2, true).expect("news");
    assert_eq!(
        status[..16],
        [1, 12, 0, 64, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
    );
    let told = features(&mut agent);
    assert_eq!(port_states(&told), [0, 0, 1, 1, 1]);
    assert_eq!(status[16..], told[32 + 48..32 + 96]);
    assert_eq!(agent.link_state(2, true), None);
    assert!(agent.link_state(1, false).is_some());
    assert_eq!(port_states(&features(&mut agent)), [1, 0, 1, 1, 1]);
}

#[test]
fn outputs_go_where_the_specification_says() {
    let mut agent = agent();
    assert_eq!(agent.look_up(0, &frame_to(1), 1), Verdict::Miss);
    agent.segment(0, &add(&from_port(1), 1, &[0xfffb]));
    agent.segment(0, &add(&from_port(2), 1, &[2, 3, 4]));
    agent.segment(0, &add(&from_port(3), 1, &[0xfff8]));
    assert_eq!(agent.look_up(0, &frame_to(1), 1), forward(&[2, 3, 4, 5]));
    assert_eq!(agent.look_up(0, &frame_to(1), 2), forward(&[3, 4]));
    assert_eq!(agent.look_up(0, &frame_to(1), 3), forward(&[3]));
    agent.segment(0, &flow_mod(MODIFY_STRICT, &from_port(3), 1, NONE, &[]));
    assert_eq!(agent.look_up(0, &frame_to(1), 3), Verdict::Drop);
}

#[test]
fn refuses_what_it_cannot_do() {
    let mut agent = agent();
    let mut rewriting = add(&any(), 1, &[2]);
    rewriting[73] = 5; // set-dl-dst
    assert_eq!(error_of(&agent.segment(0, &rewriting)), Some((2, 0)));
    assert_eq!(
        error_of(&agent.segment(0, &add(&any(), 1, &[6]))),
        Some((2, 4))
    );
    let mut long = add(&any(), 1, &[2]);
    long[75] = 16;
    assert_eq!(error_of(&agent.segment(0, &long)), Some((2, 1)));
    assert_eq!(
        error_of(&agent.segment(0, &flow_mod(9, &any(), 1, NONE, &[]))),
        Some((3, 4))
    );
    assert_eq!(
        error_of(&agent.segment(0, &[1, 15, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0])),
        Some((1, 1))
    );
    assert_eq!(
        error_of(&agent.segment(0, &[4, 18, 0, 8, 0, 0, 0, 1])),
        Some((1, 0))
    );
    assert_eq!(
        error_of(&agent.segment(0, &[1, 18, 0, 7, 0, 0, 0, 1])),
        Some((1, 6))
    );
    for priority in 1..=3 {
        assert!(agent.segment(0, &add(&any(), priority, &[2])).is_empty());
    }
    assert_eq!(
        error_of(&agent.segment(0, &add(&any(), 4, &[2]))),
        Some((3, 0))
    );
    assert!(agent.segment(0, &add(&any(), 3, &[4])).is_empty());
    assert_eq!(agent.look_up(0, &frame_to(1), 1), forward(&[4]));
}

/// Returns a `FLOW_MOD` that adds an entry which enqueues to a port's queue.
pub(crate) fn add_enqueue(fields: &Match, priority: u16, port: u16, queue: u32) -> Vec<u8> {
    let words = [0x000b_0010, u32::from(port) << 16, 0, queue];
    let actions = words.map(u32::to_be_bytes);
    flow_mod_of(ADD, fields, (priority, NONE), actions.as_flattened())
}

#[test]
fn enqueue_names_a_queue_where_ports_have_them() {
    let message = add_enqueue(&to_mac(1), 1, 2, 70_000);
    let mut without = agent();
    assert_eq!(error_of(&without.segment(0, &message)), Some((2, 8)));
    let mut with = OpenFlowAgent::with_queues(MacAddress([2, 0, 0, 0, 0, 1]), 5, 3);
    assert!(with.segment(0, &message).is_empty());
    let ports = PortSet::default().with(2);
    let queue = 70_000;
    assert_eq!(
        with.look_up(0, &frame_to(1), 1),
        Verdict::Forward { ports, queue }
    );
    assert_eq!(
        error_of(&with.segment(0, &add_enqueue(&to_mac(1), 1, 9, 0))),
        Some((2, 4))
    );
}

/// Returns an agent of a switch chip with these parts, for 1000 entries.
fn of_parts(profile: AgentProfile) -> OpenFlowAgent {
    let model = TableModel {
        entries: 1_000,
        software_entries: 1,
        ..TableModel::default()
    };
    let random = Stream::new(1, 0);
    OpenFlowAgent::modelled(MacAddress([2, 0, 0, 0, 0, 1]), 5, model, (profile, random))
}

/// Returns a request for the entries that send to a port.
fn entries_request(out_port: u16) -> Vec<u8> {
    begin(message::STATS_REQUEST, 5)
        .bytes(&[0, 1, 0, 0])
        .bytes(&any().to_bytes())
        .bytes(&[0xff, 0])
        .u16(out_port)
        .finish()
}

#[test]
fn lists_its_entries_in_as_many_replies_as_they_need() {
    let mut agent = of_parts(AgentProfile::default());
    for place in 0..700 {
        let mut entry = add(&from_port(place), 1, &[if place < 3 { 2 } else { 3 }]);
        entry[48..56].copy_from_slice(&u64::from(place).to_be_bytes());
        assert!(agent.segment(0, &entry).is_empty());
    }
    let cookies = |mut replies: &[u8]| {
        let (mut found, mut more) = (Vec::new(), Vec::new());
        while !replies.is_empty() {
            let (reply, rest) = replies.split_at(usize::from(be16(replies, 2)));
            assert_eq!((reply[1], be16(reply, 8)), (message::STATS_REPLY, 1));
            more.push(be16(reply, 10));
            let mut at = 12;
            while at < reply.len() {
                let cookie = &reply[at + 64..at + 72];
                found.push(u64::from_be_bytes(cookie.try_into().unwrap()));
                assert_eq!(reply[at + 88..at + 94], [0, 0, 0, 8, 0, reply[at + 93]]);
                at += usize::from(be16(reply, at));
            }
            replies = rest;
        }
        (found, more)
    };
    let (found, more) = cookies(&agent.segment(0, &entries_request(NONE))[0]);
    assert_eq!(found, (0..700).collect::<Vec<_>>());
    assert_eq!(more, [1, 0]);
    let (found, more) = cookies(&agent.segment(0, &entries_request(2))[0]);
    assert_eq!((found, more), (vec![0, 1, 2], vec![0]));
    let table = agent.segment(0, &[1, 16, 0, 12, 0, 0, 0, 1, 0, 3, 0, 0]);
    assert_eq!(table[0][12 + 40..12 + 48], [0, 0, 3, 232, 0, 0, 2, 188]);
}

#[test]
fn a_throttled_agent_works_on_one_message_after_another() {
    let throttle = agent::Throttle {
        first_ns: 10,
        each_ns: 5,
    };
    let mut agent = of_parts(AgentProfile {
        throttle: Some(throttle),
        ..AgentProfile::default()
    });
    let mut stream = add(&from_port(1), 1, &[2]);
    stream.extend(add(&from_port(2), 1, &[3]));
    stream.extend([1, 18, 0, 8, 0, 0, 0, 9]);
    assert!(agent.segment(100, &stream).is_empty());
    assert_eq!(agent.next_ns(), Some(110));
    assert_eq!(agent.look_up(0, &frame_to(1), 1), Verdict::Miss);
    assert!(agent.work(110).is_empty());
    assert_eq!(agent.next_ns(), Some(125));
    assert_eq!(agent.work(125), [[1, 19, 0, 8, 0, 0, 0, 9]]);
    assert_eq!(agent.next_ns(), None);
}

#[test]
fn an_entry_is_listed_before_the_chip_has_it() {
    let writer = agent::Writer {
        write_ns: 50,
        waiting_entries: 2,
        keeps_deleted: false,
    };
    let mut agent = of_parts(AgentProfile {
        barrier: agent::Barrier::Chip,
        writer: Some(writer),
        ..AgentProfile::default()
    });
    assert!(agent.segment(100, &add(&from_port(1), 1, &[2])).is_empty());
    assert_eq!(agent.segment(100, &entries_request(NONE))[0].len(), 12 + 96);
    let verdict = |agent: &OpenFlowAgent, now_ns| agent.treatment(now_ns, &frame_to(1), 1).verdict;
    assert_eq!(verdict(&agent, 149), Verdict::Miss);
    assert_eq!(verdict(&agent, 150), forward(&[2]));
    assert!(agent.segment(120, &[1, 18, 0, 8, 0, 0, 0, 9]).is_empty());
    assert_eq!(agent.next_ns(), Some(150));
    assert_eq!(agent.work(150).len(), 1);
    for priority in 1..=2 {
        assert!(agent
            .segment(200, &add(&from_port(3), priority, &[2]))
            .is_empty());
    }
    assert_eq!(
        error_of(&agent.segment(200, &add(&from_port(3), 3, &[2]))),
        Some((3, 0))
    );
}

#[test]
fn deleted_entries_take_room_of_their_kind_along() {
    let rule = r#"
        actions = ["set-dl-dst"]
        entries = { value = 4, source = "assumption" }
        loses_one_in = { value = 2, source = "assumption" }
        source = "assumption"
    "#;
    let model = TableModel {
        rules: vec![toml::from_str(rule).unwrap()],
        entries: 8,
        software_entries: 1,
        misses_tagged: false,
    };
    let random = (AgentProfile::default(), Stream::new(1, 0));
    let mut agent = OpenFlowAgent::modelled(MacAddress([2, 0, 0, 0, 0, 1]), 5, model, random);
    let changing = |priority| {
        let actions = [
            [0, 5, 0, 16, 2, 0, 0, 0],
            [0, 9, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 8, 0, 2, 0, 0],
        ];
        flow_mod_of(ADD, &any(), (priority, NONE), actions.as_flattened())
    };
    let fill = |agent: &mut OpenFlowAgent, message: &dyn Fn(u16) -> Vec<u8>| {
        let taken = (1..20).take_while(|priority| agent.segment(0, &message(*priority)).is_empty());
        let taken = taken.count();
        agent.segment(0, &flow_mod(DELETE, &any(), 0, NONE, &[]));
        taken
    };
    assert_eq!(fill(&mut agent, &changing), 4);
    assert_eq!(fill(&mut agent, &changing), 2);
    assert_eq!(fill(&mut agent, &changing), 1);
    assert_eq!(fill(&mut agent, &|priority| add(&any(), priority, &[2])), 8);
}
