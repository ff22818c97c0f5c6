//! Writes the inputs that fuzzing begins with: `seeds EXCHANGES CORPUS` turns the exchanges recorded from the firmware
//! into one input a case for each target, in `CORPUS/TARGET`.
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
    let [exchanges, corpus] = &arguments[..] else {
        return Err(
            "seeds EXCHANGES CORPUS: folder of recorded exchanges, folder to write to".into(),
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
            write(corpus, name, &events)?;
            count += 1;
        }
    }
    println!(
        "{count} recorded exchanges are seeds in {}",
        corpus.display()
    );
    Ok(())
}

fn write(corpus: &Path, name: &str, events: &[&str]) -> Outcome<()> {
    let start = Start {
        safe: events.contains(&"config failstate 1"),
        ..Start::factory()
    };
    let mut openflow = start.bytes().to_vec();
    let mut frames = [&start.bytes()[..], &ENTRIES].concat();
    for event in events {
        for step in steps(event)? {
            openflow.extend(step.bytes());
            if matches!(step, Step::Frame(..) | Step::Wait(_) | Step::Link(..)) {
                frames.extend(step.bytes());
            }
        }
    }
    for (target, bytes) in [
        ("openflow", &openflow),
        ("console", &openflow),
        ("frames", &frames),
    ] {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

/// What an event of a recording (`exchanges/README.md`) makes a driver do.
fn steps(event: &str) -> Outcome<Vec<Step>> {
    let words: Vec<&str> = event.split(' ').collect();
    Ok(match words[..] {
        ["connect"] => vec![TICK, TICK, TICK, TICK, Step::Connected, SETTLE],
        ["of", bytes] => {
            let bytes = hexadecimal(bytes)?;
            let segments = bytes.len().div_ceil(MSS);
            let mut steps = vec![Step::Write(bytes)];
            steps.extend(std::iter::repeat_n(Step::Send(MSS), segments));
            steps.push(SETTLE);
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
