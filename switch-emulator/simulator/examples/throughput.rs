//! How many packets a CPU second carries through both switches of the paper's network, one switch, or a ring, as JSON.
//!
//! `cargo run --release -p zodiac-simulator --example throughput [-- SECONDS_OF_VIRTUAL_TIME [DEVICE [BOARDS]]]`
//!
//! DEVICE: boards with OpenFlow `1.0` or `1.3`, two `generic` switches, or `one-generic`.

#[path = "../tests/two_switches/mod.rs"]
mod two_switches;

use two_switches::{
    add_sources, fifth_rate, generic_network, network, one_generic_switch, paper_config, ring, Load,
};
use zodiac_firmware::Config;
use zodiac_simulator::Network;

/// Repetitions of each load; the fastest counts, since other work on the machine only adds time.
const REPETITIONS: u64 = 5;

fn main() {
    let seconds = match std::env::args()
        .nth(1)
        .map_or(Ok(300), |text| text.parse::<u32>())
    {
        Ok(seconds) if seconds > 0 => seconds,
        _ => {
            eprintln!(
                "throughput: give the virtual time as a whole number of seconds, for example 300"
            );
            std::process::exit(2);
        }
    };
    let device = std::env::args().nth(2);
    let config = match device.as_deref() {
        None | Some("1.0" | "generic" | "one-generic") => paper_config(),
        Some("1.3") => Config {
            openflow_version: 4,
            ..paper_config()
        },
        Some(_) => {
            eprintln!("throughput: give 1.0 or 1.3 for boards, generic or one-generic");
            std::process::exit(2);
        }
    };
    if let Some(text) = std::env::args().nth(3) {
        let boards = match text.parse::<u16>() {
            Ok(boards) if (3..=4_096).contains(&boards) => boards,
            _ => {
                eprintln!("throughput: a ring has 3 to 4096 boards");
                std::process::exit(2);
            }
        };
        println!(
            "[{}]",
            measure("ring", seconds, || ring(1, boards, &config))
        );
        return;
    }
    // As much as both switches forward without loss: half of 11.85 Mbit/s each way, paced.
    let full = Load {
        shaper_rate_bps: 2.9e6,
        shaper_burst_bytes: 308.0,
        offered_rate_bps: 2.9e6,
        burst_bytes: 308.0,
    };
    let loads = [("fifth_rate", fifth_rate(1.0)), ("saturated", [full; 2])];
    let results: Vec<String> = loads
        .map(|(name, load)| {
            measure(name, seconds, || {
                let mut network = match device.as_deref() {
                    Some("generic") => generic_network(1),
                    Some("one-generic") => one_generic_switch(1),
                    _ => network(1, &config),
                };
                add_sources(&mut network, load, true);
                network
            })
        })
        .into();
    println!("[{}]", results.join(",\n "));
}

fn measure(name: &str, seconds: u32, made: impl Fn() -> Network) -> String {
    let mut best_ns = u64::MAX;
    let (mut packets, mut received) = (0, 0);
    for _ in 0..REPETITIONS {
        let mut network = made();
        let begin_ns = cpu_time_ns();
        let result = network
            .run(u64::from(seconds) * 1_000_000_000, 100_000_000)
            .expect("the first run");
        best_ns = best_ns.min(cpu_time_ns() - begin_ns);
        packets = result.packets;
        received = result.flows.iter().map(|flow| flow.counters.received).sum();
    }
    #[allow(clippy::cast_precision_loss)]
    let best = best_ns as f64 / 1e9;
    #[allow(clippy::cast_precision_loss)]
    let rate = received as f64 / best;
    format!(
        "{{\"load\": \"{name}\", \"virtual_seconds\": {seconds}, \"repetitions\": {REPETITIONS}, \
         \"packets\": {packets}, \"received\": {received}, \
         \"cpu_seconds\": {best:.4}, \"packets_per_cpu_second\": {rate:.0}}}"
    )
}

/// Time that this thread has spent on a processor; what other programs take does not count.
fn cpu_time_ns() -> u64 {
    // The kernel counts a running thread's time with its tick, and when another thread may take its turn.
    std::thread::yield_now();
    let read = std::fs::read_to_string("/proc/thread-self/schedstat");
    let time_ns = read
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok());
    time_ns.unwrap_or_else(|| {
        eprintln!("throughput: /proc/thread-self/schedstat is missing: run it on Linux");
        std::process::exit(2);
    })
}
