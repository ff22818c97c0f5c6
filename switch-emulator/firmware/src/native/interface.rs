//! Ethernet, ARP, IP and ping: the crate `smoltcp` on queues in place of a device. Which addresses of others it knows for its
//! TCP segments, and when it asks for them, is what the board's own stack does (lwIP 1.4.1).

use std::net::Ipv4Addr;

use smoltcp::iface::{Config as StackConfig, Interface as Stack, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, HardwareAddress, IpAddress,
    IpCidr, IpProtocol, Ipv4Cidr, Ipv4Packet, Ipv4Repr, TcpPacket, TcpRepr,
};

use super::frame_queues::{FrameQueues, ETHERNET_HEADER_BYTES};
use super::neighbours::{answer, question, Neighbours};
use crate::config::Config;
use crate::time::Instant;

const IP_HEADER_BYTES: usize = 20;
const HOP_LIMIT: u8 = 255;

/// A frame that the board received on a native port, as the IP stack sees it.
#[derive(Debug)]
pub(super) enum Received<'a> {
    /// A TCP segment for the board.
    Tcp(Ipv4Addr, TcpPacket<&'a [u8]>),
    /// ARP, ping or the like: answered.
    Answered,
    /// Nothing for the board.
    Ignored,
}

/// The board's end of its control network.
pub(super) struct Interface {
    mac: EthernetAddress,
    address: Ipv4Addr,
    /// Whether that is the address of a single station.
    has_address: bool,
    netmask: Ipv4Addr,
    gateway: Ipv4Addr,
    stack: Stack,
    queues: FrameQueues,
    neighbours: Neighbours,
    /// A TCP segment whose next hop's address is asked for.
    waiting: Option<Waiting>,
}

/// An IP packet that waits for the hardware address of its next hop.
struct Waiting {
    next_hop: Ipv4Addr,
    packet: Vec<u8>,
    /// Bytes that the link driver takes of its frame.
    taken_bytes: usize,
}

impl std::fmt::Debug for Interface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interface")
            .field("mac", &self.mac)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Interface {
    /// `seed` draws what is random in the stack.
    pub(super) fn new(config: &Config, seed: u64) -> Self {
        let mut mac = EthernetAddress(config.mac.0);
        // The console takes any address; the stack only those of single stations.
        mac.0[0] &= !1;
        let mut settings = StackConfig::new(HardwareAddress::Ethernet(mac));
        settings.random_seed = seed;
        let mut queues = FrameQueues::default();
        let mut stack = Stack::new(settings, &mut queues, StackInstant::ZERO);
        let prefix = u32::from(config.netmask).leading_ones() as u8;
        let address = config.ip_address;
        let mut has_address = false;
        if !address.is_multicast() && !address.is_broadcast() && !address.is_unspecified() {
            has_address = true;
            stack.update_ip_addrs(|addresses| {
                // A new interface has room for its first address.
                let _ = addresses.push(IpCidr::Ipv4(Ipv4Cidr::new(address, prefix)));
            });
        }
        // So has its table of routes for its first route.
        let _ = stack.routes_mut().add_default_ipv4_route(config.gateway);
        Self {
            mac,
            address,
            has_address,
            netmask: config.netmask,
            gateway: config.gateway,
            stack,
            queues,
            neighbours: Neighbours::default(),
            waiting: None,
        }
    }

    /// Takes a frame; answers ARP and ping by itself.
    pub(super) fn receive<'a>(&mut self, now: Instant, frame: &'a [u8]) -> Received<'a> {
        if frame.get(12..14) == Some(&[0x08, 0x00]) {
            match ip_payload(frame) {
                None => return Received::Ignored,
                Some((_, IpProtocol::Tcp, _)) => {
                    let segment = self.tcp(frame);
                    return segment.map_or(Received::Ignored, |(from, packet)| {
                        Received::Tcp(from, packet)
                    });
                }
                Some(_) => {}
            }
        }
        let before = self.queues.sent.len();
        if let Some((address, mac, is_for)) = answer(frame) {
            self.neighbours
                .learn(now, address, mac, is_for == self.address);
            self.send_waiting(now);
        }
        self.queues.received.push_back(frame.to_vec());
        self.poll(now);
        if self.queues.sent.len() > before {
            Received::Answered
        } else {
            Received::Ignored
        }
    }

    /// Returns the TCP segment in `frame`, if it is for this board and intact.
    fn tcp<'a>(&self, frame: &'a [u8]) -> Option<(Ipv4Addr, TcpPacket<&'a [u8]>)> {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        let (header, _, payload) = ip_payload(frame)?;
        let (from, to) = (header.src_addr, header.dst_addr);
        let foreign = from.is_multicast() || from.is_broadcast() || from.is_unspecified();
        if ethernet.dst_addr() != self.mac || to != self.address || foreign {
            return None;
        }
        let packet = TcpPacket::new_checked(payload).ok()?;
        let intact = packet.verify_checksum(&IpAddress::Ipv4(from), &IpAddress::Ipv4(to));
        (intact && packet.src_port() != 0 && packet.dst_port() != 0).then_some((from, packet))
    }

    /// Sends a TCP segment, of whose payload the link driver takes the first `first_bytes` bytes. While the address of
    /// the next hop is not known, each segment asks for it, and only the newest one waits.
    pub(super) fn send(
        &mut self,
        now: Instant,
        to: Ipv4Addr,
        segment: &TcpRepr,
        first_bytes: usize,
    ) {
        if !self.has_address {
            return;
        }
        let header = Ipv4Repr {
            src_addr: self.address,
            dst_addr: to,
            next_header: IpProtocol::Tcp,
            payload_len: segment.buffer_len(),
            hop_limit: HOP_LIMIT,
        };
        let checksums = ChecksumCapabilities::default();
        let mut bytes = vec![0; IP_HEADER_BYTES + segment.buffer_len()];
        header.emit(&mut Ipv4Packet::new_unchecked(&mut bytes), &checksums);
        segment.emit(
            &mut TcpPacket::new_unchecked(&mut bytes[IP_HEADER_BYTES..]),
            &IpAddress::Ipv4(self.address),
            &IpAddress::Ipv4(to),
            &checksums,
        );
        let taken_bytes =
            ETHERNET_HEADER_BYTES + IP_HEADER_BYTES + segment.header_len() + first_bytes;
        self.waiting = Some(Waiting {
            next_hop: self.next_hop(to),
            packet: bytes,
            taken_bytes,
        });
        self.send_waiting(now);
    }

    /// Sends the segment that waits if the address of its next hop is known, and asks for that otherwise.
    fn send_waiting(&mut self, now: Instant) {
        let Some(waiting) = self.waiting.take() else {
            return;
        };
        let neighbour = self.neighbours.find(now, waiting.next_hop);
        if neighbour.ask {
            let question = question(self.mac, self.address, waiting.next_hop);
            self.queues.sent.push_back(question);
        }
        let Some(mac) = neighbour.mac else {
            self.waiting = Some(waiting);
            return;
        };
        let header = EthernetRepr {
            src_addr: self.mac,
            dst_addr: mac,
            ethertype: EthernetProtocol::Ipv4,
        };
        let mut frame = vec![0; ETHERNET_HEADER_BYTES];
        header.emit(&mut EthernetFrame::new_unchecked(&mut frame));
        frame.extend_from_slice(&waiting.packet);
        frame.truncate(waiting.taken_bytes);
        self.queues.sent.push_back(frame);
    }

    fn next_hop(&self, to: Ipv4Addr) -> Ipv4Addr {
        if to & self.netmask == self.address & self.netmask {
            to
        } else {
            self.gateway
        }
    }

    /// Answers what has come: ARP, ping.
    pub(super) fn poll(&mut self, now: Instant) {
        let mut no_sockets = SocketSet::new(Vec::new());
        self.stack
            .poll(stack_instant(now), &mut self.queues, &mut no_sockets);
    }

    /// Returns when [`poll`](Self::poll) has next something to do.
    pub(super) fn poll_at(&mut self, now: Instant) -> Option<Instant> {
        let no_sockets = SocketSet::new(Vec::new());
        let at = self.stack.poll_at(stack_instant(now), &no_sockets)?;
        Some(Instant::from_nanos(at.total_micros().unsigned_abs() * 1_000).max(now))
    }

    /// The next frame that the link driver sends.
    pub(super) fn take_frame(&mut self) -> Option<Vec<u8>> {
        self.queues.sent.pop_front()
    }
}

/// Header, protocol and payload of the IPv4 packet in `frame`, if it is whole and intact.
fn ip_payload(frame: &[u8]) -> Option<(Ipv4Repr, IpProtocol, &[u8])> {
    let packet = Ipv4Packet::new_checked(frame.get(ETHERNET_HEADER_BYTES..)?).ok()?;
    let whole = usize::from(packet.header_len()) >= IP_HEADER_BYTES
        && !packet.more_frags()
        && packet.frag_offset() == 0;
    if !whole {
        return None;
    }
    let header = Ipv4Repr::parse(&packet, &ChecksumCapabilities::default()).ok()?;
    Some((header, header.next_header, packet.payload()))
}

#[allow(clippy::cast_possible_wrap)] // microseconds stay below 2^63
fn stack_instant(now: Instant) -> StackInstant {
    StackInstant::from_micros((now.as_nanos() / 1_000) as i64)
}
