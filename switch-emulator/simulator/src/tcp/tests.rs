use super::{CongestionControl, TcpConfig};
use crate::{Network, RunResult};

const FRAME_BYTES: usize = 1514;
const SECOND_NS: u64 = 1_000_000_000;

/// A full segment from 10.0.0.1:5000 to 10.0.0.2:6000, without payload of its own.
fn frame() -> Vec<u8> {
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

fn config(control: CongestionControl) -> TcpConfig {
    TcpConfig {
        flow: 7,
        frame: frame(),
        control,
        window_bytes: 3 << 20,
        start_ns: 0,
        observed: true,
        destination: "B".into(),
    }
}

/// One transfer over a cable of 100 Mbit/s.
fn run(control: CongestionControl) -> RunResult {
    let mut network = Network::new(1);
    network.add_host("A").unwrap();
    network.add_host("B").unwrap();
    network.connect(("A", 1), ("B", 1), 1e8, 1_000).unwrap();
    network.add_tcp("A", &config(control)).unwrap();
    network.run(SECOND_NS, SECOND_NS).unwrap()
}

#[test]
fn a_cable_carries_what_headers_leave_and_nothing_is_sent_again() {
    for control in [CongestionControl::Cubic, CongestionControl::Reno] {
        let result = run(control);
        let tcp = &result.tcp[0];
        // A segment takes 1538 bytes on the wire; the last one may begin just before the end.
        let fit = SECOND_NS.div_ceil(1538 * 80);
        let segments = tcp.delivered_bytes / 1448;
        assert!(
            (fit * 99 / 100..=fit).contains(&segments),
            "{segments} of {fit}"
        );
        assert!(tcp.retransmitted_ns.is_empty());
        assert_eq!(tcp.timeouts, 0);
        assert_eq!(result.unidentified, 0);
        let flow = &result.flows[0];
        assert_eq!(flow.counters.sent, flow.counters.received);
        assert_eq!(flow.counters.received * 1448, tcp.delivered_bytes);
    }
}

#[test]
fn the_same_transfer_gives_the_same_records() {
    assert_eq!(run(CongestionControl::Cubic), run(CongestionControl::Cubic));
}

#[test]
fn wrong_transfers_are_refused() {
    let mut network = Network::new(1);
    network.add_host("A").unwrap();
    network.add_host("B").unwrap();
    assert!(network
        .add_tcp("A", &config(CongestionControl::Reno))
        .is_err());
    network.connect(("A", 1), ("B", 1), 1e8, 0).unwrap();
    let short = TcpConfig {
        window_bytes: 1_448,
        ..config(CongestionControl::Reno)
    };
    let no_tcp = TcpConfig {
        frame: vec![0; 100],
        ..config(CongestionControl::Reno)
    };
    for wrong in [short, no_tcp] {
        assert!(network.add_tcp("A", &wrong).is_err());
    }
}
