//! Front ports, the integrated switch, and the link between it and the CPU.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::time::{Duration, Instant};

/// Front ports of a board.
pub(crate) const PORTS: usize = 4;

/// Frames that the CPU's MAC holds for sending: 12 descriptors, one always empty.
const TRANSMIT_DESCRIPTORS: usize = 11;

/// A front port, 1 to 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct PortNumber(u8);

impl PortNumber {
    /// The port with this number, if there is one.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number >= 1 && number as usize <= PORTS {
            Some(Self(number))
        } else {
            None
        }
    }

    /// 1 to 4.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    const fn index(self) -> usize {
        self.0 as usize - 1
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<PortNumber> for u8 {
    fn from(port: PortNumber) -> Self {
        port.0
    }
}

impl TryFrom<u8> for PortNumber {
    type Error = String;
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

    /// The front ports among these bits; others are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & ((1 << PORTS) - 1))
    }

    /// Bit 0 is port 1.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether `port` belongs to the set.
    #[must_use]
    pub const fn contains(self, port: PortNumber) -> bool {
        self.0 & (1 << port.index()) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many ports it has.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Its ports, ascending.
    pub fn iter(self) -> impl Iterator<Item = PortNumber> {
        (1..=PORTS as u8)
            .map(PortNumber)
            .filter(move |port| self.contains(*port))
    }

    pub(crate) const fn with(self, port: PortNumber) -> Self {
        Self(self.0 | (1 << port.index()))
    }
}

impl FromIterator<PortNumber> for PortMask {
    fn from_iter<I: IntoIterator<Item = PortNumber>>(ports: I) -> Self {
        ports.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// What the integrated switch counts of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HardwareCounters {
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_dropped: u64,
}

impl HardwareCounters {
    /// Adds the lower `bits` of what was read.
    pub(crate) fn add(&mut self, read: Self, bits: u64) {
        self.received_bytes += read.received_bytes & bits;
        self.sent_bytes += read.sent_bytes & bits;
        self.received_dropped += read.received_dropped & bits;
    }
}

/// Durations on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    byte_ns: u64,
    preamble_bytes: u64,
    gap: Duration,
    tag_bytes: u64,
    transit: Duration,
    buffer_bytes: u64,
}

impl Wire {
    pub(crate) fn new(profile: &Profile) -> Self {
        let byte_ns = 8_000_000_000 / profile.ports.link_rate_bps;
        Self {
            byte_ns,
            preamble_bytes: profile.ports.preamble_bytes,
            gap: Duration::from_nanos(profile.ports.interframe_gap_bytes * byte_ns),
            tag_bytes: profile.ports.tail_tag_bytes,
            transit: Duration::from_picos_rounded(profile.integrated_switch.transit_ps),
            buffer_bytes: profile.integrated_switch.buffer_bytes,
        }
    }

    /// Sending preamble and a frame of `length` bytes (with FCS) on a front link.
    const fn front(&self, length: usize) -> Duration {
        Duration::from_nanos((self.preamble_bytes + length as u64) * self.byte_ns)
    }

    /// The same on the link to or from the CPU, where the frame carries a tail tag.
    const fn inner(&self, length: usize) -> Duration {
        Duration::from_nanos((self.preamble_bytes + length as u64 + self.tag_bytes) * self.byte_ns)
    }
}

/// A link that sends one frame after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// When the last frame and the gap after it have been sent.
    free_at: Instant,
}

impl Link {
    /// Sends a frame that is ready at `ready`; gives the instant at which it begins.
    fn send(&mut self, ready: Instant, duration: Duration, gap: Duration) -> Instant {
        let start = ready.max(self.free_at);
        self.free_at = start + duration + gap;
        start
    }
}

/// From the front ports to the CPU's receive ring.
#[derive(Clone, Debug)]
pub(crate) struct Ingress {
    wire: Wire,
    inner: Link,
}

impl Ingress {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            inner: Link::default(),
        }
    }

    /// A frame of the controller has arrived at a native port at `now`; gives the instant at which it has arrived in the
    /// ring. It is never lost: TCP would send it again.
    pub(crate) fn carry(&mut self, now: Instant, length: usize) -> Instant {
        let duration = self.wire.inner(length);
        self.inner
            .send(now + self.wire.transit, duration, self.wire.gap)
            + duration
    }

    /// A frame has arrived at a front port at `now`; gives the instant at which it has arrived in the ring, or
    /// nothing when the integrated switch has no room left: frames that wait there longer than its buffer lasts.
    pub(crate) fn admit(&mut self, now: Instant, length: usize) -> Option<Instant> {
        let ready = now + self.wire.transit;
        if self.inner.free_at.saturating_since(ready).as_nanos()
            > self.wire.buffer_bytes * self.wire.byte_ns
        {
            return None;
        }
        let duration = self.wire.inner(length);
        Some(self.inner.send(ready, duration, self.wire.gap) + duration)
    }
}

/// From the CPU to the front ports.
#[derive(Clone, Debug)]
pub(crate) struct Egress {
    wire: Wire,
    inner: Link,
    front: [Link; PORTS],
    /// When each of the last frames has left the CPU's MAC; a ring.
    sent_at: [Instant; TRANSMIT_DESCRIPTORS],
    next: usize,
}

impl Egress {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            inner: Link::default(),
            front: [Link::default(); PORTS],
            sent_at: [Instant::ZERO; TRANSMIT_DESCRIPTORS],
            next: 0,
        }
    }

    /// The CPU hands a frame of `length` bytes (with FCS) to its MAC at `now`. Gives the instant at which it has
    /// passed the integrated switch, or nothing when all descriptors are in use.
    pub(crate) fn hand_over(&mut self, now: Instant, length: usize) -> Option<Instant> {
        if self.sent_at[self.next] > now {
            return None;
        }
        let duration = self.wire.inner(length);
        let sent = self.inner.send(now, duration, self.wire.gap) + duration;
        self.sent_at[self.next] = sent;
        self.next = (self.next + 1) % TRANSMIT_DESCRIPTORS;
        Some(sent + self.wire.transit)
    }

    /// The frame leaves by `port` as soon as that is free; gives the instant at which its first bit departs.
    pub(crate) fn depart(&mut self, ready: Instant, port: PortNumber, length: usize) -> Instant {
        self.front[port.index()].send(ready, self.wire.front(length), self.wire.gap)
    }
}
