//! Receive buffer of the control connection.

/// Memory for the segment that is handled.
const BUFFER_BYTES: usize = 1_536;

/// Memory in which messages are read.
#[derive(Debug)]
pub(super) struct RxBuffer {
    /// What has come of a message that is not complete; of the specification only.
    pub(super) stream: Vec<u8>,
    /// Where the firmware has the segment that it handles, and behind it what is left of longer ones before.
    pub(super) buffer: Vec<u8>,
    /// Bytes at the end of that buffer that the segment has not written.
    pub(super) stale_bytes: usize,
    /// What a `PACKET_OUT` has written behind its end in that buffer.
    pub(super) pushed_out: Vec<u8>,
}

impl RxBuffer {
    pub(super) fn new() -> Self {
        Self {
            stream: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            stale_bytes: 0,
            pushed_out: Vec::new(),
        }
    }
}
