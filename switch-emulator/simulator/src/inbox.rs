//! What is on its way to a board or controller, by all of its cables.

use zodiac_firmware::{is_pause_frame, Deferrable, DeferredFrame, Instant};

use crate::device::board_port;
use crate::frame_arena::{FrameArena, FrameId};
use crate::link::{End, Link};

/// What travels on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Payload {
    /// A frame of a source, written out only when it arrives.
    SourceFrame { source: u32, sequence: u32 },
    /// Any other frame; its bytes are in the network's store.
    Bytes(FrameId),
}

/// A frame on its way, in half a line of the processor's cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlightFrame {
    /// When as much of it has arrived as its receiver waits for.
    pub(crate) arrival_ns: u64,
    /// When it became the first frame on its link. Of frames that arrive at the same instant, the one that became first on
    /// its link the earliest counts as the first.
    head_of_line_ns: u64,
    /// The source that sent it, or [`NO_SOURCE`](Self::NO_SOURCE).
    source: u32,
    /// Its sequence number, or where its bytes are kept.
    number: u32,
    /// The link that it travels on.
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
    /// In place of a source: the frame's bytes are in the network's store. There are fewer sources than timers, and fewer
    /// timers than this.
    const NO_SOURCE: u32 = u32::MAX;

    /// A frame of `bytes` bytes, at most 65,535, that is not on its way yet.
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

    /// What travels.
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

    /// As [`new`](Self::new), of bytes that are kept in `arena` until they arrive.
    pub(crate) fn of_bytes(data: Vec<u8>, arena: &mut FrameArena) -> Self {
        let (bytes, is_pause) = (data.len(), is_pause_frame(&data));
        Self::new(Payload::Bytes(arena.insert(data)), bytes, is_pause)
    }

    #[inline]
    fn order(&self) -> (u64, u64) {
        (self.arrival_ns, self.head_of_line_ns)
    }

    /// The frame on its way by `link`.
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

/// Frames on their way to one receiver, in the order in which they arrive. It fills a line of the processor's cache.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// There is mostly one at a time. It lies here, as a receiver's own memory is sooner in the processor's cache than
    /// memory elsewhere.
    first: Option<InFlightFrame>,
    /// Those behind it: first such as were there before, then those on their way. There are few, so a list is quicker than
    /// a ring; now and then the frames on their way are moved to its beginning.
    behind: Vec<InFlightFrame>,
    gone: u32,
    /// How many of those on their way have arrived and wait until their receiver has time.
    waiting: u32,
}

const _: () = assert!(size_of::<Inbox>() == 64);

/// After this many frames have gone from the list, those behind them are moved to its beginning.
const COMPACT_AFTER: u32 = 32;

impl Inbox {
    #[inline]
    fn rest(&self) -> &[InFlightFrame] {
        &self.behind[self.gone as usize..]
    }

    /// Adds a frame that sets out at `now_ns`; true if it is now the first of all that have yet to arrive. The frames of a
    /// link arrive in the order in which they set out.
    #[inline]
    pub(crate) fn push(&mut self, mut frame: InFlightFrame, link: &mut Link, now_ns: u64) -> bool {
        debug_assert!(link.last_arrival_ns <= frame.arrival_ns);
        frame.head_of_line_ns = now_ns.max(link.last_arrival_ns);
        link.last_arrival_ns = frame.arrival_ns;
        self.insert(frame) == self.waiting as usize
    }

    /// Puts a frame into its place, and says which one that is.
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
        // Nearly always behind all others.
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

    /// The frame that arrives first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&InFlightFrame> {
        self.first.as_ref()
    }

    /// The first of those that have yet to arrive, if others wait already.
    #[inline]
    pub(crate) fn first_pending(&self) -> Option<&InFlightFrame> {
        let place = self.waiting.checked_sub(1)?;
        self.rest().get(place as usize)
    }

    /// The frame that has arrived first by `now_ns`, and those that have behind it, in order.
    #[inline(always)]
    pub(crate) fn arrived_by(&self, now_ns: u64) -> Option<(&InFlightFrame, &[InFlightFrame])> {
        let is_late = |frame: &InFlightFrame| frame.arrival_ns > now_ns;
        let first = self.first().filter(|first| !is_late(first))?;
        let behind = self.rest();
        let count = behind.iter().position(is_late).unwrap_or(behind.len());
        Some((first, &behind[..count]))
    }

    /// Takes the frame that has arrived first; so many behind it have arrived, too, and wait.
    #[inline(always)]
    pub(crate) fn pop_first(&mut self, waiting: usize) -> Option<InFlightFrame> {
        let frame = self.pop()?;
        self.waiting = waiting as u32;
        Some(frame)
    }

    /// Takes the frame that arrives first if it has done so by `now_ns`, or waits already.
    #[inline]
    pub(crate) fn pop_arrived(&mut self, now_ns: u64) -> Option<InFlightFrame> {
        if self.first()?.arrival_ns > now_ns && self.waiting == 0 {
            return None;
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.pop()
    }

    /// The cable of a link is pulled out: what is on its way there is lost. Gives how many frames.
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

    /// How many frames are on their way.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest().len()
    }
}

#[cfg(test)]
mod tests;
