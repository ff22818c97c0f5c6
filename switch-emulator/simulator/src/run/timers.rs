//! Timers of a run and their slots in the schedule.

use zodiac_firmware::Instant;

use crate::link::End;
use crate::network::Network;
use crate::schedule::{Slot, Tag, INDEX_BITS, MOST_TIMERS};
use crate::tcp::Side;

/// Event of a timer, by index in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// A board is due, by itself or because of a frame.
    Work(u32),
    /// The controller's next answer reaches its board.
    Answer(u32),
    /// A controller on a network is due.
    Stack(u32),
    /// A frame arrives at a controller.
    Arrival(u32),
    /// A source's next frame is due on its host's line.
    Release(u32),
    /// One side of a transfer over TCP is due.
    Transfer(u32, Side),
    /// A link goes down or comes up.
    LinkEvent,
}

impl Timer {
    #[inline(always)]
    pub(super) const fn tag(self) -> Tag {
        let (kind, index) = match self {
            Self::Work(board) => (0, board),
            Self::Release(source) => (1, source),
            Self::Answer(board) => (2, board),
            Self::Stack(controller) => (3, controller),
            Self::Arrival(controller) => (4, controller),
            Self::Transfer(index, Side::Sender) => (5, index),
            Self::Transfer(index, Side::Receiver) => (6, index),
            Self::LinkEvent => (7, 0),
        };
        kind << INDEX_BITS | index
    }

    #[inline(always)]
    pub(super) const fn of(tag: Tag) -> Self {
        let index = tag & (MOST_TIMERS as Tag - 1);
        match tag >> INDEX_BITS {
            0 => Self::Work(index),
            1 => Self::Release(index),
            2 => Self::Answer(index),
            3 => Self::Stack(index),
            4 => Self::Arrival(index),
            5 => Self::Transfer(index, Side::Sender),
            6 => Self::Transfer(index, Side::Receiver),
            _ => Self::LinkEvent,
        }
    }
}

impl Network {
    /// Returns all timers, with those of a board next to each other: so are their keys in memory.
    pub(super) fn timers(&self) -> Vec<Timer> {
        // They are no more than timers can be told apart.
        let each = |count: usize| 0..count as u32;
        let boards = each(self.boards.len());
        let mut timers: Vec<_> = boards.clone().map(Timer::Work).collect();
        timers.extend(each(self.sources.len()).map(Timer::Release));
        timers.sort_by_key(|timer| match *timer {
            Timer::Work(board) => board as usize,
            Timer::Release(source) => match self.links[self.line_of(source as usize)].end {
                End::Board(board, _) => board,
                End::Host(_) | End::Controller(..) => self.boards.len(),
            },
            Timer::Answer(_)
            | Timer::Stack(_)
            | Timer::Arrival(_)
            | Timer::Transfer(..)
            | Timer::LinkEvent => self.boards.len(),
        });
        timers.extend(boards.map(Timer::Answer));
        for controller in each(self.controllers.len()) {
            timers.extend([Timer::Stack(controller), Timer::Arrival(controller)]);
        }
        for connection in each(self.connections.len()) {
            timers.extend(
                [Side::Sender, Side::Receiver].map(|side| Timer::Transfer(connection, side)),
            );
        }
        timers.push(Timer::LinkEvent);
        timers
    }
}

/// When a board is to be called next.
pub(super) struct BoardTimer {
    pub(super) slot: Slot,
    /// Instant in the schedule; `NEVER` if it is not there.
    pub(super) due: Instant,
}

impl BoardTimer {
    pub(super) const fn new(slot: Slot) -> Self {
        let due = Instant::NEVER;
        Self { slot, due }
    }
}

/// Slots of the timers in the schedule.
#[derive(Default)]
pub(super) struct Slots {
    pub(super) work: Vec<BoardTimer>,
    answer: Vec<Slot>,
    stack: Vec<Slot>,
    arrival: Vec<Slot>,
    pub(super) release: Vec<Slot>,
    transfer: Vec<[Slot; 2]>,
    link_event: Slot,
}

impl Slots {
    pub(super) fn new(net: &Network, timers: &[Timer]) -> Self {
        let mut slots = Self {
            release: vec![0; net.sources.len()],
            transfer: vec![[0; 2]; net.connections.len()],
            ..Self::default()
        };
        for (slot, timer) in (0..).zip(timers) {
            match *timer {
                Timer::Work(_) => slots.work.push(BoardTimer::new(slot)),
                Timer::Answer(_) => slots.answer.push(slot),
                Timer::Stack(_) => slots.stack.push(slot),
                Timer::Arrival(_) => slots.arrival.push(slot),
                Timer::Release(source) => slots.release[source as usize] = slot,
                Timer::Transfer(index, side) => {
                    slots.transfer[index as usize][side as usize] = slot;
                }
                Timer::LinkEvent => slots.link_event = slot,
            }
        }
        slots
    }

    /// Returns the slot of a timer.
    #[inline(always)]
    pub(super) fn of(&self, timer: Timer) -> Slot {
        match timer {
            Timer::Work(board) => self.work[board as usize].slot,
            Timer::Answer(board) => self.answer[board as usize],
            Timer::Stack(controller) => self.stack[controller as usize],
            Timer::Arrival(controller) => self.arrival[controller as usize],
            Timer::Release(source) => self.release[source as usize],
            Timer::Transfer(index, side) => self.transfer[index as usize][side as usize],
            Timer::LinkEvent => self.link_event,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_says_what_its_timer_stands_for() {
        let last = MOST_TIMERS as u32 - 1;
        for index in [0, 1, last] {
            for timer in [
                Timer::Work(index),
                Timer::Answer(index),
                Timer::Stack(index),
                Timer::Arrival(index),
                Timer::Release(index),
                Timer::Transfer(index, Side::Sender),
                Timer::Transfer(index, Side::Receiver),
                Timer::LinkEvent,
            ] {
                assert_eq!(Timer::of(timer.tag()), timer);
            }
        }
    }
}
