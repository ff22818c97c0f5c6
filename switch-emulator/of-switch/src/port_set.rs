//! Sets of ports.

/// Ports of a switch at most.
pub const MAX_PORTS: u8 = 64;

/// A set of front ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSet(u64);

impl PortSet {
    /// Returns the port with this number; none if there is no such port.
    #[must_use]
    #[inline]
    pub fn of(number: u32) -> Self {
        Self(match number {
            1..=64 => 1 << (number - 1),
            _ => 0,
        })
    }

    /// Returns the ports of a mask whose lowest bit is port 1.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the mask.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the ports of both sets.
    #[must_use]
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the ports that `other` has not.
    #[must_use]
    #[inline]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns ports 1 to `count`.
    #[must_use]
    #[inline]
    pub fn up_to(count: u8) -> Self {
        Self(u64::MAX >> (MAX_PORTS - count.clamp(1, MAX_PORTS)))
    }

    /// Returns the set with `port`, 1 to 64, too.
    #[must_use]
    #[inline]
    pub fn with(self, port: u8) -> Self {
        Self(self.0 | 1 << (port - 1))
    }

    /// Returns the set without `port`, 1 to 64.
    #[must_use]
    #[inline]
    pub fn without(self, port: u8) -> Self {
        Self(self.0 & !(1 << (port - 1)))
    }

    /// Returns the ports of either set.
    #[must_use]
    #[inline]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether it has none.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns its ports, ascending.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let lowest = bits.trailing_zeros() as u8;
            bits &= bits.checked_sub(1)?;
            Some(lowest + 1)
        })
    }
}

/// The ports as the tables need to know them.
#[derive(Clone, Copy, Debug)]
pub struct PortSets {
    /// Those that exist for a controller.
    pub all: PortSet,
    /// Those that frames leave by: not switched off, not barred from forwarding.
    pub forwarding: PortSet,
    /// Those with a link that are not switched off (1.3.4, section 6.5).
    pub live: PortSet,
}

impl PortSets {
    /// Returns whether a port with this number exists.
    pub(crate) fn exists(self, number: u32) -> bool {
        !self.all.intersection(PortSet::of(number)).is_empty()
    }

    /// Returns whether it exists and is live.
    pub(crate) fn is_live(self, number: u32) -> bool {
        let live = self.live.intersection(self.all);
        !live.intersection(PortSet::of(number)).is_empty()
    }
}
