//! The board on its control network: addresses, ARP, ping, and the TCP connection to the controller.

mod testbed;
mod testbed_network;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetFrame, Icmpv4Packet, Icmpv4Repr, IpProtocol,
    TcpControl, TcpRepr,
};
use testbed::{everything, message, port, quiet_config, quiet_profile, udp, FlowMod};
use testbed_network::{arp, ethernet, ip, ip_header, Connection, Network, BOARD, PEER};
use zodiac_firmware::{Config, Duration};

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];

fn network() -> Network {
    Network::new(&quiet_profile(), quiet_config())
}

/// With an OpenFlow 1.0 session.
fn established() -> (Network, Connection) {
    let mut network = network();
    let mut connection = network.connect();
    assert_eq!(network.read(&mut connection), HELLO);
    network.exchange(&mut connection, &message(0, &[]));
    (network, connection)
}

#[test]
fn the_first_syn_comes_2_s_after_power_up_as_the_board_writes_it() {
    let mut network = network();
    let syn = network.next_syn();
    assert_eq!(syn.at.as_nanos() / 10_000_000, 200);
    assert_eq!(syn.from, 49_153);
    assert_eq!(
        syn.options,
        [2, 4, 536_u16.to_be_bytes()[0], 536_u16.to_be_bytes()[1]]
    );
    assert_eq!((syn.window, syn.acknowledges), (2_144, None));
}

#[test]
fn a_controller_on_the_network_completes_a_handshake() {
    let (mut network, mut connection) = established();
    let features = network.exchange(&mut connection, &message(5, &[]));
    assert_eq!((features.len(), features[1]), (176, 6));
    let barrier = network.exchange(&mut connection, &message(18, &[]));
    assert_eq!(barrier, [1, 19, 0, 8, 0, 0, 0, 7]);
}

#[test]
fn arp_and_ping_are_answered() {
    let mut network = network();
    network.hand_in(&arp(ArpOperation::Request));
    network.wait(Duration::from_millis(1));
    let reply = network.others.remove(0).data;
    let frame = EthernetFrame::new_checked(&reply[..]).unwrap();
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        ..
    } = ArpRepr::parse(&ArpPacket::new_checked(frame.payload()).unwrap()).unwrap()
    else {
        panic!("{frame}");
    };
    assert_eq!(operation, ArpOperation::Reply);
    assert_eq!(source_hardware_addr.0, Config::default().mac.0);
    assert_eq!(source_protocol_addr, BOARD);

    for payload_bytes in [0, 56, 1_472] {
        network.hand_in(&ping(BOARD, payload_bytes));
        network.wait(Duration::from_millis(2));
        let reply = network.others.remove(0).data;
        let packet = Icmpv4Packet::new_checked(&reply[34..42 + payload_bytes]).unwrap();
        let reply = Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()).unwrap();
        let data = vec![7; payload_bytes];
        let expected = Icmpv4Repr::EchoReply {
            ident: 1,
            seq_no: 2,
            data: &data,
        };
        assert_eq!(reply, expected);
    }
}

#[test]
fn what_is_not_for_the_board_gets_no_answer() {
    let mut network = network();
    network.hand_in(&arp(ArpOperation::Request));
    network.wait(Duration::from_millis(1));
    network.others.clear();
    network.hand_in(&ping(PEER, 56));
    let mut foreign = ping(BOARD, 56);
    foreign[5] ^= 1;
    network.hand_in(&foreign);
    let mut damaged = ping(BOARD, 56);
    damaged[60] ^= 1;
    network.hand_in(&damaged);
    network.wait(Duration::from_millis(10));
    assert!(network.others.is_empty(), "{:?}", network.others);
    assert_eq!(network.bed.board.counters().native_received, 4);
}

/// Returns an echo request of the peer.
fn ping(to: std::net::Ipv4Addr, payload_bytes: usize) -> Vec<u8> {
    let data = vec![7; payload_bytes];
    let request = Icmpv4Repr::EchoRequest {
        ident: 1,
        seq_no: 2,
        data: &data,
    };
    let mut packet = ip_header(PEER, to, IpProtocol::Icmp, request.buffer_len());
    request.emit(
        &mut Icmpv4Packet::new_unchecked(&mut packet[20..]),
        &ChecksumCapabilities::default(),
    );
    ethernet(&packet)
}

#[test]
fn there_is_no_web_page() {
    let (mut network, connection) = established();
    network.segments.clear();
    network.send(&TcpRepr {
        dst_port: 80,
        src_port: 40_000,
        control: TcpControl::Syn,
        ack_number: None,
        ..connection.header()
    });
    network.wait(Duration::from_millis(1));
    assert_eq!(network.segments.len(), 1);
    assert_eq!(network.segments[0].control, TcpControl::Rst);
    assert_eq!(network.segments[0].from, 80);
}

#[test]
fn every_second_segment_is_acknowledged_at_once_and_one_by_the_timers() {
    let (mut network, mut connection) = established();
    network.wait(Duration::from_millis(300));
    let set_config = message(9, &[0, 0, 0, 128]);
    network.exchange(&mut connection, &set_config);
    let mut acknowledged = Vec::new();
    for _ in 0..3 {
        network.segments.clear();
        network.send(&TcpRepr {
            payload: &set_config,
            ..connection.header()
        });
        connection.next += set_config.len();
        network.wait(Duration::from_millis(4));
        acknowledged.push(network.segments.len());
    }
    assert_eq!(acknowledged, [1, 0, 1]);
    network.segments.clear();
    network.exchange(&mut connection, &set_config);
    network.wait(Duration::from_millis(251));
    assert_eq!(network.segments.len(), 1, "the timers run every 250 ms");
    assert_eq!(network.segments[0].acknowledges, Some(connection.next));
}

#[test]
fn what_the_controller_does_not_acknowledge_comes_again() {
    let (mut network, connection) = established();
    network.segments.clear();
    let features = message(5, &[]);
    network.send(&TcpRepr {
        payload: &features,
        ..connection.header()
    });
    network.wait(Duration::from_millis(5_000));
    let replies: Vec<_> = network
        .segments
        .iter()
        .filter(|segment| segment.payload.len() == 176)
        .collect();
    assert!(replies.len() >= 2, "{replies:?}");
    assert_eq!(replies[0].payload, replies[1].payload);
    assert_eq!(replies[0].sequence, replies[1].sequence);
}

#[test]
fn a_repeated_segment_of_the_controller_counts_once() {
    let (mut network, mut connection) = established();
    let barrier = message(18, &[]);
    let again = TcpRepr {
        payload: &barrier,
        ..connection.header()
    };
    assert_eq!(network.exchange(&mut connection, &barrier).len(), 8);
    network.send(&again);
    network.wait(Duration::from_millis(4));
    assert!(network.read(&mut connection).is_empty());
    assert_eq!(network.exchange(&mut connection, &barrier).len(), 8);
}

#[test]
fn a_full_ring_loses_control_segments_too() {
    let (mut network, mut connection) = established();
    // Every frame visits all entries, so that the ring empties slowly.
    for priority in 1..=64 {
        let drop_all = FlowMod::add(everything(), priority, Vec::new()).message();
        network.exchange(&mut connection, &drop_all);
    }
    let barrier = message(18, &[]);
    let segment = TcpRepr {
        payload: &barrier,
        ..connection.header()
    };
    let replies = |network: &Network| {
        let mut segments = network.segments.iter();
        segments.any(|segment| segment.payload.get(1) == Some(&19))
    };
    network.segments.clear();
    for _ in 0..60 {
        let now = network.bed.now;
        network.bed.board.frame(now, port(1), &udp(64, 0));
    }
    network.send(&segment);
    network.wait(Duration::from_millis(20));
    let counters = network.bed.board.counters();
    assert!(counters.dropped_buffer > 0, "{counters:?}");
    assert!(!replies(&network), "the segment found the ring full");
    network.send(&segment);
    network.wait(Duration::from_millis(4));
    assert!(replies(&network), "sent again, as TCP does");
}

#[test]
fn the_same_calls_give_the_same_frames() {
    let frames = || {
        let (mut network, mut connection) = established();
        network.exchange(&mut connection, &message(5, &[]));
        network.wait(Duration::from_millis(4_000));
        network.segments
    };
    assert_eq!(frames(), frames());
}

#[test]
fn the_doors_of_a_driver_s_session_are_closed() {
    let (mut network, _) = established();
    network.bed.board.disconnected(network.bed.now);
    network.bed.board.connected(network.bed.now);
    let replies = network.bed.exchange(&message(18, &[]));
    assert!(replies.is_empty());
    assert!(network.bed.board.is_connected());
}

mod garbage {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn never_ends_the_board(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
            // Valid frames with some bytes changed reach further.
            changes in prop::collection::vec((0..60_usize, any::<u8>()), 0..6),
            truncated in 14..70_usize,
        ) {
            let (mut network, connection) = established();
            let barrier = message(18, &[]);
            let segment = TcpRepr { payload: &barrier, ..connection.header() };
            for valid in [arp(ArpOperation::Request), ping(BOARD, 20), ethernet(&ip(PEER, BOARD, &segment))] {
                let mut changed = valid.clone();
                for (at, value) in &changes {
                    if let Some(byte) = changed.get_mut(*at) {
                        *byte = *value;
                    }
                }
                network.hand_in(&changed);
                network.hand_in(&valid[..truncated.min(valid.len())]);
            }
            for (number, mut frame) in frames.into_iter().enumerate() {
                let mac = Config::default().mac.0;
                if number % 2 == 0 && frame.len() > 14 {
                    frame[..6].copy_from_slice(&mac);
                    frame[12..14].copy_from_slice(&[0x08, if number % 4 == 0 { 0x00 } else { 0x06 }]);
                }
                network.bed.board.frame(network.bed.now, port(4), &frame);
                network.bed.wait(Duration::from_millis(1));
            }
            network.bed.wait(Duration::from_millis(3_000));
        }
    }
}
