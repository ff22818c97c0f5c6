//! Frames that come to an idle board: they pass it in one step.
//!
//! Most frames come to a board that waits for them, and are like one that came before. What becomes of such a frame is
//! known when its pass of the main loop begins: it need not go through the queues, and the driver need not even make a copy
//! of its bytes for the board. All that the longer way counts and remembers is the same afterwards (`tests/kept_back.rs`).

use super::{Board, MAX_RECEIVED_BYTES, MIN_RECEIVED_BYTES};
use crate::buffers::{length_with_fcs, MIN_FRAME_BYTES};
use crate::integrated_switch::Link;
use crate::openflow::Head;
use crate::outbox::MAX_SENT_BYTES;
use crate::pass::Pass;
use crate::port::PortNumber;
use crate::time::Instant;

/// A frame that a driver keeps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptFrame {
    /// When it has completely arrived.
    pub arrival: Instant,
    /// Where.
    pub port: PortNumber,
    /// Its length, without FCS.
    pub bytes: usize,
    /// Whether it is a [pause frame](crate::is_pause_frame).
    pub is_pause: bool,
}

/// A driver's own frame, of which the board asks only what it needs to know.
pub trait Kept {
    /// What a board needs to know about it while it is kept back.
    fn kept(&self) -> KeptFrame;
}

impl Kept for KeptFrame {
    #[inline]
    fn kept(&self) -> KeptFrame {
        *self
    }
}

/// What became of a frame that has passed a board in one step: it leaves unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When the first bit of its preamble leaves.
    pub departs: Instant,
    /// Where.
    pub port: PortNumber,
}

impl Board {
    /// Lets the frame `first` pass the board at `now`, when it is [due](Self::due_with), if that is all there is to do;
    /// otherwise does nothing, and the driver gives it, and those in `behind`, with [`frame_owned`](Self::frame_owned).
    ///
    /// `head` is what it begins with: a driver may know that without having the frame's bytes at hand. It is not even asked
    /// if the driver gives a `likeness`, a number that only frames with the same head have, and frames of that number have
    /// passed before.
    ///
    /// `behind` are the frames that have arrived until now after it, in order. The driver keeps them still, until the first of
    /// them is due.
    pub fn pass_on<F: Kept>(
        &mut self,
        now: Instant,
        first: &F,
        likeness: Option<u32>,
        head: impl FnOnce() -> Option<Head>,
        behind: &[F],
    ) -> Option<Passage> {
        let first = first.kept();
        let is_idle = self.booted
            && !self.is_tracing
            && self.ring.is_empty()
            && self.ingress.is_empty()
            && self.out.is_empty()
            && !self.flow_control.is_paused();
        let is_usual = (MIN_FRAME_BYTES..=MAX_SENT_BYTES).contains(&first.bytes);
        if !is_idle || !is_usual || !self.keeps(&first) {
            return None;
        }
        let (found, way) = self.agent.known_way(likeness, head, first.port)?;
        let leaves_by = way.ports.only()?;
        let length = length_with_fcs(first.bytes);
        let mut link = self.ingress.link();
        let in_ring = self.ingress.foresee(&mut link, first.arrival, length)?;
        if in_ring > self.plan.otherwise_at || self.main_loop.pass_for(in_ring) != now {
            return None;
        }
        let units_behind = self.units_behind(now, link, behind)?;
        let units = self.ring.units_for(length) + units_behind;
        if self.ring.fills_with(units_behind) || !self.ring.has_room_for(units) {
            return None;
        }

        let time = way.time();
        let departs = self.out.relay(now + time.work, leaves_by, length)?;
        self.ingress.passed(link);
        self.ring.passed(units);
        let mut pass = Pass::new(now, &mut self.out);
        self.agent.pass_on(found, &way, first.bytes, &mut pass);
        let only_forwarded = pass.has_only_forwarded;
        self.main_loop.worked(now, time.busy);
        if only_forwarded {
            self.plan_otherwise();
        } else {
            self.plan();
        }
        Some(Passage {
            departs,
            port: leaves_by,
        })
    }

    /// Units of the ring that the frames `behind` another one use at `now`, if that one leaves the link to the CPU as `link`
    /// is; nothing if one of them has to be given to the board first.
    #[inline(always)]
    fn units_behind(&self, now: Instant, mut link: Link, behind: &[impl Kept]) -> Option<u32> {
        let mut units = 0;
        for frame in behind {
            let frame = frame.kept();
            let length = length_with_fcs(frame.bytes);
            let in_ring = self.ingress.foresee(&mut link, frame.arrival, length)?;
            if !self.keeps(&frame) {
                return None;
            }
            if in_ring <= now {
                units += self.ring.units_for(length);
            }
        }
        Some(units)
    }

    /// Whether a driver may keep this frame back.
    #[must_use]
    #[inline(always)]
    pub fn keeps(&self, frame: &KeptFrame) -> bool {
        !frame.is_pause
            && (MIN_RECEIVED_BYTES..=MAX_RECEIVED_BYTES).contains(&frame.bytes)
            && self.agent.handles(frame.port)
            && !self.is_native(frame.port)
    }
}
