//! From the CPU to the front ports.

use super::bridging_delay::BridgingDelay;
use super::wire::{InnerLink, Wire};
use crate::port::{PortNumber, PORTS};
use crate::profile::Profile;
use crate::time::{Duration, Instant};

/// Frames that the CPU's MAC holds for sending: 12 descriptors, one always empty.
const TRANSMIT_DESCRIPTORS: usize = 11;

/// A front port, as it sends.
#[derive(Clone, Copy, Debug, Default)]
struct FrontPort {
    link: InnerLink,
    /// Until when its peer has asked it to pause.
    paused_until: Instant,
}

/// From the CPU to the front ports.
#[derive(Clone, Debug)]
#[repr(C)] // what each frame needs comes first, as in the board
pub(crate) struct Egress {
    front: [FrontPort; PORTS],
    inner: InnerLink,
    /// When the last frame on the inner link began or will begin.
    inner_begun_at: Instant,
    wire: Wire,
    /// The descriptor that is filled next: the first one, if the MAC has sent all that it was given.
    next: u32,
    /// When each of the last frames has left the CPU's MAC; a ring.
    sent_at: [Instant; TRANSMIT_DESCRIPTORS],
    /// Size of the frame memory, as time on a front link.
    longest_wait: Duration,
    bridging: BridgingDelay,
}

impl Egress {
    pub(crate) fn new(wire: Wire, profile: &Profile, bridging: BridgingDelay) -> Self {
        Self {
            wire,
            inner: InnerLink::default(),
            longest_wait: wire.bytes(profile.integrated_switch.buffer_bytes),
            front: [FrontPort::default(); PORTS],
            inner_begun_at: Instant::ZERO,
            sent_at: [Instant::ZERO; TRANSMIT_DESCRIPTORS],
            next: 0,
            bridging,
        }
    }

    /// The CPU hands a frame of `length` bytes (with FCS) to its MAC at `now`. Returns the instant at which it has
    /// passed the integrated switch, or `None` when all descriptors are in use.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, now: Instant, length: usize) -> Option<Instant> {
        let next = if self.inner.free_at <= now {
            0 // all are free
        } else {
            self.next as usize
        };
        if self.sent_at[next] > now {
            return None;
        }
        let duration = self.wire.inner(length);
        self.inner_begun_at = self.inner.send(now, duration, self.wire.gap());
        let sent = self.inner_begun_at + duration;
        self.sent_at[next] = sent;
        self.next = if next + 1 == TRANSMIT_DESCRIPTORS {
            0
        } else {
            next as u32 + 1
        };
        Some(sent + self.wire.transit())
    }

    /// The frame leaves by `port` as soon as that is free. Returns the instant at which its first bit departs.
    #[inline(always)]
    pub(crate) fn depart(&mut self, ready: Instant, port: PortNumber, length: usize) -> Instant {
        let front = &mut self.front[port.index()];
        let ready = ready.max(front.paused_until);
        let duration = self.wire.front(length);
        front.link.send(ready, duration, self.wire.gap())
    }

    /// A frame has arrived on a front port at `now` and does not go to the CPU. Returns the instant at which it is ready
    /// for [`bridge`](Self::bridge), by whichever ports it leaves.
    pub(crate) fn bridged_at(&mut self, now: Instant) -> Instant {
        now + self.bridging.draw()
    }

    /// A frame of `length` bytes that has not been to the CPU leaves by `port`. Returns the instant at which its first
    /// bit departs, or `None` when so much waits for the port that the frame memory is full.
    pub(crate) fn bridge(
        &mut self,
        ready: Instant,
        port: PortNumber,
        length: usize,
    ) -> Option<Instant> {
        let front = &mut self.front[port.index()];
        let ready = ready.max(front.paused_until);
        if front.link.free_at.saturating_since(ready) > self.longest_wait {
            return None;
        }
        let duration = self.wire.front(length);
        Some(front.link.send(ready, duration, self.wire.gap()))
    }

    /// The CPU's MAC sends a pause frame at `now`, behind the frame that it is sending. Returns the instant at which
    /// the integrated switch has it.
    pub(crate) fn send_pause_frame(&mut self, now: Instant) -> Instant {
        let duration = self.wire.pause_frame();
        let gap = self.wire.gap();
        if now + duration + gap > self.inner_begun_at {
            self.inner_begun_at = self.inner.send(now, duration, gap);
            return self.inner_begun_at + duration;
        }
        // The last frame will begin late enough: this one goes before it.
        now + duration
    }

    /// A pause frame has arrived on `port` at `now`: frames that are not yet on their way out by it wait, until `quanta`
    /// have passed or another pause frame says otherwise.
    pub(crate) fn pause_port(&mut self, now: Instant, port: PortNumber, quanta: u16) {
        let until = now + self.wire.pause(u64::from(quanta));
        self.front[port.index()].paused_until = until;
    }
}
