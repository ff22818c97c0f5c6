//! A controller's end of the control network, written by hand, so that it can also misbehave.
#![allow(dead_code, unreachable_pub)] // each test uses its part

use std::net::Ipv4Addr;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr,
    TcpSeqNumber,
};
use zodiac_firmware::{Config, ControlCarrier, Duration, Instant, Profile};

use crate::testbed::{port, Departure, Testbed};

pub const PEER_MAC: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 8]);
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 8);
pub const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 99);
/// Sequence number of the peer's SYN.
pub const PEER_INITIAL: TcpSeqNumber = TcpSeqNumber(-5);

/// Settings of a board that has its connection on port 4.
pub fn on_network(config: Config) -> Config {
    Config {
        control: ControlCarrier::Network,
        ..config
    }
}

/// A TCP segment that the board sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub at: Instant,
    pub from: u16,
    pub control: TcpControl,
    pub sequence: TcpSeqNumber,
    pub acknowledges: Option<TcpSeqNumber>,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    /// Bytes that the IP header promises and the frame does not hold.
    pub missing: usize,
}

/// A board on a control network, and the peer's view of it.
pub struct Network {
    pub bed: Testbed,
    /// Whether the peer answers ARP.
    pub answers_arp: bool,
    /// Frames by which the board asked for the peer's address.
    pub questions: Vec<Vec<u8>>,
    /// Frames that are neither ARP nor TCP.
    pub others: Vec<Departure>,
    pub segments: Vec<Segment>,
}

/// One connection as the peer keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub board_port: u16,
    /// Next sequence number of the peer.
    pub next: TcpSeqNumber,
    /// Next sequence number expected of the board.
    pub expected: TcpSeqNumber,
}

impl Network {
    pub fn new(profile: &Profile, config: Config) -> Self {
        Self {
            bed: Testbed::new(profile, on_network(config)),
            answers_arp: true,
            questions: Vec::new(),
            others: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Lets time pass in small steps.
    pub fn wait(&mut self, time: Duration) {
        let end = self.bed.now + time;
        while self.bed.now < end {
            let step = Duration::from_micros(100).min(end.saturating_since(self.bed.now));
            self.bed.wait(step);
            for departure in std::mem::take(&mut self.bed.departures) {
                self.see(departure);
            }
        }
    }

    fn see(&mut self, departure: Departure) {
        assert_eq!(departure.ports.bits(), 8, "by the native port");
        let frame = EthernetFrame::new_checked(&departure.data).unwrap();
        match frame.ethertype() {
            EthernetProtocol::Arp => {
                let packet = ArpPacket::new_checked(frame.payload()).unwrap();
                let ArpRepr::EthernetIpv4 {
                    operation,
                    target_protocol_addr,
                    ..
                } = ArpRepr::parse(&packet).unwrap()
                else {
                    panic!("{packet}");
                };
                if operation == ArpOperation::Reply {
                    self.others.push(departure);
                } else if target_protocol_addr == PEER {
                    self.questions.push(departure.data);
                    if self.answers_arp {
                        self.hand_in(&arp(ArpOperation::Reply));
                    }
                }
            }
            EthernetProtocol::Ipv4 if frame.payload()[9] == 6 => {
                let segment = segment(departure.at, frame.payload());
                self.segments.push(segment);
            }
            _ => self.others.push(departure),
        }
    }

    /// Hands a frame in on the native port.
    pub fn hand_in(&mut self, frame: &[u8]) {
        self.bed.board.frame(self.bed.now, port(4), frame);
    }

    /// Sends a segment of the peer.
    pub fn send(&mut self, segment: &TcpRepr) {
        self.hand_in(&ethernet(&ip(PEER, BOARD, segment)));
    }

    /// Returns the next SYN of the board.
    pub fn next_syn(&mut self) -> Segment {
        for _ in 0..1_000 {
            let mut segments = self.segments.iter();
            let syn = segments.position(|segment| segment.control == TcpControl::Syn);
            if let Some(syn) = syn {
                return self.segments.remove(syn);
            }
            self.wait(Duration::from_millis(10));
        }
        panic!("no SYN in 10 s");
    }

    /// Answers a SYN.
    pub fn accept(&mut self, syn: &Segment) -> Connection {
        let connection = Connection {
            board_port: syn.from,
            next: PEER_INITIAL + 1,
            expected: syn.sequence + 1,
        };
        self.send(&TcpRepr {
            control: TcpControl::Syn,
            seq_number: PEER_INITIAL,
            max_seg_size: Some(1_460),
            ..connection.header()
        });
        self.wait(Duration::from_millis(2));
        connection
    }

    /// Accepts the next connection.
    pub fn connect(&mut self) -> Connection {
        let syn = self.next_syn();
        self.accept(&syn)
    }

    /// Sends `payload`, and returns what comes back within 4 ms, which the peer acknowledges.
    pub fn exchange(&mut self, connection: &mut Connection, payload: &[u8]) -> Vec<u8> {
        self.segments.clear();
        self.send(&TcpRepr {
            control: TcpControl::Psh,
            payload,
            ..connection.header()
        });
        connection.next += payload.len();
        self.wait(Duration::from_millis(4));
        self.read(connection)
    }

    /// Returns the data that the board has sent on a connection; the peer acknowledges it.
    pub fn read(&mut self, connection: &mut Connection) -> Vec<u8> {
        let mut bytes = Vec::new();
        for segment in std::mem::take(&mut self.segments) {
            let whole = segment.missing == 0 && segment.from == connection.board_port;
            if whole && segment.sequence == connection.expected {
                connection.expected += segment.payload.len();
                bytes.extend(segment.payload);
            }
        }
        if !bytes.is_empty() {
            self.send(&connection.header());
            self.wait(Duration::from_millis(1));
        }
        bytes
    }
}

impl Connection {
    /// Returns a segment of the peer without data.
    pub fn header(&self) -> TcpRepr<'static> {
        TcpRepr {
            src_port: 6633,
            dst_port: self.board_port,
            control: TcpControl::None,
            seq_number: self.next,
            ack_number: Some(self.expected),
            window_len: 29_200,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &[],
        }
    }
}

/// ARP of the peer about the board.
pub fn arp(operation: ArpOperation) -> Vec<u8> {
    let question = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: PEER_MAC,
        source_protocol_addr: PEER,
        target_hardware_addr: EthernetAddress(Config::default().mac.0),
        target_protocol_addr: BOARD,
    };
    let mut frame = vec![0; 14 + question.buffer_len()];
    let mut ethernet = EthernetFrame::new_unchecked(&mut frame);
    EthernetRepr {
        src_addr: PEER_MAC,
        dst_addr: EthernetAddress::BROADCAST,
        ethertype: EthernetProtocol::Arp,
    }
    .emit(&mut ethernet);
    question.emit(&mut ArpPacket::new_unchecked(ethernet.payload_mut()));
    frame
}

/// Returns a frame of the peer for the board's MAC address.
pub fn ethernet(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 14 + packet.len()];
    let mut ethernet = EthernetFrame::new_unchecked(&mut frame);
    EthernetRepr {
        src_addr: PEER_MAC,
        dst_addr: EthernetAddress(Config::default().mac.0),
        ethertype: EthernetProtocol::Ipv4,
    }
    .emit(&mut ethernet);
    ethernet.payload_mut().copy_from_slice(packet);
    frame
}

/// Returns an IP packet with a TCP segment.
pub fn ip(from: Ipv4Addr, to: Ipv4Addr, segment: &TcpRepr) -> Vec<u8> {
    let mut packet = ip_header(from, to, IpProtocol::Tcp, segment.buffer_len());
    segment.emit(
        &mut TcpPacket::new_unchecked(&mut packet[20..]),
        &IpAddress::Ipv4(from),
        &IpAddress::Ipv4(to),
        &ChecksumCapabilities::default(),
    );
    packet
}

/// An IP packet whose payload has yet to be written.
pub fn ip_header(from: Ipv4Addr, to: Ipv4Addr, next_header: IpProtocol, length: usize) -> Vec<u8> {
    let mut packet = vec![0; 20 + length];
    let header = Ipv4Repr {
        src_addr: from,
        dst_addr: to,
        next_header,
        payload_len: length,
        hop_limit: 64,
    };
    header.emit(
        &mut Ipv4Packet::new_unchecked(&mut packet),
        &ChecksumCapabilities::default(),
    );
    packet
}

fn segment(at: Instant, packet: &[u8]) -> Segment {
    let header = Ipv4Packet::new_unchecked(packet);
    assert_eq!(header.src_addr(), BOARD);
    let total = usize::from(header.total_len());
    let missing = total.saturating_sub(packet.len());
    let tcp = TcpPacket::new_checked(&packet[20..total.min(packet.len())]).unwrap();
    if missing == 0 {
        assert!(tcp.verify_checksum(&IpAddress::Ipv4(BOARD), &IpAddress::Ipv4(PEER)));
    }
    let control = match (tcp.syn(), tcp.fin(), tcp.rst(), tcp.psh()) {
        (true, ..) => TcpControl::Syn,
        (_, true, ..) => TcpControl::Fin,
        (_, _, true, _) => TcpControl::Rst,
        (.., true) => TcpControl::Psh,
        _ => TcpControl::None,
    };
    Segment {
        at,
        from: tcp.src_port(),
        control,
        sequence: tcp.seq_number(),
        acknowledges: tcp.ack().then(|| tcp.ack_number()),
        window: tcp.window_len(),
        options: tcp.options().to_vec(),
        payload: tcp.payload().to_vec(),
        missing,
    }
}
