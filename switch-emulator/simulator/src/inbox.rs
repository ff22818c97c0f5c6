//! What is on its way to a board or controller, by all of its cables.

use std::collections::VecDeque;

use zodiac_firmware::is_pause_frame;

use crate::link::{End, Link};

/// What travels on a link.
#[derive(Debug)]
pub(crate) enum Cargo {
    /// A frame of a source, written out only when it arrives.
    Emission { source: u32, sequence: u32 },
    /// Any other frame.
    Bytes(Vec<u8>),
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
}

impl Inbox {
    /// Adds a frame that sets out at `now_ns`; true if it is now the first of all. The frames of a link arrive in the order in
    /// which they set out.
    #[inline]
    pub(crate) fn push(&mut self, frame: Frame, link: &mut Link, now_ns: u64) -> bool {
        debug_assert!(link.last_arrival_ns <= frame.arrival_ns);
        let first_since_ns = now_ns.max(link.last_arrival_ns);
        link.last_arrival_ns = frame.arrival_ns;
        let coming = Coming {
            first_since_ns,
            frame,
        };
        // Nearly always behind all others.
        let later = self.coming.iter().rev();
        let later = later.take_while(|other| other.order() > coming.order());
        let place = self.coming.len() - later.count();
        if place == self.coming.len() {
            self.coming.push_back(coming);
        } else {
            self.coming.insert(place, coming);
        }
        place == 0
    }

    /// The frame that arrives first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Frame> {
        self.coming.front().map(|coming| &coming.frame)
    }

    /// Takes the frame that arrives first if it has done so by `now_ns`.
    #[inline]
    pub(crate) fn arrived(&mut self, now_ns: u64) -> Option<Frame> {
        if self.first()?.arrival_ns > now_ns {
            return None;
        }
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
