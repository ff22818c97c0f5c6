//! The receive ring of the CPU's MAC, and memory for frames that is used again.

use std::collections::VecDeque;

use crate::port::PortNumber;
use crate::profile::Buffer;
use crate::time::Instant;

/// A frame on its way to the CPU.
#[derive(Debug)]
pub(crate) struct ReceivedFrame {
    /// When it arrived at its port; once it is on the link to the CPU, when it arrives in the ring.
    pub(crate) at: Instant,
    pub(crate) port: PortNumber,
    /// Without FCS, padded to 60 bytes.
    pub(crate) data: Vec<u8>,
}

/// The receive ring: a frame occupies whole units from its arrival until an iteration of the main loop copies it.
#[derive(Debug)]
pub(crate) struct ReceiveRing {
    units: u32,
    unit_bytes: u32,
    used: u32,
    peak: u32,
    held: VecDeque<ReceivedFrame>,
}

impl ReceiveRing {
    pub(crate) fn new(buffer: &Buffer) -> Self {
        Self {
            units: buffer.units as u32,
            unit_bytes: buffer.unit_bytes as u32,
            used: 0,
            peak: 0,
            held: VecDeque::new(),
        }
    }

    /// Returns when the frame that is next for the CPU has arrived, if one has.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.held.front().map(|frame| frame.at)
    }

    /// A frame has arrived. It comes back when there is no room for it.
    #[inline]
    pub(crate) fn push(&mut self, frame: ReceivedFrame) -> Result<(), ReceivedFrame> {
        let units = self.units_of(&frame);
        if self.used + units > self.units {
            return Err(frame);
        }
        self.used += units;
        self.peak = self.peak.max(self.used);
        self.held.push_back(frame);
        Ok(())
    }

    /// Takes the oldest frame out and frees its units.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<ReceivedFrame> {
        let frame = self.held.pop_front()?;
        self.used -= self.units_of(&frame);
        Some(frame)
    }

    /// Returns whether no frame is in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Records the peak of a frame on the fast path: it and those behind it occupied `units` units.
    #[inline]
    pub(crate) fn record_peak(&mut self, units: u32) {
        self.peak = self.peak.max(units);
    }

    /// Returns the units in use.
    #[inline]
    pub(crate) const fn used(&self) -> u32 {
        self.used
    }

    /// Returns whether frames that come soon may find no room: at least half of the units are in use.
    #[inline]
    pub(crate) const fn is_half_full(&self) -> bool {
        self.would_be_half_full(self.used)
    }

    /// As [`fills`](Self::fills), if `used` units are in use.
    #[inline]
    pub(crate) const fn would_be_half_full(&self, used: u32) -> bool {
        used >= self.units / 2
    }

    /// Most units that were in use at once.
    pub(crate) const fn peak(&self) -> u32 {
        self.peak
    }

    #[inline]
    fn units_of(&self, frame: &ReceivedFrame) -> u32 {
        self.units_for(length_with_fcs(frame.data.len()))
    }

    /// Returns the units that a frame of `length` bytes (with FCS) occupies.
    #[inline(always)]
    pub(crate) const fn units_for(&self, length: usize) -> u32 {
        (length as u32).div_ceil(self.unit_bytes)
    }

    /// Returns whether so many units fit at once.
    #[inline]
    pub(crate) const fn has_room_for(&self, units: u32) -> bool {
        units <= self.units
    }
}

/// Returns the length on the wire of a frame of `bytes` bytes: padded to the minimum, with FCS.
#[inline]
pub(crate) const fn length_with_fcs(bytes: usize) -> usize {
    (if bytes < MIN_FRAME_BYTES {
        MIN_FRAME_BYTES
    } else {
        bytes
    }) + FCS_BYTES
}

/// Shortest frame without FCS.
pub(crate) const MIN_FRAME_BYTES: usize = 60;
const FCS_BYTES: usize = 4;

/// Memory of frames that are done, for the frames to come.
#[derive(Debug, Default)]
pub(crate) struct FramePool {
    free: Vec<Vec<u8>>,
}

impl FramePool {
    const KEPT: usize = 64;

    /// Returns a copy of `data`, padded to the minimum length of a frame.
    #[inline]
    pub(crate) fn copy(&mut self, data: &[u8]) -> Vec<u8> {
        let mut frame = self.copy_unpadded(data);
        pad(&mut frame);
        frame
    }

    /// A copy of `data` as it is.
    #[inline]
    pub(crate) fn copy_unpadded(&mut self, data: &[u8]) -> Vec<u8> {
        let mut frame = self.free.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(data);
        frame
    }

    /// Recycles a buffer.
    #[inline]
    pub(crate) fn recycle(&mut self, frame: Vec<u8>) {
        if self.free.len() < Self::KEPT {
            self.free.push(frame);
        }
    }
}

/// Pads a frame with zeros to the minimum length.
#[inline]
pub(crate) fn pad(frame: &mut Vec<u8>) {
    if frame.len() < MIN_FRAME_BYTES {
        frame.resize(MIN_FRAME_BYTES, 0);
    }
}
