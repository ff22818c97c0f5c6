//! Answers to statistics requests.

use super::super::context::AgentContext;
use super::super::state::AgentState;
use super::super::UNINITIALISED;
use super::Firmware10;
use crate::actions::{SLOTS, SLOT_BYTES};
use crate::event::{Event, Hang};
use crate::native::MemoryClass;
use crate::openflow13::description;
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

impl Firmware10 {
    /// Answers the `STATS_REQUEST` at the beginning of `bytes`, if it is of a known type.
    pub(super) fn statistics(&mut self, cx: &mut AgentContext, bytes: &[u8]) {
        let xid = be32(bytes, 4).to_be_bytes();
        let kind = be16(bytes, 8);
        let costs = cx.state.costs.control().clone();
        let reply = cx.state.reply(message::STATS_REPLY, xid).u16(kind).u16(0);
        let (buffer, cost_ps, reply) = match kind {
            kind::DESC => {
                let reply = MessageBuilder::new(bytes[0], message::STATS_REPLY, xid)
                    .u16(kind)
                    .u16(0);
                (
                    MemoryClass::Exact,
                    costs.description_ps,
                    reply.bytes(&description()),
                )
            }
            kind::FLOW if self.foreign_entries > 0 => {
                return cx.hang(cx.iteration.began, Hang::ForeignEntries);
            }
            kind::FLOW => {
                let reply = self.flows(cx.state, reply);
                let cost_ps = self.flow_statistics_ps(cx.state);
                if reply.len() > REPLY_BYTES {
                    cx.iteration.cost_ps += cost_ps;
                    cx.state.halted = true;
                    let length_bytes = reply.len() as u16;
                    return cx
                        .iteration
                        .event(Event::StatsReplyOverrun { length_bytes });
                }
                (MemoryClass::Roomy, cost_ps, reply)
            }
            kind::TABLE => {
                let reply = reply
                    .u8(0)
                    .bytes(&[UNINITIALISED; 3 + 32 + 4])
                    .u32(CLAIMED_ENTRIES)
                    .bytes(&self.table.count().to_be_bytes())
                    .u64(self.table.lookups())
                    .u64(self.table.matched());
                (MemoryClass::Roomy, costs.table_statistics_ps, reply)
            }
            kind::PORT => return port_statistics(cx, reply, be16(bytes, 12)),
            kind => {
                return cx.report_ignored(message::STATS_REQUEST, Some(kind));
            }
        };
        cx.iteration.cost_ps += cost_ps;
        cx.send(buffer, reply);
    }

    fn flow_statistics_ps(&self, state: &AgentState) -> i64 {
        let costs = state.costs.control();
        let entry_ps = |entry: EntryView| {
            let stored: usize = read_actions(&entry).map(|action| action.length).sum();
            costs.flow_statistics_entry_ps + costs.flow_statistics_action_ps * (stored / 8) as i64
        };
        let entries_ps: i64 = self.table.views().take(FLOW_ENTRIES).map(entry_ps).sum();
        costs.flow_statistics_ps + entries_ps
    }

    fn flows(&self, state: &AgentState, reply: MessageBuilder) -> MessageBuilder {
        self.table
            .views()
            .take(FLOW_ENTRIES)
            .fold(reply, |reply, entry| add_flow(state, reply, &entry))
    }
}

fn add_flow(state: &AgentState, reply: MessageBuilder, entry: &EntryView) -> MessageBuilder {
    let length = 88
        + read_actions(entry)
            .map(|action| action.length)
            .sum::<usize>();
    let reply = reply
        .u16(length as u16)
        .u8(0)
        .bytes(&[UNINITIALISED; 1])
        .bytes(&entry.head[field::MATCH..field::MATCH + MATCH_BYTES])
        .u32(state.time.age_s(entry.installed))
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

fn port_statistics(cx: &mut AgentContext, reply: MessageBuilder, wanted: u16) {
    let Some(ports) = chosen_ports(cx.state, wanted) else {
        let request = [cx.state.version, message::STATS_REQUEST];
        cx.report_refusal(&request, (1, 2));
        let error = cx.state.reply(message::ERROR, [0; 4]).u16(1).u16(2);
        return cx.notify(error);
    };
    let reply = add_ports(cx, reply, ports);
    cx.send(MemoryClass::Roomy, reply);
}

/// Returns the ports that a request for port statistics means.
pub(super) fn chosen_ports(state: &AgentState, wanted: u16) -> Option<PortMask> {
    match u8::try_from(wanted).ok().and_then(PortNumber::new) {
        Some(port) if state.config.flooded.contains(port) => Some(PortMask::EMPTY.with(port)),
        None if wanted == openflow::v1_0::port::NONE => Some(state.config.flooded),
        _ => None,
    }
}

/// Statistics of these ports.
pub(super) fn add_ports(
    cx: &mut AgentContext,
    reply: MessageBuilder,
    ports: PortMask,
) -> MessageBuilder {
    let costs = cx.state.costs.control();
    cx.iteration.cost_ps +=
        costs.port_statistics_ps + costs.port_statistics_port_ps * ports.len() as i64;
    ports.iter().fold(reply, |reply, port| {
        let counters = cx.state.port_counters(port, false, cx.iteration.out);
        reply
            .u16(port.get().into())
            .bytes(&[UNINITIALISED; 6])
            .u64(counters.received)
            .u64(counters.sent)
            .u64(counters.received_bytes)
            .u64(counters.sent_bytes)
            .u64(counters.received_dropped)
            .zeros(7 * 8)
    })
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
