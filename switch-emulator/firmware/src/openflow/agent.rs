//! The agent: what the board answers to the controller.

use std::sync::Arc;

use super::connection::Connection;
use super::session::Session;
use super::standard13::Session13;
use super::wire::{message, Message};
use crate::bytes::{be16, be32};
use crate::config::{Config, FailState, MacAddress};
use crate::cost::Costs;
use crate::event::Event;
use crate::native::Buffer;
use crate::openflow13::standard::StandardSwitch;
use crate::openflow13::Switch;
use crate::outbox::Outbox;
use crate::port::{HardwareCounters, PortMask, PortNumber, PORTS};
use crate::profile::{OpenFlow13Costs, Profile};
use crate::quirks::{Quirk, Quirks};
use crate::random::RandomBytes;
use crate::removal::Removal;
use crate::table::{FlowMod, FlowTable, Outcome, RemovedFlow};
use crate::time::{Duration, Instant};

/// OpenFlow 1.0 on the wire.
pub(super) const VERSION_1_0: u8 = 1;
/// OpenFlow 1.3.
pub(super) const VERSION_1_3: u8 = 4;
/// Highest version and type that the firmware takes for a header.
const MAX_VERSION: u8 = 6;
const MAX_TYPE: u8 = 30;
/// Memory for the segment that is handled.
const BUFFER_BYTES: usize = 1_536;
/// Bytes of an offending message that an error repeats.
const ERROR_DATA_BYTES: usize = 64;

/// The agent of one board.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // settings and states that do not exclude each other
pub(crate) struct Agent {
    pub(super) mac: MacAddress,
    pub(super) openflow_ports: PortMask,
    /// Ports that flooding and port statistics mean: all but the native ones.
    pub(super) flooded: PortMask,
    pub(super) fail_state: FailState,
    pub(super) forced_version: u8,
    pub(super) ethertype_filter: bool,
    pub(super) ofchecks: bool,
    pub(super) quirks: Quirks,
    pub(super) costs: Arc<Costs>,
    pub(super) table: FlowTable,
    /// The tables of OpenFlow 1.3, on boards that speak it.
    pub(super) switch13: Option<Box<Switch>>,
    /// The same; of the specification only.
    pub(super) standard13: Option<Box<StandardSwitch>>,
    /// Whether the tables of that switch are those that frames are looked up in.
    pub(super) tables_of_13: bool,
    /// What the controller of a session of that switch has asked for.
    pub(super) session13: Session13,
    /// The latest generation of roles that a controller has named.
    pub(super) role_generation: Option<u64>,
    pub(super) connection: Connection,
    pub(super) session: Session,
    /// What has come of a message that is not complete; of the specification only.
    pub(super) stream: Vec<u8>,
    /// Where the firmware has the segment that it handles, and behind it what is left of longer ones before.
    buffer: Vec<u8>,
    /// What a `PACKET_OUT` has written behind its end in that buffer.
    pub(super) pushed_out: Vec<u8>,
    /// Flags and length of `SET_CONFIG`; of the specification only.
    pub(super) switch_config: [u8; 4],
    /// What `PORT_MOD` has set; of the specification only.
    pub(super) port_config: [u32; PORTS],
    /// When the power came on.
    pub(super) powered_up: Instant,
    /// Begin of the latest pass that found work.
    pub(super) clock: Instant,
    /// What the work since the pass began has cost so far.
    pub(super) cost_ps: i64,
    /// A segment is being handled: what is written leaves when it is done.
    pub(super) in_segment: bool,
    /// Negotiated version; 0 before the controller's HELLO.
    pub(super) version: u8,
    /// Housekeeping ticks since power-up.
    pub(super) ticks: u32,
    /// Which of the three jobs comes next.
    pub(super) job: u32,
    /// Port whose counters are read next; from 0.
    pub(super) counted_port: usize,
    pub(super) link_up: PortMask,
    pub(super) link_seen: PortMask,
    pub(super) addresses: RandomBytes,
    /// Frames that the CPU received by each port.
    pub(super) received: [u64; PORTS],
    /// What the firmware has read of the hardware's counters.
    pub(super) totals: [HardwareCounters; PORTS],
    /// The same while OpenFlow 1.3 is spoken.
    pub(super) totals13: [HardwareCounters; PORTS],
    /// The board hangs until it is power-cycled.
    pub(super) halted: bool,
}

impl Agent {
    /// `seed` draws what is random in the IP stack.
    pub(crate) fn new(profile: &Profile, config: &Config, seed: u64) -> Self {
        let costs = Arc::new(Costs::new(profile));
        let native: PortMask = config.native_ports.iter().copied().collect();
        let all = PortMask::from_bits(u8::MAX);
        Self {
            mac: config.mac,
            openflow_ports: config.openflow_ports.iter().copied().collect(),
            flooded: PortMask::from_bits(all.bits() & !native.bits()),
            fail_state: config.fail_state,
            forced_version: config.openflow_version,
            ethertype_filter: config.ethertype_filter,
            ofchecks: config.ofchecks,
            quirks: config.quirks,
            table: FlowTable::new(
                Arc::clone(&costs),
                profile.table.entries as usize,
                config.flow_memory_address,
                config.quirks,
            ),
            switch13: costs_of_13(profile, config, Quirks::Firmware)
                .map(|costs| Box::new(Switch::new(costs))),
            standard13: costs_of_13(profile, config, Quirks::Spec)
                .map(|costs| Box::new(StandardSwitch::new(costs))),
            tables_of_13: config.openflow_version == VERSION_1_3,
            session13: Session13::new(),
            role_generation: None,
            costs,
            connection: Connection::new(config.openflow_enabled, config.ofchecks, config.quirks),
            stream: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            pushed_out: Vec::new(),
            switch_config: [0, 0, 0, 128],
            port_config: [0; PORTS],
            powered_up: Instant::ZERO,
            clock: Instant::ZERO,
            session: Session::new(config, seed),
            cost_ps: 0,
            in_segment: false,
            version: 0,
            ticks: 0,
            job: 0,
            counted_port: 0,
            link_up: all,
            link_seen: all,
            addresses: RandomBytes::new(),
            received: [0; PORTS],
            totals: [HardwareCounters::default(); PORTS],
            totals13: [HardwareCounters::default(); PORTS],
            halted: false,
        }
    }

    /// The board is switched on: tells of settings that leave a controller no use for it.
    pub(crate) fn power_up(&mut self, now: Instant, out: &mut Outbox) {
        self.powered_up = now;
        if self.forced_version == VERSION_1_3 && !self.knows_13() {
            out.event(now, Event::NewerVersionForced);
        }
    }

    pub(crate) const fn table(&self) -> &FlowTable {
        &self.table
    }

    /// Whether frames from `port` are the agent's.
    pub(crate) const fn handles(&self, port: PortNumber) -> bool {
        self.connection.is_enabled() && self.openflow_ports.contains(port)
    }

    pub(crate) fn set_link(&mut self, port: PortNumber, up: bool) {
        let bit = PortMask::EMPTY.with(port).bits();
        self.link_up = PortMask::from_bits(if up {
            self.link_up.bits() | bit
        } else {
            self.link_up.bits() & !bit
        });
    }

    /// Time of the agent: flows are as old as this tells. That of the firmware counts seconds of two ticks.
    pub(super) const fn time(&self) -> Instant {
        if self.quirks.has(Quirk::LongSeconds) {
            Instant::from_nanos((self.ticks / 2) as u64 * 1_000_000_000)
        } else {
            self.clock
        }
    }

    /// Seconds since `installed`, by the time of the agent.
    pub(crate) const fn age_s(&self, installed: Instant) -> u32 {
        self.time().saturating_since(installed).whole_seconds()
    }

    /// Whether the session with the controller is established.
    pub(crate) fn is_established(&self) -> bool {
        self.session.is_established(&self.connection)
    }

    /// Whether the board may speak of its own accord: by the specification not before both sides have agreed on a
    /// version.
    pub(super) fn may_speak(&self) -> bool {
        self.version != 0 || self.quirks.has(Quirk::SpeaksBeforeHello)
    }

    pub(super) fn is_safe(&self) -> bool {
        self.fail_state == FailState::Safe
    }

    pub(super) fn clear_if_secure(&mut self) {
        if !self.is_safe() {
            self.clear_tables();
        }
    }

    /// Erases the entries of both versions: their count is one number.
    pub(super) fn clear_tables(&mut self) {
        self.table.clear();
        if let Some(switch) = &mut self.switch13 {
            switch.clear();
        }
        if let Some(switch) = &mut self.standard13 {
            switch.clear();
        }
    }

    /// A TCP session with the controller is established.
    pub(super) fn greet(&mut self, pass: Instant, out: &mut Outbox) -> Duration {
        self.begin_segment();
        self.session.restart();
        self.stream.clear();
        self.connection.established();
        self.clear_if_secure();
        self.version = 0;
        let hello = if self.quirks.has(Quirk::HelloOfNewest) {
            let version = match self.forced_version {
                0 => VERSION_1_3,
                forced => forced,
            };
            Message::new(version, message::HELLO, [0, 0, 0, 1])
        } else {
            self.standard_greeting()
        };
        self.send(pass, Buffer::Exact, hello, out);
        self.end_segment(pass, out)
    }

    fn begin_segment(&mut self) {
        self.in_segment = true;
        let costs = self.costs.control();
        self.cost_ps = costs.interrupt_ps + costs.segment_ps;
    }

    /// Replies leave when the whole segment has been handled; gives how long the CPU was busy.
    fn end_segment(&mut self, pass: Instant, out: &mut Outbox) -> Duration {
        self.in_segment = false;
        if self.session.acknowledges() {
            self.cost_ps += self.costs.control().acknowledge_ps;
        }
        let busy = Duration::from_picos_rounded(self.cost_ps);
        self.session.transmit(pass + busy, out);
        busy
    }

    /// Instant that the work since `pass` has reached.
    pub(super) fn reached(&self, pass: Instant) -> Instant {
        pass + Duration::from_picos_rounded(self.cost_ps)
    }

    /// Queues a message for the controller.
    pub(super) fn send(
        &mut self,
        now: Instant,
        buffer: Buffer,
        message: Message,
        out: &mut Outbox,
    ) {
        self.session.write(now, buffer, message.finish(), out);
    }

    /// Queues a message of its own accord, an error or a notice.
    pub(super) fn notify(&mut self, now: Instant, message: Message, out: &mut Outbox) {
        self.cost_ps += self.costs.control().send_ps;
        self.send(now, Buffer::Exact, message, out);
    }

    /// Handles the payload of one TCP segment. Each is read from its first byte on: there is no reassembly.
    ///
    /// The pass that handles it begins at `pass`. Gives how long the CPU is busy.
    pub(super) fn segment(&mut self, pass: Instant, segment: &[u8], out: &mut Outbox) -> Duration {
        self.begin_segment();
        self.connection.heard();
        self.clock = pass;
        if self.quirks.has(Quirk::NoReassembly) {
            self.buffered_messages(pass, segment, out);
        } else {
            self.standard_messages(pass, segment, out);
        }
        if self.halted {
            return Duration::from_picos_rounded(self.cost_ps);
        }
        self.end_segment(pass, out)
    }

    fn buffered_messages(&mut self, now: Instant, segment: &[u8], out: &mut Outbox) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(buffer.len().max(segment.len()), 0);
        buffer[..segment.len()].copy_from_slice(segment);
        self.messages(now, &mut buffer, segment.len(), out);
        self.buffer = buffer;
    }

    /// Handles the messages in the first `end` bytes of `buffer`. What a header or a message lacks there is read from
    /// behind them.
    fn messages(&mut self, now: Instant, buffer: &mut [u8], end: usize, out: &mut Outbox) {
        let mut at = 0;
        let mut last_type = message::HELLO;
        self.begin_collecting();
        while at < end && !self.halted {
            let bytes = &buffer[at..];
            let (version, kind, length) = (bytes[0], be16(bytes, 0) as u8, be16(bytes, 2));
            let header = (1..=MAX_VERSION).contains(&version) && kind <= MAX_TYPE && length > 0;
            if !header {
                let offset_bytes = at as u16;
                out.event(
                    now,
                    Event::HeaderRefused {
                        offset_bytes,
                        version,
                        message_type: kind,
                        length_bytes: length,
                    },
                );
                return self.report_uncollected(now, out);
            }
            if usize::from(length) > end - at {
                let available_bytes = (end - at) as u16;
                out.event(
                    now,
                    Event::MessageSplit {
                        message_type: kind,
                        length_bytes: length,
                        available_bytes,
                    },
                );
                return self.report_uncollected(now, out);
            }
            last_type = kind;
            self.message(now, bytes, usize::from(length), out);
            at += usize::from(length);
            let behind = buffer[at..].iter_mut();
            for (byte, pushed) in behind.zip(self.pushed_out.drain(..)) {
                *byte = pushed;
            }
        }
        if !self.halted {
            self.send_collected(now, last_type, out);
            self.report_uncollected(now, out);
        }
    }

    /// Handles one message of `length` bytes at the beginning of `bytes`, the rest of the buffer.
    pub(super) fn message(&mut self, now: Instant, bytes: &[u8], length: usize, out: &mut Outbox) {
        let xid = be32(bytes, 4).to_be_bytes();
        match bytes[1] {
            message::HELLO => return self.hello(now, bytes[0], out),
            message::ECHO_REQUEST => {
                self.cost_ps += self.costs.control().echo_ps;
                let reply = self.reply(message::ECHO_REPLY, xid);
                return self.send(now, Buffer::Exact, reply, out);
            }
            _ if self.speaks_13() => return self.message_13(now, bytes, length, out),
            _ if self.version != VERSION_1_0 => return,
            _ => {}
        }
        let costs = self.costs.control().clone();
        let (buffer, cost_ps, reply) = match bytes[1] {
            message::FEATURES_REQUEST => (Buffer::Roomy, costs.features_ps, self.features(xid)),
            message::SET_CONFIG => {
                self.cost_ps += costs.set_config_ps;
                return;
            }
            message::GET_CONFIG_REQUEST => {
                let reply = self.reply(message::GET_CONFIG_REPLY, xid);
                (Buffer::Exact, costs.get_config_ps, reply.u16(0).u16(0x8000))
            }
            message::BARRIER_REQUEST => {
                let reply = self.reply(message::BARRIER_REPLY, xid);
                (Buffer::Roomy, costs.barrier_ps, reply)
            }
            message::VENDOR => {
                let reply = self.reply(message::ERROR, xid).u16(1).u16(3);
                (Buffer::Exact, costs.vendor_ps, reply)
            }
            message::STATS_REQUEST => return self.statistics(now, bytes, out),
            message::FLOW_MOD => return self.flow_mod(now, bytes, length, out),
            message::PACKET_OUT => return self.packet_out(now, bytes, length, out),
            message::ECHO_REPLY | message::ERROR => return,
            message_type => {
                return out.event(
                    now,
                    Event::RequestIgnored {
                        message_type,
                        statistics: None,
                    },
                )
            }
        };
        self.cost_ps += cost_ps;
        self.send(now, buffer, reply, out);
    }

    /// Carries out a `FLOW_MOD`.
    fn flow_mod(&mut self, now: Instant, bytes: &[u8], length: usize, out: &mut Outbox) {
        let message = FlowMod::new(bytes, length);
        if self.table.is_underflowed() && message.is_add() {
            out.event(now, Event::AddAfterUnderflow);
        }
        let Outcome {
            done,
            cost_ps,
            lost_actions,
        } = self.table.flow_mod(message, self.time());
        self.cost_ps += cost_ps;
        if lost_actions > 0 {
            let entries = lost_actions as u16;
            out.event(now, Event::EntriesLostActions { entries });
        }
        match done {
            Ok(gone) => {
                let by_message = self
                    .quirks
                    .has(Quirk::NoticeByDelete)
                    .then(|| message.wants_notice());
                let asked =
                    |flow: &&RemovedFlow| by_message.unwrap_or_else(|| flow.asks_for_notice());
                let told: Vec<_> = gone.iter().filter(asked).collect();
                for flow in told {
                    let notice = self.flow_removed(flow, Removal::Delete);
                    self.notify(now, notice, out);
                }
            }
            Err(refusal) => {
                let (error_type, error_code) = refusal.error();
                out.event(
                    now,
                    Event::FlowModRefused {
                        error_type,
                        error_code,
                    },
                );
                let error = self
                    .reply(message::ERROR, be32(bytes, 4).to_be_bytes())
                    .u16(error_type)
                    .u16(error_code)
                    .bytes(&bytes[..length.min(ERROR_DATA_BYTES)]);
                self.send(now, Buffer::Exact, error, out);
            }
        }
    }

    pub(super) fn reply(&self, kind: u8, xid: [u8; 4]) -> Message {
        Message::new(self.version, kind, xid)
    }

    /// Tells if nothing but ECHO works with the version that a HELLO of `version` has led to.
    pub(super) fn report_version(&self, now: Instant, version: u8, out: &mut Outbox) {
        match self.version {
            VERSION_1_0 => {}
            VERSION_1_3 if self.knows_13() => {}
            VERSION_1_3 => {
                let forced = self.forced_version == VERSION_1_3;
                out.event(now, Event::NewerVersionNegotiated { version, forced });
            }
            _ => out.event(now, Event::VersionUnusable { version }),
        }
    }

    fn hello(&mut self, now: Instant, version: u8, out: &mut Outbox) {
        let before = self.version;
        self.version = match (self.forced_version, version) {
            (0, 1) => VERSION_1_0,
            (0, 4..=6) => VERSION_1_3,
            (0, _) => self.version,
            (forced, _) => forced,
        };
        self.report_version(now, version, out);
        let foreign = match self.version {
            VERSION_1_0 => self.foreign_entries(),
            VERSION_1_3 => self.table.views().count(),
            _ => 0,
        };
        if self.version != before && foreign > 0 {
            let entries = foreign as u16;
            out.event(now, Event::ForeignEntries { entries });
        }
    }
}

/// What OpenFlow 1.3 costs, if a board of this profile speaks it and behaves like `quirks`.
fn costs_of_13(profile: &Profile, config: &Config, quirks: Quirks) -> Option<OpenFlow13Costs> {
    let costs = profile.cpu.openflow13.clone()?;
    (config.quirks == quirks).then_some(costs)
}
