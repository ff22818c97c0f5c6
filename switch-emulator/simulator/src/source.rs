//! Sources: bursts at random instants, through a queue and a token bucket, onto the host's line.

use crate::bucket::TokenBucket;
use crate::error::Error;
use crate::link::{size_on_wire, Timing};
use crate::random::Stream;

/// Bytes of a frame that identify it: flow and sequence number, 32 bits each, most significant first.
const IDENTITY_BYTES: usize = 8;
/// Longest frame without its frame check sequence: a VLAN-tagged Ethernet frame.
const MAX_FRAME_BYTES: usize = 1518;

/// Configuration of a source (section 6.1 of the paper, "Traffic Generation": mgen and tc's token bucket).
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
    /// Traffic offered to the shaper's queue.
    pub offered: Offered,
    /// Whether the result has a row for each packet of this flow.
    pub observed: bool,
    /// The host to which the flow belongs; delivery to any other counts as misdelivered. `None`: any host but
    /// the sender.
    pub destination: Option<String>,
}

/// Traffic that an application offers to the shaper's queue. The shaper sends a frame as soon as the token bucket
/// allows, so the sent traffic always conforms.
#[derive(Debug, Clone)]
pub enum Offered {
    /// Bursts at line rate, exponentially separated, into a queue with an end.
    Bursts(BurstsConfig),
    /// A release pattern: when a frame is offered, in nanoseconds since the run began, in order; the queue holds them all.
    Pattern(Vec<u64>),
}

/// Bursts that are offered.
#[derive(Debug, Clone)]
pub struct BurstsConfig {
    /// Mean rate in bit/s at which frames are offered to the shaper's queue.
    pub offered_rate_bps: f64,
    /// Length of a burst in bytes: as many whole frames as fit, at least one.
    pub burst_bytes: f64,
    /// The shaper's queue in bytes; a frame that does not fit is dropped at the sender.
    pub queue_bytes: f64,
}

/// Counters of the frames that a source's application offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SourceCounters {
    /// Frames offered to the shaper's queue.
    pub offered: u64,
    /// Frames dropped since the queue was full.
    pub dropped: u64,
}

/// The application before the shaper.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // one a source, and best reached directly
enum Offers {
    Bursts(Bursts),
    Pattern(Pattern),
}

/// Bursts at line rate, exponentially separated, into a queue with an end.
#[derive(Debug)]
#[repr(C)] // what only the next burst needs comes last
struct Bursts {
    slot_ns: u64,
    burst_frames: u64,
    queue_frames: u64,
    offered_of_burst: u64,
    burst_begin_ns: u64,
    mean_gap_ns: f64,
    random: Stream,
}

impl Bursts {
    fn new(
        config: &BurstsConfig,
        flow: u32,
        frame_bytes: u64,
        line: Timing,
        random: Stream,
    ) -> Result<Self, Error> {
        Error::check("offered_rate_bps", config.offered_rate_bps, 1.0, 1e12)?;
        Error::check("burst_bytes", config.burst_bytes, 0.0, 1e9)?;
        Error::check("queue_bytes", config.queue_bytes, 0.0, 1e12)?;
        let whole_frames = |bytes: f64| {
            #[allow(clippy::cast_sign_loss)]
            let bytes = bytes as u64;
            bytes / frame_bytes
        };
        let queue_frames = whole_frames(config.queue_bytes);
        if queue_frames == 0 {
            return Err(Error::Source {
                flow,
                reason: format!(
                    "queue_bytes {} holds no frame of {frame_bytes} bytes: nothing would be sent",
                    config.queue_bytes
                ),
            });
        }
        let burst_frames = whole_frames(config.burst_bytes).max(1);
        #[allow(clippy::cast_precision_loss)]
        let mean_gap_ns = (burst_frames * frame_bytes) as f64 * 8e9 / config.offered_rate_bps;
        Ok(Self {
            slot_ns: line.slot_ns(frame_bytes),
            burst_frames,
            queue_frames,
            offered_of_burst: 0,
            burst_begin_ns: 0,
            mean_gap_ns,
            random,
        })
    }
}

/// Frames at given instants.
#[derive(Debug)]
struct Pattern {
    instants_ns: Vec<u64>,
    begin_ns: u64,
    /// Index of the next one.
    next: usize,
}

impl Pattern {
    fn new(instants_ns: &[u64], flow: u32) -> Result<Self, Error> {
        if !instants_ns.is_sorted() {
            return Err(Error::Source {
                flow,
                reason: "its instants fall: give them in order".into(),
            });
        }
        Ok(Self {
            instants_ns: instants_ns.to_vec(),
            begin_ns: 0,
            next: 0,
        })
    }

    /// Returns when the next frame is offered; never, after the last one.
    fn next_ns(&self) -> u64 {
        let next = self.instants_ns.get(self.next);
        next.map_or(u64::MAX, |after_ns| self.begin_ns + after_ns)
    }
}

/// A source in work. A frame that has left is numbered; one dropped at the sender takes no number. What each frame needs
/// fills its first two lines of the processor's cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Source {
    bucket: TokenBucket,
    frame_bytes: u64,
    stop_ns: u64,
    next_offer_ns: u64,
    queued: u64,
    pub(crate) counters: SourceCounters,
    offers: Offers,
}

impl Source {
    /// Checks `config` for a host whose line has `line`'s timing.
    pub(crate) fn new(config: &SourceConfig, line: Timing, seed: u64) -> Result<Self, Error> {
        check_frame(config.flow, config.frame.len(), config.sequence_offset)?;
        let frame_bytes = size_on_wire(config.frame.len());
        let offers = match &config.offered {
            Offered::Bursts(bursts) => {
                let random = Stream::new(seed, u64::from(config.flow));
                Bursts::new(bursts, config.flow, frame_bytes, line, random).map(Offers::Bursts)
            }
            Offered::Pattern(instants_ns) => {
                Pattern::new(instants_ns, config.flow).map(Offers::Pattern)
            }
        }?;
        let bucket = shaper(
            config.flow,
            frame_bytes,
            (config.shaper_rate_bps, config.shaper_burst_bytes),
        )?;
        Ok(Self {
            bucket,
            frame_bytes,
            stop_ns: 0,
            next_offer_ns: 0,
            queued: 0,
            counters: SourceCounters::default(),
            offers,
        })
    }

    /// Begins to offer bursts at `from_ns`; neither offers nor sends anything from `stop_ns` on.
    pub(crate) fn start(&mut self, from_ns: u64, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.next_offer_ns = match &mut self.offers {
            Offers::Bursts(bursts) => {
                bursts.burst_begin_ns = from_ns + bursts.random.exponential_ns(bursts.mean_gap_ns);
                bursts.burst_begin_ns
            }
            Offers::Pattern(pattern) => {
                pattern.begin_ns = from_ns;
                pattern.next_ns()
            }
        };
    }

    /// About how many frames it will send within `duration_ns`: as many as are offered, and as the bucket lets pass.
    #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]
    pub(crate) fn expected_frames(&self, duration_ns: u64) -> u64 {
        let offered = match &self.offers {
            Offers::Bursts(bursts) => {
                let frames = bursts.burst_frames as f64 / bursts.mean_gap_ns * duration_ns as f64;
                // Bursts come in a Poisson process: four standard deviations more.
                (frames + 4.0 * (frames * bursts.burst_frames as f64).sqrt()) as u64
            }
            Offers::Pattern(pattern) => pattern.instants_ns.len() as u64,
        };
        offered.min(self.bucket.most_bytes(duration_ns) / self.frame_bytes)
    }

    /// Returns the frame's length on the wire.
    #[inline]
    pub(crate) fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// Returns when the next frame leaves the shaper for a line that is free from `line_free_ns` on.
    #[inline]
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
    #[inline]
    pub(crate) fn release(&mut self, now_ns: u64) {
        self.take_offers(now_ns);
        self.queued -= 1;
        self.bucket.take(now_ns, self.frame_bytes);
    }

    /// Queues, or drops, all that was offered until `now_ns`. Whole bursts at a time: an overloaded source
    /// must not cost more than one that fits.
    #[inline]
    fn take_offers(&mut self, now_ns: u64) {
        while self.next_offer_ns <= now_ns && self.next_offer_ns < self.stop_ns {
            match &mut self.offers {
                Offers::Bursts(bursts) => {
                    let until_ns = now_ns.min(self.stop_ns - 1);
                    let rest = bursts.burst_frames - bursts.offered_of_burst;
                    let offers = if rest == 1 {
                        1
                    } else {
                        rest.min((until_ns - self.next_offer_ns) / bursts.slot_ns + 1)
                    };
                    let accepted = offers.min(bursts.queue_frames - self.queued);
                    self.queued += accepted;
                    self.counters.offered += offers;
                    self.counters.dropped += offers - accepted;
                    self.next_offer_ns += offers * bursts.slot_ns;
                    bursts.offered_of_burst += offers;
                    if bursts.offered_of_burst == bursts.burst_frames {
                        bursts.offered_of_burst = 0;
                        bursts.burst_begin_ns += bursts.random.exponential_ns(bursts.mean_gap_ns);
                        // A burst waits for the end of the one before it.
                        self.next_offer_ns = self.next_offer_ns.max(bursts.burst_begin_ns);
                    }
                }
                Offers::Pattern(pattern) => {
                    self.queued += 1;
                    self.counters.offered += 1;
                    pattern.next += 1;
                    self.next_offer_ns = pattern.next_ns();
                }
            }
        }
    }

    /// Counts the frames offered until the end. Returns the number of frames still queued.
    pub(crate) fn finish(&mut self) -> u64 {
        self.take_offers(self.stop_ns);
        self.queued
    }
}

/// Refuses frames that no host sends, or that have no room for their identity.
fn check_frame(flow: u32, length: usize, sequence_offset: usize) -> Result<(), Error> {
    let wrong = |reason: String| Err(Error::Source { flow, reason });
    if !(14..=MAX_FRAME_BYTES).contains(&length) {
        return wrong(format!(
            "the frame has {length} bytes: give 14 .. {MAX_FRAME_BYTES}, without FCS"
        ));
    }
    let end = sequence_offset.saturating_add(4);
    if sequence_offset < IDENTITY_BYTES / 2 || end > length {
        return wrong(format!(
            "sequence_offset {sequence_offset} leaves no room for flow and sequence number: give 4 .. {}",
            length - 4
        ));
    }
    Ok(())
}

/// Returns the token bucket of a source, given as rate and burst; it must let a frame pass.
fn shaper(
    flow: u32,
    frame_bytes: u64,
    (rate_bps, burst_bytes): (f64, f64),
) -> Result<TokenBucket, Error> {
    let bucket = TokenBucket::new(rate_bps, burst_bytes)?;
    if bucket.burst_bytes() < frame_bytes {
        return Err(Error::Source {
            flow,
            reason: format!(
                "shaper_burst_bytes {burst_bytes} never holds a frame of {frame_bytes} bytes: nothing would be sent"
            ),
        });
    }
    Ok(bucket)
}

#[cfg(test)]
mod tests;
