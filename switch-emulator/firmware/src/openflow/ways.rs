//! Ways that the agent knows: what it did with a frame that begins with the same addresses, protocol and ports.
//!
//! Nearly all frames are like one that came shortly before, and take the same entry to the same port at the same cost. So
//! the agent looks the way up by what the search reads of a frame, instead of searching again. A way holds as long as
//! nothing but such frames comes: anything else that may change the agent makes it forget all of them
//! ([`Agent::forget_ways`](super::Agent::forget_ways)).

use crate::cost::FrameTime;
use crate::port::{PortMask, PortNumber};
use crate::time::Duration;

/// Maximum number of known ways, a power of two: each can be in one place only, which its frames' head determines.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 5;

/// How much of an IPv4 packet without tags and options the search reads: up to the ports.
const HEAD_BYTES: usize = 38;

/// What the search reads of a frame, if that carries an IPv4 packet without tags and options; other frames have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Addresses, type, length of the header, protocol and ports; with the protocol the frame's length and where it came in.
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
            // Type of service, lengths, identification, time to live and checksum are not read.
            words: [
                word(0),
                second & !0xff,
                word(16) & 0xff | u64::from(in_port.get()) << 8 | (frame.len() as u64) << 16,
                word(24) & 0xffff_ffff_ffff,
                word(30),
            ],
        })
    }

    /// The place of its way.
    #[inline]
    const fn place(&self) -> usize {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.words[3] ^ self.words[4].rotate_left(24)).wrapping_mul(FACTOR);
        (mixed >> (u64::BITS - PLACE_BITS)) as usize
    }
}

/// What becomes of frames with the same head: an entry sends them out of ports, unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(super) entry: u16,
    /// Entries that the board's search examines until it has found this one.
    pub(super) examined: u16,
    pub(crate) ports: PortMask,
    pub(crate) time: FrameTime,
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
            entry: 0,
            examined: 0,
            ports: PortMask::EMPTY,
            time: FrameTime {
                work: Duration::ZERO,
                busy: Duration::ZERO,
            },
        },
    };
}

/// The ways that are known.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// None, or all places.
    places: Vec<Known>,
}

impl Ways {
    #[inline(always)]
    pub(super) fn find(&self, head: &Head) -> Option<Way> {
        let known = self.places.get(head.place())?;
        known.head.is(head).then_some(known.way)
    }

    #[inline]
    pub(super) fn learn(&mut self, head: Head, way: Way) {
        self.places.resize(PLACES, Known::NOTHING);
        self.places[head.place()] = Known { head, way };
    }

    #[inline]
    pub(super) fn forget(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests;
