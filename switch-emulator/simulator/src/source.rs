//! Sources: bursts at random instants, through a queue and a token bucket, onto the host's line.

use crate::bucket::TokenBucket;
use crate::error::Error;
use crate::link::{size_on_wire, Timing};
use crate::random::Stream;

/// Bytes of a frame that identify it: flow and sequence number, 32 bits each, most significant first.
const IDENTITY_BYTES: usize = 8;
/// Longest frame without its frame check sequence: a VLAN-tagged Ethernet frame.
const MAX_FRAME_BYTES: usize = 1518;

/// What a source sends (section 6.1 of the paper, "Traffic Generation": mgen and tc's token bucket).
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// Identifier of the flow, unique in the network; the four bytes before `sequence_offset` carry it.
    pub flow: u32,
    /// The frame, without frame check sequence. Flow and sequence number are written over it; a checksum in
    /// it is left as it is.
    pub frame: Vec<u8>,
    /// Where in the frame the 32-bit sequence number stands.
    pub sequence_offset: usize,
    /// Rate of the token bucket in bit/s, counting whole frames with their frame check sequence.
    pub shaper_rate_bps: f64,
    /// Depth of the token bucket in bytes; at least one frame.
    pub shaper_burst_bytes: f64,
    /// Mean rate in bit/s at which frames are offered to the shaper's queue.
    pub offered_rate_bps: f64,
    /// Length of a burst in bytes: as many whole frames as fit, at least one.
    pub burst_bytes: f64,
    /// The shaper's queue in bytes; a frame that does not fit is dropped at the sender.
    pub queue_bytes: f64,
    /// Whether the result has a row for each packet of this flow.
    pub observed: bool,
    /// The host to which the flow belongs; delivery to any other counts as misdelivered. `None`: any host but
    /// the sender.
    pub destination: Option<String>,
}

/// What a source did with the frames that its application offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SourceCounters {
    /// Frames offered to the shaper's queue.
    pub offered: u64,
    /// Frames dropped since the queue was full.
    pub dropped: u64,
}

/// A source in work. A frame that has left is numbered; one dropped at the sender takes no number.
#[derive(Debug)]
pub(crate) struct Source {
    random: Stream,
    mean_gap_ns: f64,
    frame_bytes: u64,
    slot_ns: u64,
    burst_frames: u64,
    queue_frames: u64,
    bucket: TokenBucket,
    stop_ns: u64,

    burst_begin_ns: u64,
    offered_of_burst: u64,
    next_offer_ns: u64,
    queued: u64,
    pub(crate) counters: SourceCounters,
}

impl Source {
    /// Checks `config` for a host whose line has `line`'s timing.
    pub(crate) fn new(config: &SourceConfig, line: Timing, seed: u64) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Source {
            flow: config.flow,
            reason,
        };
        let length = config.frame.len();
        if !(14..=MAX_FRAME_BYTES).contains(&length) {
            return Err(wrong(format!(
                "the frame has {length} bytes: give 14 .. {MAX_FRAME_BYTES}, without FCS"
            )));
        }
        let end = config.sequence_offset.saturating_add(4);
        if config.sequence_offset < IDENTITY_BYTES / 2 || end > length {
            return Err(wrong(format!(
                "sequence_offset {} leaves no room for flow and sequence number: give 4 .. {}",
                config.sequence_offset,
                length - 4
            )));
        }
        Error::check("offered_rate_bps", config.offered_rate_bps, 1.0, 1e12)?;
        Error::check("burst_bytes", config.burst_bytes, 0.0, 1e9)?;
        Error::check("queue_bytes", config.queue_bytes, 0.0, 1e12)?;
        let frame_bytes = size_on_wire(length);
        let bucket = TokenBucket::new(config.shaper_rate_bps, config.shaper_burst_bytes)?;
        if bucket.burst_bytes() < frame_bytes {
            return Err(wrong(format!(
                "shaper_burst_bytes {} never holds a frame of {frame_bytes} bytes: nothing would be sent",
                config.shaper_burst_bytes
            )));
        }
        let whole_frames = |bytes: f64| {
            #[allow(clippy::cast_sign_loss)]
            let bytes = bytes as u64;
            bytes / frame_bytes
        };
        let queue_frames = whole_frames(config.queue_bytes);
        if queue_frames == 0 {
            return Err(wrong(format!(
                "queue_bytes {} holds no frame of {frame_bytes} bytes: nothing would be sent",
                config.queue_bytes
            )));
        }
        let burst_frames = whole_frames(config.burst_bytes).max(1);
        #[allow(clippy::cast_precision_loss)]
        let mean_gap_ns = (burst_frames * frame_bytes) as f64 * 8e9 / config.offered_rate_bps;
        Ok(Self {
            random: Stream::new(seed, u64::from(config.flow)),
            mean_gap_ns,
            frame_bytes,
            slot_ns: line.slot_ns(frame_bytes),
            burst_frames,
            queue_frames,
            bucket,
            stop_ns: 0,
            burst_begin_ns: 0,
            offered_of_burst: 0,
            next_offer_ns: 0,
            queued: 0,
            counters: SourceCounters::default(),
        })
    }

    /// Begins to offer bursts at `from_ns`; neither offers nor sends anything from `stop_ns` on.
    pub(crate) fn start(&mut self, from_ns: u64, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.burst_begin_ns = from_ns + self.random.exponential_ns(self.mean_gap_ns);
        self.next_offer_ns = self.burst_begin_ns;
    }

    /// The frame's length on the wire.
    pub(crate) fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// When the next frame leaves the shaper for a line that is free from `line_free_ns` on.
    pub(crate) fn next_release_ns(&self, line_free_ns: u64) -> Option<u64> {
        let mut from_ns = line_free_ns;
        if self.queued == 0 {
            // Nothing is left to send once the offers have stopped.
            if self.next_offer_ns >= self.stop_ns {
                return None;
            }
            from_ns = from_ns.max(self.next_offer_ns);
        }
        self.bucket
            .ready_at(from_ns, self.frame_bytes)
            .filter(|at_ns| *at_ns < self.stop_ns)
    }

    /// The frame at the head of the queue leaves at `now_ns`, an instant given by [`Self::next_release_ns`].
    /// A frame offered at this very instant still finds it in the queue.
    pub(crate) fn release(&mut self, now_ns: u64) {
        self.take_offers(now_ns);
        self.queued -= 1;
        self.bucket.take(now_ns, self.frame_bytes);
    }

    /// Queues, or drops, all that was offered until `now_ns`. Whole bursts at a time: an overloaded source
    /// must not cost more than one that fits.
    fn take_offers(&mut self, now_ns: u64) {
        while self.next_offer_ns <= now_ns && self.next_offer_ns < self.stop_ns {
            let until_ns = now_ns.min(self.stop_ns - 1);
            let rest = self.burst_frames - self.offered_of_burst;
            let offers = if rest == 1 {
                1
            } else {
                rest.min((until_ns - self.next_offer_ns) / self.slot_ns + 1)
            };
            let accepted = offers.min(self.queue_frames - self.queued);
            self.queued += accepted;
            self.counters.offered += offers;
            self.counters.dropped += offers - accepted;
            self.next_offer_ns += offers * self.slot_ns;
            self.offered_of_burst += offers;
            if self.offered_of_burst == self.burst_frames {
                self.offered_of_burst = 0;
                self.burst_begin_ns += self.random.exponential_ns(self.mean_gap_ns);
                // A burst waits for the end of the one before it.
                self.next_offer_ns = self.next_offer_ns.max(self.burst_begin_ns);
            }
        }
    }

    /// Counts what was offered until the end, and gives the number of frames still queued.
    pub(crate) fn finish(&mut self) -> u64 {
        self.take_offers(self.stop_ns);
        self.queued
    }
}

#[cfg(test)]
mod tests;
