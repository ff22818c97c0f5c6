//! The firmware's OpenFlow 1.3: messages, frames and notices. Tables, groups, meters and multipart replies are
//! [`crate::openflow13`]'s.

use super::clock::Timekeeping;
use super::context::AgentContext;
use super::dataplane::{Dataplane, Dump};
use super::diagnosis::{config_cause, only_output, PacketOutLayout};
use super::flow_cache::{CachedAction, HitCounting};
use super::state::AgentState;
use super::UNINITIALISED;
use crate::block_pool::BlockPool;
use crate::buffers::length_with_fcs;
use crate::cost::FrameTime;
use crate::event::{Cause, Event};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::openflow13::{
    tail_bit, Answer, EffectKind, FlowMod13, PipelineRun, PortCounters, PortDescription,
    Surroundings, Switch13,
};
use crate::outbox::Outbox;
use crate::port::{PortMask, PortNumber};
use crate::time::{Duration, Instant};
use of_switch::MatchedEntries;
use openflow::bytes::{be16, be32};
use openflow::v1_3::port;
use openflow::wire::{MessageBuilder, PACKET_OUT_13_BYTES, VERSION_1_3};
use openflow::{message, message13, ErrorCode};

/// Length of `ROLE_REPLY`, whatever its header says (quirk 96).
const ROLE_BYTES: usize = 24;
/// Where the role and the generation stand.
const ROLE_AT: usize = 8;
/// Value of `miss_send_len` in `GET_CONFIG_REPLY` (quirk 95).
const MISS_SEND_BYTES: u16 = 256;
/// Ports that FLOOD of a `PACKET_OUT` means, whatever the configuration (quirk 183).
const PACKET_OUT_FLOOD: u8 = 0b0111;
/// Room that the send buffer must have before a multipart answer goes on.
const NEXT_PART_BYTES: usize = 2_048;

const PACKET_OUT_13: PacketOutLayout = PacketOutLayout {
    actions_at: PACKET_OUT_13_BYTES,
    actions_bytes_at: 16,
    output_bytes: 16,
};

impl Dataplane for Switch13 {
    fn message(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        let clock = cx.state.time.clock();
        let xid = be32(bytes, 4).to_be_bytes();
        match bytes[1] {
            message::ECHO_REQUEST => cx.echo(bytes),
            message::FEATURES_REQUEST => {
                cx.iteration.cost_ps += self.costs().features_ps;
                cx.state.connection.features_requested();
                let reply = cx
                    .state
                    .reply(message::FEATURES_REPLY, xid)
                    .u16(0)
                    .bytes(&cx.state.config.mac.0)
                    .u32(0) // buffers
                    .u8(10) // tables
                    .u8(0) // auxiliary connection
                    .bytes(&[UNINITIALISED; 2])
                    .u32(0x0000_000f) // flow, table, port and group statistics (quirk 94)
                    .bytes(&[UNINITIALISED; 4]);
                // No room for another reply behind it (quirk 90).
                cx.send(MemoryClass::Exact, reply);
            }
            message::GET_CONFIG_REQUEST => {
                cx.iteration.cost_ps += cx.state.costs.control().get_config_ps;
                let reply = cx.state.reply(message::GET_CONFIG_REPLY, xid);
                cx.send(MemoryClass::Exact, reply.u16(0).u16(MISS_SEND_BYTES));
            }
            message::SET_CONFIG => cx.iteration.cost_ps += cx.state.costs.control().set_config_ps,
            message13::BARRIER_REQUEST => {
                cx.iteration.cost_ps += cx.state.costs.control().barrier_ps;
                let reply = cx.state.reply(message13::BARRIER_REPLY, xid);
                cx.send(MemoryClass::Roomy, reply);
            }
            message13::ROLE_REQUEST => {
                cx.iteration.cost_ps += self.costs().role_ps;
                let mut reply = bytes[..bytes.len().min(ROLE_BYTES)].to_vec();
                reply.resize(ROLE_BYTES, 0);
                reply[1] = message13::ROLE_REPLY;
                reply[ROLE_AT..ROLE_AT + 4].copy_from_slice(&2_u32.to_be_bytes()); // master
                reply[ROLE_BYTES - 8..].fill(0);
                cx.send(MemoryClass::Exact, reply);
            }
            message::PACKET_OUT => self.packet_out(cx, bytes, length),
            message::FLOW_MOD => self.carry_out_flow_mod(cx, bytes, length),
            message13::GROUP_MOD => {
                cx.iteration.cost_ps += self.costs().modification_ps;
                if let Err(error) = self.group_mod(bytes, length, clock.now_s) {
                    self.refuse(cx, bytes, length, error);
                }
            }
            message13::METER_MOD => {
                cx.iteration.cost_ps += self.costs().modification_ps;
                if let Err(error) = self.meter_mod(bytes, length, clock.now_ms) {
                    self.refuse(cx, bytes, length, error);
                }
            }
            message13::MULTIPART_REQUEST => self.answer_multipart(cx, bytes, length),
            message::ERROR | message::ECHO_REPLY => {}
            // Quirk 93.
            message_type => cx.report_ignored(message_type, None),
        }
    }

    fn frame(
        &mut self,
        cx: &mut AgentContext,
        mut data: Vec<u8>,
        port: PortNumber,
    ) -> (Duration, Option<CachedAction>) {
        let length = length_with_fcs(data.len());
        let flooded = cx.state.config.flooded.bits();
        let clock = cx.state.time.clock();
        let run = self.process(
            &mut data,
            port.get().into(),
            flooded,
            clock,
            &cx.state.costs,
        );
        let time = cx.state.costs.frame(length, run.cost_ps);
        let cached = run.only_sent().and_then(|(matched, ports)| {
            CachedAction::new(HitCounting::Immediate, matched, run.examined, ports, time)
        });
        let FrameTime { work, busy } = time;
        cx.iteration.out.counters.searches += 1;
        cx.iteration.out.counters.entries_examined += run.examined;
        let at = cx.iteration.began + work;
        self.carry_out(cx, at, run, data);
        (busy, cached)
    }

    fn record_match(&mut self, time: &Timekeeping, matched: MatchedEntries, bytes: usize) {
        self.record_entries(matched, bytes, time.clock().now_s);
    }

    /// At most one entry expires.
    fn expire(&mut self, cx: &mut AgentContext) {
        let message = self.expire_one(cx.state.time.clock().now_s);
        if let Some(message) = message.filter(|_| cx.state.is_established()) {
            cx.send_at_once(message);
        }
    }

    fn expires_each_tick(&self, _state: &AgentState) -> bool {
        false
    }

    fn dump(&self) -> Dump {
        Dump {
            v1_3: self.flows(),
            ..Dump::default()
        }
    }

    fn count(&self) -> i32 {
        self.entries() as i32
    }

    fn clear(&mut self) {
        self.erase();
    }

    fn port_status(&mut self, state: &mut AgentState, port: PortNumber) -> Option<MessageBuilder> {
        let description = PortDescription {
            number: port.get(),
            address: state.ports.made_up_address(),
            up: state.ports.link_seen.contains(port),
            config: 0,
            speed_kbps: 0,
        };
        let status = state
            .reply(message::PORT_STATUS, [0; 4])
            .u8(2)
            .bytes(&[UNINITIALISED; 7]);
        Some(status.bytes(&description.bytes()))
    }

    fn predicted_cause(&self, state: &AgentState, bytes: &[u8], length: usize) -> Option<Cause> {
        match bytes[1] {
            message::PACKET_OUT => packet_out_cause(state, bytes, length),
            message::SET_CONFIG => config_cause(bytes, length, 256),
            message13::ROLE_REQUEST => {
                (length != 24 || be32(bytes, 8) != 2).then_some(Cause::RoleIgnored)
            }
            _ => self.message_cause(bytes, length, state.config.openflow_ports),
        }
    }

    fn pool(&self) -> Option<&BlockPool> {
        Some(self.block_pool())
    }

    fn take_over(&mut self, pool: &BlockPool, _entries: i32) {
        self.replace_pool(pool);
    }

    /// Multipart replies that were collected and not sent are lost.
    fn begin_segment(&mut self) {
        self.forget_collected();
    }

    /// Multipart replies leave unless the segment's last message was one that does not care for them (quirk 86). All other
    /// replies are in front of them (quirk 87).
    fn send_collected(&mut self, cx: &mut AgentContext, last_type: u8) {
        if !self.has_collected() || matches!(last_type, message::HELLO | message::ECHO_REQUEST) {
            return;
        }
        let replies = self.take_collected();
        cx.send(MemoryClass::Roomy, replies);
        while cx.state.session.is_lossless() && self.has_more() && !cx.state.halted {
            cx.iteration.cost_ps += self.send_part(cx);
        }
    }

    fn report_uncollected(&self, iteration: &mut LoopIteration) {
        if self.has_collected() {
            iteration.event(Event::MultipartLost);
        }
    }

    fn continue_statistics(&mut self, cx: &mut AgentContext) -> i64 {
        if !self.has_more() || cx.state.session.free_bytes() < NEXT_PART_BYTES {
            return 0;
        }
        self.send_part(cx)
    }
}

impl Switch13 {
    fn refuse(&self, cx: &mut AgentContext, bytes: &[u8], length: usize, error: ErrorCode) {
        cx.iteration.cost_ps += self.costs().refused_ps;
        cx.send_error(cx.state.version, bytes, length.min(bytes.len()), error);
    }

    /// Handles a `FLOW_MOD`; each notice takes a buffer of its own (quirk 91).
    fn carry_out_flow_mod(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        let received = bytes.len() - cx.state.rx.stale_bytes;
        let message = FlowMod13::new(bytes, length, received);
        let outcome = self.flow_mod(message, cx.state.time.clock().now_s);
        cx.iteration.cost_ps += outcome.cost_ps;
        for message in outcome.flow_removed {
            cx.notify(message);
        }
        if let Some(command) = outcome.ignored {
            cx.iteration.event(Event::FlowModIgnored { command });
        }
        if let Some(error) = outcome.refused {
            self.refuse(cx, bytes, length, error);
        }
    }

    fn answer_multipart(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        let clock = cx.state.time.clock();
        let mut board = BoardPorts {
            state: cx.state,
            out: cx.iteration.out,
        };
        let (answer, cost_ps) = self.multipart(bytes, clock, &mut board);
        cx.iteration.cost_ps += cost_ps;
        match answer {
            Answer::Collected => {}
            Answer::Refused(error) => self.refuse(cx, bytes, length, error),
            Answer::RefusedAbroad(error) => {
                cx.iteration.cost_ps += self.costs().refused_ps;
                let reply = self.error_from_buffer(error);
                cx.report_refusal(bytes, error);
                cx.send(MemoryClass::Exact, reply);
            }
            Answer::Ignored(kind) => cx.iteration.event(Event::MultipartIgnored { kind }),
            Answer::Hangs(cause) => cx.hang(cx.iteration.began, cause),
        }
    }

    /// Queues the next part of an answer. Returns what that costs.
    fn send_part(&mut self, cx: &mut AgentContext) -> i64 {
        let now_s = cx.state.time.clock().now_s;
        let cost_ps = self.costs().multipart_ps + 15 * self.costs().flow_statistics_entry_ps;
        match self.next_part(cx.state.version, now_s) {
            Ok(Some(part)) => {
                cx.send(MemoryClass::Roomy, part);
            }
            Ok(None) => {}
            Err(cause) => cx.hang(cx.iteration.began, cause),
        }
        cost_ps
    }

    fn carry_out(&mut self, cx: &mut AgentContext, at: Instant, run: PipelineRun, data: Vec<u8>) {
        if run.effects.is_empty() {
            cx.iteration.out.counters.unsent(run.missed);
        }
        let mut last = Some(data);
        let mut rest = run.effects.into_iter();
        while let Some(effect) = rest.next() {
            let frame = match effect.frame {
                Some(frame) => frame,
                None if rest.len() == 0 => last.take().unwrap_or_default(),
                None => cx
                    .iteration
                    .out
                    .pool
                    .copy_unpadded(last.as_deref().unwrap_or_default()),
            };
            match effect.kind {
                EffectKind::Output(tag) => cx.iteration.out.send_tagged(at, tag, frame),
                EffectKind::PacketIn {
                    in_port,
                    table,
                    cookie,
                    max_bytes,
                } => {
                    let kept = frame.len().min(max_bytes.into());
                    if cx.state.takes_packet_ins(VERSION_1_3) {
                        if cx.iteration.in_segment && self.has_collected() {
                            cx.state.rx.replies_overwritten = true;
                        }
                        let message = self.packet_in(in_port, table, cookie, &frame[..kept]);
                        cx.packet_in(at, message);
                    }
                    cx.iteration.out.pool.recycle(frame);
                }
            }
        }
        if let Some(data) = last {
            cx.iteration.out.pool.recycle(data);
        }
        if let Some(cause) = run.hang {
            cx.hang(at, cause);
        }
    }

    /// Sends the frame of a `PACKET_OUT` by its first action, if that is an output (quirks 181 to 185).
    fn packet_out(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        let in_port = be32(bytes, 12);
        let data_at = PACKET_OUT_13_BYTES + usize::from(be16(bytes, 16));
        cx.iteration.cost_ps += cx.state.costs.control().packet_out_ps;
        let Some(data) = bytes.get(data_at..length) else {
            return; // the actions would reach beyond the message
        };
        cx.charge_packet_out(data);
        if be16(bytes, PACKET_OUT_13_BYTES) != 0 {
            return; // no output
        }
        let tag = match be32(bytes, PACKET_OUT_13_BYTES + 4) {
            port::TABLE => {
                let mut frame = cx.iteration.out.pool.copy_unpadded(data);
                let flooded = cx.state.config.flooded.bits();
                let clock = cx.state.time.clock();
                let run = self.process(&mut frame, in_port, flooded, clock, &cx.state.costs);
                cx.iteration.cost_ps += run.cost_ps;
                cx.state.rx.pushed_out.clone_from(&run.overrun);
                let at = cx.iteration.reached();
                return self.carry_out(cx, at, run, frame);
            }
            port::FLOOD => flooded_by_packet_out(in_port),
            port => tail_bit(port),
        };
        let at = cx.iteration.reached();
        let frame = cx.iteration.out.pool.copy(data);
        cx.iteration.out.send_tagged(at, tag, frame);
    }
}

fn packet_out_cause(state: &AgentState, bytes: &[u8], length: usize) -> Option<Cause> {
    let output = match only_output(bytes, length, &PACKET_OUT_13) {
        Ok(output) => output,
        Err(cause) => return Some(cause),
    };
    let in_port = be32(bytes, 12);
    let exists = |port| state.openflow_port(port).is_some();
    let sends = be32(output, 4);
    if !exists(in_port) && in_port != port::CONTROLLER || (1..=4).contains(&sends) && !exists(sends)
    {
        return Some(Cause::Unchecked);
    }
    let leaves = match sends {
        port::TABLE => true,
        port::FLOOD => {
            let meant = state.config.openflow_ports.bits() & !tail_bit(in_port);
            if flooded_by_packet_out(in_port) != meant {
                return Some(Cause::FloodElsewhere);
            }
            true
        }
        port if port == in_port && (1..=4).contains(&port) => return Some(Cause::ToIngress),
        port => (1..=4).contains(&port),
    };
    (!leaves).then_some(Cause::OutputNowhere)
}

/// The tail tag of a `PACKET_OUT` that is to flood.
const fn flooded_by_packet_out(in_port: u32) -> u8 {
    PACKET_OUT_FLOOD.wrapping_sub(tail_bit(in_port))
}

/// The board's ports, for multipart replies.
struct BoardPorts<'a> {
    state: &'a mut AgentState,
    out: &'a Outbox,
}

impl Surroundings for BoardPorts<'_> {
    /// Reads the links anew (quirk 98).
    fn port_descriptions(&mut self) -> Vec<PortDescription> {
        let ports = &mut self.state.ports;
        ports.link_seen = ports.link_up;
        let listed: Vec<_> = self.state.config.openflow_ports.iter().collect();
        listed
            .iter()
            .zip(PortMask::all().iter())
            .map(|(port, by_position)| PortDescription {
                number: port.get(),
                address: ports.made_up_address(),
                up: ports.link_seen.contains(by_position),
                config: 0,
                speed_kbps: 0,
            })
            .collect()
    }

    fn port_counters(&self) -> Vec<PortCounters> {
        let ports = self.state.config.flooded.iter();
        ports
            .map(|port| self.state.port_counters(port, true, self.out))
            .collect()
    }
}
