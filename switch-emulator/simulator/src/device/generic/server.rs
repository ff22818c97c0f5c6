//! Shared server: forwards the frames of all ports one after another at a rate in bit/s, with a buffer before it.
//!
//! This is all that a simple device has beside its ports: frames wait in the order of their arrival, and a frame of l bytes takes
//! `8 l / rate`. It is the server of which Loko's model speaks (docs/devices.md, "A simple device").

use std::collections::VecDeque;

use zodiac_firmware::{number, section, some_number, Sourced};

section! {
    /// The numbers of the server.
    #[derive(Copy)]
    pub struct ServerProfile {
        /// Rate at which it forwards the frames of all ports together, counting frames with their FCS.
        rate_bps: u64,
        /// Bytes of whole frames that it holds, with the one that it works on.
        buffer_bytes: Option<u64>,
        /// The buffer counted in frames instead, also with the one that it works on.
        buffer_frames: Option<u64>,
    }
}

impl ServerProfile {
    /// Checks of the values: whether each holds, the key that it concerns, and how to mend it.
    pub(super) fn rules(self) -> [(bool, &'static str, &'static str); 3] {
        [
            (
                (1_000..=1_000_000_000_000).contains(&self.rate_bps),
                "server.rate_bps",
                "choose 1000 to 1000000000000",
            ),
            (
                self.buffer_bytes.is_some() != self.buffer_frames.is_some(),
                "server",
                "give either buffer_bytes or buffer_frames",
            ),
            (
                self.buffer_bytes
                    .is_none_or(|bytes| (64..=1_000_000_000).contains(&bytes))
                    && self
                        .buffer_frames
                        .is_none_or(|frames| (1..=1_000_000).contains(&frames)),
                "server",
                "choose 64 to 1000000000 buffer_bytes, or 1 to 1000000 buffer_frames",
            ),
        ]
    }
}

const PS_PER_NS: u128 = 1_000;
/// Time for one byte at 1 bit/s.
const BYTE_PS: u128 = 8_000_000_000_000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Server {
    profile: ServerProfile,
    /// When it is free, in picoseconds, so that rounding does not add up when many short frames follow each other.
    free_ps: u128,
    /// For each frame that it still holds: when that will have been forwarded, and its bytes.
    held: VecDeque<(u128, u64)>,
    held_bytes: u64,
}

impl Server {
    pub(super) fn new(profile: ServerProfile) -> Self {
        Self {
            profile,
            free_ps: 0,
            held: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// Returns when a frame that arrives now will have been forwarded, or `None` if it finds no room.
    pub(super) fn take(&mut self, now_ns: u64, frame_bytes: u64) -> Option<u64> {
        let arrived_ps = u128::from(now_ns) * PS_PER_NS;
        while let Some((_, bytes)) = self.held.front().filter(|(at_ps, _)| *at_ps <= arrived_ps) {
            self.held_bytes -= bytes;
            self.held.pop_front();
        }
        let ServerProfile {
            rate_bps,
            buffer_bytes,
            buffer_frames,
        } = self.profile;
        let fits = buffer_bytes.is_none_or(|most| self.held_bytes + frame_bytes <= most)
            && buffer_frames.is_none_or(|most| (self.held.len() as u64) < most);
        if !fits {
            return None;
        }
        let work_ps = (u128::from(frame_bytes) * BYTE_PS).div_ceil(u128::from(rate_bps));
        self.free_ps = self.free_ps.max(arrived_ps) + work_ps;
        self.held.push_back((self.free_ps, frame_bytes));
        self.held_bytes += frame_bytes;
        Some((self.free_ps / PS_PER_NS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(buffer_bytes: Option<u64>, buffer_frames: Option<u64>) -> Server {
        Server::new(ServerProfile {
            rate_bps: 8_000_000,
            buffer_bytes,
            buffer_frames,
        })
    }

    #[test]
    fn frames_pass_one_after_another_and_take_their_length() {
        let mut server = server(None, Some(10));
        assert_eq!(server.take(0, 100), Some(100_000));
        assert_eq!(server.take(50_000, 200), Some(300_000));
        assert_eq!(server.take(1_000_000, 64), Some(1_064_000));
    }

    #[test]
    fn room_in_frames_counts_the_one_in_work() {
        let mut server = server(None, Some(2));
        let found: Vec<_> = [0, 0, 0, 100_000].map(|at| server.take(at, 100)).into();
        assert_eq!(found, [Some(100_000), Some(200_000), None, Some(300_000)]);
    }

    #[test]
    fn room_in_bytes_is_full_to_the_last_byte() {
        let mut server = server(Some(300), None);
        assert_eq!(server.take(0, 200), Some(200_000));
        assert_eq!(server.take(0, 101), None);
        assert_eq!(server.take(0, 100), Some(300_000));
        assert_eq!(server.take(200_000, 200), Some(500_000));
    }
}
