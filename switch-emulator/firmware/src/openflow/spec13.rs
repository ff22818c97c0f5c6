//! OpenFlow 1.3.4 of a board with `quirks = "spec"`: messages, frames and notices. What the tables do is
//! [`crate::openflow13::spec`]'s.

use super::clock::Timekeeping;
use super::config::FIRST_SWITCH_CONFIG;
use super::context::AgentContext;
use super::dataplane::{Dataplane, Dump};
use super::flow_cache::{CachedAction, HitCounting};
use super::ports::port_config;
use super::session13::{role, AsyncMessage, Session13};
use super::state::AgentState;
use crate::buffers::length_with_fcs;
use crate::cost::FrameTime;
use crate::event::Cause;
use crate::native::MemoryClass;
use crate::openflow13::spec::{PricedRun, RemovedEntry, SpecSwitch};
use crate::openflow13::{PortCounters, PortDescription, Surroundings};
use crate::outbox::Outbox;
use crate::port::PortNumber;
use crate::profile::OpenFlow13Costs;
use crate::time::{Duration, Instant};
use of_switch::v1_3::{PacketInReason, SpecEffect, SpecRun};
use of_switch::{MatchedEntries, PortSets};
use openflow::bytes::{be16, be32, be64};
use openflow::v1_3::error;
use openflow::v1_3::flow_mod::ALL_TABLES;
use openflow::v1_3::port::{ANY as ANY_PORT, CONTROLLER};
use openflow::wire::{MessageBuilder, HEADER_BYTES, PACKET_OUT_13_BYTES, VERSION_1_3};
use openflow::{message, message13, ErrorCode};

/// Flags of `SET_CONFIG` that ask for fragments to be dropped or put together, which the board cannot.
const FRAGMENTS: u16 = 3;
const TABLES: u8 = 10;
/// Tables, ports, flows, groups: what there are counters of.
const CAPABILITIES: u32 = 0x0f;
/// Speed of a port.
const SPEED_KBPS: u32 = 100_000;

/// The board's OpenFlow 1.3 by the specification.
#[derive(Debug)]
pub(super) struct Spec13 {
    switch: SpecSwitch,
    /// Settings that the controller has made in this session.
    session: Session13,
    /// The latest generation of roles that a controller has named.
    role_generation: Option<u64>,
    /// Flags and length of `SET_CONFIG` in this session.
    switch_config: [u8; 4],
}

impl Spec13 {
    pub(super) fn new(costs: OpenFlow13Costs) -> Self {
        Self {
            switch: SpecSwitch::new(costs),
            session: Session13::new(),
            role_generation: None,
            switch_config: FIRST_SWITCH_CONFIG,
        }
    }

    #[allow(clippy::too_many_lines)] // a few lines for each message
    fn handle(&mut self, cx: &mut AgentContext, bytes: &[u8]) -> Result<(), ErrorCode> {
        let (ports, now) = (port_sets(cx.state), cx.iteration.began);
        let switch = &mut self.switch;
        let xid = be32(bytes, 4).to_be_bytes();
        let kind = bytes[1];
        let least = match kind {
            message::FLOW_MOD => 56,
            message13::PORT_MOD => 40,
            message13::SET_ASYNC => 32,
            message::PACKET_OUT | message13::ROLE_REQUEST => 24,
            message::VENDOR
            | message13::GROUP_MOD
            | message13::TABLE_MOD
            | message13::MULTIPART_REQUEST
            | message13::QUEUE_REQUEST
            | message13::METER_MOD => 16,
            message::SET_CONFIG => 12,
            _ => HEADER_BYTES,
        };
        if bytes.len() < least {
            return Err(error::BAD_LENGTH);
        }
        let changes = matches!(
            kind,
            message::PACKET_OUT
                | message::FLOW_MOD
                | message13::GROUP_MOD
                | message13::PORT_MOD
                | message13::TABLE_MOD
                | message13::METER_MOD
        );
        if changes && self.session.role == role::SLAVE {
            return Err(error::IS_SLAVE);
        }
        let reply = match kind {
            message::ECHO_REQUEST => {
                cx.iteration.cost_ps += cx.state.costs.control().echo_ps;
                // Before both sides have agreed the request's version is all that is known.
                MessageBuilder::new(bytes[0], message::ECHO_REPLY, xid)
                    .bytes(&bytes[HEADER_BYTES..])
            }
            message::ERROR | message::ECHO_REPLY => return Ok(()),
            _ if cx.state.version == 0 => return Ok(()),
            message::VENDOR => return Err(error::BAD_EXPERIMENTER),
            message::FEATURES_REQUEST => {
                cx.iteration.cost_ps += switch.costs.features_ps;
                cx.state.connection.features_requested();
                cx.state
                    .reply(message::FEATURES_REPLY, xid)
                    .u16(0)
                    .bytes(&cx.state.config.mac.0)
                    .u32(0) // buffers
                    .u8(TABLES)
                    .zeros(3)
                    .u32(CAPABILITIES)
                    .u32(0)
            }
            message::GET_CONFIG_REQUEST => {
                cx.iteration.cost_ps += cx.state.costs.control().get_config_ps;
                cx.state
                    .reply(message::GET_CONFIG_REPLY, xid)
                    .bytes(&self.switch_config)
            }
            message::SET_CONFIG => {
                cx.iteration.cost_ps += cx.state.costs.control().set_config_ps;
                if be16(bytes, 8) & FRAGMENTS != 0 {
                    return Err(error::BAD_CONFIG_FLAGS);
                }
                self.switch_config = [bytes[8], bytes[9], bytes[10], bytes[11]];
                return Ok(());
            }
            message13::BARRIER_REQUEST => {
                cx.iteration.cost_ps += cx.state.costs.control().barrier_ps;
                cx.state.reply(message13::BARRIER_REPLY, xid)
            }
            message13::ROLE_REQUEST => {
                cx.iteration.cost_ps += switch.costs.role_ps;
                let (role, generation) = self.change_role(bytes)?;
                cx.state
                    .reply(message13::ROLE_REPLY, xid)
                    .u32(role)
                    .u32(0)
                    .u64(generation)
            }
            message13::ASYNC_REQUEST => {
                let reply = cx.state.reply(message13::ASYNC_REPLY, xid);
                let wanted = self.session.wanted;
                wanted.iter().fold(reply, |reply, mask| reply.u32(*mask))
            }
            message13::SET_ASYNC => {
                self.session.wanted = core::array::from_fn(|i| be32(bytes, 8 + 4 * i));
                return Ok(());
            }
            message13::QUEUE_REQUEST => {
                // No port has queues.
                let port = be32(bytes, 8);
                if port != ANY_PORT && cx.state.openflow_port(port).is_none() {
                    return Err(error::BAD_QUEUE_PORT);
                }
                cx.state
                    .reply(message13::QUEUE_REPLY, xid)
                    .u32(port)
                    .zeros(4)
            }
            message::PACKET_OUT => return self.packet_out(cx, bytes),
            message::FLOW_MOD => {
                let (done, cost_ps) = switch.flow_mod(bytes, ports, cx.iteration.began);
                cx.iteration.cost_ps += cost_ps;
                let gone = done?;
                self.tell_removed(cx, now, &gone);
                return Ok(());
            }
            message13::GROUP_MOD => {
                cx.iteration.cost_ps += switch.costs.modification_ps;
                let gone = switch
                    .tables
                    .group_mod(bytes, ports, cx.iteration.began.as_nanos())?;
                self.tell_removed(cx, now, &gone);
                return Ok(());
            }
            message13::METER_MOD => {
                cx.iteration.cost_ps += switch.costs.modification_ps;
                let gone = switch
                    .tables
                    .meter_mod(bytes, cx.iteration.began.as_nanos())?;
                self.tell_removed(cx, now, &gone);
                return Ok(());
            }
            message13::PORT_MOD => return port_mod(cx.state, bytes),
            message13::TABLE_MOD => {
                let known = bytes[8] < TABLES || bytes[8] == ALL_TABLES;
                return match (known, be32(bytes, 12)) {
                    (false, _) => Err(error::BAD_TABLE_MOD),
                    (true, 0) => Ok(()),
                    (true, _) => Err(error::BAD_TABLE_CONFIG),
                };
            }
            message13::MULTIPART_REQUEST => return self.multipart(cx, bytes),
            _ => return Err(error::BAD_TYPE),
        };
        cx.send(MemoryClass::Exact, reply);
        Ok(())
    }

    /// Changes the role. Returns the new role and generation.
    fn change_role(&mut self, bytes: &[u8]) -> Result<(u32, u64), ErrorCode> {
        let (asked, generation) = (be32(bytes, 8), be64(bytes, 16));
        match asked {
            role::NO_CHANGE => {}
            role::EQUAL => self.session.role = asked,
            role::MASTER | role::SLAVE => {
                let is_stale = |latest: u64| generation.wrapping_sub(latest) >> 63 == 1;
                if self.role_generation.is_some_and(is_stale) {
                    return Err(error::STALE_ROLE);
                }
                self.role_generation = Some(generation);
                self.session.role = asked;
            }
            _ => return Err(error::BAD_ROLE),
        }
        let generation = self.role_generation.unwrap_or(u64::MAX);
        Ok((self.session.role, generation))
    }

    fn packet_out(&mut self, cx: &mut AgentContext, bytes: &[u8]) -> Result<(), ErrorCode> {
        let in_port = be32(bytes, 12);
        let data_at = PACKET_OUT_13_BYTES + usize::from(be16(bytes, 16));
        let (Some(list), Some(data)) = (
            bytes.get(PACKET_OUT_13_BYTES..data_at),
            bytes.get(data_at..),
        ) else {
            return Err(error::BAD_LENGTH);
        };
        cx.iteration.cost_ps += cx.state.costs.control().packet_out_ps;
        cx.charge_packet_out(data);
        if be32(bytes, 8) != u32::MAX {
            return Err(error::BUFFER_UNKNOWN);
        }
        if in_port != CONTROLLER && cx.state.openflow_port(in_port).is_none() {
            return Err(error::BAD_REQUEST_PORT);
        }
        let (ports, now) = (port_sets(cx.state), cx.iteration.began);
        let priced = self
            .switch
            .packet_out(list, data, in_port, ports, now, &cx.state.costs)?;
        cx.iteration.cost_ps += priced.cost_ps;
        let at = cx.iteration.reached();
        self.carry_out(cx, at, priced.run);
        Ok(())
    }

    fn multipart(&self, cx: &mut AgentContext, bytes: &[u8]) -> Result<(), ErrorCode> {
        let up_for = cx
            .iteration
            .began
            .saturating_since(cx.state.time.powered_up);
        let mut ports = SpecPorts {
            state: cx.state,
            out: cx.iteration.out,
        };
        let answer = self
            .switch
            .multipart(bytes, cx.iteration.began, up_for, &mut ports)?;
        cx.iteration.cost_ps += answer.cost_ps;
        let last = answer.parts.len() - 1;
        for (index, part) in answer.parts.iter().enumerate() {
            let reply = cx
                .state
                .reply(message13::MULTIPART_REPLY, be32(bytes, 4).to_be_bytes())
                .u16(be16(bytes, 8))
                .u16(u16::from(index < last)) // more parts follow
                .zeros(4)
                .bytes(part);
            cx.send(MemoryClass::Roomy, reply);
        }
        Ok(())
    }

    fn tell_removed(&self, cx: &mut AgentContext, at: Instant, gone: &[RemovedEntry]) {
        for removed in gone {
            if removed.wants_flow_removed()
                && self
                    .session
                    .wants(AsyncMessage::FlowRemoved, removed.reason())
            {
                let message = cx
                    .state
                    .reply(message::FLOW_REMOVED, [0; 4])
                    .bytes(&removed.flow_removed(at.as_nanos()));
                cx.iteration.cost_ps += cx.state.costs.control().send_ps;
                cx.state
                    .session
                    .write(at, MemoryClass::Exact, message.finish(), cx.iteration.out);
            }
        }
    }

    fn carry_out(&self, cx: &mut AgentContext, at: Instant, run: SpecRun) {
        if run.effects.is_empty() {
            cx.iteration.out.counters.unsent(run.missed);
        }
        for effect in run.effects {
            match effect {
                SpecEffect::Output { ports, frame } => {
                    cx.iteration.out.send(at, ports.into(), frame);
                }
                SpecEffect::PacketIn {
                    reason,
                    in_port,
                    body,
                } => {
                    // The port's flag is about misses; an action still sends (7.2.1).
                    let is_silent = reason == PacketInReason::NoMatch
                        && cx.state.openflow_port(in_port).is_some_and(|port| {
                            cx.state.ports.config[port.index()] & port_config::NO_PACKET_IN != 0
                        });
                    let is_wanted = self.session.wants(AsyncMessage::PacketIn, reason as u8);
                    if is_silent || !is_wanted || !cx.state.takes_packet_ins(VERSION_1_3) {
                        continue;
                    }
                    let message = cx.state.reply(message::PACKET_IN, [0; 4]).bytes(&body);
                    cx.packet_in(at, message);
                }
            }
        }
    }
}

impl Dataplane for Spec13 {
    fn message(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        let bytes = &bytes[..length];
        if let Err(refusal) = self.handle(cx, bytes) {
            cx.refuse(bytes, refusal);
        }
    }

    fn frame(
        &mut self,
        cx: &mut AgentContext,
        data: Vec<u8>,
        port: PortNumber,
    ) -> (Duration, Option<CachedAction>) {
        let length = length_with_fcs(data.len());
        let (ports, now) = (port_sets(cx.state), cx.iteration.began);
        let priced = self
            .switch
            .process(data, port.get().into(), ports, now, &cx.state.costs);
        let PricedRun {
            run,
            cost_ps,
            examined,
        } = priced;
        let time = cx.state.costs.frame(length, cost_ps);
        let cached = run.only_sent().and_then(|(matched, ports)| {
            CachedAction::new(
                HitCounting::Immediate,
                matched,
                examined,
                ports.into(),
                time,
            )
        });
        let FrameTime { work, busy } = time;
        cx.iteration.out.counters.searches += 1;
        cx.iteration.out.counters.entries_examined += examined;
        self.carry_out(cx, now + work, run);
        (busy, cached)
    }

    fn record_match(&mut self, time: &Timekeeping, matched: MatchedEntries, bytes: usize) {
        let now_ns = time.iteration_began.as_nanos();
        self.switch.tables.record_match(matched, bytes, now_ns);
    }

    fn expire(&mut self, cx: &mut AgentContext) {
        let gone = self.switch.tables.expire(cx.iteration.began.as_nanos());
        if cx.state.version == VERSION_1_3 && cx.state.is_established() {
            let at = cx.iteration.reached();
            self.tell_removed(cx, at, &gone);
            cx.state.session.transmit(at, cx.iteration.out);
        }
    }

    fn expires_each_tick(&self, _state: &AgentState) -> bool {
        true
    }

    fn dump(&self) -> Dump {
        Dump {
            v1_3: self.switch.values(),
            ..Dump::default()
        }
    }

    fn count(&self) -> i32 {
        self.switch.tables.count() as i32
    }

    fn clear(&mut self) {
        self.switch.tables.clear();
    }

    fn port_status(&mut self, state: &mut AgentState, port: PortNumber) -> Option<MessageBuilder> {
        const MODIFY: u8 = 2;
        let is_wanted = self.session.wants(AsyncMessage::PortStatus, MODIFY);
        is_wanted.then(|| {
            state
                .reply(message::PORT_STATUS, [0; 4])
                .u8(MODIFY)
                .zeros(7)
                .bytes(&port_description(state, port).bytes())
        })
    }

    fn predicted_cause(&self, _state: &AgentState, _bytes: &[u8], _length: usize) -> Option<Cause> {
        None
    }

    fn version_agreed(&mut self) {
        self.session = Session13::new();
        self.switch_config = FIRST_SWITCH_CONFIG;
    }
}

fn port_sets(state: &AgentState) -> PortSets {
    PortSets {
        all: state.config.openflow_ports.into(),
        forwarding: state
            .ports
            .without(
                state.config.openflow_ports,
                port_config::DOWN | port_config::NO_FORWARD,
            )
            .into(),
        live: state
            .ports
            .without(state.ports.link_up, port_config::DOWN)
            .into(),
    }
}

fn port_mod(state: &mut AgentState, bytes: &[u8]) -> Result<(), ErrorCode> {
    let port = state.openflow_port(be32(bytes, 8)).ok_or(error::BAD_PORT)?;
    if bytes[16..22] != state.config.port_address(port) {
        return Err(error::BAD_PORT_ADDRESS);
    }
    let (config, mask) = (be32(bytes, 24), be32(bytes, 28));
    if mask & !port_config::ALL_OF_13 != 0 {
        return Err(error::BAD_PORT_CONFIG);
    }
    state.ports.configure(port, config, mask);
    Ok(())
}

fn port_description(state: &AgentState, port: PortNumber) -> PortDescription {
    PortDescription {
        number: port.get(),
        address: state.config.port_address(port),
        up: state.ports.link_up.contains(port),
        config: state.ports.config[port.index()],
        speed_kbps: SPEED_KBPS,
    }
}

/// The board's ports, for multipart replies.
struct SpecPorts<'a> {
    state: &'a AgentState,
    out: &'a Outbox,
}

impl Surroundings for SpecPorts<'_> {
    fn port_descriptions(&mut self) -> Vec<PortDescription> {
        let ports = self.state.config.openflow_ports.iter();
        ports
            .map(|port| port_description(self.state, port))
            .collect()
    }

    fn port_counters(&self) -> Vec<PortCounters> {
        let ports = self.state.config.openflow_ports.iter();
        ports
            .map(|port| self.state.port_counters(port, false, self.out))
            .collect()
    }
}
