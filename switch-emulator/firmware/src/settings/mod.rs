//! The board's configuration as the firmware keeps it: in RAM, and as the image of 197 bytes in the EEPROM.

mod image;
mod vlan;

use std::net::Ipv4Addr;

use crate::config::{Config, FailState, MacAddress};
use crate::port::{PortMask, PortNumber};

pub use image::{EepromError, EepromImage, EEPROM_BYTES};
pub(crate) use vlan::{Vlan, VlanError, VlanKind, Vlans};

/// Longest device name and VLAN name.
pub(crate) const NAME_BYTES: usize = 15;
/// Factory VLANs: number and name.
const OPENFLOW_VLAN: (u16, &str) = (100, "Openflow");
const NATIVE_VLAN: (u16, &str) = (200, "Controller");

/// The configuration in RAM. What acts at once is handed to the agent as well; the rest acts at the next connection or
/// after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) mac: MacAddress,
    pub(crate) ip_address: Ipv4Addr,
    pub(crate) netmask: Ipv4Addr,
    pub(crate) gateway: Ipv4Addr,
    pub(crate) controller_address: Ipv4Addr,
    pub(crate) controller_port: u16,
    pub(crate) openflow_enabled: bool,
    pub(crate) fail_state: FailState,
    pub(crate) openflow_version: u8,
    pub(crate) ethertype_filter: bool,
    /// Whose frames are the agent's. Follows the VLANs at boot; a port in no VLAN keeps what it was.
    pub(crate) openflow_ports: PortMask,
    pub(crate) vlans: Vlans,
}

impl Settings {
    /// Returns the EEPROM settings of a board with this configuration: its ports in the factory's two VLANs.
    pub(crate) fn of(config: &Config) -> Self {
        let openflow_ports: PortMask = config.openflow_ports.iter().copied().collect();
        let native_ports: PortMask = config.native_ports.iter().copied().collect();
        let slot = |(id, name): (u16, &str), kind, ports| Vlan {
            active: true,
            id,
            name: name.into(),
            kind,
            tagged: false,
            ports,
        };
        Self {
            name: config.name.clone(),
            mac: config.mac,
            ip_address: config.ip_address,
            netmask: config.netmask,
            gateway: config.gateway,
            controller_address: config.controller_address,
            controller_port: config.controller_port,
            openflow_enabled: config.openflow_enabled,
            fail_state: config.fail_state,
            openflow_version: config.openflow_version,
            ethertype_filter: config.ethertype_filter,
            openflow_ports,
            vlans: Vlans::new([
                slot(OPENFLOW_VLAN, VlanKind::OpenFlow, openflow_ports),
                slot(NATIVE_VLAN, VlanKind::Native, native_ports),
                Vlan::default(),
                Vlan::default(),
            ]),
        }
    }

    /// Returns the factory's values; the MAC address stays.
    pub(crate) fn factory(mac: MacAddress) -> Self {
        Self::of(&Config {
            mac,
            ..Config::default()
        })
    }

    /// Applies the VLANs at boot: their ports become OpenFlow ports or not. Returns the native ports.
    pub(crate) fn boot(&mut self) -> PortMask {
        let mut native = PortMask::EMPTY;
        for vlan in self.vlans.active() {
            let (owned, ports) = (self.openflow_ports.bits(), vlan.ports.bits());
            match vlan.kind {
                VlanKind::OpenFlow => self.openflow_ports = PortMask::from_bits(owned | ports),
                VlanKind::Native => {
                    self.openflow_ports = PortMask::from_bits(owned & !ports);
                    native = PortMask::from_bits(native.bits() | ports);
                }
                VlanKind::Unassigned => {}
            }
        }
        native
    }

    /// `config` with what the configuration says after a boot whose native ports are `native`.
    pub(crate) fn apply(&self, config: &Config, native: PortMask) -> Config {
        let ports = |mask: PortMask| mask.iter().collect::<Vec<PortNumber>>();
        Config {
            name: self.name.clone(),
            mac: self.mac,
            ip_address: self.ip_address,
            netmask: self.netmask,
            gateway: self.gateway,
            controller_address: self.controller_address,
            controller_port: self.controller_port,
            openflow_enabled: self.openflow_enabled,
            fail_state: self.fail_state,
            openflow_version: self.openflow_version,
            ethertype_filter: self.ethertype_filter,
            openflow_ports: ports(self.openflow_ports),
            native_ports: ports(native),
            ..config.clone()
        }
    }
}

#[cfg(test)]
mod tests;
