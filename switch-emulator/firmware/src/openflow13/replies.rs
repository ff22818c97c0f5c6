//! The reply buffer: multipart replies of a segment are collected in it, notices are built in it, and what neither
//! overwrites goes out with the next reply (quirks 86 to 89, 107).

use openflow::bytes::{be16, be32};

/// Bytes that the firmware reserves for replies.
pub(super) const REPLY_BYTES: usize = 2_048;
/// Bytes that a reply may take beyond that here; on the board it overwrites what lies there (quirk 88).
const BEYOND_BYTES: usize = 2_048;
/// Bytes of an offending message that an error repeats.
const ERROR_DATA_BYTES: usize = 64;
/// Head of a `PACKET_IN`.
const PACKET_IN_BYTES: usize = 42;

/// The buffer.
#[derive(Debug)]
pub(super) struct Replies {
    memory: Vec<u8>,
    /// Bytes collected for the segment so far.
    used: usize,
}

/// A reply that is being written behind those collected.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    replies: &'a mut Replies,
    begin: usize,
    at: usize,
}

impl Replies {
    pub(super) fn new() -> Self {
        Self {
            memory: vec![0; REPLY_BYTES + BEYOND_BYTES],
            used: 0,
        }
    }

    /// A new segment: nothing is collected.
    pub(super) fn begin_segment(&mut self) {
        self.used = 0;
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes that are left of what the firmware reserves.
    pub(super) const fn left(&self) -> usize {
        REPLY_BYTES.saturating_sub(self.used)
    }

    /// Takes what was collected.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let used = std::mem::take(&mut self.used).min(self.memory.len());
        self.memory[..used].to_vec()
    }

    /// Clears the whole buffer, as a continued reply does.
    pub(super) fn wipe(&mut self) {
        self.memory[..REPLY_BYTES].fill(0);
        self.used = 0;
    }

    /// Begins a multipart reply of a kind.
    pub(super) fn begin(&mut self, version: u8, kind: u16, flags: u16, xid: [u8; 4]) -> Reply<'_> {
        let begin = self.used;
        let mut reply = Reply {
            replies: self,
            begin,
            at: begin,
        };
        reply.put(&[version, 19, 0, 0]);
        reply.put(&xid);
        reply.u16(kind);
        reply.u16(flags);
        reply
    }

    /// An error about what stands where the next reply would begin, instead of the request (quirk 109).
    pub(super) fn error(&self, kind: u16, code: u16) -> Vec<u8> {
        let image = self.memory.get(self.used..).unwrap_or(&[]);
        let kept = usize::from(be16(image, 2)).min(ERROR_DATA_BYTES);
        let mut error = vec![4, 1];
        error.extend((12 + kept as u16).to_be_bytes());
        error.extend(be32(image, 4).to_be_bytes());
        error.extend(kind.to_be_bytes());
        error.extend(code.to_be_bytes());
        error.extend(&image[..kept.min(image.len())]);
        error
    }

    /// Builds a `PACKET_IN` at the beginning of the buffer, whatever was collected there (quirk 89). It tells the
    /// length of what it carries (quirk 186).
    pub(super) fn packet_in(
        &mut self,
        in_port: u32,
        table: u8,
        cookie: u64,
        data: &[u8],
    ) -> Vec<u8> {
        let length = PACKET_IN_BYTES + data.len();
        let mut head = vec![4, 10];
        head.extend((length as u16).to_be_bytes());
        head.extend([0; 4]); // xid
        head.extend(u32::MAX.to_be_bytes()); // not buffered
        head.extend((data.len() as u16).to_be_bytes());
        head.extend([1, table]); // reason: by an action, always (quirk 150)
        head.extend(cookie.to_be_bytes());
        head.extend([0, 1, 0, 12, 0x80, 0, 0, 4]);
        head.extend(in_port.to_be_bytes());
        self.memory[..head.len()].copy_from_slice(&head);
        let end = length.min(self.memory.len());
        self.memory[PACKET_IN_BYTES..end].copy_from_slice(&data[..end - PACKET_IN_BYTES]);
        self.memory[..end].to_vec()
    }
}

impl Reply<'_> {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if let Some(target) = self.replies.memory.get_mut(self.at..self.at + bytes.len()) {
            target.copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.put(&value.to_be_bytes());
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.put(&vec![0; count]);
    }

    /// Leaves bytes as earlier replies left them.
    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Returns the bytes written so far.
    pub(super) const fn len(&self) -> usize {
        self.at - self.begin
    }

    /// Ends the reply, whose header says that it has `length` bytes.
    pub(super) fn finish_as(self, length: usize) {
        let begin = self.begin;
        if let Some(target) = self.replies.memory.get_mut(begin + 2..begin + 4) {
            target.copy_from_slice(&(length as u16).to_be_bytes());
        }
        self.replies.used = self.at;
    }

    pub(super) fn finish(self) {
        let length = self.len();
        self.finish_as(length);
    }
}
