//! OpenFlow 1.0: the table and the messages of the firmware. Each of its deviations can be switched off; then the
//! specification's answer takes its place (`spec`, [`crate::table`]).

mod diagnosis;
mod features;
mod forwarding;
mod spec;
mod statistics;

use std::sync::Arc;

use super::clock::Timekeeping;
use super::config::FIRST_SWITCH_CONFIG;
use super::context::AgentContext;
use super::dataplane::{Dataplane, Dump};
use super::diagnosis::config_cause;
use super::flow_cache::CachedAction;
use super::state::AgentState;
use super::UNINITIALISED;
use crate::block_pool::BlockPool;
use crate::buffers::length_with_fcs;
use crate::config::Config;
use crate::cost::{Costs, FrameTime};
use crate::event::{Cause, Event};
use crate::native::MemoryClass;
use crate::port::PortNumber;
use crate::profile::Profile;
use crate::quirks::Quirk;
use crate::table::{Expired, FlowMod, FlowTable, Outcome, RemovedFlow};
use crate::time::Duration;
use diagnosis::packet_out_cause;
use forwarding::{cacheable_action, parse_key};
use of_switch::MatchedEntries;
use openflow::bytes::be32;
use openflow::message;
use openflow::v1_0::flow_mod::field;
use openflow::v1_0::MATCH_BYTES;
use openflow::wire::{MessageBuilder, VERSION_1_0};
use openflow::FlowRemovedReason;

/// The board's OpenFlow 1.0.
#[derive(Debug)]
pub(super) struct Firmware10 {
    pub(super) table: FlowTable,
    /// Flags and length of `SET_CONFIG` in this session; by the specification only.
    switch_config: [u8; 4],
    /// A frame that can match nothing has been told of.
    warned_unmatchable: bool,
    /// Entries of OpenFlow 1.3, whose data are not where 1.0 looks for them (quirk 85).
    foreign_entries: i32,
}

impl Firmware10 {
    pub(super) fn new(profile: &Profile, config: &Config, costs: &Arc<Costs>) -> Self {
        Self {
            table: FlowTable::new(
                Arc::clone(costs),
                profile.table.entries as usize,
                config.flow_memory_address,
                config.quirks,
            ),
            switch_config: FIRST_SWITCH_CONFIG,
            warned_unmatchable: false,
            foreign_entries: 0,
        }
    }

    /// Carries out a `FLOW_MOD`.
    fn flow_mod(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        let message = FlowMod::new(bytes, length);
        let was_underflowed = self.table.is_underflowed();
        let Outcome {
            done,
            cost_ps,
            lost_actions,
        } = self.table.flow_mod(message, cx.state.time.now());
        cx.iteration.cost_ps += cost_ps;
        if was_underflowed && !self.table.is_underflowed() {
            cx.iteration.event(Event::AddAfterUnderflow);
        }
        if lost_actions > 0 {
            let entries = lost_actions as u16;
            cx.iteration.event(Event::EntriesLostActions { entries });
        }
        match done {
            Ok(gone) => {
                let by_message = cx.state.has(Quirk::FlowRemovedByDeleteFlag);
                for flow in gone {
                    let is_wanted = if by_message {
                        message.wants_flow_removed()
                    } else {
                        flow.wants_flow_removed()
                    };
                    if is_wanted {
                        let message = flow_removed(cx.state, &flow, FlowRemovedReason::Delete);
                        cx.notify(message);
                    }
                }
            }
            Err(error) => cx.send_error(cx.state.version, bytes, length, error),
        }
    }
}

impl Dataplane for Firmware10 {
    fn message(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        match bytes[1] {
            message::ECHO_REQUEST => return cx.echo(bytes),
            _ if cx.state.version != VERSION_1_0 => return,
            _ => {}
        }
        let xid = be32(bytes, 4).to_be_bytes();
        let costs = cx.state.costs.control().clone();
        let (buffer, cost_ps, reply) = match bytes[1] {
            message::FEATURES_REQUEST => (
                MemoryClass::Roomy,
                costs.features_ps,
                features::reply(cx.state, xid),
            ),
            message::SET_CONFIG => {
                cx.iteration.cost_ps += costs.set_config_ps;
                return;
            }
            message::GET_CONFIG_REQUEST => {
                let reply = cx.state.reply(message::GET_CONFIG_REPLY, xid);
                (
                    MemoryClass::Exact,
                    costs.get_config_ps,
                    reply.u16(0).u16(0x8000),
                )
            }
            message::BARRIER_REQUEST => {
                let reply = cx.state.reply(message::BARRIER_REPLY, xid);
                (MemoryClass::Roomy, costs.barrier_ps, reply)
            }
            message::VENDOR => {
                cx.report_refusal(bytes, (1, 3));
                let reply = cx.state.reply(message::ERROR, xid).u16(1).u16(3);
                (MemoryClass::Exact, costs.vendor_ps, reply)
            }
            message::STATS_REQUEST => return self.statistics(cx, bytes),
            message::FLOW_MOD => return self.flow_mod(cx, bytes, length),
            message::PACKET_OUT => return self.packet_out(cx, bytes, length),
            message::ECHO_REPLY | message::ERROR => return,
            message_type => return cx.report_ignored(message_type, None),
        };
        cx.iteration.cost_ps += cost_ps;
        cx.send(buffer, reply);
    }

    fn frame(
        &mut self,
        cx: &mut AgentContext,
        data: Vec<u8>,
        port: PortNumber,
    ) -> (Duration, Option<CachedAction>) {
        let length = length_with_fcs(data.len());
        let in_port = u16::from(port.get());
        let key = parse_key(cx.state, &data, in_port);
        let examined_before = cx.iteration.out.counters.entries_examined;
        let (decision, cost_ps) = self.decide(cx, &key, &data);
        let examined = cx.iteration.out.counters.entries_examined - examined_before;
        let time = cx.state.costs.frame(length, cost_ps);
        let cached = cacheable_action(cx.state, &decision, in_port, time, examined);
        let FrameTime { work, busy } = time;
        let at = cx.iteration.began + work;
        self.carry_out(cx, at, &decision, &key, data);
        (busy, cached)
    }

    fn record_match(&mut self, time: &Timekeeping, matched: MatchedEntries, bytes: usize) {
        self.table.record_match(matched.only(), bytes, time.now());
    }

    /// On the board at most one entry expires.
    fn expire(&mut self, cx: &mut AgentContext) {
        for expired in self.table.expire(cx.state.time.now()) {
            report_expired(cx, &expired);
        }
    }

    fn expires_each_tick(&self, state: &AgentState) -> bool {
        !state.has(Quirk::TimeoutsByAddress)
    }

    fn dump(&self) -> Dump {
        Dump {
            v1_0: self.table.flows(),
            ..Dump::default()
        }
    }

    fn count(&self) -> i32 {
        self.table.count()
    }

    fn clear(&mut self) {
        self.table.clear();
        self.foreign_entries = 0;
    }

    fn port_status(&mut self, state: &mut AgentState, port: PortNumber) -> Option<MessageBuilder> {
        let status = state
            .reply(message::PORT_STATUS, [0; 4])
            .u8(2)
            .bytes(&[UNINITIALISED; 7]);
        Some(features::port_description(state, status, port))
    }

    fn predicted_cause(&self, state: &AgentState, bytes: &[u8], length: usize) -> Option<Cause> {
        match bytes[1] {
            message::FLOW_MOD => self.table.flow_mod_cause(FlowMod::new(bytes, length)),
            message::PACKET_OUT => packet_out_cause(state, bytes, length),
            message::STATS_REQUEST => self.statistics_cause(bytes, length),
            message::SET_CONFIG => config_cause(bytes, length, 0x8000),
            _ => (length < 8).then_some(Cause::Short),
        }
    }

    fn version_agreed(&mut self) {
        self.switch_config = FIRST_SWITCH_CONFIG;
    }

    fn pool(&self) -> Option<&BlockPool> {
        Some(self.table.pool())
    }

    fn take_over(&mut self, pool: &BlockPool, entries: i32) {
        self.table.take_over(pool);
        self.foreign_entries = entries;
    }
}

fn report_expired(cx: &mut AgentContext, expired: &Expired) {
    let flow = &expired.flow;
    if cx.state.has(Quirk::TimeoutsByAddress) {
        cx.iteration.event(Event::FlowExpired {
            age_s: cx.state.time.age_s(flow.installed),
            another_lost: expired.another_lost,
        });
    }
    if expired.wants_flow_removed && cx.state.is_established() && cx.state.may_speak() {
        let message = flow_removed(cx.state, flow, expired.reason);
        cx.send_at_once(message);
    }
}

/// A notice that an entry has gone. The counters are in the byte order of the CPU.
fn flow_removed(
    state: &AgentState,
    flow: &RemovedFlow,
    reason: FlowRemovedReason,
) -> MessageBuilder {
    let (packets, bytes) = (flow.packets, flow.bytes);
    let counters = if state.has(Quirk::FlowRemovedByteOrder) {
        [packets.to_le_bytes(), bytes.to_le_bytes()].concat()
    } else {
        [packets.to_be_bytes(), bytes.to_be_bytes()].concat()
    };
    state
        .reply(message::FLOW_REMOVED, [0; 4])
        .bytes(&flow.head[field::MATCH..field::MATCH + MATCH_BYTES])
        .bytes(&flow.head[field::COOKIE..field::COOKIE + 8])
        .bytes(&flow.head[field::PRIORITY..field::PRIORITY + 2])
        .u8(reason as u8)
        .bytes(&[UNINITIALISED; 1])
        .u32(state.time.age_s(flow.installed))
        .bytes(&[UNINITIALISED; 4])
        .bytes(&flow.head[field::IDLE_TIMEOUT..field::IDLE_TIMEOUT + 2])
        .bytes(&[UNINITIALISED; 2])
        .bytes(&counters)
}
