//! From the CPU to the front ports.

use super::wire::{Link, Wire};
use crate::port::{PortNumber, PORTS};
use crate::profile::Profile;
use crate::time::{Duration, Instant};

/// Frames that the CPU's MAC holds for sending: 12 descriptors, one always empty.
const TRANSMIT_DESCRIPTORS: usize = 11;

/// From the CPU to the front ports.
#[derive(Clone, Debug)]
pub(crate) struct Egress {
    wire: Wire,
    inner: Link,
    /// What the frame memory holds, as time on a front link.
    longest_wait: Duration,
    front: [Link; PORTS],
    /// Until when the peer of each front port has asked it to pause.
    paused_until: [Instant; PORTS],
    /// When each of the last frames has left the CPU's MAC; a ring.
    sent_at: [Instant; TRANSMIT_DESCRIPTORS],
    next: usize,
}

impl Egress {
    pub(crate) fn new(wire: Wire, profile: &Profile) -> Self {
        Self {
            wire,
            inner: Link::default(),
            longest_wait: wire.bytes(profile.integrated_switch.buffer_bytes),
            front: [Link::default(); PORTS],
            paused_until: [Instant::ZERO; PORTS],
            sent_at: [Instant::ZERO; TRANSMIT_DESCRIPTORS],
            next: 0,
        }
    }

    /// The CPU hands a frame of `length` bytes (with FCS) to its MAC at `now`. Gives the instant at which it has
    /// passed the integrated switch, or nothing when all descriptors are in use.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, now: Instant, length: usize) -> Option<Instant> {
        if self.sent_at[self.next] > now {
            return None;
        }
        let duration = self.wire.inner(length);
        let sent = self.inner.send(now, duration, self.wire.gap) + duration;
        self.sent_at[self.next] = sent;
        self.next += 1;
        if self.next == TRANSMIT_DESCRIPTORS {
            self.next = 0;
        }
        Some(sent + self.wire.transit)
    }

    /// The frame leaves by `port` as soon as that is free; gives the instant at which its first bit departs.
    #[inline(always)]
    pub(crate) fn depart(&mut self, ready: Instant, port: PortNumber, length: usize) -> Instant {
        let ready = ready.max(self.paused_until[port.index()]);
        self.front[port.index()].send(ready, self.wire.front(length), self.wire.gap)
    }

    /// A frame of `length` bytes that has arrived on another front port at `now` leaves by `port`, without having been to
    /// the CPU; gives the instant at which its first bit departs, or nothing when so much waits for the port that the frame
    /// memory is full.
    pub(crate) fn cross(
        &mut self,
        now: Instant,
        port: PortNumber,
        length: usize,
    ) -> Option<Instant> {
        let ready = (now + self.wire.transit).max(self.paused_until[port.index()]);
        let front = &mut self.front[port.index()];
        if front.free_at.saturating_since(ready) > self.longest_wait {
            return None;
        }
        Some(front.send(ready, self.wire.front(length), self.wire.gap))
    }

    /// The CPU's MAC sends a pause frame at `now`, behind the frame that it is sending; gives the instant at which the
    /// integrated switch has it.
    pub(crate) fn send_pause_frame(&mut self, now: Instant) -> Instant {
        let duration = self.wire.pause_frame();
        self.inner.send_first(now, duration, self.wire.gap) + duration
    }

    /// A pause frame has arrived on `port` at `now`: frames that are not yet on their way out by it wait, until `quanta`
    /// have passed or another pause frame says otherwise.
    pub(crate) fn pause_port(&mut self, now: Instant, port: PortNumber, quanta: u16) {
        self.paused_until[port.index()] = now + self.wire.pause(u64::from(quanta));
    }
}
