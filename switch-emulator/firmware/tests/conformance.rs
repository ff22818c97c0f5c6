//! Replays exchanges that were recorded from the firmware on an emulated CPU (`exchanges/README.md`).

mod recording;

use std::path::Path;

use recording::{compare, hex, line, replay_all, same_message, texts, unhex, Bench, MSS, TICK};
use serde_json::Value;
use zodiac_firmware::{Config, Duration, FailState, Flow};

/// Long enough for what a frame or message causes, short enough that a case's messages cause no tick. The recordings
/// take no time for them, so the bench catches up at the next tick.
const SETTLE_FRAME: Duration = Duration::from_millis(3);
const SETTLE_SEGMENT: Duration = Duration::from_millis(1);

#[test]
fn recorded_exchanges() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    files.sort();
    let all: String = files
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    replay_all(all.lines().map(str::to_owned), 60, replay);
}

fn replay(case: &Value) -> Result<(), String> {
    let events = texts(&case["events"]);
    let safe = events.iter().any(|event| event == "config failstate 1");
    let mut bench = Bench::new(Config {
        fail_state: if safe {
            FailState::Safe
        } else {
            FailState::Secure
        },
        loop_phase_ns: Some(0),
        acknowledgement_ns: 0,
        ..Config::default()
    });
    for (event, expected) in events.iter().zip(case["outputs"].as_array().unwrap()) {
        let mut expected = texts(expected);
        expected.retain(|line| !line.starts_with("mem ") && !line.starts_with("seg "));
        let actual = perform(&mut bench, event);
        compare(event, expected, actual, same)?;
    }
    Ok(())
}

/// Performs one event of a case. Returns what the board gave, in the form of the recordings.
fn perform(bench: &mut Bench, event: &str) -> Vec<String> {
    let words: Vec<&str> = event.split(' ').collect();
    let mut lines = Vec::new();
    match words[..] {
        ["config", ..] => {}
        ["connect"] => {
            if bench.connect() {
                bench.pass(TICK);
                lines.extend(["ev syn".into(), "ev connected".into()]);
            }
        }
        ["of", payload] => {
            for segment in unhex(payload).chunks(MSS) {
                bench.board.segment(bench.now, segment);
                bench.settle(SETTLE_SEGMENT);
            }
        }
        ["pkt", port, frame] => {
            bench.frame(port, frame);
            bench.settle(SETTLE_FRAME);
        }
        ["tick"] => bench.pass(TICK),
        ["tick", count] => (0..count.parse().unwrap()).for_each(|_| bench.pass(TICK)),
        ["ms", count] => bench.pass(Duration::from_millis(count.parse().unwrap())),
        ["fin"] => {
            bench.board.finished(bench.now);
            bench.settle(SETTLE_SEGMENT);
        }
        ["rst"] => {
            bench.board.reset(bench.now);
            bench.settle(SETTLE_SEGMENT);
        }
        ["link", port, state] => bench.link(port, state),
        ["dump"] => lines.extend(dump(&bench.board.flows())),
        _ => panic!("unknown event `{event}`"),
    }
    lines.extend(bench.outputs.drain(..).filter_map(|output| line(&output)));
    lines
}

fn dump(flows: &[Flow]) -> Vec<String> {
    let state = format!("state iLastFlow={}", flows.len());
    let flows = flows.iter().enumerate();
    let described = flows.map(|(index, flow)| describe(index, flow));
    std::iter::once(state).chain(described).collect()
}

fn describe(index: usize, flow: &Flow) -> String {
    let actions: String = flow.actions.iter().map(|slot| hex(slot)).collect();
    format!(
        "flow {index} hits={} bytes={} prio={:04x} match={} actions={actions}",
        flow.packets,
        flow.bytes,
        flow.priority,
        hex(&flow.fields.to_bytes())
    )
}

/// Returns whether a recorded line and ours say the same, apart from what is garbage on the board.
fn same(expected: &str, actual: &str) -> bool {
    match expected.split(' ').next().unwrap() {
        "of" => actual.strip_prefix("of ").is_some_and(|actual| {
            let expected = unhex(&expected[3..]);
            same_message(&expected, &unhex(actual), &garbage(&expected))
        }),
        "state" | "flow" => actual
            .split(' ')
            .all(|word| expected.split(' ').any(|other| other == word)),
        "TRUNC" => expected.strip_suffix(" (receiver discards)") == Some(actual),
        _ => expected == actual,
    }
}

/// Positions whose contents are garbage, marked or not: flow statistics' priority and timeouts, table statistics'
/// padding, name and wildcards, port status' padding.
fn garbage(message: &[u8]) -> Vec<usize> {
    let mut positions = Vec::new();
    match (message.get(1), message.get(8..10)) {
        (Some(12), _) => positions.extend(9..16),
        (Some(17), Some([0, 3])) => positions.extend(13..52),
        _ => {}
    }
    if message.get(1) == Some(&17) && message.get(8..10) == Some(&[0, 4]) {
        // The recordings have no integrated switch that counts bytes and drops.
        for entry in (12..message.len()).step_by(104) {
            positions.extend(entry + 24..entry + 56);
        }
    }
    if message.get(1) == Some(&17) && message.get(8..10) == Some(&[0, 1]) {
        let mut entry = 12;
        while entry + 88 <= message.len() {
            positions.extend(entry + 52..entry + 58);
            entry += usize::from(u16::from_be_bytes([message[entry], message[entry + 1]])).max(88);
        }
    }
    positions
}
