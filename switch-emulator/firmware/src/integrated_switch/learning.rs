//! Frames that the integrated switch passes on without the CPU: a switch with VLANs that learns addresses.
//!
//! It does so for ports whose frames the firmware does not trap: those that are not the agent's, and all while
//! `OpenFlow` is switched off. Learning, ageing and VLANs as in the data sheet of the chip (KSZ8795CLX, sections 3.3 and
//! 3.6.8); tags are neither inserted nor removed.

use std::collections::BTreeMap;

use crate::config::MacAddress;
use crate::port::{PortMask, PortNumber, PORTS};
use crate::settings::{VlanKind, Vlans};
use crate::time::{Duration, Instant};

/// Addresses that the chip learns.
const ADDRESSES: usize = 1_024;
/// An address that has not been seen for so long is forgotten.
const AGEING: Duration = Duration::from_millis(300_000);

const TAG_TYPE: [u8; 2] = [0x81, 0x00];
const VLAN_ID_BITS: u16 = 0x0fff;

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BridgePorts {
    /// Front ports.
    pub(crate) ports: PortMask,
    /// Whether it goes to the CPU, as a frame for the board's IP stack.
    pub(crate) cpu: bool,
}

impl BridgePorts {
    /// The frame ends here.
    const NOWHERE: Self = Self {
        ports: PortMask::EMPTY,
        cpu: false,
    };
}

#[derive(Clone, Copy, Debug)]
struct BridgeVlan {
    id: u16,
    members: PortMask,
    /// Whether the CPU's port is a member: of native VLANs only.
    cpu: bool,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    port: PortNumber,
    seen_at: Instant,
}

/// The address table and the VLANs of the integrated switch.
#[derive(Debug)]
pub(crate) struct LearningSwitch {
    vlans: Vec<BridgeVlan>,
    /// For each port, the VLAN of frames that come without a tag.
    port_vlans: [Option<u16>; PORTS],
    cpu_address: MacAddress,
    stations: BTreeMap<(u16, [u8; 6]), Station>,
}

impl LearningSwitch {
    /// Returns the chip as the firmware sets it up at boot. The CPU sends from `cpu_address`.
    pub(crate) fn new(vlans: &Vlans, cpu_address: MacAddress) -> Self {
        let mut port_vlans = [None; PORTS];
        let vlans = vlans.active().map(|vlan| {
            for port in vlan.ports.iter() {
                port_vlans[port.index()] = Some(vlan.id);
            }
            BridgeVlan {
                id: vlan.id,
                members: vlan.ports,
                cpu: vlan.kind == VlanKind::Native,
            }
        });
        Self {
            vlans: vlans.collect(),
            port_vlans,
            cpu_address,
            stations: BTreeMap::new(),
        }
    }

    /// Learns from a frame that has arrived on `port` at `now`, and tells where it goes.
    pub(crate) fn pass(&mut self, now: Instant, port: PortNumber, frame: &[u8]) -> BridgePorts {
        let id = vlan_id(frame).or(self.port_vlans[port.index()]);
        let Some(vlan) = self.vlans.iter().find(|vlan| Some(vlan.id) == id).copied() else {
            return BridgePorts::NOWHERE;
        };
        self.learn(now, vlan.id, port, address(frame, 6));
        let to = address(frame, 0);
        if to == self.cpu_address.0 && vlan.cpu {
            return BridgePorts {
                ports: PortMask::EMPTY,
                cpu: true,
            };
        }
        match self.station(now, vlan.id, to) {
            Some(known) if known == port => BridgePorts::NOWHERE,
            Some(known) => BridgePorts {
                ports: PortMask::EMPTY.with(known),
                cpu: false,
            },
            None => BridgePorts {
                ports: vlan.members.without(port),
                cpu: vlan.cpu,
            },
        }
    }

    fn learn(&mut self, now: Instant, vlan: u16, port: PortNumber, from: [u8; 6]) {
        if is_group(from) {
            return;
        }
        if self.stations.len() >= ADDRESSES && !self.stations.contains_key(&(vlan, from)) {
            self.stations.retain(|_, station| !is_old(now, station));
            if self.stations.len() >= ADDRESSES {
                return;
            }
        }
        let seen_at = now;
        self.stations
            .insert((vlan, from), Station { port, seen_at });
    }

    /// The port behind which a station is, if that is known.
    fn station(&self, now: Instant, vlan: u16, to: [u8; 6]) -> Option<PortNumber> {
        let station = self.stations.get(&(vlan, to))?;
        (!is_group(to) && !is_old(now, station)).then_some(station.port)
    }
}

fn is_old(now: Instant, station: &Station) -> bool {
    now.saturating_since(station.seen_at) > AGEING
}

const fn is_group(address: [u8; 6]) -> bool {
    address[0] & 1 != 0
}

fn address(frame: &[u8], at: usize) -> [u8; 6] {
    std::array::from_fn(|index| frame[at + index])
}

/// VLAN that a tag names.
fn vlan_id(frame: &[u8]) -> Option<u16> {
    let id = u16::from_be_bytes([*frame.get(14)?, *frame.get(15)?]) & VLAN_ID_BITS;
    (frame[12..14] == TAG_TYPE && id != 0).then_some(id)
}

#[cfg(test)]
mod tests;
