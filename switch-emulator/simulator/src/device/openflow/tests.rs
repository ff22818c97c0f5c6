use zodiac_firmware::{MacAddress, Match};

use super::*;

const ANY: u32 = 0x003f_ffff;
const IN_PORT: u32 = 1;
const DL_DST: u32 = 1 << 3;
const ADD: u16 = 0;
const MODIFY_STRICT: u16 = 2;
const DELETE: u16 = 3;
const DELETE_STRICT: u16 = 4;
const NONE: u16 = 0xffff;

fn agent() -> Agent {
    Agent::new(MacAddress([2, 0, 0, 0, 0, 1]), 5, 3)
}

pub(crate) fn any() -> Match {
    Match::read(&ANY.to_be_bytes())
}

pub(crate) fn from_port(port: u16) -> Match {
    Match {
        wildcards: ANY & !IN_PORT,
        in_port: port,
        ..any()
    }
}

fn to_mac(last: u8) -> Match {
    Match {
        wildcards: ANY & !DL_DST,
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
    let mut message = begin(message::FLOW_MOD, &[0, 0, 0, 7]);
    message.extend(fields.to_bytes());
    message.extend([0; 8]);
    for value in [command, 0, 0, priority, 0xffff, 0xffff, out_port, 0] {
        message.extend(value.to_be_bytes());
    }
    for output in outputs {
        for value in [0, 8, *output, 0xffff] {
            message.extend(value.to_be_bytes());
        }
    }
    finish(message)
}

/// A `FLOW_MOD` that adds an entry.
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
            .fold(Ports::default(), |set, port| set.with(*port)),
        queue: 0,
    }
}

/// Type and code of the error message, if that is the only answer.
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
    let features = agent.segment(first);
    assert_eq!(features.len(), 1);
    assert_eq!(features[0].len(), 32 + 5 * 48);
    assert_eq!(
        features[0][..16],
        [1, 6, 1, 16, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 0, 1]
    );
    assert_eq!(agent.segment(second), [[1, 19, 0, 8, 0, 0, 0, 9]]);
    assert_eq!(agent.look_up(&frame_to(1), 1), forward(&[2]));
}

#[test]
fn the_highest_priority_wins_and_an_equal_entry_is_replaced() {
    let mut agent = agent();
    agent.segment(&add(&any(), 1, &[1]));
    agent.segment(&add(&to_mac(9), 5, &[2]));
    agent.segment(&add(&to_mac(9), 5, &[3]));
    assert_eq!(agent.look_up(&frame_to(9), 4), forward(&[3]));
    assert_eq!(agent.look_up(&frame_to(8), 4), forward(&[1]));
}

#[test]
fn outputs_go_where_the_specification_says() {
    let mut agent = agent();
    assert_eq!(agent.look_up(&frame_to(1), 1), Verdict::Miss);
    agent.segment(&add(&from_port(1), 1, &[0xfffb]));
    agent.segment(&add(&from_port(2), 1, &[2, 3, 4]));
    agent.segment(&add(&from_port(3), 1, &[0xfff8]));
    assert_eq!(agent.look_up(&frame_to(1), 1), forward(&[2, 3, 4, 5]));
    assert_eq!(agent.look_up(&frame_to(1), 2), forward(&[3, 4]));
    assert_eq!(agent.look_up(&frame_to(1), 3), forward(&[3]));
    agent.segment(&flow_mod(MODIFY_STRICT, &from_port(3), 1, NONE, &[]));
    assert_eq!(agent.look_up(&frame_to(1), 3), Verdict::Drop);
}

#[test]
fn deletes_what_is_covered_and_sends_to_the_port() {
    let mut agent = agent();
    agent.segment(&add(&from_port(1), 1, &[2]));
    agent.segment(&add(&from_port(2), 1, &[3]));
    agent.segment(&flow_mod(DELETE, &any(), 0, 3, &[]));
    assert_eq!(agent.look_up(&frame_to(1), 1), forward(&[2]));
    assert_eq!(agent.look_up(&frame_to(1), 2), Verdict::Miss);
    agent.segment(&flow_mod(DELETE_STRICT, &from_port(1), 2, NONE, &[]));
    assert_eq!(agent.look_up(&frame_to(1), 1), forward(&[2]));
    agent.segment(&flow_mod(DELETE, &any(), 0, NONE, &[]));
    assert_eq!(agent.look_up(&frame_to(1), 1), Verdict::Miss);
}

#[test]
fn refuses_what_it_cannot_do() {
    let mut agent = agent();
    let mut rewriting = add(&any(), 1, &[2]);
    rewriting[73] = 5; // set-dl-dst
    assert_eq!(error_of(&agent.segment(&rewriting)), Some((2, 0)));
    assert_eq!(
        error_of(&agent.segment(&add(&any(), 1, &[6]))),
        Some((2, 4))
    );
    let mut long = add(&any(), 1, &[2]);
    long[75] = 16;
    assert_eq!(error_of(&agent.segment(&long)), Some((2, 1)));
    assert_eq!(
        error_of(&agent.segment(&flow_mod(9, &any(), 1, NONE, &[]))),
        Some((3, 4))
    );
    assert_eq!(
        error_of(&agent.segment(&[1, 16, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0])),
        Some((1, 1))
    );
    assert_eq!(
        error_of(&agent.segment(&[4, 18, 0, 8, 0, 0, 0, 1])),
        Some((1, 0))
    );
    assert_eq!(
        error_of(&agent.segment(&[1, 18, 0, 7, 0, 0, 0, 1])),
        Some((1, 6))
    );
    for priority in 1..=3 {
        assert!(agent.segment(&add(&any(), priority, &[2])).is_empty());
    }
    assert_eq!(
        error_of(&agent.segment(&add(&any(), 4, &[2]))),
        Some((3, 0))
    );
}

/// A `FLOW_MOD` that adds an entry which enqueues to a port's queue.
pub(crate) fn add_enqueue(fields: &Match, priority: u16, port: u16, queue: u32) -> Vec<u8> {
    let mut message = add(fields, priority, &[]);
    for value in [11, 16, port, 0, 0, 0] {
        message.extend(value.to_be_bytes());
    }
    message.extend(queue.to_be_bytes());
    finish(message)
}

#[test]
fn enqueue_names_a_queue_where_ports_have_them() {
    let message = add_enqueue(&to_mac(1), 1, 2, 70_000);
    let mut without = agent();
    assert_eq!(error_of(&without.segment(&message)), Some((2, 0)));
    let mut with = Agent::with_queues(MacAddress([2, 0, 0, 0, 0, 1]), 5, 3);
    assert!(with.segment(&message).is_empty());
    let ports = Ports::default().with(2);
    let queue = 70_000;
    assert_eq!(
        with.look_up(&frame_to(1), 1),
        Verdict::Forward { ports, queue }
    );
    assert_eq!(
        error_of(&with.segment(&add_enqueue(&to_mac(1), 1, 9, 0))),
        Some((2, 4))
    );
}
