//! Python's arguments as values of the crates below.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zodiac_firmware::{Config, Profile, ZODIAC_FX};

/// Latest instant: eleven days, far enough for any run, near enough that no timer runs for ever.
const MAX_NS: i64 = 1_000_000_000_000_000;

/// A `ValueError` with this text.
pub(crate) fn wrong(reason: impl Display) -> PyErr {
    PyValueError::new_err(reason.to_string())
}

/// An instant or span in nanoseconds.
pub(crate) fn nanoseconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let refuse = || {
        wrong(format!(
            "{name} is {value}: give whole nanoseconds in 0 .. {MAX_NS}"
        ))
    };
    match value.extract::<i64>() {
        Ok(number @ 0..=MAX_NS) => Ok(number.unsigned_abs()),
        Ok(_) => Err(refuse()),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Err(refuse()),
        Err(error) => Err(error),
    }
}

/// A whole number that fits 64 (or fewer) bits.
pub(crate) fn whole<T: TryFrom<u64>>(
    name: &str,
    value: &Bound<'_, PyAny>,
    most: u64,
) -> PyResult<T> {
    let refuse = || {
        wrong(format!(
            "{name} is {value}: give a whole number in 0 .. {most}"
        ))
    };
    match value.extract::<u64>() {
        Ok(number) if number <= most => T::try_from(number).map_err(|_| refuse()),
        Ok(_) => Err(refuse()),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Err(refuse()),
        Err(error) => Err(error),
    }
}

/// A board's settings from a dictionary; none are the factory's.
pub(crate) fn config(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Config> {
    match settings {
        None => Ok(Config::default()),
        Some(settings) => {
            pythonize::depythonize(settings).map_err(|error| wrong(format!("config: {error}")))
        }
    }
}

/// A profile by name or path. A path ends in `.toml` or has a separator.
pub(crate) fn profile(name: &str) -> PyResult<Profile> {
    let path = if Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "toml")
        || name.contains('/')
    {
        PathBuf::from(name)
    } else {
        let beside = profiles().join(format!("{name}.toml"));
        if name == EMBEDDED && !beside.exists() {
            return Profile::from_toml(ZODIAC_FX).map_err(wrong);
        }
        beside
    };
    let text = std::fs::read_to_string(&path).map_err(|error| {
        wrong(format!(
            "profile {name:?}: cannot read {}: {error}; give the name of a file in {} or a path",
            path.display(),
            profiles().display()
        ))
    })?;
    Profile::from_toml(&text).map_err(|error| wrong(format!("{}: {error}", path.display())))
}

/// The profile that is compiled in, for an installation without the sources.
const EMBEDDED: &str = "zodiac-fx";

/// Profiles beside the sources from which this module was built.
fn profiles() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../profiles"))
}
