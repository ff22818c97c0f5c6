//! `FLOW_MOD` and timeouts as OpenFlow 1.0.1 describes them (section 4.6): what `quirks = "spec"` puts in the place of
//! the firmware's. The table has the same size and four action slots for each entry.

use super::message::{FlowMod, RemovedFlow};
use super::{Expired, FlowTable, TableEntry, ACTION_BYTES};
use crate::actions::{Actions, SLOTS, SLOT_BYTES};
use crate::matching::Found;
use crate::port::PORTS;
use crate::quirks::Quirk;
use crate::time::Instant;
use of_switch::v1_0::{FlowCommand, FlowRequest};
use openflow::bytes::{be16, be32};
use openflow::ethernet::ARP;
use openflow::v1_0::flow_mod::{field, FLOW_MOD_BYTES, NO_BUFFER};
use openflow::v1_0::{action, error, port, wildcards, Match};
use openflow::ErrorCode;
use openflow::FlowRemovedReason;

/// Checks an action list. Returns the slots that hold it.
pub(crate) fn check_actions(
    mut list: &[u8],
    packet_out: bool,
) -> Result<[u8; ACTION_BYTES], ErrorCode> {
    let mut slots = [0; ACTION_BYTES];
    let mut count = 0;
    while !list.is_empty() {
        let (kind, length) = (be16(list, 0), usize::from(be16(list, 2)));
        let expected = match kind {
            action::ENQUEUE => return Err(error::BAD_ACTION_QUEUE),
            action::VENDOR => return Err(error::BAD_ACTION_VENDOR),
            _ => action::length(kind),
        };
        let Some(expected) = expected else {
            return Err(error::BAD_ACTION_TYPE);
        };
        if length != expected || list.len() < length {
            return Err(error::BAD_ACTION_LENGTH);
        }
        if kind == action::OUTPUT {
            let known = match be16(list, 4) {
                port::TABLE => packet_out,
                port::IN_PORT | port::FLOOD | port::ALL | port::CONTROLLER => true,
                port => (1..=PORTS as u16).contains(&port),
            };
            if !known {
                return Err(error::BAD_OUT_PORT);
            }
        }
        if count == SLOTS {
            return Err(error::TOO_MANY_ACTIONS);
        }
        slots[count * SLOT_BYTES..][..length].copy_from_slice(&list[..length]);
        count += 1;
        list = &list[length..];
    }
    Ok(slots)
}

/// Outcome of a `FLOW_MOD` by the specification.
#[derive(Debug)]
pub(super) struct Spec {
    /// The entries that a DELETE removed.
    pub(super) done: Result<Vec<RemovedFlow>, ErrorCode>,
    /// Entries that it selected.
    pub(super) matched: usize,
    /// Whether it added an entry, or was refused doing so.
    pub(super) adds: bool,
}

impl Spec {
    /// It has done nothing, since it was refused before.
    const fn refused(refusal: ErrorCode) -> Self {
        Self {
            done: Err(refusal),
            matched: 0,
            adds: false,
        }
    }
}

/// Outcome of an ADD.
impl From<Result<(), ErrorCode>> for Spec {
    fn from(done: Result<(), ErrorCode>) -> Self {
        Self {
            done: done.map(|()| Vec::new()),
            matched: 0,
            adds: true,
        }
    }
}

/// Outcome of a DELETE.
impl From<Vec<RemovedFlow>> for Spec {
    fn from(gone: Vec<RemovedFlow>) -> Self {
        Self {
            matched: gone.len(),
            done: Ok(gone),
            adds: false,
        }
    }
}

impl FlowTable {
    /// Carries out a `FLOW_MOD`.
    pub(super) fn spec_flow_mod(&mut self, message: FlowMod, now: Instant) -> Spec {
        let head = message.head();
        let request = FlowRequest::read(head);
        match request.command() {
            Ok(FlowCommand::Add | FlowCommand::Modify)
                if be32(head, field::BUFFER) != NO_BUFFER =>
            {
                Spec::refused(error::BUFFER_UNKNOWN)
            }
            Ok(FlowCommand::Add) => self.spec_add(message, &request, now).into(),
            Ok(FlowCommand::Modify) => self.spec_modify(message, &request, now),
            Ok(FlowCommand::Delete) => self.spec_delete(&request).into(),
            Err(error) => Spec::refused(error),
        }
    }

    pub(super) fn spec_match(&self, index: usize) -> (Match, u16) {
        let head = self.head(&self.entries[index]);
        (
            Match::read(&head[field::MATCH..]).normalised(),
            be16(head, field::PRIORITY),
        )
    }

    fn spec_add(
        &mut self,
        message: FlowMod,
        request: &FlowRequest,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        if request.is_emergency() {
            return Err(error::UNSUPPORTED);
        }
        let slots_bytes = check_actions(message.actions(), false)?;
        if self.take_underflow() {
            return Ok(());
        }
        let mut replaced = None;
        for index in 0..self.entries.len() {
            let (fields, priority) = self.spec_match(index);
            if request.conflicts(&fields, priority) {
                return Err(error::OVERLAP);
            }
            if request.selects(&fields, priority) {
                replaced = Some(index);
            }
        }
        let (head_block, slots) = if let Some(index) = replaced {
            let entry = self.entries.remove(index);
            (entry.head, entry.slots)
        } else {
            if self.entries.len() >= self.capacity {
                return Err(error::ALL_TABLES_FULL);
            }
            let head = self
                .memory
                .take(FLOW_MOD_BYTES)
                .ok_or(error::ALL_TABLES_FULL)?;
            (
                head,
                self.memory
                    .take(ACTION_BYTES)
                    .ok_or(error::ALL_TABLES_FULL)?,
            )
        };
        self.memory.write(head_block, 0, message.head());
        self.memory.write(slots, 0, &slots_bytes);
        self.entries.push(TableEntry {
            head: head_block,
            slots,
            actions: Actions::read(&[]),
            packets: 0,
            bytes: 0,
            installed: now,
            matched: now,
        });
        Ok(())
    }

    /// Replaces the actions of all selected entries; without one, adds the message.
    fn spec_modify(&mut self, message: FlowMod, request: &FlowRequest, now: Instant) -> Spec {
        let slots_bytes = match check_actions(message.actions(), false) {
            Ok(slots_bytes) => slots_bytes,
            Err(refusal) => return Spec::refused(refusal),
        };
        let mut matched = 0;
        for index in 0..self.entries.len() {
            let (fields, priority) = self.spec_match(index);
            if request.selects(&fields, priority) {
                matched += 1;
                let slots = self.entries[index].slots;
                self.memory.write(slots, 0, &slots_bytes);
            }
        }
        if matched == 0 {
            return self.spec_add(message, request, now).into();
        }
        Spec {
            done: Ok(Vec::new()),
            matched,
            adds: false,
        }
    }

    fn spec_delete(&mut self, request: &FlowRequest) -> Vec<RemovedFlow> {
        let mut gone = Vec::new();
        let mut index = 0;
        while index < self.entries.len() {
            let (fields, priority) = self.spec_match(index);
            if request.selects(&fields, priority) && self.outputs_to(index, request.out_port) {
                gone.push(self.take_out(index));
            } else {
                index += 1;
            }
        }
        gone
    }

    /// Returns whether an entry sends to `out_port`, if that restricts at all.
    pub(crate) fn outputs_to(&self, index: usize, out_port: u16) -> bool {
        let slots = self.memory.read(self.entries[index].slots, ACTION_BYTES);
        out_port == port::NONE
            || slots.chunks_exact(SLOT_BYTES).any(|slot| {
                be16(slot, 2) != 0 && be16(slot, 0) == action::OUTPUT && be16(slot, 4) == out_port
            })
    }

    fn take_out(&mut self, index: usize) -> RemovedFlow {
        let flow = self.removed_flow(index);
        let entry = self.entries.remove(index);
        self.memory.free(entry.head);
        self.memory.free(entry.slots);
        flow
    }

    /// Removes all entries whose own timeouts are over: none before. How long after depends on how often this is called.
    pub(super) fn spec_expire(&mut self, now: Instant) -> Vec<Expired> {
        let mut gone = Vec::new();
        let mut index = 0;
        while index < self.entries.len() {
            let entry = &self.entries[index];
            let head = self.memory.read(entry.head, FLOW_MOD_BYTES);
            let over = |since: Instant, at: usize| match be16(head, at) {
                0 => false,
                timeout_s => now.saturating_since(since).whole_seconds() >= timeout_s.into(),
            };
            let reason = if over(entry.installed, field::HARD_TIMEOUT) {
                FlowRemovedReason::Hard
            } else if over(entry.matched, field::IDLE_TIMEOUT) {
                FlowRemovedReason::Idle
            } else {
                index += 1;
                continue;
            };
            let flow = self.take_out(index);
            let wants_flow_removed = flow.wants_flow_removed();
            gone.push(Expired {
                flow,
                reason,
                wants_flow_removed,
                another_lost: false,
            });
        }
        self.rebuild();
        gone
    }

    /// Searches for a frame with these fields, of `bytes` bytes, and counts it: exact matches first, then by priority.
    pub(crate) fn spec_lookup(&mut self, fields: &Match, bytes: usize, now: Instant) -> Found {
        let mut best: Option<(u32, usize)> = None;
        for index in 0..self.entries.len() {
            let (mut wanted, priority) = self.spec_match(index);
            if self.quirks.has(Quirk::ArpFieldsUnmatched) {
                open_arp_fields(&mut wanted);
            }
            let rank = if wanted.is_exact() {
                0x1_0000
            } else {
                priority.into()
            };
            if best.is_none_or(|(highest, _)| rank > highest) && wanted.agrees(fields) {
                best = Some((rank, index));
            }
        }
        let index = best.map(|(_, index)| index);
        match index {
            Some(index) => self.record_match(index, bytes, now),
            None => self.count_lookup(),
        }
        self.search.all_examined(index)
    }
}

/// Opens operation and addresses of a match of ARP.
fn open_arp_fields(fields: &mut Match) {
    if fields.wildcards & wildcards::DL_TYPE == 0 && fields.dl_type == ARP {
        fields.wildcards |=
            wildcards::NW_PROTO | 0x3f << wildcards::NW_SRC_SHIFT | 0x3f << wildcards::NW_DST_SHIFT;
    }
}
