//! Matches of OpenFlow 1.3 (OXM) as the firmware tests them: in the order in which they were sent, up to the first that
//! fails (quirks 140 to 148).

use super::header::{is_mpls, Header, IPV4};
use crate::bytes::{be16, be32};

/// Length of the header of an OXM.
pub(super) const OXM_HEADER_BYTES: usize = 4;
/// Class of the fields that OpenFlow itself defines.
const OPENFLOW_BASIC: u16 = 0x8000;

/// Numbers of fields.
pub(super) mod field {
    pub(in super::super) const IN_PORT: u8 = 0;
    pub(in super::super) const IN_PHY_PORT: u8 = 1;
    pub(in super::super) const METADATA: u8 = 2;
    pub(in super::super) const ETH_DST: u8 = 3;
    pub(in super::super) const ETH_SRC: u8 = 4;
    pub(in super::super) const ETH_TYPE: u8 = 5;
    pub(in super::super) const VLAN_VID: u8 = 6;
    pub(in super::super) const VLAN_PCP: u8 = 7;
    pub(in super::super) const IP_DSCP: u8 = 8;
    pub(in super::super) const IP_ECN: u8 = 9;
    pub(in super::super) const IP_PROTO: u8 = 10;
    pub(in super::super) const IPV4_SRC: u8 = 11;
    pub(in super::super) const IPV4_DST: u8 = 12;
    pub(in super::super) const TCP_SRC: u8 = 13;
    pub(in super::super) const TCP_DST: u8 = 14;
    pub(in super::super) const UDP_SRC: u8 = 15;
    pub(in super::super) const UDP_DST: u8 = 16;
    pub(in super::super) const SCTP_SRC: u8 = 17;
    pub(in super::super) const SCTP_DST: u8 = 18;
    pub(in super::super) const ICMPV4_TYPE: u8 = 19;
    pub(in super::super) const ICMPV4_CODE: u8 = 20;
    pub(in super::super) const ARP_OP: u8 = 21;
    pub(in super::super) const ARP_SPA: u8 = 22;
    pub(in super::super) const ARP_TPA: u8 = 23;
    pub(in super::super) const ARP_SHA: u8 = 24;
    pub(in super::super) const ARP_THA: u8 = 25;
    pub(in super::super) const IPV6_SRC: u8 = 26;
    pub(in super::super) const IPV6_DST: u8 = 27;
    pub(in super::super) const IPV6_FLABEL: u8 = 28;
    pub(in super::super) const ICMPV6_TYPE: u8 = 29;
    pub(in super::super) const ICMPV6_CODE: u8 = 30;
    pub(in super::super) const IPV6_ND_TARGET: u8 = 31;
    pub(in super::super) const IPV6_ND_SLL: u8 = 32;
    pub(in super::super) const IPV6_ND_TLL: u8 = 33;
    pub(in super::super) const MPLS_LABEL: u8 = 34;
    pub(in super::super) const MPLS_TC: u8 = 35;
    pub(in super::super) const MPLS_BOS: u8 = 36;
    pub(in super::super) const PBB_ISID: u8 = 37;
    pub(in super::super) const IPV6_EXTHDR: u8 = 39;
}

/// One field of a match, as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Oxm<'a> {
    pub(super) header: [u8; OXM_HEADER_BYTES],
    /// Value, and behind it the mask if there is one.
    pub(super) body: &'a [u8],
}

impl Oxm<'_> {
    /// Returns whether a match has this field, under the same mask but with another value.
    pub(super) fn differs_among(&self, mut oxms: &[u8]) -> bool {
        while let Some((header, rest)) = oxms.split_first_chunk::<OXM_HEADER_BYTES>() {
            let (body, behind) = rest.split_at(usize::from(header[3]).min(rest.len()));
            if *header == self.header {
                let value_bytes = body.len() >> u8::from(self.is_masked());
                return body[..value_bytes] != self.body[..value_bytes]
                    && body[value_bytes..] == self.body[value_bytes..];
            }
            oxms = behind;
        }
        false
    }

    const fn class(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    pub(super) const fn is_masked(&self) -> bool {
        self.header[2] & 1 != 0
    }

    /// Returns its number, if it is one that OpenFlow itself defines.
    pub(super) const fn field(&self) -> Option<u8> {
        if self.class() == OPENFLOW_BASIC {
            Some(self.header[2] >> 1)
        } else {
            None
        }
    }
}

/// The fields of a match, and whether it ended where its last field ends.
pub(super) fn fields(match_bytes: &[u8]) -> (Vec<Oxm<'_>>, bool) {
    let mut rest = match_bytes;
    let mut fields = Vec::new();
    while let Some((header, behind)) = rest.split_first_chunk::<OXM_HEADER_BYTES>() {
        let Some((body, next)) = behind.split_at_checked(usize::from(header[3])) else {
            return (fields, false);
        };
        fields.push(Oxm {
            header: *header,
            body,
        });
        rest = next;
    }
    (fields, rest.is_empty())
}

/// Test of one match field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    InPort(u32),
    EthDst([u8; 6]),
    EthDstMasked([u8; 6], [u8; 6]),
    EthSrc([u8; 6]),
    EthSrcMasked([u8; 6], [u8; 6]),
    EthType(u16),
    VlanVid(u16),
    VlanVidMasked(u16, u16),
    VlanPcp(u8),
    IpDscp(u8),
    IpEcn(u8),
    IpProto(u8),
    Source(u32),
    SourceMasked(u32, u32),
    Destination(u32),
    DestinationMasked(u32, u32),
    TcpSource(u16),
    TcpDestination(u16),
    UdpSource(u16),
    UdpDestination(u16),
    MplsLabel(u32),
    MplsTc(u8),
    MplsBos(u8),
    /// A field, mask or length that the firmware does not know: the entry never matches (quirks 140, 141).
    Never,
}

/// Returns the tests of a match.
pub(super) fn compile(match_bytes: &[u8]) -> Vec<Test> {
    let (fields, whole) = fields(match_bytes);
    let mut tests: Vec<Test> = fields.iter().map(Test::read).collect();
    if !whole {
        tests.push(Test::Never);
    }
    tests
}

impl Test {
    fn read(oxm: &Oxm) -> Self {
        let Some(field) = oxm.field() else {
            return Self::Never;
        };
        let body = oxm.body;
        let mac = |at: usize| core::array::from_fn(|i| body[at + i]);
        let word = |at: usize| be32(body, at);
        let half = |at: usize| be16(body, at);
        match (field, oxm.is_masked(), body.len()) {
            (field::IN_PORT, false, 4) => Self::InPort(word(0)),
            (field::ETH_DST, false, 6) => Self::EthDst(mac(0)),
            (field::ETH_DST, true, 12) => Self::EthDstMasked(mac(0), mac(6)),
            (field::ETH_SRC, false, 6) => Self::EthSrc(mac(0)),
            (field::ETH_SRC, true, 12) => Self::EthSrcMasked(mac(0), mac(6)),
            (field::ETH_TYPE, false, 2) => Self::EthType(half(0)),
            (field::VLAN_VID, false, 2) => Self::VlanVid(half(0)),
            (field::VLAN_VID, true, 4) => Self::VlanVidMasked(half(0), half(2)),
            (field::VLAN_PCP, false, 1) => Self::VlanPcp(body[0]),
            (field::IP_DSCP, false, 1) => Self::IpDscp(body[0]),
            (field::IP_ECN, false, 1) => Self::IpEcn(body[0]),
            (field::IP_PROTO, false, 1) => Self::IpProto(body[0]),
            (field::IPV4_SRC, false, 4) => Self::Source(word(0)),
            (field::IPV4_SRC, true, 8) => Self::SourceMasked(word(0), word(4)),
            (field::IPV4_DST, false, 4) => Self::Destination(word(0)),
            (field::IPV4_DST, true, 8) => Self::DestinationMasked(word(0), word(4)),
            (field::TCP_SRC, false, 2) => Self::TcpSource(half(0)),
            (field::TCP_DST, false, 2) => Self::TcpDestination(half(0)),
            (field::UDP_SRC, false, 2) => Self::UdpSource(half(0)),
            (field::UDP_DST, false, 2) => Self::UdpDestination(half(0)),
            (field::MPLS_LABEL, false, 4) => Self::MplsLabel(word(0)),
            (field::MPLS_TC, false, 1) => Self::MplsTc(body[0]),
            (field::MPLS_BOS, false, 1) => Self::MplsBos(body[0]),
            _ => Self::Never,
        }
    }

    /// Returns whether it holds of a frame.
    pub(super) fn holds(&self, header: &Header, frame: &[u8]) -> bool {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        let address_is = |at: usize, address: &[u8; 6]| frame.get(at..at + 6) == Some(&address[..]);
        let tag = || {
            if header.tagged {
                0x1000 | header.vid
            } else {
                0
            }
        };
        let is_ip = header.eth_type == IPV4;
        match self {
            Self::InPort(port) => header.in_port == *port,
            Self::EthDst(address) => address_is(0, address),
            Self::EthSrc(address) => address_is(6, address),
            Self::EthDstMasked(value, mask) => masked_address_holds(frame, 0, *value, *mask),
            Self::EthSrcMasked(value, mask) => masked_address_holds(frame, 6, *value, *mask),
            Self::EthType(value) => header.eth_type == *value || (header.mpls && is_mpls(*value)),
            Self::VlanVid(value) => tag() == *value,
            Self::VlanVidMasked(value, mask) => tag() & mask == *value,
            Self::VlanPcp(value) => header.tagged && byte(14) >> 5 == *value,
            Self::IpDscp(value) => is_ip && byte(header.payload + 1) >> 2 == *value,
            Self::IpEcn(value) => is_ip && byte(header.payload + 1) & 3 == *value,
            Self::IpProto(value) => header.ip_proto == *value,
            Self::Source(value) => header.source == *value,
            Self::SourceMasked(value, mask) => header.source & mask == *value,
            Self::Destination(value) => header.destination == *value,
            Self::DestinationMasked(value, mask) => header.destination & mask == *value,
            Self::TcpSource(value) => header.ip_proto == 6 && header.source_port == *value,
            Self::TcpDestination(value) => {
                header.ip_proto == 6 && header.destination_port == *value
            }
            Self::UdpSource(value) => header.ip_proto == 17 && header.source_port == *value,
            Self::UdpDestination(value) => {
                header.ip_proto == 17 && header.destination_port == *value
            }
            Self::MplsLabel(value) => !header.mpls || header.mpls_label == *value,
            Self::MplsTc(value) => !header.mpls || header.mpls_tc == *value,
            Self::MplsBos(value) => !header.mpls || header.mpls_bos == *value,
            Self::Never => false,
        }
    }
}

/// A byte whose mask is even always holds, one whose mask is odd is compared whole (quirk 142).
fn masked_address_holds(frame: &[u8], at: usize, value: [u8; 6], mask: [u8; 6]) -> bool {
    (0..6).all(|i| {
        let byte = frame.get(at + i).copied().unwrap_or(0);
        mask[i] & 1 == 0 || byte == value[i] & mask[i]
    })
}
