//! The emulated board and the simulator as the Python module `switch_emulator`.
//!
//! The contract of each class is in `switch_emulator/__init__.pyi`. Wrong arguments raise `ValueError` or `TypeError` with
//! one line that says what, where, and how to mend it.

// Python's functions take their arguments by value.
#![allow(clippy::needless_pass_by_value)]

use pyo3::prelude::*;
use zodiac_firmware::Quirk;

mod argument;
mod board;
mod network;
mod profile;

/// Returns the names of the deviations that can be switched on a board that always speaks this version (wire version number),
/// or on any board if it is 0.
#[pyfunction]
#[pyo3(signature = (openflow_version = 0))]
fn quirk_names(openflow_version: u8) -> Vec<&'static str> {
    let applies = |quirk: &Quirk| match openflow_version {
        1 => quirk.is_of_10(),
        4 => quirk.is_of_13(),
        _ => true,
    };
    Quirk::ALL
        .into_iter()
        .filter(applies)
        .map(Quirk::name)
        .collect()
}

#[pymodule]
mod switch_emulator {
    /// Version of the emulator.
    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name for it
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::quirk_names;
    #[pymodule_export]
    use crate::profile::{profile_schema, read_profile};

    #[pymodule_export]
    use crate::board::{Board, Departures, Flow, Flow13, Output};
    #[pymodule_export]
    use crate::network::{Event, Network, RunResult, TcpResult};
}
