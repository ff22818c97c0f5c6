//! Header of messages, and how a message is written.

/// OpenFlow 1.0 in a message's header.
pub const VERSION_1_0: u8 = 1;
/// OpenFlow 1.3.
pub const VERSION_1_3: u8 = 4;
/// Length of a message's header.
pub const HEADER_BYTES: usize = 8;

/// Where the actions of a `PACKET_OUT` begin.
pub const PACKET_OUT_BYTES: usize = 16;
/// Where the actions of a `PACKET_OUT` of 1.3 begin.
pub const PACKET_OUT_13_BYTES: usize = 24;

/// A message that is being written; its length is filled in at the end.
pub struct MessageBuilder(Vec<u8>);

impl From<MessageBuilder> for Vec<u8> {
    fn from(message: MessageBuilder) -> Self {
        message.finish()
    }
}

impl MessageBuilder {
    /// Begins a message with this header.
    #[must_use]
    pub fn new(version: u8, kind: u8, xid: [u8; 4]) -> Self {
        let mut bytes = vec![version, kind, 0, 0];
        bytes.extend_from_slice(&xid);
        Self(bytes)
    }

    /// Appends bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a number of 8 bits.
    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    /// Appends a number of 16 bits.
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends a number of 32 bits.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends a number of 64 bits.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends `count` bytes of 0.
    #[must_use]
    pub fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    /// Appends a text in a field of `size` bytes.
    #[must_use]
    pub fn text(self, text: &str, size: usize) -> Self {
        let kept = &text.as_bytes()[..text.len().min(size)];
        self.bytes(kept).zeros(size - kept.len())
    }

    /// Returns its present length with the header.
    #[allow(clippy::len_without_is_empty)] // never empty
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Fills in the length, and returns the message.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() as u16).to_be_bytes();
        self.0[2..4].copy_from_slice(&length);
        self.0
    }
}
