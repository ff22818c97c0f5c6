//! Hardware addresses of the others on the control network, as long as the board remembers them (ARP of lwIP 1.4.1).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr,
};

use super::frame_queues::ETHERNET_HEADER_BYTES;
use crate::time::{Duration, Instant};

/// How long an address is remembered.
const MAX_AGE: Duration = Duration::from_millis(1_200_000);
/// Age at which the board asks again for an address that it uses.
const RENEWED_AGE: Duration = Duration::from_millis(1_140_000);
/// Between two such questions.
const RENEWAL: Duration = Duration::from_millis(10_000);
const ARP_BYTES: usize = 28;

/// Entry of the neighbour cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub(super) mac: Option<EthernetAddress>,
    /// Whether to ask for its address now.
    pub(super) ask: bool,
}

#[derive(Clone, Copy, Debug)]
struct NeighbourEntry {
    mac: EthernetAddress,
    since: Instant,
    asked: Option<Instant>,
}

/// The neighbours that the board remembers.
#[derive(Debug, Default)]
pub(super) struct Neighbours(BTreeMap<Ipv4Addr, NeighbourEntry>);

impl Neighbours {
    /// A neighbour has told its address. If it has told others (not `to_board`), the address is remembered only if the
    /// board knows the neighbour already.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        mac: EthernetAddress,
        to_board: bool,
    ) {
        let known = NeighbourEntry {
            mac,
            since: now,
            asked: None,
        };
        if to_board {
            self.0.insert(address, known);
        } else if let Some(held) = self.0.get_mut(&address) {
            *held = known;
        }
    }

    /// Looks up the neighbour for a packet to `address`.
    pub(super) fn find(&mut self, now: Instant, address: Ipv4Addr) -> Neighbour {
        let unknown = Neighbour {
            mac: None,
            ask: true,
        };
        let Some(known) = self.0.get_mut(&address) else {
            return unknown;
        };
        let age = now.saturating_since(known.since);
        if age >= MAX_AGE {
            self.0.remove(&address);
            return unknown;
        }
        let asked_lately = known
            .asked
            .is_some_and(|at| now.saturating_since(at) < RENEWAL);
        let ask = age >= RENEWED_AGE && !asked_lately;
        if ask {
            known.asked = Some(now);
        }
        Neighbour {
            mac: Some(known.mac),
            ask,
        }
    }
}

/// The sender's IP and MAC address of an ARP packet, and the IP address that it is for.
pub(super) fn answer(frame: &[u8]) -> Option<(Ipv4Addr, EthernetAddress, Ipv4Addr)> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Arp {
        return None;
    }
    let packet = ArpPacket::new_checked(ethernet.payload()).ok()?;
    let ArpRepr::EthernetIpv4 {
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&packet).ok()?
    else {
        return None;
    };
    let single = source_hardware_addr.is_unicast() && !source_protocol_addr.is_unspecified();
    single.then_some((
        source_protocol_addr,
        source_hardware_addr,
        target_protocol_addr,
    ))
}

/// A frame that asks all for the hardware address of `wanted`.
pub(super) fn question(mac: EthernetAddress, address: Ipv4Addr, wanted: Ipv4Addr) -> Vec<u8> {
    let header = EthernetRepr {
        src_addr: mac,
        dst_addr: EthernetAddress::BROADCAST,
        ethertype: EthernetProtocol::Arp,
    };
    let packet = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: mac,
        source_protocol_addr: address,
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: wanted,
    };
    let mut frame = vec![0; ETHERNET_HEADER_BYTES + ARP_BYTES];
    header.emit(&mut EthernetFrame::new_unchecked(&mut frame));
    packet.emit(&mut ArpPacket::new_unchecked(
        &mut frame[ETHERNET_HEADER_BYTES..],
    ));
    frame
}
