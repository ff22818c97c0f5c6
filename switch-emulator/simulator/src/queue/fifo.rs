//! One queue, no rate.

use super::{BoundedQueue, Discipline, DropCounters, QueuedFrame};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Fifo {
    queue: BoundedQueue,
    dropped: DropCounters,
}

impl Fifo {
    pub(super) fn new(limit_frames: u64) -> Self {
        Self {
            queue: BoundedQueue::new(limit_frames),
            dropped: DropCounters::default(),
        }
    }
}

impl Discipline for Fifo {
    fn enqueue(&mut self, _now_ns: u64, _queue: u32, frame: QueuedFrame) {
        if !self.queue.push(frame) {
            self.dropped.full += 1;
        }
    }

    fn dequeue(&mut self, _now_ns: u64) -> Option<QueuedFrame> {
        self.queue.frames.pop_front()
    }

    fn wake_ns(&self) -> Option<u64> {
        None
    }

    fn is_idle(&self) -> bool {
        self.queue.frames.is_empty()
    }

    fn dropped(&self) -> DropCounters {
        self.dropped
    }
}
