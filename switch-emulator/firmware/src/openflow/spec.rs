//! Messages as OpenFlow 1.0.1 asks for them: what `quirks = "spec"` puts in the place of the firmware's answers.

use super::agent::Agent;
use crate::actions::{Actions, SLOT_BYTES};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::port::PortNumber;
use crate::table::{check_actions, EntryView};
use openflow::bytes::{be16, be32};
use openflow::message;
use openflow::v1_0::flow_mod::{field, NO_BUFFER};
use openflow::v1_0::wildcards;
use openflow::v1_0::{error, is_fragment, Match, MATCH_BYTES};
use openflow::wire::{MessageBuilder, HEADER_BYTES, PACKET_OUT_BYTES, VERSION_1_0, VERSION_1_3};
use openflow::ErrorCode;

/// Bits of a port's configuration (`ofp_port_config`).
pub(super) mod port_config {
    pub(crate) const DOWN: u32 = 1;
    pub(crate) const NO_RECEIVE: u32 = 1 << 2;
    pub(crate) const NO_FLOOD: u32 = 1 << 4;
    pub(crate) const NO_FORWARD: u32 = 1 << 5;
    pub(crate) const NO_PACKET_IN: u32 = 1 << 6;
    pub(super) const ALL: u32 = 0x7f;
    /// Those that 1.3 has.
    pub(crate) const ALL_OF_13: u32 = DOWN | NO_RECEIVE | NO_FORWARD | NO_PACKET_IN;
}

/// Handling of IP fragments that `SET_CONFIG` asks for: none, drop, or reassemble.
const FRAGMENTS: u16 = 3;
const FRAGMENTS_DROP: u16 = 1;
const ERROR_DATA_BYTES: usize = 64;
/// Element of a HELLO that names versions.
const VERSION_BITMAP: u16 = 1;

impl Agent {
    /// Handles the messages that the stream holds completely after this segment.
    pub(super) fn spec_messages(&mut self, segment: &[u8], iteration: &mut LoopIteration) {
        let mut stream = std::mem::take(&mut self.rx.stream);
        stream.extend_from_slice(segment);
        let mut rest = &mut stream[..];
        while rest.len() >= HEADER_BYTES && !self.halted {
            let length = usize::from(be16(rest, 2));
            if length < HEADER_BYTES {
                // Where the next message begins is unknown.
                self.refuse(rest, error::BAD_LENGTH, iteration);
                rest = &mut [];
                break;
            }
            if rest.len() < length {
                break;
            }
            let (bytes, behind) = rest.split_at_mut(length);
            let left = length + behind.len();
            self.diagnose_whole_message(bytes, left, iteration);
            self.rx.overwrite(behind);
            rest = behind;
        }
        self.rx.stream = rest.to_vec();
    }

    pub(super) fn refuse(
        &mut self,
        bytes: &[u8],
        (kind, code): ErrorCode,
        iteration: &mut LoopIteration,
    ) {
        let version = match self.version {
            0 => self.highest_version(),
            agreed => agreed,
        };
        let error = MessageBuilder::new(version, message::ERROR, be32(bytes, 4).to_be_bytes())
            .u16(kind)
            .u16(code)
            .bytes(&bytes[..bytes.len().min(ERROR_DATA_BYTES)]);
        self.report_refusal(bytes, (kind, code), iteration);
        self.notify(error, iteration);
    }

    pub(super) fn spec_message(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        let xid = be32(bytes, 4).to_be_bytes();
        let costs = self.costs.control().clone();
        let kind = bytes[1];
        if kind == message::HELLO {
            return self.spec_hello(bytes, iteration);
        }
        let is_known = match self.version {
            0 => self.may_speak_version(bytes[0]),
            agreed => bytes[0] == agreed,
        };
        if !is_known {
            return self.refuse(bytes, error::BAD_VERSION, iteration);
        }
        if bytes[0] == VERSION_1_3 && self.tables.spec13.is_some() {
            return self.spec_message_13(bytes, iteration);
        }
        if bytes[0] == VERSION_1_3 && self.tables.know_13() {
            // The firmware's 1.3 reads each message as if it were a segment.
            return self.buffered_messages(bytes, iteration);
        }
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
            return self.refuse(bytes, error::BAD_LENGTH, iteration);
        }
        match kind {
            message::ECHO_REQUEST => {
                iteration.cost_ps += costs.echo_ps;
                let reply = MessageBuilder::new(VERSION_1_0, message::ECHO_REPLY, xid)
                    .bytes(&bytes[HEADER_BYTES..]);
                self.send(MemoryClass::Exact, reply, iteration);
            }
            message::ERROR | message::ECHO_REPLY => {}
            _ if self.version == 0 => {}
            message::SET_CONFIG => {
                iteration.cost_ps += costs.set_config_ps;
                // The board puts no fragments together; 1.0 has no error of its own for that.
                if be16(bytes, 8) & FRAGMENTS > FRAGMENTS_DROP {
                    return self.refuse(bytes, error::NOT_PERMITTED, iteration);
                }
                self.session_config.switch_config = [bytes[8], bytes[9], bytes[10], bytes[11]];
            }
            message::GET_CONFIG_REQUEST => {
                iteration.cost_ps += costs.get_config_ps;
                let reply = self
                    .reply(message::GET_CONFIG_REPLY, xid)
                    .bytes(&self.session_config.switch_config);
                self.send(MemoryClass::Exact, reply, iteration);
            }
            message::VENDOR => self.refuse(bytes, error::BAD_VENDOR, iteration),
            message::PORT_MOD => self.port_mod(bytes, iteration),
            message::QUEUE_GET_CONFIG_REQUEST => {
                // No port has queues.
                let reply = self.reply(message::QUEUE_GET_CONFIG_REPLY, xid);
                let reply = reply.u16(be16(bytes, 8)).zeros(6);
                self.send(MemoryClass::Exact, reply, iteration);
            }
            message::STATS_REQUEST => self.spec_statistics(bytes, iteration),
            message::PACKET_OUT => self.spec_packet_out(bytes, iteration),
            message::FEATURES_REQUEST | message::BARRIER_REQUEST | message::FLOW_MOD => {
                self.message(bytes, bytes.len(), iteration);
            }
            _ => self.refuse(bytes, error::BAD_TYPE, iteration),
        }
    }

    /// The highest version that the board speaks, or is forced to.
    pub(super) fn highest_version(&self) -> u8 {
        match self.config.forced_version {
            0 if self.tables.know_13() => VERSION_1_3,
            0 => VERSION_1_0,
            forced => forced,
        }
    }

    fn may_speak_version(&self, version: u8) -> bool {
        version == self.highest_version()
            || (self.config.forced_version == 0 && version == VERSION_1_0)
    }

    /// Returns the board's HELLO: since 1.3 it names all versions (section 7.5.1 of 1.3.4).
    pub(super) fn spec_greeting(&self) -> MessageBuilder {
        let version = self.highest_version();
        let hello = MessageBuilder::new(version, message::HELLO, [0, 0, 0, 1]);
        if version < VERSION_1_3 || !self.tables.know_13() {
            return hello;
        }
        let spoken = (0..=VERSION_1_3).filter(|version| self.may_speak_version(*version));
        let bits = spoken.fold(0_u32, |bits, version| bits | 1 << version);
        hello.u16(VERSION_BITMAP).u16(8).u32(bits)
    }

    /// Returns the negotiated version: the highest one that both sides name, or else the lower of both headers, if the
    /// board speaks it.
    fn agreed_version(&self, hello: &[u8]) -> Option<u8> {
        let highest = self.highest_version();
        let names = self.tables.know_13() && highest == VERSION_1_3;
        if let Some(bits) = version_bitmap(hello).filter(|_| names) {
            let mut spoken = (1..=VERSION_1_3).rev();
            return spoken.find(|v| bits >> v & 1 == 1 && self.may_speak_version(*v));
        }
        Some(hello[0].min(highest)).filter(|version| self.may_speak_version(*version))
    }

    /// Only the first HELLO counts.
    fn spec_hello(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        if self.version != 0 {
            return;
        }
        let Some(version) = self.agreed_version(bytes) else {
            self.refuse(bytes, error::HELLO_FAILED, iteration);
            self.session.close(iteration.reached(), iteration.out);
            return;
        };
        self.version = version;
        self.use_tables_of(version);
        self.report_version(bytes[0], iteration);
    }

    /// Returns whether the controller has asked for frames such as this one to be dropped: fragments.
    pub(super) fn drops_fragment(&self, frame: &[u8]) -> bool {
        be16(&self.session_config.switch_config, 0) & FRAGMENTS == FRAGMENTS_DROP
            && is_fragment(frame)
    }

    fn port_mod(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        let port = u8::try_from(be16(bytes, 8)).ok().and_then(PortNumber::new);
        let Some(port) = port.filter(|port| self.config.openflow_ports.contains(*port)) else {
            return self.refuse(bytes, error::BAD_PORT, iteration);
        };
        if bytes[10..16] != self.config.port_address(port) {
            return self.refuse(bytes, error::BAD_PORT_ADDRESS, iteration);
        }
        let (config, mask) = (be32(bytes, 16), be32(bytes, 20) & port_config::ALL);
        self.ports.configure(port, config, mask);
    }

    fn spec_packet_out(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        let costs = self.costs.control();
        let in_port = be16(bytes, 12);
        let data_at = PACKET_OUT_BYTES + usize::from(be16(bytes, 14));
        let (Some(list), Some(data)) = (bytes.get(PACKET_OUT_BYTES..data_at), bytes.get(data_at..))
        else {
            return self.refuse(bytes, error::BAD_LENGTH, iteration);
        };
        iteration.cost_ps +=
            costs.packet_out_ps + costs.packet_out_per_byte_ps * (data.len() as i64 - 60).max(0);
        if be32(bytes, 8) != NO_BUFFER {
            return self.refuse(bytes, error::BUFFER_UNKNOWN, iteration);
        }
        let slots = match check_actions(list, true) {
            Ok(slots) => slots,
            Err(refusal) => return self.refuse(bytes, refusal, iteration),
        };
        if data.is_empty() {
            return;
        }
        let frame = iteration.out.pool.copy(data);
        let at = iteration.reached();
        self.perform_actions(at, &Actions::read(&slots), frame, in_port, iteration);
    }

    fn spec_statistics(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        let xid = be32(bytes, 4).to_be_bytes();
        let kind = be16(bytes, 8);
        let costs = self.costs.control().clone();
        let reply = self.reply(message::STATS_REPLY, xid).u16(kind).u16(0);
        let body = &bytes[12..];
        let reply = match kind {
            0 => {
                iteration.cost_ps += costs.description_ps;
                super::statistics::description(reply)
            }
            1 | 2 if body.len() < 44 => return self.refuse(bytes, error::BAD_LENGTH, iteration),
            1 => {
                let chosen = self.chosen_flows(body);
                let entries_ps = costs.flow_statistics_entry_ps * chosen.len() as i64;
                let reply = chosen
                    .iter()
                    .fold(reply, |reply, entry| self.spec_flow(reply, entry));
                iteration.cost_ps += costs.flow_statistics_ps + entries_ps;
                reply
            }
            2 => {
                let chosen = self.chosen_flows(body);
                let packets: u64 = chosen.iter().map(|entry| entry.packets).sum();
                let sum: u64 = chosen.iter().map(|entry| entry.bytes.unsigned_abs()).sum();
                let count = chosen.len() as u32;
                iteration.cost_ps += costs.flow_statistics_ps;
                reply.u64(packets).u64(sum).u32(count).zeros(4)
            }
            3 => {
                iteration.cost_ps += costs.table_statistics_ps;
                reply
                    .zeros(4)
                    .text("classifier", 32)
                    .u32(wildcards::ALL)
                    .u32(self.tables.table.capacity() as u32)
                    .bytes(&self.tables.table.count().to_be_bytes())
                    .u64(self.tables.table.lookups())
                    .u64(self.tables.table.matched())
            }
            4 if body.len() < 8 => return self.refuse(bytes, error::BAD_LENGTH, iteration),
            4 => match self.chosen_ports(be16(body, 0)) {
                Some(ports) => self.ports(reply, ports, iteration),
                None => return self.refuse(bytes, error::BAD_STATISTICS, iteration),
            },
            5 => reply, // there are no queues
            0xffff => return self.refuse(bytes, error::BAD_VENDOR, iteration),
            _ => return self.refuse(bytes, error::BAD_STATISTICS, iteration),
        };
        self.send(MemoryClass::Roomy, reply, iteration);
    }

    /// Entries that the body of a request means: those that its match covers, in its table, that send to its port.
    fn chosen_flows(&self, body: &[u8]) -> Vec<EntryView<'_>> {
        let wanted = Match::read(body).normalised();
        let (table, out_port) = (body[MATCH_BYTES], be16(body, MATCH_BYTES + 2));
        self.tables
            .table
            .views()
            .enumerate()
            .filter(|(index, entry)| {
                matches!(table, 0 | 0xff)
                    && wanted.covers(&Match::read(&entry.head[field::MATCH..]).normalised())
                    && self.tables.table.outputs_to(*index, out_port)
            })
            .map(|(_, entry)| entry)
            .collect()
    }

    fn spec_flow(&self, reply: MessageBuilder, entry: &EntryView) -> MessageBuilder {
        let actions = super::statistics::stored_actions(entry);
        let length = |slot: &[u8]| usize::from(be16(slot, 2)).min(SLOT_BYTES);
        let action_bytes: usize = actions.clone().map(length).sum();
        let reply = reply
            .u16((88 + action_bytes) as u16)
            .zeros(2)
            .bytes(&entry.head[field::MATCH..field::MATCH + MATCH_BYTES])
            .u32(self.time.age_s(entry.installed))
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
}

/// Returns the versions that the elements of a HELLO name, if they do: bit 1 is 1.0, bit 4 is 1.3.
fn version_bitmap(hello: &[u8]) -> Option<u32> {
    let mut rest = hello.get(HEADER_BYTES..)?;
    while rest.len() >= 4 {
        let length = usize::from(be16(rest, 2));
        if be16(rest, 0) == VERSION_BITMAP && length >= 8 {
            return Some(be32(rest, 4));
        }
        rest = rest.get(length.max(4).next_multiple_of(8)..)?;
    }
    None
}
