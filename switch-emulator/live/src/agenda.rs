//! Things in order of the instants at which they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use zodiac_firmware::Instant;

/// Things in order of their instants; those of one instant in the order in which they came.
#[derive(Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Reverse<Due<T>>>,
    next_order: u64,
}

#[derive(Debug)]
struct Due<T> {
    at: Instant,
    order: u64,
    thing: T,
}

impl<T> Agenda<T> {
    /// Nothing to do.
    #[must_use]
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next_order: 0,
        }
    }

    /// Adds something that is due at `at`.
    pub fn add(&mut self, at: Instant, thing: T) {
        let order = self.next_order;
        self.next_order += 1;
        self.heap.push(Reverse(Due { at, order, thing }));
    }

    /// When the first thing is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the first thing.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap
            .pop()
            .map(|Reverse(entry)| (entry.at, entry.thing))
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_instant_then_by_order() {
        let mut agenda = Agenda::new();
        for (at, thing) in [(5, 'c'), (3, 'a'), (5, 'd'), (4, 'b')] {
            agenda.add(Instant::from_nanos(at), thing);
        }
        assert_eq!(agenda.next_at(), Some(Instant::from_nanos(3)));
        let order: String = std::iter::from_fn(|| agenda.pop())
            .map(|(_, thing)| thing)
            .collect();
        assert_eq!(order, "abcd");
        assert_eq!(agenda.next_at(), None);
    }
}
