//! The numbers of a generic switch.

use serde::Deserialize;
use zodiac_firmware::{number, ProfileError};

use crate::device::{port_count, MAX_PORTS};

/// Format of profile files that this crate reads.
const FORMAT: u32 = 1;
/// Longest span in a profile, 100 s: sums with instants stay far from overflow.
const MAX_NS: u64 = 100_000_000_000;

/// What a generic switch needs for a frame.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenericSwitchProfile {
    format: u32,
    #[allow(dead_code)] // has chosen this reader
    kind: String,
    /// Name by which files and commands refer to the device.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Front ports and links.
    pub ports: GenericPorts,
    /// The flow table.
    pub table: GenericTable,
    /// From a frame's arrival until it is in its queue.
    pub forwarding: Forwarding,
}

/// Front ports and links.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenericPorts {
    /// Number of front ports.
    #[serde(deserialize_with = "port_count")]
    pub count: u8,
    /// Rate of each.
    #[serde(deserialize_with = "number")]
    pub link_rate_bps: u64,
}

/// The flow table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenericTable {
    /// Entries that it holds.
    #[serde(deserialize_with = "number")]
    pub entries: u64,
}

/// What forwarding takes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forwarding {
    /// From a frame's last bit in until it is in its queue.
    #[serde(deserialize_with = "number")]
    pub latency_ns: u64,
}

impl GenericSwitchProfile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`] with the line and the key when the text is not the profile of such a switch.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::syntax(text, &error))?;
        let rate_bps = profile.ports.link_rate_bps;
        let rules = [
            (
                profile.format == FORMAT,
                "format",
                "this simulator reads format 1",
            ),
            (
                (1..=MAX_PORTS).contains(&profile.ports.count),
                "ports.count",
                "choose 1 to 64",
            ),
            (
                (1..=1_000_000_000_000).contains(&rate_bps),
                "ports.link_rate_bps",
                "choose 1 to 1000000000000",
            ),
            (
                (1..=1_000_000).contains(&profile.table.entries),
                "table.entries",
                "choose 1 to 1000000",
            ),
            (
                profile.forwarding.latency_ns <= MAX_NS,
                "forwarding.latency_ns",
                "choose at most 100 s",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, key, reason)) => Err(ProfileError::Value { key, reason }),
            None => Ok(profile),
        }
    }
}
