//! Fast path: forwards a frame through an idle board in one call.
//!
//! Most frames find the board idle and hit the flow cache. Their departure is known when their loop iteration begins,
//! so they skip the queues, and the driver need not copy their bytes. The result is the same as on the slow path,
//! counters included (`tests/deferred_frames.rs`).

use super::{Board, MAX_RECEIVED_BYTES, MIN_RECEIVED_BYTES};
use crate::buffers::{length_with_fcs, MIN_FRAME_BYTES};
use crate::integrated_switch::InnerLink;
use crate::loop_iteration::LoopIteration;
use crate::openflow::FlowKey;
use crate::outbox::MAX_SENT_BYTES;
use crate::port::PortNumber;
use crate::time::Instant;

/// A frame that the driver has not handed over yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredFrame {
    /// Instant at which its last bit has arrived.
    pub arrival: Instant,
    /// Port.
    pub port: PortNumber,
    /// Its length, without FCS.
    pub bytes: usize,
    /// Whether it is a [pause frame](crate::is_pause_frame).
    pub is_pause: bool,
}

/// A driver's own frame type.
pub trait Deferrable {
    /// Returns the properties that the board needs.
    fn deferred(&self) -> DeferredFrame;
}

impl Deferrable for DeferredFrame {
    #[inline]
    fn deferred(&self) -> DeferredFrame {
        *self
    }
}

/// Departure of a frame that the fast path has forwarded unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Instant at which the first bit of its preamble leaves.
    pub departs: Instant,
    /// Port.
    pub port: PortNumber,
}

impl Board {
    /// Tries to forward `first` on the fast path at `now`, the instant from [`deliver_by`](Self::deliver_by). Returns
    /// `None` and changes nothing if it needs the slow path; the driver then hands over `first` and the frames in
    /// `behind` with [`frame_owned`](Self::frame_owned).
    ///
    /// `key` computes the frame's flow key. It is not called if the driver passes a `flow_id` that the cache has seen:
    /// a number that only frames with this key have.
    ///
    /// `behind` are the frames that have arrived after `first` by `now`, in order. The driver keeps them until the
    /// first of them is due.
    pub fn forward_fast<F: Deferrable>(
        &mut self,
        now: Instant,
        first: &F,
        flow_id: Option<u32>,
        key: impl FnOnce() -> Option<FlowKey>,
        behind: &[F],
    ) -> Option<Forwarded> {
        let first = first.deferred();
        let is_idle = self.booted
            && !self.is_tracing
            && self.ring.is_empty()
            && self.ingress.is_empty()
            && self.out.is_empty()
            && !self.flow_control.is_paused();
        let is_usual = (MIN_FRAME_BYTES..=MAX_SENT_BYTES).contains(&first.bytes);
        if !is_idle || !is_usual || !self.can_defer(&first) {
            return None;
        }
        let (slot, action) = self.agent.lookup_cached(flow_id, key, first.port)?;
        let leaves_by = action.ports.only()?;
        let length = length_with_fcs(first.bytes);
        let mut link = self.ingress.link();
        let in_ring = self
            .ingress
            .predict_arrival(&mut link, first.arrival, length)?;
        if in_ring > self.next_event.other_at || self.main_loop.iteration_for(in_ring) != now {
            return None;
        }
        let units_behind = self.units_behind(now, link, behind)?;
        let units = self.ring.units_for(length) + units_behind;
        if self.ring.would_be_half_full(units_behind) || !self.ring.has_room_for(units) {
            return None;
        }

        let time = action.time();
        let departs = self.out.forward(now + time.work, leaves_by, length)?;
        self.ingress.commit_link(link);
        self.ring.record_peak(units);
        let mut iteration = LoopIteration::new(now, &mut self.out);
        self.agent
            .record_forwarded(slot, &action, first.bytes, &mut iteration);
        let only_forwarded = iteration.only_forwarded;
        self.main_loop.charge(now, time.busy);
        if only_forwarded {
            self.schedule_other();
        } else {
            self.schedule_next();
        }
        Some(Forwarded {
            departs,
            port: leaves_by,
        })
    }

    /// Returns the ring units that the frames in `behind` occupy at `now` if the link to the CPU is in state `link`.
    /// Returns `None` if one of them has to be handed over first.
    #[inline(always)]
    fn units_behind(
        &self,
        now: Instant,
        mut link: InnerLink,
        behind: &[impl Deferrable],
    ) -> Option<u32> {
        let mut units = 0;
        for frame in behind {
            let frame = frame.deferred();
            let length = length_with_fcs(frame.bytes);
            let in_ring = self
                .ingress
                .predict_arrival(&mut link, frame.arrival, length)?;
            if !self.can_defer(&frame) {
                return None;
            }
            if in_ring <= now {
                units += self.ring.units_for(length);
            }
        }
        Some(units)
    }

    /// Returns whether the driver may defer this frame.
    #[must_use]
    #[inline(always)]
    pub fn can_defer(&self, frame: &DeferredFrame) -> bool {
        !frame.is_pause
            && (MIN_RECEIVED_BYTES..=MAX_RECEIVED_BYTES).contains(&frame.bytes)
            && self.agent.handles(frame.port)
            && !self.is_native(frame.port)
    }
}
