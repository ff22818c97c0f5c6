//! Pause frames (IEEE 802.3, annex 31B): those that the CPU's MAC sends, and those that arrive on front ports.

use crate::profile;
use crate::time::Instant;

/// When the CPU's MAC asks the integrated switch to pause.
///
/// A lost frame makes it ask for a pause, and a ring that has been emptied enough calls it off. A ring that is merely
/// filling does not: the integrated switch would hold frames before the first one is lost, and section 3.5 saw none.
#[derive(Clone, Debug)]
pub(crate) struct FlowControl {
    /// When the integrated switch would go on by itself.
    expires_at: Instant,
    resume_units: u32,
    pub(crate) pause_quanta: u16,
    is_paused: bool,
}

impl FlowControl {
    pub(crate) fn new(profile: &profile::FlowControlProfile) -> Self {
        Self {
            pause_quanta: profile.pause_quanta as u16,
            resume_units: profile.resume_units as u32,
            is_paused: false,
            expires_at: Instant::ZERO,
        }
    }

    /// Returns whether a pause that was asked for has not been called off.
    #[inline]
    pub(crate) const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Returns whether a frame lost at `now` makes the MAC ask for a pause: if it ever does, and no pause lasts.
    pub(crate) fn wants_pause(&self, now: Instant) -> bool {
        self.pause_quanta > 0 && !(self.is_paused && now < self.expires_at)
    }

    /// A pause was asked for, which lasts until `expires_at`.
    pub(crate) fn paused(&mut self, expires_at: Instant) {
        self.is_paused = true;
        self.expires_at = expires_at;
    }

    /// The CPU has taken a frame from the ring, of which `used_units` are still in use: whether that ends the pause.
    #[inline]
    pub(crate) fn drained(&mut self, used_units: u32) -> bool {
        let ends = self.is_paused && used_units <= self.resume_units;
        self.is_paused &= !ends;
        ends
    }
}

/// Quanta that a frame asks for if it is a pause frame. Type and opcode count; its address is that of all pause frames.
#[inline]
pub(crate) fn pause_request(frame: &[u8]) -> Option<u16> {
    const ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
    const MAC_CONTROL_PAUSE: [u8; 4] = [0x88, 0x08, 0x00, 0x01];
    let quanta = frame.get(16..18)?;
    (frame[12..16] == MAC_CONTROL_PAUSE && frame[..6] == ADDRESS)
        .then(|| u16::from_be_bytes([quanta[0], quanta[1]]))
}

/// Returns whether a frame, given without FCS, asks the port on which it arrives for a pause.
#[must_use]
#[inline]
pub fn is_pause_frame(frame: &[u8]) -> bool {
    pause_request(frame).is_some()
}
