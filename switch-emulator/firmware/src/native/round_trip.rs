//! When a TCP connection sends again: estimates of the round trip as the board's IP stack (lwIP 1.4.1) makes them.

use crate::time::{Duration, Instant};

/// The stack counts time in ticks of this length.
const TICK: Duration = Duration::from_millis(500);
/// Timeout before the first measurement, 3 s.
const FIRST_TICKS: u32 = 6;
/// By how many bits the estimate is shifted left for the next timeout, by the number of timeouts in a row before it.
const BACKOFF: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 7];

/// Timeouts of one connection.
#[derive(Debug)]
pub(super) struct RoundTrip {
    /// Eight times the mean, in ticks.
    mean: i64,
    /// Four times the mean deviation, in ticks.
    deviation: i64,
    timeout_ticks: u32,
    /// Timeouts since the last acknowledgement.
    repetitions: u8,
    /// When the segment was sent that is measured, and the position behind it.
    measured: Option<(Instant, usize)>,
}

impl RoundTrip {
    pub(super) const fn new() -> Self {
        Self {
            mean: 0,
            deviation: FIRST_TICKS as i64,
            timeout_ticks: FIRST_TICKS,
            repetitions: 0,
            measured: None,
        }
    }

    /// Returns how long to wait for an acknowledgement.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_nanos(TICK.as_nanos() * u64::from(self.timeout_ticks))
    }

    /// Timeouts in a row.
    pub(super) const fn repetitions(&self) -> u8 {
        self.repetitions
    }

    /// Something new was sent; its last byte lies before `end`.
    pub(super) fn sent(&mut self, now: Instant, end: usize) {
        self.measured.get_or_insert((now, end));
    }

    /// Everything before `position` has been acknowledged.
    pub(super) fn acknowledged(&mut self, now: Instant, position: usize) {
        if let Some((sent, _)) = self.measured.filter(|(_, end)| *end <= position) {
            self.measured = None;
            let ticks = now.saturating_since(sent).as_nanos() / TICK.as_nanos();
            let error = ticks as i64 - (self.mean >> 3);
            self.mean += error;
            self.deviation += error.abs() - (self.deviation >> 2);
        }
        self.repetitions = 0;
        self.timeout_ticks = self.estimate();
    }

    /// No acknowledgement came in time.
    pub(super) fn time_out(&mut self) {
        let shift = BACKOFF[usize::from(self.repetitions).min(BACKOFF.len() - 1)];
        self.timeout_ticks = self.estimate() << shift;
        self.repetitions += 1;
        self.measured = None;
    }

    /// The peer did not answer a SYN: it is repeated always after the same time.
    pub(super) const fn time_out_handshake(&mut self) {
        self.repetitions += 1;
    }

    fn estimate(&self) -> u32 {
        u32::try_from((self.mean >> 3) + self.deviation).unwrap_or(FIRST_TICKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(round_trip: &RoundTrip) -> u64 {
        round_trip.timeout().as_nanos() / 1_000_000
    }

    #[test]
    fn the_first_timeout_is_3_s_and_short_round_trips_bring_it_down() {
        let mut round_trip = RoundTrip::new();
        assert_eq!(millis(&round_trip), 3_000);
        for end in 1..10 {
            round_trip.sent(Instant::ZERO, end);
            round_trip.acknowledged(Instant::from_nanos(200_000), end);
        }
        assert_eq!(millis(&round_trip), 1_500);
    }

    #[test]
    fn repetitions_double_it_until_an_acknowledgement() {
        let mut round_trip = RoundTrip::new();
        let mut timeouts = Vec::new();
        for _ in 0..3 {
            round_trip.time_out();
            timeouts.push(millis(&round_trip));
        }
        assert_eq!(timeouts, [6_000, 12_000, 24_000]);
        round_trip.acknowledged(Instant::ZERO, 0);
        assert_eq!((millis(&round_trip), round_trip.repetitions()), (3_000, 0));
    }
}
