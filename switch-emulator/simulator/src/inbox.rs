//! Frames in flight to one board or controller, over all of its links.

use zodiac_firmware::{is_pause_frame, Deferrable, DeferredFrame, Instant};

use crate::device::board_port;
use crate::frame_arena::{FrameArena, FrameId};
use crate::link::{End, Link};

/// Payload of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Payload {
    /// A frame of a source, materialized only when it arrives.
    SourceFrame { source: u32, sequence: u32 },
    /// Any other frame; its bytes are in the network's arena.
    Bytes(FrameId),
}

/// A frame in flight; half a cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlightFrame {
    /// Arrival of as much of it as its receiver waits for.
    pub(crate) arrival_ns: u64,
    /// When it became the first frame on its link. Of frames that arrive at the same instant, the one that became first
    /// on its link the earliest goes first.
    head_of_line_ns: u64,
    /// Its source, or [`NO_SOURCE`](Self::NO_SOURCE).
    source: u32,
    /// Its sequence number, or its index in the arena.
    number: u32,
    /// Its link.
    pub(crate) link: u32,
    /// Its length, without frame check sequence.
    pub(crate) bytes: u16,
    /// Where the link leads.
    pub(crate) port: u8,
    /// Whether it asks its receiver for a pause, which begins as it arrives.
    pub(crate) is_pause: bool,
}

const _: () = assert!(size_of::<Option<InFlightFrame>>() == 32);

impl Deferrable for InFlightFrame {
    #[inline(always)]
    fn deferred(&self) -> DeferredFrame {
        DeferredFrame {
            arrival: Instant::from_nanos(self.arrival_ns),
            port: board_port(self.port),
            bytes: self.bytes.into(),
            is_pause: self.is_pause,
        }
    }
}

impl InFlightFrame {
    /// Marks a frame whose bytes are in the arena. There are fewer sources than this.
    const NO_SOURCE: u32 = u32::MAX;

    /// Creates a frame of `bytes` bytes, at most 65,535, that is not on a link yet.
    #[inline]
    pub(crate) fn new(payload: Payload, bytes: usize, is_pause: bool) -> Self {
        let (source, number) = match payload {
            Payload::SourceFrame { source, sequence } => (source, sequence),
            Payload::Bytes(id) => (Self::NO_SOURCE, id),
        };
        Self {
            arrival_ns: 0,
            head_of_line_ns: 0,
            source,
            number,
            link: 0,
            bytes: bytes as u16,
            port: 0,
            is_pause,
        }
    }

    /// Returns the payload.
    #[inline(always)]
    pub(crate) const fn payload(&self) -> Payload {
        match self.source {
            Self::NO_SOURCE => Payload::Bytes(self.number),
            source => Payload::SourceFrame {
                source,
                sequence: self.number,
            },
        }
    }

    /// Creates a frame whose bytes are in the arena.
    pub(crate) fn of_bytes(data: Vec<u8>, arena: &mut FrameArena) -> Self {
        let (bytes, is_pause) = (data.len(), is_pause_frame(&data));
        Self::new(Payload::Bytes(arena.insert(data)), bytes, is_pause)
    }

    #[inline]
    fn order(&self) -> (u64, u64) {
        (self.arrival_ns, self.head_of_line_ns)
    }

    /// Returns the frame on `link`.
    #[inline(always)]
    pub(crate) fn on_link(self, arrival_ns: u64, link: usize, end: End) -> Self {
        Self {
            arrival_ns,
            link: link as u32,
            port: end.port(),
            ..self
        }
    }
}

/// Frames in flight to one receiver, in order of arrival; one cache line.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// First frame. There is mostly one at a time, and the receiver's own memory is more likely to be in the CPU cache.
    first: Option<InFlightFrame>,
    /// Frames behind it: `gone` dead slots, then live frames. They are few, so a list beats a ring buffer; it is
    /// compacted every [`COMPACT_AFTER`] frames.
    behind: Vec<InFlightFrame>,
    gone: u32,
    /// Number of frames that have arrived and wait until their receiver has time.
    waiting: u32,
}

const _: () = assert!(size_of::<Inbox>() == 64);

/// Compacts the list after this many frames have gone.
const COMPACT_AFTER: u32 = 32;

impl Inbox {
    #[inline]
    fn rest(&self) -> &[InFlightFrame] {
        &self.behind[self.gone as usize..]
    }

    /// Adds a frame that is sent at `now_ns`. Returns whether it is now the first to arrive. The frames of a link
    /// arrive in the order in which they are sent.
    #[inline]
    pub(crate) fn push(&mut self, mut frame: InFlightFrame, link: &mut Link, now_ns: u64) -> bool {
        assert!(link.last_arrival_ns <= frame.arrival_ns);
        frame.head_of_line_ns = now_ns.max(link.last_arrival_ns);
        link.last_arrival_ns = frame.arrival_ns;
        self.insert(frame) == self.waiting as usize
    }

    /// Inserts a frame in order of arrival. Returns its position.
    #[inline(always)]
    fn insert(&mut self, mut frame: InFlightFrame) -> usize {
        let Some(first) = &mut self.first else {
            self.first = Some(frame);
            return 0;
        };
        let is_first = first.order() > frame.order();
        if is_first {
            std::mem::swap(first, &mut frame);
        }
        // Nearly always last.
        let mut place = self.behind.len();
        let gone = self.gone as usize;
        while place > gone && self.behind[place - 1].order() > frame.order() {
            place -= 1;
        }
        if place == self.behind.len() {
            self.behind.push(frame);
        } else {
            self.behind.insert(place, frame);
        }
        if is_first {
            0
        } else {
            place - gone + 1
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<InFlightFrame> {
        let frame = self.first?;
        self.first = self.behind.get(self.gone as usize).copied();
        if self.first.is_some() {
            self.gone += 1;
            if self.gone as usize == self.behind.len() {
                self.behind.clear();
                self.gone = 0;
            } else if self.gone == COMPACT_AFTER {
                self.behind.drain(..COMPACT_AFTER as usize);
                self.gone = 0;
            }
        }
        Some(frame)
    }

    /// Returns the frame that arrives first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&InFlightFrame> {
        self.first.as_ref()
    }

    /// Returns the first frame that has yet to arrive behind frames that wait; `None` if none waits.
    #[inline]
    pub(crate) fn first_pending(&self) -> Option<&InFlightFrame> {
        let place = self.waiting.checked_sub(1)?;
        self.rest().get(place as usize)
    }

    /// Returns the first frame that has arrived by `now_ns`, and those behind it, in order.
    #[inline(always)]
    pub(crate) fn arrived_by(&self, now_ns: u64) -> Option<(&InFlightFrame, &[InFlightFrame])> {
        let is_late = |frame: &InFlightFrame| frame.arrival_ns > now_ns;
        let first = self.first().filter(|first| !is_late(first))?;
        let behind = self.rest();
        let count = behind.iter().position(is_late).unwrap_or(behind.len());
        Some((first, &behind[..count]))
    }

    /// Removes the first frame; `waiting` frames behind it have arrived, too.
    #[inline(always)]
    pub(crate) fn pop_first(&mut self, waiting: usize) -> Option<InFlightFrame> {
        let frame = self.pop()?;
        self.waiting = waiting as u32;
        Some(frame)
    }

    /// Removes the first frame if it has arrived by `now_ns` or waits already.
    #[inline]
    pub(crate) fn pop_arrived(&mut self, now_ns: u64) -> Option<InFlightFrame> {
        if self.first()?.arrival_ns > now_ns && self.waiting == 0 {
            return None;
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.pop()
    }

    /// Drops the frames in flight on a link that goes down. Returns their number.
    pub(crate) fn drop_from_link(&mut self, link: u32, arena: &mut FrameArena) -> u64 {
        let before = self.len();
        let coming: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
        for frame in coming {
            if frame.link != link {
                self.insert(frame);
            } else if let Payload::Bytes(id) = frame.payload() {
                arena.remove(id);
            }
        }
        (before - self.len()) as u64
    }

    /// Returns the number of frames in flight.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest().len()
    }
}

#[cfg(test)]
mod tests;
