//! Send queue of a TCP connection: unsent messages, and which of them reach the controller.
//!
//! The firmware's link driver sends only the first buffer of a TCP segment (quirks 14 and 15). A reply that is
//! appended to a segment whose last buffer has no room left makes a second buffer: the receiver discards the
//! truncated frame, and nothing behind it arrives any more. Which buffers have room, how much waits at most and how
//! much may be on the way is what the IP stack of the board does (TCP of lwIP 1.4.1).

use std::collections::VecDeque;

/// Longest payload of a TCP segment to or from a board.
pub const MSS: usize = 536;
/// Bytes that wait for acknowledgement at most.
const SEND_BUFFER_BYTES: usize = 3_216;
/// Buffers that wait for acknowledgement at most.
const SEND_BUFFERS: usize = 24;
/// Congestion window from which a new connection's grows slowly.
const SLOW_GROWTH_BYTES: usize = 10 * MSS;
/// Congestion window of a new connection.
const FIRST_WINDOW_BYTES: usize = 2 * MSS;

/// Memory that the unacknowledged messages of all connections share: the heap of the IP stack.
const HEAP_BYTES: usize = 6 * 1_024;
/// Overhead of each block in heap and buffer.
const BLOCK_BYTES: usize = 8 + 16;
/// Room for the headers of Ethernet, IP and TCP before the first buffer of a segment.
const HEADERS_BYTES: usize = 56;

/// Heap that a buffer of `bytes` bytes takes.
const fn block(bytes: usize) -> usize {
    BLOCK_BYTES + bytes.next_multiple_of(4)
}

/// Memory class of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryClass {
    /// A whole segment's, so that later messages find room behind it.
    Roomy,
    /// Its exact size.
    Exact,
}

/// Limit on unacknowledged messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Bytes and buffers of one connection.
    SendBuffer,
    /// Memory of all connections.
    Heap,
}

/// A message found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Where.
    pub(crate) what: Room,
    /// Whether this is the first one since there was room last.
    pub(crate) is_first: bool,
}

/// A TCP segment.
#[derive(Clone, Debug)]
pub(crate) struct QueuedSegment {
    /// Position of its first byte in the stream.
    pub(crate) begin: usize,
    pub(crate) payload: Vec<u8>,
    /// Bytes of the payload in its first buffer: all that the link driver sends.
    pub(crate) first_bytes: usize,
    /// Whether it ends the stream.
    pub(crate) is_last: bool,
    buffers: usize,
    /// Free bytes of its last buffer.
    room: usize,
    /// Heap that its buffers take.
    heap_bytes: usize,
}

impl QueuedSegment {
    /// Returns position behind it; the end of the stream counts as a byte.
    pub(crate) fn end(&self) -> usize {
        self.begin + self.payload.len() + usize::from(self.is_last)
    }

    /// Returns whether the link driver sends only a part of it.
    pub(crate) const fn is_truncated(&self) -> bool {
        self.buffers > 1
    }
}

/// The sending side of one TCP connection.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Whether messages are lost as on the board. Otherwise everything arrives.
    faithful: bool,
    /// Position behind the last byte that was written.
    written: usize,
    unsent: VecDeque<QueuedSegment>,
    in_flight: VecDeque<QueuedSegment>,
    /// Congestion window.
    window: usize,
    /// Congestion window from which it grows slowly.
    slow_growth: usize,
    /// A truncated frame has been sent: the connection is stalled.
    stalled: bool,
    /// The first such frame: the payload of its segment, and what was sent of it.
    truncation: Option<(u16, u16)>,
    /// Acknowledgements since they were asked for last.
    acknowledgements: usize,
    /// The limit that a message has exceeded since the last acknowledgement. If it was the heap, later messages are
    /// lost, too.
    lost: Option<Room>,
}

impl SendQueue {
    pub(crate) const fn new(faithful: bool) -> Self {
        Self {
            faithful,
            written: 0,
            unsent: VecDeque::new(),
            in_flight: VecDeque::new(),
            window: FIRST_WINDOW_BYTES,
            slow_growth: SLOW_GROWTH_BYTES,
            stalled: false,
            truncation: None,
            acknowledgements: 0,
            lost: None,
        }
    }

    /// Heap that waits for acknowledgements.
    pub(crate) fn heap_bytes(&self) -> usize {
        let segments = self.unsent.iter().chain(&self.in_flight);
        segments.map(|segment| segment.heap_bytes).sum()
    }

    /// Returns whether something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns whether something waits for its acknowledgement.
    pub(crate) fn has_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    pub(crate) const fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Returns, once, the payload of the first truncated frame's segment, and the part of it that was sent.
    pub(crate) fn take_truncation(&mut self) -> Option<(u16, u16)> {
        self.truncation.take()
    }

    /// Position behind the last byte that was written.
    pub(crate) const fn written(&self) -> usize {
        self.written
    }

    /// Lays a message into segments, if there is room. Other connections take `elsewhere_bytes` of the heap.
    pub(crate) fn write(
        &mut self,
        buffer: MemoryClass,
        message: &[u8],
        elsewhere_bytes: usize,
    ) -> Result<(), Full> {
        let roomy = buffer == MemoryClass::Roomy;
        if let Some(what) = self.lacks(message.len(), roomy, elsewhere_bytes) {
            let is_first = self.lost.is_none();
            if self.lost != Some(Room::Heap) {
                self.lost = Some(what);
            }
            return Err(Full { what, is_first });
        }
        let mut left = message;
        if let Some(last) = self.unsent.back_mut() {
            let (within, rest) = left.split_at(left.len().min(last.room));
            last.payload.extend_from_slice(within);
            last.room -= within.len();
            if last.buffers == 1 {
                last.first_bytes += within.len();
            }
            let space = MSS - last.payload.len();
            let (appended, rest) = rest.split_at(rest.len().min(space));
            if !appended.is_empty() {
                last.payload.extend_from_slice(appended);
                if self.faithful {
                    last.buffers += 1;
                    last.heap_bytes += block(if roomy { space } else { appended.len() });
                    last.room = if roomy { space - appended.len() } else { 0 };
                } else {
                    last.first_bytes += appended.len();
                }
            }
            left = rest;
        }
        self.written += message.len() - left.len();
        for payload in left.chunks(MSS) {
            self.unsent.push_back(QueuedSegment {
                begin: self.written,
                payload: payload.to_vec(),
                first_bytes: payload.len(),
                is_last: false,
                buffers: 1,
                room: if roomy { MSS - payload.len() } else { 0 },
                heap_bytes: HEADERS_BYTES + block(if roomy { MSS } else { payload.len() }),
            });
            self.written += payload.len();
        }
        Ok(())
    }

    /// Ends the stream.
    pub(crate) fn finish(&mut self) {
        self.unsent.push_back(QueuedSegment {
            begin: self.written,
            payload: Vec::new(),
            first_bytes: 0,
            is_last: true,
            buffers: 1,
            room: 0,
            heap_bytes: HEADERS_BYTES + block(0),
        });
        self.written += 1;
    }

    /// Returns the limit that a message of `bytes` bytes exceeds.
    fn lacks(&self, bytes: usize, roomy: bool, elsewhere_bytes: usize) -> Option<Room> {
        if !self.faithful {
            return None;
        }
        let (waiting_bytes, waiting_buffers) = self.waiting();
        let room = self.unsent.back().map_or(0, |last| last.room);
        let space = self
            .unsent
            .back()
            .map_or(0, |last| MSS - last.payload.len());
        let chained = usize::from(bytes > room && space > room);
        let segments_bytes = bytes.saturating_sub(space);
        let new_buffers = chained + segments_bytes.div_ceil(MSS);
        let fits = waiting_bytes + bytes <= SEND_BUFFER_BYTES
            && waiting_buffers < SEND_BUFFERS
            && waiting_buffers + new_buffers <= SEND_BUFFERS;
        if !fits {
            return Some(Room::SendBuffer);
        }
        let size = |exact: usize, whole: usize| block(if roomy { whole } else { exact });
        let appended_bytes = (bytes - room.min(bytes)).min(space - room);
        let chain_bytes = chained * size(appended_bytes, space);
        let (whole, rest) = (segments_bytes / MSS, segments_bytes % MSS);
        let segment = |exact| HEADERS_BYTES + size(exact, MSS);
        let new_bytes =
            chain_bytes + whole * segment(MSS) + if rest > 0 { segment(rest) } else { 0 };
        let full = self.lost == Some(Room::Heap)
            || self.heap_bytes() + elsewhere_bytes + new_bytes > HEAP_BYTES;
        full.then_some(Room::Heap)
    }

    /// Bytes and buffers that wait, sent or not.
    fn waiting(&self) -> (usize, usize) {
        let segments = self.unsent.iter().chain(&self.in_flight);
        segments.fold((0, 0), |(bytes, buffers), segment| {
            (bytes + segment.payload.len(), buffers + segment.buffers)
        })
    }

    /// Returns whether something has been acknowledged since this was asked last.
    pub(crate) fn take_acknowledged(&mut self) -> bool {
        std::mem::take(&mut self.acknowledgements) > 0
    }

    /// Bytes that may be written before the buffer is full.
    pub(crate) fn free_bytes(&self) -> usize {
        SEND_BUFFER_BYTES.saturating_sub(self.waiting().0)
    }

    /// Returns the next segment to send, if the windows allow it; from now on it waits for its acknowledgement.
    pub(crate) fn next(&mut self, peer_window: usize) -> Option<&QueuedSegment> {
        let flying: usize = self.in_flight.iter().map(|sent| sent.payload.len()).sum();
        let next = self.unsent.front()?;
        if flying + next.payload.len() > self.window.min(peer_window) {
            return None;
        }
        if next.is_truncated() && !self.stalled {
            self.stalled = true;
            self.truncation = Some((next.payload.len() as u16, next.first_bytes as u16));
        }
        self.in_flight.extend(self.unsent.pop_front());
        self.in_flight.back()
    }

    /// The oldest segment that waits for its acknowledgement.
    pub(crate) fn oldest(&self) -> Option<&QueuedSegment> {
        self.in_flight.front()
    }

    /// The peer has everything before `position`; true if something was waiting for that.
    pub(crate) fn acknowledge(&mut self, position: usize) -> bool {
        let mut any = false;
        // Segments that were sent and then taken for lost can be acknowledged, too.
        for segments in [&mut self.in_flight, &mut self.unsent] {
            while segments.front().is_some_and(|sent| sent.end() <= position) {
                segments.pop_front();
                any = true;
            }
        }
        if any {
            self.acknowledgements += 1;
            self.lost = None;
            self.window += if self.window < self.slow_growth {
                MSS
            } else {
                MSS * MSS / self.window
            };
        }
        any
    }

    /// No acknowledgement has come in time: all that is on the way is to be sent again.
    pub(crate) fn time_out(&mut self, peer_window: usize) {
        self.slow_growth = (self.window.min(peer_window) / 2).max(2 * MSS);
        self.window = MSS;
        while let Some(segment) = self.in_flight.pop_back() {
            self.unsent.push_front(segment);
        }
    }

    /// The peer misses the oldest segment, which is sent again.
    pub(crate) fn lose_oldest(&mut self, peer_window: usize) {
        self.slow_growth = (self.window.min(peer_window) / 2).max(2 * MSS);
        self.window = self.slow_growth;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(queue: &SendQueue) -> Vec<(usize, usize, bool)> {
        let segments = queue.unsent.iter();
        segments
            .map(|segment| {
                let truncated = segment.is_truncated();
                (segment.payload.len(), segment.first_bytes, truncated)
            })
            .collect()
    }

    #[test]
    fn what_follows_a_roomy_message_shares_its_buffer() {
        let mut queue = SendQueue::new(true);
        queue.write(MemoryClass::Roomy, &[1; 8], 0).unwrap();
        queue.write(MemoryClass::Exact, &[2; 100], 0).unwrap();
        assert_eq!(layout(&queue), [(108, 108, false)]);
    }

    #[test]
    fn what_follows_an_exact_message_makes_a_second_buffer() {
        let mut queue = SendQueue::new(true);
        queue.write(MemoryClass::Exact, &[1; 8], 0).unwrap();
        queue.write(MemoryClass::Roomy, &[2; 600], 0).unwrap();
        assert_eq!(layout(&queue), [(536, 8, true), (72, 72, false)]);
    }

    #[test]
    fn without_faith_segments_are_whole_and_everything_fits() {
        let mut queue = SendQueue::new(false);
        for _ in 0..30 {
            queue.write(MemoryClass::Exact, &[1; 200], 0).unwrap();
        }
        assert!(layout(&queue).iter().all(|(_, _, truncated)| !truncated));
        assert_eq!(queue.written(), 6_000);
    }

    #[test]
    fn what_timed_out_is_sent_again_by_itself() {
        let mut queue = SendQueue::new(true);
        queue.write(MemoryClass::Exact, &[1; 536], 0).unwrap();
        queue.write(MemoryClass::Exact, &[2; 536], 0).unwrap();
        assert_eq!(queue.next(9_999).unwrap().begin, 0);
        assert_eq!(queue.next(9_999).unwrap().begin, 536);
        queue.time_out(9_999);
        assert_eq!(queue.next(9_999).unwrap().begin, 0);
        assert!(queue.next(9_999).is_none(), "the window is one segment");
        assert!(
            queue.acknowledge(1_072),
            "both had arrived, after all, and are done"
        );
        assert!(!queue.has_unsent() && !queue.has_in_flight());
    }

    #[test]
    fn the_end_of_the_stream_counts_as_a_byte() {
        let mut queue = SendQueue::new(true);
        queue.write(MemoryClass::Exact, &[1; 8], 0).unwrap();
        queue.finish();
        assert!(!queue.next(100).unwrap().is_last);
        let last = queue.next(100).unwrap();
        assert!(last.is_last && last.begin == 8 && last.end() == 9);
    }
}
