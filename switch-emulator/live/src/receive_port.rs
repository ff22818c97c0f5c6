//! When a frame has completely arrived on a 100 Mbit/s link, from the kernel's stamp of its beginning.

use zodiac_firmware::{Duration, Instant};

/// Bytes of the frame check sequence, which an interface neither delivers nor takes.
pub const FCS_BYTES: usize = 4;
/// Shortest frame without FCS; shorter ones are padded, as an Ethernet controller does.
pub const MIN_FRAME_BYTES: usize = 60;

/// The link's timing: `wire(l)` and `gap` of the delay terms in `docs/architecture.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkTiming {
    /// Bit rate in bit/s.
    pub rate_bps: u64,
    /// Preamble and start-of-frame delimiter.
    pub preamble_bytes: u64,
    /// Interframe gap.
    pub gap_bytes: u64,
}

impl LinkTiming {
    /// Returns time for preamble and frame; `frame_bytes` without FCS.
    #[must_use]
    pub fn wire(&self, frame_bytes: usize) -> Duration {
        self.span(self.preamble_bytes + (frame_bytes.max(MIN_FRAME_BYTES) + FCS_BYTES) as u64)
    }

    /// Returns time of the interframe gap.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.span(self.gap_bytes)
    }

    fn span(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * 8 * 1_000_000_000 / self.rate_bps)
    }
}

/// The receiving side of a port: frames come one after the other, however close together they were stamped.
#[derive(Debug)]
pub struct ReceivePort {
    timing: LinkTiming,
    /// The link is taken until then, interframe gap included.
    free_at: Instant,
}

/// The sender is further ahead of the link than a real one could be: the frame is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overrun;

/// A sender on a 100 Mbit/s link waits; one on a virtual link does not. A backlog up to this counts as its queue.
const MAX_BACKLOG: Duration = Duration::from_millis(100);

impl ReceivePort {
    /// Creates an idle port.
    #[must_use]
    pub fn new(timing: LinkTiming) -> Self {
        Self {
            timing,
            free_at: Instant::ZERO,
        }
    }

    /// Returns when the last bit arrives of a frame of `frame_bytes` without FCS whose beginning was stamped:
    /// max(stamp, end of the previous frame and its gap) + `wire(l)`.
    ///
    /// # Errors
    /// `Overrun` if more than 100 ms of frames wait for the link, which only a sender faster than the link can do.
    pub fn arrival(&mut self, stamp: Instant, frame_bytes: usize) -> Result<Instant, Overrun> {
        if self.free_at.saturating_since(stamp) > MAX_BACKLOG {
            return Err(Overrun);
        }
        let arrival = stamp.max(self.free_at) + self.timing.wire(frame_bytes);
        self.free_at = arrival + self.timing.gap();
        Ok(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMING: LinkTiming = LinkTiming {
        rate_bps: 100_000_000,
        preamble_bytes: 8,
        gap_bytes: 12,
    };

    #[test]
    fn a_306_byte_frame_takes_its_wire_time() {
        let mut port = ReceivePort::new(TIMING);
        let stamp = Instant::from_nanos(1_000_000);
        assert_eq!(
            port.arrival(stamp, 302),
            Ok(stamp + Duration::from_nanos(314 * 80))
        );
    }

    #[test]
    fn a_short_frame_is_padded() {
        assert_eq!(TIMING.wire(42), Duration::from_nanos(72 * 80));
    }

    #[test]
    fn a_burst_arrives_at_line_rate() {
        let mut port = ReceivePort::new(TIMING);
        let stamp = Instant::from_nanos(5_000);
        let first = port.arrival(stamp, 302).unwrap();
        let second = port
            .arrival(stamp + Duration::from_nanos(700), 302)
            .unwrap();
        assert_eq!(second - first, Duration::from_nanos((306 + 20) * 80));
    }

    #[test]
    fn a_sender_far_above_the_link_rate_overruns() {
        let mut port = ReceivePort::new(TIMING);
        let stamp = Instant::from_nanos(1);
        let taken = (0..10_000)
            .take_while(|_| port.arrival(stamp, 1514).is_ok())
            .count();
        assert_eq!(
            taken, 813,
            "100 ms of 1538-byte slots and the one that goes over"
        );
        let later = stamp + Duration::from_millis(1);
        assert!(port.arrival(later, 1514).is_ok());
    }

    proptest! {
        #[test]
        fn frames_never_overlap(frames in prop::collection::vec((0u64..200_000, 14usize..1515), 1..50)) {
            let mut port = ReceivePort::new(TIMING);
            let mut stamp = Instant::from_nanos(1);
            let mut free = Instant::ZERO;
            for (gap, bytes) in frames {
                stamp += Duration::from_nanos(gap);
                let arrival = port.arrival(stamp, bytes).unwrap();
                let begin = stamp.max(free);
                prop_assert_eq!(arrival, begin + TIMING.wire(bytes));
                free = arrival + TIMING.gap();
            }
        }
    }
}
