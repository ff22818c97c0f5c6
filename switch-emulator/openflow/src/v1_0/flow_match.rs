//! Matches of OpenFlow 1.0 (1.0.1, sections 3.4 and 5.2.3).

use serde::Serialize;

use super::wildcards as w;
use crate::bytes::{be16, be32};
use crate::ethernet::{ARP, FIRST_TYPE, IPV4, NO_TYPE, SNAP, VLAN};

/// Length of a match in a message.
pub const MATCH_BYTES: usize = 40;

/// `dl_vlan` of frames without a tag.
const NO_VLAN: u16 = 0xffff;
/// Bits of an IPv4 header of which fragments have at least one: the offset, and the flag that others follow.
const FRAGMENT_BITS: u16 = 0x3fff;

/// Returns whether a frame carries a fragment of an IPv4 packet.
#[must_use]
pub fn is_fragment(frame: &[u8]) -> bool {
    let at = if be16(frame, 12) == VLAN { 18 } else { 14 };
    be16(frame, at - 2) == IPV4 && is_ipv4_fragment(frame, at)
}

/// Returns whether the IPv4 header at this place of a frame is that of a fragment.
fn is_ipv4_fragment(frame: &[u8], at: usize) -> bool {
    be16(frame, at + 6) & FRAGMENT_BITS != 0
}

/// A match of OpenFlow 1.0 (`ofp_match`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs)] // the standard's fields
pub struct Match {
    pub wildcards: u32,
    pub in_port: u16,
    pub dl_src: [u8; 6],
    pub dl_dst: [u8; 6],
    pub dl_vlan: u16,
    pub dl_vlan_pcp: u8,
    pub dl_type: u16,
    pub nw_tos: u8,
    pub nw_proto: u8,
    pub nw_src: u32,
    pub nw_dst: u32,
    pub tp_src: u16,
    pub tp_dst: u16,
}

impl Match {
    /// Reads a match; bytes beyond the end count as 0.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let mac = |at: usize| core::array::from_fn(|i| byte(at + i));
        Self {
            wildcards: be32(bytes, 0),
            in_port: be16(bytes, 4),
            dl_src: mac(6),
            dl_dst: mac(12),
            dl_vlan: be16(bytes, 18),
            dl_vlan_pcp: byte(20),
            dl_type: be16(bytes, 22),
            nw_tos: byte(24),
            nw_proto: byte(25),
            nw_src: be32(bytes, 28),
            nw_dst: be32(bytes, 32),
            tp_src: be16(bytes, 36),
            tp_dst: be16(bytes, 38),
        }
    }

    /// The match as it stands in a message, with pads of zero.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.wildcards.to_be_bytes().to_vec();
        bytes.extend(self.in_port.to_be_bytes());
        bytes.extend(self.dl_src);
        bytes.extend(self.dl_dst);
        bytes.extend(self.dl_vlan.to_be_bytes());
        bytes.extend([self.dl_vlan_pcp, 0]);
        bytes.extend(self.dl_type.to_be_bytes());
        bytes.extend([self.nw_tos, self.nw_proto, 0, 0]);
        bytes.extend(self.nw_src.to_be_bytes());
        bytes.extend(self.nw_dst.to_be_bytes());
        bytes.extend(self.tp_src.to_be_bytes());
        bytes.extend(self.tp_dst.to_be_bytes());
        bytes
    }

    /// Returns the exact fields of a frame that came in on `in_port`.
    #[must_use]
    pub fn of_frame(frame: &[u8], in_port: u16) -> Self {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        let mac = |at: usize| core::array::from_fn(|i| byte(at + i));
        let mut fields = Self {
            wildcards: 0,
            in_port,
            dl_src: mac(6),
            dl_dst: mac(0),
            dl_vlan: NO_VLAN,
            dl_vlan_pcp: 0,
            dl_type: be16(frame, 12),
            nw_tos: 0,
            nw_proto: 0,
            nw_src: 0,
            nw_dst: 0,
            tp_src: 0,
            tp_dst: 0,
        };
        let mut payload = 14;
        if fields.dl_type == VLAN {
            fields.dl_vlan = be16(frame, 14) & 0x0fff;
            fields.dl_vlan_pcp = byte(14) >> 5;
            fields.dl_type = be16(frame, 16);
            payload = 18;
        }
        if fields.dl_type < FIRST_TYPE {
            if frame.get(payload..payload + 6) == Some(&SNAP[..]) {
                fields.dl_type = be16(frame, payload + 6);
                payload += 8;
            } else {
                fields.dl_type = NO_TYPE;
            }
        }
        match fields.dl_type {
            IPV4 => fields.read_ipv4(frame, payload),
            ARP => {
                fields.nw_proto = byte(payload + 7);
                fields.nw_src = be32(frame, payload + 14);
                fields.nw_dst = be32(frame, payload + 24);
            }
            _ => {}
        }
        fields
    }

    fn read_ipv4(&mut self, frame: &[u8], at: usize) {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        self.nw_tos = byte(at + 1) & 0xfc;
        self.nw_proto = byte(at + 9);
        self.nw_src = be32(frame, at + 12);
        self.nw_dst = be32(frame, at + 16);
        let transport = at + usize::from(byte(at) & 0x0f) * 4;
        match self.nw_proto {
            // Not even the first fragment has ports (figure 4).
            _ if is_ipv4_fragment(frame, at) => {}
            6 | 17 => {
                self.tp_src = be16(frame, transport);
                self.tp_dst = be16(frame, transport + 2);
            }
            1 => {
                self.tp_src = byte(transport).into();
                self.tp_dst = byte(transport + 1).into();
            }
            _ => {}
        }
    }

    /// Returns the same match in one form: fields that cannot count are wildcards, and wildcards have the value 0.
    #[must_use]
    pub fn normalised(mut self) -> Self {
        let network = self.wildcards & w::DL_TYPE == 0 && matches!(self.dl_type, IPV4 | ARP);
        if !network {
            self.wildcards |=
                w::NW_PROTO | w::NW_TOS | 0x3f << w::NW_SRC_SHIFT | 0x3f << w::NW_DST_SHIFT;
        }
        if network && self.dl_type == ARP {
            self.wildcards |= w::NW_TOS;
        }
        let transport = network
            && self.dl_type == IPV4
            && self.wildcards & w::NW_PROTO == 0
            && matches!(self.nw_proto, 1 | 6 | 17);
        if !transport {
            self.wildcards |= w::TP_SRC | w::TP_DST;
        }
        if self.wildcards & w::DL_VLAN != 0 || self.dl_vlan == NO_VLAN {
            self.wildcards |= w::DL_VLAN_PCP;
        }
        let mut kept = self.wildcards & 0x0030_00ff;
        for (shift, address) in [
            (w::NW_SRC_SHIFT, &mut self.nw_src),
            (w::NW_DST_SHIFT, &mut self.nw_dst),
        ] {
            let bits = (self.wildcards >> shift & 0x3f).min(32);
            *address &= u32::MAX.checked_shl(bits).unwrap_or(0);
            kept |= bits << shift;
        }
        self.wildcards = kept;
        let wild = |bit: u32| kept & bit != 0;
        let number = |bit: u32, value: u16| if wild(bit) { 0 } else { value };
        let byte = |bit: u32, value: u8| if wild(bit) { 0 } else { value };
        let mac = |bit: u32, value: [u8; 6]| if wild(bit) { [0; 6] } else { value };
        self.in_port = number(w::IN_PORT, self.in_port);
        self.dl_vlan = number(w::DL_VLAN, self.dl_vlan);
        self.dl_type = number(w::DL_TYPE, self.dl_type);
        self.tp_src = number(w::TP_SRC, self.tp_src);
        self.tp_dst = number(w::TP_DST, self.tp_dst);
        self.dl_vlan_pcp = byte(w::DL_VLAN_PCP, self.dl_vlan_pcp);
        self.nw_tos = byte(w::NW_TOS, self.nw_tos & 0xfc);
        self.nw_proto = byte(w::NW_PROTO, self.nw_proto);
        self.dl_src = mac(w::DL_SRC, self.dl_src);
        self.dl_dst = mac(w::DL_DST, self.dl_dst);
        self
    }

    /// Returns whether everything that `other` matches is matched by this one too. Both normalised.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let bits = |wild: u32, shift: u32| wild >> shift & 0x3f;
        let wider = |shift: u32| bits(self.wildcards, shift) >= bits(other.wildcards, shift);
        self.wildcards & 0x0030_00ff | other.wildcards & 0x0030_00ff == self.wildcards & 0x0030_00ff
            && wider(w::NW_SRC_SHIFT)
            && wider(w::NW_DST_SHIFT)
            && self.agrees(other)
    }

    /// Returns whether a frame can be matched by both. Both normalised.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.agrees(other)
    }

    /// Returns whether the fields that neither leaves open are equal.
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        let open = |bit: u32| (self.wildcards | other.wildcards) & bit != 0;
        let prefix = |shift: u32, a: u32, b: u32| {
            let bits = |wild: u32| (wild >> shift & 0x3f).min(32);
            (a ^ b)
                .checked_shr(bits(self.wildcards).max(bits(other.wildcards)))
                .unwrap_or(0)
                == 0
        };
        (open(w::IN_PORT) || self.in_port == other.in_port)
            && (open(w::DL_SRC) || self.dl_src == other.dl_src)
            && (open(w::DL_DST) || self.dl_dst == other.dl_dst)
            && (open(w::DL_VLAN) || self.dl_vlan == other.dl_vlan)
            && (open(w::DL_VLAN_PCP) || self.dl_vlan_pcp == other.dl_vlan_pcp)
            && (open(w::DL_TYPE) || self.dl_type == other.dl_type)
            && (open(w::NW_TOS) || self.nw_tos == other.nw_tos)
            && (open(w::NW_PROTO) || self.nw_proto == other.nw_proto)
            && prefix(w::NW_SRC_SHIFT, self.nw_src, other.nw_src)
            && prefix(w::NW_DST_SHIFT, self.nw_dst, other.nw_dst)
            && (open(w::TP_SRC) || self.tp_src == other.tp_src)
            && (open(w::TP_DST) || self.tp_dst == other.tp_dst)
    }

    /// Returns whether no field is left open: such an entry comes before all others, whatever its priority.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let optional = w::DL_VLAN_PCP | w::NW_TOS | w::NW_PROTO | w::TP_SRC | w::TP_DST;
        let addresses = 0x3f << w::NW_SRC_SHIFT | 0x3f << w::NW_DST_SHIFT;
        let network = matches!(self.dl_type, IPV4 | ARP);
        self.wildcards & !(optional | addresses) == 0
            && (!network || self.wildcards & addresses == 0)
            && (self.dl_type != IPV4 || self.wildcards & (w::NW_TOS | w::NW_PROTO) == 0)
            && (!matches!(self.nw_proto, 1 | 6 | 17)
                || self.dl_type != IPV4
                || self.wildcards & (w::TP_SRC | w::TP_DST) == 0)
    }
}
