//! The board on its control network: addresses, ARP, ping, and the TCP connection to the controller.

mod testbed;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, Icmpv4Packet, Icmpv4Repr,
    IpProtocol, TcpControl, TcpRepr,
};
use testbed::network::{arp, ethernet, ip, ip_header, Connection, Network, BOARD, PEER};
use testbed::{message, quiet_config, quiet_profile};
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
    assert_eq!(syn.options, [2, 4, 536_u16.to_be_bytes()[0], 536_u16.to_be_bytes()[1]]);
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
