//! Ways that the agent knows: what it did with a frame that begins with the same addresses, protocol and ports.
//!
//! Nearly all frames are like one that came shortly before, and take the same entries to the same port at the same cost. So
//! the agent looks the way up by what the search reads of a frame, instead of searching again, in OpenFlow 1.0 and 1.3, and
//! as the firmware or the specification has it. A way holds as long as nothing but such frames comes: anything else that
//! may change the agent makes it forget all of them ([`Agent::forget_ways`](super::Agent::forget_ways)).
//!
//! Only what the head of a frame decides alone can be such a way. What a meter lets pass depends on the frames before; so a
//! frame that passes one is searched for each time.
//!
//! In a large network each frame finds little of its board in the processor's cache. So a frame that takes a known way in
//! the firmware's table of OpenFlow 1.0 leaves the entry alone: the way counts such frames in its own line of the cache, and
//! the table counts them for the entry once the way is forgotten. In other tables the entries count at once.

use crate::cost::FrameTime;
use crate::hits::Hits;
use crate::port::{PortMask, PortNumber};
use crate::table::Uses;
use crate::time::Duration;

/// Maximum number of known ways, a power of two: each can be in one place only, which its frames' head determines.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 5;

/// How much of an IPv4 packet without tags and options a search reads: up to the ports.
const HEAD_BYTES: usize = 38;

/// What any table's search reads of a frame, if that carries an IPv4 packet without tags and options; other frames have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Addresses, type, length of the header, type of service, fragment offset, protocol and ports; with the protocol the
    /// frame's length and where it came in.
    words: [u64; 5],
}

impl Head {
    /// No frame has it.
    const NONE: Self = Self { words: [0; 5] };

    /// The same as `==`, in a few instructions instead of a call for so few bytes.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        let words = self.words.iter().zip(&other.words);
        words.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }

    /// Reads a frame; nothing if the search reads something else of it.
    #[inline]
    pub(super) fn read(frame: &[u8], in_port: PortNumber) -> Option<Self> {
        const IPV4_WITHOUT_OPTIONS: u64 = 0x0800_0500;
        let head: &[u8; HEAD_BYTES] = frame.first_chunk()?;
        let word = |at: usize| {
            let bytes: &[u8; 8] = head[at..].first_chunk().unwrap_or(&[0; 8]);
            u64::from_be_bytes(*bytes)
        };
        let second = word(8);
        (second & 0xffff_0f00 == IPV4_WITHOUT_OPTIONS).then(|| Self {
            // Length and identification of the packet, time to live and checksum are not read.
            words: [
                word(0),
                second,
                word(16) & 0xffff_00ff | u64::from(in_port.get()) << 8 | (frame.len() as u64) << 32,
                word(24) & 0xffff_ffff_ffff,
                word(30),
            ],
        })
    }

    /// Length of the frames that have it, without FCS.
    #[inline]
    const fn frame_bytes(&self) -> usize {
        (self.words[2] >> 32) as usize
    }

    /// The place of its way.
    #[inline]
    const fn place(&self) -> usize {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.words[3] ^ self.words[4].rotate_left(24)).wrapping_mul(FACTOR);
        (mixed >> (u64::BITS - PLACE_BITS)) as usize
    }
}

/// The tables in which frames are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Searched {
    /// That of OpenFlow 1.0.
    Table,
    /// The same as the specification has it.
    StandardTable,
    /// Those of OpenFlow 1.3.
    Tables13,
    /// The same as the specification has them.
    StandardTables13,
}

/// What becomes of frames with the same head: entries send them out of ports, unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(super) searched: Searched,
    pub(super) hits: Hits,
    /// Entries that the board's search examines until it has found these.
    pub(super) examined: u16,
    pub(crate) ports: PortMask,
    /// The [`FrameTime`] of each of its frames, in half the memory.
    work_ns: u32,
    busy_ns: u32,
    /// Frames that took it since it is known, of which its entry does not know yet.
    frames: u32,
}

impl Way {
    /// Nothing if its numbers are larger than those of any table and profile.
    pub(super) fn new(
        searched: Searched,
        hits: Hits,
        examined: u64,
        ports: PortMask,
        time: FrameTime,
    ) -> Option<Self> {
        Some(Self {
            searched,
            hits,
            examined: examined.try_into().ok()?,
            ports,
            work_ns: time.work.as_nanos().try_into().ok()?,
            busy_ns: time.busy.as_nanos().try_into().ok()?,
            frames: 0,
        })
    }

    /// What each of its frames takes of the CPU.
    #[inline(always)]
    pub(crate) const fn time(&self) -> FrameTime {
        FrameTime {
            work: Duration::from_nanos(self.work_ns as u64),
            busy: Duration::from_nanos(self.busy_ns as u64),
        }
    }
}

/// A way that is known. It fills a line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Known {
    head: Head,
    way: Way,
}

impl Known {
    const NOTHING: Self = Self {
        head: Head::NONE,
        way: Way {
            searched: Searched::Table,
            hits: Hits::NONE,
            examined: 0,
            ports: PortMask::EMPTY,
            work_ns: 0,
            busy_ns: 0,
            frames: 0,
        },
    };

    /// What its entry does not know yet.
    const fn uses(&self) -> Uses {
        Uses {
            entry: self.way.hits.only(),
            frames: self.way.frames,
            frame_bytes: self.head.frame_bytes(),
        }
    }
}

/// The ways that are known.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// None, or all places.
    places: Vec<Known>,
}

/// Where a known way is, until the next one is learnt or all are forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u8);

impl Ways {
    /// The way of frames with this head, if it is known.
    #[inline(always)]
    pub(super) fn find(&self, head: &Head) -> Option<(Place, &Way)> {
        let place = head.place();
        let known = self.places.get(place)?;
        known
            .head
            .is(head)
            .then_some((Place(place as u8), &known.way))
    }

    /// A frame takes this way.
    #[inline(always)]
    pub(super) fn take(&mut self, place: Place) {
        if let Some(known) = self.places.get_mut(usize::from(place.0)) {
            known.way.frames += 1;
        }
    }

    /// From now on frames with this head take this way. Gives what was left to count of the way that was in its place.
    #[inline]
    #[must_use]
    pub(super) fn learn(&mut self, head: Head, way: Way) -> Uses {
        self.places.resize(PLACES, Known::NOTHING);
        let known = Known { head, way };
        std::mem::replace(&mut self.places[head.place()], known).uses()
    }

    /// What is left to count.
    pub(super) fn uses(&self) -> impl Iterator<Item = Uses> + '_ {
        let used = self.places.iter().filter(|known| known.way.frames > 0);
        used.map(Known::uses)
    }

    #[inline]
    pub(super) fn forget(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests;
