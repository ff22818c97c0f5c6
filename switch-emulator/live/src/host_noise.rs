//! Host noise: how often this host keeps a data thread from running, measured without boards by the same polling.

use serde::Serialize;
use zodiac_firmware::{Duration, Instant};

use crate::clock::Clock;
use crate::readiness::Readiness;
use crate::report::MAX_STALLS;
use live_host::error::StartError;
use live_host::realtime::{prepare_thread, Scheduling, UnlimitedRuntime};
use live_host::stall::StallWatch;

/// Between two rests the thread polls for so long, as a data thread does that carries traffic.
const BUSY: Duration = Duration::from_millis(1);
/// Length of a rest, so that the kernel's own threads on the core are not starved; as in the data thread.
const REST: std::time::Duration = std::time::Duration::from_micros(10);

/// Result of the measurement.
#[derive(Debug, Serialize)]
pub struct HostNoise {
    /// How the thread was scheduled, as far as the kernel permitted.
    pub scheduling: String,
    /// Why that is less than what a live run wants, if it is.
    pub warning: Option<String>,
    /// How long was measured.
    pub duration_ns: u64,
    /// How often the thread looked at the clock.
    pub looks: u64,
    /// Shorter gaps are no stalls.
    pub threshold_ns: u64,
    /// How many stalls there were.
    pub count: u64,
    /// The longest one.
    pub worst_ns: u64,
    /// All stalls together.
    pub total_ns: u64,
    /// Beginning, from that of the measurement, and duration; no more than a report has.
    pub list: Vec<(u64, u64)>,
}

/// Polls for so long and records every stall. The machine's limit for real-time threads is lifted meanwhile, as in a
/// run.
///
/// # Errors
/// The core does not exist or cannot be used.
pub fn measure(
    cpu: Option<usize>,
    duration: Duration,
    threshold: Duration,
) -> Result<HostNoise, StartError> {
    let _unlimited = UnlimitedRuntime::obtain();
    let readiness =
        Readiness::new().map_err(|error| StartError::new(format!("cannot poll: {error}")))?;
    let thread = std::thread::spawn(move || -> Result<HostNoise, StartError> {
        let (scheduling, warning) = prepare_thread(cpu, Scheduling::Deadline, false)?;
        let mut noise = HostNoise {
            scheduling,
            warning,
            duration_ns: 0,
            looks: 0,
            threshold_ns: threshold.as_nanos(),
            count: 0,
            worst_ns: 0,
            total_ns: 0,
            list: Vec::new(),
        };
        noise.poll(&readiness, duration, threshold);
        Ok(noise)
    });
    thread
        .join()
        .map_err(|_| StartError::new("the measuring thread failed; report this as a bug"))?
}

impl HostNoise {
    fn poll(&mut self, readiness: &Readiness, duration: Duration, threshold: Duration) {
        let (clock, mut ready) = (Clock::start(), Vec::new());
        let mut watch = StallWatch::new(threshold, clock.now());
        let mut rested = Instant::ZERO;
        loop {
            let now = clock.now();
            self.looks += 1;
            if let Some(stall) = watch.observe(now) {
                self.add(stall.start.as_nanos(), stall.duration.as_nanos());
            }
            if now.as_nanos() >= duration.as_nanos() {
                self.duration_ns = now.as_nanos();
                return;
            }
            readiness.poll(&mut ready);
            if now.saturating_since(rested) >= BUSY {
                // Too long a rest is a stall like any other: frames would have waited.
                std::thread::sleep(REST);
                rested = now;
            }
        }
    }

    fn add(&mut self, start_ns: u64, duration_ns: u64) {
        self.count += 1;
        self.total_ns += duration_ns;
        self.worst_ns = self.worst_ns.max(duration_ns);
        if self.list.len() < MAX_STALLS {
            self.list.push((start_ns, duration_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_counted_with_their_sum_and_the_longest() {
        let duration = Duration::from_millis(20);
        let noise = measure(None, duration, Duration::from_nanos(1)).unwrap();
        assert!(noise.duration_ns >= duration.as_nanos());
        assert!(noise.count > 0, "no two looks are within a nanosecond");
        assert!(noise.worst_ns <= noise.total_ns && noise.total_ns <= noise.duration_ns);
        let listed: u64 = noise.list.iter().map(|(_, length)| length).sum();
        assert!(noise.count > MAX_STALLS as u64 || listed == noise.total_ns);
    }

    #[test]
    fn a_core_that_does_not_exist() {
        let error = measure(Some(4_000), Duration::ZERO, Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("no core 4000"), "{error}");
    }
}
