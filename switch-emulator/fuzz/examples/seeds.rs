//! Writes the inputs that fuzzing begins with: `seeds EXCHANGES CORPUS TARGET ...` turns the exchanges recorded from the
//! firmware into one input a case for each target, in `CORPUS/TARGET`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};

use zodiac_firmware::{Duration, PortNumber};
use zodiac_fuzz::{Start, Step};

/// Longest payload of a TCP segment to the board.
const MSS: usize = 536;
/// Longer than the board works on a frame or a message.
const SETTLE: Step = Step::Wait(Duration::from_nanos(1 << 22));
/// About a housekeeping tick.
const TICK: Step = Step::Wait(Duration::from_nanos(1 << 29));
/// Begin of an input of frames behind the settings: two entries, one for port 1 and one for all frames.
const ENTRIES: [u8; 9] = [2, 1, 0, 9, 0x42, 3, 0, 1, 0x43];

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [exchanges, corpus, targets @ ..] = &arguments[..] else {
        return Err(
            "seeds EXCHANGES CORPUS TARGET ...: folder of recorded exchanges, folder to write to"
                .into(),
        );
    };
    let mut count = 0;
    for file in std::fs::read_dir(exchanges)? {
        let path = file?.path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        for line in std::fs::read_to_string(&path)?.lines() {
            let case: serde_json::Value = serde_json::from_str(line)?;
            let name = case["name"].as_str().ok_or("a case without a name")?;
            let events = case["events"].as_array().ok_or("a case without events")?;
            let events: Vec<&str> = events.iter().filter_map(|event| event.as_str()).collect();
            let safe = events.contains(&"config failstate 1")
                || case["config"]["fail_state"].as_str() == Some("safe");
            for target in targets {
                write(&corpus.join(target), name, &events, safe)?;
            }
            count += 1;
        }
    }
    println!(
        "{count} recorded exchanges are seeds in {}",
        corpus.display()
    );
    Ok(())
}

/// Writes a case into the folder of a target.
fn write(folder: &Path, name: &str, events: &[&str], safe: bool) -> Outcome<()> {
    let start = Start {
        safe,
        ..Start::factory()
    };
    let frames_only = folder.ends_with("frames");
    let mut bytes = start.bytes().to_vec();
    if frames_only {
        bytes.extend(ENTRIES);
    }
    for event in events {
        for step in steps(event)? {
            if !frames_only || matches!(step, Step::Frame(..) | Step::Wait(_) | Step::Link(..)) {
                bytes.extend(step.bytes());
            }
        }
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(name), bytes)?;
    Ok(())
}

/// Action of a driver for an event of a recording (`exchanges/README.md`).
fn steps(event: &str) -> Outcome<Vec<Step>> {
    let words: Vec<&str> = event.split(' ').collect();
    Ok(match words[..] {
        ["connect"] => vec![TICK, TICK, TICK, TICK, Step::Connected, SETTLE],
        ["of", ref payloads @ ..] => {
            let mut steps = Vec::new();
            for payload in payloads {
                let bytes = hexadecimal(payload)?;
                let segments = bytes.len().div_ceil(MSS);
                steps.push(Step::Write(bytes));
                steps.extend(std::iter::repeat_n(Step::Send(MSS), segments));
                steps.push(SETTLE);
            }
            steps
        }
        ["pkt", port, bytes] => vec![Step::Frame(number(port)?, hexadecimal(bytes)?), SETTLE],
        ["tick"] => vec![TICK],
        ["tick", count] => vec![TICK; count.parse()?],
        ["ms", millis] => vec![Step::Wait(Duration::from_millis(millis.parse()?))],
        ["fin" | "rst"] => vec![Step::Disconnected],
        ["link", port, state] => vec![Step::Link(number(port)?, state == "up")],
        _ => Vec::new(),
    })
}

fn number(text: &str) -> Outcome<PortNumber> {
    Ok(PortNumber::new(text.parse()?).ok_or("no such port")?)
}

fn hexadecimal(text: &str) -> Outcome<Vec<u8>> {
    (0..text.len() / 2)
        .map(|index| Ok(u8::from_str_radix(&text[2 * index..2 * index + 2], 16)?))
        .collect()
}
