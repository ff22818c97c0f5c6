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
//! In a large network each frame finds little of its board in the processor's cache. So a frame that passes the board in one
//! step leaves all counters alone: its way counts it in its own line of the cache, and the counters learn of it once the way
//! is forgotten, or when someone asks for them. Only the entries of other tables than the firmware's of OpenFlow 1.0 count
//! at once. And a driver that can say which frames begin in the same way, by a number, their likeness, saves the board the
//! reading: for each of some likenesses the board has the way once more, where the number says.

use crate::buffers::length_with_fcs;
use crate::cost::FrameTime;
use crate::event::{count, Counters};
use crate::hits::Hits;
use crate::outbox::Outbox;
use crate::port::{PortMask, PortNumber};
use crate::table::Uses;
use crate::time::Duration;

/// Maximum number of known ways, a power of two: each can be in one place only, which its frames' head determines.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 5;

/// For so many likenesses a board has the way once more; a power of two.
const LIKES: usize = 1 << LIKE_BITS;
const LIKE_BITS: u32 = 4;

/// What any table's search reads of a frame, if that carries an IPv4 packet without tags and options; other frames have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Addresses, type, length of the header, type of service, fragment offset, protocol and ports; with the protocol the
    /// frame's length and where it came in, once it has.
    words: [u64; 5],
}

impl Head {
    /// How much of a frame it is read from: up to the ports.
    pub const BYTES: usize = 38;
    /// The same as `==`, in a few instructions instead of a call for so few bytes.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        let words = self.words.iter().zip(&other.words);
        words.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }

    /// Reads a frame, without FCS, that has come in nowhere yet; nothing if the search reads something else of it.
    #[must_use]
    #[inline]
    pub fn read(frame: &[u8]) -> Option<Self> {
        const IPV4_WITHOUT_OPTIONS: u64 = 0x0800_0500;
        let head: &[u8; Self::BYTES] = frame.first_chunk()?;
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
                word(16) & 0xffff_00ff | (frame.len() as u64) << 32,
                word(24) & 0xffff_ffff_ffff,
                word(30),
            ],
        })
    }

    /// The same of a frame that has come in by this port.
    #[inline]
    pub(super) fn by(&self, in_port: PortNumber) -> Self {
        let mut words = self.words;
        words[2] |= u64::from(in_port.get()) << 8;
        Self { words }
    }

    /// Length of the frames that have it, without FCS.
    #[inline]
    const fn frame_bytes(&self) -> usize {
        (self.words[2] >> 32) as usize
    }

    /// The port by which they come in; nothing if no frame has it.
    const fn in_port(&self) -> Option<PortNumber> {
        PortNumber::new((self.words[2] >> 8) as u8)
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
    /// Frames that took it in one step, of which no counter knows yet.
    frames: u32,
}

/// Frames that took the same way in one step, of which no counter knows yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(super) searched: Searched,
    /// Of the only entry in the table of OpenFlow 1.0.
    pub(super) uses: Uses,
    examined: u16,
    pub(super) in_port: PortNumber,
    out_port: PortNumber,
}

impl Passed {
    /// How many frames.
    pub(super) fn frames(&self) -> u64 {
        self.uses.frames.into()
    }

    /// Bytes that they took on the wire, with FCS.
    fn wire_bytes(&self) -> u64 {
        self.frames() * length_with_fcs(self.uses.frame_bytes) as u64
    }

    /// Counts them where the board gives frames out.
    pub(super) fn count(&self, out: &mut Outbox) {
        self.add_to(&mut out.counters);
        let bytes = self.wire_bytes();
        count(&mut out.transmitted[self.out_port.index()], self.frames());
        count(
            &mut out.hardware[self.in_port.index()].received_bytes,
            bytes,
        );
        count(&mut out.hardware[self.out_port.index()].sent_bytes, bytes);
    }

    /// Adds them to the board's counters.
    pub(crate) fn add_to(&self, counters: &mut Counters) {
        let Counters {
            received,
            processed,
            searches,
            forwarded,
            entries_examined,
            ..
        } = counters;
        for counter in [received, processed, searches, forwarded] {
            count(counter, self.frames());
        }
        count(entries_examined, self.frames() * u64::from(self.examined));
    }
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
    /// `frames` of its frames, if there are any.
    fn passed(&self, frames: u32) -> Option<Passed> {
        if frames == 0 {
            return None;
        }
        Some(Passed {
            searched: self.way.searched,
            uses: Uses {
                entry: self.way.hits.only(),
                frames,
                frame_bytes: self.head.frame_bytes(),
            },
            examined: self.way.examined,
            in_port: self.head.in_port()?,
            out_port: self.way.ports.only()?,
        })
    }
}

/// The known way that frames of one likeness take, once more: it fills half a line of the processor's cache, which is found
/// without reading what they begin with.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Like {
    /// The likeness.
    number: u32,
    /// Nothing if this is empty.
    in_port: Option<PortNumber>,
    /// Where the way is known.
    place: Place,
    /// It counts its own frames.
    way: Way,
}

const _: () = assert!(size_of::<Like>() == 32);

impl Like {
    const NONE: Self = Self {
        number: 0,
        in_port: None,
        place: Place::NOWHERE,
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
}

/// The ways that are known.
#[derive(Debug)]
#[repr(C, align(64))] // what most frames need comes first
pub(super) struct Ways {
    /// Each where its likeness says.
    likes: [Like; LIKES],
    /// In the order in which they became known: most boards know few, which take little memory that way.
    known: Vec<Known>,
    /// For each place, the index of what is known there.
    places: [Place; PLACES],
}

/// Where a known way is, until the next one is learnt or all are forgotten.
#[derive(Clone, Copy, Debug)]
struct Place(u8);

impl Place {
    /// Behind all known ways.
    const NOWHERE: Self = Self(u8::MAX);

    #[inline(always)]
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a way was found, until the next one is learnt or all are forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found(Among);

#[derive(Clone, Copy, Debug)]
enum Among {
    Known(Place),
    Likes(u8),
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            likes: [Like::NONE; LIKES],
            known: Vec::new(),
            places: [Place::NOWHERE; PLACES],
        }
    }
}

impl Ways {
    /// The way of frames with this head, if it is known.
    #[inline(always)]
    pub(super) fn find(&self, head: &Head) -> Option<(Found, &Way)> {
        let (place, known) = self.find_known(head)?;
        Some((Found(Among::Known(place)), &known.way))
    }

    #[inline(always)]
    fn find_known(&self, head: &Head) -> Option<(Place, &Known)> {
        let place = self.places[head.place()];
        let known = self.known.get(place.index())?;
        known.head.is(head).then_some((place, known))
    }

    #[inline(always)]
    const fn like(likeness: u32) -> usize {
        // Neighbours stay neighbours, and multiples of the number of places do not meet.
        (likeness ^ likeness >> LIKE_BITS ^ likeness >> (2 * LIKE_BITS)) as usize % LIKES
    }

    /// The way of frames of this likeness that come in by this port, if it is known.
    #[inline(always)]
    pub(super) fn find_like(&self, likeness: u32, in_port: PortNumber) -> Option<(Found, &Way)> {
        let index = Self::like(likeness);
        let like = &self.likes[index];
        let is_it = like.number == likeness && like.in_port == Some(in_port);
        is_it.then_some((Found(Among::Likes(index as u8)), &like.way))
    }

    /// The way of frames with this head, which have this likeness, if it is known. From now on the likeness tells.
    pub(super) fn find_also_like(&mut self, head: &Head, likeness: u32) -> Option<(Found, &Way)> {
        let (place, known) = self.find_known(head)?;
        let new = Like {
            number: likeness,
            in_port: head.in_port(),
            place,
            way: Way {
                frames: 0,
                ..known.way
            },
        };
        let index = Self::like(likeness);
        self.settle(index);
        self.likes[index] = new;
        Some((Found(Among::Likes(index as u8)), &self.likes[index].way))
    }

    /// A frame takes this way in one step.
    #[inline(always)]
    pub(super) fn take(&mut self, found: Found) {
        let way = match found.0 {
            Among::Known(place) => self
                .known
                .get_mut(place.index())
                .map(|known| &mut known.way),
            Among::Likes(index) => self.likes.get_mut(index as usize).map(|like| &mut like.way),
        };
        if let Some(way) = way {
            way.frames += 1;
        }
    }

    /// The frames that one likeness has counted count for their known way.
    fn settle(&mut self, index: usize) {
        let like = &mut self.likes[index];
        let frames = std::mem::take(&mut like.way.frames);
        if let Some(known) = self.known.get_mut(like.place.index()) {
            known.way.frames += frames;
        }
    }

    /// All likenesses are forgotten.
    fn settle_all(&mut self) {
        for index in 0..LIKES {
            self.settle(index);
            self.likes[index] = Like::NONE;
        }
    }

    /// From now on frames with this head take this way. Gives what was left to count of the way that was in its place.
    #[inline]
    #[must_use]
    pub(super) fn learn(&mut self, head: Head, way: Way) -> Option<Passed> {
        let new = Known { head, way };
        let place = self.places[head.place()];
        if place.index() < self.known.len() {
            self.settle_all();
            let old = std::mem::replace(&mut self.known[place.index()], new);
            return old.passed(old.way.frames);
        }
        self.places[head.place()] = Place(self.known.len() as u8); // no more than there are places
        self.known.push(new);
        None
    }

    /// What is left to count.
    pub(super) fn passed(&self) -> impl Iterator<Item = Passed> + '_ {
        let known = self.known.iter();
        let known = known.filter_map(|known| known.passed(known.way.frames));
        let likes = self.likes.iter();
        let likes = likes.filter_map(|like| {
            let known = self.known.get(like.place.index())?;
            known.passed(like.way.frames)
        });
        known.chain(likes)
    }

    /// Forgets all ways, and gives what was left to count.
    pub(super) fn forget(&mut self) -> Vec<Passed> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let passed = self.passed().collect();
        self.likes = [Like::NONE; LIKES];
        self.known.clear();
        self.places = [Place::NOWHERE; PLACES];
        passed
    }
}

#[cfg(test)]
mod tests;
