//! Messages as OpenFlow 1.0.1 asks for them: what `quirks = "spec"` puts in the place of the firmware's answers.

use super::super::context::AgentContext;
use super::super::dataplane::Dataplane;
use super::super::ports::port_config;
use super::super::state::AgentState;
use super::statistics::{add_ports, chosen_ports};
use super::Firmware10;
use crate::actions::{Actions, SLOT_BYTES};
use crate::native::MemoryClass;
use crate::openflow13::description;
use crate::table::{check_actions, EntryView};
use openflow::bytes::{be16, be32};
use openflow::message;
use openflow::v1_0::flow_mod::{field, NO_BUFFER};
use openflow::v1_0::wildcards;
use openflow::v1_0::{error, is_fragment, Match, MATCH_BYTES};
use openflow::wire::{MessageBuilder, HEADER_BYTES, PACKET_OUT_BYTES, VERSION_1_0};

/// Handling of IP fragments that `SET_CONFIG` asks for: none, drop, or reassemble.
const FRAGMENTS: u16 = 3;
const FRAGMENTS_DROP: u16 = 1;

impl Firmware10 {
    /// Handles a whole message of a version that the board speaks.
    pub(in super::super) fn spec_message(&mut self, cx: &mut AgentContext, bytes: &[u8]) {
        let xid = be32(bytes, 4).to_be_bytes();
        let costs = cx.state.costs.control().clone();
        let kind = bytes[1];
        let fixed = match kind {
            message::PORT_MOD => 32,
            message::FLOW_MOD => field::ACTIONS,
            message::PACKET_OUT => PACKET_OUT_BYTES,
            message::SET_CONFIG
            | message::STATS_REQUEST
            | message::QUEUE_GET_CONFIG_REQUEST
            | message::VENDOR => 12,
            _ => HEADER_BYTES,
        };
        if bytes.len() < fixed {
            return cx.refuse(bytes, error::BAD_LENGTH);
        }
        match kind {
            message::ECHO_REQUEST => {
                cx.iteration.cost_ps += costs.echo_ps;
                let reply = MessageBuilder::new(VERSION_1_0, message::ECHO_REPLY, xid)
                    .bytes(&bytes[HEADER_BYTES..]);
                cx.send(MemoryClass::Exact, reply);
            }
            message::ERROR | message::ECHO_REPLY => {}
            _ if cx.state.version == 0 => {}
            message::SET_CONFIG => {
                cx.iteration.cost_ps += costs.set_config_ps;
                // The board puts no fragments together; 1.0 has no error of its own for that.
                if be16(bytes, 8) & FRAGMENTS > FRAGMENTS_DROP {
                    return cx.refuse(bytes, error::NOT_PERMITTED);
                }
                self.switch_config = [bytes[8], bytes[9], bytes[10], bytes[11]];
            }
            message::GET_CONFIG_REQUEST => {
                cx.iteration.cost_ps += costs.get_config_ps;
                let reply = cx
                    .state
                    .reply(message::GET_CONFIG_REPLY, xid)
                    .bytes(&self.switch_config);
                cx.send(MemoryClass::Exact, reply);
            }
            message::VENDOR => cx.refuse(bytes, error::BAD_VENDOR),
            message::PORT_MOD => port_mod(cx, bytes),
            message::QUEUE_GET_CONFIG_REQUEST => {
                // No port has queues.
                let reply = cx.state.reply(message::QUEUE_GET_CONFIG_REPLY, xid);
                let reply = reply.u16(be16(bytes, 8)).zeros(6);
                cx.send(MemoryClass::Exact, reply);
            }
            message::STATS_REQUEST => self.spec_statistics(cx, bytes),
            message::PACKET_OUT => self.spec_packet_out(cx, bytes),
            message::FEATURES_REQUEST | message::BARRIER_REQUEST | message::FLOW_MOD => {
                self.message(cx, bytes, bytes.len());
            }
            _ => cx.refuse(bytes, error::BAD_TYPE),
        }
    }

    /// Returns whether the controller has asked for frames such as this one to be dropped: fragments.
    pub(super) fn drops_fragment(&self, frame: &[u8]) -> bool {
        be16(&self.switch_config, 0) & FRAGMENTS == FRAGMENTS_DROP && is_fragment(frame)
    }

    fn spec_packet_out(&mut self, cx: &mut AgentContext, bytes: &[u8]) {
        let in_port = be16(bytes, 12);
        let data_at = PACKET_OUT_BYTES + usize::from(be16(bytes, 14));
        let (Some(list), Some(data)) = (bytes.get(PACKET_OUT_BYTES..data_at), bytes.get(data_at..))
        else {
            return cx.refuse(bytes, error::BAD_LENGTH);
        };
        cx.iteration.cost_ps += cx.state.costs.control().packet_out_ps;
        cx.charge_packet_out(data);
        if be32(bytes, 8) != NO_BUFFER {
            return cx.refuse(bytes, error::BUFFER_UNKNOWN);
        }
        let slots = match check_actions(list, true) {
            Ok(slots) => slots,
            Err(refusal) => return cx.refuse(bytes, refusal),
        };
        if data.is_empty() {
            return;
        }
        let frame = cx.iteration.out.pool.copy(data);
        let at = cx.iteration.reached();
        self.perform_actions(cx, at, &Actions::read(&slots), frame, in_port);
    }

    fn spec_statistics(&self, cx: &mut AgentContext, bytes: &[u8]) {
        let xid = be32(bytes, 4).to_be_bytes();
        let kind = be16(bytes, 8);
        let costs = cx.state.costs.control().clone();
        let reply = cx.state.reply(message::STATS_REPLY, xid).u16(kind).u16(0);
        let body = &bytes[12..];
        let reply = match kind {
            0 => {
                cx.iteration.cost_ps += costs.description_ps;
                reply.bytes(&description())
            }
            1 | 2 if body.len() < 44 => return cx.refuse(bytes, error::BAD_LENGTH),
            1 => {
                let chosen = self.chosen_flows(body);
                let entries_ps = costs.flow_statistics_entry_ps * chosen.len() as i64;
                let reply = chosen
                    .iter()
                    .fold(reply, |reply, entry| spec_flow(cx.state, reply, entry));
                cx.iteration.cost_ps += costs.flow_statistics_ps + entries_ps;
                reply
            }
            2 => {
                let chosen = self.chosen_flows(body);
                let packets: u64 = chosen.iter().map(|entry| entry.packets).sum();
                let sum: u64 = chosen.iter().map(|entry| entry.bytes.unsigned_abs()).sum();
                let count = chosen.len() as u32;
                cx.iteration.cost_ps += costs.flow_statistics_ps;
                reply.u64(packets).u64(sum).u32(count).zeros(4)
            }
            3 => {
                cx.iteration.cost_ps += costs.table_statistics_ps;
                reply
                    .zeros(4)
                    .text("classifier", 32)
                    .u32(wildcards::ALL)
                    .u32(self.table.capacity() as u32)
                    .bytes(&self.table.count().to_be_bytes())
                    .u64(self.table.lookups())
                    .u64(self.table.matched())
            }
            4 if body.len() < 8 => return cx.refuse(bytes, error::BAD_LENGTH),
            4 => match chosen_ports(cx.state, be16(body, 0)) {
                Some(ports) => add_ports(cx, reply, ports),
                None => return cx.refuse(bytes, error::BAD_STATISTICS),
            },
            5 => reply, // there are no queues
            0xffff => return cx.refuse(bytes, error::BAD_VENDOR),
            _ => return cx.refuse(bytes, error::BAD_STATISTICS),
        };
        cx.send(MemoryClass::Roomy, reply);
    }

    /// Entries that the body of a request means: those that its match covers, in its table, that send to its port.
    fn chosen_flows(&self, body: &[u8]) -> Vec<EntryView<'_>> {
        let (table, out_port) = (body[MATCH_BYTES], be16(body, MATCH_BYTES + 2));
        let chosen = self.table.chosen(&Match::read(body), out_port);
        chosen.filter(|_| matches!(table, 0 | 0xff)).collect()
    }
}

fn port_mod(cx: &mut AgentContext, bytes: &[u8]) {
    let Some(port) = cx.state.openflow_port(be16(bytes, 8).into()) else {
        return cx.refuse(bytes, error::BAD_PORT);
    };
    if bytes[10..16] != cx.state.config.port_address(port) {
        return cx.refuse(bytes, error::BAD_PORT_ADDRESS);
    }
    let (config, mask) = (be32(bytes, 16), be32(bytes, 20) & port_config::ALL);
    cx.state.ports.configure(port, config, mask);
}

fn spec_flow(state: &AgentState, reply: MessageBuilder, entry: &EntryView) -> MessageBuilder {
    let actions = super::statistics::stored_actions(entry);
    let length = |slot: &[u8]| usize::from(be16(slot, 2)).min(SLOT_BYTES);
    let action_bytes: usize = actions.clone().map(length).sum();
    let reply = reply
        .u16((88 + action_bytes) as u16)
        .zeros(2)
        .bytes(&entry.head[field::MATCH..field::MATCH + MATCH_BYTES])
        .u32(state.time.age_s(entry.installed))
        .u32(0)
        .u16(be16(entry.head, field::PRIORITY))
        .u16(be16(entry.head, field::IDLE_TIMEOUT))
        .u16(be16(entry.head, field::HARD_TIMEOUT))
        .zeros(6)
        .bytes(&entry.head[field::COOKIE..field::COOKIE + 8])
        .u64(entry.packets)
        .u64(entry.bytes.unsigned_abs());
    actions.fold(reply, |reply, slot| reply.bytes(&slot[..length(slot)]))
}
