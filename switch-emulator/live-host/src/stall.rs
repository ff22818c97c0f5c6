//! Notices when the host kept the data thread from running, or a frame from the data thread.

use zodiac_firmware::{Duration, Instant};

/// A span in which the host did not do its part: the data thread did not run, or a frame that the kernel had stamped
/// was not handed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// The last instant before it at which the thread looked at the clock, or the frame's stamp.
    pub start: Instant,
    /// Until the thread looked at the clock again, or got the frame.
    pub duration: Duration,
}

/// Watches the instants at which the data thread looks at the clock: a gap above the threshold is a stall.
#[derive(Debug)]
pub struct StallWatch {
    threshold: Duration,
    last: Instant,
    /// Beginning and end of the newest stalls, from which the thread has not caught up in between.
    stalled_since: Instant,
    stalled_until: Instant,
    /// Whether outputs that were due during the stall are still pending.
    recovering: bool,
}

impl StallWatch {
    /// A watch that begins now.
    #[must_use]
    pub fn new(threshold: Duration, now: Instant) -> Self {
        Self {
            threshold,
            last: now,
            stalled_since: Instant::ZERO,
            stalled_until: Instant::ZERO,
            recovering: false,
        }
    }

    /// To be called with every reading of the clock. Returns the stall that just ended, if any.
    pub fn observe(&mut self, now: Instant) -> Option<Stall> {
        let gap = now.saturating_since(self.last);
        let start = core::mem::replace(&mut self.last, now);
        if gap <= self.threshold {
            return None;
        }
        Some(self.record(start, now))
    }

    fn record(&mut self, start: Instant, end: Instant) -> Stall {
        if !self.recovering || start < self.stalled_since {
            self.stalled_since = start;
        }
        self.stalled_until = end;
        self.recovering = true;
        Stall {
            start,
            duration: end.saturating_since(start),
        }
    }

    /// Returns when the thread last looked at the clock.
    #[must_use]
    pub fn last(&self) -> Instant {
        self.last
    }

    /// The thread slept until `now` because nothing was due, and nothing fell due meanwhile: that is no stall.
    pub fn rested(&mut self, now: Instant) {
        self.last = now;
    }

    /// To be called with every frame: its stamp, when this thread last had nothing else to do and would have taken it, and
    /// when it got it. The kernel may hold back a frame on another core while this thread runs, or hold back this thread
    /// when it rests: these are stalls, too. It is no stall if the thread was busy with other frames.
    pub fn delivered(&mut self, stamp: Instant, absent: Instant, now: Instant) -> Option<Stall> {
        // Stalls that are known explain their own part of the wait.
        let before = absent.min(self.stalled_since).saturating_since(stamp);
        let after = absent.saturating_since(stamp.max(self.stalled_until));
        if before.max(after) <= self.threshold {
            return None;
        }
        Some(self.record(stamp, now))
    }

    /// Everything that had come when the pass began is dealt with, and nothing is overdue: if no stall ended since,
    /// what falls due from now on is not late because of one.
    pub fn caught_up(&mut self, pass_began: Instant) {
        if pass_began >= self.stalled_until {
            self.recovering = false;
        }
    }

    /// Returns whether something that was due at this instant was kept from leaving in time by a stall.
    #[must_use]
    pub fn excuses(&self, due: Instant) -> bool {
        self.recovering || due <= self.stalled_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    fn watch() -> StallWatch {
        StallWatch::new(Duration::from_micros(50), at(1_000))
    }

    #[test]
    fn a_gap_of_the_threshold_is_no_stall() {
        let mut watch = watch();
        assert_eq!(watch.observe(at(1_050)), None);
        assert_eq!(watch.observe(at(1_100)), None);
        assert!(!watch.excuses(at(1_100)));
    }

    #[test]
    fn a_longer_gap_is_a_stall_with_its_beginning() {
        let mut watch = watch();
        watch.observe(at(1_010));
        let stall = Stall {
            start: at(1_010),
            duration: Duration::from_micros(51),
        };
        assert_eq!(watch.observe(at(1_061)), Some(stall));
    }

    #[test]
    fn a_rest_is_no_stall() {
        let mut watch = watch();
        watch.rested(at(1_200));
        assert_eq!(watch.observe(at(1_210)), None);
        assert!(!watch.excuses(at(1_200)));
    }

    #[test]
    fn a_frame_that_the_kernel_held_back_is_a_stall() {
        let mut watch = watch();
        assert_eq!(watch.delivered(at(1_000), at(1_050), at(1_051)), None);
        let stall = Stall {
            start: at(1_010),
            duration: Duration::from_micros(90),
        };
        let found = watch.delivered(at(1_010), at(1_095), at(1_100));
        assert_eq!(found, Some(stall));
        assert!(watch.excuses(at(1_100)));
        assert_eq!(
            watch.delivered(at(1_020), at(1_095), at(1_101)),
            None,
            "explained by the first"
        );
        let held_on = watch.delivered(at(1_099), at(1_151), at(1_152));
        assert!(held_on.is_some(), "longer than the first explains");
    }

    #[test]
    fn a_short_stall_does_not_hide_that_a_frame_was_held_back_for_longer() {
        let mut watch = watch();
        watch.rested(at(51_000));
        assert!(watch.observe(at(51_060)).is_some());
        let held_back = watch.delivered(at(1_100), at(51_000), at(51_061));
        let stall = Stall {
            start: at(1_100),
            duration: Duration::from_micros(49_961),
        };
        assert_eq!(held_back, Some(stall));
        assert_eq!(
            watch.delivered(at(1_200), at(51_000), at(51_062)),
            None,
            "explained by the second"
        );
    }

    #[test]
    fn a_busy_thread_is_no_stall() {
        let mut watch = watch();
        assert_eq!(watch.delivered(at(1_010), at(1_005), at(1_300)), None);
        assert!(!watch.excuses(at(1_200)));
    }

    #[test]
    fn a_stall_excuses_until_caught_up() {
        let mut watch = watch();
        watch.observe(at(2_000));
        assert!(watch.excuses(at(1_500)));
        assert!(
            watch.excuses(at(2_010)),
            "behind the queue that the stall left"
        );
        watch.caught_up(at(1_999));
        assert!(
            watch.excuses(at(2_010)),
            "a pass that began before has not seen what came during the stall"
        );
        watch.caught_up(at(2_000));
        assert!(watch.excuses(at(2_000)));
        assert!(!watch.excuses(at(2_001)));
    }
}
