//! Negotiation of the version by HELLO: as the firmware does it, and by the specification.

use super::state::AgentState;
use crate::event::Event;
use crate::loop_iteration::LoopIteration;
use crate::quirks::Quirk;
use openflow::bytes::{be16, be32};
use openflow::message;
use openflow::wire::{MessageBuilder, HEADER_BYTES, VERSION_1_0, VERSION_1_3};

/// Element of a HELLO that names versions.
const VERSION_BITMAP: u16 = 1;

impl AgentState {
    /// The highest version that the board speaks, or is forced to.
    pub(super) const fn highest_version(&self) -> u8 {
        match self.config.forced_version {
            0 if self.config.knows_13 => VERSION_1_3,
            0 => VERSION_1_0,
            forced => forced,
        }
    }

    pub(super) fn may_speak_version(&self, version: u8) -> bool {
        version == self.highest_version()
            || (self.config.forced_version == 0 && version == VERSION_1_0)
    }

    /// Returns the board's HELLO: by the specification since 1.3, it names all versions (section 7.5.1 of 1.3.4).
    pub(super) fn greeting(&self) -> MessageBuilder {
        let is_newest = self.has(Quirk::NewestHello);
        let version = match self.config.forced_version {
            0 if is_newest => VERSION_1_3,
            _ => self.highest_version(),
        };
        let hello = MessageBuilder::new(version, message::HELLO, [0, 0, 0, 1]);
        if is_newest || version < VERSION_1_3 || !self.config.knows_13 {
            return hello;
        }
        let spoken = (0..=VERSION_1_3).filter(|version| self.may_speak_version(*version));
        let bits = spoken.fold(0_u32, |bits, version| bits | 1 << version);
        hello.u16(VERSION_BITMAP).u16(8).u32(bits)
    }

    /// Returns the version by the specification: the highest one that both sides name, or else the lower of both headers,
    /// if the board speaks it.
    pub(super) fn agreed_version(&self, hello: &[u8]) -> Option<u8> {
        let highest = self.highest_version();
        let names = self.config.knows_13 && highest == VERSION_1_3;
        if let Some(bits) = version_bitmap(hello).filter(|_| names) {
            let mut spoken = (1..=VERSION_1_3).rev();
            return spoken.find(|v| bits >> v & 1 == 1 && self.may_speak_version(*v));
        }
        Some(hello[0].min(highest)).filter(|version| self.may_speak_version(*version))
    }

    /// Returns the version that the firmware takes from the header of a HELLO; nothing else counts (quirk 84).
    pub(super) const fn version_by_header(&self, version: u8) -> u8 {
        match (self.config.forced_version, version) {
            (0, 1) => VERSION_1_0,
            (0, 4..=6) => VERSION_1_3,
            (0, _) => self.version,
            (forced, _) => forced,
        }
    }

    /// Tells if nothing but ECHO works with the version that a HELLO of `version` has led to.
    pub(super) fn report_version(&self, version: u8, iteration: &mut LoopIteration) {
        let event = match self.version {
            VERSION_1_0 => return,
            VERSION_1_3 if self.config.knows_13 => return,
            VERSION_1_3 => Event::NewerVersionNegotiated {
                version,
                forced: self.config.forced_version == VERSION_1_3,
            },
            _ => Event::VersionUnusable { version },
        };
        iteration.event(event);
    }
}

/// Returns the versions that the elements of a HELLO name, if they do: bit 1 is 1.0, bit 4 is 1.3.
fn version_bitmap(hello: &[u8]) -> Option<u32> {
    let mut rest = hello.get(HEADER_BYTES..)?;
    while rest.len() >= 4 {
        let length = usize::from(be16(rest, 2));
        if be16(rest, 0) == VERSION_BITMAP && length >= 8 {
            return Some(be32(rest, 4));
        }
        rest = rest.get(length.max(4).next_multiple_of(8)..)?;
    }
    None
}
