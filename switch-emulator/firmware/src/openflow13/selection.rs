//! Which entries a DELETE means (quirks 129 to 131).

use openflow::v1_3::{field, split, Oxm, OXM_HEADER_BYTES};

/// Network protocol that a field implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkProtocol {
    /// IPv4 and IPv6 count as one.
    Ip,
    Arp,
    Mpls,
    Pbb,
}

/// Transport protocol that a field implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6,
}

fn network(oxm: &Oxm) -> Option<NetworkProtocol> {
    Some(match oxm.field()? {
        field::IPV4_SRC
        | field::IPV4_DST
        | field::ICMPV4_TYPE
        | field::ICMPV4_CODE
        | field::IPV6_SRC..=field::IPV6_ND_TLL
        | field::IPV6_EXTHDR => NetworkProtocol::Ip,
        field::ARP_OP..=field::ARP_THA => NetworkProtocol::Arp,
        field::MPLS_LABEL..=field::MPLS_BOS => NetworkProtocol::Mpls,
        field::PBB_ISID if !oxm.is_masked() => NetworkProtocol::Pbb,
        _ => return None,
    })
}

fn transport(oxm: &Oxm) -> Option<Transport> {
    Some(match (oxm.field()?, oxm.body.first()) {
        (field::TCP_SRC | field::TCP_DST, _) | (field::IP_PROTO, Some(6)) => Transport::Tcp,
        (field::UDP_SRC | field::UDP_DST, _) | (field::IP_PROTO, Some(17)) => Transport::Udp,
        (field::SCTP_SRC | field::SCTP_DST, _) | (field::IP_PROTO, Some(132)) => Transport::Sctp,
        (field::ICMPV4_TYPE | field::ICMPV4_CODE, _) | (field::IP_PROTO, Some(1)) => {
            Transport::Icmpv4
        }
        (field::ICMPV6_TYPE | field::ICMPV6_CODE, _) | (field::IP_PROTO, Some(58)) => {
            Transport::Icmpv6
        }
        _ => return None,
    })
}

/// Returns whether fields belong to more than one kind of packet, or to more than one transport protocol (quirk 130).
fn contradict(oxms: &[Oxm]) -> bool {
    fn differ<T: PartialEq + Copy>(mut found: impl Iterator<Item = T>) -> bool {
        let first = found.next();
        found.any(|other| Some(other) != first)
    }
    differ(oxms.iter().filter_map(network)) || differ(oxms.iter().filter_map(transport))
}

/// Returns whether a DELETE with the fields `wanted` means an entry with the fields `held` and the memory `behind` them.
pub(super) fn selects(wanted: &[u8], held: &[u8], behind: &[u8]) -> bool {
    if wanted.is_empty() {
        return true;
    }
    let ((wanted, wanted_whole), (held, held_whole)) = (split(wanted), split(held));
    if !wanted_whole || !held_whole || contradict(&wanted) || contradict(&held) {
        return false;
    }
    wanted.iter().all(|wanted| {
        let found = held.iter().find(|held| held.header == wanted.header);
        match found {
            Some(held) => value_is_equal(wanted, held.body),
            // The bytes behind the entry's fields count, whatever they are (quirk 131).
            None => behind
                .split_first_chunk::<OXM_HEADER_BYTES>()
                .filter(|(header, _)| **header == wanted.header)
                .and_then(|(_, body)| body.get(..wanted.body.len()))
                .is_some_and(|body| value_is_equal(wanted, body)),
        }
    })
}

fn value_is_equal(wanted: &Oxm, held: &[u8]) -> bool {
    if !wanted.is_masked() {
        return wanted.body == held;
    }
    let half = wanted.body.len() / 2;
    (0..half).all(|i| {
        let (value, mask) = (wanted.body[i], wanted.body[half + i]);
        let (held_value, held_mask) = (held[i], held[half + i]);
        // Nothing else is compared (quirk 129).
        let even = held_mask != 0 && mask & 1 == 0;
        let odd = value & 1 == 1 && held_mask != held_value;
        !even && !odd
    })
}
