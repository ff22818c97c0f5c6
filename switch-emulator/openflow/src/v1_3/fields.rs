//! Match fields (1.3.4, section 7.2.3): lengths, masks, what each takes for granted, and matches as values.

use super::error;
use super::oxm::{field, number, split, Oxm};
use crate::bytes::be16;
use crate::ethernet::{ARP, ICMPV4, ICMPV6, IPV4, IPV6, MPLS, PBB, SCTP, TCP, UDP, VLAN};
use crate::ErrorCode;

/// Types of frames with a VLAN tag.
pub const VLAN_TYPES: [u16; 2] = [VLAN, 0x88a8];

/// Bit of `VLAN_VID` that says that there is a tag.
pub const VLAN_PRESENT: u128 = 0x1000;
/// Neighbour solicitation and advertisement (types of `ICMPv6`).
const SOLICITATION: u128 = 135;
const ADVERTISEMENT: u128 = 136;

/// Kind of a field.
#[derive(Clone, Copy, Debug)]
pub struct FieldKind {
    /// Bytes of its value in an OXM.
    pub bytes: usize,
    /// Bits of these that count.
    pub bits: u32,
    /// Whether it may be masked.
    pub maskable: bool,
    /// Whether `SET_FIELD` may change it.
    pub settable: bool,
}

impl FieldKind {
    /// Returns all bits of the field.
    #[must_use]
    pub const fn all(self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }
}

/// Returns the kind of the field with this number; those of tunnels are not known.
#[must_use]
pub const fn kind(number: u8) -> Option<FieldKind> {
    let (bytes, bits, maskable, settable) = match number {
        field::IN_PORT | field::IN_PHY_PORT => (4, 32, false, false),
        field::METADATA => (8, 64, true, false),
        field::ETH_DST | field::ETH_SRC | field::ARP_SHA | field::ARP_THA => (6, 48, true, true),
        field::VLAN_VID => (2, 13, true, true),
        field::VLAN_PCP | field::MPLS_TC => (1, 3, false, true),
        field::IP_DSCP => (1, 6, false, true),
        field::IP_ECN => (1, 2, false, true),
        field::IP_PROTO
        | field::ICMPV4_TYPE
        | field::ICMPV4_CODE
        | field::ICMPV6_TYPE
        | field::ICMPV6_CODE => (1, 8, false, true),
        field::IPV4_SRC | field::IPV4_DST | field::ARP_SPA | field::ARP_TPA => (4, 32, true, true),
        field::ETH_TYPE | field::TCP_SRC..=field::SCTP_DST | field::ARP_OP => (2, 16, false, true),
        field::IPV6_SRC | field::IPV6_DST => (16, 128, true, true),
        field::IPV6_FLABEL => (4, 20, true, true),
        field::IPV6_ND_TARGET => (16, 128, false, true),
        field::IPV6_ND_SLL | field::IPV6_ND_TLL => (6, 48, false, true),
        field::MPLS_LABEL => (4, 20, false, true),
        field::MPLS_BOS => (1, 1, false, true),
        field::PBB_ISID => (3, 24, true, true),
        field::IPV6_EXTHDR => (2, 9, true, false),
        _ => return None,
    };
    Some(FieldKind {
        bytes,
        bits,
        maskable,
        settable,
    })
}

/// Returns the fields with a [`kind`].
pub fn known() -> impl Iterator<Item = (u8, FieldKind)> {
    (0..=field::IPV6_EXTHDR).filter_map(|number| Some((number, kind(number)?)))
}

/// Fields known to exist in a frame that has matched.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownFields {
    /// Type behind all tags.
    pub eth_type: Option<u16>,
    /// Whether it has a VLAN tag.
    pub tagged: bool,
    ip_proto: Option<u8>,
    icmpv6_type: Option<u128>,
    in_port: bool,
}

impl KnownFields {
    /// Returns whether a frame of which this is known has the field (table 12 of 1.3.4).
    #[must_use]
    pub fn has(&self, number: u8) -> bool {
        let is_ip = matches!(self.eth_type, Some(IPV4 | IPV6));
        let carries = |protocol: u8| is_ip && self.ip_proto == Some(protocol);
        match number {
            field::IN_PHY_PORT => self.in_port,
            field::VLAN_PCP => self.tagged,
            field::IP_DSCP | field::IP_ECN | field::IP_PROTO => is_ip,
            field::IPV4_SRC | field::IPV4_DST => self.eth_type == Some(IPV4),
            field::TCP_SRC | field::TCP_DST => carries(TCP),
            field::UDP_SRC | field::UDP_DST => carries(UDP),
            field::SCTP_SRC | field::SCTP_DST => carries(SCTP),
            field::ICMPV4_TYPE | field::ICMPV4_CODE => {
                self.eth_type == Some(IPV4) && carries(ICMPV4)
            }
            field::ARP_OP..=field::ARP_THA => self.eth_type == Some(ARP),
            field::IPV6_SRC | field::IPV6_DST | field::IPV6_FLABEL | field::IPV6_EXTHDR => {
                self.eth_type == Some(IPV6)
            }
            field::ICMPV6_TYPE | field::ICMPV6_CODE => {
                self.eth_type == Some(IPV6) && carries(ICMPV6)
            }
            field::IPV6_ND_TARGET => {
                matches!(self.icmpv6_type, Some(SOLICITATION | ADVERTISEMENT))
            }
            field::IPV6_ND_SLL => self.icmpv6_type == Some(SOLICITATION),
            field::IPV6_ND_TLL => self.icmpv6_type == Some(ADVERTISEMENT),
            field::MPLS_LABEL..=field::MPLS_BOS => {
                self.eth_type.is_some_and(|kind| MPLS.contains(&kind))
            }
            field::PBB_ISID => self.eth_type == Some(PBB),
            _ => true,
        }
    }

    /// Notes that a field has this value.
    pub fn learn(&mut self, number: u8, value: u128) {
        match number {
            field::IN_PORT => self.in_port = true,
            field::ETH_TYPE => self.now_of(value as u16),
            field::VLAN_VID => self.tagged = value & VLAN_PRESENT != 0,
            field::IP_PROTO => self.ip_proto = Some(value as u8),
            field::ICMPV6_TYPE => self.icmpv6_type = Some(value),
            _ => {}
        }
    }

    /// Sets the frame's type; nothing is known of its payload.
    pub fn now_of(&mut self, eth_type: u16) {
        self.eth_type = Some(eth_type);
        self.ip_proto = None;
        self.icmpv6_type = None;
    }
}

/// A field that a match asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its number.
    pub number: u8,
    /// Its value, in the low bits.
    pub value: u128,
    /// The bits that are compared.
    pub mask: u128,
}

/// A match: every field at most once, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct OxmMatch {
    /// Its fields.
    pub wanted: Vec<Wanted>,
}

impl OxmMatch {
    /// Reads the `ofp_match` at the beginning of `bytes`. Returns it, the bytes of its fields, and its length with
    /// padding.
    ///
    /// # Errors
    ///
    /// Type and code of the error that 1.3.4 asks for.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8], usize), ErrorCode> {
        let length = usize::from(be16(bytes, 2));
        let padded = length.next_multiple_of(8);
        if bytes.len() >= 4 && be16(bytes, 0) != 1 {
            return Err(error::BAD_MATCH_TYPE);
        }
        if length < 4 || padded > bytes.len() {
            return Err(error::BAD_MATCH_LENGTH);
        }
        let oxms = &bytes[4..length];
        Ok((Self::of(oxms)?, oxms, padded))
    }

    /// Reads the fields of a match.
    ///
    /// # Errors
    ///
    /// Type and code of the error that 1.3.4 asks for.
    pub fn of(oxms: &[u8]) -> Result<Self, ErrorCode> {
        let (list, whole) = split(oxms);
        if !whole {
            return Err(error::BAD_MATCH_LENGTH);
        }
        let mut found = Self::default();
        let mut known = KnownFields::default();
        for oxm in &list {
            let wanted = read_field(oxm)?;
            if found.get(wanted.number).is_some() {
                return Err(error::DUPLICATE_FIELD);
            }
            if !known.has(wanted.number) {
                return Err(error::BAD_PREREQUISITE);
            }
            known.learn(wanted.number, wanted.value);
            found.wanted.push(wanted);
        }
        Ok(found)
    }

    fn get(&self, number: u8) -> Option<&Wanted> {
        self.wanted.iter().find(|wanted| wanted.number == number)
    }

    /// Returns the fields known to exist in the frames that it matches.
    #[must_use]
    pub fn known(&self) -> KnownFields {
        let mut known = KnownFields::default();
        for wanted in &self.wanted {
            known.learn(wanted.number, wanted.value);
        }
        known
    }

    /// Returns whether everything that `other` matches is matched by this one too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.wanted.iter().all(|wide| {
            wide.mask == 0
                || other.get(wide.number).is_some_and(|narrow| {
                    wide.mask & !narrow.mask == 0 && narrow.value & wide.mask == wide.value
                })
        })
    }

    /// Returns whether both match the same frames.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        self.covers(other) && other.covers(self)
    }

    /// Returns whether a frame can be matched by both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.wanted.iter().all(|wanted| {
            other
                .get(wanted.number)
                .is_none_or(|held| (wanted.value ^ held.value) & wanted.mask & held.mask == 0)
        })
    }
}

fn read_field(oxm: &Oxm) -> Result<Wanted, ErrorCode> {
    let field = oxm.field().ok_or(error::BAD_FIELD)?;
    let kind = kind(field).ok_or(error::BAD_FIELD)?;
    let masked = oxm.is_masked();
    if masked && !kind.maskable {
        return Err(error::BAD_MASK);
    }
    if oxm.body.len() != kind.bytes << u8::from(masked) {
        return Err(error::BAD_MATCH_LENGTH);
    }
    let (value, mask) = oxm.body.split_at(kind.bytes);
    let value = number(value);
    let mask = if masked { number(mask) } else { kind.all() };
    if value & !kind.all() != 0 {
        return Err(error::BAD_VALUE);
    }
    if value & !mask != 0 {
        return Err(error::BAD_WILDCARDS);
    }
    // Without the bit that says that there is a tag only "no tag" means anything.
    if field == self::field::VLAN_VID && !masked && value != 0 && value & VLAN_PRESENT == 0 {
        return Err(error::BAD_VALUE);
    }
    Ok(Wanted {
        number: field,
        value,
        mask: mask & kind.all(),
    })
}
