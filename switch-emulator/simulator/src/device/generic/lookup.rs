//! The look-up that all ports share, if it takes fewer frames a second than the ports bring.
//!
//! The HP switches of the predictability study look OpenFlow entries up in a memory that was not made for line rate (section
//! II-C.2): so many frames a second, whatever their length. What comes faster waits, and is lost if there is no room.

use zodiac_firmware::{number, section, Sourced};

section! {
    /// The numbers of the look-up.
    #[derive(Copy)]
    pub struct LookupProfile {
        /// Frames a second, of all ports together.
        frames_per_s: u64,
        /// Frames that can wait.
        waiting_frames: u64,
    }
}

const PS_PER_S: u128 = 1_000_000_000_000;
const PS_PER_NS: u128 = 1_000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Lookup {
    /// In picoseconds, as a nanosecond is too coarse for millions of frames a second.
    period_ps: u128,
    waiting_frames: u128,
    free_ps: u128,
}

impl Lookup {
    pub(super) fn new(profile: LookupProfile) -> Self {
        Self {
            period_ps: PS_PER_S / u128::from(profile.frames_per_s),
            waiting_frames: profile.waiting_frames.into(),
            free_ps: 0,
        }
    }

    /// Returns when a frame that arrives now is looked up, or `None` if it finds no room.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<u64> {
        let arrived_ps = u128::from(now_ns) * PS_PER_NS;
        let begin_ps = self.free_ps.max(arrived_ps);
        if begin_ps - arrived_ps > self.waiting_frames * self.period_ps {
            return None;
        }
        self.free_ps = begin_ps + self.period_ps;
        // A frame that need not wait is not held up: the look-up is part of the pipeline's time.
        Some((begin_ps / PS_PER_NS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_pass_at_its_rate_and_what_finds_no_room_is_lost() {
        let mut lookup = Lookup::new(LookupProfile {
            frames_per_s: 3_000_000,
            waiting_frames: 2,
        });
        let found: Vec<_> = (0..5).map(|_| lookup.take(1_000)).collect();
        assert_eq!(found, [Some(1_000), Some(1_333), Some(1_666), None, None]);
        assert_eq!(lookup.take(10_000), Some(10_000));
    }

    #[test]
    fn over_a_second_it_takes_its_rate() {
        let mut lookup = Lookup::new(LookupProfile {
            frames_per_s: 2_320_000,
            waiting_frames: 64,
        });
        let taken = (0..4_000_000)
            .filter(|place| lookup.take(place * 250).is_some())
            .count();
        assert!((2_320_000..2_320_070).contains(&taken), "{taken}");
    }
}
