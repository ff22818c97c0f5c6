//! Links: one direction of a cable.

use std::collections::VecDeque;

use crate::error::Error;
use crate::schedule::Slot;

/// Frame check sequence, which frames here do not carry but wires do.
pub(crate) const FCS_BYTES: u64 = 4;
/// Preamble and start-of-frame delimiter.
const PREAMBLE_BYTES: u64 = 8;
/// Shortest silence between two frames.
const GAP_BYTES: u64 = 12;
/// Shortest frame on a wire, with its frame check sequence; shorter ones are padded.
pub(crate) const MIN_FRAME_BYTES: u64 = 64;

/// Rate at which a byte takes a nanosecond.
const BYTE_PER_NS_BPS: u64 = 8_000_000_000;

/// Length of `data` on a wire, with padding and frame check sequence.
pub(crate) fn size_on_wire(data_bytes: usize) -> u64 {
    (data_bytes as u64 + FCS_BYTES).max(MIN_FRAME_BYTES)
}

/// How long things take on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    rate_bps: u64,
    /// Time for a byte, if it is a whole number of nanoseconds.
    byte_ns: Option<u64>,
    propagation_ns: u64,
}

impl Timing {
    pub(crate) fn new(rate_bps: f64, propagation_ns: u64) -> Result<Self, Error> {
        Error::check("rate_bps", rate_bps, 1.0, 1e12)?;
        if propagation_ns > 1_000_000_000 {
            return Err(Error::Value {
                name: "propagation_ns",
                value: propagation_ns.to_string(),
                range: "0 .. 1000000000".into(),
            });
        }
        #[allow(clippy::cast_sign_loss)]
        let rate_bps = rate_bps as u64;
        Ok(Self {
            propagation_ns,
            ..Self::of_rate(rate_bps)
        })
    }

    /// A link inside a device, without propagation; `rate_bps` is at least 1.
    pub(crate) fn of_rate(rate_bps: u64) -> Self {
        let whole = BYTE_PER_NS_BPS % rate_bps == 0;
        Self {
            rate_bps,
            byte_ns: whole.then(|| BYTE_PER_NS_BPS / rate_bps),
            propagation_ns: 0,
        }
    }

    /// Sending `bytes`, rounded up to a nanosecond.
    pub(crate) fn sending_ns(self, bytes: u64) -> u64 {
        match self.byte_ns {
            Some(byte_ns) => bytes * byte_ns,
            None => (bytes * BYTE_PER_NS_BPS).div_ceil(self.rate_bps),
        }
    }

    /// wire(l): preamble and frame, from the first bit to the last.
    pub(crate) fn wire_ns(self, frame_bytes: u64) -> u64 {
        self.sending_ns(PREAMBLE_BYTES + frame_bytes)
    }

    /// From the beginning of a frame to the earliest beginning of the next one.
    pub(crate) fn slot_ns(self, frame_bytes: u64) -> u64 {
        self.sending_ns(PREAMBLE_BYTES + frame_bytes + GAP_BYTES)
    }

    /// From the beginning of a frame at one end to its beginning at the other.
    pub(crate) fn propagation_ns(self) -> u64 {
        self.propagation_ns
    }

    pub(crate) fn rate_bps(self) -> u64 {
        self.rate_bps
    }
}

/// What travels on a link.
#[derive(Debug)]
pub(crate) enum Cargo {
    /// A frame of a source, written out only when it arrives.
    Emission { source: u32, sequence: u32 },
    /// Any other frame.
    Bytes(Vec<u8>),
}

/// Where a link leads: by index in the network, and the port there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Board(usize, u8),
    Host(usize),
    Controller(usize, u8),
}

/// One direction of a cable: frames leave it in the order in which they entered.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) timing: Timing,
    pub(crate) end: End,
    /// Timer of the first frame in flight; meaningless for a link to a host, where nothing waits for a frame's end.
    pub(crate) arrival_slot: Slot,
    /// The cable is out.
    pub(crate) is_out: bool,
    /// The other end waits for so much of a frame only.
    header_bytes: Option<u64>,
    busy_until_ns: u64,
    in_flight: VecDeque<(u64, Cargo)>,
}

impl Link {
    /// `header_bytes`: what the other end waits for of a frame, behind its preamble; nothing if for all of it.
    pub(crate) fn new(timing: Timing, end: End, header_bytes: Option<u64>) -> Self {
        Self {
            timing,
            end,
            arrival_slot: 0,
            is_out: false,
            header_bytes,
            busy_until_ns: 0,
            in_flight: VecDeque::new(),
        }
    }

    /// When the link can begin another frame.
    pub(crate) fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// A frame begins at `begin_ns`; the link must be free.
    pub(crate) fn occupy(&mut self, begin_ns: u64, frame_bytes: u64) {
        debug_assert!(self.busy_until_ns <= begin_ns);
        self.busy_until_ns = begin_ns + self.timing.slot_ns(frame_bytes);
    }

    /// When as much as the other end waits for has arrived there of a frame that begins at `begin_ns`.
    pub(crate) fn arrival_ns(&self, begin_ns: u64, frame_bytes: u64) -> u64 {
        let awaited_bytes = self
            .header_bytes
            .map_or(frame_bytes, |bytes| bytes.min(frame_bytes));
        begin_ns + self.timing.wire_ns(awaited_bytes) + self.timing.propagation_ns
    }

    /// Puts a frame on its way; true if nothing else was, so that its arrival is what happens next here.
    pub(crate) fn push(&mut self, arrival_ns: u64, cargo: Cargo) -> bool {
        debug_assert!(self
            .in_flight
            .back()
            .is_none_or(|(last_ns, _)| *last_ns <= arrival_ns));
        self.in_flight.push_back((arrival_ns, cargo));
        self.in_flight.len() == 1
    }

    /// Takes the frame that arrives first.
    pub(crate) fn pop(&mut self) -> Option<(u64, Cargo)> {
        self.in_flight.pop_front()
    }

    /// When the next frame arrives.
    pub(crate) fn next_arrival_ns(&self) -> Option<u64> {
        self.in_flight.front().map(|(at_ns, _)| *at_ns)
    }

    /// The cable is pulled out: what is on its way is lost. Gives how many frames.
    pub(crate) fn cut(&mut self) -> u64 {
        self.in_flight.drain(..).count() as u64
    }

    /// How many frames are on their way.
    pub(crate) fn frames(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests;
