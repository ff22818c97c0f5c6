//! Exact-match flow cache: the result of a table lookup, stored under the fields that the lookup read.
//!
//! Packets of a flow repeat, so most lookups are answered from the cache, in OpenFlow 1.0 and 1.3, with the firmware's
//! quirks or by the specification. Any event other than a forwarded frame invalidates the whole cache
//! ([`Agent::invalidate_flow_cache`](super::Agent::invalidate_flow_cache)).
//!
//! Only actions that depend on the key alone are cached. A meter's decision depends on earlier frames, so frames that
//! pass a meter take the slow path each time.
//!
//! A large simulated network leaves little of each board in the CPU cache. So the fast path does not touch the board's
//! counters: each entry counts its own hits, which are added to the counters on invalidation or when somebody reads
//! them ([`DeferredCounters`]). Only entries of tables other than the firmware's OpenFlow 1.0 table count at once.
//!
//! If the driver supplies a flow ID, the lookup skips parsing: a small direct-mapped table ([`HintEntry`]) holds copies
//! of cache entries, indexed by flow ID.

use crate::buffers::length_with_fcs;
use crate::cost::FrameTime;
use crate::event::{count, Counters};
use crate::outbox::Outbox;
use crate::port::{PortMask, PortNumber};
use crate::table::HitCount;
use crate::time::Duration;
use of_switch::MatchedEntries;

/// Number of buckets, a power of two. The cache is direct-mapped: the key selects the only possible bucket.
const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 5;

/// Number of entries in the hint table, a power of two.
const HINT_ENTRIES: usize = 1 << HINT_BITS;
const HINT_BITS: u32 = 4;

/// Fields of a frame that a table lookup reads. Only IPv4 packets without VLAN tag and IP options have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// MAC and IP addresses, EtherType, header length, type of service, fragment offset, protocol and ports, the
    /// frame's length, and the ingress port once it is known.
    words: [u64; 5],
}

impl FlowKey {
    /// Bytes of a frame that the key is read from: up to the transport ports.
    pub const BYTES: usize = 38;
    /// Same result as `==`, without a call to `memcmp`.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        let words = self.words.iter().zip(&other.words);
        words.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }

    /// Parses a frame without FCS; the ingress port is not set yet. Returns `None` if a lookup would read other fields
    /// of it.
    #[must_use]
    #[inline]
    pub fn read(frame: &[u8]) -> Option<Self> {
        const IPV4_WITHOUT_OPTIONS: u64 = 0x0800_0500;
        let key: &[u8; Self::BYTES] = frame.first_chunk()?;
        let word = |at: usize| {
            let bytes: &[u8; 8] = key[at..].first_chunk().unwrap_or(&[0; 8]);
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

    /// Returns the key with its ingress port set.
    #[inline]
    pub(super) fn with_port(&self, in_port: PortNumber) -> Self {
        let mut words = self.words;
        words[2] |= u64::from(in_port.get()) << 8;
        Self { words }
    }

    /// Returns the length of the frames with this key, without FCS.
    #[inline]
    const fn frame_bytes(&self) -> usize {
        (self.words[2] >> 32) as usize
    }

    /// Returns the ingress port, or `None` if it is not set.
    const fn in_port(&self) -> Option<PortNumber> {
        PortNumber::new((self.words[2] >> 8) as u8)
    }

    /// Returns the bucket of this key.
    #[inline]
    const fn bucket(&self) -> usize {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.words[3] ^ self.words[4].rotate_left(24)).wrapping_mul(FACTOR);
        (mixed >> (u64::BITS - BUCKET_BITS)) as usize
    }
}

/// When hits of a matched entry on the fast path are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HitCounting {
    /// With the deferred counters: the firmware's OpenFlow 1.0 table.
    Deferred,
    /// With each frame: all other tables.
    Immediate,
}

/// Cached lookup result: output to these ports, frame unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedAction {
    pub(super) counting: HitCounting,
    pub(super) matched: MatchedEntries,
    /// Entries that the lookup compares before it finds the match.
    pub(super) examined: u16,
    pub(crate) ports: PortMask,
    /// CPU time of each frame ([`FrameTime`]), in half the memory.
    work_ns: u32,
    busy_ns: u32,
    /// Hits on the fast path that no counter includes yet.
    frames: u32,
}

/// Hits of one cache entry on the fast path that no counter includes yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferredCounters {
    pub(super) counting: HitCounting,
    /// Hits of the matched entry; used for the firmware's OpenFlow 1.0 table.
    pub(super) hits: HitCount,
    examined: u16,
    pub(super) in_port: PortNumber,
    out_port: PortNumber,
}

impl DeferredCounters {
    /// Returns the number of frames.
    pub(super) fn frames(&self) -> u64 {
        self.hits.frames.into()
    }

    /// Returns the bytes on the wire, with FCS.
    fn wire_bytes(&self) -> u64 {
        self.frames() * length_with_fcs(self.hits.frame_bytes) as u64
    }

    /// Adds them to the counters of the board and its ports.
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

impl CachedAction {
    /// Creates an action. Returns `None` if a number exceeds its field, which no table and profile reaches.
    pub(super) fn new(
        counting: HitCounting,
        matched: MatchedEntries,
        examined: u64,
        ports: PortMask,
        time: FrameTime,
    ) -> Option<Self> {
        Some(Self {
            counting,
            matched,
            examined: examined.try_into().ok()?,
            ports,
            work_ns: time.work.as_nanos().try_into().ok()?,
            busy_ns: time.busy.as_nanos().try_into().ok()?,
            frames: 0,
        })
    }

    /// Returns the CPU time of each frame.
    #[inline(always)]
    pub(crate) const fn time(&self) -> FrameTime {
        FrameTime {
            work: Duration::from_nanos(self.work_ns as u64),
            busy: Duration::from_nanos(self.busy_ns as u64),
        }
    }
}

/// Entry of the cache; one cache line of the host's CPU.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct CacheEntry {
    key: FlowKey,
    action: CachedAction,
}

impl CacheEntry {
    /// Returns the counters of `frames` hits, or `None` for zero.
    fn deferred_counters(&self, frames: u32) -> Option<DeferredCounters> {
        if frames == 0 {
            return None;
        }
        Some(DeferredCounters {
            counting: self.action.counting,
            hits: HitCount {
                entry: self.action.matched.only(),
                frames,
                frame_bytes: self.key.frame_bytes(),
            },
            examined: self.action.examined,
            in_port: self.key.in_port()?,
            out_port: self.action.ports.only()?,
        })
    }
}

/// Copy of a cache entry, found by flow ID without reading the frame; half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct HintEntry {
    /// Flow ID.
    flow_id: u32,
    /// `None` if this entry is empty.
    in_port: Option<PortNumber>,
    /// Index of the cache entry.
    index: EntryIndex,
    /// Copy of the entry's action, with a hit count of its own.
    action: CachedAction,
}

const _: () = assert!(size_of::<HintEntry>() == 32);

impl HintEntry {
    const NONE: Self = Self {
        flow_id: 0,
        in_port: None,
        index: EntryIndex::EMPTY,
        action: CachedAction {
            counting: HitCounting::Deferred,
            matched: MatchedEntries::NONE,
            examined: 0,
            ports: PortMask::EMPTY,
            work_ns: 0,
            busy_ns: 0,
            frames: 0,
        },
    };
}

/// The flow cache of one board.
#[derive(Debug)]
#[repr(C, align(64))] // what most frames need comes first
pub(super) struct FlowCache {
    /// Direct-mapped by flow ID.
    hints: [HintEntry; HINT_ENTRIES],
    /// In order of insertion. Most boards see few flows, so this list stays short.
    entries: Vec<CacheEntry>,
    /// Index into `entries` of each bucket.
    buckets: [EntryIndex; BUCKETS],
}

/// Index of an entry, valid until the next insertion or invalidation.
#[derive(Clone, Copy, Debug)]
struct EntryIndex(u8);

impl EntryIndex {
    /// Empty bucket.
    const EMPTY: Self = Self(u8::MAX);

    #[inline(always)]
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Location of a hit, valid until the next insertion or invalidation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheSlot(SlotIndex);

#[derive(Clone, Copy, Debug)]
enum SlotIndex {
    Exact(EntryIndex),
    Hint(u8),
}

impl Default for FlowCache {
    fn default() -> Self {
        Self {
            hints: [HintEntry::NONE; HINT_ENTRIES],
            entries: Vec::new(),
            buckets: [EntryIndex::EMPTY; BUCKETS],
        }
    }
}

impl FlowCache {
    /// Looks up a key. Returns `None` on a miss.
    #[inline(always)]
    pub(super) fn lookup(&self, key: &FlowKey) -> Option<(CacheSlot, &CachedAction)> {
        let (index, entry) = self.lookup_entry(key)?;
        Some((CacheSlot(SlotIndex::Exact(index)), &entry.action))
    }

    #[inline(always)]
    fn lookup_entry(&self, key: &FlowKey) -> Option<(EntryIndex, &CacheEntry)> {
        let index = self.buckets[key.bucket()];
        let entry = self.entries.get(index.index())?;
        entry.key.is(key).then_some((index, entry))
    }

    #[inline(always)]
    const fn hint_index(flow_id: u32) -> usize {
        // Consecutive IDs do not collide, nor do multiples of the table's size.
        (flow_id ^ flow_id >> HINT_BITS ^ flow_id >> (2 * HINT_BITS)) as usize % HINT_ENTRIES
    }

    /// Looks up a flow ID. Returns `None` on a miss.
    #[inline(always)]
    pub(super) fn lookup_by_hint(
        &self,
        flow_id: u32,
        in_port: PortNumber,
    ) -> Option<(CacheSlot, &CachedAction)> {
        let index = Self::hint_index(flow_id);
        let hint = &self.hints[index];
        let is_it = hint.flow_id == flow_id && hint.in_port == Some(in_port);
        is_it.then_some((CacheSlot(SlotIndex::Hint(index as u8)), &hint.action))
    }

    /// Looks up a key and, on a hit, copies the entry into the hint table under this flow ID.
    pub(super) fn lookup_and_promote(
        &mut self,
        key: &FlowKey,
        flow_id: u32,
    ) -> Option<(CacheSlot, &CachedAction)> {
        let (index, entry) = self.lookup_entry(key)?;
        let new = HintEntry {
            flow_id,
            in_port: key.in_port(),
            index,
            action: CachedAction {
                frames: 0,
                ..entry.action
            },
        };
        let index = Self::hint_index(flow_id);
        self.flush_hint(index);
        self.hints[index] = new;
        Some((
            CacheSlot(SlotIndex::Hint(index as u8)),
            &self.hints[index].action,
        ))
    }

    /// Counts a frame that the fast path forwards.
    #[inline(always)]
    pub(super) fn record_hit(&mut self, slot: CacheSlot) {
        let action = match slot.0 {
            SlotIndex::Exact(index) => self
                .entries
                .get_mut(index.index())
                .map(|entry| &mut entry.action),
            SlotIndex::Hint(index) => self
                .hints
                .get_mut(index as usize)
                .map(|hint| &mut hint.action),
        };
        if let Some(action) = action {
            action.frames += 1;
        }
    }

    /// Adds the hits that a hint entry has counted to its cache entry.
    fn flush_hint(&mut self, index: usize) {
        let hint = &mut self.hints[index];
        let frames = std::mem::take(&mut hint.action.frames);
        if let Some(entry) = self.entries.get_mut(hint.index.index()) {
            entry.action.frames += frames;
        }
    }

    /// Flushes and empties the hint table.
    fn flush_hints(&mut self) {
        for index in 0..HINT_ENTRIES {
            self.flush_hint(index);
            self.hints[index] = HintEntry::NONE;
        }
    }

    /// Inserts an action. Returns the deferred counters of the entry that it evicts.
    #[inline]
    #[must_use]
    pub(super) fn insert(
        &mut self,
        key: FlowKey,
        action: CachedAction,
    ) -> Option<DeferredCounters> {
        let new = CacheEntry { key, action };
        let index = self.buckets[key.bucket()];
        if index.index() < self.entries.len() {
            self.flush_hints();
            let old = std::mem::replace(&mut self.entries[index.index()], new);
            return old.deferred_counters(old.action.frames);
        }
        self.buckets[key.bucket()] = EntryIndex(self.entries.len() as u8); // no more than there are places
        self.entries.push(new);
        None
    }

    /// Returns the deferred counters of all entries.
    pub(super) fn deferred_counters(&self) -> impl Iterator<Item = DeferredCounters> + '_ {
        let entries = self.entries.iter();
        let entries = entries.filter_map(|entry| entry.deferred_counters(entry.action.frames));
        let hints = self.hints.iter();
        let hints = hints.filter_map(|hint| {
            let entry = self.entries.get(hint.index.index())?;
            entry.deferred_counters(hint.action.frames)
        });
        entries.chain(hints)
    }

    /// Empties the cache. Returns the deferred counters of all entries.
    pub(super) fn invalidate(&mut self) -> Vec<DeferredCounters> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let deferred = self.deferred_counters().collect();
        self.hints = [HintEntry::NONE; HINT_ENTRIES];
        self.entries.clear();
        self.buckets = [EntryIndex::EMPTY; BUCKETS];
        deferred
    }
}

#[cfg(test)]
mod tests;
