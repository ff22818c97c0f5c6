//! An hour of everything at once, on the board's clock: what the board holds does not grow.
//!
//! One test only: the allocator counts for the whole process.

mod testbed;

use peak_alloc::PeakAlloc;
use testbed::{
    everything, fields, message, output, port, udp, Fields, FlowMod, Testbed, DELETE_STRICT,
};
use zodiac_firmware::{Config, Duration, Profile, Quirks, ZODIAC_FX};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Frames a second: what the paper's admission lets through a switch (R/5 = 2.37 Mbit/s at 306 bytes).
const FRAMES_PER_S: u64 = 968;
/// After so many minutes everything has happened that happens again later.
const PERIOD_MINUTES: u64 = 5;
const MINUTES: u64 = 60;
const FLOWS: u16 = 17;
/// Data in flight may differ from minute to minute: a frame and a message.
const IN_FLIGHT_BYTES: usize = 2_048;

#[test]
fn an_hour_of_traffic_leaves_memory_as_it_was() {
    for quirks in [Quirks::Firmware, Quirks::Spec] {
        let config = Config {
            quirks,
            ..Config::default()
        };
        let profile = Profile::from_toml(ZODIAC_FX).unwrap();
        let before = MEMORY.current_usage();
        let mut bed = Testbed::new(&profile, config);
        let held: Vec<usize> = (0..MINUTES)
            .map(|minute| {
                one_minute(&mut bed, minute);
                MEMORY.current_usage() - before
            })
            .collect();
        let counters = bed.board.counters();
        assert!(counters.forwarded > MINUTES * 40_000, "{counters:?}");
        assert!(counters.missed > MINUTES * 40, "{counters:?}");
        let (first, later) = held.split_at(PERIOD_MINUTES as usize);
        let (first, later) = (first.iter().max().unwrap(), later.iter().max().unwrap());
        println!("{quirks:?}: at most {first} bytes in the first {PERIOD_MINUTES} minutes, {later} later");
        assert!(
            later <= &(first + IN_FLIGHT_BYTES),
            "{quirks:?}: bytes held at each minute's end: {held:?}"
        );
    }
}

/// Frames all the time; each second a miss, every three the sign of life of a controller, every ten all statistics,
/// then flows that come and go, and someone at the console. Every fifth minute begins with a new session.
fn one_minute(bed: &mut Testbed, minute: u64) {
    if minute % PERIOD_MINUTES == 0 {
        bed.board.disconnected(bed.now);
        bed.connect();
        bed.install(
            (0..FLOWS)
                .map(|number| FlowMod::add(fields(Fields::FiveTuple, number), number, output(3))),
        );
    }
    for second in 0..60_u16 {
        let number = FLOWS + second;
        match second % 10 {
            0 => {
                bed.exchange(&message(16, &[0, 0, 0, 0]));
                let all = [&everything()[..], &[0xff, 0, 0xff, 0xff]].concat();
                bed.exchange(&message(16, &[&[0, 1, 0, 0], &all[..]].concat()));
                bed.exchange(&message(16, &[0, 3, 0, 0]));
                bed.exchange(&message(16, &[0, 4, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0]));
                bed.exchange(&message(18, &[]));
            }
            3 | 6 | 9 => {
                bed.exchange(&message(2, &[]));
            }
            5 if second < 20 => {
                let entry = FlowMod::add(fields(Fields::FiveTuple, number), number, output(3));
                bed.exchange(&entry.message());
                bed.exchange(&entry.command(DELETE_STRICT).message());
            }
            7 => bed
                .board
                .console(bed.now, b"show status\ropenflow\rshow flows\rexit\r"),
            8 => bed.board.link_state(bed.now, port(2), second % 20 == 8),
            _ => {}
        }
        bed.board.frame(bed.now, port(2), &udp(306, 1_000));
        let pause = Duration::from_nanos(1_000_000_000 / FRAMES_PER_S);
        for frame in 0..FRAMES_PER_S {
            let flow = (frame % u64::from(FLOWS)) as u16;
            bed.board.frame(bed.now, port(1), &udp(306, flow));
            bed.wait(pause);
        }
        bed.departures = Vec::new();
        bed.replies = Vec::new();
        bed.events = Vec::new();
        bed.connects = Vec::new();
        bed.closes = Vec::new();
    }
}
