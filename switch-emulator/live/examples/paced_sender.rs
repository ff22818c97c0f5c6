//! Sends copies of a frame at a constant rate, each with its number, for `benchmarks/live_accuracy.py`. After a stall
//! it goes on from where it is, without a burst.
//!
//! `paced_sender INTERFACE COUNT INTERVAL_NS NUMBER_OFFSET FRAME_HEX`

use std::error::Error;
use std::process::ExitCode;

use zodiac_firmware::Duration;
use zodiac_live::clock::Clock;
use zodiac_live::packet_socket::PacketSocket;

const USAGE: &str = "usage: paced_sender INTERFACE COUNT INTERVAL_NS NUMBER_OFFSET FRAME_HEX";

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
    let [interface, count, interval_ns, offset, frame] = arguments else {
        return Err(USAGE.into());
    };
    let (count, interval): (u32, _) = (count.parse()?, Duration::from_nanos(interval_ns.parse()?));
    let mut frame = from_hex(frame).ok_or("FRAME_HEX is not hexadecimal")?;
    let offset: usize = offset.parse()?;
    let place = offset..offset + 4;
    frame
        .get(place.clone())
        .ok_or("NUMBER_OFFSET lies outside the frame")?;
    let socket = PacketSocket::open(interface, "the sender")?;
    let clock = Clock::start();
    let mut due = clock.now();
    for number in 0..count {
        due += interval;
        frame[place.clone()].copy_from_slice(&number.to_be_bytes());
        let mut now = clock.now();
        while now < due {
            std::hint::spin_loop();
            now = clock.now();
        }
        // Less than an interval late is caught up, so that the rate stays exact.
        if now.saturating_since(due) > interval {
            due = now;
        }
        socket.send(&frame)?;
    }
    Ok(())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs
        .map(|pair| u8::from_str_radix(pair?, 16).ok())
        .collect()
}
