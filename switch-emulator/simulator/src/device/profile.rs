//! Profiles of all kinds of devices, and the settings of those that are no Zodiac FX.

use serde::Deserialize;
use zodiac_firmware::{profile_kind, MacAddress, Profile, ProfileError};

use super::linux::{LinuxSwitch, LinuxSwitchProfile};
use super::Switch;

/// The numbers of a device. The `kind` of its file says which; a file without one describes a Zodiac FX.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceProfile {
    /// A Zodiac FX.
    Board(Box<Profile>),
    /// A switch of another kind.
    Switch(SwitchProfile),
}

impl DeviceProfile {
    /// Reads a profile of any kind.
    ///
    /// # Errors
    /// [`ProfileError`] with the line and the key when the text is not a profile.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        match profile_kind(text)?.as_deref() {
            None => Profile::from_toml(text).map(|profile| Self::Board(Box::new(profile))),
            Some("linux-switch") => LinuxSwitchProfile::from_toml(text)
                .map(|profile| Self::Switch(SwitchProfile::Linux(Box::new(profile)))),
            Some(_) => Err(ProfileError::Value {
                key: "kind",
                reason: "choose \"linux-switch\", or leave it out for a Zodiac FX",
            }),
        }
    }
}

/// The numbers of a switch that is no Zodiac FX.
#[derive(Clone, Debug, PartialEq)]
pub enum SwitchProfile {
    /// A software switch on Linux.
    Linux(Box<LinuxSwitchProfile>),
}

impl SwitchProfile {
    /// A switch with these numbers and settings; `seed` fixes all that is random in it.
    pub(crate) fn build(&self, config: &SwitchConfig, seed: u64) -> Box<dyn Switch> {
        match self {
            Self::Linux(profile) => Box::new(LinuxSwitch::new(profile, config, seed)),
        }
    }

    /// Number of front ports and their rate in bit/s.
    pub(crate) fn ports(&self) -> (u8, u64) {
        match self {
            Self::Linux(profile) => (profile.ports.count, profile.ports.link_rate_bps),
        }
    }
}

/// Settings of a switch that is no Zodiac FX.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchConfig {
    /// Its MAC address; with two zero bytes in front it is the datapath identifier.
    pub mac: MacAddress,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            mac: MacAddress([0x02, 0, 0, 0, 0, 0]),
        }
    }
}
