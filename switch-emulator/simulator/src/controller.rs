//! The far end of a control session that the simulator keeps for a board: it hands over segments one by one and keeps
//! the session alive. And what controllers make of a board's bytes.

use std::collections::VecDeque;

use zodiac_firmware::Instant;

use crate::capture::CapturedSegment;
use crate::device::{Device, DeviceOutputKind, DeviceReport};

/// Default time between two segments: longer than the board works on any message, so each segment finds it idle.
pub(crate) const SEGMENT_SPACING_NS: u64 = 10_000_000;
/// How long to wait for a board to connect by itself, which it begins 2 s after power-up if it does so at all.
const CONNECT_TIMEOUT_NS: u64 = 3_000_000_000;
/// From a board's echo request to the controller's answer.
pub(crate) const ECHO_DELAY_NS: u64 = 1_000_000;

const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const HEADER_BYTES: usize = 8;

/// How long a controller waits for a reply.
const REPLY_TIMEOUT_NS: u64 = 1_000_000_000_000;

/// How fast a controller hands over its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Pause after each segment.
    pub spacing_ns: u64,
    /// Whether it waits for a reply first, up to 1000 s.
    pub awaits_reply: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            spacing_ns: SEGMENT_SPACING_NS,
            awaits_reply: false,
        }
    }
}

/// A board's control session before the run.
#[derive(Debug, Default)]
pub(crate) struct DirectSession {
    connected: bool,
    /// How far this board's time has come.
    pub(crate) now_ns: u64,
    /// Reports of the board, each with its instant.
    pub(crate) events: Vec<(u64, DeviceReport)>,
    /// Answers to echo requests and when they reach the board, in order.
    pub(crate) answers: VecDeque<(u64, Vec<u8>)>,
    /// Segments that the controller sends during the run, and when after its beginning, in order.
    pub(crate) planned: VecDeque<(u64, Vec<u8>)>,
    /// The planned segments once the run has begun, with their instants since power-up.
    pub(crate) requests: VecDeque<(u64, Vec<u8>)>,
    /// The segments that both ends have sent so far, if they are captured.
    pub(crate) capture: Option<Vec<CapturedSegment>>,
}

impl DirectSession {
    /// Opens the session if needed and hands over each segment at this pace. Returns the messages that the board sent
    /// meanwhile.
    pub(crate) fn exchange(
        &mut self,
        board: &mut Device,
        segments: &[Vec<u8>],
        pace: Pace,
    ) -> Vec<Vec<u8>> {
        let mut replies = Vec::new();
        if !self.connected {
            self.connected = true;
            self.wait_for_connect(board);
            board.connected(Instant::from_nanos(self.now_ns));
            self.settle(board, Pace::default(), &mut replies);
        }
        for segment in segments {
            self.record(self.now_ns, false, segment);
            board.segment(Instant::from_nanos(self.now_ns), segment);
            self.settle(board, pace, &mut replies);
        }
        replies
    }

    /// Keeps a segment if the session is captured.
    pub(crate) fn record(&mut self, at_ns: u64, is_from_board: bool, data: &[u8]) {
        if let Some(capture) = &mut self.capture {
            capture.push(CapturedSegment {
                at_ns,
                is_from_board,
                data: data.to_vec(),
            });
        }
    }

    /// Returns whether segments can be sent.
    pub(crate) const fn is_open(&self) -> bool {
        self.connected
    }

    /// The run begins.
    pub(crate) fn begin(&mut self, begin_ns: u64) {
        let planned = std::mem::take(&mut self.planned).into_iter();
        self.requests = planned
            .map(|(after_ns, bytes)| (begin_ns + after_ns, bytes))
            .collect();
    }

    /// Returns when the controller's next segment reaches the board.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let fronts = [self.answers.front(), self.requests.front()];
        fronts.into_iter().flatten().map(|(at_ns, _)| *at_ns).min()
    }

    /// Takes that segment.
    pub(crate) fn take_next(&mut self) -> Option<Vec<u8>> {
        let at_ns = self.next_ns()?;
        let queue = if self.answers.front().is_some_and(|(at, _)| *at == at_ns) {
            &mut self.answers
        } else {
            &mut self.requests
        };
        queue.pop_front().map(|(_, bytes)| bytes)
    }

    fn wait_for_connect(&mut self, board: &mut Device) {
        let deadline = Instant::from_nanos(self.now_ns + CONNECT_TIMEOUT_NS);
        while let Some(at) = board.poll_at().filter(|at| *at <= deadline) {
            board.advance(at);
            self.now_ns = self.now_ns.max(at.as_nanos());
            while let Some(output) = board.poll_output() {
                if output.kind == DeviceOutputKind::Connect {
                    return;
                }
            }
        }
        self.now_ns = deadline.as_nanos();
        board.advance(deadline);
    }

    fn settle(&mut self, board: &mut Device, pace: Pace, replies: &mut Vec<Vec<u8>>) {
        if pace.awaits_reply {
            let (already, deadline_ns) = (replies.len(), self.now_ns + REPLY_TIMEOUT_NS);
            self.collect(board, replies);
            while replies.len() == already {
                let next_ns = board.poll_at().map(Instant::as_nanos);
                let Some(at_ns) = next_ns.filter(|at_ns| *at_ns <= deadline_ns) else {
                    break;
                };
                self.now_ns = self.now_ns.max(at_ns);
                board.advance(Instant::from_nanos(self.now_ns));
                self.collect(board, replies);
            }
        }
        self.now_ns += pace.spacing_ns;
        board.advance(Instant::from_nanos(self.now_ns));
        self.collect(board, replies);
    }

    /// Takes what the board has given out.
    fn collect(&mut self, board: &mut Device, replies: &mut Vec<Vec<u8>>) {
        while let Some(output) = board.poll_output() {
            match output.kind {
                DeviceOutputKind::Controller(bytes) => {
                    self.record(output.at.as_nanos(), true, &bytes);
                    replies.push(bytes);
                }
                DeviceOutputKind::Event(event) => {
                    self.events.push((output.at.as_nanos(), event));
                }
                DeviceOutputKind::Connect
                | DeviceOutputKind::Close
                | DeviceOutputKind::Frame { .. } => {}
            }
        }
    }
}

/// Puts the messages of a stream together.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    begun: Vec<u8>,
    /// Reassembled messages, in order.
    pub(crate) received: Vec<Vec<u8>>,
}

impl Messages {
    /// Returns the messages that `bytes`, the next of the stream, complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.begun.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while self.begun.len() >= HEADER_BYTES {
            let length = u16::from_be_bytes([self.begun[2], self.begun[3]]);
            let length = usize::from(length).max(HEADER_BYTES);
            if length > self.begun.len() {
                break;
            }
            let rest = self.begun.split_off(length);
            messages.push(std::mem::replace(&mut self.begun, rest));
        }
        messages
    }
}

/// Answers to the echo requests among the messages in `bytes`, or `None` if there are none.
pub(crate) fn echo_replies(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut replies = Vec::new();
    let mut rest = bytes;
    while rest.len() >= HEADER_BYTES {
        if rest[1] == ECHO_REQUEST {
            replies.extend([rest[0], ECHO_REPLY, 0, HEADER_BYTES as u8]);
            replies.extend(&rest[4..HEADER_BYTES]);
        }
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]])).max(HEADER_BYTES);
        rest = rest.get(length..).unwrap_or_default();
    }
    (!replies.is_empty()).then_some(replies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_put_together() {
        let mut messages = Messages::default();
        let hello = vec![4, 0, 0, 8, 0, 0, 0, 1];
        let stream = [hello.clone(), hello.clone()].concat();
        assert_eq!(messages.take(&stream[..3]), Vec::<Vec<u8>>::new());
        assert_eq!(messages.take(&stream[3..15]), std::slice::from_ref(&hello));
        assert_eq!(messages.take(&stream[15..]), [hello]);
    }

    #[test]
    fn answers_echo_requests_and_nothing_else() {
        let hello = [4, 0, 0, 8, 0, 0, 0, 1];
        let echo = [1, 2, 0, 8, 0xd2, 4, 0, 0];
        assert_eq!(echo_replies(&hello), None);
        assert_eq!(
            echo_replies(&[hello, echo].concat()),
            Some(vec![1, 3, 0, 8, 0xd2, 4, 0, 0])
        );
        assert_eq!(echo_replies(&echo[..5]), None);
        assert_eq!(echo_replies(&[1, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
