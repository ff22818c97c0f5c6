//! Costs of the serial console.

use serde::Deserialize;

use super::number;

/// Work for the serial console, done between frames by the same CPU.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleCosts {
    /// Reading a typed character.
    #[serde(deserialize_with = "number")]
    pub character_ps: i64,
    /// Understanding a command line.
    #[serde(deserialize_with = "number")]
    pub command_ps: i64,
    /// Each byte of output, echoes included.
    #[serde(deserialize_with = "number")]
    pub output_byte_ps: i64,
    /// Reading a register of the integrated switch.
    #[serde(deserialize_with = "number")]
    pub register_read_ps: i64,
    /// Writing one.
    #[serde(deserialize_with = "number")]
    pub register_write_ps: i64,
    /// Writing a byte of the EEPROM.
    #[serde(deserialize_with = "number")]
    pub eeprom_byte_ns: u64,
    /// From a restart until the main loop runs again.
    #[serde(deserialize_with = "number")]
    pub restart_ns: u64,
}

impl ConsoleCosts {
    /// Every cost 0, as [`ControlCosts::FREE`](super::ControlCosts::FREE).
    pub const FREE: Self = Self {
        character_ps: 0,
        command_ps: 0,
        output_byte_ps: 0,
        register_read_ps: 0,
        register_write_ps: 0,
        eeprom_byte_ns: 0,
        restart_ns: 0,
    };

    pub(super) const fn free() -> Self {
        Self::FREE
    }

    /// Returns whether every cost is one.
    pub(super) fn are_whole(&self) -> bool {
        [
            self.character_ps,
            self.command_ps,
            self.output_byte_ps,
            self.register_read_ps,
            self.register_write_ps,
        ]
        .iter()
        .all(|cost| *cost >= 0)
    }
}
