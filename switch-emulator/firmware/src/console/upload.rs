//! The firmware upload of `update`: XMODEM with 8-bit checksums.
//!
//! The last four bytes of the file are the sum of all bytes before, big-endian. A file that passes is thrown away,
//! because the emulator runs a firmware of its own; the board restarts as the real one does.

use super::iteration::ConsoleIteration;
use crate::time::{Duration, Instant};

const START: u8 = 0x01;
const END: u8 = 0x04;
const ACKNOWLEDGE: u8 = 0x06;
const REFUSE: u8 = 0x15;
const CANCEL: u8 = 0x18;

const DATA_BYTES: usize = 128;
/// Start, number, its complement, data, checksum.
const BLOCK_BYTES: usize = 3 + DATA_BYTES + 1;
const CHECKSUM_BYTES: usize = 4;
/// Half of the CPU's flash, where the firmware puts the new one before it takes it over.
const MOST_BLOCKS: u32 = 256 * 1024 / DATA_BYTES as u32;
/// Silence after which the sender is asked again, and how often.
const RX_TIMEOUT: Duration = Duration::from_millis(3_000);
const MOST_REQUESTS: u32 = 20;

/// How an upload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadProgress {
    Going,
    /// The file is whole and its checksum right.
    Complete,
    Failed(&'static str),
}

/// A file that is being received.
#[derive(Debug)]
pub(super) struct Upload {
    block: Vec<u8>,
    blocks: u32,
    /// Sum of all bytes but the last four.
    sum: u32,
    tail: [u8; CHECKSUM_BYTES],
    due_at: Instant,
    requests: u32,
}

impl Upload {
    /// Waits for a sender from `now` on.
    pub(super) const fn begin(now: Instant) -> Self {
        Self {
            block: Vec::new(),
            blocks: 0,
            sum: 0,
            tail: [0; CHECKSUM_BYTES],
            due_at: now,
            requests: 0,
        }
    }

    /// Returns when the sender is asked next, if nothing comes.
    pub(super) const fn due_at(&self) -> Instant {
        self.due_at
    }

    /// Asks the sender if it was silent for too long.
    pub(super) fn wait(
        &mut self,
        now: Instant,
        iteration: &mut ConsoleIteration,
    ) -> UploadProgress {
        if now < self.due_at {
            return UploadProgress::Going;
        }
        if self.requests == MOST_REQUESTS {
            return UploadProgress::Failed("nothing was sent");
        }
        self.requests += 1;
        self.block.clear();
        self.due_at = now + RX_TIMEOUT;
        iteration.send(&[REFUSE]);
        UploadProgress::Going
    }

    /// Handles a byte of the sender.
    pub(super) fn byte(&mut self, byte: u8, iteration: &mut ConsoleIteration) -> UploadProgress {
        self.due_at = iteration.reached() + RX_TIMEOUT;
        if self.block.is_empty() {
            match byte {
                START => {}
                END => return self.end(iteration),
                CANCEL => return UploadProgress::Failed("cancelled"),
                _ => return UploadProgress::Going,
            }
        }
        self.block.push(byte);
        if self.block.len() < BLOCK_BYTES {
            return UploadProgress::Going;
        }
        let block = std::mem::take(&mut self.block);
        self.take(&block, iteration)
    }

    fn take(&mut self, block: &[u8], iteration: &mut ConsoleIteration) -> UploadProgress {
        let data = &block[3..3 + DATA_BYTES];
        let sum = data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        if block[1] != !block[2] || sum != block[BLOCK_BYTES - 1] {
            iteration.send(&[REFUSE]);
            return UploadProgress::Going;
        }
        self.requests = 0;
        if block[1] == (self.blocks + 1) as u8 {
            if self.blocks == MOST_BLOCKS {
                iteration.send(&[CANCEL, CANCEL]);
                return UploadProgress::Failed("the file is larger than 256 KiB");
            }
            self.blocks += 1;
            for byte in data {
                self.sum = self.sum.wrapping_add(self.tail[0].into());
                self.tail.rotate_left(1);
                self.tail[CHECKSUM_BYTES - 1] = *byte;
            }
        } else if block[1] != self.blocks as u8 {
            iteration.send(&[CANCEL, CANCEL]);
            return UploadProgress::Failed("a block is missing");
        }
        iteration.send(&[ACKNOWLEDGE]);
        UploadProgress::Going
    }

    fn end(&self, iteration: &mut ConsoleIteration) -> UploadProgress {
        iteration.send(&[ACKNOWLEDGE]);
        if self.blocks > 0 && self.sum == u32::from_be_bytes(self.tail) {
            UploadProgress::Complete
        } else {
            UploadProgress::Failed("the checksum is wrong")
        }
    }
}
