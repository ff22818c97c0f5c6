//! Matches of OpenFlow 1.3 (OXM) as the firmware tests them: in the order in which they were sent, up to the first that
//! fails (quirks 140 to 148).

use super::header::{is_mpls, Header};
use openflow::bytes::{be16, be32};
use openflow::ethernet::IPV4;
use openflow::v1_3::{field, split, Oxm};

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
    let (fields, whole) = split(match_bytes);
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
