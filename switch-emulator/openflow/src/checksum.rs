//! Checksums of the internet protocols.

use crate::bytes::be16;

/// Brings a checksum up to date for a field that changes (RFC 1624).
pub fn adjust(frame: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let Some(bytes) = frame.get_mut(at..at + 2) else {
        return;
    };
    let mut sum = u32::from(!u16::from_be_bytes([bytes[0], bytes[1]]));
    for (old, new) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
        sum += u32::from(!be16(old, 0)) + u32::from(be16(new, 0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes.copy_from_slice(&(!(sum as u16)).to_be_bytes());
}
