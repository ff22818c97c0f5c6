//! Flows: the identity of their frames, and the taps that record when they were sent and received.

mod records;

use std::mem::offset_of;

use zodiac_firmware::FlowKey;

use crate::conformance::ConformanceChecker;
use crate::link::size_on_wire;
pub(crate) use records::Records;
pub use records::LOST;

/// Counters of one flow. `sent = received +` frames lost on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)] // what each frame changes comes last: see `TrafficFlow`
pub struct FlowCounters {
    /// Frames that the application offered to the shaper's queue.
    pub offered: u64,
    /// Frames that found the queue full; they never reached the tap.
    pub dropped_at_sender: u64,
    /// Frames still queued when the sources stopped.
    pub unsent: u64,
    /// Further copies of a frame that its host had already.
    pub duplicates: u64,
    /// Frames that reached another host.
    pub misdelivered: u64,
    /// Frames that reached a host with other bytes after the sequence number than were sent.
    pub corrupted: u64,
    /// Sent frames that break the token bucket which the source was given: none, or the simulator is wrong.
    pub nonconforming: u64,
    /// Frames that passed the sender's tap.
    pub sent: u64,
    /// Different frames that reached their host.
    pub received: u64,
    /// Longest time from the sender's tap to the receiver's of a frame that arrived.
    pub max_delay_ns: u64,
}

/// A flow and its records. The fields that each frame needs fill the second cache line; its record is in one of those
/// that follow.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct TrafficFlow {
    pub(crate) id: u32,
    /// Host that sends.
    from: u32,
    pub(crate) counters: FlowCounters,
    /// The host that is to receive, or the only one that is not to.
    host: u32,
    data_bytes: u16,
    /// Whether it is to receive.
    host_receives: bool,
    observed: bool,
    conformance: ConformanceChecker,
    /// Of each frame; empty unless the flow is observed.
    records: Records,
    sequence_offset: usize,
    /// The frame as it was sent last.
    frame: Vec<u8>,
    /// The latest frames, if the flow is not observed.
    latest: Latest,
}

const _: () = assert!(
    offset_of!(TrafficFlow, counters.sent) == 64 && offset_of!(TrafficFlow, records) == 128
);

impl TrafficFlow {
    /// `frame` must have room for flow and sequence number; the source has checked that.
    pub(crate) fn new(
        id: u32,
        mut frame: Vec<u8>,
        sequence_offset: usize,
        observed: bool,
        (from, to): (usize, Option<usize>),
        conformance: ConformanceChecker,
    ) -> Self {
        frame[sequence_offset - 4..sequence_offset].copy_from_slice(&id.to_be_bytes());
        Self {
            counters: FlowCounters::default(),
            conformance,
            from: from as u32,
            host: to.unwrap_or(from) as u32,
            host_receives: to.is_some(),
            data_bytes: frame.len() as u16,
            observed,
            id,
            sequence_offset,
            records: Records::new(),
            frame,
            latest: Latest::new(if observed { 0 } else { LATEST_FRAMES }),
        }
    }

    /// Numbers the frame that passes the sender's tap at `at_ns`.
    #[inline]
    pub(crate) fn send(&mut self, at_ns: i64) -> u32 {
        let sequence = self.counters.sent as u32;
        self.counters.sent += 1;
        let frame_bytes = self.frame_bytes();
        if !self.conformance.conforms(at_ns.unsigned_abs(), frame_bytes) {
            self.counters.nonconforming += 1;
        }
        if self.observed {
            self.records.sent(sequence, at_ns);
        } else {
            self.latest.sent(sequence, at_ns);
        }
        sequence
    }

    /// Returns the length of its frames, without frame check sequence.
    #[inline]
    pub(crate) fn data_bytes(&self) -> usize {
        self.data_bytes.into()
    }

    /// Returns the same on the wire, with it.
    #[inline]
    pub(crate) fn frame_bytes(&self) -> u64 {
        size_on_wire(self.data_bytes())
    }

    /// Index of the host that sends.
    pub(crate) const fn from(&self) -> u32 {
        self.from
    }

    /// Returns the flow key of all its frames, or `None` if it depends on their sequence number.
    pub(crate) fn constant_key(&self) -> Option<FlowKey> {
        let is_constant = self.sequence_offset >= FlowKey::BYTES;
        is_constant.then(|| FlowKey::read(&self.frame)).flatten()
    }

    /// Returns the bytes of frame number `sequence`.
    #[inline]
    pub(crate) fn frame(&mut self, sequence: u32) -> &[u8] {
        let offset = self.sequence_offset;
        self.frame[offset..offset + 4].copy_from_slice(&sequence.to_be_bytes());
        &self.frame
    }

    /// A frame that carries this flow's identifier passes `host`'s tap at `at_ns`.
    ///
    /// `sequence_offset` is where its number is now: a tag that was pushed or stripped has moved it.
    #[inline]
    fn receive(&mut self, host: usize, at_ns: i64, data: &[u8], sequence_offset: usize) {
        let (sequence, rest) = number(&data[sequence_offset..])
            .expect("an identifier is found only where a sequence number follows");
        let known = u64::from(sequence) < self.counters.sent
            && rest == &self.frame[self.sequence_offset + 4..];
        if known {
            self.receive_unchanged(host, at_ns, sequence);
        } else {
            self.counters.corrupted += 1;
        }
    }

    /// As [`receive`](Self::receive), for a frame that is as it was sent.
    #[inline(always)]
    pub(crate) fn receive_unchanged(&mut self, host: usize, at_ns: i64, sequence: u32) {
        if (host as u32 == self.host) != self.host_receives {
            self.counters.misdelivered += 1;
        } else if let Some(sent_ns) = self.first_arrival(sequence, at_ns) {
            self.counters.received += 1;
            let delay_ns = (at_ns - sent_ns).unsigned_abs();
            self.counters.max_delay_ns = self.counters.max_delay_ns.max(delay_ns);
        } else {
            self.counters.duplicates += 1;
        }
    }

    /// About `frames` frames are to be sent.
    pub(crate) fn expect(&mut self, frames: u64) {
        if self.observed {
            self.records.expect(frames as usize);
        }
    }

    /// Takes the columns of its records out.
    pub(crate) fn take_records(&mut self) -> (Vec<i64>, Vec<i64>) {
        self.records.take(self.recorded())
    }

    /// Returns how many frames there are records of.
    const fn recorded(&self) -> u64 {
        if self.observed {
            self.counters.sent
        } else {
            0
        }
    }

    /// Records an arrival. Returns when the frame was sent, or `None` for a duplicate.
    #[inline]
    fn first_arrival(&mut self, sequence: u32, at_ns: i64) -> Option<i64> {
        if self.observed {
            self.records.received(sequence, self.counters.sent, at_ns)
        } else {
            self.latest.arrived(sequence)
        }
    }
}

/// When each of the latest frames was sent, until it has arrived. More are remembered than a network can hold of
/// a flow, so that copies are told from first arrivals without a record of every frame. A frame that is no longer
/// remembered when it arrives counts as a duplicate, and not as received.
#[derive(Debug)]
struct Latest(Box<[(u32, i64)]>);

const LATEST_FRAMES: usize = 1 << 12;
/// In place of an instant: the frame has arrived.
const ARRIVED: i64 = i64::MIN;

impl Latest {
    fn new(frames: usize) -> Self {
        Self(vec![(0, ARRIVED); frames].into_boxed_slice())
    }

    #[inline]
    fn sent(&mut self, sequence: u32, at_ns: i64) {
        self.0[sequence as usize % LATEST_FRAMES] = (sequence, at_ns);
    }

    /// Returns when it was sent, if it arrives for the first time.
    #[inline]
    fn arrived(&mut self, sequence: u32) -> Option<i64> {
        let (number, sent_ns) = &mut self.0[sequence as usize % LATEST_FRAMES];
        let first = *number == sequence && *sent_ns != ARRIVED;
        first.then(|| std::mem::replace(sent_ns, ARRIVED))
    }
}

/// The number in the first four bytes, most significant first, and what follows.
#[inline]
fn number(data: &[u8]) -> Option<(u32, &[u8])> {
    let (bytes, rest) = data.split_first_chunk()?;
    Some((u32::from_be_bytes(*bytes), rest))
}

/// Length of a VLAN tag.
const TAG_BYTES: usize = 4;

/// Finds the flow to which a frame belongs by the bytes that it really carries, with or without the tag that it was sent with.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    /// Shapes of frames as they were sent come first, by their offsets; then those with a tag pushed or stripped.
    shapes: Vec<Shape>,
}

/// Frames of one length that have their identifier in one place.
#[derive(Debug)]
struct Shape {
    offset: usize,
    length: usize,
    /// Identifier and index of each flow that has such frames, ascending.
    flows: Vec<(u32, usize)>,
}

impl Shape {
    /// The index of the flow whose identifier `data`, a frame of this length, has in that place.
    #[inline]
    fn index_of(&self, data: &[u8]) -> Option<usize> {
        let (id, _) = number(&data[self.offset..])?;
        let place = self.flows.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.flows[place].1)
    }
}

impl Identities {
    pub(crate) fn new(flows: &[TrafficFlow]) -> Self {
        let mut entries: Vec<_> = flows
            .iter()
            .enumerate()
            .flat_map(|(index, flow)| {
                let (offset, length) = (flow.sequence_offset - 4, flow.frame.len());
                let stripped = offset
                    .checked_sub(TAG_BYTES)
                    .zip(length.checked_sub(TAG_BYTES));
                let pushed = (offset + TAG_BYTES, length + TAG_BYTES);
                [Some((offset, length)), Some(pushed), stripped]
                    .into_iter()
                    .flatten()
                    .map(move |(offset, length)| (offset, length, flow.id, index))
            })
            .collect();
        entries.sort_unstable();
        // Shapes as sent come first: elsewhere in a frame there may be another flow's identifier by chance.
        let as_sent = |flow: &TrafficFlow| (flow.sequence_offset - 4, flow.frame.len());
        let mut shapes: Vec<_> = flows.iter().map(as_sent).collect();
        shapes.sort_unstable();
        shapes.dedup();
        for &(offset, length, ..) in &entries {
            if !shapes.contains(&(offset, length)) {
                shapes.push((offset, length));
            }
        }
        let flows_of = |shape: (usize, usize)| {
            let alike = entries.iter().filter(|entry| (entry.0, entry.1) == shape);
            alike.map(|entry| (entry.2, entry.3)).collect()
        };
        let shapes = shapes.into_iter().map(|shape| Shape {
            offset: shape.0,
            length: shape.1,
            flows: flows_of(shape),
        });
        Self {
            shapes: shapes.collect(),
        }
    }

    /// Returns whether each frame of the flow at this index is found to be its own as long as nothing changes it.
    pub(crate) fn are_identifiable(&self, flows: &[TrafficFlow], index: usize) -> bool {
        let flow = &flows[index];
        let offset = flow.sequence_offset - 4;
        let alike = self.shapes.iter();
        let alike = alike.filter(|shape| shape.length == flow.frame.len());
        // Bytes that are compared before the flow's own identifier lie before its sequence number: all its frames have them.
        let mut looked_at_first = alike.take_while(|shape| shape.offset != offset);
        !looked_at_first.any(|shape| shape.index_of(&flow.frame).is_some())
    }

    /// The index of the flow, and where the frame has its identifier.
    #[inline]
    fn find(&self, data: &[u8]) -> Option<(usize, usize)> {
        self.shapes
            .iter()
            .filter(|shape| shape.length == data.len())
            .find_map(|shape| Some((shape.index_of(data)?, shape.offset)))
    }

    /// Records that `host` receives `data`; false if it belongs to no flow.
    #[inline]
    pub(crate) fn receive(
        &self,
        flows: &mut [TrafficFlow],
        host: usize,
        at_ns: i64,
        data: &[u8],
    ) -> bool {
        match self.find(data) {
            Some((index, offset)) => {
                flows[index].receive(host, at_ns, data, offset + 4);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
