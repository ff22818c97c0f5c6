//! Fields of a match (OXM; 1.3.4, section 7.2.3).

/// Length of the header of an OXM.
pub const OXM_HEADER_BYTES: usize = 4;
/// Class of the fields that OpenFlow itself defines.
const OPENFLOW_BASIC: u16 = 0x8000;

/// Numbers of fields.
#[allow(missing_docs)] // the standard's names
pub mod field {
    pub const IN_PORT: u8 = 0;
    pub const IN_PHY_PORT: u8 = 1;
    pub const METADATA: u8 = 2;
    pub const ETH_DST: u8 = 3;
    pub const ETH_SRC: u8 = 4;
    pub const ETH_TYPE: u8 = 5;
    pub const VLAN_VID: u8 = 6;
    pub const VLAN_PCP: u8 = 7;
    pub const IP_DSCP: u8 = 8;
    pub const IP_ECN: u8 = 9;
    pub const IP_PROTO: u8 = 10;
    pub const IPV4_SRC: u8 = 11;
    pub const IPV4_DST: u8 = 12;
    pub const TCP_SRC: u8 = 13;
    pub const TCP_DST: u8 = 14;
    pub const UDP_SRC: u8 = 15;
    pub const UDP_DST: u8 = 16;
    pub const SCTP_SRC: u8 = 17;
    pub const SCTP_DST: u8 = 18;
    pub const ICMPV4_TYPE: u8 = 19;
    pub const ICMPV4_CODE: u8 = 20;
    pub const ARP_OP: u8 = 21;
    pub const ARP_SPA: u8 = 22;
    pub const ARP_TPA: u8 = 23;
    pub const ARP_SHA: u8 = 24;
    pub const ARP_THA: u8 = 25;
    pub const IPV6_SRC: u8 = 26;
    pub const IPV6_DST: u8 = 27;
    pub const IPV6_FLABEL: u8 = 28;
    pub const ICMPV6_TYPE: u8 = 29;
    pub const ICMPV6_CODE: u8 = 30;
    pub const IPV6_ND_TARGET: u8 = 31;
    pub const IPV6_ND_SLL: u8 = 32;
    pub const IPV6_ND_TLL: u8 = 33;
    pub const MPLS_LABEL: u8 = 34;
    pub const MPLS_TC: u8 = 35;
    pub const MPLS_BOS: u8 = 36;
    pub const PBB_ISID: u8 = 37;
    pub const IPV6_EXTHDR: u8 = 39;
}

/// One field of a match, as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub struct Oxm<'a> {
    /// Class, number, whether there is a mask, and length of the body.
    pub header: [u8; OXM_HEADER_BYTES],
    /// Value, and behind it the mask if there is one.
    pub body: &'a [u8],
}

impl Oxm<'_> {
    /// Returns whether a match has this field, under the same mask but with another value.
    #[must_use]
    pub fn differs_among(&self, mut oxms: &[u8]) -> bool {
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

    /// Returns whether a mask follows its value.
    #[must_use]
    pub const fn is_masked(&self) -> bool {
        self.header[2] & 1 != 0
    }

    /// Returns its number, if it is one that OpenFlow itself defines.
    #[must_use]
    pub const fn field(&self) -> Option<u8> {
        if self.class() == OPENFLOW_BASIC {
            Some(self.header[2] >> 1)
        } else {
            None
        }
    }
}

/// Returns the fields of a match, and whether it ended where its last field ends.
#[must_use]
pub fn split(match_bytes: &[u8]) -> (Vec<Oxm<'_>>, bool) {
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

/// Returns the number in a value of an OXM.
#[must_use]
pub fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}
