//! The boards of the process and the links between them, in order of time. Sans-IO.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use zodiac_firmware::{Board, Counters, Instant, Output, OutputKind, PortMask, PortNumber};

use crate::config::PortAddress;
use crate::flow_statistics;
use crate::receive_port::LinkTiming;
use crate::timer_queue::TimerQueue;

/// Ports of a board.
pub(crate) const PORTS: usize = 4;

/// All boards. Whatever is due is done in order of time over all of them, so that a frame that passes from one to
/// another keeps its exact instants however late the host is.
#[derive(Debug)]
pub struct Boards {
    slots: Vec<BoardSlot>,
    /// When each board has next something to do, so that the idle ones cost nothing.
    due: BTreeSet<(Instant, usize)>,
    /// Boards that were called since the last run and may have outputs.
    touched: Vec<usize>,
}

#[derive(Debug)]
struct BoardSlot {
    board: Board,
    timing: LinkTiming,
    /// Frames on their way, by the instants at which they will have arrived completely.
    arrivals: TimerQueue<(PortNumber, Vec<u8>)>,
    /// The other ends of this board's internal links.
    peers: [Option<PortAddress>; PORTS],
    linked: PortMask,
    /// The board's calls take non-decreasing instants; this is the last.
    last: Instant,
    /// The board's instant in [`Boards::due`].
    due: Option<Instant>,
}

impl BoardSlot {
    fn next_at(&self) -> Option<Instant> {
        self.arrivals
            .next_at()
            .into_iter()
            .chain(self.board.poll_at())
            .min()
    }

    /// Returns the instant for the next call: what is due in the past happens now.
    fn step_to(&mut self, at: Instant) -> Instant {
        self.last = self.last.max(at);
        self.last
    }
}

impl Boards {
    /// Returns these boards, with the timing of their links, wired to each other.
    #[must_use]
    pub fn new(boards: Vec<(Board, LinkTiming)>, links: &[[PortAddress; 2]]) -> Self {
        let slots = boards.into_iter().map(|(board, timing)| BoardSlot {
            board,
            timing,
            arrivals: TimerQueue::new(),
            peers: [None; PORTS],
            linked: PortMask::EMPTY,
            last: Instant::ZERO,
            due: None,
        });
        let mut slots: Vec<BoardSlot> = slots.collect();
        for (near, far) in links.iter().flat_map(|[a, b]| [(a, b), (b, a)]) {
            let slot = &mut slots[near.board];
            slot.peers[place(near.port)] = Some(*far);
            slot.linked = slot.linked.iter().chain([near.port]).collect();
        }
        let mut boards = Self {
            slots,
            due: BTreeSet::new(),
            touched: Vec::new(),
        };
        (0..boards.slots.len()).for_each(|board| boards.schedule(board));
        boards
    }

    /// A cable was plugged into this port, or pulled out of it; all are in at first.
    pub fn link(&mut self, at: PortAddress, now: Instant, is_up: bool) {
        let slot = &mut self.slots[at.board];
        let now = slot.step_to(now);
        slot.board.link_state(now, at.port, is_up);
        self.called(at.board);
    }

    /// A frame will have completely arrived at `at`. Instants of the past count as soon as possible.
    pub fn arrive(&mut self, to: PortAddress, at: Instant, frame: Vec<u8>) {
        self.slots[to.board].arrivals.add(at, (to.port, frame));
        self.schedule(to.board);
    }

    /// The controller's connection is established.
    pub fn connected(&mut self, board: usize, now: Instant) {
        let slot = &mut self.slots[board];
        let now = slot.step_to(now);
        slot.board.connected(now);
        self.called(board);
    }

    /// The controller has ended its half of the connection.
    pub fn finished(&mut self, board: usize, now: Instant) {
        let slot = &mut self.slots[board];
        let now = slot.step_to(now);
        slot.board.finished(now);
        self.called(board);
    }

    /// Nothing is left of the controller's connection.
    pub fn reset(&mut self, board: usize, now: Instant) {
        let slot = &mut self.slots[board];
        let now = slot.step_to(now);
        slot.board.reset(now);
        self.called(board);
    }

    /// For a board that keeps its connection to the controller itself, whether that is established, or `None` for
    /// others.
    #[must_use]
    pub fn own_connection(&self, board: usize) -> Option<bool> {
        let board = &self.slots[board].board;
        board.is_on_network().then(|| board.is_connected())
    }

    /// Payload of a TCP segment from the controller.
    pub fn segment(&mut self, board: usize, now: Instant, bytes: &[u8]) {
        let slot = &mut self.slots[board];
        let now = slot.step_to(now);
        slot.board.segment(now, bytes);
        self.called(board);
    }

    /// Somebody has typed at the console.
    pub fn typed(&mut self, board: usize, now: Instant, bytes: &[u8]) {
        let slot = &mut self.slots[board];
        let now = slot.step_to(now);
        slot.board.console(now, bytes);
        self.called(board);
    }

    /// The controller's address that was set at the board's console, if it is not the configured one.
    #[must_use]
    pub fn redirected(&self, board: usize) -> Option<SocketAddrV4> {
        self.slots[board].board.redirected()
    }

    /// Does all that is due until `now` and hands each output to `take`, in each board's order. What goes over an
    /// internal link is not among them.
    pub fn run_until(&mut self, now: Instant, mut take: impl FnMut(usize, Output)) {
        while self.step(now, &mut take) {}
    }

    /// Does the first thing that is due until `now`, as [`run_until`](Self::run_until), and returns whether there was
    /// one.
    pub fn step(&mut self, now: Instant, mut take: impl FnMut(usize, Output)) -> bool {
        while let Some(board) = self.touched.pop() {
            self.drain(board, &mut take);
        }
        let Some(&(at, board)) = self.due.first().filter(|(at, _)| *at <= now) else {
            return false;
        };
        let slot = &mut self.slots[board];
        if slot.arrivals.next_at() == Some(at) {
            if let Some((_, (port, frame))) = slot.arrivals.pop() {
                let at = slot.step_to(at);
                slot.board.frame_owned(at, port, frame);
            }
        } else {
            let at = slot.step_to(at);
            slot.board.advance(at);
        }
        self.schedule(board);
        self.drain(board, &mut take);
        true
    }

    /// Memory of a frame that has left, for frames to come.
    pub fn recycle(&mut self, board: usize, frame: Vec<u8>) {
        self.slots[board].board.recycle(frame);
    }

    /// Returns the counters of the board's frames.
    #[must_use]
    pub fn counters(&self, board: usize) -> Counters {
        self.slots[board].board.counters()
    }

    /// Returns the board's entries as messages of `OpenFlow`.
    #[must_use]
    pub fn flow_statistics(&self, board: usize) -> Vec<Vec<u8>> {
        flow_statistics::replies(&self.slots[board].board)
    }

    /// A board was called: it may have outputs, and something else to do next.
    fn called(&mut self, board: usize) {
        self.touched.push(board);
        self.schedule(board);
    }

    /// Notes when the board has next something to do.
    fn schedule(&mut self, board: usize) {
        let slot = &mut self.slots[board];
        let next = slot.next_at();
        let before = core::mem::replace(&mut slot.due, next);
        if before == next {
            return;
        }
        if let Some(at) = before {
            self.due.remove(&(at, board));
        }
        if let Some(at) = next {
            self.due.insert((at, board));
        }
    }

    fn drain(&mut self, board: usize, take: &mut impl FnMut(usize, Output)) {
        while let Some(output) = self.slots[board].board.poll_output() {
            let Output {
                at,
                kind: OutputKind::Frame { ports, data },
            } = output
            else {
                take(board, output);
                continue;
            };
            let outside = self.forward_over_links(board, at, ports, &data);
            if outside.is_empty() {
                self.recycle(board, data);
            } else {
                take(
                    board,
                    Output {
                        at,
                        kind: OutputKind::Frame {
                            ports: outside,
                            data,
                        },
                    },
                );
            }
        }
    }

    /// Sends a frame over the internal links among `ports`; returns the other ports.
    fn forward_over_links(
        &mut self,
        board: usize,
        at: Instant,
        ports: PortMask,
        data: &[u8],
    ) -> PortMask {
        let slot = &self.slots[board];
        let (linked, peers, timing) = (slot.linked, slot.peers, slot.timing);
        for port in ports.iter().filter(|port| linked.contains(*port)) {
            if let Some(peer) = peers[place(port)] {
                self.arrive(peer, at + timing.wire(data.len()), data.to_vec());
            }
        }
        PortMask::from_bits(ports.bits() & !linked.bits())
    }
}

/// Returns the index of a port in a list of all ports of a board.
pub(crate) fn place(port: PortNumber) -> usize {
    usize::from(port.get()) - 1
}

#[cfg(test)]
mod tests;
