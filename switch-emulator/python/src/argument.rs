//! Python's arguments as values of the crates below.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::de::DeserializeOwned;
use zodiac_firmware::{Profile, ProfileError, ZODIAC_FX};
use zodiac_simulator::{DeviceProfile, BANANA_PI_R1};

/// Latest instant: eleven days, far enough for any run, near enough that no timer runs for ever.
pub(crate) const MAX_NS: i64 = 1_000_000_000_000_000;

/// How many profiles are remembered: more than any lab has.
const KEPT_PROFILES: usize = 16;

/// Returns a `ValueError` with this text.
pub(crate) fn wrong(reason: impl Display) -> PyErr {
    PyValueError::new_err(reason.to_string())
}

/// Returns an instant or span in nanoseconds.
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

/// Returns a whole number that fits 64 (or fewer) bits.
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

/// Returns a device's settings from a dictionary; none are the factory's.
pub(crate) fn config<C: DeserializeOwned + Default>(
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<C> {
    match settings {
        None => Ok(C::default()),
        Some(settings) => {
            pythonize::depythonize(settings).map_err(|error| wrong(format!("config: {error}")))
        }
    }
}

/// Returns the profile of a Zodiac FX by name or path.
pub(crate) fn board_profile(name: &str) -> PyResult<Profile> {
    match &*profile(name)? {
        DeviceProfile::Board(profile) => Ok((**profile).clone()),
        DeviceProfile::Switch(_) => Err(wrong(format!(
            "profile {name:?} describes another kind of device than a Zodiac FX: put it into a Network with add_board()"
        ))),
    }
}

/// Returns a profile of any kind by name or path. A path ends in `.toml` or has a separator.
pub(crate) fn profile(name: &str) -> PyResult<Arc<DeviceProfile>> {
    let path = if Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "toml")
        || name.contains('/')
    {
        PathBuf::from(name)
    } else {
        let beside = profiles().join(format!("{name}.toml"));
        let embedded = EMBEDDED.iter().find(|(known, _)| *known == name);
        if let Some((_, text)) = embedded.filter(|_| !beside.exists()) {
            return parsed(text).map_err(wrong);
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
    parsed(&text).map_err(|error| wrong(format!("{}: {error}", path.display())))
}

/// Parses a profile. The last few texts are not parsed again: a replay makes thousands of boards of one profile.
fn parsed(text: &str) -> Result<Arc<DeviceProfile>, ProfileError> {
    static KNOWN: Mutex<Vec<(String, Arc<DeviceProfile>)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, profile)) = known.iter().find(|(other, _)| other == text) {
        return Ok(Arc::clone(profile));
    }
    let profile = Arc::new(DeviceProfile::from_toml(text)?);
    if known.len() == KEPT_PROFILES {
        known.remove(0);
    }
    known.push((text.to_owned(), Arc::clone(&profile)));
    Ok(profile)
}

/// The profiles that are compiled in, for an installation without the sources.
const EMBEDDED: [(&str, &str); 2] = [("zodiac-fx", ZODIAC_FX), ("banana-pi-r1", BANANA_PI_R1)];

/// Profiles in the package that this module came with, else beside the sources from which it was built.
fn profiles() -> &'static Path {
    static PROFILES: OnceLock<PathBuf> = OnceLock::new();
    PROFILES.get_or_init(|| {
        packaged_profiles()
            .filter(|folder| folder.is_dir())
            .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../profiles").into())
    })
}

/// Returns where an installed package has its profiles: in `loko`, beside the package of this module.
fn packaged_profiles() -> Option<PathBuf> {
    let file: PathBuf = Python::attach(|py| {
        py.import("switch_emulator")?
            .getattr("__file__")?
            .extract::<PathBuf>()
    })
    .ok()?;
    let packages = file.parent()?.parent()?;
    Some(packages.join("loko/data/switch-emulator/profiles"))
}
