//! Fields of matches (OpenFlow 1.3.4, section 7.2.3): lengths, masks, what each takes for granted, and matches as values.

use super::super::matching::{field, fields as split, Oxm};
use super::{error, SpecRefusal};
use crate::bytes::be16;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const PBB: u16 = 0x88e7;
pub(super) const MPLS: [u16; 2] = [0x8847, 0x8848];
pub(super) const VLAN: [u16; 2] = [0x8100, 0x88a8];

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;
pub(super) const ICMPV4: u8 = 1;
pub(super) const ICMPV6: u8 = 58;

/// Bit of `VLAN_VID` that says that there is a tag.
pub(super) const VLAN_PRESENT: u128 = 0x1000;
/// Neighbour solicitation and advertisement (types of `ICMPv6`).
const SOLICITATION: u128 = 135;
const ADVERTISEMENT: u128 = 136;

/// Kind of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldKind {
    /// Bytes of its value in an OXM.
    pub(super) bytes: usize,
    /// Bits of these that count.
    pub(super) bits: u32,
    /// Whether it may be masked.
    pub(super) maskable: bool,
    /// Whether `SET_FIELD` may change it.
    pub(super) settable: bool,
}

impl FieldKind {
    /// Returns all bits of the field.
    pub(super) const fn all(self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }
}

/// Returns the kind of the field with this number; the board has no tunnel fields.
pub(super) const fn kind(number: u8) -> Option<FieldKind> {
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

/// Fields that this switch knows.
pub(super) fn known() -> impl Iterator<Item = (u8, FieldKind)> {
    (0..=field::IPV6_EXTHDR).filter_map(|number| Some((number, kind(number)?)))
}

/// Fields known to exist in a frame that has matched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownFields {
    pub(super) eth_type: Option<u16>,
    pub(super) tagged: bool,
    ip_proto: Option<u8>,
    icmpv6_type: Option<u128>,
    in_port: bool,
}

impl KnownFields {
    /// Returns whether a frame of which this is known has the field (table 12 of 1.3.4).
    pub(super) fn has(&self, number: u8) -> bool {
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

    /// A field has this value.
    pub(super) fn learn(&mut self, number: u8, value: u128) {
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
    pub(super) fn now_of(&mut self, eth_type: u16) {
        self.eth_type = Some(eth_type);
        self.ip_proto = None;
        self.icmpv6_type = None;
    }
}

/// A field that a match asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) number: u8,
    pub(super) value: u128,
    pub(super) mask: u128,
}

/// A match: every field at most once, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct OxmMatch {
    pub(super) wanted: Vec<Wanted>,
}

impl OxmMatch {
    /// Reads the `ofp_match` at the beginning of `bytes`. Returns it, the bytes of its fields, and its length with
    /// padding.
    pub(in super::super) fn read(bytes: &[u8]) -> Result<(Self, &[u8], usize), SpecRefusal> {
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
    pub(in super::super) fn of(oxms: &[u8]) -> Result<Self, SpecRefusal> {
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
    pub(super) fn known(&self) -> KnownFields {
        let mut known = KnownFields::default();
        for wanted in &self.wanted {
            known.learn(wanted.number, wanted.value);
        }
        known
    }

    /// Returns whether everything that `other` matches is matched by this one too.
    pub(in super::super) fn covers(&self, other: &Self) -> bool {
        self.wanted.iter().all(|wide| {
            wide.mask == 0
                || other.get(wide.number).is_some_and(|narrow| {
                    wide.mask & !narrow.mask == 0 && narrow.value & wide.mask == wide.value
                })
        })
    }

    /// Returns whether both match the same frames.
    pub(in super::super) fn equals(&self, other: &Self) -> bool {
        self.covers(other) && other.covers(self)
    }

    /// Returns whether a frame can be matched by both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.wanted.iter().all(|wanted| {
            other
                .get(wanted.number)
                .is_none_or(|held| (wanted.value ^ held.value) & wanted.mask & held.mask == 0)
        })
    }
}

/// Returns the number in a value of an OXM.
pub(super) fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

fn read_field(oxm: &Oxm) -> Result<Wanted, SpecRefusal> {
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
