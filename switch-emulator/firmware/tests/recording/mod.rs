//! Replay of recorded exchanges: a board on the recordings' clock, and lines as the recordings write them.

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde_json::Value;
use zodiac_firmware::{
    Board, Config, ControlCosts, Duration, Event, Housekeeping, Instant, OpenFlow13Costs, Output,
    OutputKind, PortNumber, Profile, ZODIAC_FX,
};

/// Longest payload of a TCP segment to the board.
pub(crate) const MSS: usize = 536;
/// A housekeeping tick.
pub(crate) const TICK: Duration = Duration::from_millis(501);
/// How far a bench is ahead of the recording's clock, so that a tick due at an instant has happened.
pub(crate) const SLACK: Duration = Duration::from_micros(400);
/// Headers that the recordings count with a TCP payload.
const IP_TCP_BYTES: u16 = 40;
/// A byte that the firmware never wrote.
const UNINITIALISED: u8 = 0xa5;

/// Replays each case, a line of JSON; all `count` must agree.
pub(crate) fn replay_all(
    lines: impl Iterator<Item = String>,
    count: usize,
    replay: impl Fn(&Value) -> Result<(), String>,
) {
    let mut failures = String::new();
    let mut cases = 0;
    for line in lines {
        let case: Value = serde_json::from_str(&line).unwrap();
        let name = case["name"].as_str().unwrap();
        cases += 1;
        if let Err(difference) = replay(&case) {
            writeln!(failures, "{name}: {difference}").unwrap();
        }
    }
    assert_eq!(cases, count, "recorded exchanges");
    assert!(
        failures.is_empty(),
        "of {cases} cases these {} differ:\n{failures}",
        failures.matches(": at `").count()
    );
}

/// Returns the texts of a list in a case.
pub(crate) fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Compares what an event of a case gave line by line.
pub(crate) fn compare(
    event: &str,
    expected: Vec<String>,
    actual: Vec<String>,
    same: impl Fn(&str, &str) -> bool,
) -> Result<(), String> {
    let (mut expected, mut actual) = (expected.into_iter(), actual.into_iter());
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return Ok(()),
            (Some(expected), Some(actual)) if same(&expected, &actual) => {}
            (expected, actual) => {
                return Err(format!(
                    "at `{event}`\n  recorded {}\n  here     {}",
                    expected.as_deref().unwrap_or("nothing more"),
                    actual.as_deref().unwrap_or("nothing more")
                ));
            }
        }
    }
}

/// Returns whether two messages say the same, apart from what is garbage on the board: what it never wrote, and
/// `garbage`.
pub(crate) fn same_message(expected: &[u8], actual: &[u8], garbage: &[usize]) -> bool {
    let mut bytes = expected.iter().zip(actual).enumerate();
    expected.len() == actual.len()
        && bytes.all(|(at, (expected, actual))| {
            *expected == UNINITIALISED || garbage.contains(&at) || expected == actual
        })
}

/// A board, and the far end of its connection.
pub(crate) struct Bench {
    pub(crate) board: Board,
    pub(crate) now: Instant,
    /// Clock of the recording.
    recorded: Instant,
    pub(crate) outputs: VecDeque<Output>,
}

impl Bench {
    pub(crate) fn new(config: Config) -> Self {
        let mut profile = Profile::from_toml(ZODIAC_FX).unwrap();
        // The recordings' clock stands still while the firmware works.
        profile.cpu.timers.cost_ps = 0;
        profile.cpu.control = ControlCosts::default();
        profile.cpu.housekeeping = Housekeeping::default();
        profile.cpu.openflow13 = Some(OpenFlow13Costs::default());
        let mut board = Board::new(&profile, config, 0).unwrap();
        board.advance(Instant::ZERO);
        Self {
            board,
            now: Instant::ZERO,
            recorded: Instant::ZERO,
            outputs: VecDeque::new(),
        }
    }

    /// Accepts the connection that the board begins; false if it begins none.
    pub(crate) fn connect(&mut self) -> bool {
        let connects = |output: &Output| output.kind == OutputKind::Connect;
        let begins = (0..20).any(|_| {
            self.pass(TICK);
            self.outputs.iter().any(connects)
        });
        if begins {
            self.outputs.clear();
            self.board.connected(self.now);
        }
        begins
    }

    /// A cable is plugged in or pulled out.
    pub(crate) fn link(&mut self, port: &str, state: &str) {
        self.board
            .link_state(self.now, port_number(port), state == "up");
    }

    /// A frame comes in.
    pub(crate) fn frame(&mut self, port: &str, frame: &str) {
        self.board.frame(self.now, port_number(port), &unhex(frame));
    }

    /// Time passes, on the recording's clock too.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.recorded += time;
        self.now = self.now.max(self.recorded + SLACK);
        self.settle(Duration::ZERO);
    }

    /// Time passes that the recording does not know.
    pub(crate) fn settle(&mut self, time: Duration) {
        self.now += time;
        self.board.advance(self.now);
        while let Some(output) = self.board.poll_output() {
            self.outputs.push_back(output);
        }
    }
}

fn port_number(port: &str) -> PortNumber {
    PortNumber::new(port.parse().unwrap()).unwrap()
}

/// Returns an output as the recordings write it, or `None` for what they do not have.
pub(crate) fn line(output: &Output) -> Option<String> {
    match &output.kind {
        OutputKind::Controller(message) => Some(format!("of {}", hex(message))),
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
        OutputKind::Console(_)
        | OutputKind::Detach
        | OutputKind::Attach
        | OutputKind::Eeprom(_)
        | OutputKind::Event(_) => None,
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
