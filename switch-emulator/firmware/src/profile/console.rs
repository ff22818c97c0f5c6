//! Costs of the serial console.

use super::{number, Sourced};
use crate::section;

section! {
    /// Work for the serial console, done between frames by the same CPU.
    #[derive(Default)]
    pub struct ConsoleCosts {
        /// Reading a typed character.
        character_ps: i64,
        /// Understanding a command line.
        command_ps: i64,
        /// Each byte of output, echoes included.
        output_byte_ps: i64,
        /// Reading a register of the integrated switch.
        register_read_ps: i64,
        /// Writing one.
        register_write_ps: i64,
        /// Writing a byte of the EEPROM.
        eeprom_byte_ns: u64,
        /// From a restart until the main loop runs again.
        restart_ns: u64,
    }
}

impl ConsoleCosts {
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
