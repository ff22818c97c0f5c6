//! Entries that a frame matches, one in each table of the pipeline.

/// Bits of an entry's position, counted from 1.
const BITS: u32 = 12;
/// Maximum number of tables.
const MOST: u32 = u64::BITS / BITS;

/// Positions of the entries that a frame matches, in order of the tables. Packed into one word, since each frame copies
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedEntries(u64);

impl MatchedEntries {
    /// No entry.
    pub const NONE: Self = Self(0);

    /// Returns this with the entry at `position` of the next table. Returns `None` if that exceeds the capacity.
    #[must_use]
    #[inline]
    pub fn with(self, position: usize) -> Option<Self> {
        let count = (u64::BITS - self.0.leading_zeros()).div_ceil(BITS);
        let from_1 = position as u64 + 1;
        (count < MOST && from_1 >> BITS == 0).then(|| Self(self.0 | from_1 << (BITS * count)))
    }

    /// Returns the positions in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let position = (rest as usize & ((1 << BITS) - 1)).checked_sub(1)?;
            rest >>= BITS;
            Some(position)
        })
    }

    /// Returns the position in the only table of OpenFlow 1.0.
    #[inline(always)]
    #[must_use]
    pub const fn only(self) -> usize {
        (self.0 as usize).wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kept_in_order_until_they_are_too_many() {
        for positions in [[0; 5], [511, 0, 3, 127, 0], [4_094; 5]] {
            let kept = |tables| {
                let mut positions = positions[..tables].iter();
                positions.try_fold(MatchedEntries::NONE, |matched, position| {
                    matched.with(*position)
                })
            };
            for tables in 0..=5 {
                let matched = kept(tables).expect("not too many");
                assert!(matched.iter().eq(positions[..tables].iter().copied()));
            }
            assert_eq!(kept(1).map(MatchedEntries::only), Some(positions[0]));
            assert_eq!(kept(5).and_then(|matched| matched.with(0)), None);
        }
        assert_eq!(MatchedEntries::NONE.with(4_095), None);
    }
}
