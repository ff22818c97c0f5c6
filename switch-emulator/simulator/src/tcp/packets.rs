//! Segments as frames.

#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)] // sequence numbers wrap, and smoltcp's are signed

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpAddress, IpProtocol,
    Ipv4Address, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
    TcpTimestampRepr,
};

use super::receiver::Ack;

/// Ethernet, IPv4, TCP.
const HEADERS_BYTES: usize = 14 + 20 + 20;
/// Length of the time stamp option, padded.
const TIMESTAMPS_BYTES: usize = 12;
/// The number of a segment's frame, at the beginning of its payload.
const NUMBER_BYTES: usize = 4;
const HOP_LIMIT: u8 = 64;
const BLOCKS: usize = 3;
const NS_PER_MS: u64 = 1_000_000;

/// Source and destination port of TCP.
type PortPair = (u16, u16);

/// Content of a frame of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TransferPacket {
    /// The segment with this index; frames are numbered in the order of sending.
    Data {
        index: u64,
        number: u32,
    },
    Ack(Ack),
}

/// Makes and reads the frames of a connection.
#[derive(Debug)]
pub(super) struct Packets {
    ethernet: EthernetRepr,
    addresses: (Ipv4Address, Ipv4Address),
    ports: PortPair,
    payload: Vec<u8>,
}

impl Packets {
    /// Takes addresses, ports and length from a full segment.
    ///
    /// # Errors
    /// Fault of the packet, and how to mend it.
    pub(super) fn of(frame: &[u8]) -> Result<Self, String> {
        let wrong = |_| "the frame holds no TCP over IPv4: give a full segment".to_owned();
        let least = HEADERS_BYTES + TIMESTAMPS_BYTES + NUMBER_BYTES;
        if frame.len() < least || frame.len() > 1 << 14 {
            return Err(format!(
                "the frame has {} bytes: give {least} .. 16384, without FCS",
                frame.len()
            ));
        }
        let ethernet = EthernetFrame::new_checked(frame).map_err(wrong)?;
        let ip = Ipv4Packet::new_checked(ethernet.payload()).map_err(wrong)?;
        if ethernet.ethertype() != EthernetProtocol::Ipv4 || ip.next_header() != IpProtocol::Tcp {
            return Err("the frame holds no TCP over IPv4: give a full segment".into());
        }
        let tcp = TcpPacket::new_checked(ip.payload()).map_err(wrong)?;
        if tcp.src_port() == 0 || tcp.dst_port() == 0 {
            return Err("a TCP port is 0: give 1 .. 65535".into());
        }
        Ok(Self {
            ethernet: EthernetRepr::parse(&ethernet).map_err(wrong)?,
            addresses: (ip.src_addr(), ip.dst_addr()),
            ports: (tcp.src_port(), tcp.dst_port()),
            payload: vec![0; frame.len() - HEADERS_BYTES - TIMESTAMPS_BYTES],
        })
    }

    /// Payload of a segment.
    pub(super) fn segment_bytes(&self) -> u64 {
        self.payload.len() as u64
    }

    /// Returns ports of frames with data, or of acknowledgements.
    fn ports(&self, data: bool) -> PortPair {
        if data {
            self.ports
        } else {
            (self.ports.1, self.ports.0)
        }
    }

    /// Returns the frame of a segment, in a buffer whose content does not matter.
    pub(super) fn data(
        &mut self,
        index: u64,
        number: u32,
        now_ns: u64,
        buffer: Vec<u8>,
    ) -> Vec<u8> {
        self.payload[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
        let header = self.header(true, now_ns);
        let repr = TcpRepr {
            seq_number: self.place(index),
            payload: &self.payload,
            ..header
        };
        self.frame(true, &repr, buffer)
    }

    /// Returns the frame of an acknowledgement, in a buffer whose content does not matter.
    pub(super) fn ack(&self, ack: &Ack, now_ns: u64, buffer: Vec<u8>) -> Vec<u8> {
        let mut header = self.header(false, now_ns);
        header.ack_number = Some(self.place(ack.next));
        for (range, block) in header.sack_ranges.iter_mut().zip(&ack.blocks) {
            *range = Some((self.wrapped(block.0), self.wrapped(block.1)));
        }
        self.frame(false, &header, buffer)
    }

    /// Parses a frame; `near` is a segment's index close to those in the frame. Returns `None` if it is no frame of the
    /// connection.
    pub(super) fn parse(&self, data: bool, near: u64, frame: &[u8]) -> Option<TransferPacket> {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        let ip = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        let addresses = if data {
            self.addresses
        } else {
            (self.addresses.1, self.addresses.0)
        };
        if (ip.src_addr(), ip.dst_addr()) != addresses {
            return None;
        }
        let repr = TcpRepr::parse(
            &tcp,
            &IpAddress::Ipv4(addresses.0),
            &IpAddress::Ipv4(addresses.1),
            &ChecksumCapabilities::ignored(),
        )
        .ok()?;
        let index = |place: u32| self.unwrapped(place, near);
        if data {
            let number = *repr.payload.first_chunk::<NUMBER_BYTES>()?;
            return Some(TransferPacket::Data {
                index: index(repr.seq_number.0 as u32)?,
                number: u32::from_be_bytes(number),
            });
        }
        let mut blocks = Vec::new();
        for (from, to) in repr.sack_ranges.into_iter().flatten() {
            blocks.push((index(from)?, index(to)?));
        }
        Some(TransferPacket::Ack(Ack {
            next: index(repr.ack_number?.0 as u32)?,
            blocks,
        }))
    }

    fn header(&self, data: bool, now_ns: u64) -> TcpRepr<'static> {
        let (src_port, dst_port) = self.ports(data);
        TcpRepr {
            src_port,
            dst_port,
            control: TcpControl::None,
            seq_number: TcpSeqNumber(0),
            ack_number: Some(TcpSeqNumber(0)),
            window_len: u16::MAX,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; BLOCKS],
            timestamp: Some(TcpTimestampRepr::new((now_ns / NS_PER_MS) as u32, 0)),
            payload: &[],
        }
    }

    fn frame(&self, data: bool, repr: &TcpRepr<'_>, mut frame: Vec<u8>) -> Vec<u8> {
        let (source, destination) = if data {
            self.addresses
        } else {
            (self.addresses.1, self.addresses.0)
        };
        let ip = Ipv4Repr {
            src_addr: source,
            dst_addr: destination,
            next_header: IpProtocol::Tcp,
            payload_len: repr.buffer_len(),
            hop_limit: HOP_LIMIT,
        };
        frame.clear();
        frame.resize(14 + 20 + repr.buffer_len(), 0);
        let mut ethernet = EthernetFrame::new_unchecked(&mut frame[..]);
        self.direction(data).emit(&mut ethernet);
        let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
        ip.emit(&mut packet, &ChecksumCapabilities::ignored());
        repr.emit(
            &mut TcpPacket::new_unchecked(packet.payload_mut()),
            &IpAddress::Ipv4(source),
            &IpAddress::Ipv4(destination),
            &ChecksumCapabilities::ignored(),
        );
        frame
    }

    fn direction(&self, data: bool) -> EthernetRepr {
        let (from, to): (EthernetAddress, EthernetAddress) =
            (self.ethernet.src_addr, self.ethernet.dst_addr);
        let (src_addr, dst_addr) = if data { (from, to) } else { (to, from) };
        EthernetRepr {
            src_addr,
            dst_addr,
            ethertype: EthernetProtocol::Ipv4,
        }
    }

    fn wrapped(&self, index: u64) -> u32 {
        (index * self.segment_bytes()) as u32
    }

    fn place(&self, index: u64) -> TcpSeqNumber {
        TcpSeqNumber(self.wrapped(index) as i32)
    }

    /// Returns the index of a sequence number, which counts bytes and wraps.
    fn unwrapped(&self, place: u32, near: u64) -> Option<u64> {
        let bytes = i64::from(place.wrapping_sub(self.wrapped(near)) as i32);
        let segment_bytes = i64::try_from(self.segment_bytes()).ok()?;
        (bytes % segment_bytes == 0).then_some(())?;
        near.checked_add_signed(bytes / segment_bytes)
    }
}
