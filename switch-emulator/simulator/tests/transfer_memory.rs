//! A transfer over TCP keeps when its frames were sent and received, but no frames.
//!
//! One test only: the allocator counts for the whole process.

use peak_alloc::PeakAlloc;
use zodiac_simulator::{CongestionControl, Network, TcpConfig};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const FRAME_BYTES: usize = 1514;
/// Most for each frame: two instants, in vectors that are copied as they grow. A frame itself is seven times as long.
const KEPT_BYTES: usize = 200;
const SECOND_NS: u64 = 1_000_000_000;

/// Returns a full segment from 10.0.0.1:5000 to 10.0.0.2:6000.
fn segment() -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&1500u16.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&5000u16.to_be_bytes());
    frame[36..38].copy_from_slice(&6000u16.to_be_bytes());
    frame[46] = 5 << 4;
    frame
}

#[test]
fn a_transfer_keeps_no_frames() {
    let mut network = Network::new(1);
    network.add_host("A").unwrap();
    network.add_host("B").unwrap();
    network.connect(("A", 1), ("B", 1), 1e8, 1_000).unwrap();
    let config = TcpConfig {
        flow: 7,
        frame: segment(),
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
