//! Buffer shared by all queues of all ports.
//!
//! A queue may hold at most a factor times the free memory ("dynamic threshold", Choudhury and Hahne, IEEE/ACM Transactions
//! on Networking 6(2), 1998, equation 1): if n queues are full, each holds factor / (1 + n factor) of the whole memory. So
//! a queue's share falls with the number of congested ports and queues (predictability study, section III-B.2). Bytes
//! reserved for each queue are not shared: a queue takes free memory only for what it holds beyond them.

use zodiac_firmware::{number, section, some_number, Sourced};

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
        /// Of the memory, what is reserved for each queue of every port, whether it is used or not; by default nothing.
        reserved_bytes: Option<u64>,
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct BufferPool {
    profile: BufferProfile,
    /// The part of the memory that is reserved for no queue.
    shared_bytes: u64,
    used_bytes: u64,
}

impl BufferPool {
    /// A memory for this many queues in all.
    pub(super) fn new(profile: BufferProfile, queues: u64) -> Self {
        let reserved_bytes = queues * profile.reserved_bytes.unwrap_or(0);
        Self {
            profile,
            shared_bytes: profile.pool_bytes.saturating_sub(reserved_bytes),
            used_bytes: 0,
        }
    }

    /// Returns what is reserved for each queue.
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.profile.reserved_bytes.unwrap_or(0)
    }

    /// Returns whether there is room for a frame in a queue.
    pub(super) fn admits(&self, queue: Occupancy, frame_bytes: u64) -> bool {
        let reserved = self.reserved_bytes();
        let before = queue.queue_bytes.saturating_sub(reserved);
        let after = (queue.queue_bytes + frame_bytes).saturating_sub(reserved);
        let free = self.shared_bytes.saturating_sub(self.used_bytes);
        let most = free * self.profile.factor_percent / PER_CENT;
        after - before <= free && after <= most
    }

    /// Updates the pool after a port's occupancy has changed.
    pub(super) fn changed(&mut self, before: Occupancy, after: Occupancy) {
        self.used_bytes = self.used_bytes + after.shared_bytes - before.shared_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that each of `queues` queues gets if all are kept full.
    fn each(queues: usize, reserved_bytes: Option<u64>) -> u64 {
        let mut pool = BufferPool::new(
            BufferProfile {
                pool_bytes: 1_000_000,
                factor_percent: 50,
                reserved_bytes,
            },
            queues as u64,
        );
        let occupancy = |bytes: u64| Occupancy {
            queue_bytes: bytes,
            shared_bytes: bytes.saturating_sub(reserved_bytes.unwrap_or(0)),
        };
        let mut held = vec![0; queues];
        for _ in 0..10_000 {
            for bytes in &mut held {
                if pool.admits(occupancy(*bytes), 100) {
                    pool.changed(occupancy(*bytes), occupancy(*bytes + 100));
                    *bytes += 100;
                }
            }
        }
        held[0]
    }

    #[test]
    fn a_queue_gets_less_the_more_are_full() {
        for queues in [1, 2, 6, 24] {
            let expected = 1_000_000 * 50 / (100 + 50 * queues as u64);
            assert!(each(queues, None).abs_diff(expected) <= 200, "{queues}");
        }
    }

    #[test]
    fn a_queue_keeps_what_is_reserved_and_shares_the_rest() {
        for queues in [1, 2, 6, 24] {
            let shared = 1_000_000 - queues as u64 * 40_000;
            let expected = 40_000 + shared * 50 / (100 + 50 * queues as u64);
            let held = each(queues, Some(40_000));
            assert!(held.abs_diff(expected) <= 200, "{queues}");
        }
        assert_eq!(each(25, Some(40_000)), 40_000);
    }
}
