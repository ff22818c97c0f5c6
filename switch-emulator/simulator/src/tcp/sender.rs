//! Sender: transmission, loss detection, timers.

use std::collections::VecDeque;

use super::congestion::{AckProgress, Control};
use super::receiver::Ack;

/// Initial window (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
/// Least margin of the timer over the round trip, as in Linux.
const LEAST_MARGIN_NS: u64 = 200_000_000;
/// Timeout before there is a round trip.
const FIRST_TIMEOUT_NS: u64 = 1_000_000_000;
const MAX_BACKOFF: u32 = 6;
/// Margin of the tail loss probe: two ticks of a kernel with 250 a second.
const PROBE_MARGIN_NS: u64 = 8_000_000;
/// Further margin while one segment is under way: its acknowledgement may be held back.
const PROBE_ALONE_NS: u64 = 200_000_000;
/// This many segments beyond a gap indicate a loss.
const DUPLICATES: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentState {
    UnderWay,
    Lost,
    Arrived,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    sent_ns: u64,
    fate: SegmentState,
    again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Repairs losses that acknowledgements revealed.
    Recovery,
    /// Repairs losses after a timeout.
    Timeout,
}

#[derive(Debug)]
pub(super) struct Sender {
    control: Box<dyn Control>,
    /// Maximum number of segments from the first unacknowledged one on.
    limit: u64,
    start_ns: u64,
    stop_ns: u64,
    /// The first segment that is not acknowledged; `segments` begins with it.
    acknowledged: u64,
    segments: VecDeque<Segment>,
    under_way: u64,
    arrived: u64,
    lost: u64,
    /// No segment before it is lost.
    first_lost: u64,
    window: f64,
    threshold: f64,
    /// The segment behind the last one sent when the window was last full.
    used_up_to: u64,
    phase: Phase,
    recovery_end: u64,
    /// Window before the loss, and what was delivered and sent since (RFC 6937).
    before: f64,
    delivered: u64,
    sent: u64,
    /// The segment sent last of those delivered: when, and its index.
    newest: (u64, u64),
    newest_rtt_ns: u64,
    least_rtt_ns: u64,
    /// Smoothed round trip and its variation, once there is one.
    rtt_ns: Option<(u64, u64)>,
    backoff: u32,
    timeout_ns: Option<u64>,
    probe_ns: Option<u64>,
    reordering_ns: Option<u64>,
    /// A probe is to leave whatever the window says.
    probes: bool,
    timeouts: u64,
}

impl Sender {
    pub(super) fn new(control: Box<dyn Control>, limit: u64) -> Self {
        Self {
            control,
            limit,
            start_ns: u64::MAX,
            stop_ns: 0,
            acknowledged: 0,
            segments: VecDeque::new(),
            under_way: 0,
            arrived: 0,
            lost: 0,
            first_lost: 0,
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            used_up_to: 0,
            phase: Phase::Open,
            recovery_end: 0,
            before: 0.0,
            delivered: 0,
            sent: 0,
            newest: (0, 0),
            newest_rtt_ns: 0,
            least_rtt_ns: u64::MAX,
            rtt_ns: None,
            backoff: 0,
            timeout_ns: None,
            probe_ns: None,
            reordering_ns: None,
            probes: false,
            timeouts: 0,
        }
    }

    pub(super) fn start(&mut self, start_ns: u64, stop_ns: u64) {
        (self.start_ns, self.stop_ns) = (start_ns, stop_ns);
    }

    /// The first segment that is not acknowledged.
    pub(super) fn next(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the congestion window in whole segments.
    #[allow(clippy::cast_sign_loss)] // it is at least 1
    pub(super) fn window(&self) -> u64 {
        self.window as u64
    }

    pub(super) fn timeouts(&self) -> u64 {
        self.timeouts
    }

    fn end(&self) -> u64 {
        self.acknowledged + self.segments.len() as u64
    }

    /// Returns whether a segment may leave at `now_ns`, or at `start_ns` if that is later.
    pub(super) fn may_send(&self, now_ns: u64) -> bool {
        let is_open = now_ns >= self.start_ns && now_ns < self.stop_ns;
        let has_any = self.lost > 0 || (self.segments.len() as u64) < self.limit;
        is_open && ((has_any && self.under_way < self.window().max(1)) || self.probes)
    }

    /// The segment that leaves now, and whether it was sent before.
    pub(super) fn transmit(&mut self, now_ns: u64) -> Option<(u64, bool)> {
        if !self.may_send(now_ns) {
            return None;
        }
        let probe = std::mem::take(&mut self.probes);
        let segment = Segment {
            sent_ns: now_ns,
            fate: SegmentState::UnderWay,
            again: false,
        };
        let has_room = (self.segments.len() as u64) < self.limit;
        let (index, again) = if self.lost > 0 {
            let index = self.take_lost()?;
            (index, true)
        } else if has_room {
            self.segments.push_back(segment);
            (self.end() - 1, false)
        } else if probe && !self.segments.is_empty() {
            // Nothing new may go: the last one goes again, and counts once.
            let last = self.segments.len() - 1;
            if self.segments[last].fate != SegmentState::UnderWay {
                return None;
            }
            self.under_way -= 1;
            (self.end() - 1, true)
        } else {
            return None;
        };
        let place = (index - self.acknowledged) as usize;
        self.segments[place] = Segment { again, ..segment };
        self.under_way += 1;
        self.sent += 1;
        if self.under_way >= self.window() {
            self.used_up_to = self.end();
        }
        if self.timeout_ns.is_none() {
            self.arm_timeout(now_ns);
        }
        if !probe {
            self.arm_probe(now_ns);
        }
        Some((index, again))
    }

    fn take_lost(&mut self) -> Option<u64> {
        let from = self.first_lost.max(self.acknowledged) - self.acknowledged;
        let place = (from as usize..self.segments.len())
            .find(|place| self.segments[*place].fate == SegmentState::Lost)?;
        self.lost -= 1;
        self.first_lost = self.acknowledged + place as u64 + 1;
        Some(self.acknowledged + place as u64)
    }

    /// An acknowledgement has arrived.
    pub(super) fn acknowledge(&mut self, now_ns: u64, ack: &Ack) {
        let before = self.acknowledged;
        let (mut delivered, mut rtt_ns) = (0, None);
        while self.acknowledged < ack.next {
            let Some(segment) = self.segments.pop_front() else {
                break;
            };
            if segment.fate == SegmentState::Arrived {
                self.arrived -= 1;
            } else {
                delivered += 1;
                self.arrives(now_ns, self.acknowledged, segment, &mut rtt_ns);
            }
            self.acknowledged += 1;
        }
        for (from, to) in &ack.blocks {
            for index in (*from).max(self.acknowledged)..(*to).min(self.end()) {
                let place = (index - self.acknowledged) as usize;
                let segment = self.segments[place];
                if segment.fate != SegmentState::Arrived {
                    delivered += 1;
                    self.segments[place].fate = SegmentState::Arrived;
                    self.arrived += 1;
                    self.arrives(now_ns, index, segment, &mut rtt_ns);
                }
            }
        }
        if let Some(rtt_ns) = rtt_ns {
            self.measure(rtt_ns);
        }
        let advanced = self.acknowledged > before;
        if advanced {
            self.backoff = 0;
        }
        if self.phase != Phase::Open && self.acknowledged >= self.recovery_end {
            if self.phase == Phase::Recovery {
                self.window = self.threshold;
            }
            self.phase = Phase::Open;
        }
        let found = self.find_losses(now_ns);
        if delivered > 0 {
            self.progress(now_ns, delivered, rtt_ns, advanced && !found);
        }
        if advanced || self.segments.is_empty() {
            self.timeout_ns = None;
            if !self.segments.is_empty() {
                self.arm_timeout(now_ns);
            }
        }
        self.arm_probe(now_ns);
    }

    /// A segment is known to have arrived.
    fn arrives(&mut self, now_ns: u64, index: u64, segment: Segment, rtt_ns: &mut Option<u64>) {
        match segment.fate {
            SegmentState::UnderWay => self.under_way -= 1,
            SegmentState::Lost => self.lost -= 1,
            SegmentState::Arrived => {}
        }
        let took_ns = now_ns - segment.sent_ns;
        if segment.again && took_ns < self.least_rtt_ns {
            return; // it was the first one that arrived
        }
        if !segment.again {
            *rtt_ns = Some(took_ns);
        }
        if (segment.sent_ns, index) > self.newest {
            self.newest = (segment.sent_ns, index);
            self.newest_rtt_ns = took_ns;
        }
    }

    /// Notes a round trip (RFC 6298).
    fn measure(&mut self, rtt_ns: u64) {
        self.least_rtt_ns = self.least_rtt_ns.min(rtt_ns);
        self.rtt_ns = Some(match self.rtt_ns {
            None => (rtt_ns, rtt_ns / 2),
            Some((smooth, variation)) => (
                (7 * smooth + rtt_ns) / 8,
                (3 * variation + smooth.abs_diff(rtt_ns)) / 4,
            ),
        });
    }

    /// Marks as lost the segments sent before one that has arrived, and overdue by now (RFC 8985). Returns whether
    /// there are any.
    fn find_losses(&mut self, now_ns: u64) -> bool {
        self.reordering_ns = None;
        if self.arrived == 0 && self.phase == Phase::Open {
            return false;
        }
        let slack_ns = if self.phase != Phase::Open || self.arrived >= DUPLICATES {
            0
        } else {
            self.least_rtt_ns / 4
        };
        let mut found = false;
        for (index, segment) in (self.acknowledged..).zip(&mut self.segments) {
            if segment.fate != SegmentState::UnderWay || (segment.sent_ns, index) >= self.newest {
                continue;
            }
            let due_ns = segment.sent_ns + self.newest_rtt_ns + slack_ns;
            if due_ns <= now_ns {
                segment.fate = SegmentState::Lost;
                self.first_lost = self.first_lost.min(index);
                self.under_way -= 1;
                self.lost += 1;
                found = true;
            } else {
                let next = self.reordering_ns.map_or(due_ns, |at| at.min(due_ns));
                self.reordering_ns = Some(next);
            }
        }
        if found && self.phase == Phase::Open {
            self.phase = Phase::Recovery;
            self.recovery_end = self.end();
            self.before = self.window;
            self.threshold = self.control.lost(self.window);
            (self.delivered, self.sent) = (0, 0);
            self.reduce(0, false);
        }
        found
    }

    fn progress(&mut self, now_ns: u64, delivered: u64, rtt_ns: Option<u64>, repairs: bool) {
        if self.phase == Phase::Recovery {
            self.delivered += delivered;
            self.reduce(delivered, repairs);
            return;
        }
        if self.acknowledged > self.used_up_to {
            return; // something else than the window limits it
        }
        let progress = AckProgress {
            now_ns,
            delivered,
            rtt_ns,
            least_rtt_ns: self.least_rtt_ns,
            acknowledged: self.acknowledged,
            next: self.end(),
        };
        #[allow(clippy::cast_precision_loss)] // segments stay below 2^53
        if self.window < self.threshold {
            self.window = (self.window + delivered as f64).min(self.threshold);
            if self.control.ends_slow_start(self.window, progress) {
                self.threshold = self.window;
            }
        } else {
            self.window += self.control.growth(self.window, progress);
        }
    }

    /// Sets the window in recovery (RFC 6937).
    #[allow(clippy::cast_precision_loss)] // segments stay below 2^53
    fn reduce(&mut self, delivered: u64, repairs: bool) {
        let under_way = self.under_way as f64;
        let (all, sent) = (self.delivered as f64, self.sent as f64);
        let mut more = if under_way > self.threshold {
            (all * self.threshold / self.before).ceil() - sent
        } else {
            let most = (all - sent).max(delivered as f64) + f64::from(u8::from(repairs));
            (self.threshold - under_way).min(most)
        };
        let least = if self.sent == 0 { 1.0 } else { 0.0 };
        more = more.max(least);
        self.window = (under_way + more).max(1.0);
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let is_due = |at_ns: Option<u64>| at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        if is_due(self.reordering_ns) {
            self.find_losses(now_ns);
        }
        if is_due(self.probe_ns) {
            self.probe_ns = None;
            self.probes = self.phase == Phase::Open;
        }
        if is_due(self.timeout_ns) {
            self.time_out(now_ns);
        }
    }

    fn time_out(&mut self, now_ns: u64) {
        self.timeouts += 1;
        if self.phase != Phase::Timeout {
            self.threshold = self.control.lost(self.window);
            self.control.timed_out();
        }
        self.phase = Phase::Timeout;
        self.recovery_end = self.end();
        self.window = 1.0;
        for segment in &mut self.segments {
            if segment.fate == SegmentState::UnderWay {
                segment.fate = SegmentState::Lost;
                self.lost += 1;
            }
        }
        self.under_way = 0;
        self.first_lost = self.acknowledged;
        (self.probe_ns, self.probes) = (None, false);
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.arm_timeout(now_ns);
    }

    fn timeout_span_ns(&self) -> u64 {
        let span = self.rtt_ns.map_or(FIRST_TIMEOUT_NS, |(smooth, variation)| {
            smooth + (4 * variation).max(LEAST_MARGIN_NS)
        });
        span << self.backoff
    }

    fn arm_timeout(&mut self, now_ns: u64) {
        self.timeout_ns = Some(now_ns + self.timeout_span_ns());
    }

    fn arm_probe(&mut self, now_ns: u64) {
        let fits = self.phase == Phase::Open && self.arrived == 0 && !self.segments.is_empty();
        self.probe_ns = self.rtt_ns.filter(|_| fits).map(|(smooth, _)| {
            let alone_ns = if self.segments.len() == 1 {
                PROBE_ALONE_NS
            } else {
                0
            };
            now_ns + 2 * smooth + PROBE_MARGIN_NS + alone_ns
        });
    }

    /// Returns when [`expire`](Self::expire) has next something to do, or the transfer begins.
    pub(super) fn wake_ns(&self) -> Option<u64> {
        let start = self.segments.is_empty().then_some(self.start_ns);
        let start = start.filter(|_| self.acknowledged == 0);
        [self.timeout_ns, self.probe_ns, self.reordering_ns, start]
            .into_iter()
            .flatten()
            .min()
            .filter(|at_ns| *at_ns < self.stop_ns)
    }
}
