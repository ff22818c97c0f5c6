//! OpenFlow 1.3.4 in the agent of a board with `quirks = "spec"`: messages, frames and notices. What the tables do is
//! [`crate::openflow13::spec`]'s; framing and HELLO are those of `spec`.

use super::agent::Agent;
use super::config::FIRST_SWITCH_CONFIG;
use super::flow_cache::{CachedAction, FlowKey, TableKind};
use super::session13::{role, AsyncMessage, Session13};
use super::spec::port_config;
use crate::buffers::length_with_fcs;
use crate::cost::FrameTime;
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::openflow13::spec::{PricedRun, RemovedEntry};
use crate::openflow13::{Flow13, PortCounters, PortDescription, Surroundings};
use crate::outbox::Outbox;
use crate::port::{PortMask, PortNumber};
use crate::time::{Duration, Instant};
use of_switch::v1_3::{PacketInReason, SpecEffect, SpecRun};
use of_switch::PortSets;
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

impl Agent {
    /// Both sides have agreed on a version: entries of the other one go.
    pub(super) fn use_tables_of(&mut self, version: u8) {
        self.tables.agree_on(version);
        self.session_config.session13 = Session13::new();
        self.session_config.switch_config = FIRST_SWITCH_CONFIG;
    }

    fn ports13(&self) -> PortSets {
        PortSets {
            all: self.config.openflow_ports.into(),
            forwarding: self
                .ports
                .without(
                    self.config.openflow_ports,
                    port_config::DOWN | port_config::NO_FORWARD,
                )
                .into(),
            live: self
                .ports
                .without(self.ports.link_up, port_config::DOWN)
                .into(),
        }
    }

    /// Handles a whole message of 1.3.
    pub(super) fn spec_message_13(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        if let Err(refusal) = self.handle_spec13(bytes, iteration) {
            self.refuse(bytes, refusal, iteration);
        }
    }

    #[allow(clippy::too_many_lines)] // a few lines for each message
    fn handle_spec13(
        &mut self,
        bytes: &[u8],
        iteration: &mut LoopIteration,
    ) -> Result<(), ErrorCode> {
        let ports = self.ports13();
        let Some(switch) = &mut self.tables.spec13 else {
            return Ok(());
        };
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
        if changes && self.session_config.session13.role == role::SLAVE {
            return Err(error::IS_SLAVE);
        }
        let reply = match kind {
            message::ECHO_REQUEST => {
                iteration.cost_ps += self.costs.control().echo_ps;
                // Before both sides have agreed the request's version is all that is known.
                MessageBuilder::new(bytes[0], message::ECHO_REPLY, xid)
                    .bytes(&bytes[HEADER_BYTES..])
            }
            message::ERROR | message::ECHO_REPLY => return Ok(()),
            _ if self.version == 0 => return Ok(()),
            message::VENDOR => return Err(error::BAD_EXPERIMENTER),
            message::FEATURES_REQUEST => {
                iteration.cost_ps += switch.costs.features_ps;
                self.connection.features_requested();
                self.reply(message::FEATURES_REPLY, xid)
                    .u16(0)
                    .bytes(&self.config.mac.0)
                    .u32(0) // buffers
                    .u8(TABLES)
                    .zeros(3)
                    .u32(CAPABILITIES)
                    .u32(0)
            }
            message::GET_CONFIG_REQUEST => {
                iteration.cost_ps += self.costs.control().get_config_ps;
                self.reply(message::GET_CONFIG_REPLY, xid)
                    .bytes(&self.session_config.switch_config)
            }
            message::SET_CONFIG => {
                iteration.cost_ps += self.costs.control().set_config_ps;
                if be16(bytes, 8) & FRAGMENTS != 0 {
                    return Err(error::BAD_CONFIG_FLAGS);
                }
                self.session_config.switch_config = [bytes[8], bytes[9], bytes[10], bytes[11]];
                return Ok(());
            }
            message13::BARRIER_REQUEST => {
                iteration.cost_ps += self.costs.control().barrier_ps;
                self.reply(message13::BARRIER_REPLY, xid)
            }
            message13::ROLE_REQUEST => {
                iteration.cost_ps += switch.costs.role_ps;
                let (role, generation) = self.change_role(bytes)?;
                self.reply(message13::ROLE_REPLY, xid)
                    .u32(role)
                    .u32(0)
                    .u64(generation)
            }
            message13::ASYNC_REQUEST => {
                let reply = self.reply(message13::ASYNC_REPLY, xid);
                let wanted = self.session_config.session13.wanted;
                wanted.iter().fold(reply, |reply, mask| reply.u32(*mask))
            }
            message13::SET_ASYNC => {
                self.session_config.session13.wanted =
                    core::array::from_fn(|i| be32(bytes, 8 + 4 * i));
                return Ok(());
            }
            message13::QUEUE_REQUEST => {
                // No port has queues.
                let port = be32(bytes, 8);
                if port != ANY_PORT && self.openflow_port(port).is_none() {
                    return Err(error::BAD_QUEUE_PORT);
                }
                self.reply(message13::QUEUE_REPLY, xid).u32(port).zeros(4)
            }
            message::PACKET_OUT => return self.packet_out_spec13(bytes, iteration),
            message::FLOW_MOD => {
                let (done, cost_ps) = switch.flow_mod(bytes, ports, iteration.began);
                iteration.cost_ps += cost_ps;
                let gone = done?;
                self.tell_removed(iteration.began, &gone, iteration);
                return Ok(());
            }
            message13::GROUP_MOD => {
                iteration.cost_ps += switch.costs.modification_ps;
                let gone = switch
                    .tables
                    .group_mod(bytes, ports, iteration.began.as_nanos())?;
                self.tell_removed(iteration.began, &gone, iteration);
                return Ok(());
            }
            message13::METER_MOD => {
                iteration.cost_ps += switch.costs.modification_ps;
                let gone = switch.tables.meter_mod(bytes, iteration.began.as_nanos())?;
                self.tell_removed(iteration.began, &gone, iteration);
                return Ok(());
            }
            message13::PORT_MOD => return self.port_mod_13(bytes),
            message13::TABLE_MOD => {
                let known = bytes[8] < TABLES || bytes[8] == ALL_TABLES;
                return match (known, be32(bytes, 12)) {
                    (false, _) => Err(error::BAD_TABLE_MOD),
                    (true, 0) => Ok(()),
                    (true, _) => Err(error::BAD_TABLE_CONFIG),
                };
            }
            message13::MULTIPART_REQUEST => return self.multipart_spec13(bytes, iteration),
            _ => return Err(error::BAD_TYPE),
        };
        self.send(MemoryClass::Exact, reply, iteration);
        Ok(())
    }

    fn openflow_port(&self, number: u32) -> Option<PortNumber> {
        let port = u8::try_from(number).ok().and_then(PortNumber::new)?;
        self.config.openflow_ports.contains(port).then_some(port)
    }

    /// Changes the role. Returns the new role and generation.
    fn change_role(&mut self, bytes: &[u8]) -> Result<(u32, u64), ErrorCode> {
        let (asked, generation) = (be32(bytes, 8), be64(bytes, 16));
        match asked {
            role::NO_CHANGE => {}
            role::EQUAL => self.session_config.session13.role = asked,
            role::MASTER | role::SLAVE => {
                let is_stale = |latest: u64| generation.wrapping_sub(latest) >> 63 == 1;
                if self.session_config.role_generation.is_some_and(is_stale) {
                    return Err(error::STALE_ROLE);
                }
                self.session_config.role_generation = Some(generation);
                self.session_config.session13.role = asked;
            }
            _ => return Err(error::BAD_ROLE),
        }
        let generation = self.session_config.role_generation.unwrap_or(u64::MAX);
        Ok((self.session_config.session13.role, generation))
    }

    fn port_mod_13(&mut self, bytes: &[u8]) -> Result<(), ErrorCode> {
        let port = self.openflow_port(be32(bytes, 8)).ok_or(error::BAD_PORT)?;
        if bytes[16..22] != self.config.port_address(port) {
            return Err(error::BAD_PORT_ADDRESS);
        }
        let (config, mask) = (be32(bytes, 24), be32(bytes, 28));
        if mask & !port_config::ALL_OF_13 != 0 {
            return Err(error::BAD_PORT_CONFIG);
        }
        self.ports.configure(port, config, mask);
        Ok(())
    }

    fn packet_out_spec13(
        &mut self,
        bytes: &[u8],
        iteration: &mut LoopIteration,
    ) -> Result<(), ErrorCode> {
        let in_port = be32(bytes, 12);
        let data_at = PACKET_OUT_13_BYTES + usize::from(be16(bytes, 16));
        let (Some(list), Some(data)) = (
            bytes.get(PACKET_OUT_13_BYTES..data_at),
            bytes.get(data_at..),
        ) else {
            return Err(error::BAD_LENGTH);
        };
        let costs = self.costs.control();
        iteration.cost_ps +=
            costs.packet_out_ps + costs.packet_out_per_byte_ps * (data.len() as i64 - 60).max(0);
        if be32(bytes, 8) != u32::MAX {
            return Err(error::BUFFER_UNKNOWN);
        }
        if in_port != CONTROLLER && self.openflow_port(in_port).is_none() {
            return Err(error::BAD_REQUEST_PORT);
        }
        let ports = self.ports13();
        let Some(switch) = &mut self.tables.spec13 else {
            return Ok(());
        };
        let priced = switch.packet_out(list, data, in_port, ports, iteration.began, &self.costs)?;
        iteration.cost_ps += priced.cost_ps;
        let at = iteration.reached();
        self.carry_out_spec13(at, priced.run, iteration);
        Ok(())
    }

    fn multipart_spec13(
        &mut self,
        bytes: &[u8],
        iteration: &mut LoopIteration,
    ) -> Result<(), ErrorCode> {
        let Some(switch) = &self.tables.spec13 else {
            return Ok(());
        };
        let up_for = iteration.began.saturating_since(self.time.powered_up);
        let mut ports = SpecPorts {
            agent: self,
            out: iteration.out,
        };
        let answer = switch.multipart(bytes, iteration.began, up_for, &mut ports)?;
        iteration.cost_ps += answer.cost_ps;
        let last = answer.parts.len() - 1;
        for (index, part) in answer.parts.iter().enumerate() {
            let reply = self
                .reply(message13::MULTIPART_REPLY, be32(bytes, 4).to_be_bytes())
                .u16(be16(bytes, 8))
                .u16(u16::from(index < last)) // more parts follow
                .zeros(4)
                .bytes(part);
            self.send(MemoryClass::Roomy, reply, iteration);
        }
        Ok(())
    }

    fn tell_removed(&mut self, at: Instant, gone: &[RemovedEntry], iteration: &mut LoopIteration) {
        for removed in gone {
            if removed.wants_flow_removed()
                && self
                    .session_config
                    .session13
                    .wants(AsyncMessage::FlowRemoved, removed.reason())
            {
                let message = self
                    .reply(message::FLOW_REMOVED, [0; 4])
                    .bytes(&removed.flow_removed(at.as_nanos()));
                iteration.cost_ps += self.costs.control().send_ps;
                self.session
                    .write(at, MemoryClass::Exact, message.finish(), iteration.out);
            }
        }
    }

    /// Removes what has expired, and tells of it.
    pub(super) fn expire_spec13(&mut self, iteration: &mut LoopIteration) {
        let now_ns = iteration.began.as_nanos();
        let switch = self.tables.spec13.as_mut();
        let gone = switch.map_or_else(Vec::new, |switch| switch.tables.expire(now_ns));
        if self.version == VERSION_1_3 && self.is_established() {
            let at = iteration.reached();
            self.tell_removed(at, &gone, iteration);
            self.session.transmit(at, iteration.out);
        }
    }

    /// `PORT_STATUS` of a port whose link has changed, if the controller wants to know.
    pub(super) fn port_status_spec13(&self, port: PortNumber) -> Option<MessageBuilder> {
        const MODIFY: u8 = 2;
        self.session_config
            .session13
            .wants(AsyncMessage::PortStatus, MODIFY)
            .then(|| {
                self.reply(message::PORT_STATUS, [0; 4])
                    .u8(MODIFY)
                    .zeros(7)
                    .bytes(&self.port_description_13(port).bytes())
            })
    }

    fn port_description_13(&self, port: PortNumber) -> PortDescription {
        PortDescription {
            number: port.get(),
            address: self.config.port_address(port),
            up: self.ports.link_up.contains(port),
            config: self.ports.config[port.index()],
            speed_kbps: SPEED_KBPS,
        }
    }

    /// Handles a frame from a port. Returns how long the CPU is busy with it.
    pub(super) fn frame_spec13(
        &mut self,
        data: Vec<u8>,
        flow_key: Option<FlowKey>,
        port: PortNumber,
        iteration: &mut LoopIteration,
    ) -> Duration {
        let length = length_with_fcs(data.len());
        let ports = self.ports13();
        let Some(switch) = &mut self.tables.spec13 else {
            return Duration::ZERO;
        };
        let PricedRun {
            run,
            cost_ps,
            examined,
        } = switch.process(data, port.get().into(), ports, iteration.began, &self.costs);
        let time = self.costs.frame(length, cost_ps);
        let action = run.only_sent().and_then(|(matched, ports)| {
            CachedAction::new(TableKind::Spec13, matched, examined, ports.into(), time)
        });
        self.cache_action(flow_key, action, iteration);
        let FrameTime { work, busy } = time;
        iteration.out.counters.searches += 1;
        iteration.out.counters.entries_examined += examined;
        self.carry_out_spec13(iteration.began + work, run, iteration);
        busy
    }

    fn carry_out_spec13(&mut self, at: Instant, run: SpecRun, iteration: &mut LoopIteration) {
        if run.effects.is_empty() {
            let counters = &mut iteration.out.counters;
            let counted = if run.missed {
                &mut counters.missed
            } else {
                &mut counters.dropped_flow
            };
            *counted += 1;
        }
        for effect in run.effects {
            match effect {
                SpecEffect::Output { ports, frame } => {
                    iteration.out.send(at, ports.into(), frame);
                }
                SpecEffect::PacketIn {
                    reason,
                    in_port,
                    body,
                } => {
                    // The port's flag is about misses; an action still sends (7.2.1).
                    let is_silent = reason == PacketInReason::NoMatch
                        && self.openflow_port(in_port).is_some_and(|port| {
                            self.ports.config[port.index()] & port_config::NO_PACKET_IN != 0
                        });
                    let is_open = self.is_established() || self.session.is_half_open();
                    if is_silent
                        || !is_open
                        || self.version != VERSION_1_3
                        || !self
                            .session_config
                            .session13
                            .wants(AsyncMessage::PacketIn, reason as u8)
                    {
                        continue;
                    }
                    let message = self.reply(message::PACKET_IN, [0; 4]).bytes(&body);
                    self.session
                        .write(at, MemoryClass::Exact, message.finish(), iteration.out);
                    if !iteration.in_segment {
                        self.session.transmit(at, iteration.out);
                    }
                }
            }
        }
    }

    /// Returns the entries of the correct switch as values.
    pub(super) fn flows_spec13(&self) -> Option<Vec<Flow13>> {
        Some(self.tables.spec13.as_ref()?.values())
    }
}

/// The board's ports, for multipart replies.
struct SpecPorts<'a> {
    agent: &'a Agent,
    out: &'a Outbox,
}

impl Surroundings for SpecPorts<'_> {
    fn description(&self) -> Vec<u8> {
        super::version13::description_body()
    }

    fn port_descriptions(&mut self) -> Vec<PortDescription> {
        let agent = self.agent;
        let ports = agent.config.openflow_ports.iter();
        ports.map(|port| agent.port_description_13(port)).collect()
    }

    fn port_counters(&self) -> Vec<PortCounters> {
        let agent = self.agent;
        let ports: PortMask = agent.config.openflow_ports;
        let counters = |port: PortNumber| {
            let index = port.index();
            let unread = self.out.hardware[index];
            let quirks = agent.config.quirks;
            let totals = agent.ports.counters(port, false, unread, quirks);
            PortCounters {
                number: port.get(),
                received: agent.ports.received[index],
                sent: self.out.transmitted[index],
                received_bytes: totals.received_bytes,
                sent_bytes: totals.sent_bytes,
                received_dropped: totals.received_dropped,
            }
        };
        ports.iter().map(counters).collect()
    }
}
