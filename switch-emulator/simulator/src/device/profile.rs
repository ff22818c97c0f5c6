//! Profiles of all kinds of devices.

use schemars::JsonSchema;
use serde::Serialize;
use zodiac_firmware::{profile_kind, Profile, ProfileError};

use super::generic::{GenericSwitch, GenericSwitchProfile};
use super::linux::{LinuxSwitch, LinuxSwitchProfile};
use super::{SwitchConfig, SwitchModel};

/// Profile of a device. Its key `kind` selects the model; without it, the profile describes a Zodiac FX.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum DeviceProfile {
    /// A Zodiac FX.
    Board(Box<Profile>),
    /// A switch of another kind.
    Switch(SwitchProfile),
}

impl DeviceProfile {
    /// Reads a profile of any kind that a device can be made of.
    ///
    /// # Errors
    /// [`ProfileError`] with the line and the key when the text is not a profile.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let device = Self::read(text)?;
        if let Self::Board(profile) = &device {
            profile.check_emulated()?;
        }
        Ok(device)
    }

    /// Reads a profile of any kind, as [`Profile::read`].
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn read(text: &str) -> Result<Self, ProfileError> {
        match profile_kind(text)?.as_deref() {
            None => Profile::read(text).map(|profile| Self::Board(Box::new(profile))),
            Some("linux-switch") => LinuxSwitchProfile::from_toml(text)
                .map(|profile| Self::Switch(SwitchProfile::Linux(Box::new(profile)))),
            Some("generic-switch") => GenericSwitchProfile::from_toml(text)
                .map(|profile| Self::Switch(SwitchProfile::Generic(Box::new(profile)))),
            Some(_) => Err(ProfileError::Value {
                key: "kind",
                reason:
                    "choose \"linux-switch\" or \"generic-switch\", or leave it out for a Zodiac FX",
            }),
        }
    }
}

/// The numbers of a switch that is no Zodiac FX.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum SwitchProfile {
    /// A software switch on Linux.
    Linux(Box<LinuxSwitchProfile>),
    /// A switch with a queue discipline before each port.
    Generic(Box<GenericSwitchProfile>),
}

impl SwitchProfile {
    /// Returns a switch with these numbers and settings; `seed` fixes all that is random in it.
    ///
    /// # Errors
    /// Why it cannot have these settings, and how to mend that.
    pub(crate) fn build(
        &self,
        config: &SwitchConfig,
        seed: u64,
    ) -> Result<Box<dyn SwitchModel>, String> {
        Ok(match self {
            Self::Linux(_) if !config.schedulers.is_empty() => {
                return Err(
                    "schedulers: this device has no queues to choose: use a generic-switch".into(),
                );
            }
            Self::Linux(_) if config.link_rate_bps.is_some() => {
                return Err(
                    "link_rate_bps: this device's ports have one rate: leave it out".into(),
                );
            }
            Self::Linux(profile) => Box::new(LinuxSwitch::new(profile, config, seed)),
            Self::Generic(profile) => Box::new(GenericSwitch::new(profile, config, seed)?),
        })
    }

    /// Returns how many bytes of a frame, behind its preamble, the switch waits for, or `None` if for all of it.
    pub(crate) fn header_bytes(&self) -> Option<u64> {
        match self {
            Self::Linux(_) => None,
            Self::Generic(profile) => profile.cut_through.map(|part| part.header_bytes),
        }
    }

    /// Returns whether each port may run at a lower rate than the profile's, as auto-negotiation chooses it. A
    /// cut-through switch would have to store frames for a port that is slower than the one they come by.
    pub(crate) fn has_lower_rates(&self) -> bool {
        match self {
            Self::Linux(_) => false,
            Self::Generic(profile) => profile.cut_through.is_none(),
        }
    }

    /// Returns the number of front ports and their rate in bit/s.
    pub(crate) fn ports(&self, config: &SwitchConfig) -> (u8, u64) {
        match self {
            Self::Linux(profile) => (profile.ports.count, profile.ports.link_rate_bps),
            Self::Generic(profile) => (profile.ports.count, profile.link_rate_bps(config)),
        }
    }
}
