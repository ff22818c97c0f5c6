//! Header fields that the firmware reads before it searches the table.

use openflow::bytes::{be16, be32, be48};
use openflow::ethernet::{ARP, IPV4, TYPE_AT, VLAN};

/// A frame as the table search sees it: four words that an entry compares under a mask.
///
/// | word | bits 63..0 |
/// |---|---|
/// | 0 | source MAC 48, ingress port 16 |
/// | 1 | destination MAC 48, type 16 |
/// | 2 | source IP 32, destination IP 32 |
/// | 3 | tagged 1, 0.., protocol 8, source port 16, destination port 16 |
///
/// Entries cannot match IP addresses, protocol and ports of ARP frames: for these everything holds. `care` leaves
/// those bits out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) words: [u64; 4],
    /// Bits of words 2 and 3 that are compared.
    pub(crate) care: [u64; 2],
    /// Only ARP and TCP, UDP and ICMP over IPv4 can match an entry at all.
    pub(crate) matchable: bool,
    /// Whether the type field is 8100. Actions go by it, even after they have changed the tag.
    pub(crate) tagged: bool,
}

/// Bit of word 3: the frame has a VLAN tag.
pub(crate) const TAGGED: u64 = 1 << 63;
/// Bits of word 3: the protocol.
const PROTOCOL: u64 = 0xff << 32;

impl Key {
    /// Port that the frame came in on.
    pub(crate) const fn in_port(&self) -> u16 {
        self.words[0] as u16
    }

    /// Returns type behind VLAN tags.
    pub(crate) const fn ethertype(&self) -> u16 {
        self.words[1] as u16
    }

    /// Reads `frame`, received on `in_port`. Bytes beyond its end count as 0.
    ///
    /// With `reads_arp`, operation and addresses of ARP are compared as protocol and IP addresses (quirk 66 is off).
    pub(crate) fn parse(frame: &[u8], in_port: u16, reads_arp: bool) -> Self {
        let outer = be16(frame, TYPE_AT);
        let mut at = TYPE_AT;
        let mut dl_type = outer;
        if matches!(dl_type, 0x8847 | 0x8848) {
            // The firmware steps into the label and takes its low half for a type.
            at += 4;
            dl_type = be16(frame, at);
        }
        let mut vlan = false;
        while matches!(dl_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300) {
            vlan = true;
            at += 4;
            dl_type = be16(frame, at);
        }
        let mut key = Self {
            words: [
                be48(frame, 6) << 16 | u64::from(in_port),
                be48(frame, 0) << 16 | u64::from(dl_type),
                0,
                if vlan { TAGGED } else { 0 },
            ],
            care: [u64::MAX; 2],
            matchable: false,
            tagged: outer == VLAN,
        };
        match dl_type {
            IPV4 => key.read_ipv4(frame, at + 2, vlan),
            ARP => {
                key.care = [0, TAGGED];
                key.matchable = true;
                if reads_arp {
                    key.read_arp(frame, at + 2);
                }
            }
            _ => {}
        }
        key
    }

    fn read_arp(&mut self, frame: &[u8], arp: usize) {
        self.care = [u64::MAX, TAGGED | PROTOCOL];
        self.words[2] = u64::from(be32(frame, arp + 14)) << 32 | u64::from(be32(frame, arp + 24));
        self.words[3] |= u64::from(be16(frame, arp + 6) & 0xff) << 32;
    }

    fn read_ipv4(&mut self, frame: &[u8], ip: usize, vlan: bool) {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        let protocol = byte(ip + 9);
        let (source, destination) = match protocol {
            6 | 17 => {
                let transport = ip + usize::from(byte(ip) & 0x0f) * 4;
                (be16(frame, transport), be16(frame, transport + 2))
            }
            // Type and code come from fixed places, the code of tagged frames from a wrong one.
            1 if vlan => (u16::from(byte(38)), u16::from(byte(49))),
            1 => (u16::from(byte(34)), u16::from(byte(35))),
            _ => return,
        };
        self.matchable = true;
        self.words[2] = u64::from(be32(frame, ip + 12)) << 32 | u64::from(be32(frame, ip + 16));
        self.words[3] |=
            u64::from(protocol) << 32 | u64::from(source) << 16 | u64::from(destination);
    }
}
