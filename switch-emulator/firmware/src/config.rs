//! Settings of one board.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::port::{PortMask, PortNumber};
use crate::quirks::{list, Quirk, Quirks};

/// Settings of one board by name; the default is what the factory sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Device name, at most 15 characters.
    pub name: String,
    /// MAC address; its bytes are also the datapath identifier.
    pub mac: MacAddress,
    /// IP address of the board on the network of its native ports.
    pub ip_address: Ipv4Addr,
    /// Netmask of that network.
    pub netmask: Ipv4Addr,
    /// Where packets for other networks go.
    pub gateway: Ipv4Addr,
    /// IP address of the controller.
    pub controller_address: Ipv4Addr,
    /// TCP port of the controller.
    pub controller_port: u16,
    /// Who keeps the TCP connection to the controller.
    pub control: ControlCarrier,
    /// Whether OpenFlow is switched on.
    pub openflow_enabled: bool,
    /// Front ports whose frames the OpenFlow agent handles: the first VLAN of the configuration, as the factory's VLAN 100.
    pub openflow_ports: Vec<PortNumber>,
    /// Front ports that carry management traffic, never a target of flooding: the second VLAN, as the factory's VLAN 200.
    pub native_ports: Vec<PortNumber>,
    /// Treatment of flows and frames while the controller is away.
    pub fail_state: FailState,
    /// 0: as the controller asks; 1 or 4: always OpenFlow 1.0 or 1.3 (wire version numbers). If the profile has no costs of
    /// 1.3, a session that speaks it is reported in an event, has nothing but ECHO answered, and ends after 3 s.
    pub openflow_version: u8,
    /// Drop frames whose type field is not one of the eight usual ones.
    pub ethertype_filter: bool,
    /// The three housekeeping jobs that come in turn (port counters, link status, flow timeouts), and closing a
    /// session whose controller is silent or asks for no features. `false` is the modified firmware of the Loko
    /// paper, section 3.1: neither of them, but still a tick every 501 ms that connects and sends echo requests.
    pub ofchecks: bool,
    /// The deviations from OpenFlow that the board has: `"firmware"` (all), `"spec"` (none), or `{ without = [...] }` and
    /// `{ only = [...] }` with names from `docs/quirks.md`.
    pub quirks: Quirks,
    /// Time from a TCP segment's departure to the controller's acknowledgement, unless data acknowledges it before. An
    /// assumption: a direct cable and a controller that does not delay its acknowledgements.
    pub acknowledgement_ns: u64,
    /// Where the pool of the flow table lies in the board's memory, a multiple of 4. Flow timeouts depend on it, and it
    /// depends on how the firmware was linked; the default is that of a rebuild.
    pub flow_memory_address: u32,
    /// Instant of the first main-loop iteration after power-up. Without it, drawn from the seed: then boards with
    /// different seeds poll at different phases.
    pub loop_phase_ns: Option<u64>,
    /// Instant after power-up when the timers of the IP stack first run. Without it, drawn from the seed.
    pub timer_phase_ns: Option<u64>,
}

/// Who keeps the TCP connection to the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlCarrier {
    /// Whoever drives the board: it hands in the payloads of TCP segments, and messages come out.
    #[default]
    Session,
    /// The board: ARP, ping and TCP travel as frames on its native ports, to and from its own MAC and IP address.
    Network,
}

/// Treatment of flows and frames while the controller is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailState {
    /// Flows are erased and frames dropped.
    #[default]
    Secure,
    /// Flows stay and forward.
    Safe,
}

/// Settings that no board can have. Its `Display` is one line: which setting, what is wrong, what is right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("config, {key}: {reason}")]
pub struct ConfigError {
    key: &'static str,
    reason: String,
}

impl Default for Config {
    fn default() -> Self {
        let port = |number| PortNumber::new(number).expect("factory ports exist");
        Self {
            name: "Zodiac_FX".into(),
            mac: MacAddress([0x70, 0xb3, 0xd5, 0x6c, 0x00, 0x01]),
            ip_address: Ipv4Addr::new(10, 0, 1, 99),
            netmask: Ipv4Addr::new(255, 255, 255, 0),
            gateway: Ipv4Addr::new(10, 0, 1, 1),
            controller_address: Ipv4Addr::new(10, 0, 1, 8),
            controller_port: 6633,
            control: ControlCarrier::Session,
            openflow_enabled: true,
            openflow_ports: vec![port(1), port(2), port(3)],
            native_ports: vec![port(4)],
            fail_state: FailState::Secure,
            openflow_version: 0,
            ethertype_filter: false,
            ofchecks: true,
            quirks: Quirks::Firmware,
            acknowledgement_ns: 200_000,
            flow_memory_address: 0x2000_da0c,
            loop_phase_ns: None,
            timer_phase_ns: None,
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, reason: String| Err(ConfigError { key, reason });
        if self.name.is_empty() || self.name.len() > 15 {
            return refuse(
                "name",
                format!(
                    "`{}` has {} characters; 1 to 15 fit",
                    self.name,
                    self.name.len()
                ),
            );
        }
        if !matches!(self.openflow_version, 0 | 1 | 4) {
            return refuse(
                "openflow_version",
                format!(
                    "{} is none of 0 (as the controller asks), 1 (OpenFlow 1.0), 4 (OpenFlow 1.3)",
                    self.openflow_version
                ),
            );
        }
        self.check_quirks()?;
        let mask = u32::from(self.netmask);
        if mask.leading_ones() + mask.trailing_zeros() != u32::BITS {
            return refuse(
                "netmask",
                format!(
                    "{} has ones behind zeros; write it as 255.255.255.0",
                    self.netmask
                ),
            );
        }
        if self.flow_memory_address % 4 != 0
            || !(0x2000_0000..=0x2001_8000).contains(&self.flow_memory_address)
        {
            return refuse(
                "flow_memory_address",
                format!(
                    "{:#x} is no multiple of 4 from 0x20000000 to 0x20018000, where the pool fits into the board's memory",
                    self.flow_memory_address
                ),
            );
        }
        let openflow: PortMask = self.openflow_ports.iter().copied().collect();
        let native: PortMask = self.native_ports.iter().copied().collect();
        if openflow.len() != self.openflow_ports.len() {
            return refuse("openflow_ports", "a port is named twice".into());
        }
        if native.len() != self.native_ports.len() {
            return refuse("native_ports", "a port is named twice".into());
        }
        if let Some(port) = self
            .native_ports
            .iter()
            .find(|port| openflow.contains(**port))
        {
            return refuse(
                "native_ports",
                format!("port {port} is also an OpenFlow port; take it from one of the two"),
            );
        }
        if self.control == ControlCarrier::Network {
            self.check_network()?;
        }
        Ok(())
    }

    /// Checks that a board which always speaks one version can show the deviations that are named.
    fn check_quirks(&self) -> Result<(), ConfigError> {
        let (version, applies): (_, fn(Quirk) -> bool) = match self.openflow_version {
            1 => ("1.0", Quirk::is_of_10),
            4 => ("1.3", Quirk::is_of_13),
            _ => return Ok(()),
        };
        let Some(quirk) = self.quirks.misplaced(applies) else {
            return Ok(());
        };
        let names = Quirk::ALL.into_iter().filter(|quirk| applies(*quirk));
        let names = list(names.map(Quirk::name));
        Err(ConfigError {
            key: "quirks",
            reason: format!(
                "{quirk} cannot be switched by itself in OpenFlow {version}; these can: {names}"
            ),
        })
    }

    /// Checks what a board needs that makes its TCP connection by itself.
    fn check_network(&self) -> Result<(), ConfigError> {
        let refuse = |key, reason| Err(ConfigError { key, reason });
        if self.native_ports.is_empty() {
            let reason =
                "control = \"network\" needs a port that carries it; name one, such as [4]";
            return refuse("native_ports", reason.into());
        }
        if self.mac.0[0] & 1 != 0 || self.mac.0 == [0; 6] {
            let reason = format!("{} is no address of a single station", self.mac);
            return refuse("mac", reason);
        }
        for (key, address) in [
            ("ip_address", self.ip_address),
            ("gateway", self.gateway),
            ("controller_address", self.controller_address),
        ] {
            let single = !address.is_unspecified()
                && !address.is_broadcast()
                && !address.is_multicast()
                && !address.is_loopback();
            if !single {
                let reason = format!("{address} is no address of a single station");
                return refuse(key, reason);
            }
        }
        if self.controller_port == 0 {
            return refuse(
                "controller_port",
                "0 is no TCP port; give 1 to 65535".into(),
            );
        }
        Ok(())
    }
}

/// A MAC address, written as six pairs of hexadecimal digits with colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for MacAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a MAC address; write it as 70:b3:d5:6c:00:01");
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs
                .next()
                .filter(|pair| pair.len() == 2 && pair.bytes().all(|c| c.is_ascii_hexdigit()));
            *byte = u8::from_str_radix(pair.ok_or_else(wrong)?, 16).map_err(|_| wrong())?;
        }
        if pairs.next().is_some() {
            return Err(wrong());
        }
        Ok(Self(bytes))
    }
}

impl Serialize for MacAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MacAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
