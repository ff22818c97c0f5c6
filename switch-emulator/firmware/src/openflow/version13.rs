//! OpenFlow 1.3 in the agent: messages, frames and notices. Tables, groups, meters and multipart replies are
//! [`crate::openflow13`]'s; session, framing, echoes, housekeeping and transmission are those of 1.0.

use super::agent::Agent;
use super::config::AgentConfig;
use super::flow_cache::{CachedAction, FlowKey, TableKind};
use super::ports::AgentPorts;
use super::UNINITIALISED;
use crate::buffers::length_with_fcs;
use crate::cost::FrameTime;
use crate::event::{Event, Hang};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::openflow13::{
    tail_bit, Answer, EffectKind, Flow13, FlowMod13, PipelineRun, PortCounters, PortDescription,
    Surroundings,
};
use crate::outbox::Outbox;
use crate::port::{PortMask, PortNumber};
use crate::time::{Duration, Instant};
use openflow::bytes::{be16, be32};
use openflow::v1_3::port;
use openflow::wire::{MessageBuilder, PACKET_OUT_13_BYTES, VERSION_1_3};
use openflow::{message, message13};

/// Length of `ROLE_REPLY`, whatever its header says (quirk 96).
const ROLE_BYTES: usize = 24;
/// Where the role and the generation stand.
const ROLE_AT: usize = 8;
/// Value of `miss_send_len` in `GET_CONFIG_REPLY` (quirk 95).
const MISS_SEND_BYTES: u16 = 256;
/// Bytes of an offending message that an error repeats.
const ERROR_DATA_BYTES: usize = 64;
/// Ports that FLOOD of a `PACKET_OUT` means, whatever the configuration (quirk 183).
const PACKET_OUT_FLOOD: u8 = 0b0111;
/// Room that the send buffer must have before a multipart answer goes on.
const NEXT_PART_BYTES: usize = 2_048;

impl Agent {
    /// Returns whether the session speaks OpenFlow 1.3.
    pub(super) const fn speaks_13(&self) -> bool {
        self.version == VERSION_1_3 && self.tables.know_13()
    }

    /// Handles a message of `length` bytes at the beginning of `bytes`, which go on behind it.
    pub(super) fn message_13(
        &mut self,
        bytes: &[u8],
        length: usize,
        iteration: &mut LoopIteration,
    ) {
        let clock = self.time.clock();
        let Some(switch) = &mut self.tables.switch13 else {
            return;
        };
        let xid = be32(bytes, 4).to_be_bytes();
        match bytes[1] {
            message::FEATURES_REQUEST => {
                iteration.cost_ps += switch.costs().features_ps;
                self.connection.features_requested();
                let reply = self
                    .reply(message::FEATURES_REPLY, xid)
                    .u16(0)
                    .bytes(&self.config.mac.0)
                    .u32(0) // buffers
                    .u8(10) // tables
                    .u8(0) // auxiliary connection
                    .bytes(&[UNINITIALISED; 2])
                    .u32(0x0000_000f) // flow, table, port and group statistics (quirk 94)
                    .bytes(&[UNINITIALISED; 4]);
                // No room for another reply behind it (quirk 90).
                self.send(MemoryClass::Exact, reply, iteration);
            }
            message::GET_CONFIG_REQUEST => {
                iteration.cost_ps += self.costs.control().get_config_ps;
                let reply = self.reply(message::GET_CONFIG_REPLY, xid);
                self.send(
                    MemoryClass::Exact,
                    reply.u16(0).u16(MISS_SEND_BYTES),
                    iteration,
                );
            }
            message::SET_CONFIG => iteration.cost_ps += self.costs.control().set_config_ps,
            message13::BARRIER_REQUEST => {
                iteration.cost_ps += self.costs.control().barrier_ps;
                let reply = self.reply(message13::BARRIER_REPLY, xid);
                self.send(MemoryClass::Roomy, reply, iteration);
            }
            message13::ROLE_REQUEST => {
                iteration.cost_ps += switch.costs().role_ps;
                let mut reply = bytes[..bytes.len().min(ROLE_BYTES)].to_vec();
                reply.resize(ROLE_BYTES, 0);
                reply[1] = message13::ROLE_REPLY;
                reply[ROLE_AT..ROLE_AT + 4].copy_from_slice(&2_u32.to_be_bytes()); // master
                reply[ROLE_BYTES - 8..].fill(0);
                self.session
                    .write(iteration.began, MemoryClass::Exact, reply, iteration.out);
            }
            message::PACKET_OUT => self.packet_out_13(bytes, length, iteration),
            message::FLOW_MOD => self.flow_mod_13(bytes, length, iteration),
            message13::GROUP_MOD => {
                iteration.cost_ps += switch.costs().modification_ps;
                if let Err(error) = switch.group_mod(bytes, length, clock.now_s) {
                    self.refuse_13(bytes, length, error, iteration);
                }
            }
            message13::METER_MOD => {
                iteration.cost_ps += switch.costs().modification_ps;
                if let Err(error) = switch.meter_mod(bytes, length, clock.now_ms) {
                    self.refuse_13(bytes, length, error, iteration);
                }
            }
            message13::MULTIPART_REQUEST => self.multipart_13(bytes, length, iteration),
            message::ERROR | message::ECHO_REPLY => {}
            // Quirk 93.
            message_type => iteration.out.event(
                iteration.began,
                Event::RequestIgnored {
                    version: self.version,
                    message_type,
                    statistics: None,
                },
            ),
        }
    }

    fn refuse_13(
        &mut self,
        bytes: &[u8],
        length: usize,
        (error_type, error_code): (u16, u16),
        iteration: &mut LoopIteration,
    ) {
        let switch = self.tables.switch13.as_ref();
        iteration.cost_ps += switch.map_or(0, |switch| switch.costs().refused_ps);
        self.report_refusal(bytes, (error_type, error_code), iteration);
        let kept = length.min(ERROR_DATA_BYTES).min(bytes.len());
        let error = self
            .reply(message::ERROR, be32(bytes, 4).to_be_bytes())
            .u16(error_type)
            .u16(error_code)
            .bytes(&bytes[..kept]);
        self.send(MemoryClass::Exact, error, iteration);
    }

    /// Handles a `FLOW_MOD`; each notice takes a buffer of its own (quirk 91).
    fn flow_mod_13(&mut self, bytes: &[u8], length: usize, iteration: &mut LoopIteration) {
        let Some(switch) = &mut self.tables.switch13 else {
            return;
        };
        let received = bytes.len() - self.rx.stale_bytes;
        let message = FlowMod13::new(bytes, length, received);
        let outcome = switch.flow_mod(message, self.time.clock().now_s);
        iteration.cost_ps += outcome.cost_ps;
        for message in outcome.flow_removed {
            iteration.cost_ps += self.costs.control().send_ps;
            self.session
                .write(iteration.began, MemoryClass::Exact, message, iteration.out);
        }
        if let Some(command) = outcome.ignored {
            iteration
                .out
                .event(iteration.began, Event::FlowModIgnored { command });
        }
        if let Some(error) = outcome.refused {
            self.refuse_13(bytes, length, error, iteration);
        }
    }

    fn multipart_13(&mut self, bytes: &[u8], length: usize, iteration: &mut LoopIteration) {
        let Some(switch) = &mut self.tables.switch13 else {
            return;
        };
        let clock = self.time.clock();
        let mut board = BoardPorts {
            config: &self.config,
            ports: &mut self.ports,
            out: iteration.out,
        };
        let (answer, cost_ps) = switch.multipart(bytes, clock, &mut board);
        iteration.cost_ps += cost_ps;
        match answer {
            Answer::Collected => {}
            Answer::Refused(error) => self.refuse_13(bytes, length, error, iteration),
            Answer::RefusedAbroad(error) => {
                iteration.cost_ps += switch.costs().refused_ps;
                let reply = switch.error_from_buffer(error);
                self.report_refusal(bytes, error, iteration);
                self.session
                    .write(iteration.began, MemoryClass::Exact, reply, iteration.out);
            }
            Answer::Ignored(kind) => iteration
                .out
                .event(iteration.began, Event::MultipartIgnored { kind }),
            Answer::Hangs(cause) => self.hang(iteration.began, cause, iteration),
        }
    }

    /// Returns the entries of OpenFlow 1.3 as values.
    pub(crate) fn flows13(&self) -> Vec<Flow13> {
        let firmware = self.tables.switch13.as_ref().map(|switch| switch.flows());
        firmware.or_else(|| self.flows_spec13()).unwrap_or_default()
    }

    /// Entries of OpenFlow 1.3, while 1.0 is spoken: their data are not where 1.0 looks for them (quirk 85).
    pub(super) fn foreign_entries(&self) -> usize {
        self.tables
            .switch13
            .as_ref()
            .map_or(0, |switch| switch.count())
    }

    /// The board stops for good.
    pub(super) fn hang(&mut self, at: Instant, cause: Hang, iteration: &mut LoopIteration) {
        self.halted = true;
        iteration.out.event(at, Event::BoardHung { cause });
    }

    /// A segment begins: multipart replies that were collected and not sent are lost.
    pub(super) fn begin_collecting(&mut self) {
        if let Some(switch) = &mut self.tables.switch13 {
            switch.begin_segment();
        }
    }

    /// The segment has been handled to its last byte: the multipart replies leave, unless its last message was one that
    /// does not care for them (quirk 86). All other replies are in front of them (quirk 87).
    pub(super) fn send_collected(&mut self, last_type: u8, iteration: &mut LoopIteration) {
        let Some(switch) = self
            .tables
            .switch13
            .as_mut()
            .filter(|switch| switch.has_collected())
        else {
            return;
        };
        if matches!(last_type, message::HELLO | message::ECHO_REQUEST) {
            return;
        }
        let replies = switch.take_collected();
        self.session
            .write(iteration.began, MemoryClass::Roomy, replies, iteration.out);
        while self.session.is_lossless() && self.has_more_parts() && !self.halted {
            iteration.cost_ps += self.send_part(iteration);
        }
    }

    /// Tells if multipart replies of a segment were lost.
    pub(super) fn report_uncollected(&mut self, iteration: &mut LoopIteration) {
        if self
            .tables
            .switch13
            .as_ref()
            .is_some_and(|switch| switch.has_collected())
        {
            iteration.out.event(iteration.began, Event::MultipartLost);
        }
    }

    /// The controller may have acknowledged something: an answer in several parts goes on (quirk 102), also one that a
    /// former session asked for (quirk 92). Returns what that costs.
    pub(super) fn continue_statistics(&mut self, iteration: &mut LoopIteration) -> i64 {
        let acknowledged = self.session.take_acknowledged();
        if !acknowledged || !self.has_more_parts() || self.session.free_bytes() < NEXT_PART_BYTES {
            return 0;
        }
        self.send_part(iteration)
    }

    fn has_more_parts(&self) -> bool {
        let switch = self.tables.switch13.as_ref();
        switch.is_some_and(|switch| switch.has_more())
    }

    /// Queues the next part of an answer. Returns what that costs.
    fn send_part(&mut self, iteration: &mut LoopIteration) -> i64 {
        let now_s = self.time.clock().now_s;
        let Some(switch) = &mut self.tables.switch13 else {
            return 0;
        };
        let cost_ps = switch.costs().multipart_ps + 15 * switch.costs().flow_statistics_entry_ps;
        match switch.next_part(self.version, now_s) {
            Ok(Some(part)) => {
                self.session
                    .write(iteration.began, MemoryClass::Roomy, part, iteration.out);
            }
            Ok(None) => {}
            Err(cause) => self.hang(iteration.began, cause, iteration),
        }
        cost_ps
    }

    /// Handles a frame from a port. Returns how long the CPU is busy with it.
    pub(super) fn frame_13(
        &mut self,
        mut data: Vec<u8>,
        flow_key: Option<FlowKey>,
        port: PortNumber,
        iteration: &mut LoopIteration,
    ) -> Duration {
        let length = length_with_fcs(data.len());
        let Some(switch) = &mut self.tables.switch13 else {
            return Duration::ZERO;
        };
        let flooded = self.config.flooded.bits();
        let clock = self.time.clock();
        let run = switch.process(&mut data, port.get().into(), flooded, clock, &self.costs);
        let time = self.costs.frame(length, run.cost_ps);
        let action = run.only_sent().and_then(|(matched, ports)| {
            CachedAction::new(TableKind::Firmware13, matched, run.examined, ports, time)
        });
        self.cache_action(flow_key, action, iteration);
        let FrameTime { work, busy } = time;
        iteration.out.counters.searches += 1;
        iteration.out.counters.entries_examined += run.examined;
        self.carry_out_13(iteration.began + work, run, data, iteration);
        busy
    }

    fn carry_out_13(
        &mut self,
        at: Instant,
        run: PipelineRun,
        data: Vec<u8>,
        iteration: &mut LoopIteration,
    ) {
        if run.effects.is_empty() {
            let counters = &mut iteration.out.counters;
            let counted = if run.missed {
                &mut counters.missed
            } else {
                &mut counters.dropped_flow
            };
            *counted += 1;
        }
        let mut last = Some(data);
        let mut rest = run.effects.into_iter();
        while let Some(effect) = rest.next() {
            let frame = match effect.frame {
                Some(frame) => frame,
                None if rest.len() == 0 => last.take().unwrap_or_default(),
                None => iteration
                    .out
                    .pool
                    .copy_unpadded(last.as_deref().unwrap_or_default()),
            };
            match effect.kind {
                EffectKind::Output(tag) => iteration.out.send_tagged(at, tag, frame),
                EffectKind::PacketIn {
                    in_port,
                    table,
                    cookie,
                    max_bytes,
                } => {
                    let kept = frame.len().min(max_bytes.into());
                    let is_open = self.is_established() || self.session.is_half_open();
                    let switch = self.tables.switch13.as_mut();
                    if let Some(switch) = switch.filter(|_| is_open && self.version == VERSION_1_3)
                    {
                        if iteration.in_segment && switch.has_collected() {
                            self.rx.replies_overwritten = true;
                        }
                        let message = switch.packet_in(in_port, table, cookie, &frame[..kept]);
                        self.session
                            .write(at, MemoryClass::Exact, message, iteration.out);
                        if !iteration.in_segment {
                            self.session.transmit(at, iteration.out);
                        }
                    }
                    iteration.out.pool.recycle(frame);
                }
            }
        }
        if let Some(data) = last {
            iteration.out.pool.recycle(data);
        }
        if let Some(cause) = run.hang {
            self.hang(at, cause, iteration);
        }
    }

    /// Sends the frame of a `PACKET_OUT` by its first action, if that is an output (quirks 181 to 185).
    fn packet_out_13(&mut self, bytes: &[u8], length: usize, iteration: &mut LoopIteration) {
        let in_port = be32(bytes, 12);
        let data_at = PACKET_OUT_13_BYTES + usize::from(be16(bytes, 16));
        let costs = self.costs.control();
        iteration.cost_ps += costs.packet_out_ps;
        let Some(data) = bytes.get(data_at..length) else {
            return; // the actions would reach beyond the message
        };
        let extra_bytes = length_with_fcs(data.len()) as i64 - 64;
        iteration.cost_ps += costs.packet_out_per_byte_ps * extra_bytes;
        if be16(bytes, PACKET_OUT_13_BYTES) != 0 {
            return; // no output
        }
        let tag = match be32(bytes, PACKET_OUT_13_BYTES + 4) {
            port::TABLE => {
                let Some(switch) = &mut self.tables.switch13 else {
                    return;
                };
                let mut frame = iteration.out.pool.copy_unpadded(data);
                let flooded = self.config.flooded.bits();
                let clock = self.time.clock();
                let run = switch.process(&mut frame, in_port, flooded, clock, &self.costs);
                iteration.cost_ps += run.cost_ps;
                self.rx.pushed_out.clone_from(&run.overrun);
                let at = iteration.reached();
                return self.carry_out_13(at, run, frame, iteration);
            }
            port::FLOOD => flooded_by_packet_out(in_port),
            port => tail_bit(port),
        };
        let at = iteration.reached();
        let frame = iteration.out.pool.copy(data);
        iteration.out.send_tagged(at, tag, frame);
    }

    /// Removes an entry that has expired, if there is one.
    pub(super) fn expire_13(&mut self) -> Option<Vec<u8>> {
        let now_s = self.time.clock().now_s;
        self.tables.switch13.as_mut()?.expire(now_s)
    }

    /// `PORT_STATUS` of a port.
    pub(super) fn port_status_13(&mut self, number: u8, up: bool) -> MessageBuilder {
        let description = PortDescription {
            number,
            address: self.ports.made_up_address(),
            up,
            config: 0,
            speed_kbps: 0,
        };
        self.reply(message::PORT_STATUS, [0; 4])
            .u8(2)
            .bytes(&[UNINITIALISED; 7])
            .bytes(&description.bytes())
    }
}

/// The tail tag of a `PACKET_OUT` that is to flood.
pub(super) const fn flooded_by_packet_out(in_port: u32) -> u8 {
    PACKET_OUT_FLOOD.wrapping_sub(tail_bit(in_port))
}

/// The board's ports, for multipart replies.
struct BoardPorts<'a> {
    config: &'a AgentConfig,
    ports: &'a mut AgentPorts,
    out: &'a Outbox,
}

impl Surroundings for BoardPorts<'_> {
    fn description(&self) -> Vec<u8> {
        description_body()
    }

    /// Reads the links anew (quirk 98).
    fn port_descriptions(&mut self) -> Vec<PortDescription> {
        let ports = &mut *self.ports;
        ports.link_seen = ports.link_up;
        let listed: Vec<_> = self.config.openflow_ports.iter().collect();
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
        self.config
            .flooded
            .iter()
            .map(|port| {
                let unread = self.out.hardware[port.index()];
                let quirks = self.config.quirks;
                let totals = self.ports.counters(port, true, unread, quirks);
                PortCounters {
                    number: port.get(),
                    received: self.ports.received[port.index()],
                    sent: self.out.transmitted[port.index()],
                    received_bytes: totals.received_bytes,
                    sent_bytes: totals.sent_bytes,
                    received_dropped: totals.received_dropped,
                }
            })
            .collect()
    }
}

/// Body of the answer to `DESC`.
pub(super) fn description_body() -> Vec<u8> {
    let reply = MessageBuilder::new(VERSION_1_3, 0, [0; 4]);
    super::statistics::description(reply).finish().split_off(8)
}
