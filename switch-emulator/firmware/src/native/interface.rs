//! Ethernet, ARP, IP and ping: the crate `smoltcp` on queues in place of a device.

use std::net::Ipv4Addr;

use smoltcp::iface::{Config as StackConfig, Interface as Stack, SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::raw;
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, HardwareAddress, IpAddress, IpCidr,
    IpProtocol, IpVersion, Ipv4Cidr, Ipv4Packet, Ipv4Repr, TcpPacket, TcpRepr,
};

use super::frame_queues::{FrameQueues, ETHERNET_HEADER_BYTES, MTU_BYTES};
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
    stack: Stack,
    sockets: SocketSet<'static>,
    /// Where TCP segments enter the stack; one waits at most while its next hop's address is asked for.
    packets: SocketHandle,
    queues: FrameQueues,
    /// Bytes that the link driver takes of the frame with the newest TCP segment.
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
        if !address.is_multicast() && !address.is_broadcast() && !address.is_unspecified() {
            stack.update_ip_addrs(|addresses| {
                // A new interface has room for its first address.
                let _ = addresses.push(IpCidr::Ipv4(Ipv4Cidr::new(address, prefix)));
            });
        }
        // So has its table of routes.
        let _ = stack.routes_mut().add_default_ipv4_route(config.gateway);
        let mut sockets = SocketSet::new(Vec::new());
        let packets = sockets.add(packet_socket());
        Self {
            mac,
            address,
            stack,
            sockets,
            packets,
            queues,
            taken_bytes: 0,
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
        self.queues.received.push_back(frame.to_vec());
        let before = self.queues.sent.len();
        self.poll(now);
        if self.queues.sent.len() > before {
            Received::Answered
        } else {
            Received::Ignored
        }
    }

    /// The TCP segment in `frame`, if it is for this board and intact.
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
    /// the next hop is asked for, the newest segment waits.
    pub(super) fn send(
        &mut self,
        now: Instant,
        to: Ipv4Addr,
        segment: &TcpRepr,
        first_bytes: usize,
    ) {
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
        self.taken_bytes =
            ETHERNET_HEADER_BYTES + IP_HEADER_BYTES + segment.header_len() + first_bytes;
        let mut waiting = self.sockets.get_mut::<raw::Socket>(self.packets);
        if !waiting.can_send() {
            self.sockets.remove(self.packets);
            self.packets = self.sockets.add(packet_socket());
            waiting = self.sockets.get_mut(self.packets);
        }
        // There is room for one packet of any size that a segment makes.
        let _ = waiting.send_slice(&bytes);
        self.poll(now);
    }

    /// Does what is due: asks for addresses again.
    pub(super) fn poll(&mut self, now: Instant) {
        let before = self.queues.sent.len();
        self.stack
            .poll(stack_instant(now), &mut self.queues, &mut self.sockets);
        // At most one TCP segment waited.
        for frame in self.queues.sent.iter_mut().skip(before) {
            if is_tcp(frame) {
                frame.truncate(self.taken_bytes);
            }
        }
    }

    /// When [`poll`](Self::poll) has next something to do.
    pub(super) fn poll_at(&mut self, now: Instant) -> Option<Instant> {
        let at = self.stack.poll_at(stack_instant(now), &self.sockets)?;
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

fn packet_socket() -> raw::Socket<'static> {
    let buffer = |packets: usize| {
        raw::PacketBuffer::new(
            vec![raw::PacketMetadata::EMPTY; packets],
            vec![0; packets * MTU_BYTES],
        )
    };
    raw::Socket::new(IpVersion::Ipv4, IpProtocol::Tcp, buffer(0), buffer(1))
}

#[allow(clippy::cast_possible_wrap)] // microseconds stay below 2^63
fn stack_instant(now: Instant) -> StackInstant {
    StackInstant::from_micros((now.as_nanos() / 1_000) as i64)
}

fn is_tcp(frame: &[u8]) -> bool {
    let ethernet = EthernetFrame::new_unchecked(frame);
    ethernet.ethertype() == EthernetProtocol::Ipv4
        && frame.get(ETHERNET_HEADER_BYTES + 9) == Some(&u8::from(IpProtocol::Tcp))
}
