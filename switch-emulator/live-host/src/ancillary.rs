//! Ancillary data of received frames: control messages, as `cmsg(3)` lays them out.

use std::mem::{offset_of, size_of};

/// A frame's transport checksum: an interface's checksum offload may leave it to hardware that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Complete, or none of our business.
    Ready,
    /// Still to be completed.
    Partial,
}

/// Ancillary data of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancillary {
    /// `CLOCK_REALTIME` nanoseconds at which the kernel saw the frame; 0 if it did not say.
    pub stamp_realtime_ns: u64,
    /// Whether the transport checksum is complete.
    pub checksum: Checksum,
    /// The VLAN tag that the kernel took out of the frame.
    pub tag: Option<[u8; 4]>,
}

/// Size of a header, whose data follows at once: both are aligned to this machine's words.
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();
const WORD_BYTES: usize = size_of::<usize>();

impl Ancillary {
    /// Reads control messages one after the other; passes over what is unknown, and ends where one does not fit.
    #[must_use]
    pub fn parse(mut messages: &[u8]) -> Self {
        let mut ancillary = Self {
            stamp_realtime_ns: 0,
            checksum: Checksum::Ready,
            tag: None,
        };
        while let Some((level, kind, data, rest)) = first(messages) {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    ancillary.stamp_realtime_ns = stamp_ns(data).unwrap_or(0);
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => ancillary.take_auxiliary(data),
                _ => {}
            }
            messages = rest;
        }
        ancillary
    }

    /// Takes what a `tpacket_auxdata` says.
    fn take_auxiliary(&mut self, data: &[u8]) {
        let u16_at = |at| array(data, at).map_or(0, u16::from_ne_bytes);
        let status =
            array(data, offset_of!(libc::tpacket_auxdata, tp_status)).map_or(0, u32::from_ne_bytes);
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
            self.checksum = Checksum::Partial;
        }
        if status & libc::TP_STATUS_VLAN_VALID != 0 {
            let protocol = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                u16_at(offset_of!(libc::tpacket_auxdata, tp_vlan_tpid))
            } else {
                libc::ETH_P_8021Q as u16
            };
            let [a, b] = protocol.to_be_bytes();
            let [c, d] = u16_at(offset_of!(libc::tpacket_auxdata, tp_vlan_tci)).to_be_bytes();
            self.tag = Some([a, b, c, d]);
        }
    }
}

/// A control message as the kernel reads and writes it.
#[must_use]
pub fn message(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let length = HEADER_BYTES + data.len();
    bytes[..WORD_BYTES].copy_from_slice(&length.to_ne_bytes());
    let level_at = offset_of!(libc::cmsghdr, cmsg_level);
    bytes[level_at..level_at + 4].copy_from_slice(&level.to_ne_bytes());
    let kind_at = offset_of!(libc::cmsghdr, cmsg_type);
    bytes[kind_at..kind_at + 4].copy_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(data);
    bytes.resize(length.next_multiple_of(WORD_BYTES), 0);
    bytes
}

/// Level, type and data of the first message, and what follows it.
fn first(messages: &[u8]) -> Option<(libc::c_int, libc::c_int, &[u8], &[u8])> {
    let length = usize::from_ne_bytes(array(messages, offset_of!(libc::cmsghdr, cmsg_len))?);
    let level = libc::c_int::from_ne_bytes(array(messages, offset_of!(libc::cmsghdr, cmsg_level))?);
    let kind = libc::c_int::from_ne_bytes(array(messages, offset_of!(libc::cmsghdr, cmsg_type))?);
    let data = messages.get(HEADER_BYTES..length)?;
    let rest = messages
        .get(length.next_multiple_of(WORD_BYTES)..)
        .unwrap_or_default();
    Some((level, kind, data, rest))
}

/// Returns a `timespec` in nanoseconds.
fn stamp_ns(data: &[u8]) -> Option<u64> {
    let seconds =
        array(data, offset_of!(libc::timespec, tv_sec)).map(libc::time_t::from_ne_bytes)?;
    let nanos =
        array(data, offset_of!(libc::timespec, tv_nsec)).map(libc::c_long::from_ne_bytes)?;
    seconds
        .unsigned_abs()
        .checked_mul(1_000_000_000)?
        .checked_add(nanos.unsigned_abs())
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamp(seconds: libc::time_t, nanos: libc::c_long) -> Vec<u8> {
        let data = [seconds.to_ne_bytes(), nanos.to_ne_bytes()].concat();
        message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &data)
    }

    fn auxiliary(status: u32, tag: u16, protocol: u16) -> Vec<u8> {
        let mut data = vec![0; size_of::<libc::tpacket_auxdata>()];
        data[..4].copy_from_slice(&status.to_ne_bytes());
        let tag_at = offset_of!(libc::tpacket_auxdata, tp_vlan_tci);
        data[tag_at..tag_at + 2].copy_from_slice(&tag.to_ne_bytes());
        let protocol_at = offset_of!(libc::tpacket_auxdata, tp_vlan_tpid);
        data[protocol_at..protocol_at + 2].copy_from_slice(&protocol.to_ne_bytes());
        message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &data)
    }

    #[test]
    fn stamp_checksum_and_tag_are_read_in_any_order_among_others() {
        let other = message(libc::SOL_SOCKET, libc::SCM_RIGHTS, &[1, 2, 3]);
        let tagged = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let partial = libc::TP_STATUS_CSUMNOTREADY;
        let parts = [
            stamp(1_700_000_000, 123),
            auxiliary(tagged | partial, 100, 0x88a8),
            other,
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let messages = order.map(|part| parts[part].clone()).concat();
            assert_eq!(
                Ancillary::parse(&messages),
                Ancillary {
                    stamp_realtime_ns: 1_700_000_000_000_000_123,
                    checksum: Checksum::Partial,
                    tag: Some([0x88, 0xa8, 0, 100]),
                }
            );
        }
        let old_kernel = Ancillary::parse(&auxiliary(libc::TP_STATUS_VLAN_VALID, 5, 0));
        assert_eq!(old_kernel.tag, Some([0x81, 0x00, 0, 5]));
    }

    #[test]
    fn a_message_that_was_cut_off_ends_the_list() {
        let messages = [stamp(1, 2), stamp(3, 4)].concat();
        for length in 0..messages.len() {
            let stamp = Ancillary::parse(&messages[..length]).stamp_realtime_ns;
            assert!([0, 1_000_000_002].contains(&stamp), "{length}: {stamp}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0..64_usize) {
            let mut bytes = bytes;
            if bytes.len() >= WORD_BYTES {
                bytes[..WORD_BYTES].copy_from_slice(&length.to_ne_bytes());
            }
            let ancillary = Ancillary::parse(&bytes);
            prop_assert!(ancillary.tag.is_none() || bytes.len() > HEADER_BYTES);
        }
    }
}
