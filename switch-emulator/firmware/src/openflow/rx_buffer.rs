//! Receive buffer of the control connection.

/// Memory for the segment that is handled.
const BUFFER_BYTES: usize = 1_536;

/// Memory in which messages are parsed.
#[derive(Debug)]
pub(super) struct RxBuffer {
    /// Bytes of an incomplete message; by the specification only.
    pub(super) stream: Vec<u8>,
    /// The segment that the firmware handles, and behind it the rest of longer ones before.
    pub(super) buffer: Vec<u8>,
    /// Bytes at the end of that buffer that the segment has not written.
    pub(super) stale_bytes: usize,
    /// Bytes that a `PACKET_OUT` has written behind its end in that buffer.
    pub(super) pushed_out: Vec<u8>,
    /// Whether a `PACKET_IN` of the message has overwritten multipart replies.
    pub(super) replies_overwritten: bool,
}

impl RxBuffer {
    pub(super) fn new() -> Self {
        Self {
            stream: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            stale_bytes: 0,
            pushed_out: Vec::new(),
            replies_overwritten: false,
        }
    }

    /// Overwrites the bytes behind a message with what it has pushed out.
    pub(super) fn overwrite(&mut self, behind: &mut [u8]) {
        for (byte, pushed) in behind.iter_mut().zip(self.pushed_out.drain(..)) {
            *byte = pushed;
        }
    }
}
