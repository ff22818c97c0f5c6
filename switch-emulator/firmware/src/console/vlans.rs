//! Commands on VLANs. They change the configuration only; the ports follow after a restart.

use super::iteration::ConsoleIteration;
use super::Console;
use crate::port::PortNumber;
use crate::settings::{VlanError, VlanKind, NAME_BYTES};

/// Highest VLAN ID that a frame can carry.
const HIGHEST_ID: u16 = 4_094;

impl Console {
    pub(super) fn vlan_command(
        &mut self,
        words: &[&str],
        iteration: &mut ConsoleIteration,
    ) -> bool {
        let vlans = &mut self.settings.vlans;
        let done = match words {
            ["add", "vlan", id, name] => vlan_id(id).and_then(|id| {
                let name: String = name.chars().take(NAME_BYTES).collect();
                vlans.add(id, &name)?;
                Ok(format!("VLAN {id} '{name}' added"))
            }),
            ["delete", "vlan", id] => vlan_id(id).and_then(|id| {
                vlans.find(id)?.active = false;
                Ok(format!("VLAN {id} deleted"))
            }),
            ["set", "vlan-type", id, kind] => {
                let kind = match *kind {
                    "openflow" => VlanKind::OpenFlow,
                    "native" => VlanKind::Native,
                    _ => {
                        iteration.line("Invalid VLAN type, use openflow or native");
                        return true;
                    }
                };
                vlan_id(id).and_then(|id| {
                    vlans.find(id)?.kind = kind;
                    Ok(format!("VLAN {id} set as {}", kind.text()))
                })
            }
            ["set", "vlan-tag", id, state] => {
                let tagged = match *state {
                    "tagged" => true,
                    "untagged" => false,
                    _ => {
                        iteration.line("Invalid tag state, use tagged or untagged");
                        return true;
                    }
                };
                vlan_id(id).and_then(|id| {
                    vlans.find(id)?.tagged = tagged;
                    Ok(format!("VLAN {id} set as {state}"))
                })
            }
            ["add", "vlan-port", id, port] => {
                let Some(port) = port_number(port, iteration) else {
                    return true;
                };
                vlan_id(id).and_then(|id| {
                    vlans.add_port(id, port)?;
                    Ok(format!("Port {port} added to VLAN {id}"))
                })
            }
            ["delete", "vlan-port", port] => {
                let Some(port) = port_number(port, iteration) else {
                    return true;
                };
                vlans.delete_port(port);
                Ok(format!("Port {port} removed from its VLAN"))
            }
            _ => return false,
        };
        iteration.line(match &done {
            Ok(confirmation) => confirmation,
            Err(VlanError::NoSlot) => "There are no more VLAN slots",
            Err(VlanError::UnknownId) => "Unknown VLAN ID",
            Err(VlanError::PortTaken) => "Port is already in a VLAN",
        });
        true
    }

    pub(super) fn show_vlans(&self, iteration: &mut ConsoleIteration) {
        iteration.line(&format!("{:<8}{:<19}{:<12}Tag", "VLAN ID", "Name", "Type"));
        iteration.rule();
        for vlan in self.settings.vlans.active() {
            let tag = if vlan.tagged { "Tagged" } else { "Untagged" };
            let name = format!("'{}'", vlan.name);
            iteration.line(&format!(
                "{:<8}{name:<19}{:<12}{tag}",
                vlan.id,
                vlan.kind.text()
            ));
        }
        iteration.rule();
    }
}

/// No VLAN has an ID that is none.
fn vlan_id(text: &str) -> Result<u16, VlanError> {
    let id = text.parse().ok().filter(|id| (1..=HIGHEST_ID).contains(id));
    id.ok_or(VlanError::UnknownId)
}

fn port_number(text: &str, iteration: &mut ConsoleIteration) -> Option<PortNumber> {
    let port = text.parse().ok().and_then(PortNumber::new);
    if port.is_none() {
        iteration.line("Invalid port, use 1 to 4");
    }
    port
}
