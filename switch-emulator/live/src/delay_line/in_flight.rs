//! Frames inside the switch, which may emit each, changed or not, by one port, several or none.

use std::collections::VecDeque;

use zodiac_firmware::{Duration, Instant};

/// Longest header that a switch rewrites: Ethernet, VLAN tag, IPv4, TCP without options.
const HEADERS_BYTES: usize = 14 + 4 + 20 + 20;
/// Headers of UDP without a tag; the payload distinguishes short frames.
const SHORT_HEADERS_BYTES: usize = 14 + 20 + 8;
const VLAN_TAG_BYTES: usize = 4;
/// A frame that has not come back this long after its departure never will.
const RETURN_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct OutstandingFrame {
    data: Vec<u8>,
    leaves_at: Instant,
    /// Ports by which it came back, as bits.
    left: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    entries: VecDeque<OutstandingFrame>,
}

/// Similarity of a frame that comes back to one that went in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Similarity {
    Rewritten,
    SamePayload,
    Same,
}

impl InFlight {
    /// A frame goes in, in order of arrival.
    pub(super) fn add(&mut self, data: Vec<u8>, leaves_at: Instant) {
        self.entries.push_back(OutstandingFrame {
            data,
            leaves_at,
            left: 0,
        });
    }

    /// Returns when the frame that comes back by this port is to leave, or `None` if the switch has made it itself.
    ///
    /// It is taken for the frame most like it, and of several such for the first that did not come back by this port yet.
    pub(super) fn leaves_at(&mut self, port: u8, data: &[u8]) -> Option<Instant> {
        let bit = 1 << (port % 64);
        let mut found: Option<(Similarity, usize)> = None;
        for (place, entry) in self.entries.iter().enumerate() {
            if entry.left & bit != 0 {
                continue;
            }
            match similarity(&entry.data, data) {
                Some(Similarity::Same) => {
                    found = Some((Similarity::Same, place));
                    break;
                }
                Some(like) if found.is_none_or(|(best, _)| like > best) => {
                    found = Some((like, place));
                }
                _ => {}
            }
        }
        let entry = &mut self.entries[found?.1];
        entry.left |= bit;
        Some(entry.leaves_at)
    }

    /// Forgets what will not come back any more.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_over = |entry: &OutstandingFrame| entry.leaves_at + RETURN_TIMEOUT < now;
        while self.entries.front().is_some_and(is_over) {
            self.entries.pop_front();
        }
    }
}

fn similarity(went: &[u8], came: &[u8]) -> Option<Similarity> {
    if went == came {
        return Some(Similarity::Same);
    }
    if ![0, VLAN_TAG_BYTES].contains(&went.len().abs_diff(came.len())) {
        return None;
    }
    let shorter = went.len().min(came.len());
    let same_end = |headers: usize| {
        let count = shorter.saturating_sub(headers);
        went[went.len() - count..] == came[came.len() - count..]
    };
    if same_end(SHORT_HEADERS_BYTES) {
        Some(Similarity::SamePayload)
    } else {
        same_end(HEADERS_BYTES).then_some(Similarity::Rewritten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    fn frame(number: u8, header: u8) -> Vec<u8> {
        let mut data = vec![header; 302];
        data[42..].fill(number);
        data
    }

    #[test]
    fn each_frame_leaves_at_its_own_instant_also_out_of_order_and_rewritten() {
        let mut flying = InFlight::default();
        for number in 1..=4 {
            flying.add(frame(number, 0), at(number.into()));
        }
        assert_eq!(flying.leaves_at(2, &frame(3, 0)), Some(at(3)));
        assert_eq!(flying.leaves_at(2, &frame(1, 9)), Some(at(1)));
        assert_eq!(flying.leaves_at(2, &frame(4, 0)), Some(at(4)));
        assert_eq!(flying.leaves_at(2, &frame(5, 0)), None);
        assert_eq!(
            flying.leaves_at(2, &frame(1, 0)),
            None,
            "it has left by port 2"
        );
        assert_eq!(flying.leaves_at(3, &frame(1, 0)), Some(at(1)), "a flood");
    }

    #[test]
    fn one_that_the_table_dropped_does_not_give_its_instant_to_the_next() {
        let mut flying = InFlight::default();
        flying.add(frame(1, 0), at(1));
        flying.add(frame(2, 0), at(2));
        assert_eq!(flying.leaves_at(2, &frame(2, 7)), Some(at(2)));
    }

    #[test]
    fn a_tag_that_comes_or_goes_changes_nothing() {
        let mut flying = InFlight::default();
        flying.add(frame(1, 0), at(1));
        let mut tagged = frame(1, 0);
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(flying.leaves_at(2, &tagged), Some(at(1)));
        flying.add(tagged, at(2));
        assert_eq!(flying.leaves_at(3, &frame(1, 0)), Some(at(1)));
        assert_eq!(flying.leaves_at(3, &frame(1, 0)), Some(at(2)));
    }

    #[test]
    fn a_checksum_of_tcp_may_change() {
        let mut flying = InFlight::default();
        flying.add(frame(1, 0), at(1));
        let mut changed = frame(1, 4);
        changed[50] = 0xaa;
        assert_eq!(flying.leaves_at(2, &changed), Some(at(1)));
    }

    #[test]
    fn equal_frames_keep_their_order_and_what_never_comes_is_forgotten() {
        let mut flying = InFlight::default();
        flying.add(frame(1, 0), at(1));
        flying.add(frame(1, 0), at(2));
        assert_eq!(flying.leaves_at(2, &frame(1, 0)), Some(at(1)));
        assert_eq!(flying.leaves_at(2, &frame(1, 0)), Some(at(2)));
        flying.expire(at(1) + RETURN_TIMEOUT + Duration::from_nanos(1));
        assert_eq!(flying.leaves_at(3, &frame(1, 0)), Some(at(2)));
        flying.expire(at(9) + RETURN_TIMEOUT);
        assert_eq!(flying.leaves_at(4, &frame(1, 0)), None);
    }
}
