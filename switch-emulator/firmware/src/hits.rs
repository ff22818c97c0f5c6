//! The entries that a frame uses.

/// Bits of the position of an entry, counted from 1.
const BITS: u32 = 12;
/// Most tables of each of which it is kept which entry a frame uses.
const MOST: u32 = u64::BITS / BITS;

/// The entries that a frame uses, one of each table that it passes, in order: one number, because each frame copies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hits(u64);

impl Hits {
    /// No entry.
    pub(crate) const NONE: Self = Self(0);

    /// The same, and the entry at `position` of the next table; nothing if those are too many.
    pub(crate) fn with(self, position: usize) -> Option<Self> {
        let count = (u64::BITS - self.0.leading_zeros()).div_ceil(BITS);
        let from_1 = position as u64 + 1;
        (count < MOST && from_1 >> BITS == 0).then(|| Self(self.0 | from_1 << (BITS * count)))
    }

    /// Their positions, in order.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let position = (rest as usize & ((1 << BITS) - 1)).checked_sub(1)?;
            rest >>= BITS;
            Some(position)
        })
    }

    /// The position of the only one of the one table of OpenFlow 1.0.
    #[inline(always)]
    pub(crate) const fn only(self) -> usize {
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
                positions.try_fold(Hits::NONE, |hits, position| hits.with(*position))
            };
            for tables in 0..=5 {
                let hits = kept(tables).expect("not too many");
                assert!(hits.iter().eq(positions[..tables].iter().copied()));
            }
            assert_eq!(kept(1).map(Hits::only), Some(positions[0]));
            assert_eq!(kept(5).and_then(|hits| hits.with(0)), None);
        }
        assert_eq!(Hits::NONE.with(4_095), None);
    }
}
