//! Sends frames at exact instants, each with its number, for the benchmarks. After a stall a flow goes on from where it
//! is, without a burst.
//!
//! `paced_sender FLOWS NUMBER_OFFSET FIRST_NUMBER`, where each line of the file FLOWS is a flow: interface, number of
//! frames, instant of the first in nanoseconds from the beginning, mean interval in nanoseconds (0: back to back),
//! spread of the intervals in nanoseconds, frame in hexadecimal. Frames of all flows are numbered together, in the order
//! in which they are sent.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

use live_host::packet_socket::PacketSocket;
use zodiac_firmware::Duration;
use zodiac_live::clock::Clock;
use zodiac_live::timer_queue::TimerQueue;

const USAGE: &str = "usage: paced_sender FLOWS NUMBER_OFFSET FIRST_NUMBER";
/// From the beginning until the instant that flows count from: memory and caches are ready then.
const LEAD: Duration = Duration::from_millis(1);

struct Flow {
    interface: String,
    left: u32,
    interval: Duration,
    spread: Duration,
    sent: u64,
    frame: Vec<u8>,
}

fn main() -> ExitCode {
    match send(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paced_sender: {error}");
            ExitCode::from(2)
        }
    }
}

fn send(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [path, offset, first_number] = arguments else {
        return Err(USAGE.into());
    };
    let offset: usize = offset.parse()?;
    let place = offset..offset + 4;
    let mut sockets = BTreeMap::new();
    let mut flows = Vec::new();
    for line in fs::read_to_string(path)?.lines() {
        let (first, flow) = flow(line).ok_or_else(|| format!("this is no flow: {line}"))?;
        if flow.frame.len() < place.end {
            return Err("NUMBER_OFFSET lies outside a frame".into());
        }
        if !sockets.contains_key(&flow.interface) {
            let socket = PacketSocket::open(&flow.interface, "the sender")?;
            sockets.insert(flow.interface.clone(), socket);
        }
        flows.push((first, flow));
    }
    let clock = Clock::start();
    let start = clock.now() + LEAD;
    let mut agenda = TimerQueue::new();
    for (first, flow) in flows {
        agenda.add(start + first, flow);
    }
    let mut number: u32 = first_number.parse()?;
    while let Some((mut due, mut flow)) = agenda.pop() {
        flow.frame[place.clone()].copy_from_slice(&number.to_be_bytes());
        let mut now = clock.now();
        while now < due {
            std::hint::spin_loop();
            now = clock.now();
        }
        // Less than an interval late is caught up, so that the rate stays exact.
        if now.saturating_since(due) > flow.interval {
            due = now;
        }
        sockets[&flow.interface].send(&flow.frame)?;
        number = number.wrapping_add(1);
        flow.left -= 1;
        if flow.left > 0 {
            flow.sent += 1;
            agenda.add(due + flow.gap(), flow);
        }
    }
    Ok(())
}

impl Flow {
    /// Until the next frame: evenly spread around the interval, so that no phase of anything periodic is preferred.
    fn gap(&self) -> Duration {
        // Multiples of the golden ratio, modulo 1: the most even sequence that never repeats.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let fraction = u128::from(self.sent.wrapping_mul(GOLDEN));
        let spread = self.spread.as_nanos();
        let ahead = (fraction * u128::from(spread)) >> 64;
        let shortest = self.interval.as_nanos().saturating_sub(spread / 2);
        Duration::from_nanos(shortest + u64::try_from(ahead).unwrap_or(spread))
    }
}

fn flow(line: &str) -> Option<(Duration, Flow)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [interface, count, first_ns, interval_ns, spread_ns, frame] = words[..] else {
        return None;
    };
    let flow = Flow {
        interface: interface.to_owned(),
        left: count.parse().ok().filter(|count| *count > 0)?,
        interval: Duration::from_nanos(interval_ns.parse().ok()?),
        spread: Duration::from_nanos(spread_ns.parse().ok()?),
        sent: 0,
        frame: from_hex(frame)?,
    };
    Some((Duration::from_nanos(first_ns.parse().ok()?), flow))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs
        .map(|pair| u8::from_str_radix(pair?, 16).ok())
        .collect()
}
