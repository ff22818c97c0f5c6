//! Replays exchanges that were recorded from the firmware on an emulated CPU (`exchanges/README.md`).

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use zodiac_firmware::{
    Board, Config, ControlCosts, Duration, Event, FailState, Flow, Housekeeping, Instant, Output,
    OutputKind, PortNumber, Profile, ZODIAC_FX,
};

/// Longest payload of a TCP segment to the board.
const MSS: usize = 536;
/// A housekeeping tick.
const TICK: Duration = Duration::from_millis(501);
/// How far a bench is ahead of the recording's clock, so that a tick due at an instant has happened.
const SLACK: Duration = Duration::from_micros(400);
/// Long enough for what a frame or message causes, short enough that a case's messages cause no tick. The recordings
/// take no time for them, so the bench catches up at the next tick.
const SETTLE_FRAME: Duration = Duration::from_millis(3);
const SETTLE_SEGMENT: Duration = Duration::from_millis(1);

/// Headers that the recordings count with a TCP payload.
const IP_TCP_BYTES: u16 = 40;

/// A byte that the firmware never wrote.
const UNINITIALISED: u8 = 0xa5;

#[test]
fn recorded_exchanges() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let mut failures = String::new();
    let mut cases = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    files.sort();
    for path in files {
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            cases += 1;
            let name = case["name"].as_str().unwrap();
            if let Err(difference) = replay(&case) {
                writeln!(failures, "{name}: {difference}").unwrap();
            }
        }
    }
    assert_eq!(cases, 60, "recorded exchanges");
    assert!(
        failures.is_empty(),
        "of {cases} cases these differ:\n{failures}"
    );
    println!("{cases} recorded exchanges agree");
}

/// A board, and the far end of its connection.
struct Bench {
    board: Board,
    now: Instant,
    /// Clock of the recording.
    recorded: Instant,
    outputs: VecDeque<Output>,
}

fn replay(case: &Value) -> Result<(), String> {
    let events: Vec<&str> = case["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event.as_str().unwrap())
        .collect();
    let mut bench = Bench::new(events.contains(&"config failstate 1"));
    for (event, expected) in events.iter().zip(case["outputs"].as_array().unwrap()) {
        let expected: Vec<&str> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|output| output.as_str().unwrap())
            .collect();
        let actual = bench.perform(event);
        let mut expected = expected
            .into_iter()
            .filter(|line| !line.starts_with("mem ") && !line.starts_with("seg "));
        let mut actual = actual.into_iter();
        loop {
            match (expected.next(), actual.next()) {
                (None, None) => break,
                (Some(expected), Some(actual)) if same(expected, &actual) => {}
                (expected, actual) => {
                    return Err(format!(
                        "at `{event}`\n  recorded {}\n  here     {}",
                        expected.unwrap_or("nothing more"),
                        actual.as_deref().unwrap_or("nothing more")
                    ));
                }
            }
        }
    }
    Ok(())
}

impl Bench {
    fn new(safe: bool) -> Self {
        let mut profile = Profile::from_toml(ZODIAC_FX).unwrap();
        // The recordings' clock stands still while the firmware works.
        profile.cpu.timers.cost_ps = 0;
        profile.cpu.control = ControlCosts::FREE;
        profile.cpu.housekeeping = Housekeeping::FREE;
        let fail_state = if safe {
            FailState::Safe
        } else {
            FailState::Secure
        };
        let config = Config {
            fail_state,
            loop_phase_ns: Some(0),
            acknowledgement_ns: 0,
            ..Config::default()
        };
        let mut board = Board::new(&profile, config, 0).unwrap();
        board.advance(Instant::ZERO);
        Self {
            board,
            now: Instant::ZERO,
            recorded: Instant::ZERO,
            outputs: VecDeque::new(),
        }
    }

    /// Performs one event of a case; gives what the board gave, in the form of the recordings.
    fn perform(&mut self, event: &str) -> Vec<String> {
        let words: Vec<&str> = event.split(' ').collect();
        let mut lines = Vec::new();
        match words[..] {
            ["config", ..] => {}
            ["connect"] => {
                for _ in 0..20 {
                    self.pass(TICK);
                    if self
                        .outputs
                        .iter()
                        .any(|output| output.kind == OutputKind::Connect)
                    {
                        self.outputs.clear();
                        self.board.connected(self.now);
                        self.pass(TICK);
                        lines.extend(["ev syn".into(), "ev connected".into()]);
                        break;
                    }
                }
            }
            ["of", payload] => {
                for segment in unhex(payload).chunks(MSS) {
                    self.board.segment(self.now, segment);
                    self.settle(SETTLE_SEGMENT);
                }
            }
            ["pkt", port, frame] => {
                let port = PortNumber::new(port.parse().unwrap()).unwrap();
                self.board.frame(self.now, port, &unhex(frame));
                self.settle(SETTLE_FRAME);
            }
            ["tick"] => self.pass(TICK),
            ["tick", count] => (0..count.parse().unwrap()).for_each(|_| self.pass(TICK)),
            ["ms", count] => self.pass(Duration::from_millis(count.parse().unwrap())),
            [end @ ("fin" | "rst")] => {
                if end == "fin" {
                    self.board.finished(self.now);
                } else {
                    self.board.reset(self.now);
                }
                self.settle(SETTLE_SEGMENT);
            }
            ["link", port, state] => {
                let port = PortNumber::new(port.parse().unwrap()).unwrap();
                self.board.link_state(self.now, port, state == "up");
            }
            ["dump"] => lines.extend(self.dump()),
            _ => panic!("unknown event `{event}`"),
        }
        lines.extend(self.outputs.drain(..).filter_map(|output| line(&output)));
        lines
    }

    fn pass(&mut self, time: Duration) {
        self.recorded += time;
        self.now = self.now.max(self.recorded + SLACK);
        self.settle(Duration::ZERO);
    }

    fn settle(&mut self, time: Duration) {
        self.now += time;
        self.board.advance(self.now);
        while let Some(output) = self.board.poll_output() {
            self.outputs.push_back(output);
        }
    }

    fn dump(&self) -> Vec<String> {
        let flows = self.board.flows();
        let mut lines = vec![format!("state iLastFlow={}", flows.len())];
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
        OutputKind::Controller(message) => Some(format!("of {}", hex(message))),
        OutputKind::Frame { ports, data } => Some(format!("out {:x} {}", ports.bits(), hex(data))),
        OutputKind::Connect => Some("ev syn".into()),
        OutputKind::Close => Some("ev fin".into()),
        OutputKind::Event(Event::ReplyTruncated {
            segment_bytes,
            sent_bytes,
        }) => Some(format!(
            "TRUNC iplen={} frame_payload={} (receiver discards)",
            IP_TCP_BYTES + segment_bytes,
            IP_TCP_BYTES + sent_bytes
        )),
        // The console's.
        OutputKind::Console(_)
        | OutputKind::Detach
        | OutputKind::Attach
        | OutputKind::Eeprom(_)
        | OutputKind::Event(_) => None,
    }
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

/// Whether a recorded line and ours say the same, apart from what is garbage on the board.
fn same(expected: &str, actual: &str) -> bool {
    let kind = expected.split(' ').next().unwrap();
    match kind {
        "of" => {
            let (Some(expected), Some(actual)) = (expected.get(3..), actual.strip_prefix("of "))
            else {
                return false;
            };
            same_message(&unhex(expected), &unhex(actual))
        }
        "state" | "flow" => actual
            .split(' ')
            .all(|word| expected.split(' ').any(|other| other == word)),
        _ => expected == actual,
    }
}

fn same_message(expected: &[u8], actual: &[u8]) -> bool {
    let garbage = garbage(expected);
    expected.len() == actual.len()
        && expected
            .iter()
            .zip(actual)
            .enumerate()
            .all(|(at, (expected, actual))| {
                *expected == UNINITIALISED || garbage.contains(&at) || expected == actual
            })
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
