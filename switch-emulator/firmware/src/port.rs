//! Front ports: numbers, sets, and what is counted of each.

use std::fmt;

use of_switch::PortSet;
use serde::{Deserialize, Serialize};

/// Front ports of a board.
pub(crate) const PORTS: usize = 4;

/// A front port, 1 to 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct PortNumber(u8);

impl PortNumber {
    /// Returns the port with this number, if there is one.
    #[must_use]
    #[inline]
    pub const fn new(number: u8) -> Option<Self> {
        if number >= 1 && number as usize <= PORTS {
            Some(Self(number))
        } else {
            None
        }
    }

    /// 1 to 4.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize - 1
    }
}

impl fmt::Display for PortNumber {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<PortNumber> for u8 {
    #[inline]
    fn from(port: PortNumber) -> Self {
        port.0
    }
}

impl TryFrom<u8> for PortNumber {
    type Error = String;
    #[inline]
    fn try_from(number: u8) -> Result<Self, String> {
        Self::new(number)
            .ok_or_else(|| format!("there is no port {number}; the board has ports 1 to {PORTS}"))
    }
}

/// A set of front ports: bit 0 is port 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortMask(u8);

impl PortMask {
    /// No port.
    pub const EMPTY: Self = Self(0);

    #[inline]
    pub(crate) const fn all() -> Self {
        Self::from_bits(u8::MAX)
    }

    /// Returns the front ports among these bits; others are dropped.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & ((1 << PORTS) - 1))
    }

    /// Bit 0 is port 1.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether `port` belongs to the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, port: PortNumber) -> bool {
        self.0 & (1 << port.index()) != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns how many ports it has.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns its ports, ascending.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = PortNumber> {
        let mut bits = self.0;
        core::iter::from_fn(move || {
            let lowest = bits.trailing_zeros() as u8;
            bits &= bits.checked_sub(1)?;
            Some(PortNumber(lowest + 1))
        })
    }

    /// Returns its port, if it has but one.
    #[inline]
    pub(crate) fn only(self) -> Option<PortNumber> {
        let lowest = self.0.trailing_zeros() as u8;
        self.0
            .is_power_of_two()
            .then_some(PortNumber(lowest.wrapping_add(1)))
    }

    #[inline]
    pub(crate) const fn with(self, port: PortNumber) -> Self {
        Self(self.0 | (1 << port.index()))
    }

    #[inline]
    pub(crate) const fn without(self, port: PortNumber) -> Self {
        Self(self.0 & !(1 << port.index()))
    }
}

impl From<PortMask> for PortSet {
    #[inline]
    fn from(ports: PortMask) -> Self {
        Self::from_bits(ports.bits().into())
    }
}

impl From<PortSet> for PortMask {
    /// Returns those of the ports that a board has.
    #[inline]
    fn from(ports: PortSet) -> Self {
        Self::from_bits(ports.bits() as u8)
    }
}

impl FromIterator<PortNumber> for PortMask {
    #[inline]
    fn from_iter<I: IntoIterator<Item = PortNumber>>(ports: I) -> Self {
        ports.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// Hardware counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HardwareCounters {
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_dropped: u64,
}

impl HardwareCounters {
    /// Adds the lower `bits` of what was read.
    #[inline]
    pub(crate) fn add(&mut self, read: Self, bits: u64) {
        self.received_bytes += read.received_bytes & bits;
        self.sent_bytes += read.sent_bytes & bits;
        self.received_dropped += read.received_dropped & bits;
    }
}
