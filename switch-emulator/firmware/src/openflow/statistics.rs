//! Answers to statistics requests.

use super::agent::Agent;
use super::UNINITIALISED;
use crate::actions::{SLOTS, SLOT_BYTES};
use crate::event::{Event, Hang};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::port::{PortMask, PortNumber};
use crate::table::EntryView;
use openflow::bytes::{be16, be32};
use openflow::message;
use openflow::v1_0::flow_mod::field;
use openflow::v1_0::MATCH_BYTES;
use openflow::wire::MessageBuilder;

/// Entries of a flow statistics reply.
const FLOW_ENTRIES: usize = 20;
/// Memory in which the firmware writes a reply, without looking at its end.
const REPLY_BYTES: usize = 2_048;
/// Size of the table that table statistics claim.
const CLAIMED_ENTRIES: u32 = 512;

mod kind {
    pub(super) const DESC: u16 = 0;
    pub(super) const FLOW: u16 = 1;
    pub(super) const TABLE: u16 = 3;
    pub(super) const PORT: u16 = 4;
}

impl Agent {
    /// Answers the `STATS_REQUEST` at the beginning of `bytes`, if it is of a known type.
    pub(super) fn statistics(&mut self, bytes: &[u8], iteration: &mut LoopIteration) {
        let xid = be32(bytes, 4).to_be_bytes();
        let kind = be16(bytes, 8);
        let costs = self.costs.control().clone();
        let reply = self.reply(message::STATS_REPLY, xid).u16(kind).u16(0);
        let (buffer, cost_ps, reply) = match kind {
            kind::DESC => {
                let reply = MessageBuilder::new(bytes[0], message::STATS_REPLY, xid)
                    .u16(kind)
                    .u16(0);
                (MemoryClass::Exact, costs.description_ps, description(reply))
            }
            kind::FLOW if self.foreign_entries() > 0 => {
                return self.hang(iteration.began, Hang::ForeignEntries, iteration);
            }
            kind::FLOW => {
                let reply = self.flows(reply);
                let cost_ps = self.flow_statistics_ps();
                if reply.len() > REPLY_BYTES {
                    iteration.cost_ps += cost_ps;
                    self.halted = true;
                    let length_bytes = reply.len() as u16;
                    return iteration
                        .out
                        .event(iteration.began, Event::StatsReplyOverrun { length_bytes });
                }
                (MemoryClass::Roomy, cost_ps, reply)
            }
            kind::TABLE => {
                let reply = reply
                    .u8(0)
                    .bytes(&[UNINITIALISED; 3 + 32 + 4])
                    .u32(CLAIMED_ENTRIES)
                    .bytes(&self.tables.table.count().to_be_bytes())
                    .u64(self.tables.table.lookups())
                    .u64(self.tables.table.matched());
                (MemoryClass::Roomy, costs.table_statistics_ps, reply)
            }
            kind::PORT => return self.port_statistics(reply, be16(bytes, 12), iteration),
            kind => {
                return iteration.out.event(
                    iteration.began,
                    Event::RequestIgnored {
                        version: self.version,
                        message_type: message::STATS_REQUEST,
                        statistics: Some(kind),
                    },
                )
            }
        };
        iteration.cost_ps += cost_ps;
        self.send(buffer, reply, iteration);
    }

    fn flow_statistics_ps(&self) -> i64 {
        let costs = self.costs.control();
        let entry_ps = |entry: EntryView| {
            let stored: usize = read_actions(&entry).map(|action| action.length).sum();
            costs.flow_statistics_entry_ps + costs.flow_statistics_action_ps * (stored / 8) as i64
        };
        let entries_ps: i64 = self
            .tables
            .table
            .views()
            .take(FLOW_ENTRIES)
            .map(entry_ps)
            .sum();
        costs.flow_statistics_ps + entries_ps
    }

    fn flows(&self, reply: MessageBuilder) -> MessageBuilder {
        self.tables
            .table
            .views()
            .take(FLOW_ENTRIES)
            .fold(reply, |reply, entry| self.flow(reply, &entry))
    }

    fn flow(&self, reply: MessageBuilder, entry: &EntryView) -> MessageBuilder {
        let length = 88
            + read_actions(entry)
                .map(|action| action.length)
                .sum::<usize>();
        let reply = reply
            .u16(length as u16)
            .u8(0)
            .bytes(&[UNINITIALISED; 1])
            .bytes(&entry.head[field::MATCH..field::MATCH + MATCH_BYTES])
            .u32(self.time.age_s(entry.installed))
            .u32(0)
            .u16(boot_flash(be16(entry.head, field::PRIORITY)))
            .u16(boot_flash(be16(entry.head, field::IDLE_TIMEOUT)))
            .u16(boot_flash(be16(entry.head, field::HARD_TIMEOUT)))
            .bytes(&[UNINITIALISED; 6])
            .bytes(&entry.head[field::COOKIE..field::COOKIE + 8])
            .u64(entry.packets)
            .bytes(&entry.bytes.to_be_bytes());
        read_actions(entry).fold(reply, |reply, action| {
            let kept = &action.memory[..action.length.min(action.memory.len())];
            reply.bytes(kept).zeros(action.length - kept.len())
        })
    }

    fn port_statistics(
        &mut self,
        reply: MessageBuilder,
        wanted: u16,
        iteration: &mut LoopIteration,
    ) {
        let Some(ports) = self.chosen_ports(wanted) else {
            let request = [self.version, message::STATS_REQUEST];
            self.report_refusal(&request, (1, 2), iteration);
            let error = self.reply(message::ERROR, [0; 4]).u16(1).u16(2);
            return self.notify(error, iteration);
        };
        let reply = self.ports(reply, ports, iteration);
        self.send(MemoryClass::Roomy, reply, iteration);
    }

    /// Returns the ports that a request for port statistics means.
    pub(super) fn chosen_ports(&self, wanted: u16) -> Option<PortMask> {
        match u8::try_from(wanted).ok().and_then(PortNumber::new) {
            Some(port) if self.config.flooded.contains(port) => Some(PortMask::EMPTY.with(port)),
            None if wanted == openflow::v1_0::port::NONE => Some(self.config.flooded),
            _ => None,
        }
    }

    /// Statistics of these ports.
    pub(super) fn ports(
        &mut self,
        reply: MessageBuilder,
        ports: PortMask,
        iteration: &mut LoopIteration,
    ) -> MessageBuilder {
        let costs = self.costs.control();
        iteration.cost_ps +=
            costs.port_statistics_ps + costs.port_statistics_port_ps * ports.len() as i64;
        ports.iter().fold(reply, |reply, port| {
            let index = usize::from(port.get()) - 1;
            let unread = iteration.out.hardware[index];
            let totals = self.ports.counters(port, false, unread, self.config.quirks);
            reply
                .u16(port.get().into())
                .bytes(&[UNINITIALISED; 6])
                .u64(self.ports.received[index])
                .u64(iteration.out.transmitted[index])
                .u64(totals.received_bytes)
                .u64(totals.sent_bytes)
                .u64(totals.received_dropped)
                .zeros(7 * 8)
        })
    }
}

/// An action as flow statistics read it from the slots.
struct StoredAction<'a> {
    /// Length by its own header, which may be more than a slot holds.
    length: usize,
    /// Its slot and what lies behind it.
    memory: &'a [u8],
}

/// Parses the actions of an entry as the firmware's flow statistics do: an action that is longer than its slot covers
/// those behind it, which are not read again. Empty slots are skipped.
fn read_actions<'a>(entry: &EntryView<'a>) -> impl Iterator<Item = StoredAction<'a>> {
    let (memory, mut slot) = (entry.memory, 0);
    core::iter::from_fn(move || {
        while slot < SLOTS {
            let memory = &memory[slot * SLOT_BYTES..];
            let length = usize::from(be16(memory, 2));
            slot += length.div_ceil(SLOT_BYTES).max(1);
            if length > 0 {
                return Some(StoredAction { length, memory });
            }
        }
        None
    })
}

/// Slots of an entry that are not empty.
pub(super) fn stored_actions<'a>(entry: &EntryView<'a>) -> impl Iterator<Item = &'a [u8]> + Clone {
    entry
        .slots
        .chunks_exact(SLOT_BYTES)
        .filter(|slot| be16(slot, 2) != 0)
}

pub(super) fn description(reply: MessageBuilder) -> MessageBuilder {
    reply
        .text("Northbound Networks", 256)
        .text("Zodiac-FX Rev.A", 256)
        .text("0.84", 256)
        .text("none", 32)
        .text("World's smallest OpenFlow switch!", 256)
}

/// Returns what flow statistics show for a priority or timeout: the two bytes of flash memory at that address. A
/// board's boot loader is unknown: here all is erased but the first two bytes, the low half of the initial stack
/// pointer.
const fn boot_flash(value: u16) -> u16 {
    if value == 0 {
        0x0000
    } else {
        0xffff
    }
}
