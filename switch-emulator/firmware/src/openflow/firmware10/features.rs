//! `FEATURES_REPLY`, and how the agent describes ports.

use super::super::state::AgentState;
use super::super::UNINITIALISED;
use crate::port::PortNumber;
use crate::quirks::Quirk;
use crate::table::ACTION_TYPES;
use openflow::message;
use openflow::wire::MessageBuilder;

/// Returns `FEATURES_REPLY`.
pub(super) fn reply(state: &mut AgentState, xid: [u8; 4]) -> MessageBuilder {
    state.connection.features_requested();
    if state.has(Quirk::HiddenLinkChanges) {
        state.ports.link_seen = state.ports.link_up;
    }
    // Flow, table and port statistics; with the specification also addresses of ARP in matches.
    let capabilities = if state.has(Quirk::ArpFieldsUnmatched) {
        0x07
    } else {
        0x87
    };
    let reply = state
        .reply(message::FEATURES_REPLY, xid)
        .u16(0)
        .bytes(&state.config.mac.0)
        .u32(0) // buffers
        .u8(1) // tables
        .bytes(&[UNINITIALISED; 3])
        .u32(capabilities)
        .u32(ACTION_TYPES);
    let ports = state.config.openflow_ports;
    ports
        .iter()
        .fold(reply, |reply, port| port_description(state, reply, port))
}

/// Adds the description of a port to a message.
pub(super) fn port_description(
    state: &mut AgentState,
    reply: MessageBuilder,
    port: PortNumber,
) -> MessageBuilder {
    let address = if state.has(Quirk::RandomPortAddresses) {
        state.ports.made_up_address()
    } else {
        state.config.port_address(port)
    };
    let up = if state.has(Quirk::HiddenLinkChanges) {
        state.ports.link_seen
    } else {
        state.ports.link_up
    };
    reply
        .u16(port.get().into())
        .bytes(&address)
        .text(&format!("eth{}", port.get() - 1), 16)
        .u32(state.ports.config[port.index()])
        .u32(u32::from(!up.contains(port)))
        .u32(0x0000_0088) // 100 Mbit/s full duplex, copper
        .zeros(12)
}
