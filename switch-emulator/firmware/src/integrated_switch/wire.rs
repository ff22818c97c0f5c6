//! How long frames take, and links that carry one after the other.

use crate::profile::Profile;
use crate::time::{Duration, Instant};

/// A pause frame: as short as a frame can be, with FCS, and without tail tag since the MAC itself makes it.
const PAUSE_FRAME_BYTES: usize = 64;
/// A pause lasts a multiple of the time of this many bytes: 512 bits (IEEE 802.3, annex 31B).
const PAUSE_QUANTUM_BYTES: u64 = 64;

/// Durations on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    byte_ns: u64,
    /// Sending what a front link carries beside a frame: the preamble.
    beside_front: Duration,
    /// The same of the link to or from the CPU, where the frame carries a tail tag.
    beside_inner: Duration,
    pub(super) gap: Duration,
    pub(super) transit: Duration,
}

impl Wire {
    pub(crate) fn new(profile: &Profile) -> Self {
        let ports = &profile.ports;
        let byte_ns = 8_000_000_000 / ports.link_rate_bps;
        let sending = |bytes: u64| Duration::from_nanos(bytes * byte_ns);
        Self {
            byte_ns,
            beside_front: sending(ports.preamble_bytes),
            beside_inner: sending(ports.preamble_bytes + ports.tail_tag_bytes),
            gap: sending(ports.interframe_gap_bytes),
            transit: Duration::from_picos_rounded(profile.integrated_switch.transit_ps),
        }
    }

    /// Sending preamble and a frame of `length` bytes (with FCS) on a front link.
    #[inline(always)]
    pub(super) fn front(&self, length: usize) -> Duration {
        self.beside_front + self.frame(length)
    }

    /// The same on the link to or from the CPU, where the frame carries a tail tag.
    #[inline(always)]
    pub(super) fn inner(&self, length: usize) -> Duration {
        self.beside_inner + self.frame(length)
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

    /// How long a pause of so many quanta lasts.
    #[inline]
    pub(super) fn pause(&self, quanta: u64) -> Duration {
        self.bytes(quanta * PAUSE_QUANTUM_BYTES)
    }

    /// Sending so many bytes.
    #[inline(always)]
    pub(super) fn bytes(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * self.byte_ns)
    }
}

/// A link that sends one frame after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// When the last frame began or will begin.
    begun_at: Instant,
    /// When the last frame and the gap after it have been sent.
    pub(super) free_at: Instant,
}

impl Link {
    /// Sends a frame that is ready at `ready`; gives the instant at which it begins.
    #[inline(always)]
    pub(super) fn send(&mut self, ready: Instant, duration: Duration, gap: Duration) -> Instant {
        self.begun_at = ready.max(self.free_at);
        self.free_at = self.begun_at + duration + gap;
        self.begun_at
    }

    /// As [`send`](Self::send), but if the last frame will begin late enough, this one goes before it.
    #[inline]
    pub(super) fn send_first(
        &mut self,
        ready: Instant,
        duration: Duration,
        gap: Duration,
    ) -> Instant {
        if ready + duration + gap <= self.begun_at {
            ready
        } else {
            self.send(ready, duration, gap)
        }
    }
}
