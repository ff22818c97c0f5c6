//! Header fields that the firmware reads before it searches the first table, and keeps from table to table (quirk 156).

use openflow::bytes::{be16, be32};
use openflow::ethernet::{IPV4, MPLS, TYPE_AT};

/// Returns whether this type is one of the five that the firmware takes for a VLAN tag (quirk 148).
pub(super) const fn is_vlan(eth_type: u16) -> bool {
    matches!(eth_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300)
}

/// Returns whether this type is one of the two of MPLS.
pub(super) const fn is_mpls(eth_type: u16) -> bool {
    eth_type == MPLS[0] || eth_type == MPLS[1]
}

/// The remembered values of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) in_port: u32,
    pub(super) tagged: bool,
    /// Of the outermost tag.
    pub(super) vid: u16,
    /// The first type behind all tags.
    pub(super) eth_type: u16,
    /// Where the packet of that type begins.
    pub(super) payload: usize,
    pub(super) mpls: bool,
    /// In the form in which it is compared: of a received frame with its bytes reversed (quirk 145).
    pub(super) mpls_label: u32,
    pub(super) mpls_tc: u8,
    pub(super) mpls_bos: u8,
    /// 0 if the frame is not IPv4 (quirk 146); the addresses likewise.
    pub(super) ip_proto: u8,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
}

impl Header {
    /// Reads `frame`, received on `in_port`. Bytes beyond its end count as 0.
    pub(super) fn parse(frame: &[u8], in_port: u32) -> Self {
        let mut at = TYPE_AT;
        let mut eth_type = be16(frame, at);
        let mut header = Self {
            in_port,
            tagged: false,
            vid: 0,
            eth_type,
            payload: 0,
            mpls: is_mpls(eth_type),
            mpls_label: 0,
            mpls_tc: 0,
            mpls_bos: 0,
            ip_proto: 0,
            source: 0,
            destination: 0,
            source_port: 0,
            destination_port: 0,
        };
        if header.mpls {
            // The low half of the label entry is taken for the type behind it (quirk 144).
            let label = be32(frame, 14);
            header.mpls_label = (label >> 12).swap_bytes();
            header.mpls_tc = (label >> 9 & 7) as u8;
            header.mpls_bos = (label >> 8 & 1) as u8;
            at += 4;
            eth_type = be16(frame, at);
        }
        while is_vlan(eth_type) {
            if !header.tagged {
                header.tagged = true;
                header.vid = be16(frame, at + 2) & 0x0fff;
            }
            at += 4;
            eth_type = be16(frame, at);
        }
        header.eth_type = eth_type;
        header.payload = at + 2;
        if eth_type == IPV4 {
            header.read_ipv4(frame);
        }
        header
    }

    fn read_ipv4(&mut self, frame: &[u8]) {
        let ip = self.payload;
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        self.ip_proto = byte(ip + 9);
        self.source = be32(frame, ip + 12);
        self.destination = be32(frame, ip + 16);
        if matches!(self.ip_proto, 6 | 17) {
            // Of fragments, too (quirk 149).
            let transport = ip + usize::from(byte(ip) & 0x0f) * 4;
            self.source_port = be16(frame, transport);
            self.destination_port = be16(frame, transport + 2);
        }
    }
}
