//! Links: one direction of a cable.

use std::num::NonZeroU32;

use crate::error::Error;

/// Frame check sequence, which frames here do not carry but wires do.
pub(crate) const FCS_BYTES: u64 = 4;
/// Preamble and start-of-frame delimiter.
const PREAMBLE_BYTES: u64 = 8;
/// Shortest silence between two frames.
const GAP_BYTES: u64 = 12;
/// Shortest frame on a wire, with its frame check sequence; shorter ones are padded.
pub(crate) const MIN_FRAME_BYTES: u64 = 64;

/// The only port of a host.
pub(crate) const HOST_PORT: u8 = 1;

/// Rate at which a byte takes a nanosecond.
const BYTE_PER_NS_BPS: u64 = 8_000_000_000;

/// Returns the length of `data` on a wire, with padding and frame check sequence.
#[inline]
pub(crate) fn size_on_wire(data_bytes: usize) -> u64 {
    (data_bytes as u64 + FCS_BYTES).max(MIN_FRAME_BYTES)
}

/// How long things take on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    rate_bps: u64,
    /// Time for a byte, if it is a whole number of nanoseconds.
    byte_ns: Option<NonZeroU32>,
    propagation_ns: u32,
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
            propagation_ns: propagation_ns as u32,
            ..Self::of_rate(rate_bps)
        })
    }

    /// Creates a link inside a device, without propagation; `rate_bps` is at least 1.
    pub(crate) fn of_rate(rate_bps: u64) -> Self {
        let whole = BYTE_PER_NS_BPS % rate_bps == 0;
        let byte_ns = whole.then(|| BYTE_PER_NS_BPS / rate_bps);
        Self {
            rate_bps,
            byte_ns: byte_ns.and_then(|byte_ns| u32::try_from(byte_ns).ok()?.try_into().ok()),
            propagation_ns: 0,
        }
    }

    /// Sending `bytes`, rounded up to a nanosecond.
    #[inline]
    pub(crate) fn sending_ns(self, bytes: u64) -> u64 {
        match self.byte_ns {
            Some(byte_ns) => bytes * u64::from(byte_ns.get()),
            None => (bytes * BYTE_PER_NS_BPS).div_ceil(self.rate_bps),
        }
    }

    /// wire(l): preamble and frame, from the first bit to the last.
    #[inline]
    pub(crate) fn wire_ns(self, frame_bytes: u64) -> u64 {
        self.sending_ns(PREAMBLE_BYTES + frame_bytes)
    }

    /// From the beginning of a frame to the earliest beginning of the next one.
    #[inline]
    pub(crate) fn slot_ns(self, frame_bytes: u64) -> u64 {
        self.sending_ns(PREAMBLE_BYTES + frame_bytes + GAP_BYTES)
    }

    /// From the beginning of a frame at one end to its beginning at the other.
    #[inline]
    pub(crate) fn propagation_ns(self) -> u64 {
        self.propagation_ns.into()
    }

    pub(crate) fn rate_bps(self) -> u64 {
        self.rate_bps
    }
}

/// Where a link leads: by index in the network, and the port there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Board(usize, u8),
    Host(usize),
    Controller(usize, u8),
}

impl End {
    /// Returns the port there; hosts have one only.
    #[inline]
    pub(crate) fn port(self) -> u8 {
        match self {
            Self::Board(_, port) | Self::Controller(_, port) => port,
            Self::Host(_) => HOST_PORT,
        }
    }
}

/// One direction of a cable. Its frames wait at its end, in the receiver's [`Inbox`](crate::inbox::Inbox). It fills a line of
/// the processor's cache.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Link {
    pub(crate) timing: Timing,
    pub(crate) end: End,
    /// The cable is out.
    pub(crate) is_down: bool,
    /// Whether sources wait for their turn on it.
    pub(crate) is_waited_for: bool,
    /// The other end waits for no more of a frame than this.
    awaited_bytes: u64,
    busy_until_ns: u64,
    /// When the frame that entered last arrives or has arrived.
    pub(crate) last_arrival_ns: u64,
}

const _: () = assert!(size_of::<Link>() == 64);

impl Link {
    /// `header_bytes`: what the other end waits for of a frame, behind its preamble, or `None` if for all of it.
    pub(crate) fn new(timing: Timing, end: End, header_bytes: Option<u64>) -> Self {
        Self {
            timing,
            end,
            is_down: false,
            is_waited_for: false,
            awaited_bytes: header_bytes.unwrap_or(u64::MAX),
            busy_until_ns: 0,
            last_arrival_ns: 0,
        }
    }

    /// Returns when the link can begin another frame.
    #[inline]
    pub(crate) fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// A frame begins at `begin_ns`; the link must be free.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, begin_ns: u64, frame_bytes: u64) {
        assert!(self.busy_until_ns <= begin_ns);
        self.busy_until_ns = begin_ns + self.timing.slot_ns(frame_bytes);
    }

    /// Returns when as much as the other end waits for has arrived there of a frame that begins at `begin_ns`.
    #[inline(always)]
    pub(crate) fn arrival_ns(&self, begin_ns: u64, frame_bytes: u64) -> u64 {
        let awaited_bytes = frame_bytes.min(self.awaited_bytes);
        begin_ns + self.timing.wire_ns(awaited_bytes) + self.timing.propagation_ns()
    }
}

#[cfg(test)]
mod tests;
