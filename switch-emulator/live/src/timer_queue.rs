//! Timer queue: items in order of the instants at which they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use zodiac_firmware::Instant;

/// Items in order of their instants; those of one instant in order of insertion.
#[derive(Debug)]
pub struct TimerQueue<T> {
    heap: BinaryHeap<Reverse<QueuedTimer<T>>>,
    next_order: u64,
}

#[derive(Debug)]
struct QueuedTimer<T> {
    at: Instant,
    order: u64,
    item: T,
}

impl<T> TimerQueue<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next_order: 0,
        }
    }

    /// Adds an item that is due at `at`.
    pub fn add(&mut self, at: Instant, item: T) {
        let order = self.next_order;
        self.next_order += 1;
        self.heap.push(Reverse(QueuedTimer { at, order, item }));
    }

    /// Returns when the first item is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Removes the first item.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.item))
    }
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PartialEq for QueuedTimer<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<T> Eq for QueuedTimer<T> {}

impl<T> PartialOrd for QueuedTimer<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for QueuedTimer<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_instant_then_by_order() {
        let mut queue = TimerQueue::new();
        for (at, item) in [(5, 'c'), (3, 'a'), (5, 'd'), (4, 'b')] {
            queue.add(Instant::from_nanos(at), item);
        }
        assert_eq!(queue.next_at(), Some(Instant::from_nanos(3)));
        let order: String = std::iter::from_fn(|| queue.pop())
            .map(|(_, item)| item)
            .collect();
        assert_eq!(order, "abcd");
        assert_eq!(queue.next_at(), None);
    }
}
