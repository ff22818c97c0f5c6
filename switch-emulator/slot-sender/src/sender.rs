//! The source: waits for each slot and hands its frame over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use live_host::histogram::Histogram;
use live_host::stall::StallWatch;
use zodiac_firmware::{Duration, Instant};

use crate::clock::{now, sleep_until, NS_PER_S};
use crate::config::{FramePath, SlotsConfig};
use crate::frame::{HEADERS_BYTES, SEQUENCE_AT};
use crate::rows::{Row, Spans, NEVER};
use crate::schedule::SlotSchedule;
use crate::tx_path::TxPath;

/// A system call, or a wake-up, that takes longer than this is a stall.
const MAX_CALL_TIME: Duration = Duration::from_millis(1);
/// Longest sleep before the source checks for its end.
const SLEEP_SLICE_NS: u64 = NS_PER_S / 10;

/// The source of all flows.
pub(crate) struct SlotSender {
    tx_paths: Vec<TxPath>,
    frames: Vec<Vec<u8>>,
    watch: StallWatch,
    /// Frames that the kernel did not take.
    pub(crate) refused: u64,
    /// When it was kept from running.
    pub(crate) stalls: Spans,
    /// From the beginning of a slot until its frame was handed over.
    pub(crate) late_ns: Histogram,
    /// A signal has come.
    ended: Arc<AtomicBool>,
    /// Frames are handed over before their slots begin, as the kernel holds them until then.
    hands_over_early: bool,
}

impl SlotSender {
    /// A source that sends these frames by these paths, by flow; it ends when `ended` is set.
    pub(crate) fn new(
        config: &SlotsConfig,
        tx_paths: Vec<TxPath>,
        frames: Vec<Vec<u8>>,
        ended: Arc<AtomicBool>,
    ) -> Self {
        Self {
            tx_paths,
            frames,
            watch: StallWatch::new(config.stall_threshold(), now()),
            refused: 0,
            stalls: Vec::new(),
            late_ns: Histogram::new(),
            ended,
            hands_over_early: config.path == FramePath::TimedSockets,
        }
    }

    /// Sends what is planned, or until a signal comes. Returns `rows_kept` rows, in order of sequence number and flow.
    pub(crate) fn send(
        &mut self,
        schedule: SlotSchedule,
        watch_ns: u64,
        rows_kept: usize,
    ) -> Vec<Row> {
        let never = Row {
            due: NEVER,
            begun: NEVER,
            done: NEVER,
            received: NEVER,
        };
        let mut rows = vec![never; rows_kept];
        for (flow, sequence, due) in schedule {
            self.frames[flow][HEADERS_BYTES..][SEQUENCE_AT..SEQUENCE_AT + 4]
                .copy_from_slice(&sequence.to_be_bytes());
            if !self.wait(due, watch_ns) {
                break;
            }
            let begun = self.read_clock();
            if self.tx_paths[flow].send(&self.frames[flow], due).is_err() {
                self.refused += 1;
            }
            let done = self.read_clock_after_call(MAX_CALL_TIME);
            self.late_ns.record(begun.saturating_sub(due));
            let place = sequence as usize * self.tx_paths.len() + flow;
            if let Some(row) = rows.get_mut(place) {
                *row = Row {
                    due,
                    begun,
                    done,
                    received: NEVER,
                };
            }
        }
        rows
    }

    /// Sleeps until shortly before the slot, then looks at the clock until it begins; false if a signal came before.
    fn wait(&mut self, due: u64, watch_ns: u64) -> bool {
        let awake = due.saturating_sub(watch_ns);
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return false;
            }
            let slice_end = now().as_nanos() + SLEEP_SLICE_NS;
            if slice_end >= awake {
                break;
            }
            sleep_until(slice_end);
        }
        if awake > now().as_nanos() {
            sleep_until(awake);
            self.watch.rested(Instant::from_nanos(awake));
            self.read_clock_after_call(MAX_CALL_TIME);
        }
        while !self.hands_over_early && self.read_clock() < due {
            std::hint::spin_loop();
        }
        true
    }

    /// Returns the time, after a system call or a wake-up. How long that took is itself measured: it is a stall only if
    /// it took longer than `long`.
    fn read_clock_after_call(&mut self, long: Duration) -> u64 {
        let now = now();
        if now.saturating_since(self.watch.last()) <= long {
            self.watch.rested(now);
        }
        self.read_clock()
    }

    fn read_clock(&mut self) -> u64 {
        let now = now();
        if let Some(stall) = self.watch.observe(now) {
            self.stalls
                .push((stall.start.as_nanos(), stall.duration.as_nanos()));
        }
        now.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration as Span;

    use super::*;
    use crate::config::tests::config;

    #[test]
    fn a_slot_is_never_early_and_what_it_missed_is_a_stall() {
        let config = config("packet-ring", &[0]).unwrap();
        let mut source = SlotSender::new(&config, Vec::new(), Vec::new(), Arc::default());
        let due = now().as_nanos() + 2_000_000;
        assert!(source.wait(due, 1_000_000));
        assert!(now().as_nanos() >= due);
        source.read_clock();
        let before = source.stalls.len();
        thread::sleep(Span::from_millis(2));
        source.read_clock_after_call(Duration::from_millis(60_000));
        assert_eq!(source.stalls.len(), before, "the kernel was at work");
        thread::sleep(Span::from_millis(2));
        source.wait(due, 1_000_000);
        assert_eq!(source.stalls.len(), before + 1);
    }

    #[test]
    fn a_run_without_end_ends_by_a_signal() {
        let mut config = config("packet-ring", &[0]).unwrap();
        config.periods = None;
        let ended = Arc::new(AtomicBool::new(true));
        let mut source = SlotSender::new(&config, Vec::new(), vec![vec![0; 60]], ended);
        assert!(source
            .send(SlotSchedule::new(&config, 7).unwrap(), 0, 0)
            .is_empty());
        assert_eq!(source.late_ns.quantiles().count, 0);
    }
}
