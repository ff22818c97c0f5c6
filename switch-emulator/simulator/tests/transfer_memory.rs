//! A transfer over TCP keeps when its frames were sent and received, but no frames.
//!
//! One test only: the allocator counts for the whole process.

use peak_alloc::PeakAlloc;
use zodiac_simulator::{CongestionControl, Network, TcpConfig};

#[path = "../src/tcp/tests/full_segment.rs"]
mod full_segment;
use full_segment::full_segment;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Most for each frame: two instants, in vectors that are copied as they grow. A frame itself is seven times as long.
const KEPT_BYTES: usize = 200;
const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn a_transfer_keeps_no_frames() {
    let mut network = Network::new(1);
    network.add_host("A").unwrap();
    network.add_host("B").unwrap();
    network.connect(("A", 1), ("B", 1), 1e8, 1_000).unwrap();
    let config = TcpConfig {
        flow: 7,
        frame: full_segment(),
        control: CongestionControl::Cubic,
        window_bytes: 3 << 20,
        start_ns: 0,
        observed: false,
        destination: "B".into(),
    };
    network.add_tcp("A", &config).unwrap();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = network.run(10 * SECOND_NS, SECOND_NS).unwrap();
    let bytes = MEMORY.peak_usage() - before;
    let frames = result.flows[0].counters.sent as usize;
    assert!(frames > 80_000, "{frames}");
    println!("{bytes} bytes for {frames} frames");
    assert!(
        bytes < frames * KEPT_BYTES,
        "{bytes} bytes for {frames} frames"
    );
}
