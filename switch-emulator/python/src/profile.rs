//! Profiles as values, and their JSON Schema.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use zodiac_simulator::DeviceProfile;

/// Returns a profile, given as TOML, as values: its sections with all defaults, and each number with its source.
#[pyfunction]
pub(crate) fn read_profile<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let wrong = |line: String| PyValueError::new_err(line);
    let profile = DeviceProfile::read(text).map_err(|error| wrong(error.to_string()))?;
    let written: toml::Table = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let values = pythonize::pythonize(py, &profile)?;
    with_sources(&values, &pythonize::pythonize(py, &written)?)?;
    Ok(values)
}

/// Puts numbers as they are written, with their sources, in place of their values, and leaves out what is `None`.
fn with_sources(values: &Bound<'_, PyAny>, written: &Bound<'_, PyAny>) -> PyResult<()> {
    if let (Ok(values), Ok(written)) = (values.cast::<PyDict>(), written.cast::<PyDict>()) {
        for (key, value) in values.copy()? {
            match written.get_item(&key)? {
                _ if value.is_none() => values.del_item(key)?,
                Some(form)
                    if form.is_instance_of::<PyDict>() && !value.is_instance_of::<PyDict>() =>
                {
                    values.set_item(key, form)?;
                }
                Some(form) => with_sources(&value, &form)?,
                None => {}
            }
        }
    } else if let (Ok(values), Ok(written)) = (values.cast::<PyList>(), written.cast::<PyList>()) {
        for (value, form) in values.iter().zip(written.iter()) {
            with_sources(&value, &form)?;
        }
    }
    Ok(())
}

/// Returns the JSON Schema of profiles, for editors.
#[pyfunction]
pub(crate) fn profile_schema(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize::pythonize(
        py,
        &schemars::schema_for!(DeviceProfile),
    )?)
}
