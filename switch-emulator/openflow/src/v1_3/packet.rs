//! A frame on its way through the tables: where its fields lie, and how they change with the checksums that cover them.

use super::fields::{Wanted, VLAN_PRESENT, VLAN_TYPES};
use super::oxm::{field, number as read_number};
use crate::bytes::{be16, be32};
use crate::checksum::adjust as adjust_checksum;
use crate::ethernet::{
    ARP, FIRST_TYPE, ICMPV4, ICMPV6, IPV4, IPV6, MPLS, NO_TYPE, PBB, SCTP, SNAP, TCP, TYPE_AT, UDP,
    VLAN_TAG_BYTES,
};

const MPLS_ENTRY_BYTES: usize = 4;
/// Type, service instance, and the addresses of the frame that is carried.
const PBB_HEADER_BYTES: usize = 18;
const IPV6_BYTES: usize = 40;

/// Bits of `IPV6_EXTHDR`.
mod extension {
    pub(super) const NO_NEXT: u16 = 1;
    pub(super) const ESP: u16 = 1 << 1;
    pub(super) const AUTHENTICATION: u16 = 1 << 2;
    pub(super) const DESTINATION: u16 = 1 << 3;
    pub(super) const FRAGMENT: u16 = 1 << 4;
    pub(super) const ROUTING: u16 = 1 << 5;
    pub(super) const HOP_BY_HOP: u16 = 1 << 6;
    pub(super) const REPEATED: u16 = 1 << 7;
    pub(super) const OUT_OF_ORDER: u16 = 1 << 8;
}

/// Headers behind that of IPv6, in the order that RFC 8200, section 4.1, asks for.
const ORDER: [(u8, u16); 6] = [
    (0, extension::HOP_BY_HOP),
    (60, extension::DESTINATION),
    (43, extension::ROUTING),
    (44, extension::FRAGMENT),
    (51, extension::AUTHENTICATION),
    (50, extension::ESP),
];

/// Where the parts of a frame lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PacketLayout {
    tagged: bool,
    /// Type behind all tags.
    eth_type: u16,
    /// Where the packet of that type begins.
    payload: usize,
    ip_proto: Option<u8>,
    /// Where the protocol stands.
    ip_proto_at: usize,
    /// Where ports, or type and code, begin; not in later fragments.
    transport: Option<usize>,
    extensions: u16,
    /// Where the link-layer address of a neighbour message stands.
    link_address: Option<usize>,
}

/// Bits of a frame: in the number that the `bytes` bytes at `at` make, the `bits` bits from bit `shift` upwards.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    bytes: usize,
    shift: u32,
    bits: u32,
}

/// Returns the bytes at `at`.
const fn whole(at: usize, bytes: usize) -> Place {
    Place {
        at,
        bytes,
        shift: 0,
        bits: 8 * bytes as u32,
    }
}

const fn bits(at: usize, bytes: usize, shift: u32, bits: u32) -> Place {
    Place {
        at,
        bytes,
        shift,
        bits,
    }
}

/// A frame, and what goes with it from table to table.
#[derive(Clone, Debug)]
pub struct ParsedPacket {
    /// Its bytes, without FCS.
    pub frame: Vec<u8>,
    /// Number of the port that it came in on.
    pub in_port: u32,
    /// Metadata that the tables pass on.
    pub metadata: u64,
    layout: PacketLayout,
}

impl ParsedPacket {
    /// Returns whether the packet has a field with the wanted value under its mask.
    #[must_use]
    pub fn matches(&self, wanted: &Wanted) -> bool {
        self.get(wanted.number)
            .is_some_and(|value| value & wanted.mask == wanted.value)
    }

    /// Reads a frame that came in on `in_port`.
    #[must_use]
    pub fn new(frame: Vec<u8>, in_port: u32) -> Self {
        let layout = PacketLayout::of(&frame);
        Self {
            frame,
            in_port,
            metadata: 0,
            layout,
        }
    }

    /// Returns the value of a field, if the frame has it.
    #[must_use]
    pub fn get(&self, number: u8) -> Option<u128> {
        match number {
            field::IN_PORT | field::IN_PHY_PORT => Some(self.in_port.into()),
            field::METADATA => Some(self.metadata.into()),
            field::ETH_TYPE => Some(self.layout.eth_type.into()),
            field::VLAN_VID if !self.layout.tagged => Some(0),
            field::VLAN_VID => Some(self.read(self.place(number)?)? | VLAN_PRESENT),
            field::IPV6_EXTHDR if self.layout.eth_type == IPV6 => {
                Some(self.layout.extensions.into())
            }
            _ => self.read(self.place(number)?),
        }
    }

    fn read(&self, place: Place) -> Option<u128> {
        let bytes = self.frame.get(place.at..place.at + place.bytes)?;
        Some(read_number(bytes) >> place.shift & u128::MAX >> (128 - place.bits))
    }

    /// Returns where a field lies, if the frame has it.
    fn place(&self, number: u8) -> Option<Place> {
        let PacketLayout {
            tagged,
            eth_type,
            payload,
            ip_proto,
            ip_proto_at,
            transport,
            link_address,
            ..
        } = self.layout;
        let carries = |protocols: &[u8], at: usize, bytes: usize| {
            ip_proto
                .filter(|protocol| protocols.contains(protocol))
                .and(transport)
                .map(|transport| whole(transport + at, bytes))
        };
        let when = |holds: bool, place: Place| holds.then_some(place);
        let neighbour = |types: &[u8]| {
            let kind = carries(&[ICMPV6], 0, 1)?;
            types.contains(self.frame.get(kind.at)?).then_some(kind.at)
        };
        match number {
            field::ETH_DST => Some(whole(0, 6)),
            field::ETH_SRC => Some(whole(6, 6)),
            field::ETH_TYPE => Some(whole(payload - 2, 2)),
            field::VLAN_VID => when(tagged, bits(TYPE_AT + 2, 2, 0, 12)),
            field::VLAN_PCP => when(tagged, bits(TYPE_AT + 2, 2, 13, 3)),
            field::IP_DSCP if eth_type == IPV6 => Some(bits(payload, 2, 6, 6)),
            field::IP_ECN if eth_type == IPV6 => Some(bits(payload, 2, 4, 2)),
            field::IP_DSCP => when(eth_type == IPV4, bits(payload + 1, 1, 2, 6)),
            field::IP_ECN => when(eth_type == IPV4, bits(payload + 1, 1, 0, 2)),
            field::IP_PROTO => when(ip_proto.is_some(), whole(ip_proto_at, 1)),
            field::IPV4_SRC => when(eth_type == IPV4, whole(payload + 12, 4)),
            field::IPV4_DST => when(eth_type == IPV4, whole(payload + 16, 4)),
            field::TCP_SRC => carries(&[TCP], 0, 2),
            field::TCP_DST => carries(&[TCP], 2, 2),
            field::UDP_SRC => carries(&[UDP], 0, 2),
            field::UDP_DST => carries(&[UDP], 2, 2),
            field::SCTP_SRC => carries(&[SCTP], 0, 2),
            field::SCTP_DST => carries(&[SCTP], 2, 2),
            field::ICMPV4_TYPE if eth_type == IPV4 => carries(&[ICMPV4], 0, 1),
            field::ICMPV4_CODE if eth_type == IPV4 => carries(&[ICMPV4], 1, 1),
            field::ICMPV6_TYPE if eth_type == IPV6 => carries(&[ICMPV6], 0, 1),
            field::ICMPV6_CODE if eth_type == IPV6 => carries(&[ICMPV6], 1, 1),
            field::ARP_OP => when(eth_type == ARP, whole(payload + 6, 2)),
            field::ARP_SHA => when(eth_type == ARP, whole(payload + 8, 6)),
            field::ARP_SPA => when(eth_type == ARP, whole(payload + 14, 4)),
            field::ARP_THA => when(eth_type == ARP, whole(payload + 18, 6)),
            field::ARP_TPA => when(eth_type == ARP, whole(payload + 24, 4)),
            field::IPV6_SRC => when(eth_type == IPV6, whole(payload + 8, 16)),
            field::IPV6_DST => when(eth_type == IPV6, whole(payload + 24, 16)),
            field::IPV6_FLABEL => when(eth_type == IPV6, bits(payload, 4, 0, 20)),
            field::IPV6_ND_TARGET => Some(whole(neighbour(&[135, 136])? + 8, 16)),
            field::IPV6_ND_SLL => neighbour(&[135]).and(link_address).map(|at| whole(at, 6)),
            field::IPV6_ND_TLL => neighbour(&[136]).and(link_address).map(|at| whole(at, 6)),
            field::MPLS_LABEL => when(self.is_mpls(), bits(payload, 4, 12, 20)),
            field::MPLS_TC => when(self.is_mpls(), bits(payload, 4, 9, 3)),
            field::MPLS_BOS => when(self.is_mpls(), bits(payload, 4, 8, 1)),
            field::PBB_ISID => when(eth_type == PBB, bits(payload, 4, 0, 24)),
            _ => None,
        }
    }

    fn is_mpls(&self) -> bool {
        MPLS.contains(&self.layout.eth_type)
    }

    /// Sets a field; a frame without it stays as it is.
    pub fn set(&mut self, number: u8, value: u128) {
        let Some(place) = self.place(number) else {
            return;
        };
        let Some(old) = self.frame.get(place.at..place.at + place.bytes) else {
            return;
        };
        let kept = u128::MAX >> (128 - place.bits) << place.shift;
        let word = read_number(old) & !kept | value << place.shift & kept;
        let bytes = word.to_be_bytes();
        let before = self.get(number).unwrap_or(0);
        self.write(place.at, &bytes[16 - place.bytes..], covered(number));
        if number == field::IP_PROTO {
            // The checksum of what is carried covers the protocol, too, in a pair of bytes of its own.
            let pair = |protocol: u128| [0, protocol as u8];
            self.settle_transport(&pair(before), &pair(value), true);
        }
        if matches!(
            number,
            field::ETH_TYPE | field::IP_PROTO | field::ICMPV6_TYPE
        ) {
            self.layout = PacketLayout::of(&self.frame);
        }
    }

    /// Writes bytes and brings the checksums that cover them up to date.
    fn write(&mut self, at: usize, bytes: &[u8], covered: Covered) {
        // Checksums are sums of pairs of bytes, counted from the header's beginning, which is a pair's too.
        let begin = at - (at.wrapping_sub(self.layout.payload) & 1);
        let end = (at + bytes.len() + ((at + bytes.len() - begin) & 1)).min(self.frame.len());
        let Some(old) = self.frame.get(begin..end).map(<[u8]>::to_vec) else {
            return;
        };
        let Some(target) = self.frame.get_mut(at..at + bytes.len()) else {
            return;
        };
        target.copy_from_slice(bytes);
        let new = self.frame[begin..end].to_vec();
        if covered.by_header && self.layout.eth_type == IPV4 {
            adjust_checksum(&mut self.frame, self.layout.payload + 10, &old, &new);
        }
        if covered.by_transport {
            self.settle_transport(&old, &new, covered.by_header);
        }
    }

    /// Brings the checksum of what the packet carries up to date for bytes that it covers, of its own header or
    /// (`pseudo`) of that of the packet.
    fn settle_transport(&mut self, old: &[u8], new: &[u8], pseudo: bool) {
        let (Some(transport), Some(protocol)) = (self.layout.transport, self.layout.ip_proto)
        else {
            return;
        };
        let at = match protocol {
            TCP => transport + 16,
            // 0: the sender computed none.
            UDP if be16(&self.frame, transport + 6) != 0 => transport + 6,
            // ICMP of IPv4 and SCTP cover nothing of the packet's header.
            ICMPV4 if !pseudo => transport + 2,
            ICMPV6 => transport + 2,
            SCTP if !pseudo => return self.settle_sctp(transport),
            _ => return,
        };
        adjust_checksum(&mut self.frame, at, old, new);
        if protocol == UDP && be16(&self.frame, at) == 0 {
            self.frame[at..at + 2].fill(0xff);
        }
    }

    /// SCTP has a CRC in the place of a sum (RFC 9260, appendix A).
    fn settle_sctp(&mut self, transport: usize) {
        let payload = self.layout.payload;
        let end = if self.layout.eth_type == IPV4 {
            payload + usize::from(be16(&self.frame, payload + 2))
        } else {
            payload + IPV6_BYTES + usize::from(be16(&self.frame, payload + 4))
        };
        let end = end.min(self.frame.len());
        if transport + 12 > end {
            return;
        }
        self.frame[transport + 8..transport + 12].fill(0);
        let checksum = crc32c(&self.frame[transport..end]);
        self.frame[transport + 8..transport + 12].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Inserts bytes behind the addresses.
    fn insert(&mut self, at: usize, bytes: &[u8]) {
        if self.frame.len() >= at {
            self.frame.splice(at..at, bytes.iter().copied());
            self.layout = PacketLayout::of(&self.frame);
        }
    }

    fn cut(&mut self, at: usize, count: usize) {
        if self.frame.len() >= at + count {
            self.frame.drain(at..at + count);
            self.layout = PacketLayout::of(&self.frame);
        }
    }

    /// Puts a tag of this type in front of all others, with the control field of the next one.
    pub fn push_vlan(&mut self, eth_type: u16) {
        let control = if self.layout.tagged {
            be16(&self.frame, TYPE_AT + 2)
        } else {
            0
        };
        let tag = [eth_type.to_be_bytes(), control.to_be_bytes()].concat();
        self.insert(TYPE_AT, &tag);
    }

    /// Removes the outermost tag.
    pub fn pop_vlan(&mut self) {
        if self.layout.tagged {
            self.cut(TYPE_AT, VLAN_TAG_BYTES);
        }
    }

    /// The new label entry comes in front of all tags (section 5.12.1) and takes label, class and time to live of the next
    /// one, or the time to live of the packet.
    pub fn push_mpls(&mut self, eth_type: u16) {
        let entry = if self.is_mpls() {
            be32(&self.frame, self.layout.payload) & !0x100
        } else {
            0x100 | u32::from(self.ttl().unwrap_or(0))
        };
        let [high, low] = eth_type.to_be_bytes();
        if self.frame.len() >= TYPE_AT + 2 {
            self.frame[TYPE_AT..TYPE_AT + 2].copy_from_slice(&[high, low]);
            self.insert(TYPE_AT + 2, &entry.to_be_bytes());
        }
    }

    /// Removes the outermost label entry; what it carries is of this type.
    pub fn pop_mpls(&mut self, eth_type: u16) {
        if self.is_mpls() {
            let at = self.layout.payload;
            self.frame[at - 2..at].copy_from_slice(&eth_type.to_be_bytes());
            self.cut(at, MPLS_ENTRY_BYTES);
        }
    }

    /// Wraps the frame in one of a provider backbone (1.3.4, section 5.12.1).
    pub fn push_pbb(&mut self, eth_type: u16) {
        if self.frame.len() < TYPE_AT + 2 {
            return;
        }
        let instance = if self.layout.eth_type == PBB {
            be32(&self.frame, self.layout.payload)
        } else {
            self.get(field::VLAN_PCP).unwrap_or(0) as u32 & 7
        };
        let instance = if self.layout.eth_type == PBB {
            instance
        } else {
            instance << 29
        };
        let addresses: Vec<u8> = self.frame[..TYPE_AT].to_vec();
        let header = [
            &eth_type.to_be_bytes()[..],
            &instance.to_be_bytes(),
            &addresses,
        ];
        self.insert(TYPE_AT, &header.concat());
    }

    /// Takes the frame out of one of a provider backbone.
    pub fn pop_pbb(&mut self) {
        if self.layout.eth_type != PBB || self.layout.tagged {
            return;
        }
        if self.frame.len() >= TYPE_AT + PBB_HEADER_BYTES {
            let inner: Vec<u8> = self.frame[TYPE_AT + 6..TYPE_AT + PBB_HEADER_BYTES].to_vec();
            self.frame[..TYPE_AT].copy_from_slice(&inner);
            self.cut(TYPE_AT, PBB_HEADER_BYTES);
        }
    }

    /// Returns where the time to live of what begins at `at` stands, of a packet of this type.
    fn ttl_at(&self, eth_type: u16, at: usize) -> Option<usize> {
        let at = match eth_type {
            IPV4 => at + 8,
            IPV6 => at + 7,
            kind if MPLS.contains(&kind) => at + 3,
            _ => return None,
        };
        (at < self.frame.len()).then_some(at)
    }

    /// Returns the outermost time to live.
    fn ttl(&self) -> Option<u8> {
        let at = self.ttl_at(self.layout.eth_type, self.layout.payload)?;
        Some(self.frame[at])
    }

    fn set_ttl(&mut self, ttl: u8) {
        if let Some(at) = self.ttl_at(self.layout.eth_type, self.layout.payload) {
            self.write(
                at,
                &[ttl],
                Covered {
                    by_header: true,
                    by_transport: false,
                },
            );
        }
    }

    /// Sets the time to live of the label entry (`mpls`), or of the IP packet.
    pub fn set_own_ttl(&mut self, ttl: u8, mpls: bool) {
        if self.is_mpls() == mpls {
            self.set_ttl(ttl);
        }
    }

    /// Lowers that time to live. Returns whether the frame may go on.
    pub fn lower_ttl(&mut self, mpls: bool) -> bool {
        let Some(ttl) = self.ttl().filter(|_| self.is_mpls() == mpls) else {
            return true;
        };
        if ttl <= 1 {
            return false;
        }
        self.set_ttl(ttl - 1);
        true
    }

    /// Returns type and offset of the payload behind the outermost label entry.
    fn behind_label(&self) -> Option<(u16, usize)> {
        if !self.is_mpls() {
            return None;
        }
        let at = self.layout.payload + MPLS_ENTRY_BYTES;
        if self.get(field::MPLS_BOS) == Some(0) {
            return Some((MPLS[0], at));
        }
        match self.frame.get(at)? >> 4 {
            4 => Some((IPV4, at)),
            6 => Some((IPV6, at)),
            _ => None,
        }
    }

    /// Copies the time to live of what a label entry carries into it.
    pub fn copy_ttl_out(&mut self) {
        let inner = self
            .behind_label()
            .and_then(|(kind, at)| self.ttl_at(kind, at));
        if let Some(inner) = inner {
            self.set_ttl(self.frame[inner]);
        }
    }

    /// Copies the time to live of a label entry into what it carries.
    pub fn copy_ttl_in(&mut self) {
        let (Some(ttl), Some((kind, at))) = (self.ttl(), self.behind_label()) else {
            return;
        };
        let Some(inner) = self.ttl_at(kind, at) else {
            return;
        };
        let pair = inner - (inner - at) % 2;
        let old: Vec<u8> = self.frame[pair..(pair + 2).min(self.frame.len())].to_vec();
        self.frame[inner] = ttl;
        if kind == IPV4 {
            let new: Vec<u8> = self.frame[pair..pair + old.len()].to_vec();
            adjust_checksum(&mut self.frame, at + 10, &old, &new);
        }
    }
}

/// Which checksums cover a field.
#[derive(Clone, Copy, Debug)]
struct Covered {
    by_header: bool,
    by_transport: bool,
}

const fn covered(number: u8) -> Covered {
    let (by_header, by_transport) = match number {
        field::IP_DSCP | field::IP_ECN | field::IP_PROTO => (true, false),
        field::IPV4_SRC | field::IPV4_DST | field::IPV6_SRC | field::IPV6_DST => (true, true),
        field::TCP_SRC..=field::ICMPV4_CODE
        | field::ICMPV6_TYPE
        | field::ICMPV6_CODE
        | field::IPV6_ND_TARGET..=field::IPV6_ND_TLL => (false, true),
        _ => (false, false),
    };
    Covered {
        by_header,
        by_transport,
    }
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

impl PacketLayout {
    fn of(frame: &[u8]) -> Self {
        let mut at = TYPE_AT;
        let tagged = VLAN_TYPES.contains(&be16(frame, at));
        while VLAN_TYPES.contains(&be16(frame, at)) {
            at += VLAN_TAG_BYTES;
        }
        let mut layout = Self {
            tagged,
            eth_type: be16(frame, at),
            payload: at + 2,
            ..Self::default()
        };
        if layout.eth_type < FIRST_TYPE {
            if frame.get(at + 2..at + 8) == Some(&SNAP[..]) {
                layout.eth_type = be16(frame, at + 8);
                layout.payload = at + 10;
            } else {
                layout.eth_type = NO_TYPE;
            }
        }
        match layout.eth_type {
            IPV4 => layout.read_ipv4(frame),
            IPV6 => layout.read_ipv6(frame),
            _ => {}
        }
        layout
    }

    fn read_ipv4(&mut self, frame: &[u8]) {
        let ip = self.payload;
        if frame.len() < ip + 20 {
            return;
        }
        self.ip_proto = Some(frame[ip + 9]);
        self.ip_proto_at = ip + 9;
        let later_fragment = be16(frame, ip + 6) & 0x1fff != 0;
        self.transport = (!later_fragment).then(|| ip + usize::from(frame[ip] & 0x0f) * 4);
    }

    fn read_ipv6(&mut self, frame: &[u8]) {
        let ip = self.payload;
        if frame.len() < ip + IPV6_BYTES {
            return;
        }
        let (mut next_at, mut at) = (ip + 6, ip + IPV6_BYTES);
        let mut latest = 0;
        let mut later_fragment = false;
        loop {
            let next = frame[next_at];
            let Some(rank) = ORDER.iter().position(|(kind, _)| *kind == next) else {
                if next == 59 {
                    self.extensions |= extension::NO_NEXT;
                }
                self.ip_proto = Some(next);
                self.ip_proto_at = next_at;
                break;
            };
            let bit = ORDER[rank].1;
            // Destination options may come again behind all others.
            let again = self.extensions & bit != 0;
            if again && bit != extension::DESTINATION {
                self.extensions |= extension::REPEATED;
            }
            if rank < latest && bit != extension::DESTINATION {
                self.extensions |= extension::OUT_OF_ORDER;
            }
            latest = latest.max(rank);
            self.extensions |= bit;
            let length = match next {
                44 => {
                    later_fragment |= be16(frame, at + 2) & 0xfff8 != 0;
                    8
                }
                51 => (usize::from(frame.get(at + 1).copied().unwrap_or(0)) + 2) * 4,
                _ => (usize::from(frame.get(at + 1).copied().unwrap_or(0)) + 1) * 8,
            };
            if next == 50 || at + length > frame.len() {
                self.ip_proto = Some(next);
                self.ip_proto_at = next_at;
                return; // what is behind cannot be read
            }
            next_at = at;
            at += length;
        }
        if later_fragment {
            return;
        }
        self.transport = Some(at);
        if self.ip_proto == Some(ICMPV6) {
            self.link_address = match frame.get(at) {
                Some(135) => option(frame, at + 24, 1),
                Some(136) => option(frame, at + 24, 2),
                _ => None,
            };
        }
    }
}

/// Returns where the content of a neighbour message's option of this type stands.
fn option(frame: &[u8], mut at: usize, wanted: u8) -> Option<usize> {
    loop {
        let (kind, length) = (*frame.get(at)?, usize::from(*frame.get(at + 1)?) * 8);
        if kind == wanted && length == 8 {
            return Some(at + 2);
        }
        if length == 0 {
            return None;
        }
        at += length;
    }
}
