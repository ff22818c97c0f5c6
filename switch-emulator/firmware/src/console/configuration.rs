//! Commands of the context `config` but those of VLANs.

use std::net::Ipv4Addr;

use super::iteration::ConsoleIteration;
use super::root::restart;
use super::Console;
use crate::config::{FailState, MacAddress};
use crate::outbox::OutputKind;
use crate::settings::{Settings, EEPROM_BYTES, NAME_BYTES};
use crate::time::Duration;

/// Length of a MAC address as it is written.
const MAC_CHARACTERS: usize = 17;
/// Longest IP address as it is written.
const ADDRESS_CHARACTERS: usize = 15;

impl Console {
    pub(super) fn config_command(
        &mut self,
        words: &[&str],
        iteration: &mut ConsoleIteration,
    ) -> bool {
        match words {
            ["show", "config"] => self.show_config(iteration),
            ["show", "vlans"] => self.show_vlans(iteration),
            ["save"] => self.save(iteration),
            ["load"] => self.load(iteration),
            ["restart"] => restart(iteration),
            ["factory", "reset"] => {
                self.settings = Settings::factory(self.settings.mac);
                self.apply_at_once(iteration);
                iteration.line("Configuration set to factory values");
                self.save(iteration);
            }
            ["set", what, value] if self.set_value(what, value, iteration) => {}
            ["set", "failstate", state] => self.set_fail_state(state, iteration),
            ["set", "of-version", version] => self.set_version(version, iteration),
            ["set", "ethertype-filter", state] => self.set_filter(state, iteration),
            _ => return self.vlan_command(words, iteration),
        }
        true
    }

    pub(super) fn show_config(&self, iteration: &mut ConsoleIteration) {
        let settings = &self.settings;
        let state = |on| if on { "Enabled" } else { "Disabled" };
        let fail_state = match settings.fail_state {
            FailState::Secure => "Secure",
            FailState::Safe => "Safe",
        };
        let version = match settings.openflow_version {
            1 => "1.0",
            4 => "1.3",
            _ => "Disabled",
        };
        iteration.rule();
        iteration.line("Configuration");
        for (label, value) in [
            ("Name", settings.name.clone()),
            ("MAC Address", settings.mac.to_string().to_uppercase()),
            ("IP Address", settings.ip_address.to_string()),
            ("Netmask", settings.netmask.to_string()),
            ("Gateway", settings.gateway.to_string()),
            (
                "OpenFlow Controller",
                settings.controller_address.to_string(),
            ),
            ("OpenFlow Port", settings.controller_port.to_string()),
            ("OpenFlow Status", state(settings.openflow_enabled).into()),
            ("Failstate", fail_state.into()),
            ("Force OpenFlow version", version.into()),
            (
                "EtherType Filtering",
                state(settings.ethertype_filter).into(),
            ),
        ] {
            iteration.line(&format!(" {label}: {value}"));
        }
        iteration.rule();
    }

    /// Sets one of the values that act later, and returns whether there is one with this name.
    fn set_value(&mut self, what: &str, value: &str, iteration: &mut ConsoleIteration) -> bool {
        let address = || address(value);
        let settings = &mut self.settings;
        let set = match what {
            "name" => {
                settings.name = value.chars().take(NAME_BYTES).collect();
                Some(("Name", settings.name.clone()))
            }
            "mac-address" => mac(value).map(|mac| {
                settings.mac = mac;
                ("MAC Address", mac.to_string().to_uppercase())
            }),
            "ip-address" => address().map(|address| {
                settings.ip_address = address;
                ("IP Address", address.to_string())
            }),
            "netmask" => address().map(|address| {
                settings.netmask = address;
                ("Netmask", address.to_string())
            }),
            "gateway" => address().map(|address| {
                settings.gateway = address;
                ("Gateway", address.to_string())
            }),
            "of-controller" => address().map(|address| {
                settings.controller_address = address;
                ("OpenFlow Controller", address.to_string())
            }),
            "of-port" => value.parse().ok().map(|port: u16| {
                settings.controller_port = port;
                ("OpenFlow Port", port.to_string())
            }),
            _ => return false,
        };
        match set {
            Some((label, value)) => iteration.line(&format!("{label} set to {value}")),
            None => iteration.line(&format!("{value} has an incorrect format")),
        }
        true
    }

    fn set_fail_state(&mut self, state: &str, iteration: &mut ConsoleIteration) {
        let (fail_state, name) = match state {
            "secure" => (FailState::Secure, "Secure"),
            "safe" => (FailState::Safe, "Safe"),
            _ => return iteration.line("Invalid failstate, use secure or safe"),
        };
        self.settings.fail_state = fail_state;
        iteration.agent.set_fail_state(fail_state);
        iteration.line(&format!("Failstate set to {name}"));
    }

    fn set_version(&mut self, version: &str, iteration: &mut ConsoleIteration) {
        let (number, confirmation) = match version {
            "0" => (0, "OpenFlow version is not forced"),
            "1" => (1, "OpenFlow version forced to 1.0"),
            "4" => (4, "OpenFlow version forced to 1.3"),
            _ => (0, "Invalid OpenFlow version, use 0, 1 or 4: set to 0"),
        };
        self.settings.openflow_version = number;
        iteration.agent.set_forced_version(number);
        iteration.line(confirmation);
    }

    fn set_filter(&mut self, state: &str, iteration: &mut ConsoleIteration) {
        let (filter, name) = match state {
            "enable" => (true, "Enabled"),
            "disable" => (false, "Disabled"),
            _ => return iteration.line("Invalid EtherType filter state, use enable or disable"),
        };
        self.settings.ethertype_filter = filter;
        iteration.agent.set_ethertype_filter(filter);
        iteration.line(&format!("EtherType Filtering {name}"));
    }

    /// Writes the configuration into the EEPROM, which keeps the CPU for seconds.
    pub(super) fn save(&mut self, iteration: &mut ConsoleIteration) {
        *self.eeprom = self.settings.image();
        let byte_ns = self.costs.eeprom_byte_ns;
        iteration.wait(Duration::from_nanos(byte_ns * EEPROM_BYTES as u64));
        iteration.line(&format!(
            "Writing configuration to EEPROM ({EEPROM_BYTES} bytes)"
        ));
        iteration
            .out
            .push(iteration.reached(), OutputKind::Eeprom(self.eeprom.clone()));
        iteration.line("done");
    }

    /// Reads the configuration from the EEPROM again, without a restart.
    fn load(&mut self, iteration: &mut ConsoleIteration) {
        if let Ok(settings) = Settings::read(self.eeprom.as_slice()) {
            self.settings = settings;
            self.apply_at_once(iteration);
            iteration.line("Configuration read from EEPROM");
        }
    }

    /// Tells the agent what acts at once.
    pub(super) fn apply_at_once(&self, iteration: &mut ConsoleIteration) {
        let agent = &mut *iteration.agent;
        agent.set_fail_state(self.settings.fail_state);
        agent.set_forced_version(self.settings.openflow_version);
        agent.set_ethertype_filter(self.settings.ethertype_filter);
        let enabled = self.settings.openflow_enabled;
        if agent.is_enabled() != enabled {
            let now = iteration.reached();
            iteration.agent.set_enabled(now, enabled, iteration.out);
        }
    }
}

/// Returns a MAC address of 17 characters; `None` for anything else.
fn mac(text: &str) -> Option<MacAddress> {
    (text.len() == MAC_CHARACTERS)
        .then(|| text.parse().ok())
        .flatten()
}

/// Returns an IP address of at most 15 characters. Octets are not range-checked: only their lower 8 bits count.
fn address(text: &str) -> Option<Ipv4Addr> {
    let mut parts = text.split('.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = digits.then(|| part.parse().ok()).flatten()?;
        *octet = (number % 256) as u8;
    }
    let whole = text.len() <= ADDRESS_CHARACTERS && parts.next().is_none();
    whole.then(|| octets.into())
}
