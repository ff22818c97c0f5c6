//! Receiver: acknowledges segments.

use std::collections::BTreeMap;

/// How long an acknowledgement waits for a second segment: the least of Linux.
const DELAY_NS: u64 = 40_000_000;
/// This many segments at the beginning are acknowledged one by one, as Linux does.
const QUICK_SEGMENTS: u64 = 16;
/// How many blocks (RFC 2018) fit beside time stamps.
const BLOCKS: usize = 3;

/// An acknowledgement, in segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ack {
    /// All before it have arrived.
    pub(super) next: u64,
    /// Blocks of later segments that have arrived, the latest block first: begin and end, which is not in it.
    pub(super) blocks: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct Receiver {
    next: u64,
    /// Blocks received out of order: begin and end.
    blocks: BTreeMap<u64, u64>,
    /// A segment of each block, from the latest on.
    latest: Vec<u64>,
    unacknowledged: u64,
    quick: u64,
    due_ns: Option<u64>,
    /// Acknowledgements that wait for the line: one for each segment that asks for one at once.
    ready: std::collections::VecDeque<Ack>,
}

impl Receiver {
    /// The first segment that is missing.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// A segment has arrived.
    pub(super) fn receive(&mut self, now_ns: u64, index: u64) {
        let in_order = index == self.next && self.blocks.is_empty();
        if index == self.next {
            self.next += 1;
            if let Some(end) = self.blocks.remove(&self.next) {
                self.next = end;
            }
        } else if index > self.next && !self.has(index) {
            self.keep(index);
        }
        if !in_order {
            self.acknowledge();
            return;
        }
        self.unacknowledged += 1;
        self.quick += 1;
        if self.unacknowledged >= 2 || self.quick <= QUICK_SEGMENTS {
            self.acknowledge();
        } else {
            self.due_ns = Some(now_ns + DELAY_NS);
        }
    }

    fn has(&self, index: u64) -> bool {
        self.block(index).is_some()
    }

    /// The block that has this segment.
    fn block(&self, index: u64) -> Option<(u64, u64)> {
        let (from, to) = self.blocks.range(..=index).next_back()?;
        (index < *to).then_some((*from, *to))
    }

    fn keep(&mut self, index: u64) {
        let end = self.blocks.remove(&(index + 1)).unwrap_or(index + 1);
        let before = self.blocks.range(..index).next_back();
        match before
            .filter(|(_, to)| **to == index)
            .map(|(from, _)| *from)
        {
            Some(from) => self.blocks.insert(from, end),
            None => self.blocks.insert(index, end),
        };
        self.latest.insert(0, index);
    }

    fn acknowledge(&mut self) {
        self.unacknowledged = 0;
        self.due_ns = None;
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        let mut kept = Vec::new();
        for index in std::mem::take(&mut self.latest) {
            match self.block(index) {
                Some(block) if !blocks.contains(&block) && blocks.len() < BLOCKS => {
                    blocks.push(block);
                    kept.push(index);
                }
                _ => {}
            }
        }
        self.latest = kept;
        self.ready.push_back(Ack {
            next: self.next,
            blocks,
        });
    }

    /// Lets go what has waited long enough.
    pub(super) fn expire(&mut self, now_ns: u64) {
        if self.due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.acknowledge();
        }
    }

    /// The acknowledgement that leaves next.
    pub(super) fn take(&mut self) -> Option<Ack> {
        self.ready.pop_front()
    }

    pub(super) fn may_send(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn wake_ns(&self) -> Option<u64> {
        self.due_ns
    }
}
