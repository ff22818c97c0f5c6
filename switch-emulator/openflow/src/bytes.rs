//! Numbers in network byte order. Bytes beyond the end count as 0.

/// Returns the two bytes at `at`.
#[inline]
#[must_use]
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or_else(
        || slow(bytes, at, 2) as u16,
        |b| u16::from_be_bytes([b[0], b[1]]),
    )
}

/// Returns the four bytes at `at`.
#[inline]
#[must_use]
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or_else(
        || slow(bytes, at, 4) as u32,
        |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]),
    )
}

/// Returns the six bytes at `at`.
#[inline]
#[must_use]
pub fn be48(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 6).map_or_else(
        || slow(bytes, at, 6),
        |b| u64::from_be_bytes([0, 0, b[0], b[1], b[2], b[3], b[4], b[5]]),
    )
}

/// Returns the eight bytes at `at`.
#[inline]
#[must_use]
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    slow(bytes, at, 8)
}

#[cold]
fn slow(bytes: &[u8], at: usize, count: usize) -> u64 {
    (at..at + count).fold(0, |sum, i| {
        sum << 8 | u64::from(bytes.get(i).copied().unwrap_or(0))
    })
}
