//! Congestion control: growth and reduction of the window. Windows are in segments.

use std::fmt;

use super::CongestionControl;

/// Least window after a loss.
const LEAST: f64 = 2.0;
const NS_PER_S: f64 = 1e9;

/// Information of an acknowledgement for congestion control.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckProgress {
    pub(super) now_ns: u64,
    /// Segments that it is the first to acknowledge.
    pub(super) delivered: u64,
    /// Round trip of one of them, if it was sent once only.
    pub(super) rtt_ns: Option<u64>,
    /// Shortest one so far.
    pub(super) least_rtt_ns: u64,
    /// The first segment that is not acknowledged, and the next new one.
    pub(super) acknowledged: u64,
    pub(super) next: u64,
}

pub(super) trait Control: fmt::Debug + Send {
    /// Returns the growth of the window outside of slow start.
    fn growth(&mut self, window: f64, progress: AckProgress) -> f64;
    /// Returns the threshold after a loss.
    fn lost(&mut self, window: f64) -> f64;
    /// Returns whether slow start should end before a loss.
    fn ends_slow_start(&mut self, _window: f64, _progress: AckProgress) -> bool {
        false
    }
    /// The timer expired.
    fn timed_out(&mut self) {}
}

pub(super) fn control(of: CongestionControl) -> Box<dyn Control> {
    match of {
        CongestionControl::Cubic => Box::new(Cubic::default()),
        CongestionControl::Reno => Box::new(Reno),
    }
}

/// RFC 5681.
#[derive(Debug)]
struct Reno;

#[allow(clippy::cast_precision_loss)] // segments stay below 2^53
impl Control for Reno {
    fn growth(&mut self, window: f64, progress: AckProgress) -> f64 {
        progress.delivered as f64 / window
    }

    fn lost(&mut self, window: f64) -> f64 {
        (window / 2.0).max(LEAST)
    }
}

/// RFC 9438. C and beta are those of its section 4.
#[derive(Debug, Default)]
struct Cubic {
    /// Window before the last loss; 0 before any.
    last_most: f64,
    epoch: Option<Epoch>,
    round: HyStart,
}

#[derive(Debug)]
struct Epoch {
    begin_ns: u64,
    /// The window at which the curve is flat, and the time until it gets there.
    origin: f64,
    k_s: f64,
    /// The window that Reno would have.
    reno: f64,
}

const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Growth of a Reno with this beta for each window acknowledged (section 4.3).
const RENO: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Linux: before the first loss a window grows by a twentieth of what is acknowledged at least, and never by more than a half.
const LEAST_AT_FIRST: f64 = 1.0 / 20.0;
const MOST: f64 = 1.0 / 2.0;
/// Linux: growth on the flat part.
const FLAT: f64 = 1.0 / 100.0;

#[allow(clippy::cast_precision_loss)] // times and segments stay below 2^53
impl Control for Cubic {
    fn growth(&mut self, window: f64, progress: AckProgress) -> f64 {
        let last_most = self.last_most;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            begin_ns: progress.now_ns,
            origin: last_most.max(window),
            k_s: libm::cbrt((last_most - window).max(0.0) / C),
            reno: window,
        });
        let delivered = progress.delivered as f64;
        let t_s = (progress.now_ns - epoch.begin_ns + progress.least_rtt_ns) as f64 / NS_PER_S;
        let off_s = t_s - epoch.k_s;
        let target = epoch.origin + C * off_s * off_s * off_s;
        epoch.reno += RENO * delivered / window;
        let mut share = if target > window {
            (target - window) / window
        } else {
            FLAT / window
        };
        if last_most == 0.0 {
            share = share.max(LEAST_AT_FIRST);
        }
        share = share.max((epoch.reno - window) / window);
        delivered * share.min(MOST)
    }

    fn lost(&mut self, window: f64) -> f64 {
        // Section 4.7, fast convergence: a flow whose loss comes at a smaller window than last time leaves room for others.
        self.last_most = if window < self.last_most {
            window * (1.0 + BETA) / 2.0
        } else {
            window
        };
        self.epoch = None;
        (window * BETA).max(LEAST)
    }

    fn ends_slow_start(&mut self, window: f64, progress: AckProgress) -> bool {
        self.round.ends(window, progress)
    }

    fn timed_out(&mut self) {
        self.round = HyStart::default();
    }
}

/// Ends slow start when round trips or trains of acknowledgements get longer (Ha and Rhee, Taming the elephants, 2011), with the
/// numbers of Linux.
#[derive(Debug, Default)]
struct HyStart {
    /// Segment that ends the round.
    end: u64,
    begin_ns: u64,
    last_ns: u64,
    samples: u32,
    least_ns: u64,
}

/// `HyStart` looks at round trips only from this window on.
const HYSTART_WINDOW: f64 = 16.0;
const HYSTART_SAMPLES: u32 = 8;
const HYSTART_DELAY_NS: (u64, u64) = (4_000_000, 16_000_000);
/// Acknowledgements at most this far apart belong to one train.
const TRAIN_GAP_NS: u64 = 2_000_000;
/// How long a receiver may hold an acknowledgement back.
const TRAIN_SLACK_NS: u64 = 1_000_000;

impl HyStart {
    fn ends(&mut self, window: f64, progress: AckProgress) -> bool {
        if progress.acknowledged > self.end || self.begin_ns == 0 {
            *self = Self {
                end: progress.next,
                begin_ns: progress.now_ns,
                last_ns: progress.now_ns,
                samples: 0,
                least_ns: u64::MAX,
            };
        }
        let Some(rtt_ns) = progress.rtt_ns else {
            return false;
        };
        if window < HYSTART_WINDOW {
            return false;
        }
        if progress.now_ns - self.last_ns <= TRAIN_GAP_NS {
            self.last_ns = progress.now_ns;
            if progress.now_ns - self.begin_ns
                > u64::midpoint(progress.least_rtt_ns, TRAIN_SLACK_NS)
            {
                return true;
            }
        }
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            self.least_ns = self.least_ns.min(rtt_ns);
            return false;
        }
        let (least_ns, most_ns) = HYSTART_DELAY_NS;
        self.least_ns > progress.least_rtt_ns + (progress.least_rtt_ns / 8).clamp(least_ns, most_ns)
    }
}
