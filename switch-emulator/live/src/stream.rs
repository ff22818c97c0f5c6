//! Cuts the controller's byte stream into what a board would have got as TCP segments.
//!
//! A board parses each segment by itself and loses a message that lies across two. The kernel's stream has no
//! segments; only their number is known ([`tcp_info`](crate::tcp_info)). So even if this program reads late, it joins
//! nothing that the controller has sent separately. Where the number leaves it open which messages shared a segment,
//! the cut is made to the board's advantage: messages stay whole, and the first ones get segments of their own, as many
//! as the number allows, as Nagle's algorithm would have it. What a board could not have taken in any case, a message
//! longer than its segment size, is handed over in pieces and is lost there as on a board.

use zodiac_firmware::{Duration, Instant};

/// The board's maximum segment size in bytes.
pub const SEGMENT_BYTES: usize = 536;
/// Least payload of a full segment from a Linux controller: TCP's timestamps, which a board does not ask for, take the
/// rest. So a write that is one segment on a board's wire may come in two.
const LINUX_SEGMENT_BYTES: usize = SEGMENT_BYTES - 12;
/// An unfinished message that got no further bytes for so long is handed over as it is. Only a broken controller
/// leaves one; a board would have looked at it at once and dropped it.
pub const FLUSH_TIMEOUT: Duration = Duration::from_millis(250);

const HEADER_BYTES: usize = 8;
const HIGHEST_VERSION: u8 = 6;

/// Remark of the cutter about the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// A message came in several reads. Said once a connection.
    SplitMessage,
    /// A message of so many bytes does not fit in a segment. Said once a connection.
    LongMessage(usize),
    /// A message stopped half-way; the rest did not come in time. Said once a connection.
    UnfinishedMessage,
    /// Bytes that are no message header. Said once a connection.
    Garbage,
}

impl Remark {
    /// Returns whether only the firmware minds: a switch of the specification puts messages of any length together.
    #[must_use]
    pub const fn is_of_firmware(self) -> bool {
        matches!(self, Self::SplitMessage | Self::LongMessage(_))
    }
}

impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SplitMessage => write!(
                f,
                "a message from the controller came in several TCP segments and was put together; a real board \
                 would have lost it: write each message at once"
            ),
            Self::LongMessage(bytes) => write!(
                f,
                "a message of {bytes} bytes from the controller is longer than a segment of {SEGMENT_BYTES} bytes: \
                 the firmware loses it; send shorter messages"
            ),
            Self::UnfinishedMessage => write!(
                f,
                "a message from the controller stopped half-way; what came of it was handed to the board as it is: \
                 look for a wrong length field"
            ),
            Self::Garbage => write!(
                f,
                "bytes from the controller are no OpenFlow message; they were handed to the board as they are: \
                 does something else use its address?"
            ),
        }
    }
}

/// Cuts one connection's stream. Sans-IO: bytes and instants in, segments and remarks out.
#[derive(Debug, Default)]
pub struct StreamCutter {
    /// The unfinished message at the end of what was read.
    pending: Vec<u8>,
    pending_since: Instant,
    said: Vec<Remark>,
}

/// Result of one read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Segments in order, none empty or longer than [`SEGMENT_BYTES`].
    pub segments: Vec<Vec<u8>>,
    /// Remarks for the log.
    pub remarks: Vec<Remark>,
}

enum MessageHeader {
    Incomplete,
    Garbage,
    Message(usize),
}

impl StreamCutter {
    /// Creates a cutter for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what one read returned, and in how many TCP segments that has come.
    pub fn read(&mut self, now: Instant, bytes: &[u8], segments: usize) -> Cut {
        let mut cut = Cut::default();
        let continued = !self.pending.is_empty();
        let mut buffer = core::mem::take(&mut self.pending);
        buffer.extend_from_slice(bytes);
        let mut rest = buffer.as_slice();
        let mut messages = Vec::new();
        let is_garbage = loop {
            match parse_header(rest) {
                MessageHeader::Message(length) if length <= rest.len() => {
                    let (message, behind) = rest.split_at(length);
                    messages.push(message);
                    rest = behind;
                }
                header => break matches!(header, MessageHeader::Garbage),
            }
        };
        if continued && !messages.is_empty() {
            self.remark(&mut cut, Remark::SplitMessage);
        }
        let fewest = fewest_segments(&messages).max(bytes.len().div_ceil(LINUX_SEGMENT_BYTES));
        let alone = segments.saturating_sub(fewest);
        let mut segment = Vec::new();
        for (number, message) in messages.into_iter().enumerate() {
            self.add_message(&mut cut, &mut segment, message);
            if number < alone {
                flush(&mut cut, &mut segment);
            }
        }
        flush(&mut cut, &mut segment);
        if is_garbage {
            self.remark(&mut cut, Remark::Garbage);
            cut.segments
                .extend(rest.chunks(SEGMENT_BYTES).map(<[u8]>::to_vec));
            rest = &[];
        }
        self.pending = rest.to_vec();
        self.pending_since = now;
        cut
    }

    /// Returns when [`give_up`](Self::give_up) is due, if a message is unfinished.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        (!self.pending.is_empty()).then(|| self.pending_since + FLUSH_TIMEOUT)
    }

    /// Hands over an unfinished message that has waited too long. Early calls are harmless.
    pub fn give_up(&mut self, now: Instant) -> Cut {
        let mut cut = Cut::default();
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.remark(&mut cut, Remark::UnfinishedMessage);
            let pending = core::mem::take(&mut self.pending);
            cut.segments
                .extend(pending.chunks(SEGMENT_BYTES).map(<[u8]>::to_vec));
        }
        cut
    }

    fn add_message(&mut self, cut: &mut Cut, segment: &mut Vec<u8>, message: &[u8]) {
        if message.len() > SEGMENT_BYTES {
            self.remark(cut, Remark::LongMessage(message.len()));
            flush(cut, segment);
            cut.segments
                .extend(message.chunks(SEGMENT_BYTES).map(<[u8]>::to_vec));
            return;
        }
        if segment.len() + message.len() > SEGMENT_BYTES {
            flush(cut, segment);
        }
        segment.extend_from_slice(message);
    }

    fn remark(&mut self, cut: &mut Cut, remark: Remark) {
        let kind = core::mem::discriminant(&remark);
        if !self
            .said
            .iter()
            .any(|said| core::mem::discriminant(said) == kind)
        {
            self.said.push(remark);
            cut.remarks.push(remark);
        }
    }
}

fn flush(cut: &mut Cut, segment: &mut Vec<u8>) {
    if !segment.is_empty() {
        cut.segments.push(core::mem::take(segment));
    }
}

/// Returns the least number of segments for these messages, if none that fits in one segment lies across two.
fn fewest_segments(messages: &[&[u8]]) -> usize {
    let (mut segments, mut filled_bytes) = (0, SEGMENT_BYTES);
    for message in messages {
        filled_bytes += message.len();
        if filled_bytes > SEGMENT_BYTES {
            segments += message.len().div_ceil(SEGMENT_BYTES);
            filled_bytes = message.len().min(SEGMENT_BYTES);
        }
    }
    segments
}

/// Reads the fixed header: version, type, 16-bit length, transaction (`ofp_header`, section 5.1 of the standard).
fn parse_header(bytes: &[u8]) -> MessageHeader {
    if bytes
        .first()
        .is_some_and(|&version| version == 0 || version > HIGHEST_VERSION)
    {
        return MessageHeader::Garbage;
    }
    let Some(length) = bytes.get(2..4) else {
        return MessageHeader::Incomplete;
    };
    match usize::from(u16::from_be_bytes([length[0], length[1]])) {
        0..HEADER_BYTES => MessageHeader::Garbage,
        length => MessageHeader::Message(length),
    }
}

#[cfg(test)]
mod tests;
