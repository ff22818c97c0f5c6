//! The records of an observed flow.

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
/// So many of them are moved to the columns at once.
const MOVED: usize = LATEST / 2;

/// When each frame of a flow was sent and received, by sequence number.
///
/// Nearly every frame is received before the next [`MOVED`] are sent. So the latest records are kept together, and the
/// columns behind them, which lie in memory of their own for each flow of a large network, are visited only now and then.
#[derive(Debug, Clone)]
#[repr(C)] // the columns come last: few frames need them
pub(crate) struct Records {
    count: usize,
    /// So many of the first are in the columns, a multiple of [`MOVED`].
    moved: usize,
    /// Those behind them, each at its sequence number modulo [`LATEST`].
    latest: [Record; LATEST],
    sent_ns: Vec<i64>,
    received_ns: Vec<i64>,
}

impl Records {
    pub(crate) fn new() -> Self {
        let none = Record {
            sent_ns: LOST,
            received_ns: LOST,
        };
        Self {
            count: 0,
            moved: 0,
            latest: [none; LATEST],
            sent_ns: Vec::new(),
            received_ns: Vec::new(),
        }
    }

    /// The next frame is sent at `at_ns`.
    #[inline]
    pub(crate) fn sent(&mut self, at_ns: i64) {
        if self.count - self.moved == LATEST {
            self.move_first(MOVED);
        }
        self.latest[self.count % LATEST] = Record {
            sent_ns: at_ns,
            received_ns: LOST,
        };
        self.count += 1;
    }

    /// Moves so many of the latest records to the columns.
    fn move_first(&mut self, count: usize) {
        let places = (self.moved..self.moved + count).map(|number| number % LATEST);
        self.sent_ns
            .extend(places.clone().map(|place| self.latest[place].sent_ns));
        self.received_ns
            .extend(places.map(|place| self.latest[place].received_ns));
        self.moved += count;
    }

    /// A frame that was sent is received at `at_ns`. Says when it was sent, if that is the first time.
    #[inline]
    pub(crate) fn received(&mut self, sequence: u32, at_ns: i64) -> Option<i64> {
        let number = sequence as usize;
        let (sent_ns, received_ns) = if number < self.moved {
            (self.sent_ns[number], &mut self.received_ns[number])
        } else {
            let record = &mut self.latest[number % LATEST];
            (record.sent_ns, &mut record.received_ns)
        };
        let is_first = *received_ns == LOST;
        if is_first {
            *received_ns = at_ns;
        }
        is_first.then_some(sent_ns)
    }

    /// Takes both columns out, each with all frames.
    pub(crate) fn take(&mut self) -> (Vec<i64>, Vec<i64>) {
        self.move_first(self.count - self.moved);
        (self.count, self.moved) = (0, 0);
        (
            std::mem::take(&mut self.sent_ns),
            std::mem::take(&mut self.received_ns),
        )
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
                    records.sent(at_ns);
                    sent_ns.push(at_ns);
                    received_ns.push(LOST);
                } else if let Some(number) = sent_ns.len().checked_sub(1 + ago) {
                    let is_first = received_ns[number] == LOST;
                    if is_first {
                        received_ns[number] = at_ns;
                    }
                    let expected = is_first.then_some(sent_ns[number]);
                    prop_assert_eq!(records.received(number as u32, at_ns), expected);
                }
            }
            prop_assert_eq!(records.take(), (sent_ns, received_ns));
        }
    }
}
