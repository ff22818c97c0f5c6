//! The board's settings.

use crate::config::{Config, ControlCarrier, FailState, MacAddress};
use crate::port::{PortMask, PortNumber};
use crate::profile::{CpuPortTags, Profile};
use crate::quirks::Quirks;

/// The board's settings, as far as the agent knows them. The console changes some.
#[derive(Debug)]
pub(super) struct AgentConfig {
    pub(super) mac: MacAddress,
    pub(super) openflow_ports: PortMask,
    /// Ports that flooding and port statistics mean: all but the native ones.
    pub(super) flooded: PortMask,
    pub(super) fail_state: FailState,
    pub(super) forced_version: u8,
    /// Whether the board has tables of OpenFlow 1.3.
    pub(super) knows_13: bool,
    pub(super) ethertype_filter: bool,
    pub(super) ofchecks: bool,
    pub(super) control: ControlCarrier,
    pub(super) quirks: Quirks,
    pub(super) cpu_port_tags: CpuPortTags,
}

impl AgentConfig {
    pub(super) fn new(profile: &Profile, config: &Config) -> Self {
        let native: PortMask = config.native_ports.iter().copied().collect();
        Self {
            mac: config.mac,
            openflow_ports: config.openflow_ports.iter().copied().collect(),
            flooded: PortMask::from_bits(!native.bits()),
            fail_state: config.fail_state,
            forced_version: config.openflow_version,
            knows_13: profile.cpu.openflow13.is_some(),
            ethertype_filter: config.ethertype_filter,
            ofchecks: config.ofchecks,
            control: config.control,
            quirks: config.quirks,
            cpu_port_tags: profile.integrated_switch.cpu_port_tags,
        }
    }

    /// A port's MAC address where it is not made up anew each time: the board's, with the port's number added.
    pub(super) fn port_address(&self, port: PortNumber) -> [u8; 6] {
        let mut address = self.mac.0;
        address[5] = address[5].wrapping_add(port.get());
        address
    }
}

/// Flags and length that hold until a session's first `SET_CONFIG`.
pub(super) const FIRST_SWITCH_CONFIG: [u8; 4] = [0, 0, 0, 128];
