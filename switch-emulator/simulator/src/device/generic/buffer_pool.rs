//! Buffer shared by all queues of all ports.
//!
//! A queue may hold at most a factor times the free memory ("dynamic threshold", Choudhury and Hahne, IEEE/ACM Transactions
//! on Networking 6(2), 1998, equation 1): if n queues are full, each holds factor / (1 + n factor) of the whole memory. So
//! a queue's share falls with the number of congested ports and queues (predictability study, section III-B.2).

use zodiac_firmware::{number, section, Sourced};

use crate::queue::Occupancy;

const PER_CENT: u64 = 100;

section! {
    /// The numbers of the pool.
    #[derive(Copy)]
    pub struct BufferProfile {
        /// Size of the memory.
        pool_bytes: u64,
        /// Limit of a queue in percent of the free memory.
        factor_percent: u64,
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct BufferPool {
    profile: BufferProfile,
    used_bytes: u64,
}

impl BufferPool {
    pub(super) fn new(profile: BufferProfile) -> Self {
        Self {
            profile,
            used_bytes: 0,
        }
    }

    /// Returns whether there is room for a frame in a queue.
    pub(super) fn admits(&self, queue: Occupancy, frame_bytes: u64) -> bool {
        let free = self.profile.pool_bytes.saturating_sub(self.used_bytes);
        let most = free * self.profile.factor_percent / PER_CENT;
        frame_bytes <= free && queue.queue_bytes + frame_bytes <= most
    }

    /// Updates the pool after a port's occupancy has changed.
    pub(super) fn changed(&mut self, before: Occupancy, after: Occupancy) {
        self.used_bytes = self.used_bytes + after.all_bytes - before.all_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that each of `queues` queues gets if all are kept full.
    fn each(queues: usize) -> u64 {
        let mut pool = BufferPool::new(BufferProfile {
            pool_bytes: 1_000_000,
            factor_percent: 50,
        });
        let mut held = vec![0; queues];
        for _ in 0..10_000 {
            for bytes in &mut held {
                let before = Occupancy {
                    queue_bytes: *bytes,
                    all_bytes: *bytes,
                };
                if pool.admits(before, 100) {
                    *bytes += 100;
                    pool.changed(
                        before,
                        Occupancy {
                            queue_bytes: *bytes,
                            all_bytes: *bytes,
                        },
                    );
                }
            }
        }
        held[0]
    }

    #[test]
    fn a_queue_gets_less_the_more_are_full() {
        for queues in [1, 2, 6, 24] {
            let expected = 1_000_000 * 50 / (100 + 50 * queues as u64);
            assert!(each(queues).abs_diff(expected) <= 200, "{queues}");
        }
    }
}
