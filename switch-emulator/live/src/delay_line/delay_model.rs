//! When a frame leaves a device: the delay terms of `docs/architecture.md`, for a device of which only times are known.
//!
//! One CPU takes frames from a ring of units, in their order of arrival; before and behind it is a link that carries one
//! frame at a time. It does not look into frames, and all of one length take equally long.

use std::collections::VecDeque;

use zodiac_firmware::{Duration, Instant};

use super::config::DelayModelConfig;
use crate::receive_port::{LinkTiming, FCS_BYTES, MIN_FRAME_BYTES};

const PS_PER_NS: u64 = 1_000;

/// See the module's documentation. Times in picoseconds since the start of the clock.
#[derive(Debug)]
pub(super) struct DelayModel {
    config: DelayModelConfig,
    link_free_ps: u64,
    cpu_free_ps: u64,
    back_free_ps: u64,
    /// When the CPU takes each frame that waits, and its units.
    ring: VecDeque<(u64, u64)>,
    used_units: u64,
}

/// The ring was full.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RingFull;

impl DelayModel {
    pub(super) fn new(config: DelayModelConfig) -> Self {
        Self {
            config,
            link_free_ps: 0,
            cpu_free_ps: 0,
            back_free_ps: 0,
            ring: VecDeque::new(),
            used_units: 0,
        }
    }

    /// Returns the links of its ports.
    pub(super) fn link(&self) -> LinkTiming {
        LinkTiming {
            rate_bps: self.config.link_rate_bps,
            preamble_bytes: self.config.preamble_bytes,
            gap_bytes: self.config.gap_bytes,
        }
    }

    /// Returns when a frame can leave, unless its port is still busy, that has completely arrived at `at`, an instant
    /// not before that of the last call. It is `frame_bytes` long without FCS.
    pub(super) fn leaves_at(
        &mut self,
        at: Instant,
        frame_bytes: usize,
    ) -> Result<Instant, RingFull> {
        let config = self.config;
        let bytes = (frame_bytes.max(MIN_FRAME_BYTES) + FCS_BYTES) as u64;
        let inner_ps = self.link_ps(config.preamble_bytes + bytes + config.tag_bytes);
        let gap_ps = self.link_ps(config.gap_bytes);
        let at_ps = at.as_nanos() * PS_PER_NS;
        let in_ring_ps = (at_ps + config.transit_ps).max(self.link_free_ps) + inner_ps;
        self.link_free_ps = in_ring_ps + gap_ps;
        while let Some((_, units)) = self.ring.front().filter(|(taken, _)| *taken < in_ring_ps) {
            self.used_units -= units;
            self.ring.pop_front();
        }
        let units = bytes.div_ceil(config.unit_bytes);
        if self.used_units + units > config.units {
            return Err(RingFull);
        }
        self.used_units += units;
        let taken_ps = in_ring_ps.max(self.cpu_free_ps);
        self.ring.push_back((taken_ps, units));
        self.cpu_free_ps = taken_ps + config.cpu_base_ps + config.cpu_byte_ps * bytes;
        let done_ps = self.cpu_free_ps - 2 * config.transit_ps;
        let back_ps = done_ps.max(self.back_free_ps) + inner_ps;
        self.back_free_ps = back_ps + gap_ps;
        Ok(Instant::from_nanos(
            (back_ps + config.transit_ps + PS_PER_NS / 2) / PS_PER_NS,
        ))
    }

    /// For how long a frame takes its port's link, gap included.
    pub(super) fn slot(&self, frame_bytes: usize) -> Duration {
        let link = self.link();
        link.wire(frame_bytes) + link.gap()
    }

    fn link_ps(&self, bytes: u64) -> u64 {
        bytes * 8 * 1_000_000_000_000 / self.config.link_rate_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: DelayModelConfig = DelayModelConfig {
        link_rate_bps: 100_000_000,
        preamble_bytes: 8,
        gap_bytes: 12,
        tag_bytes: 1,
        transit_ps: 2_070_000,
        cpu_base_ps: 50_000_000,
        cpu_byte_ps: 100_000,
        units: 24,
        unit_bytes: 128,
    };
    const BYTES: usize = 302;
    const CPU_NS: u64 = 50_000 + 306 * 100;
    const INNER_NS: u64 = 315 * 80;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(1_000_000 + ns)
    }

    #[test]
    fn a_lone_frame_takes_its_processing_time() {
        let mut device = DelayModel::new(CONFIG);
        assert_eq!(
            device.leaves_at(at(0), BYTES),
            Ok(at(CPU_NS + 2 * INNER_NS))
        );
        let later = 10_000_000;
        assert_eq!(
            device.leaves_at(at(later), BYTES),
            Ok(at(later + CPU_NS + 2 * INNER_NS))
        );
    }

    #[test]
    fn a_burst_leaves_at_the_pace_of_the_cpu() {
        let mut device = DelayModel::new(CONFIG);
        let found: Vec<_> = (0..20).map(|_| device.leaves_at(at(0), BYTES)).collect();
        let whole: Vec<_> = found.iter().flatten().collect();
        // Frames come by the inner link one after the other, while the CPU is at work.
        assert!(whole.len() > 9 && whole.len() < 20, "{}", whole.len());
        assert!(whole
            .windows(2)
            .all(|pair| *pair[1] - *pair[0] == Duration::from_nanos(CPU_NS)));
    }

    #[test]
    fn of_a_burst_that_comes_at_once_the_ring_holds_whole_frames_and_the_cpu_one() {
        for (bytes, holds) in [(60, 25), (BYTES, 9), (1_514, 3)] {
            let mut device = DelayModel::new(DelayModelConfig {
                link_rate_bps: 1_000_000_000_000,
                ..CONFIG
            });
            let found: Vec<_> = (0..40).map(|_| device.leaves_at(at(0), bytes)).collect();
            assert!(found[..holds].iter().all(Result::is_ok), "{bytes}");
            assert!(
                found[holds..].iter().all(|one| *one == Err(RingFull)),
                "{bytes}"
            );
        }
    }
}
