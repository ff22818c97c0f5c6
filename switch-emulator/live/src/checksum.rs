//! Completes the transport checksum that a sender's kernel left to hardware (checksum offload).

const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6_HEADER_BYTES: usize = 40;

/// The frame is neither TCP nor UDP directly on IPv4 or IPv6, or is cut short: its checksum cannot be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported;

/// Computes the TCP or UDP checksum of a frame anew (RFC 793, RFC 768, RFC 8200 section 8.1).
///
/// # Errors
/// `Unsupported`; the frame is then unchanged.
pub fn complete(frame: &mut [u8]) -> Result<(), Unsupported> {
    let segment = find_segment(frame).ok_or(Unsupported)?;
    let TransportSegment {
        begin,
        end,
        protocol,
        pseudo_sum,
    } = segment;
    let offset = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return Err(Unsupported),
    };
    let payload = frame.get_mut(begin..end).ok_or(Unsupported)?;
    payload
        .get_mut(offset..offset + 2)
        .ok_or(Unsupported)?
        .fill(0);
    let checksum = match !fold(pseudo_sum + sum(payload)) {
        // Zero would mean "none" in UDP; the complement is the same number.
        0 if protocol == UDP => 0xffff,
        checksum => checksum,
    };
    payload[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Internet checksum of `bytes` (RFC 1071); 0 over bytes that contain their right checksum.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

struct TransportSegment {
    begin: usize,
    end: usize,
    protocol: u8,
    pseudo_sum: u64,
}

fn find_segment(frame: &[u8]) -> Option<TransportSegment> {
    let mut at = ETHERNET_BYTES;
    let mut kind = word(frame, at - 2)?;
    while kind == VLAN || kind == SERVICE_VLAN {
        at += TAG_BYTES;
        kind = word(frame, at - 2)?;
    }
    let (begin, end, protocol, addresses) = match kind {
        IPV4 => {
            let begin = at + usize::from(frame.get(at)? & 0x0f) * 4;
            let end = at + usize::from(word(frame, at + 2)?);
            (
                begin,
                end,
                *frame.get(at + 9)?,
                frame.get(at + 12..at + 20)?,
            )
        }
        IPV6 => {
            let begin = at + IPV6_HEADER_BYTES;
            let end = begin + usize::from(word(frame, at + 4)?);
            (begin, end, *frame.get(at + 6)?, frame.get(at + 8..at + 40)?)
        }
        _ => return None,
    };
    let length = end.checked_sub(begin)? as u64;
    Some(TransportSegment {
        begin,
        end,
        protocol,
        pseudo_sum: sum(addresses) + u64::from(protocol) + length,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

/// Sum of big-endian 16-bit words, the last byte padded with zero (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|pair| {
            u64::from(u16::from_be_bytes([
                pair[0],
                pair.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// UDP 10.0.0.1:1024 -> 10.0.0.2:2048 with payload "ab", checksum by hand:
    /// 0a00+0001+0a00+0002+0011+000a + 0400+0800+000a+0000 + 6162 = 818a, complement 7e75.
    fn udp_frame() -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x08, 0x00]);
        frame.extend([
            0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend([0x04, 0x00, 0x08, 0x00, 0, 10, 0xde, 0xad, b'a', b'b']);
        frame.extend([0; 16]); // Ethernet padding is not summed.
        frame
    }

    #[test]
    fn udp_over_ipv4() {
        let mut frame = udp_frame();
        assert_eq!(complete(&mut frame), Ok(()));
        assert_eq!(&frame[40..42], &[0x7e, 0x75]);
    }

    #[test]
    fn a_vlan_tag_is_stepped_over() {
        let mut frame = udp_frame();
        frame.splice(12..12, [0x81, 0x00, 0x00, 0x64]);
        assert_eq!(complete(&mut frame), Ok(()));
        assert_eq!(&frame[44..46], &[0x7e, 0x75]);
    }

    #[test]
    fn other_protocols_are_left_alone() {
        let mut frame = udp_frame();
        frame[23] = 132;
        let before = frame.clone();
        assert_eq!(complete(&mut frame), Err(Unsupported));
        assert_eq!(frame, before);
    }

    proptest! {
        #[test]
        fn arbitrary_frames_never_panic(mut frame in prop::collection::vec(any::<u8>(), 0..200), kind in 0usize..4) {
            if frame.len() > 14 {
                let kinds = [[0x08, 0x00], [0x86, 0xdd], [0x81, 0x00], [0x12, 0x34]];
                frame[12..14].copy_from_slice(&kinds[kind]);
            }
            let length = frame.len();
            let _ = complete(&mut frame);
            prop_assert_eq!(frame.len(), length);
        }
    }
}
