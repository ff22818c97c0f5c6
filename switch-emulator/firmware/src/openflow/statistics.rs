//! Answers to statistics requests.

use super::agent::Agent;
use super::bytes::be16;
use super::wire::{message, Message};
use crate::actions::SLOT_BYTES;
use crate::event::Event;
use crate::matching::MATCH_BYTES;
use crate::outbox::Outbox;
use crate::port::PortNumber;
use crate::table::{field, EntryView};
use crate::time::Instant;

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
    /// The answer to the `STATS_REQUEST` at the beginning of `bytes`, if there is one.
    pub(super) fn statistics(
        &mut self,
        now: Instant,
        bytes: &[u8],
        out: &mut Outbox,
    ) -> Option<Message> {
        let xid = [bytes[4], bytes[5], bytes[6], bytes[7]];
        let kind = be16(bytes, 8);
        let reply = self.reply(message::STATS_REPLY, xid).u16(kind).u16(0);
        match kind {
            kind::DESC => Some(description(
                Message::new(bytes[0], message::STATS_REPLY, xid)
                    .u16(kind)
                    .u16(0),
            )),
            kind::FLOW => {
                let reply = self.flows(reply);
                if reply.len() > REPLY_BYTES {
                    self.halted = true;
                    out.event(
                        now,
                        Event::StatsReplyOverrun {
                            length_bytes: reply.len() as u16,
                        },
                    );
                    return None;
                }
                Some(reply)
            }
            kind::TABLE => Some(
                reply
                    .u8(0)
                    .uninitialised(3 + 32 + 4)
                    .u32(CLAIMED_ENTRIES)
                    .u32(self.table.len() as u32)
                    .u64(self.table.lookups())
                    .u64(self.table.matched()),
            ),
            kind::PORT => Some(self.ports(reply, be16(bytes, 12), out)),
            _ => None,
        }
    }

    fn flows(&self, reply: Message) -> Message {
        self.table
            .views()
            .take(FLOW_ENTRIES)
            .fold(reply, |reply, entry| self.flow(reply, &entry))
    }

    fn flow(&self, reply: Message, entry: &EntryView) -> Message {
        let actions = entry
            .slots
            .chunks_exact(SLOT_BYTES)
            .filter(|slot| be16(slot, 2) != 0);
        let action_bytes = |slot: &[u8]| usize::from(be16(slot, 2)).min(SLOT_BYTES);
        let length = 88
            + actions
                .clone()
                .map(|slot| usize::from(be16(slot, 2)))
                .sum::<usize>();
        let reply = reply
            .u16(length as u16)
            .u8(0)
            .uninitialised(1)
            .bytes(&entry.head[field::MATCH..field::MATCH + MATCH_BYTES])
            .u32(self.now_s().saturating_sub(entry.installed_s))
            .u32(0)
            .u16(boot_flash(be16(entry.head, field::PRIORITY)))
            .u16(boot_flash(be16(entry.head, field::IDLE_TIMEOUT)))
            .u16(boot_flash(be16(entry.head, field::HARD_TIMEOUT)))
            .uninitialised(6)
            .bytes(&entry.head[field::COOKIE..field::COOKIE + 8])
            .u64(entry.packets.into())
            .bytes(&i64::from(entry.bytes).to_be_bytes());
        actions.fold(reply, |reply, slot| {
            let kept = action_bytes(slot);
            reply
                .bytes(&slot[..kept])
                .zeros(usize::from(be16(slot, 2)) - kept)
        })
    }

    fn ports(&self, reply: Message, wanted: u16, out: &Outbox) -> Message {
        let port = |reply: Message, port: PortNumber| {
            let index = usize::from(port.get()) - 1;
            reply
                .u16(port.get().into())
                .uninitialised(6)
                .u64(self.received[index])
                .u64(out.transmitted[index])
                .zeros(10 * 8)
        };
        if wanted == crate::actions::ports::NONE {
            return self.flooded.iter().fold(reply, port);
        }
        match u8::try_from(wanted)
            .ok()
            .and_then(PortNumber::new)
            .filter(|port| self.flooded.contains(*port))
        {
            Some(wanted) => port(reply, wanted),
            None => self.reply(message::ERROR, [0; 4]).u16(1).u16(2),
        }
    }
}

fn description(reply: Message) -> Message {
    reply
        .text("Northbound Networks", 256)
        .text("Zodiac-FX Rev.A", 256)
        .text("0.84", 256)
        .text("none", 32)
        .text("World's smallest OpenFlow switch!", 256)
}

/// What flow statistics show for a priority or timeout: not the value, but the two bytes of flash memory at the
/// address that it makes. What a board's boot loader holds there is unknown: all erased here, but for the first two
/// bytes, the low half of the initial stack pointer.
const fn boot_flash(value: u16) -> u16 {
    if value == 0 {
        0x0000
    } else {
        0xffff
    }
}
