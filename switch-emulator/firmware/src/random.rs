//! Random numbers of a board: unset phases, initial sequence numbers, and times of the integrated switch.

/// A small generator of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

/// The random numbers of the C library, with which the firmware makes up MAC addresses of ports: never seeded, so the
/// same after each power-up.
#[derive(Debug)]
pub(crate) struct RandomBytes {
    state: u64,
}

impl RandomBytes {
    pub(crate) const fn new() -> Self {
        Self { state: 1 }
    }

    pub(crate) fn next_byte(&mut self) -> u8 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (((self.state >> 32) & 0x7fff_ffff) % 255) as u8
    }
}
