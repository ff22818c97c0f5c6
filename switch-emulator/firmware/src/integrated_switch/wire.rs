//! How long frames take, and links that carry one after the other.

use crate::profile::Profile;
use crate::time::{Duration, Instant};

/// A pause frame: as short as a frame can be, with FCS, and without tail tag since the MAC itself makes it.
const PAUSE_FRAME_BYTES: usize = 64;
/// A pause lasts a multiple of the time of this many bytes: 512 bits (IEEE 802.3, annex 31B).
const PAUSE_QUANTUM_BYTES: u64 = 64;

/// Durations on the wire, in little memory: each direction of the integrated switch has them at hand.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names)] // they are times, and say in what
pub(crate) struct Wire {
    byte_ns: u32,
    /// Sending what a front link carries beside a frame: the preamble.
    beside_front_ns: u32,
    /// Overhead on the link to or from the CPU, where the frame carries a tail tag.
    beside_inner_ns: u32,
    gap_ns: u32,
    transit_ns: u32,
}

impl Wire {
    pub(crate) fn new(profile: &Profile) -> Self {
        let ports = &profile.ports;
        let byte_ns = 8_000_000_000 / ports.link_rate_bps;
        let sending_ns = |bytes: u64| (bytes * byte_ns) as u32;
        let transit = Duration::from_picos_rounded(profile.integrated_switch.transit_ps);
        // The profile has been checked: none is as long as four seconds.
        Self {
            byte_ns: byte_ns as u32,
            beside_front_ns: sending_ns(ports.preamble_bytes),
            beside_inner_ns: sending_ns(ports.preamble_bytes + ports.tail_tag_bytes),
            gap_ns: sending_ns(ports.interframe_gap_bytes),
            transit_ns: transit.as_nanos() as u32,
        }
    }

    /// Silence between two frames.
    #[inline(always)]
    pub(super) fn gap(&self) -> Duration {
        Duration::from_nanos(self.gap_ns.into())
    }

    /// From one port of the integrated switch to another.
    #[inline(always)]
    pub(super) fn transit(&self) -> Duration {
        Duration::from_nanos(self.transit_ns.into())
    }

    /// Sending preamble and a frame of `length` bytes (with FCS) on a front link.
    #[inline(always)]
    pub(super) fn front(&self, length: usize) -> Duration {
        Duration::from_nanos(self.beside_front_ns.into()) + self.frame(length)
    }

    /// Returns the same on the link to or from the CPU, where the frame carries a tail tag.
    #[inline(always)]
    pub(super) fn inner(&self, length: usize) -> Duration {
        Duration::from_nanos(self.beside_inner_ns.into()) + self.frame(length)
    }

    /// Sending a frame of `length` bytes by itself.
    #[inline(always)]
    fn frame(&self, length: usize) -> Duration {
        self.bytes(length as u64)
    }

    /// Sending a pause frame on the link from the CPU.
    #[inline]
    pub(super) fn pause_frame(&self) -> Duration {
        self.front(PAUSE_FRAME_BYTES)
    }

    /// Returns how long a pause of so many quanta lasts.
    #[inline]
    pub(super) fn pause(&self, quanta: u64) -> Duration {
        self.bytes(quanta * PAUSE_QUANTUM_BYTES)
    }

    /// Sending so many bytes.
    #[inline(always)]
    pub(super) fn bytes(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * u64::from(self.byte_ns))
    }
}

/// A link that sends one frame after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InnerLink {
    /// When the last frame and the gap after it have been sent.
    pub(super) free_at: Instant,
}

impl InnerLink {
    /// Sends a frame that is ready at `ready`. Returns the instant at which it begins.
    #[inline(always)]
    pub(super) fn send(&mut self, ready: Instant, duration: Duration, gap: Duration) -> Instant {
        let begins_at = ready.max(self.free_at);
        self.free_at = begins_at + duration + gap;
        begins_at
    }
}
