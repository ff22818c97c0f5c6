//! Cuts the bundles of TCP segments that a sender's kernel leaves to hardware (segmentation offload).

use zodiac_firmware::MAX_SEGMENT_BYTES;

use crate::checksum;

const ETHERNET_BYTES: usize = 14;
const TCP: u8 = 6;
const FIN_AND_PUSH: u8 = 0x09;

/// Where the parts of a TCP segment over IPv4 lie in its frame.
#[derive(Debug, Clone, Copy)]
struct SegmentLayout {
    tcp: usize,
    payload: usize,
    end: usize,
}

impl SegmentLayout {
    const fn is_bundle(&self) -> bool {
        self.end - self.payload > MAX_SEGMENT_BYTES
    }
}

/// The frame is TCP over IPv4 with more payload than a board takes in a segment.
#[must_use]
pub fn is_bundle(frame: &[u8]) -> bool {
    layout(frame).is_some_and(|layout| layout.is_bundle())
}

/// Returns the segments of a bundle, each in a frame of its own. Their TCP checksums have yet to be completed. Anything
/// else comes out as it is.
#[must_use]
pub fn cut(frame: &[u8]) -> Vec<Vec<u8>> {
    let Some(SegmentLayout { tcp, payload, end }) = layout(frame).filter(SegmentLayout::is_bundle)
    else {
        return vec![frame.to_vec()];
    };
    let pieces = frame[payload..end].chunks(MAX_SEGMENT_BYTES);
    let last = pieces.len().saturating_sub(1);
    let cut = pieces.enumerate().map(|(number, piece)| {
        let mut segment = [&frame[..payload], piece].concat();
        let ip = &mut segment[ETHERNET_BYTES..];
        let total = (payload - ETHERNET_BYTES + piece.len()) as u16;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(number as u16);
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        let header_bytes = tcp - ETHERNET_BYTES;
        ip[10..12].fill(0);
        let checksum = checksum::of(&ip[..header_bytes]);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let sequence = [4, 5, 6, 7].map(|at| segment[tcp + at]);
        let sequence =
            u32::from_be_bytes(sequence).wrapping_add((number * MAX_SEGMENT_BYTES) as u32);
        segment[tcp + 4..tcp + 8].copy_from_slice(&sequence.to_be_bytes());
        if number != last {
            segment[tcp + 13] &= !FIN_AND_PUSH;
        }
        segment
    });
    cut.collect()
}

fn layout(frame: &[u8]) -> Option<SegmentLayout> {
    let ip = frame.get(ETHERNET_BYTES..)?;
    if frame[12..14] != [0x08, 0x00] || *ip.get(9)? != TCP {
        return None;
    }
    let header_bytes = usize::from(ip[0] & 0x0f) * 4;
    let tcp = ETHERNET_BYTES + header_bytes;
    let payload = tcp + usize::from(frame.get(tcp + 12)? >> 4) * 4;
    let end = ETHERNET_BYTES + usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let whole = header_bytes >= 20 && payload >= tcp + 20 && payload <= end && end <= frame.len();
    whole.then_some(SegmentLayout { tcp, payload, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a segment with sequence number 1000 and `bytes` of payload, FIN and PSH set.
    fn bundle(bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; 54];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[16..18].copy_from_slice(&((40 + bytes) as u16).to_be_bytes());
        frame[23] = TCP;
        frame[38..42].copy_from_slice(&1000_u32.to_be_bytes());
        frame[46..48].copy_from_slice(&[0x50, 0x19]);
        frame.extend((0..bytes).map(|number| number as u8));
        frame
    }

    #[test]
    fn a_bundle_becomes_segments_that_a_board_takes() {
        let frame = bundle(1_300);
        assert!(is_bundle(&frame));
        let cut = cut(&frame);
        let payloads: Vec<_> = cut.iter().map(|segment| segment.len() - 54).collect();
        assert_eq!(payloads, [536, 536, 228]);
        let numbers: Vec<_> = cut.iter().map(|segment| segment[38..42].to_vec()).collect();
        assert_eq!(numbers[2], 2_072_u32.to_be_bytes());
        let flags: Vec<_> = cut.iter().map(|segment| segment[47]).collect();
        assert_eq!(flags, [0x10, 0x10, 0x19]);
        for segment in &cut {
            assert_eq!(checksum::of(&segment[14..34]), 0, "the IP header is intact");
            assert_eq!(
                usize::from(segment[17]) + 256 * usize::from(segment[16]),
                segment.len() - 14
            );
        }
        let joined: Vec<_> = cut
            .iter()
            .flat_map(|segment| segment[54..].to_vec())
            .collect();
        assert_eq!(joined, frame[54..]);
    }

    #[test]
    fn what_a_board_takes_stays() {
        for frame in [
            bundle(536),
            bundle(0),
            vec![0; 60],
            Vec::new(),
            vec![0x45; 20],
        ] {
            assert!(!is_bundle(&frame));
        }
        assert_eq!(cut(&bundle(536)), [bundle(536)]);
    }
}
