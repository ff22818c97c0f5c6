//! The agent: what the board answers to the controller.

use super::bytes::{be16, be32};
use super::connection::{CloseReason, Connection};
use super::wire::{message, Message, HEADER_BYTES};
use crate::config::{Config, FailState, MacAddress};
use crate::cost::Costs;
use crate::event::Event;
use crate::matching::MATCH_BYTES;
use crate::outbox::{Outbox, OutputKind};
use crate::port::{PortMask, PortNumber, PORTS};
use crate::profile::Profile;
use crate::table::{field, FlowMod, FlowTable, RemovedFlow};
use crate::time::Instant;

/// OpenFlow 1.0 on the wire.
pub(super) const VERSION_1_0: u8 = 1;
/// Highest version and type that the firmware takes for a header.
const MAX_VERSION: u8 = 6;
const MAX_TYPE: u8 = 30;
/// Bytes of an offending message that an error repeats.
const ERROR_DATA_BYTES: usize = 64;

/// The agent of one board.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(super) mac: MacAddress,
    pub(super) openflow_ports: PortMask,
    /// Ports that flooding and port statistics mean: all but the native ones.
    pub(super) flooded: PortMask,
    fail_state: FailState,
    pub(super) forced_version: u8,
    pub(super) ethertype_filter: bool,
    ofchecks: bool,
    pub(super) costs: Costs,
    pub(super) table: FlowTable,
    connection: Connection,
    /// Negotiated version; 0 before the controller's HELLO.
    pub(super) version: u8,
    /// Housekeeping ticks since power-up.
    ticks: u32,
    /// Which of the three jobs comes next.
    job: u32,
    link_up: PortMask,
    link_seen: PortMask,
    addresses: RandomBytes,
    /// Frames that the CPU received by each port.
    pub(super) received: [u64; PORTS],
    /// The board hangs until it is power-cycled.
    pub(super) halted: bool,
}

impl Agent {
    pub(crate) fn new(profile: &Profile, config: &Config) -> Self {
        let costs = Costs::new(profile);
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
            table: FlowTable::new(costs.clone(), profile.table.entries as usize),
            costs,
            connection: Connection::new(config.ofchecks),
            version: 0,
            ticks: 0,
            job: 0,
            link_up: all,
            link_seen: all,
            addresses: RandomBytes { state: 1 },
            received: [0; PORTS],
            halted: false,
        }
    }

    pub(crate) const fn table(&self) -> &FlowTable {
        &self.table
    }

    /// Whether frames from `port` are the agent's.
    pub(crate) const fn handles(&self, port: PortNumber) -> bool {
        self.openflow_ports.contains(port)
    }

    pub(crate) fn set_link(&mut self, port: PortNumber, up: bool) {
        let bit = PortMask::EMPTY.with(port).bits();
        self.link_up = PortMask::from_bits(if up {
            self.link_up.bits() | bit
        } else {
            self.link_up.bits() & !bit
        });
    }

    /// Time of the agent: flows are as old as this tells.
    pub(super) const fn now_s(&self) -> u32 {
        self.ticks / 2
    }

    pub(super) fn is_established(&self) -> bool {
        self.connection.is_established()
    }

    pub(super) fn is_safe(&self) -> bool {
        self.fail_state == FailState::Safe
    }

    fn clear_if_secure(&mut self) {
        if !self.is_safe() {
            self.table.clear();
        }
    }

    /// The TCP session with the controller is established.
    pub(crate) fn connected(&mut self, now: Instant, out: &mut Outbox) {
        if self.halted {
            return;
        }
        self.connection.established();
        self.clear_if_secure();
        self.version = 0;
        let version = if self.forced_version == 0 {
            4
        } else {
            self.forced_version
        };
        out.controller(
            now,
            Message::new(version, message::HELLO, [0, 0, 0, 1]).finish(),
        );
    }

    /// The TCP session has ended.
    pub(crate) fn disconnected(&mut self) {
        self.connection.heard();
        if self.is_established() {
            self.connection.lost();
            self.clear_if_secure();
        }
    }

    /// A housekeeping tick: one of three jobs in turn, then the connection.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Outbox) {
        if self.halted {
            return;
        }
        self.ticks += 1;
        if self.ofchecks {
            // Of the other two jobs, port counters change nothing that is emulated, and flows time out only after
            // 8 minutes and more, at instants that depend on how the firmware was linked.
            if self.job == 1 {
                self.report_links(now, out);
            }
            self.job = (self.job + 1) % 3;
        }
        let demands = self.connection.tick();
        if demands.echo {
            // 1234 in the byte order of the CPU.
            let request = Message::new(self.version, message::ECHO_REQUEST, [0xd2, 0x04, 0, 0]);
            out.controller(now, request.finish());
        }
        if let Some(reason) = demands.close {
            self.clear_if_secure();
            out.push(now, OutputKind::Close);
            out.event(
                now,
                match reason {
                    CloseReason::NoFeaturesRequest => Event::NoFeaturesRequest,
                    CloseReason::Silent => Event::ControllerSilent,
                },
            );
        }
        if demands.connect {
            self.clear_if_secure();
            out.push(now, OutputKind::Connect);
        }
    }

    /// Handles the payload of one TCP segment. Each is read from its first byte on: there is no reassembly.
    pub(crate) fn segment(&mut self, now: Instant, segment: &[u8], out: &mut Outbox) {
        if self.halted || !self.is_established() {
            return;
        }
        self.connection.heard();
        let mut at = 0;
        while at < segment.len() && !self.halted {
            let bytes = &segment[at..];
            let (version, kind, length) = (bytes[0], be16(bytes, 0) as u8, be16(bytes, 2));
            let header = bytes.len() >= HEADER_BYTES
                && (1..=MAX_VERSION).contains(&version)
                && kind <= MAX_TYPE
                && length > 0;
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
                return;
            }
            if usize::from(length) > bytes.len() {
                let available_bytes = bytes.len() as u16;
                out.event(
                    now,
                    Event::MessageSplit {
                        message_type: kind,
                        length_bytes: length,
                        available_bytes,
                    },
                );
                return;
            }
            self.message(now, bytes, usize::from(length), out);
            at += usize::from(length);
        }
    }

    /// Handles one message of `length` bytes at the beginning of `bytes`, the rest of its segment.
    fn message(&mut self, now: Instant, bytes: &[u8], length: usize, out: &mut Outbox) {
        let xid = be32(bytes, 4).to_be_bytes();
        match bytes[1] {
            message::HELLO => return self.hello(now, bytes[0], out),
            message::ECHO_REQUEST => {
                return out.controller(now, self.reply(message::ECHO_REPLY, xid).finish())
            }
            _ if self.version != VERSION_1_0 => return,
            _ => {}
        }
        let reply = match bytes[1] {
            message::FEATURES_REQUEST => self.features(xid),
            message::GET_CONFIG_REQUEST => self
                .reply(message::GET_CONFIG_REPLY, xid)
                .u16(0)
                .u16(0x8000),
            message::BARRIER_REQUEST => self.reply(message::BARRIER_REPLY, xid),
            message::VENDOR => self.reply(message::ERROR, xid).u16(1).u16(3),
            message::STATS_REQUEST => match self.statistics(now, bytes, out) {
                Some(reply) => reply,
                None => return,
            },
            message::FLOW_MOD => match self.flow_mod(now, bytes, length, out) {
                Some(error) => error,
                None => return,
            },
            message::PACKET_OUT => return self.packet_out(now, bytes, length, out),
            _ => return,
        };
        out.controller(now, reply.finish());
    }

    /// Carries out a `FLOW_MOD`; gives the error message if it is refused.
    fn flow_mod(
        &mut self,
        now: Instant,
        bytes: &[u8],
        length: usize,
        out: &mut Outbox,
    ) -> Option<Message> {
        let message = FlowMod::new(bytes, length);
        let gone = match self.table.flow_mod(message, self.now_s()) {
            Ok(gone) => gone,
            Err(refusal) => {
                let (error_type, error_code) = refusal.error();
                out.event(
                    now,
                    Event::FlowModRefused {
                        error_type,
                        error_code,
                    },
                );
                let xid = be32(bytes, 4).to_be_bytes();
                let data = &bytes[..length.min(ERROR_DATA_BYTES)];
                let error = self.reply(message::ERROR, xid);
                return Some(error.u16(error_type).u16(error_code).bytes(data));
            }
        };
        if message.wants_notice() {
            for flow in &gone {
                out.controller(now, self.flow_removed(flow).finish());
            }
        }
        None
    }

    /// Reason DELETE. The counters are in the byte order of the CPU.
    fn flow_removed(&self, flow: &RemovedFlow) -> Message {
        const DELETED: u8 = 2;
        self.reply(message::FLOW_REMOVED, [0; 4])
            .bytes(&flow.head[field::MATCH..field::MATCH + MATCH_BYTES])
            .bytes(&flow.head[field::COOKIE..field::COOKIE + 8])
            .bytes(&flow.head[field::PRIORITY..field::PRIORITY + 2])
            .u8(DELETED)
            .uninitialised(1)
            .u32(self.now_s().saturating_sub(flow.installed_s))
            .uninitialised(4)
            .bytes(&flow.head[field::IDLE_TIMEOUT..field::IDLE_TIMEOUT + 2])
            .uninitialised(2)
            .bytes(&u64::from(flow.packets).to_le_bytes())
            .bytes(&i64::from(flow.bytes).to_le_bytes())
    }

    pub(super) fn reply(&self, kind: u8, xid: [u8; 4]) -> Message {
        Message::new(self.version, kind, xid)
    }

    fn hello(&mut self, now: Instant, version: u8, out: &mut Outbox) {
        self.version = match (self.forced_version, version) {
            (0, 1) => VERSION_1_0,
            (0, 4..=6) => 4,
            (0, _) => self.version,
            (forced, _) => forced,
        };
        if self.version != VERSION_1_0 {
            out.event(now, Event::VersionUnusable { version });
        }
    }

    fn features(&mut self, xid: [u8; 4]) -> Message {
        self.connection.features_requested();
        self.link_seen = self.link_up;
        let mut reply = self
            .reply(message::FEATURES_REPLY, xid)
            .u16(0)
            .bytes(&self.mac.0)
            .u32(0) // buffers
            .u8(1) // tables
            .uninitialised(3)
            .u32(0x0000_0007) // flow, table and port statistics
            .u32(0x0000_07ff); // actions 0 to 10
        for port in self.openflow_ports.iter() {
            reply = self.port_description(reply, port);
        }
        reply
    }

    fn port_description(&mut self, reply: Message, port: PortNumber) -> Message {
        let address: [u8; 6] = core::array::from_fn(|_| self.addresses.next_byte());
        reply
            .u16(port.get().into())
            .bytes(&address)
            .text(&format!("eth{}", port.get() - 1), 16)
            .u32(0)
            .u32(u32::from(!self.link_seen.contains(port)))
            .u32(0x0000_0088) // 100 Mbit/s full duplex, copper
            .zeros(12)
    }

    fn report_links(&mut self, now: Instant, out: &mut Outbox) {
        let changed = PortMask::from_bits(
            (self.link_up.bits() ^ self.link_seen.bits()) & self.openflow_ports.bits(),
        );
        self.link_seen = self.link_up;
        if !self.is_established() {
            return;
        }
        for port in changed.iter() {
            let status = self
                .reply(message::PORT_STATUS, [0; 4])
                .u8(2)
                .uninitialised(7);
            let status = self.port_description(status, port);
            out.controller(now, status.finish());
        }
    }
}

/// The random numbers of the C library, with which the firmware makes up MAC addresses of ports: never seeded, so the
/// same after each power-up.
#[derive(Debug)]
struct RandomBytes {
    state: u64,
}

impl RandomBytes {
    fn next_byte(&mut self) -> u8 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (((self.state >> 32) & 0x7fff_ffff) % 255) as u8
    }
}
