//! OpenFlow agent: answers the controller's messages.

use std::sync::Arc;

use super::clock::Timekeeping;
use super::config::{AgentConfig, SessionConfig};
use super::connection::Connection;
use super::flow_cache::{DeferredCounters, FlowCache, TableKind};
use super::ports::AgentPorts;
use super::rx_buffer::RxBuffer;
use super::session::Session;
use super::tables::Tables;
use crate::block_pool::BlockPool;
use crate::config::{Config, FailState};
use crate::cost::Costs;
use crate::event::{count, Event};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::outbox::Outbox;
use crate::port::PortNumber;
use crate::profile::Profile;
use crate::quirks::Quirk;
use crate::table::{Flow, FlowMod, FlowTable, Outcome, RemovedFlow};
use crate::time::{Duration, Instant};
use openflow::bytes::{be16, be32};
use openflow::message;
use openflow::wire::{MessageBuilder, VERSION_1_0, VERSION_1_3};
use openflow::FlowRemovedReason;

/// Highest version and type that the firmware takes for a header.
const MAX_VERSION: u8 = 6;
const MAX_TYPE: u8 = 30;
/// Bytes of an offending message that an error repeats.
const ERROR_DATA_BYTES: usize = 64;

/// The agent of one board.
#[derive(Debug)]
#[repr(C)] // what each frame needs comes first, as in the board
pub(crate) struct Agent {
    /// Flow cache.
    pub(super) flow_cache: FlowCache,
    pub(super) time: Timekeeping,
    pub(super) connection: Connection,
    pub(super) config: AgentConfig,
    pub(super) session: Session,
    pub(super) costs: Arc<Costs>,
    pub(super) tables: Tables,
    pub(super) ports: AgentPorts,
    pub(super) rx: RxBuffer,
    pub(super) session_config: SessionConfig,
    /// Negotiated version; 0 before the controller's HELLO.
    pub(super) version: u8,
    /// The board hangs until it is power-cycled.
    pub(super) halted: bool,
    /// A frame that can match nothing has been told of.
    pub(super) warned_unmatchable: bool,
}

impl Agent {
    /// `seed` draws what is random in the IP stack.
    pub(crate) fn new(profile: &Profile, config: &Config, seed: u64) -> Self {
        let costs = Arc::new(Costs::new(profile));
        Self {
            config: AgentConfig::new(profile, config),
            tables: Tables::new(profile, config, &costs),
            costs,
            ports: AgentPorts::new(),
            time: Timekeeping::new(config.quirks),
            rx: RxBuffer::new(),
            session_config: SessionConfig::new(),
            connection: Connection::new(config.openflow_enabled, config.ofchecks, config.quirks),
            session: Session::new(config, seed),
            version: 0,
            halted: false,
            warned_unmatchable: false,
            flow_cache: FlowCache::default(),
        }
    }

    /// Invalidates the flow cache after an event other than a forwarded frame, and adds its deferred counters.
    #[inline]
    pub(crate) fn invalidate_flow_cache(&mut self, out: &mut Outbox) {
        for deferred in self.flow_cache.invalidate() {
            self.count_deferred(&deferred, out);
        }
    }

    /// Adds deferred counters of the fast path.
    pub(super) fn count_deferred(&mut self, deferred: &DeferredCounters, out: &mut Outbox) {
        deferred.count(out);
        count(
            &mut self.ports.received[deferred.in_port.index()],
            deferred.frames(),
        );
        if deferred.table == TableKind::Firmware10 {
            // The agent's clock has not advanced since the entry was cached: ticks invalidate the cache.
            self.tables
                .table
                .record_hits(deferred.hits, self.time.now());
        }
    }

    /// Returns the counters that the fast path has deferred.
    pub(crate) fn deferred_counters(&self) -> impl Iterator<Item = DeferredCounters> + '_ {
        self.flow_cache.deferred_counters()
    }

    /// Returns the flow table in its real order, deferred counters included.
    pub(crate) fn counted_flows(&self) -> Vec<Flow> {
        let mut flows = self.tables.table.flows();
        let of_table = |deferred: &DeferredCounters| deferred.table == TableKind::Firmware10;
        for DeferredCounters { hits, .. } in self.deferred_counters().filter(of_table) {
            if let Some(flow) = flows.get_mut(hits.entry) {
                hits.add_to(&mut flow.packets, &mut flow.bytes);
            }
        }
        flows
    }

    /// Powers up: emits an event if the settings rule out any controller.
    pub(crate) fn power_up(&mut self, now: Instant, out: &mut Outbox) {
        self.time.powered_up = now;
        if self.config.forced_version == VERSION_1_3 && !self.tables.know_13() {
            out.event(now, Event::NewerVersionForced);
        }
    }

    /// Returns the flow table, whose counters lack the deferred ones.
    pub(crate) const fn table(&self) -> &FlowTable {
        &self.tables.table
    }

    /// Returns the block pool, which both versions share.
    pub(crate) fn pool(&self) -> &BlockPool {
        self.tables.pool()
    }

    /// Returns whether frames from `port` go to the agent.
    #[inline]
    pub(crate) const fn handles(&self, port: PortNumber) -> bool {
        self.connection.is_enabled() && self.config.openflow_ports.contains(port)
    }

    pub(crate) fn set_link(&mut self, port: PortNumber, up: bool, out: &mut Outbox) {
        self.invalidate_flow_cache(out);
        self.ports.set_link(port, up);
    }

    /// Returns the seconds since `installed` on the agent's clock.
    pub(crate) const fn age_s(&self, installed: Instant) -> u32 {
        self.time.age_s(installed)
    }

    /// Returns whether the session with the controller is established.
    pub(crate) fn is_established(&self) -> bool {
        self.session.is_established(&self.connection)
    }

    /// Returns whether the board may send unsolicited messages: by the specification, not before the version is
    /// negotiated.
    pub(super) fn may_speak(&self) -> bool {
        self.version != 0 || self.config.quirks.has(Quirk::SpeaksBeforeHello)
    }

    pub(super) fn is_safe(&self) -> bool {
        self.config.fail_state == FailState::Safe
    }

    pub(super) fn clear_if_secure(&mut self) {
        if !self.is_safe() {
            self.tables.clear();
        }
    }

    /// Handles a new TCP session: sends HELLO. Returns how long the CPU is busy.
    pub(super) fn greet(&mut self, iteration: &mut LoopIteration) -> Duration {
        self.begin_segment(iteration);
        self.session.restart();
        self.rx.stream.clear();
        self.connection.established();
        self.clear_if_secure();
        self.version = 0;
        let hello = if self.config.quirks.has(Quirk::NewestHello) {
            let version = match self.config.forced_version {
                0 => VERSION_1_3,
                forced => forced,
            };
            MessageBuilder::new(version, message::HELLO, [0, 0, 0, 1])
        } else {
            self.spec_greeting()
        };
        self.send(MemoryClass::Exact, hello, iteration);
        self.end_segment(iteration)
    }

    fn begin_segment(&self, iteration: &mut LoopIteration) {
        iteration.in_segment = true;
        let costs = self.costs.control();
        iteration.cost_ps = costs.interrupt_ps + costs.segment_ps;
    }

    /// Sends the replies to a segment. Returns how long the CPU was busy.
    fn end_segment(&mut self, iteration: &mut LoopIteration) -> Duration {
        iteration.in_segment = false;
        if self.session.acknowledges() {
            iteration.cost_ps += self.costs.control().acknowledge_ps;
        }
        self.session.transmit(iteration.reached(), iteration.out);
        iteration.busy()
    }

    /// Queues a message for the controller.
    pub(super) fn send(
        &mut self,
        buffer: MemoryClass,
        message: MessageBuilder,
        iteration: &mut LoopIteration,
    ) {
        self.session
            .write(iteration.began, buffer, message.finish(), iteration.out);
    }

    /// Queues an unsolicited message: an error or a notification.
    pub(super) fn notify(&mut self, message: MessageBuilder, iteration: &mut LoopIteration) {
        iteration.cost_ps += self.costs.control().send_ps;
        self.send(MemoryClass::Exact, message, iteration);
    }

    /// Handles the payload of one TCP segment. The firmware parses each segment from its first byte, without
    /// reassembly.
    ///
    /// Returns how long the CPU is busy.
    pub(super) fn segment(&mut self, segment: &[u8], iteration: &mut LoopIteration) -> Duration {
        self.begin_segment(iteration);
        self.connection.heard();
        self.time.iteration_began = iteration.began;
        if self.config.quirks.has(Quirk::NoReassembly) {
            self.buffered_messages(segment, iteration);
        } else {
            self.spec_messages(segment, iteration);
        }
        if self.halted {
            return iteration.busy();
        }
        self.end_segment(iteration)
    }

    /// Handles the messages of a segment in the buffer of the firmware, with what longer segments have left behind it.
    pub(super) fn buffered_messages(&mut self, segment: &[u8], iteration: &mut LoopIteration) {
        let mut buffer = std::mem::take(&mut self.rx.buffer);
        buffer.resize(buffer.len().max(segment.len()), 0);
        buffer[..segment.len()].copy_from_slice(segment);
        self.rx.stale_bytes = buffer.len() - segment.len();
        self.messages(&mut buffer, segment.len(), iteration);
        self.rx.buffer = buffer;
    }

    /// Handles the messages in the first `end` bytes of `buffer`. Truncated messages are read beyond `end`.
    fn messages(&mut self, buffer: &mut [u8], end: usize, iteration: &mut LoopIteration) {
        let mut at = 0;
        let mut last_type = message::HELLO;
        self.begin_collecting();
        while at < end && !self.halted {
            let bytes = &buffer[at..];
            let (version, kind, length) = (bytes[0], be16(bytes, 0) as u8, be16(bytes, 2));
            // A whole message that was put together has a header, whatever its type.
            let is_known = kind <= MAX_TYPE || !self.config.quirks.has(Quirk::NoReassembly);
            let header = (1..=MAX_VERSION).contains(&version) && is_known && length > 0;
            if !header {
                let offset_bytes = at as u16;
                iteration.out.event(
                    iteration.began,
                    Event::HeaderRefused {
                        offset_bytes,
                        version,
                        message_type: kind,
                        length_bytes: length,
                    },
                );
                return self.report_uncollected(iteration);
            }
            if usize::from(length) > end - at {
                let available_bytes = (end - at) as u16;
                iteration.out.event(
                    iteration.began,
                    Event::MessageSplit {
                        message_type: kind,
                        length_bytes: length,
                        available_bytes,
                    },
                );
                return self.report_uncollected(iteration);
            }
            last_type = kind;
            self.diagnose_message(bytes, usize::from(length), end - at, iteration);
            at += usize::from(length);
            self.rx.overwrite(&mut buffer[at..]);
        }
        if !self.halted {
            self.send_collected(last_type, iteration);
            self.report_uncollected(iteration);
        }
    }

    /// Handles one message of `length` bytes at the beginning of `bytes`, the rest of the buffer.
    pub(super) fn message(&mut self, bytes: &[u8], length: usize, iteration: &mut LoopIteration) {
        let xid = be32(bytes, 4).to_be_bytes();
        match bytes[1] {
            message::HELLO => return self.hello(bytes[0], iteration),
            _ if self.speaks_13() && self.tables.spec13.is_some() => {
                return self.spec_message_13(&bytes[..length], iteration);
            }
            message::ECHO_REQUEST => {
                iteration.cost_ps += self.costs.control().echo_ps;
                let version = match self.version {
                    0 if !self.may_speak() => bytes[0],
                    agreed => agreed,
                };
                let reply = MessageBuilder::new(version, message::ECHO_REPLY, xid);
                return self.send(MemoryClass::Exact, reply, iteration);
            }
            _ if self.speaks_13() => return self.message_13(bytes, length, iteration),
            _ if self.version != VERSION_1_0 => return,
            _ => {}
        }
        let costs = self.costs.control().clone();
        let (buffer, cost_ps, reply) = match bytes[1] {
            message::FEATURES_REQUEST => {
                (MemoryClass::Roomy, costs.features_ps, self.features(xid))
            }
            message::SET_CONFIG => {
                iteration.cost_ps += costs.set_config_ps;
                return;
            }
            message::GET_CONFIG_REQUEST => {
                let reply = self.reply(message::GET_CONFIG_REPLY, xid);
                (
                    MemoryClass::Exact,
                    costs.get_config_ps,
                    reply.u16(0).u16(0x8000),
                )
            }
            message::BARRIER_REQUEST => {
                let reply = self.reply(message::BARRIER_REPLY, xid);
                (MemoryClass::Roomy, costs.barrier_ps, reply)
            }
            message::VENDOR => {
                self.report_refusal(bytes, (1, 3), iteration);
                let reply = self.reply(message::ERROR, xid).u16(1).u16(3);
                (MemoryClass::Exact, costs.vendor_ps, reply)
            }
            message::STATS_REQUEST => return self.statistics(bytes, iteration),
            message::FLOW_MOD => return self.flow_mod(bytes, length, iteration),
            message::PACKET_OUT => return self.packet_out(bytes, length, iteration),
            message::ECHO_REPLY | message::ERROR => return,
            message_type => {
                return iteration.out.event(
                    iteration.began,
                    Event::RequestIgnored {
                        version: self.version,
                        message_type,
                        statistics: None,
                    },
                )
            }
        };
        iteration.cost_ps += cost_ps;
        self.send(buffer, reply, iteration);
    }

    /// Carries out a `FLOW_MOD`.
    fn flow_mod(&mut self, bytes: &[u8], length: usize, iteration: &mut LoopIteration) {
        let message = FlowMod::new(bytes, length);
        let was_underflowed = self.tables.table.is_underflowed();
        let Outcome {
            done,
            cost_ps,
            lost_actions,
        } = self.tables.table.flow_mod(message, self.time.now());
        iteration.cost_ps += cost_ps;
        if was_underflowed && !self.tables.table.is_underflowed() {
            iteration
                .out
                .event(iteration.began, Event::AddAfterUnderflow);
        }
        if lost_actions > 0 {
            let entries = lost_actions as u16;
            iteration
                .out
                .event(iteration.began, Event::EntriesLostActions { entries });
        }
        match done {
            Ok(gone) => {
                let by_message = self
                    .config
                    .quirks
                    .has(Quirk::FlowRemovedByDeleteFlag)
                    .then(|| message.wants_flow_removed());
                let asked =
                    |flow: &&RemovedFlow| by_message.unwrap_or_else(|| flow.wants_flow_removed());
                let told: Vec<_> = gone.iter().filter(asked).collect();
                for flow in told {
                    let message = self.flow_removed(flow, FlowRemovedReason::Delete);
                    self.notify(message, iteration);
                }
            }
            Err((error_type, error_code)) => {
                self.report_refusal(bytes, (error_type, error_code), iteration);
                let error = self
                    .reply(message::ERROR, be32(bytes, 4).to_be_bytes())
                    .u16(error_type)
                    .u16(error_code)
                    .bytes(&bytes[..length.min(ERROR_DATA_BYTES)]);
                self.send(MemoryClass::Exact, error, iteration);
            }
        }
    }

    pub(super) fn reply(&self, kind: u8, xid: [u8; 4]) -> MessageBuilder {
        MessageBuilder::new(self.version, kind, xid)
    }

    /// Tells if nothing but ECHO works with the version that a HELLO of `version` has led to.
    pub(super) fn report_version(&self, version: u8, iteration: &mut LoopIteration) {
        match self.version {
            VERSION_1_0 => {}
            VERSION_1_3 if self.tables.know_13() => {}
            VERSION_1_3 => {
                let forced = self.config.forced_version == VERSION_1_3;
                iteration.out.event(
                    iteration.began,
                    Event::NewerVersionNegotiated { version, forced },
                );
            }
            _ => iteration
                .out
                .event(iteration.began, Event::VersionUnusable { version }),
        }
    }

    /// Takes the version in the header of the controller's HELLO for what it speaks; nothing else counts (quirk 84).
    fn hello(&mut self, version: u8, iteration: &mut LoopIteration) {
        let before = self.version;
        self.version = match (self.config.forced_version, version) {
            (0, 1) => VERSION_1_0,
            (0, 4..=6) => VERSION_1_3,
            (0, _) => self.version,
            (forced, _) => forced,
        };
        if self.version != before {
            self.use_tables_of(self.version);
        }
        self.report_version(version, iteration);
        let foreign = match self.version {
            VERSION_1_0 => self.foreign_entries(),
            VERSION_1_3 => self.tables.table.views().count(),
            _ => 0,
        };
        if self.version != before && foreign > 0 {
            let entries = foreign as u16;
            iteration
                .out
                .event(iteration.began, Event::ForeignEntries { entries });
        }
    }
}
