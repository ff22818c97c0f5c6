//! Messages on the wire: of OpenFlow 1.0, and what 1.3 has otherwise.

/// OpenFlow 1.0 in a message's header.
pub(super) const VERSION_1_0: u8 = 1;
/// OpenFlow 1.3.
pub(super) const VERSION_1_3: u8 = 4;
/// Length of a message's header.
pub(super) const HEADER_BYTES: usize = 8;
/// Stands for memory that the firmware sends without having written it.
pub(super) const UNINITIALISED: u8 = 0;

/// Where the actions of a `PACKET_OUT` begin.
pub(super) const PACKET_OUT_BYTES: usize = 16;
/// Where the actions of a `PACKET_OUT` of 1.3 begin.
pub(super) const PACKET_OUT_13_BYTES: usize = 24;

/// Types of messages.
pub(super) mod message {
    pub(crate) const HELLO: u8 = 0;
    pub(crate) const ERROR: u8 = 1;
    pub(crate) const ECHO_REQUEST: u8 = 2;
    pub(crate) const ECHO_REPLY: u8 = 3;
    pub(crate) const VENDOR: u8 = 4;
    pub(crate) const FEATURES_REQUEST: u8 = 5;
    pub(crate) const FEATURES_REPLY: u8 = 6;
    pub(crate) const GET_CONFIG_REQUEST: u8 = 7;
    pub(crate) const GET_CONFIG_REPLY: u8 = 8;
    pub(crate) const SET_CONFIG: u8 = 9;
    pub(crate) const PACKET_IN: u8 = 10;
    pub(crate) const FLOW_REMOVED: u8 = 11;
    pub(crate) const PORT_STATUS: u8 = 12;
    pub(crate) const PACKET_OUT: u8 = 13;
    pub(crate) const PORT_MOD: u8 = 15;
    pub(crate) const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
    pub(crate) const QUEUE_GET_CONFIG_REPLY: u8 = 21;
    pub(crate) const FLOW_MOD: u8 = 14;
    pub(crate) const STATS_REQUEST: u8 = 16;
    pub(crate) const STATS_REPLY: u8 = 17;
    pub(crate) const BARRIER_REQUEST: u8 = 18;
    pub(crate) const BARRIER_REPLY: u8 = 19;
}

/// Types of messages of 1.3 that 1.0 does not have, or has under other numbers.
pub(super) mod message13 {
    pub(crate) const GROUP_MOD: u8 = 15;
    pub(crate) const PORT_MOD: u8 = 16;
    pub(crate) const TABLE_MOD: u8 = 17;
    pub(crate) const MULTIPART_REQUEST: u8 = 18;
    pub(crate) const MULTIPART_REPLY: u8 = 19;
    pub(crate) const BARRIER_REQUEST: u8 = 20;
    pub(crate) const BARRIER_REPLY: u8 = 21;
    pub(crate) const QUEUE_REQUEST: u8 = 22;
    pub(crate) const QUEUE_REPLY: u8 = 23;
    pub(crate) const ROLE_REQUEST: u8 = 24;
    pub(crate) const ROLE_REPLY: u8 = 25;
    pub(crate) const ASYNC_REQUEST: u8 = 26;
    pub(crate) const ASYNC_REPLY: u8 = 27;
    pub(crate) const SET_ASYNC: u8 = 28;
    pub(crate) const METER_MOD: u8 = 29;
}

/// A message that is being written; its length is filled in at the end.
pub(super) struct MessageBuilder(Vec<u8>);

impl MessageBuilder {
    pub(super) fn new(version: u8, kind: u8, xid: [u8; 4]) -> Self {
        let mut bytes = vec![version, kind, 0, 0];
        bytes.extend_from_slice(&xid);
        Self(bytes)
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    pub(super) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    pub(super) fn uninitialised(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, UNINITIALISED);
        self
    }

    /// Creates a text in a field of `size` bytes.
    pub(super) fn text(self, text: &str, size: usize) -> Self {
        let kept = &text.as_bytes()[..text.len().min(size)];
        self.bytes(kept).zeros(size - kept.len())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() as u16).to_be_bytes();
        self.0[2..4].copy_from_slice(&length);
        self.0
    }
}
