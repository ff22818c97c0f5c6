//! What is on its way to a board or controller, by all of its cables.

use zodiac_firmware::{is_pause_frame, Instant, Kept, KeptFrame};

use crate::device::board_port;
use crate::link::{End, Link};
use crate::store::{Place, Store};

/// What travels on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cargo {
    /// A frame of a source, written out only when it arrives.
    Emission { source: u32, sequence: u32 },
    /// Any other frame; its bytes are in the network's store.
    Bytes(Place),
}

/// A frame on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// When as much of it has arrived as its receiver waits for.
    pub(crate) arrival_ns: u64,
    /// When it became the first frame on its link. Of frames that arrive at the same instant, the one that became first on
    /// its link the earliest counts as the first.
    first_since_ns: u64,
    /// The link that it travels on.
    pub(crate) link: u32,
    /// Its length, without frame check sequence.
    pub(crate) bytes: u16,
    /// Where the link leads.
    pub(crate) port: u8,
    /// Whether it asks its receiver for a pause, which begins as it arrives.
    pub(crate) is_pause: bool,
    pub(crate) cargo: Cargo,
}

impl Kept for Frame {
    #[inline(always)]
    fn kept(&self) -> KeptFrame {
        KeptFrame {
            arrival: Instant::from_nanos(self.arrival_ns),
            port: board_port(self.port),
            bytes: self.bytes.into(),
            is_pause: self.is_pause,
        }
    }
}

impl Frame {
    /// A frame of `bytes` bytes, at most 65,535, that is not on its way yet.
    #[inline]
    pub(crate) fn new(cargo: Cargo, bytes: usize, is_pause: bool) -> Self {
        Self {
            arrival_ns: 0,
            first_since_ns: 0,
            link: 0,
            bytes: bytes as u16,
            port: 0,
            is_pause,
            cargo,
        }
    }

    /// As [`new`](Self::new), of bytes that are kept in `store` until they arrive.
    pub(crate) fn of_bytes(data: Vec<u8>, store: &mut Store) -> Self {
        let (bytes, is_pause) = (data.len(), is_pause_frame(&data));
        Self::new(Cargo::Bytes(store.keep(data)), bytes, is_pause)
    }

    #[inline]
    fn order(&self) -> (u64, u64) {
        (self.arrival_ns, self.first_since_ns)
    }

    /// The frame on its way by `link`.
    #[inline(always)]
    pub(crate) fn bound(self, arrival_ns: u64, link: usize, end: End) -> Self {
        Self {
            arrival_ns,
            link: link as u32,
            port: end.port(),
            ..self
        }
    }
}

/// Frames on their way to one receiver, in the order in which they arrive.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// First those already taken, then those on their way. There are few at a time, mostly one or two, so a list is quicker
    /// than a ring; now and then the frames on their way are moved to its beginning.
    frames: Vec<Frame>,
    taken: usize,
    /// How many of those on their way have arrived and wait until their receiver has time.
    waiting: usize,
}

/// After this many frames have been taken, those behind them are moved to the beginning.
const MOST_TAKEN: usize = 32;

impl Inbox {
    #[inline]
    fn coming(&self) -> &[Frame] {
        &self.frames[self.taken..]
    }

    /// Adds a frame that sets out at `now_ns`; true if it is now the first of all that have yet to arrive. The frames of a
    /// link arrive in the order in which they set out.
    #[inline]
    pub(crate) fn push(&mut self, mut frame: Frame, link: &mut Link, now_ns: u64) -> bool {
        debug_assert!(link.last_arrival_ns <= frame.arrival_ns);
        frame.first_since_ns = now_ns.max(link.last_arrival_ns);
        link.last_arrival_ns = frame.arrival_ns;
        // Nearly always behind all others.
        let mut place = self.frames.len();
        while place > self.taken && self.frames[place - 1].order() > frame.order() {
            place -= 1;
        }
        if place == self.frames.len() {
            self.frames.push(frame);
        } else {
            self.frames.insert(place, frame);
        }
        place == self.taken + self.waiting
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Frame> {
        let frame = *self.frames.get(self.taken)?;
        self.taken += 1;
        if self.taken == self.frames.len() {
            self.frames.clear();
            self.taken = 0;
        } else if self.taken == MOST_TAKEN {
            self.frames.drain(..MOST_TAKEN);
            self.taken = 0;
        }
        Some(frame)
    }

    /// The frame that arrives first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Frame> {
        self.coming().first()
    }

    /// The first of those that have yet to arrive, if others wait already.
    #[inline]
    pub(crate) fn first_behind_waiting(&self) -> Option<&Frame> {
        (self.waiting > 0).then(|| self.coming().get(self.waiting))?
    }

    /// The frames that have arrived by `now_ns`, in order.
    #[inline(always)]
    pub(crate) fn all_arrived(&self, now_ns: u64) -> &[Frame] {
        let coming = self.coming();
        let is_late = |frame: &Frame| frame.arrival_ns > now_ns;
        &coming[..coming.iter().position(is_late).unwrap_or(coming.len())]
    }

    /// Takes the frame that has arrived first; so many behind it have arrived, too, and wait.
    #[inline(always)]
    pub(crate) fn take_first(&mut self, waiting: usize) -> Option<Frame> {
        let frame = self.take()?;
        self.waiting = waiting;
        Some(frame)
    }

    /// Takes the frame that arrives first if it has done so by `now_ns`, or waits already.
    #[inline]
    pub(crate) fn arrived(&mut self, now_ns: u64) -> Option<Frame> {
        if self.first()?.arrival_ns > now_ns && self.waiting == 0 {
            return None;
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.take()
    }

    /// The cable of a link is pulled out: what is on its way there is lost. Gives how many frames.
    pub(crate) fn cut(&mut self, link: u32, store: &mut Store) -> u64 {
        self.frames.drain(..self.taken);
        self.taken = 0;
        let before = self.frames.len();
        self.frames.retain(|frame| {
            let is_lost = frame.link == link;
            if let (Cargo::Bytes(place), true) = (frame.cargo, is_lost) {
                store.take(place);
            }
            !is_lost
        });
        (before - self.frames.len()) as u64
    }

    /// How many frames are on their way.
    pub(crate) fn len(&self) -> usize {
        self.coming().len()
    }
}

#[cfg(test)]
mod tests;
