//! The board that an input begins with.

use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use zodiac_firmware::{Config, FailState, Instant, Profile, Quirks, ZODIAC_FX};

/// How the board is set and when its power comes on: the first four bytes of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // settings of a board are independent switches
pub struct Start {
    /// Whether it follows the specification instead of the firmware.
    pub specification: bool,
    /// Whether flows outlive the session.
    pub safe: bool,
    /// Whether it does its housekeeping.
    pub ofchecks: bool,
    /// Whether only usual types of frames pass.
    pub ethertype_filter: bool,
    /// Whether the integrated switch holds frames for the paused CPU, as fits into its memory.
    pub holding: bool,
    /// 0, 1 or 4.
    pub openflow_version: u8,
    /// Which of four delays of acknowledgements.
    pub acknowledgement: u8,
    /// Power comes on 2 to the power of this many ns after zero.
    pub boot_exponent: u8,
    /// Draws the phases of main loop and timers.
    pub seed: u8,
}

/// From at once to later than the next housekeeping tick.
const ACKNOWLEDGEMENT_NS: [u64; 4] = [0, 200_000, 50_000_000, 2_000_000_000];

/// The most that the profile allows for.
pub(crate) const HELD_FRAMES: u64 = 500;

const VERSIONS: [u8; 4] = [0, 1, 4, 0];

impl Start {
    /// Settings of the factory.
    #[must_use]
    pub fn factory() -> Self {
        Self {
            ofchecks: true,
            acknowledgement: 1,
            ..Self::default()
        }
    }

    /// Takes the first bytes of an input.
    ///
    /// # Errors
    /// As [`Unstructured`].
    pub fn read(input: &mut Unstructured) -> Result<Self> {
        let [flags, choices, boot, seed]: [u8; 4] = input.arbitrary()?;
        Ok(Self {
            specification: flags & 1 != 0,
            safe: flags & 2 != 0,
            ofchecks: flags & 4 == 0,
            ethertype_filter: flags & 8 != 0,
            holding: flags & 16 != 0,
            openflow_version: VERSIONS[usize::from(choices & 3)],
            acknowledgement: (choices >> 2 & 3) ^ 1,
            boot_exponent: boot % 63,
            seed,
        })
    }

    /// The bytes that [`read`](Self::read) takes, for those settings that seeds need.
    #[must_use]
    pub fn bytes(&self) -> [u8; 4] {
        let flags = u8::from(self.specification)
            | u8::from(self.safe) << 1
            | u8::from(!self.ofchecks) << 2
            | u8::from(self.ethertype_filter) << 3
            | u8::from(self.holding) << 4;
        let version = VERSIONS
            .iter()
            .position(|version| *version == self.openflow_version)
            .unwrap_or(0) as u8;
        let choices = version | (self.acknowledgement ^ 1) << 2;
        [flags, choices, self.boot_exponent, self.seed]
    }

    /// Returns the board's device.
    pub(crate) fn profile(&self) -> &'static Profile {
        static PROFILES: OnceLock<[Profile; 2]> = OnceLock::new();
        let profiles = PROFILES.get_or_init(|| {
            let usual = Profile::from_toml(ZODIAC_FX).expect("the crate's own profile");
            let mut holding = usual.clone();
            holding.flow_control.held_frames = HELD_FRAMES;
            [usual, holding]
        });
        &profiles[usize::from(self.holding)]
    }

    /// Returns the board's settings.
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            quirks: if self.specification {
                Quirks::Spec
            } else {
                Quirks::Firmware
            },
            fail_state: if self.safe {
                FailState::Safe
            } else {
                FailState::Secure
            },
            ofchecks: self.ofchecks,
            ethertype_filter: self.ethertype_filter,
            openflow_version: self.openflow_version,
            acknowledgement_ns: ACKNOWLEDGEMENT_NS[usize::from(self.acknowledgement)],
            ..Config::default()
        }
    }

    /// Returns when the power comes on.
    #[must_use]
    pub fn boot(&self) -> Instant {
        Instant::from_nanos((1 << self.boot_exponent) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        for specification in [false, true] {
            for openflow_version in [0, 1, 4] {
                let start = Start {
                    specification,
                    openflow_version,
                    seed: 7,
                    ..Start::factory()
                };
                let read = Start::read(&mut Unstructured::new(&start.bytes()));
                assert_eq!(read, Ok(start));
            }
        }
    }
}
