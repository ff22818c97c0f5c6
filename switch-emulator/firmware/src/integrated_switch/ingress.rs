//! From the front ports to the receive ring of the CPU's MAC.

use std::collections::VecDeque;

use super::wire::{InnerLink, Wire};
use crate::buffers::{length_with_fcs, ReceivedFrame};
use crate::profile::Profile;
use crate::time::{Duration, Instant};

/// From the front ports to the CPU's receive ring.
#[derive(Debug)]
#[repr(C)] // what each frame needs comes first, as in the board
pub(crate) struct Ingress {
    /// Frames on their way to the ring, with the instants at which they will arrive there, in order.
    under_way: VecDeque<ReceivedFrame>,
    inner: InnerLink,
    /// Size of the frame memory, as time on the link to the CPU.
    longest_wait: Duration,
    /// Until when the last pause lasts that the CPU's MAC has asked for.
    paused_until: Instant,
    wire: Wire,
    /// From when on no frame begins during that pause.
    paused_from: Instant,
    /// Frames that are held while paused.
    held_frames: usize,
    /// How long a frame that cannot go on to the paused CPU takes up room, in thousandths of its frame time.
    discard_permille: u64,
    room_free_at: Instant,
}

impl Ingress {
    pub(crate) fn new(wire: Wire, profile: &Profile) -> Self {
        let flow_control = &profile.flow_control;
        Self {
            wire,
            inner: InnerLink::default(),
            longest_wait: wire.bytes(profile.integrated_switch.buffer_bytes),
            under_way: VecDeque::new(),
            paused_from: Instant::ZERO,
            paused_until: Instant::ZERO,
            held_frames: usize::try_from(flow_control.held_frames).unwrap_or(usize::MAX),
            discard_permille: flow_control.discard_permille,
            room_free_at: Instant::ZERO,
        }
    }

    /// A frame of the controller has arrived at a native port at `now`. Returns the instant at which it has arrived in
    /// the ring. It is never lost, since TCP would send it again, and never held by a pause.
    #[inline]
    pub(crate) fn carry(&mut self, now: Instant, length: usize) -> Instant {
        let duration = self.wire.inner(length);
        let ready = now + self.wire.transit();
        if self.is_paused(ready) {
            // The link is idle, whatever waits for the end of the pause.
            return ready + duration;
        }
        self.inner.send(ready, duration, self.wire.gap()) + duration
    }

    /// The frame arrived at its front port at `frame.at` and goes on to the ring. It comes back when there is no room:
    /// when frames wait for the link longer than the frame memory lasts, or for the end of a pause.
    #[inline]
    pub(crate) fn admit(&mut self, mut frame: ReceivedFrame) -> Result<(), ReceivedFrame> {
        let length = length_with_fcs(frame.data.len());
        let mut ready = frame.at + self.wire.transit();
        if self.is_paused(ready) {
            if self.held() >= self.held_frames {
                self.discard(frame.at, length);
                return Err(frame);
            }
            ready = self.paused_until;
        } else if self.inner.free_at.saturating_since(ready) > self.longest_wait {
            return Err(frame);
        }
        let duration = self.wire.inner(length);
        frame.at = self.inner.send(ready, duration, self.wire.gap()) + duration;
        self.under_way.push_back(frame);
        Ok(())
    }

    /// Returns when a frame of `length` bytes that arrives at its port at `at` can at the earliest be in the ring.
    #[inline]
    pub(crate) fn earliest(&self, at: Instant, length: usize) -> Instant {
        (at + self.wire.transit()).max(self.inner.free_at) + self.wire.inner(length)
    }

    /// Returns a copy of the link to the CPU, for predictions.
    #[inline]
    pub(crate) const fn link(&self) -> InnerLink {
        self.inner
    }

    /// Returns when a frame of `length` bytes that arrives at its port at `at` is in the ring, over `link`. Returns
    /// `None` if it may be lost or held.
    #[inline(always)]
    pub(crate) fn predict_arrival(
        &self,
        link: &mut InnerLink,
        at: Instant,
        length: usize,
    ) -> Option<Instant> {
        let ready = at + self.wire.transit();
        let is_free =
            ready >= self.paused_until && link.free_at.saturating_since(ready) <= self.longest_wait;
        let duration = self.wire.inner(length);
        is_free.then(|| link.send(ready, duration, self.wire.gap()) + duration)
    }

    /// Commits predicted arrivals: the link to the CPU is then in state `link`.
    #[inline]
    pub(crate) fn commit_link(&mut self, link: InnerLink) {
        self.inner = link;
    }

    /// Returns whether no frame is on its way to the ring.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns when the next frame arrives in the ring.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.under_way.front().map(|frame| frame.at)
    }

    /// The next frame that has arrived in the ring until `now`, this instant included.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<ReceivedFrame> {
        if self.next_at()? > now {
            return None;
        }
        self.under_way.pop_front()
    }

    /// A pause frame of the CPU's MAC arrives at `from`: no frame for the CPU begins from then on for so many quanta,
    /// or until [`resume`](Self::resume). Returns the end of these quanta.
    pub(crate) fn pause(&mut self, from: Instant, quanta: u64) -> Instant {
        self.paused_from = from;
        self.paused_until = from + self.wire.pause(quanta);
        self.postpone(self.paused_until);
        self.paused_until
    }

    /// A pause frame without quanta arrives at `at`: the pause is over.
    pub(crate) fn resume(&mut self, at: Instant) {
        if at < self.paused_until {
            self.paused_until = at;
            self.postpone(at);
        }
    }

    /// Returns from when on there is room for a frame that comes back from the CPU.
    pub(crate) const fn room_free_at(&self) -> Instant {
        self.room_free_at
    }

    /// Returns whether a frame that is ready at this instant has to wait for the end of a pause.
    #[inline]
    fn is_paused(&self, ready: Instant) -> bool {
        ready < self.paused_until && ready.max(self.inner.free_at) >= self.paused_from
    }

    /// Frames that wait for the end of the pause.
    fn held(&self) -> usize {
        let begins_behind = |frame: &&ReceivedFrame| self.begins(frame) >= self.paused_until;
        self.under_way
            .iter()
            .rev()
            .take_while(begins_behind)
            .count()
    }

    /// A frame that cannot go on is thrown away, but first it has taken up room.
    fn discard(&mut self, now: Instant, length: usize) {
        let frame_time = self.wire.front(length) + self.wire.transit();
        let kept = frame_time.as_nanos() * self.discard_permille / 1_000;
        self.room_free_at = self.room_free_at.max(now + Duration::from_nanos(kept));
    }

    /// Lets the frames that would begin during the pause begin at `until`, one after the other.
    fn postpone(&mut self, until: Instant) {
        let from = self.paused_from;
        let mut frames = std::mem::take(&mut self.under_way);
        let first = frames.partition_point(|frame| self.begins(frame) < from);
        if first < frames.len() {
            self.inner.free_at = match first.checked_sub(1) {
                Some(last) => frames[last].at + self.wire.gap(),
                None => Instant::ZERO,
            };
            for frame in frames.range_mut(first..) {
                let duration = self.wire.inner(length_with_fcs(frame.data.len()));
                frame.at = self.inner.send(until, duration, self.wire.gap()) + duration;
            }
        }
        self.under_way = frames;
    }

    /// Returns when the frame begins on the link to the CPU.
    fn begins(&self, frame: &ReceivedFrame) -> Instant {
        let duration = self.wire.inner(length_with_fcs(frame.data.len()));
        Instant::from_nanos(frame.at.as_nanos() - duration.as_nanos())
    }
}
