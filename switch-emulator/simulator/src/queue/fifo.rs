//! One queue, no rate.

use super::{Bounded, Discipline, Dropped, Waiting};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Fifo {
    queue: Bounded,
    dropped: Dropped,
}

impl Fifo {
    pub(super) fn new(limit_frames: u64) -> Self {
        Self {
            queue: Bounded::new(limit_frames),
            dropped: Dropped::default(),
        }
    }
}

impl Discipline for Fifo {
    fn enqueue(&mut self, _now_ns: u64, _queue: u32, frame: Waiting) {
        if !self.queue.push(frame) {
            self.dropped.full += 1;
        }
    }

    fn dequeue(&mut self, _now_ns: u64) -> Option<Waiting> {
        self.queue.frames.pop_front()
    }

    fn wake_ns(&self) -> Option<u64> {
        None
    }

    fn is_idle(&self) -> bool {
        self.queue.frames.is_empty()
    }

    fn dropped(&self) -> Dropped {
        self.dropped
    }
}
