//! What is on its way to a board or controller, by all of its cables.

use std::collections::VecDeque;

use zodiac_firmware::{is_pause_frame, Instant, KeptFrame};

use crate::device::board_port;
use crate::link::{End, Link};

/// What travels on a link.
#[derive(Debug)]
pub(crate) enum Cargo {
    /// A frame of a source, written out only when it arrives.
    Emission { source: u32, sequence: u32 },
    /// Any other frame.
    Bytes(Vec<u8>),
}

impl Cargo {
    /// The memory of a frame that nothing needs any more.
    #[inline]
    pub(crate) fn memory(self) -> Option<Vec<u8>> {
        match self {
            Self::Emission { .. } => None,
            Self::Bytes(data) => Some(data),
        }
    }
}

/// A frame on its way.
#[derive(Debug)]
pub(crate) struct Frame {
    /// When as much of it has arrived as its receiver waits for.
    pub(crate) arrival_ns: u64,
    /// The link that it travels on.
    pub(crate) link: u32,
    /// Its length, without frame check sequence.
    pub(crate) bytes: u32,
    /// Where the link leads.
    pub(crate) port: u8,
    /// Whether it asks its receiver for a pause, which begins as it arrives.
    pub(crate) is_pause: bool,
    pub(crate) cargo: Cargo,
}

impl Frame {
    /// What a board is to know of it while it is kept back.
    #[inline]
    pub(crate) fn kept(&self) -> KeptFrame {
        KeptFrame {
            arrival: Instant::from_nanos(self.arrival_ns),
            port: board_port(self.port),
            bytes: self.bytes as usize,
            is_pause: self.is_pause,
        }
    }

    #[inline]
    pub(crate) fn of_bytes(arrival_ns: u64, link: usize, end: End, data: Vec<u8>) -> Self {
        Self {
            arrival_ns,
            link: link as u32,
            bytes: data.len() as u32,
            port: end.port(),
            is_pause: is_pause_frame(&data),
            cargo: Cargo::Bytes(data),
        }
    }
}

#[derive(Debug)]
struct Coming {
    /// When it became the first on its link. Of frames that arrive at one instant, the one that has been so for longest counts
    /// as the first.
    first_since_ns: u64,
    frame: Frame,
}

impl Coming {
    #[inline]
    fn order(&self) -> (u64, u64) {
        (self.frame.arrival_ns, self.first_since_ns)
    }
}

/// Frames on their way to one receiver, in the order in which they arrive.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    coming: VecDeque<Coming>,
    /// How many of the first have arrived and wait until their receiver has time.
    waiting: usize,
}

impl Inbox {
    /// Adds a frame that sets out at `now_ns`; true if it is now the first of all that have yet to arrive. The frames of a
    /// link arrive in the order in which they set out.
    #[inline]
    pub(crate) fn push(&mut self, frame: Frame, link: &mut Link, now_ns: u64) -> bool {
        debug_assert!(link.last_arrival_ns <= frame.arrival_ns);
        let first_since_ns = now_ns.max(link.last_arrival_ns);
        link.last_arrival_ns = frame.arrival_ns;
        let coming = Coming {
            first_since_ns,
            frame,
        };
        let mut place = self.coming.len();
        // Nearly always behind all others.
        while place > 0 && self.coming[place - 1].order() > coming.order() {
            place -= 1;
        }
        if place == self.coming.len() {
            self.coming.push_back(coming);
        } else {
            self.coming.insert(place, coming);
        }
        place == self.waiting
    }

    /// The frame that arrives first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Frame> {
        self.coming.front().map(|coming| &coming.frame)
    }

    /// The first of those that have yet to arrive, if others wait already.
    #[inline]
    pub(crate) fn first_behind_waiting(&self) -> Option<&Frame> {
        let coming = (self.waiting > 0).then(|| self.coming.get(self.waiting))?;
        coming.map(|coming| &coming.frame)
    }

    /// The frames that have arrived by `now_ns`, in order.
    #[inline]
    pub(crate) fn all_arrived(&self, now_ns: u64) -> impl Iterator<Item = &Frame> {
        // Mostly one or two: an index is quicker than the queue's iterator, which looks first for where both of its halves end.
        let frames = (0..self.coming.len()).map(|index| &self.coming[index].frame);
        frames.take_while(move |frame| frame.arrival_ns <= now_ns)
    }

    /// Takes the frame that has arrived first; the others that have arrived by `now_ns` wait.
    #[inline]
    pub(crate) fn take_first(&mut self, now_ns: u64) -> Option<Frame> {
        let coming = self.coming.pop_front()?;
        self.waiting = self.all_arrived(now_ns).count();
        Some(coming.frame)
    }

    /// Takes the frame that arrives first if it has done so by `now_ns`, or waits already.
    #[inline]
    pub(crate) fn arrived(&mut self, now_ns: u64) -> Option<Frame> {
        if self.first()?.arrival_ns > now_ns && self.waiting == 0 {
            return None;
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.coming.pop_front().map(|coming| coming.frame)
    }

    /// The cable of a link is pulled out: what is on its way there is lost. Gives how many frames.
    pub(crate) fn cut(&mut self, link: u32) -> u64 {
        let before = self.coming.len();
        self.coming.retain(|coming| coming.frame.link != link);
        (before - self.coming.len()) as u64
    }

    /// How many frames are on their way.
    pub(crate) fn len(&self) -> usize {
        self.coming.len()
    }
}

#[cfg(test)]
mod tests;
