//! Strict priority, as in switch chips: the queue to send from is chosen only every so often.
//!
//! Queue 0 has the lowest priority. At each check the highest nonempty queue is chosen until the next check: a frame
//! that enters a higher queue waits for it, and then for the frame on the wire. So its delay exceeds the
//! network-calculus bound by up to the time between checks, the epsilon of the predictability study (section II-B.4:
//! "updating the queue to send from only every epsilon seconds"). With a time of 0 this is textbook strict priority.

use std::collections::VecDeque;

use super::{Discipline, DropCounters, Occupancy, QueuedFrame};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct StrictPriority {
    queues: Vec<Queue>,
    /// In all queues.
    waiting_frames: usize,
    limit_frames: usize,
    check_ns: u64,
    /// When the first check is.
    phase_ns: u64,
    /// The queue to send from; before the first frame there is none.
    chosen: Option<usize>,
    /// How many checks there have been.
    checks: u64,
    wake_ns: Option<u64>,
    dropped: DropCounters,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<QueuedFrame>,
    bytes: u64,
}

impl StrictPriority {
    /// `queues` queues for `limit_frames` each; checks come every `check_ns`, from `phase_ns` on; 0: at every frame.
    pub(crate) fn new(queues: u32, limit_frames: u64, check_ns: u64, phase_ns: u64) -> Self {
        Self {
            queues: (0..queues).map(|_| Queue::default()).collect(),
            waiting_frames: 0,
            limit_frames: usize::try_from(limit_frames).unwrap_or(usize::MAX),
            check_ns,
            phase_ns,
            chosen: None,
            checks: 0,
            wake_ns: None,
            dropped: DropCounters::default(),
        }
    }

    /// Makes the checks that were due until now; what waits has not changed since the last call.
    fn check(&mut self, now_ns: u64) {
        let checks = match self.check_ns {
            0 => self.checks + 1,
            every_ns => (now_ns + every_ns - self.phase_ns) / every_ns,
        };
        if checks > self.checks || self.chosen.is_none() {
            self.checks = checks;
            if !self.is_idle() {
                self.chosen = self.queues.iter().rposition(|one| !one.frames.is_empty());
            }
        }
    }

    fn place(&self, queue: u32) -> usize {
        let place = queue as usize;
        if place < self.queues.len() {
            place
        } else {
            0
        }
    }
}

impl Discipline for StrictPriority {
    fn enqueue(&mut self, now_ns: u64, queue: u32, frame: QueuedFrame) {
        self.check(now_ns);
        let place = self.place(queue);
        let queue = &mut self.queues[place];
        if queue.frames.len() >= self.limit_frames {
            self.dropped.full += 1;
            return;
        }
        queue.bytes += frame.frame_bytes();
        queue.frames.push_back(frame);
        self.waiting_frames += 1;
    }

    fn dequeue(&mut self, now_ns: u64) -> Option<QueuedFrame> {
        self.check(now_ns);
        let queue = &mut self.queues[self.chosen?];
        let Some(frame) = queue.frames.pop_front() else {
            let waits = !self.is_idle();
            self.wake_ns = waits.then(|| self.phase_ns + self.checks * self.check_ns);
            return None;
        };
        queue.bytes -= frame.frame_bytes();
        self.waiting_frames -= 1;
        self.wake_ns = None;
        Some(frame)
    }

    fn wake_ns(&self) -> Option<u64> {
        self.wake_ns
    }

    fn is_idle(&self) -> bool {
        self.waiting_frames == 0
    }

    fn dropped(&self) -> DropCounters {
        self.dropped
    }

    fn occupancy(&self, queue: u32, reserved_bytes: u64) -> Occupancy {
        let shared = |one: &Queue| one.bytes.saturating_sub(reserved_bytes);
        Occupancy {
            queue_bytes: self.queues[self.place(queue)].bytes,
            shared_bytes: self.queues.iter().map(shared).sum(),
        }
    }

    fn refuse(&mut self) {
        self.dropped.full += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: u32 = 0;
    const HIGH: u32 = 3;

    fn frame(mark: u8) -> QueuedFrame {
        QueuedFrame {
            data: vec![mark; 60],
        }
    }

    fn next(queues: &mut StrictPriority, now_ns: u64) -> Option<u8> {
        queues.dequeue(now_ns).map(|frame| frame.data[0])
    }

    #[test]
    fn without_a_time_between_checks_the_highest_goes_first() {
        let mut queues = StrictPriority::new(4, 10, 0, 0);
        queues.enqueue(0, LOW, frame(1));
        queues.enqueue(0, LOW, frame(2));
        assert_eq!(next(&mut queues, 0), Some(1));
        queues.enqueue(1, HIGH, frame(3));
        assert_eq!(next(&mut queues, 1), Some(3));
        assert_eq!(next(&mut queues, 1), Some(2));
        assert_eq!(next(&mut queues, 1), None);
        assert_eq!(queues.wake_ns(), None);
    }

    #[test]
    fn a_higher_queue_waits_for_the_next_check() {
        let mut queues = StrictPriority::new(4, 10, 9_000, 500);
        for mark in 1..=3 {
            queues.enqueue(600, LOW, frame(mark));
        }
        assert_eq!(next(&mut queues, 600), Some(1));
        queues.enqueue(700, HIGH, frame(9));
        assert_eq!(next(&mut queues, 800), Some(2));
        assert_eq!(next(&mut queues, 9_500), Some(9));
        // The chosen queue is empty: nothing is sent until the next check.
        assert_eq!(next(&mut queues, 9_600), None);
        assert_eq!(queues.wake_ns(), Some(18_500));
        assert_eq!(next(&mut queues, 18_500), Some(3));
    }

    #[test]
    fn one_queue_alone_never_waits() {
        let mut queues = StrictPriority::new(4, 10, 9_000, 500);
        for place in 0..100 {
            queues.enqueue(place * 1_234, HIGH, frame(1));
            assert_eq!(next(&mut queues, place * 1_234), Some(1));
        }
    }

    #[test]
    fn each_queue_has_its_own_end_and_unknown_ones_are_the_lowest() {
        let mut queues = StrictPriority::new(2, 2, 0, 0);
        for _ in 0..3 {
            queues.enqueue(0, 7, frame(1));
        }
        queues.enqueue(0, 1, frame(2));
        assert_eq!(queues.dropped().full, 1);
        assert_eq!(queues.occupancy(0, 0).queue_bytes, 120);
        assert_eq!(queues.occupancy(1, 0).shared_bytes, 180);
        assert_eq!(queues.occupancy(1, 100).shared_bytes, 20);
    }
}
