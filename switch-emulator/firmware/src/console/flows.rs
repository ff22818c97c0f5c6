//! `show flows`.

use std::net::Ipv4Addr;

use super::iteration::ConsoleIteration;
use crate::actions::SLOT_BYTES;
use crate::config::MacAddress;
use crate::table::EntryView;
use ::openflow::v1_0::flow_mod::field;
use ::openflow::v1_0::{action, port, Match};
use openflow::bytes::{be16, be48};

const ICMP: u8 = 1;
/// The protocols for which the firmware prints addresses and ports; hardly any packet has one of them.
const PROTOCOLS_WITH_ADDRESSES: [u8; 2] = [7, 16];
const NO_VLAN: u16 = 0xffff;

/// Prints all entries in the order of the table.
pub(super) fn show_flows(iteration: &mut ConsoleIteration) {
    let views = iteration.agent.table().views().enumerate();
    let entries: Vec<String> = views
        .map(|(index, view)| entry(index + 1, &view, iteration.agent.age_s(view.installed)))
        .collect();
    if entries.is_empty() {
        return iteration.line("No flows installed");
    }
    iteration.rule();
    for entry in entries {
        iteration.print(&entry);
        iteration.rule();
    }
}

fn entry(number: usize, view: &EntryView, age_s: u32) -> String {
    let head = view.head;
    let cookie = (be48(head, field::COOKIE) << 16) | u64::from(be16(head, field::COOKIE + 6));
    let mut lines = vec![format!("Flow {number}"), " Match:".into()];
    lines.extend(match_lines(&Match::read(&head[field::MATCH..])));
    lines.extend([
        format!("  Cookie: 0x{cookie:x}"),
        " Attributes:".into(),
        format!("  Priority: {}", be16(head, field::PRIORITY)),
        format!("  Duration: {age_s} secs"),
        format!("  Hard Timeout: {} secs", be16(head, field::HARD_TIMEOUT)),
        format!("  Idle Timeout: {} secs", be16(head, field::IDLE_TIMEOUT)),
        format!("  Byte Count: {}", view.bytes),
        format!("  Packet Count: {}", view.packets),
        " Actions:".into(),
    ]);
    lines.extend(action_lines(view.slots));
    lines.push(String::new());
    lines.join("\n")
}

fn mac(bytes: [u8; 6]) -> String {
    MacAddress(bytes).to_string().to_uppercase()
}

fn match_lines(fields: &Match) -> Vec<String> {
    let (vlan, priority) = if fields.dl_vlan == NO_VLAN {
        ("N/A".into(), "N/A".into())
    } else {
        (fields.dl_vlan.to_string(), fields.dl_vlan_pcp.to_string())
    };
    let mut lines = vec![
        format!("  Incoming Port: {}", fields.in_port),
        format!("  Ethernet Type: 0x{:04X}", fields.dl_type),
        format!("  Source MAC: {}", mac(fields.dl_src)),
        format!("  Destination MAC: {}", mac(fields.dl_dst)),
        format!("  VLAN ID: {vlan}"),
        format!("  VLAN Priority: {priority}"),
    ];
    if matches!(fields.dl_type, 0x0800 | 0x8100) {
        lines.push(format!("  IP Protocol: {}", fields.nw_proto));
        lines.push(format!("  IP ToS Bits: 0x{:02X}", fields.nw_tos));
        if fields.nw_proto == ICMP {
            lines.push(format!("  ICMP Type: {}", fields.tp_src));
            lines.push(format!("  ICMP Code: {}", fields.tp_dst));
        }
        if PROTOCOLS_WITH_ADDRESSES.contains(&fields.nw_proto) {
            let address = |bits: u32| Ipv4Addr::from(bits);
            lines.push(format!("  Source IP: {}", address(fields.nw_src)));
            lines.push(format!("  Destination IP: {}", address(fields.nw_dst)));
            lines.push(format!("  Source Port: {}", fields.tp_src));
            lines.push(format!("  Destination Port: {}", fields.tp_dst));
        }
    }
    lines.push(format!("  Wildcards: 0x{:08x}", fields.wildcards));
    lines
}

fn action_lines(slots: &[u8]) -> Vec<String> {
    let mut slots = slots.chunks_exact(SLOT_BYTES);
    if slots.clone().next().is_none_or(|slot| be16(slot, 2) == 0) {
        return vec!["  DROP".into()];
    }
    slots
        .by_ref()
        .filter(|slot| be16(slot, 2) != 0)
        .filter_map(action_line)
        .collect()
}

/// Actions of other kinds are not shown.
fn action_line(slot: &[u8]) -> Option<String> {
    let address = || mac(core::array::from_fn(|index| slot[4 + index]));
    match be16(slot, 0) {
        action::OUTPUT => Some(format!("  Output: {}", output_port(be16(slot, 4)))),
        action::SET_VLAN_VID => Some(format!("  Set VLAN ID: {}", be16(slot, 4))),
        action::SET_DL_SRC => Some(format!("  Set Source MAC: {}", address())),
        action::SET_DL_DST => Some(format!("  Set Destination MAC: {}", address())),
        action::STRIP_VLAN => Some("  Strip VLAN tag".into()),
        _ => None,
    }
}

fn output_port(port: u16) -> String {
    match port {
        port::IN_PORT => "IN_PORT".into(),
        port::FLOOD => "FLOOD".into(),
        port::ALL => "ALL".into(),
        port::CONTROLLER => "CONTROLLER".into(),
        port => format!("Port {port}"),
    }
}
