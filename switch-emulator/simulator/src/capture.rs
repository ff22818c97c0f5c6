//! Capture: every frame on a cable, and every message of a control session that needs no cable.

/// A frame on a cable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When its first bit left the sender.
    pub sent_ns: u64,
    /// When its first bit reached the other end.
    pub received_ns: u64,
    /// Name and port of the sender.
    pub from: (String, u8),
    /// Name and port at the other end.
    pub to: (String, u8),
    /// The frame, without frame check sequence and padding.
    pub data: Vec<u8>,
}

/// Payload of a TCP segment between a board and its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedSegment {
    /// When the board sent it, or when it reached the board.
    pub at_ns: u64,
    /// Whether the board sent it.
    pub is_from_board: bool,
    /// The payload.
    pub data: Vec<u8>,
}

/// A frame as it is kept during a run.
#[derive(Debug)]
pub(crate) struct FrameOnLink {
    pub(crate) link: usize,
    pub(crate) begin_ns: u64,
    pub(crate) data: Vec<u8>,
}
