//! Pipeline delay of a switch chip: from a frame's last bit in until it is in its queue.
//!
//! The time depends on the frame's length, plus a random spread. What an entry matches or does has no influence on it
//! (predictability study, sections II-A.2 and II-A.3), except that pushing a tag now and then takes a little longer. On a
//! port that is nearly full the bounds differ. Frames of one port keep their order.

use zodiac_firmware::{number, section, Sourced};

use crate::random::Stream;

/// Frames that a port gets in 100 slots if it is full.
const FULL_PERCENT: u64 = 100;

section! {
    /// The delay of a pipeline in which all frames take equally long.
    pub struct Forwarding {
        /// From a frame's last bit in until it is in its queue; with cut-through from the last bit of its header.
        latency_ns: u64,
    }
}

section! {
    /// The numbers of a pipeline.
    pub struct PipelineProfile {
        /// Minimum latency by frame length: interpolated linearly between these points, constant beyond them.
        latency: Vec<Knot>,
        /// How much longer a frame can take; all additions up to this are equally likely.
        spread_ns: u64,
        /// Bounds on ports that are nearly full.
        #[serde(default)]
        busy: Option<Busy>,
        /// Extra time of pushing a tag.
        #[serde(default)]
        tag_push: Option<TagPush>,
    }
}

/// A plain number: frames of this length were measured.
type Length = u64;

section! {
    /// Minimum latency of frames of one length.
    #[derive(Copy)]
    pub struct Knot {
        /// Length with frame check sequence.
        frame_bytes: Length,
        /// Their minimum latency.
        latency_ns: u64,
    }
}

section! {
    /// Ports that are nearly full.
    #[derive(Copy)]
    pub struct Busy {
        /// A frame finds its port nearly full if it follows the previous one so closely that the wire is used to this share.
        load_percent: u64,
        /// How much longer such a frame takes.
        rise_ns: u64,
        /// How much the minimum rises in addition, at the expense of the spread: the maximum does not rise by this.
        least_rise_ns: u64,
    }
}

section! {
    /// Frames that get a tag.
    #[derive(Copy)]
    pub struct TagPush {
        /// On average one frame in this many takes longer.
        one_in: u64,
        /// How much longer it takes.
        extra_ns: u64,
    }
}

/// A frame on its way into the pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entering {
    pub(super) at_ns: u64,
    pub(super) port: u8,
    pub(super) frame_bytes: u64,
    /// Time of the frame on its port's wire.
    pub(super) slot_ns: u64,
    pub(super) gets_tag: bool,
}

/// State of an ingress port.
#[derive(Clone, Copy, Debug, Default)]
struct IngressPort {
    /// When its last frame arrived.
    last_ns: Option<u64>,
    /// When that frame leaves the pipeline.
    ready_ns: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Pipeline {
    profile: PipelineProfile,
    ingress: Vec<IngressPort>,
    random: Stream,
}

impl PipelineProfile {
    /// A pipeline that takes the same time for all frames.
    pub(super) fn fixed(forwarding: &Forwarding) -> Self {
        Self {
            latency: vec![Knot {
                frame_bytes: 64,
                latency_ns: forwarding.latency_ns,
            }],
            spread_ns: 0,
            busy: None,
            tag_push: None,
        }
    }

    /// Checks of the values: whether each holds, the key that it concerns, and how to mend it.
    pub(super) fn rules(&self, most_ns: u64) -> Vec<(bool, &'static str, &'static str)> {
        let spans = self.latency.iter().map(|knot| knot.latency_ns);
        let rising = |pair: &[Knot]| pair[0].frame_bytes < pair[1].frame_bytes;
        let busy = self.busy.as_ref();
        vec![
            (
                !self.latency.is_empty() && self.latency.windows(2).all(rising),
                "pipeline.latency",
                "give at least one length, each longer than the one before",
            ),
            (
                spans.chain([self.spread_ns]).all(|span| span <= most_ns),
                "pipeline",
                "choose spans of at most 100 s",
            ),
            (
                busy.is_none_or(|busy| (1..=FULL_PERCENT).contains(&busy.load_percent)),
                "pipeline.busy.load_percent",
                "choose 1 to 100",
            ),
            (
                busy.is_none_or(|busy| {
                    busy.least_rise_ns <= self.spread_ns && busy.rise_ns <= most_ns
                }),
                "pipeline.busy",
                "choose a least_rise_ns of at most spread_ns, and a rise_ns of at most 100 s",
            ),
            (
                self.tag_push
                    .is_none_or(|push| push.one_in >= 1 && push.extra_ns <= most_ns),
                "pipeline.tag_push",
                "choose a one_in of at least 1, and an extra_ns of at most 100 s",
            ),
        ]
    }

    /// The least that a frame of this length takes.
    fn least_ns(&self, frame_bytes: u64) -> u64 {
        let next = self
            .latency
            .partition_point(|knot| knot.frame_bytes <= frame_bytes);
        let (Some(below), Some(above)) = (
            next.checked_sub(1).map(|place| self.latency[place]),
            self.latency.get(next),
        ) else {
            let end = self.latency.get(next).or(self.latency.last());
            return end.map_or(0, |knot| knot.latency_ns);
        };
        let (way, whole) = (
            frame_bytes - below.frame_bytes,
            above.frame_bytes - below.frame_bytes,
        );
        let sum = below.latency_ns * (whole - way) + above.latency_ns * way;
        sum / whole
    }
}

impl Pipeline {
    /// Creates a pipeline for a switch with this many ports.
    pub(super) fn new(profile: PipelineProfile, ports: u8, random: Stream) -> Self {
        Self {
            profile,
            ingress: vec![IngressPort::default(); usize::from(ports)],
            random,
        }
    }

    /// Returns when a frame is through.
    pub(super) fn ready_ns(&mut self, frame: Entering) -> u64 {
        let ingress = self.ingress[usize::from(frame.port) - 1];
        let gap_ns = ingress.last_ns.map(|last_ns| frame.at_ns - last_ns);
        let busy = self.profile.busy.filter(|busy| {
            gap_ns.is_some_and(|gap_ns| frame.slot_ns * FULL_PERCENT >= gap_ns * busy.load_percent)
        });
        let (rise_ns, least_rise_ns) =
            busy.map_or((0, 0), |busy| (busy.rise_ns, busy.least_rise_ns));
        let spread_ns = self.profile.spread_ns - least_rise_ns;
        let mut span_ns = self.profile.least_ns(frame.frame_bytes) + rise_ns + least_rise_ns;
        if spread_ns > 0 {
            span_ns += below(spread_ns + 1, self.random.bits());
        }
        if let Some(push) = self.profile.tag_push.filter(|_| frame.gets_tag) {
            if below(push.one_in, self.random.bits()) == 0 {
                span_ns += push.extra_ns;
            }
        }
        let ready_ns = (frame.at_ns + span_ns).max(ingress.ready_ns);
        self.ingress[usize::from(frame.port) - 1] = IngressPort {
            last_ns: Some(frame.at_ns),
            ready_ns,
        };
        ready_ns
    }
}

/// Returns a number below `count` out of 64 random bits.
pub(super) fn below(count: u64, bits: u64) -> u64 {
    ((u128::from(bits) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> PipelineProfile {
        PipelineProfile {
            latency: [(64, 1_000), (164, 2_000), (264, 1_500)]
                .map(|(frame_bytes, latency_ns)| Knot {
                    frame_bytes,
                    latency_ns,
                })
                .to_vec(),
            spread_ns: 100,
            busy: Some(Busy {
                load_percent: 90,
                rise_ns: 10_000,
                least_rise_ns: 60,
            }),
            tag_push: Some(TagPush {
                one_in: 4,
                extra_ns: 100_000,
            }),
        }
    }

    fn spans_ns(gap_ns: u64, gets_tag: bool) -> Vec<u64> {
        let mut pipeline = Pipeline::new(profile(), 2, Stream::new(1, 0));
        let frame = |at_ns| Entering {
            at_ns,
            port: 2,
            frame_bytes: 64,
            slot_ns: 672,
            gets_tag,
        };
        pipeline.ready_ns(frame(0));
        (1..2_000)
            .map(|place| pipeline.ready_ns(frame(place * gap_ns)) - place * gap_ns)
            .collect()
    }

    fn range(spans_ns: &[u64]) -> (u64, u64) {
        (
            *spans_ns.iter().min().unwrap(),
            *spans_ns.iter().max().unwrap(),
        )
    }

    #[test]
    fn the_least_lies_on_lines_between_lengths() {
        let least = |bytes| profile().least_ns(bytes);
        assert_eq!(
            [60, 64, 114, 164, 214, 264, 1_518].map(least),
            [1_000, 1_000, 1_500, 2_000, 1_750, 1_500, 1_500]
        );
    }

    #[test]
    fn spans_fill_the_spread_and_a_full_port_has_other_bounds() {
        assert_eq!(range(&spans_ns(7_000, false)), (1_000, 1_100));
        assert_eq!(range(&spans_ns(748, false)), (1_000, 1_100)); // below 90 %
        assert_eq!(range(&spans_ns(672, false)), (11_060, 11_100));
    }

    #[test]
    fn a_pushed_tag_is_late_now_and_then() {
        let spans = spans_ns(1_000_000, true);
        let late = spans.iter().filter(|span| **span >= 101_000).count();
        assert!((400..600).contains(&late), "{late}");
    }

    #[test]
    fn frames_of_a_port_keep_their_order() {
        let mut pipeline = Pipeline::new(profile(), 1, Stream::new(1, 0));
        let frame = |at_ns, frame_bytes| Entering {
            at_ns,
            port: 1,
            frame_bytes,
            slot_ns: 1,
            gets_tag: false,
        };
        let first_ns = pipeline.ready_ns(frame(0, 164));
        assert_eq!(pipeline.ready_ns(frame(200, 64)), first_ns);
    }
}
