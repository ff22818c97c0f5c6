//! The switch's CPU, which forwards what the switch chip cannot.
//!
//! It works on one frame after another. What a frame takes is spread over orders of magnitude, as the CPU has an operating
//! system and an OpenFlow agent to run besides (predictability study, section II-A.2g): a Pareto distribution.

use zodiac_firmware::{number, section, some_number, Sourced};

use crate::random::Stream;

section! {
    /// The numbers of the CPU.
    #[derive(Copy)]
    pub struct SoftwareProfile {
        /// Entries that it holds.
        entries: u64,
        /// Frames that can wait for it.
        waiting_frames: u64,
        /// The least that a frame takes.
        least_ns: u64,
        /// The most.
        most_ns: u64,
        /// Exponent of the distribution between them.
        exponent: f64,
        /// Frames up to this length are forwarded here, unless an entry matches the port alone.
        short_frame_bytes: Option<u64>,
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Software {
    profile: SoftwareProfile,
    /// When each frame that it still has is done.
    done_ns: std::collections::VecDeque<u64>,
    random: Stream,
}

impl SoftwareProfile {
    /// Checks of the values: whether each holds, the key that it concerns, and how to mend it.
    pub(super) fn rules(&self, most_ns: u64) -> Vec<(bool, &'static str, &'static str)> {
        vec![
            (
                (1..=self.most_ns).contains(&self.least_ns) && self.most_ns <= most_ns,
                "software.least_ns",
                "choose 1 ns to most_ns, and that at most 100 s",
            ),
            (
                self.exponent > 0.0 && self.exponent <= 10.0,
                "software.exponent",
                "choose a number above 0, at most 10",
            ),
            (
                (1..=1_000_000).contains(&self.entries),
                "software.entries",
                "choose 1 to 1000000",
            ),
        ]
    }
}

impl Software {
    pub(super) fn new(profile: SoftwareProfile, random: Stream) -> Self {
        Self {
            profile,
            done_ns: std::collections::VecDeque::new(),
            random,
        }
    }

    /// Returns whether it forwards frames of this length that an entry does not match by their port alone.
    pub(super) fn takes_short(&self, frame_bytes: u64) -> bool {
        (self.profile.short_frame_bytes).is_some_and(|longest| frame_bytes <= longest)
    }

    /// Returns when a frame that arrives now is forwarded, or `None` if it finds no room.
    #[allow(clippy::cast_precision_loss)] // spans below 100 s
    pub(super) fn take(&mut self, now_ns: u64) -> Option<u64> {
        while self.done_ns.front().is_some_and(|done| *done <= now_ns) {
            self.done_ns.pop_front();
        }
        if self.done_ns.len() as u64 > self.profile.waiting_frames {
            return None;
        }
        let begin_ns = self.done_ns.back().map_or(now_ns, |last| *last);
        let (least, most) = (self.profile.least_ns as f64, self.profile.most_ns as f64);
        let done_ns = begin_ns + self.random.pareto_ns(least, most, self.profile.exponent);
        self.done_ns.push_back(done_ns);
        Some(done_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_after_another_and_no_more_than_can_wait() {
        let profile = SoftwareProfile {
            entries: 1,
            waiting_frames: 2,
            least_ns: 1_000,
            most_ns: 100_000,
            exponent: 1.5,
            short_frame_bytes: Some(65),
        };
        let mut software = Software::new(profile, Stream::new(1, 0));
        let done: Vec<_> = (0..4).map(|_| software.take(0)).collect();
        assert_eq!(done[3], None);
        let done: Vec<u64> = done.into_iter().flatten().collect();
        assert!(done[0] >= 1_000 && done.is_sorted_by(|one, next| next - one >= 1_000));
        assert!(software.take(done[0]).is_some());
        assert!(software.takes_short(65) && !software.takes_short(66));
    }
}
