//! The emulated board and the simulator as the Python module `switch_emulator`.
//!
//! The contract of each class is in `switch_emulator/__init__.pyi`. Wrong arguments raise `ValueError` or `TypeError` with
//! one line that says what, where, and how to mend it.

// Python's functions take their arguments by value.
#![allow(clippy::needless_pass_by_value)]

use pyo3::prelude::*;

mod argument;
mod board;
mod network;

#[pymodule]
mod switch_emulator {
    /// Version of the emulator.
    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name for it
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::board::{Board, Departures, Flow, Flow13, Output};
    #[pymodule_export]
    use crate::network::{Event, Network, RunResult, TcpResult};
}
