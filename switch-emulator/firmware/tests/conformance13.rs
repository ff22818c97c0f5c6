//! Replays exchanges in OpenFlow 1.3 that were recorded from the firmware on an emulated CPU (`exchanges13/README.md`).

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde_json::Value;
use zodiac_firmware::{
    Board, Config, ControlCosts, Duration, Event, Flow13, Housekeeping, Instant, OpenFlow13Costs,
    Output, OutputKind, PortNumber, Profile, ZODIAC_FX,
};

const EXCHANGES: &str = include_str!("exchanges13/examples.jsonl");
/// Longest payload of a TCP segment to the board.
const MSS: usize = 536;
const TICK: Duration = Duration::from_millis(501);
const MILLISECOND: Duration = Duration::from_millis(1);
/// How far a bench is ahead of the recording's clock, so that a tick due at an instant has happened.
const SLACK: Duration = Duration::from_micros(400);
/// Headers that the recordings count with a TCP payload.
const IP_TCP_BYTES: u16 = 40;
/// A byte that the firmware never wrote.
const UNINITIALISED: u8 = 0xa5;

#[test]
fn recorded_exchanges_of_openflow_1_3() {
    let mut failures = String::new();
    let mut cases = 0;
    for line in EXCHANGES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        cases += 1;
        if let Err(difference) = replay(&case) {
            writeln!(failures, "{name}: {difference}").unwrap();
        }
    }
    assert_eq!(cases, 80, "recorded exchanges");
    assert!(
        failures.is_empty(),
        "of {cases} cases these {} differ:\n{failures}",
        failures.matches(": at `").count()
    );
}

/// A board, and the far end of its connection.
struct Bench {
    board: Board,
    now: Instant,
    /// Clock of the recording.
    recorded: Instant,
    outputs: VecDeque<Output>,
    /// What the controller has received of a message that is not complete.
    received: Vec<u8>,
}

fn replay(case: &Value) -> Result<(), String> {
    let mut bench = Bench::new(&case["config"]);
    let unsure = case["unsure"].as_array();
    let events = case["events"].as_array().unwrap().iter();
    let outputs = case["outputs"].as_array().unwrap();
    for (index, (event, expected)) in events.zip(outputs).enumerate() {
        let event = event.as_str().unwrap();
        let actual = merged(bench.perform(event));
        let expected = expected.as_array().unwrap().iter();
        let expected = merged(
            expected
                .map(|line| line.as_str().unwrap().to_owned())
                .collect(),
        );
        if unsure.is_some_and(|unsure| unsure.contains(&Value::from(index))) {
            continue;
        }
        let (mut expected, mut actual) = (expected.into_iter(), actual.into_iter());
        loop {
            match (expected.next(), actual.next()) {
                (None, None) => break,
                (Some(expected), Some(actual)) if same(&expected, &actual) => {}
                (expected, actual) => {
                    return Err(format!(
                        "at `{event}` ({index})\n  recorded {}\n  here     {}",
                        expected.as_deref().unwrap_or("nothing more"),
                        actual.as_deref().unwrap_or("nothing more")
                    ));
                }
            }
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

impl Bench {
    fn new(config: &Value) -> Self {
        let mut profile = Profile::from_toml(ZODIAC_FX).unwrap();
        // The recordings' clock stands still while the firmware works.
        profile.cpu.timers.cost_ps = 0;
        profile.cpu.control = ControlCosts::FREE;
        profile.cpu.housekeeping = Housekeeping::FREE;
        profile.cpu.openflow13 = Some(OpenFlow13Costs::FREE);
        let mut settings = config.clone();
        settings["loop_phase_ns"] = 0.into();
        if settings.get("acknowledgement_ns").is_none() {
            settings["acknowledgement_ns"] = 0.into();
        }
        let config: Config = serde_json::from_value(settings).unwrap();
        let mut board = Board::new(&profile, config, 0).unwrap();
        board.advance(Instant::ZERO);
        Self {
            board,
            now: Instant::ZERO,
            recorded: Instant::ZERO,
            outputs: VecDeque::new(),
            received: Vec::new(),
        }
    }

    /// Performs one event of a case; gives what the board gave, in the form of the recordings.
    fn perform(&mut self, event: &str) -> Vec<String> {
        let words: Vec<&str> = event.split(' ').collect();
        let mut lines = Vec::new();
        let unsendable = self.board.counters().dropped_size;
        match words[..] {
            ["connect"] => self.connect(&mut lines),
            ["of", ref payloads @ ..] => {
                for payload in payloads {
                    for segment in unhex(payload).chunks(MSS) {
                        self.board.segment(self.now, segment);
                        self.pass(MILLISECOND);
                    }
                }
            }
            ["pkt", port, frame] => {
                let port = PortNumber::new(port.parse().unwrap()).unwrap();
                self.board.frame(self.now, port, &unhex(frame));
                self.pass(MILLISECOND);
            }
            ["tick", count] => (0..count.parse().unwrap()).for_each(|_| self.pass(TICK)),
            ["ms", count] => self.pass(Duration::from_millis(count.parse().unwrap())),
            ["fin"] => {
                self.board.finished(self.now);
                self.pass(MILLISECOND);
            }
            ["rst"] => {
                self.board.reset(self.now);
                self.pass(MILLISECOND);
            }
            ["link", port, state] => {
                let port = PortNumber::new(port.parse().unwrap()).unwrap();
                self.board.link_state(self.now, port, state == "up");
            }
            ["dump"] => lines.extend(self.dump()),
            _ => panic!("unknown event `{event}`"),
        }
        for output in std::mem::take(&mut self.outputs) {
            match &output.kind {
                OutputKind::Controller(bytes) => self.receive(bytes, &mut lines),
                _ => lines.extend(line(&output)),
            }
        }
        let unsent = self.board.counters().dropped_size - unsendable;
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

    fn connect(&mut self, lines: &mut Vec<String>) {
        for _ in 0..20 {
            self.pass(TICK);
            let connects = |output: &Output| output.kind == OutputKind::Connect;
            if self.outputs.iter().any(connects) {
                self.outputs.clear();
                self.received.clear();
                self.board.connected(self.now);
                self.now += SLACK;
                self.pass(Duration::ZERO);
                lines.extend(["ev syn".into(), "ev connected".into()]);
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.recorded += time;
        self.now = self.now.max(self.recorded + SLACK);
        self.board.advance(self.now);
        while let Some(output) = self.board.poll_output() {
            self.outputs.push_back(output);
        }
    }

    fn dump(&self) -> Vec<String> {
        let flows = self.board.flows13();
        let version = self.board.openflow_version();
        let mut lines = vec![format!("state version={version} entries={}", flows.len())];
        lines.extend(
            flows
                .iter()
                .enumerate()
                .map(|(index, flow)| describe(index, flow)),
        );
        lines
    }
}

fn line(output: &Output) -> Option<String> {
    match &output.kind {
        OutputKind::Frame { ports, data } => Some(format!("out {:x} {}", ports.bits(), hex(data))),
        OutputKind::Connect => Some("ev syn".into()),
        OutputKind::Close => Some("ev fin".into()),
        OutputKind::Event(Event::ReplyTruncated {
            segment_bytes,
            sent_bytes,
        }) => Some(format!(
            "TRUNC iplen={} frame_payload={}",
            IP_TCP_BYTES + segment_bytes,
            IP_TCP_BYTES + sent_bytes
        )),
        OutputKind::Event(Event::BoardHung { .. }) => Some("HANG".into()),
        OutputKind::Controller(_)
        | OutputKind::Console(_)
        | OutputKind::Detach
        | OutputKind::Attach
        | OutputKind::Eeprom(_)
        | OutputKind::Event(_) => None,
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

/// Whether a recorded line and ours say the same, apart from what is garbage on the board.
fn same(expected: &str, actual: &str) -> bool {
    match (expected.strip_prefix("of "), actual.strip_prefix("of ")) {
        (Some(expected), Some(actual)) => {
            let (expected, actual) = (unhex(expected), unhex(actual));
            let mut bytes = expected.iter().zip(&actual);
            expected.len() == actual.len()
                && bytes.all(|(expected, actual)| *expected == UNINITIALISED || expected == actual)
        }
        _ => expected == actual,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
