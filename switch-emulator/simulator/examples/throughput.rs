//! How many packets a CPU second carries through both switches of the paper's network, as JSON.
//!
//! `cargo run --release -p zodiac-simulator --example throughput [-- SECONDS_OF_VIRTUAL_TIME]`

use std::time::Instant;

#[path = "../tests/two_switches/mod.rs"]
mod two_switches;

use two_switches::{add_sources, fifth_rate, network, paper_config, Load};

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
    // As much as both switches forward without loss: half of 11.85 Mbit/s each way, paced.
    let full = Load {
        shaper_rate_bps: 2.9e6,
        shaper_burst_bytes: 308.0,
        offered_rate_bps: 2.9e6,
        burst_bytes: 308.0,
    };
    let loads = [("fifth_rate", fifth_rate(1.0)), ("saturated", [full; 2])];
    let results: Vec<String> = loads
        .map(|(name, load)| measure(name, load, seconds))
        .into();
    println!("[{}]", results.join(",\n "));
}

fn measure(name: &str, load: [Load; 2], seconds: u32) -> String {
    let mut best = f64::INFINITY;
    let (mut packets, mut received) = (0, 0);
    for _ in 0..REPETITIONS {
        let mut network = network(1, &paper_config());
        add_sources(&mut network, load, true);
        // One thread, never blocked: elapsed time is CPU time unless the machine is busy.
        let begin = Instant::now();
        let result = network
            .run(u64::from(seconds) * 1_000_000_000, 100_000_000)
            .expect("the first run");
        best = best.min(begin.elapsed().as_secs_f64());
        packets = result.packets;
        received = result.flows.iter().map(|flow| flow.counters.received).sum();
    }
    #[allow(clippy::cast_precision_loss)]
    let rate = received as f64 / best;
    format!(
        "{{\"load\": \"{name}\", \"virtual_seconds\": {seconds}, \"packets\": {packets}, \"received\": {received}, \
         \"cpu_seconds\": {best:.4}, \"packets_per_cpu_second\": {rate:.0}}}"
    )
}
