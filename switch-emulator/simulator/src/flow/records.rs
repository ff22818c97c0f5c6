//! The records of an observed flow.

use std::ops::Range;

/// Recorded instead of an instant for a frame that never arrived.
pub const LOST: i64 = -1;

/// Beginning of a frame at the sender's tap and at the receiver's, [`LOST`] until then, since the run began.
#[derive(Debug, Clone, Copy)]
struct Record {
    sent_ns: i64,
    received_ns: i64,
}

/// So many of the latest records lie in the flow itself.
const LATEST: usize = 32;
/// So many of them are moved behind it at once.
const MOVED: usize = LATEST / 2;

/// When each frame of a flow was sent and received, by sequence number.
///
/// Nearly every frame is received before the next [`MOVED`] are sent. So the latest records are kept together, and the
/// earlier ones, which lie in memory of their own for each flow of a large network, are visited only now and then.
#[derive(Debug, Clone)]
#[repr(C)] // few frames need the earlier ones
pub(crate) struct Records {
    /// Each at its sequence number modulo [`LATEST`].
    latest: [Record; LATEST],
    /// All before them, by sequence number.
    earlier: Vec<Record>,
}

impl Records {
    pub(crate) fn new() -> Self {
        let none = Record {
            sent_ns: LOST,
            received_ns: LOST,
        };
        Self {
            latest: [none; LATEST],
            earlier: Vec::new(),
        }
    }

    /// About `count` frames are to come: memory for them is taken at once, so that records need not move when there are
    /// more. If there is not so much, it is taken as it is needed.
    pub(crate) fn expect(&mut self, count: usize) {
        let _ = self.earlier.try_reserve_exact(count);
    }

    /// Returns how many of `count` records are among the earlier ones.
    #[inline(always)]
    const fn moved(count: usize) -> usize {
        count.saturating_sub(LATEST).next_multiple_of(MOVED)
    }

    /// The next frame, number `sequence`, is sent at `at_ns`.
    #[inline]
    pub(crate) fn sent(&mut self, sequence: u32, at_ns: i64) {
        let number = sequence as usize;
        let moved = Self::moved(number);
        if Self::moved(number + 1) > moved {
            self.move_first(moved..moved + MOVED);
        }
        self.latest[number % LATEST] = Record {
            sent_ns: at_ns,
            received_ns: LOST,
        };
    }

    /// Moves these of the latest records behind the earlier ones; they lie next to each other.
    fn move_first(&mut self, numbers: Range<usize>) {
        let first = numbers.start % LATEST;
        let records = &self.latest[first..first + numbers.len()];
        self.earlier.extend_from_slice(records);
    }

    /// Records that one of `count` sent frames is received at `at_ns`. Returns when it was sent, or `None` if it is a
    /// duplicate.
    #[inline]
    pub(crate) fn received(&mut self, sequence: u32, count: u64, at_ns: i64) -> Option<i64> {
        let number = sequence as usize;
        let record = if number < Self::moved(count as usize) {
            &mut self.earlier[number]
        } else {
            &mut self.latest[number % LATEST]
        };
        let is_first = record.received_ns == LOST;
        if is_first {
            record.received_ns = at_ns;
        }
        is_first.then_some(record.sent_ns)
    }

    /// Takes both columns out, each with all of `count` frames.
    pub(crate) fn take(&mut self, count: u64) -> (Vec<i64>, Vec<i64>) {
        let count = count as usize;
        let moved = Self::moved(count);
        let middle = count.min(moved.next_multiple_of(LATEST));
        self.move_first(moved..middle);
        self.move_first(middle..count);
        let records = std::mem::take(&mut self.earlier).into_iter();
        let columns = records.map(|record| (record.sent_ns, record.received_ns));
        columns.unzip()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Frames arrive early, late, twice or never: all as in two plain columns.
        #[test]
        fn records_are_those_of_plain_columns(
            steps in proptest::collection::vec((0u8..3, 0usize..40), 0..200)
        ) {
            let mut records = Records::new();
            let (mut sent_ns, mut received_ns) = (Vec::new(), Vec::new());
            for (at_ns, (kind, ago)) in (1..).zip(steps) {
                if kind == 0 {
                    records.sent(sent_ns.len() as u32, at_ns);
                    sent_ns.push(at_ns);
                    received_ns.push(LOST);
                } else if let Some(number) = sent_ns.len().checked_sub(1 + ago) {
                    let is_first = received_ns[number] == LOST;
                    if is_first {
                        received_ns[number] = at_ns;
                    }
                    let expected = is_first.then_some(sent_ns[number]);
                    let count = sent_ns.len() as u64;
                    let is_first = records.received(number as u32, count, at_ns);
                    prop_assert_eq!(is_first, expected);
                }
            }
            prop_assert_eq!(records.take(sent_ns.len() as u64), (sent_ns, received_ns));
        }
    }
}
