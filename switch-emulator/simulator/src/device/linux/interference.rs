//! Interference on Linux: the timer tick and stalls, which take the CPU from forwarding.
//!
//! Loko names the interference of the operating system and of other processes as the reason why such switches are
//! not deterministic (section 7), and prints nothing about its sizes. The model has two parts:
//!
//! - the timer tick: every `tick_period`, its first one at a random phase, for `tick`;
//! - stalls: they begin as a Poisson process with mean distance `stall_gap`, and last a time with a heavy tail, drawn
//!   from a Pareto distribution between `stall_least` and `stall_most` with the exponent `stall_shape`.
//!
//! An interruption that would begin during another one begins at its end.

use super::profile::InterferenceProfile;
use crate::random::Stream;

/// Random numbers of a device that concern interference.
const STREAM: u64 = 0;

/// A part that takes the CPU from `begin_ns` on for `length_ns`.
#[derive(Clone, Copy, Debug)]
struct Interruption {
    begin_ns: u64,
    length_ns: u64,
}

/// Interruptions from the beginning of time on, drawn as time passes.
#[derive(Debug)]
pub(super) struct Interference {
    numbers: InterferenceProfile,
    random: Stream,
    tick: Interruption,
    stall: Interruption,
    /// When all that has begun is over.
    over_ns: u64,
}

impl Interference {
    pub(super) fn new(numbers: &InterferenceProfile, seed: u64) -> Self {
        let mut random = Stream::new(seed, STREAM);
        let tick = Interruption {
            begin_ns: random.bits() % numbers.tick_period_ns,
            length_ns: numbers.tick_ns,
        };
        let mut interference = Self {
            numbers: numbers.clone(),
            random,
            tick,
            stall: Interruption {
                begin_ns: 0,
                length_ns: 0,
            },
            over_ns: 0,
        };
        interference.draw_stall();
        interference
    }

    /// Returns when work of `work_ns` that can begin at `from_ns` is done. Calls come in order: none from before the
    /// end of the last one.
    pub(super) fn finish(&mut self, from_ns: u64, work_ns: u64) -> u64 {
        let mut at_ns = from_ns.max(self.over_ns);
        let mut rest_ns = work_ns;
        loop {
            let is_tick = self.tick.begin_ns <= self.stall.begin_ns;
            let next = if is_tick { self.tick } else { self.stall };
            if next.begin_ns >= at_ns + rest_ns {
                return at_ns + rest_ns;
            }
            let worked_ns = next.begin_ns.saturating_sub(at_ns);
            rest_ns -= worked_ns;
            self.over_ns = self.over_ns.max(next.begin_ns) + next.length_ns;
            at_ns = (at_ns + worked_ns).max(self.over_ns);
            if is_tick {
                self.tick.begin_ns += self.numbers.tick_period_ns;
            } else {
                self.draw_stall();
            }
        }
    }

    #[allow(clippy::cast_precision_loss)] // spans are below 2^53 ns
    fn draw_stall(&mut self) {
        let numbers = &self.numbers;
        let gap_ns = self.random.exponential_ns(numbers.stall_gap_ns as f64);
        self.stall = Interruption {
            begin_ns: self.stall.begin_ns + gap_ns.max(1),
            length_ns: self.random.pareto_ns(
                numbers.stall_least_ns as f64,
                numbers.stall_most_ns as f64,
                numbers.stall_shape,
            ),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> InterferenceProfile {
        InterferenceProfile {
            tick_period_ns: 1_000,
            tick_ns: 10,
            stall_gap_ns: 1_000_000_000_000,
            stall_least_ns: 1,
            stall_most_ns: 1,
            stall_shape: 1.5,
        }
    }

    /// Only ticks, at 500, 1500, ...
    fn ticks() -> Interference {
        let mut interference = Interference::new(&numbers(), 1);
        interference.tick.begin_ns = 500;
        interference.stall.begin_ns = u64::MAX;
        interference
    }

    #[test]
    fn work_between_ticks_is_not_disturbed() {
        assert_eq!(ticks().finish(0, 500), 500);
    }

    #[test]
    fn a_tick_during_work_delays_its_end() {
        assert_eq!(ticks().finish(0, 501), 511);
        assert_eq!(ticks().finish(400, 1_200), 1_620);
    }

    #[test]
    fn a_tick_under_way_delays_the_beginning() {
        assert_eq!(ticks().finish(504, 1), 511);
        assert_eq!(ticks().finish(510, 1), 511);
        assert_eq!(ticks().finish(511, 1), 512);
    }

    #[test]
    fn what_begins_during_a_stall_comes_after_it() {
        let mut interference = ticks();
        interference.stall = Interruption {
            begin_ns: 495,
            length_ns: 100,
        };
        interference.numbers.stall_gap_ns = 1_000_000_000_000;
        assert_eq!(interference.finish(490, 10), 610);
    }

    #[test]
    fn the_share_of_the_time_is_what_the_distributions_say() {
        let mut interference = Interference::new(
            &InterferenceProfile {
                tick_period_ns: 10_000_000,
                tick_ns: 10_000,
                stall_gap_ns: 1_000_000,
                stall_least_ns: 10_000,
                stall_most_ns: 1_000_000,
                stall_shape: 1.5,
            },
            7,
        );
        let work_ns = 100_000_000_000_u64;
        let end_ns = interference.finish(0, work_ns);
        // Mean stall: 10 us x 3 x (1 - 100^-0.5) / (1 - 100^-1.5) = 27.03 us each ms, and 10 us of ticks each 10 ms.
        #[allow(clippy::cast_precision_loss)]
        let share = 1.0 - work_ns as f64 / end_ns as f64;
        assert!((share - 0.028_03).abs() < 0.000_6, "{share}");
    }
}
