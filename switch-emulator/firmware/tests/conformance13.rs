//! Replays exchanges in OpenFlow 1.3 that were recorded from the firmware on an emulated CPU (`exchanges13/README.md`).

mod recording;

use recording::{
    compare, hex, line, replay_all, same_message, texts, unhex, Bench, MSS, SLACK, TICK,
};
use serde_json::Value;
use zodiac_firmware::{Duration, Flow13, OutputKind};

const EXCHANGES: &str = include_str!("exchanges13/examples.jsonl");
const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn recorded_exchanges_of_openflow_1_3() {
    replay_all(EXCHANGES.lines().map(str::to_owned), 80, replay);
}

fn replay(case: &Value) -> Result<(), String> {
    let mut config = case["config"].clone();
    config["loop_phase_ns"] = 0.into();
    if config.get("acknowledgement_ns").is_none() {
        config["acknowledgement_ns"] = 0.into();
    }
    let mut replay = Replay {
        bench: Bench::new(serde_json::from_value(config).unwrap()),
        received: Vec::new(),
    };
    let unsure = case["unsure"].as_array();
    let outputs = case["outputs"].as_array().unwrap();
    for (index, (event, expected)) in texts(&case["events"]).iter().zip(outputs).enumerate() {
        let actual = merged(replay.perform(event));
        if !unsure.is_some_and(|unsure| unsure.contains(&Value::from(index))) {
            compare(event, merged(texts(expected)), actual, same)?;
        }
    }
    Ok(())
}

/// Messages that follow each other as one line: where one ends is for the reader to say. Without frames whose way the
/// recordings do not know.
fn merged(lines: Vec<String>) -> Vec<String> {
    let mut merged: Vec<String> = Vec::new();
    for line in lines {
        if let Some(mask) = line
            .strip_prefix("out ")
            .and_then(|rest| rest.split(' ').next())
        {
            let mask = u8::from_str_radix(mask, 16).unwrap();
            if mask == 0 || mask > 0x0f {
                continue;
            }
        }
        match (merged.last_mut(), line.strip_prefix("of ")) {
            (Some(last), Some(more)) if last.starts_with("of ") => last.push_str(more),
            _ => merged.push(line),
        }
    }
    merged
}

struct Replay {
    bench: Bench,
    /// Bytes of an incomplete message that the controller has received.
    received: Vec<u8>,
}

impl Replay {
    /// Performs one event of a case. Returns what the board gave, in the form of the recordings.
    fn perform(&mut self, event: &str) -> Vec<String> {
        let words: Vec<&str> = event.split(' ').collect();
        let mut lines = Vec::new();
        let bench = &mut self.bench;
        let unsendable = bench.board.counters().dropped_size;
        match words[..] {
            ["connect"] => {
                if bench.connect() {
                    self.received.clear();
                    bench.now += SLACK;
                    bench.pass(Duration::ZERO);
                    lines.extend(["ev syn".into(), "ev connected".into()]);
                }
            }
            ["of", ref payloads @ ..] => {
                for payload in payloads {
                    for segment in unhex(payload).chunks(MSS) {
                        bench.board.segment(bench.now, segment);
                        bench.pass(MILLISECOND);
                    }
                }
            }
            ["pkt", port, frame] => {
                bench.frame(port, frame);
                bench.pass(MILLISECOND);
            }
            ["tick", count] => (0..count.parse().unwrap()).for_each(|_| bench.pass(TICK)),
            ["ms", count] => bench.pass(Duration::from_millis(count.parse().unwrap())),
            ["fin"] => {
                bench.board.finished(bench.now);
                bench.pass(MILLISECOND);
            }
            ["rst"] => {
                bench.board.reset(bench.now);
                bench.pass(MILLISECOND);
            }
            ["link", port, state] => bench.link(port, state),
            ["dump"] => {
                let version = bench.board.openflow_version();
                let flows = bench.board.flows13();
                lines.push(format!("state version={version} entries={}", flows.len()));
                let flows = flows.iter().enumerate();
                lines.extend(flows.map(|(index, flow)| describe(index, flow)));
            }
            _ => panic!("unknown event `{event}`"),
        }
        for output in std::mem::take(&mut self.bench.outputs) {
            match &output.kind {
                OutputKind::Controller(bytes) => self.receive(bytes, &mut lines),
                _ => lines.extend(line(&output)),
            }
        }
        let unsent = self.bench.board.counters().dropped_size - unsendable;
        lines.extend((0..unsent).map(|_| "txdrop".to_owned()));
        lines
    }

    /// The controller reads messages by the lengths in their headers, and what has no length as it comes.
    fn receive(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        self.received.extend(bytes);
        while let Some(length) = self.received.get(2..4) {
            let mut length = usize::from(u16::from_be_bytes([length[0], length[1]]));
            if length < 8 {
                length = self.received.len();
            }
            if length > self.received.len() {
                return;
            }
            let rest = self.received.split_off(length);
            lines.push(format!("of {}", hex(&self.received)));
            self.received = rest;
        }
    }
}

fn describe(index: usize, flow: &Flow13) -> String {
    format!(
        "flow {index} packets={} bytes={} head={} match={} instructions={}",
        flow.packets,
        flow.bytes,
        hex(&flow.head),
        hex(&flow.oxms),
        hex(&flow.instructions)
    )
}

/// Returns whether a recorded line and ours say the same, apart from what is garbage on the board.
fn same(expected: &str, actual: &str) -> bool {
    match (expected.strip_prefix("of "), actual.strip_prefix("of ")) {
        (Some(expected), Some(actual)) => same_message(&unhex(expected), &unhex(actual), &[]),
        _ => expected == actual,
    }
}
