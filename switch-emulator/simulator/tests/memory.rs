//! A long run needs no more memory than a short one, as long as no packets are recorded.
//!
//! One test only: the allocator counts for the whole process.

mod two_switches;

use peak_alloc::PeakAlloc;
use two_switches::{add_sources, fifth_rate, network, paper_config};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A longer run meets longer queues: some hundred frames more at most. A byte lost with each frame is a megabyte.
const MORE_QUEUED_BYTES: usize = 100_000;
const NANOS_PER_MINUTE: u64 = 60_000_000_000;

#[test]
fn what_a_network_holds_does_not_depend_on_how_long_it_runs() {
    let [short, long] = [3, 18].map(|minutes| {
        let mut network = network(1, &paper_config());
        add_sources(&mut network, fifth_rate(1.0), false);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let result = network.run(minutes * NANOS_PER_MINUTE, 0).unwrap();
        assert!(result.packets > minutes * 50_000, "{}", result.packets);
        MEMORY.peak_usage() - before
    });
    println!("at most {short} bytes in 3 minutes, {long} in 18");
    assert!(
        long <= short + MORE_QUEUED_BYTES,
        "{short} bytes in 3 minutes, {long} in 18"
    );
}
