//! The configuration file of `zodiac-fx hold`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use zodiac_firmware::PortNumber;

use crate::config::{syntax_error, Process};
use live_host::error::StartError;

/// Configuration (TOML).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayLineConfig {
    /// The program as a whole.
    pub process: Process,
    /// The switches whose frames are held.
    #[serde(rename = "switch")]
    pub switches: Vec<DelayedSwitchConfig>,
}

/// One switch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayedSwitchConfig {
    /// Name in logs and reports.
    pub name: String,
    /// Its interfaces.
    pub ports: BTreeMap<PortNumber, DelayedPortConfig>,
    /// The device's times.
    pub device: DelayModelConfig,
}

/// Both sides of a port.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayedPortConfig {
    /// Where the network is.
    pub outside: String,
    /// Where the switch is that forwards.
    pub inside: String,
}

/// How long the device takes: the delay terms of `docs/architecture.md`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayModelConfig {
    /// Rate of all links, outside and inside the device.
    pub link_rate_bps: u64,
    /// Preamble and start-of-frame delimiter.
    pub preamble_bytes: u64,
    /// Interframe gap.
    pub gap_bytes: u64,
    /// Extra bytes of a frame on the inner link.
    pub tag_bytes: u64,
    /// `p_IS`.
    pub transit_ps: u64,
    /// `p_CPU` of a frame of no length.
    pub cpu_base_ps: u64,
    /// CPU time for each byte, FCS included.
    pub cpu_byte_ps: u64,
    /// Units of the receive ring.
    pub units: u64,
    /// Bytes of a unit.
    pub unit_bytes: u64,
}

impl DelayLineConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// One line: what is wrong where, and how to mend it.
    pub fn load(path: &Path) -> Result<Self, StartError> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| StartError::new(format!("{file}: {error}")))?;
        Self::parse(&text, &file)
    }

    fn parse(text: &str, file: &str) -> Result<Self, StartError> {
        let config: Self =
            toml::from_str(text).map_err(|error| syntax_error(text, file, &error))?;
        config
            .check()
            .map_err(|why| StartError::new(format!("{file}: {why}")))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if self.switches.is_empty() {
            return Err("there is no [[switch]]: add one".into());
        }
        for switch in &self.switches {
            switch
                .check()
                .map_err(|why| format!("switch {}: {why}", switch.name))?;
        }
        Ok(())
    }
}

impl DelayedSwitchConfig {
    fn check(&self) -> Result<(), String> {
        if self.ports.is_empty() {
            return Err("it has no ports: add [switch.ports.1]".into());
        }
        let device = &self.device;
        for (name, value) in [
            ("link_rate_bps", device.link_rate_bps),
            ("units", device.units),
            ("unit_bytes", device.unit_bytes),
        ] {
            if value == 0 {
                return Err(format!("device.{name} is 0: give a positive number"));
            }
        }
        if device.cpu_base_ps < 2 * device.transit_ps {
            return Err("device.cpu_base_ps is below twice transit_ps, which it contains".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "link_rate_bps = 100_000_000\npreamble_bytes = 8\ngap_bytes = 12\ntag_bytes = 1\n\
        transit_ps = 2_070_000\ncpu_base_ps = 50_000_000\ncpu_byte_ps = 80_000\nunits = 24\nunit_bytes = 128\n";

    fn text(ports: &str, device: &str) -> String {
        format!("[process]\n[[switch]]\nname = \"s1\"\n[switch.ports]\n{ports}\n[switch.device]\n{device}")
    }

    #[test]
    fn a_file_in_order() {
        let config = DelayLineConfig::parse(
            &text("1 = {outside = \"a\", inside = \"b\"}", DEVICE),
            "hold.toml",
        )
        .unwrap();
        let switch = &config.switches[0];
        assert_eq!((switch.name.as_str(), switch.ports.len()), ("s1", 1));
    }

    #[test]
    fn wrong_files_are_refused_in_one_line() {
        let port = "1 = {outside = \"a\", inside = \"b\"}";
        for (text, says) in [
            ("switch = []\n[process]\n".to_owned(), "add one"),
            (text("", DEVICE), "switch s1: it has no ports"),
            (
                text(port, &DEVICE.replace("units = 24", "units = 0")),
                "device.units is 0",
            ),
            (
                text(port, &DEVICE.replace("50_000_000", "5")),
                "below twice transit_ps",
            ),
            (
                text(port, &format!("{DEVICE}colour = 1\n")),
                "hold.toml, line 16: colour = 1: unknown field `colour`",
            ),
            (
                text("1 = {outside = \"a\"}", DEVICE),
                "hold.toml, line 5: 1 = {outside = \"a\"}: missing field `inside`",
            ),
        ] {
            let why = DelayLineConfig::parse(&text, "hold.toml")
                .unwrap_err()
                .to_string();
            assert!(why.contains(says), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }
}
