//! The entries of all tables and what `FLOW_MOD` does to them (OpenFlow 1.3.4, sections 5.2 to 5.5, 6.4, and 7.3.4.1).

use super::actions::Scope;
use super::groups::SpecGroups;
use super::instructions::SpecProgram;
use super::{Ids, Limits, Memory, Observer, PipelineStep};
use crate::PortSets;
use openflow::bytes::{be16, be32, be64};
use openflow::v1_3::error;
use openflow::v1_3::flow_mod::{field, flag, ALL_TABLES, FLOW_MOD_BYTES};
use openflow::v1_3::port::ANY;
use openflow::v1_3::OxmMatch;
use openflow::v1_3::ParsedPacket;
use openflow::ErrorCode;
use openflow::FlowRemovedReason;

const NS_PER_S: u64 = 1_000_000_000;

/// The memory of an entry.
#[derive(Clone, Copy, Debug)]
struct Blocks<B> {
    head: B,
    match_fields: Option<B>,
    instructions: Option<B>,
}

impl<B: Copy> Blocks<B> {
    fn take(
        memory: &mut impl Memory<Block = B>,
        match_bytes: usize,
        instruction_bytes: usize,
    ) -> Option<Self> {
        let mut taken: Vec<B> = Vec::new();
        for bytes in [FLOW_MOD_BYTES, match_bytes, instruction_bytes] {
            if bytes == 0 {
                continue;
            }
            let Some(block) = memory.take(bytes) else {
                for block in taken {
                    memory.free(block);
                }
                return None;
            };
            taken.push(block);
        }
        let mut taken = taken.into_iter();
        let head = taken.next()?;
        let match_fields = if match_bytes > 0 { taken.next() } else { None };
        Some(Self {
            head,
            match_fields,
            instructions: taken.next(),
        })
    }

    fn free(self, memory: &mut impl Memory<Block = B>) {
        let others = [self.match_fields, self.instructions];
        memory.free(self.head);
        for block in others.into_iter().flatten() {
            memory.free(block);
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub struct SpecEntry<B> {
    blocks: Blocks<B>,
    pub(super) table: u8,
    pub(super) priority: u16,
    pub(super) cookie: u64,
    pub(super) idle_timeout_s: u16,
    pub(super) hard_timeout_s: u16,
    pub(super) flags: u16,
    pub(super) fields: OxmMatch,
    /// The beginning of its message, as it was sent.
    pub head: [u8; FLOW_MOD_BYTES],
    /// The fields of its match, as they were sent.
    pub oxms: Vec<u8>,
    /// Its instructions, as they were sent.
    pub instructions: Vec<u8>,
    pub(super) program: SpecProgram,
    /// Frames that used it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    pub(super) installed_ns: u64,
    matched_ns: u64,
}

/// An entry that has gone.
#[derive(Clone, Debug)]
pub struct Removed<B> {
    entry: SpecEntry<B>,
    reason: FlowRemovedReason,
}

impl<B> Removed<B> {
    /// Returns whether its flags ask for `FLOW_REMOVED`.
    pub const fn wants_flow_removed(&self) -> bool {
        self.entry.flags & flag::SEND_FLOW_REMOVED != 0
    }

    /// Returns the number of the reason.
    pub const fn reason(&self) -> u8 {
        self.reason as u8
    }

    /// Body of `FLOW_REMOVED`.
    pub fn flow_removed(&self, now_ns: u64) -> Vec<u8> {
        let entry = &self.entry;
        let mut body = Vec::new();
        body.extend(entry.cookie.to_be_bytes());
        body.extend(entry.priority.to_be_bytes());
        body.extend([self.reason as u8, entry.table]);
        put_age(&mut body, now_ns.saturating_sub(entry.installed_ns));
        body.extend(entry.idle_timeout_s.to_be_bytes());
        body.extend(entry.hard_timeout_s.to_be_bytes());
        body.extend(entry.packets.to_be_bytes());
        body.extend(entry.bytes.to_be_bytes());
        put_match(&mut body, &entry.oxms);
        body
    }
}

/// Writes an age in seconds and nanoseconds.
pub(super) fn put_age(record: &mut Vec<u8>, age_ns: u64) {
    record.extend(((age_ns / NS_PER_S) as u32).to_be_bytes());
    record.extend(((age_ns % NS_PER_S) as u32).to_be_bytes());
}

/// Writes a match with its header and padding.
pub(super) fn put_match(body: &mut Vec<u8>, oxms: &[u8]) {
    let length = 4 + oxms.len();
    let end = body.len() + length.next_multiple_of(8);
    body.extend([0, 1]);
    body.extend((length as u16).to_be_bytes());
    body.extend(oxms);
    body.resize(end, 0);
}

/// Which entries a message means.
pub(super) struct Filter {
    table: u8,
    out_port: u32,
    out_group: u32,
    cookie: u64,
    cookie_mask: u64,
    fields: OxmMatch,
    /// The priority, if match and priority have to be the same.
    strict: Option<u16>,
}

impl Filter {
    /// Reads that of a `FLOW_MOD` with these fields that changes or deletes entries.
    fn of_flow_mod(message: &[u8], fields: OxmMatch) -> Self {
        let command = message[field::COMMAND];
        let only_of_deletes = |at: usize| match command {
            3 | 4 => be32(message, at),
            _ => ANY,
        };
        Self {
            table: message[field::TABLE],
            out_port: only_of_deletes(field::OUT_PORT),
            out_group: only_of_deletes(field::OUT_GROUP),
            cookie: be64(message, field::COOKIE),
            cookie_mask: be64(message, field::COOKIE_MASK),
            fields,
            strict: matches!(command, 2 | 4).then(|| be16(message, field::PRIORITY)),
        }
    }

    /// Reads that of a request for statistics, whose body begins at `body`.
    pub(super) fn of_request(body: &[u8], tables: u8) -> Result<Self, ErrorCode> {
        if body.len() < 40 {
            return Err(error::BAD_LENGTH);
        }
        let (fields, ..) = OxmMatch::read(&body[32..])?;
        let table = body[0];
        if table != ALL_TABLES && table >= tables {
            return Err(error::BAD_REQUEST_TABLE);
        }
        Ok(Self {
            table,
            out_port: be32(body, 4),
            out_group: be32(body, 8),
            cookie: be64(body, 16),
            cookie_mask: be64(body, 24),
            fields,
            strict: None,
        })
    }

    pub(super) fn means<B>(&self, entry: &SpecEntry<B>) -> bool {
        let by_match = match self.strict {
            None => self.fields.covers(&entry.fields),
            Some(priority) => entry.priority == priority && self.fields.equals(&entry.fields),
        };
        by_match
            && (self.table == ALL_TABLES || self.table == entry.table)
            && (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && (self.out_port == ANY || entry.program.sends_to_port(self.out_port))
            && (self.out_group == ANY || entry.program.sends_to_group(self.out_group))
    }
}

/// Counters of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpecTableCounters {
    pub(super) lookups: u64,
    pub(super) matches: u64,
}

/// The entries.
#[derive(Debug)]
pub(super) struct Flows<B> {
    list: Vec<SpecEntry<B>>,
    pub(super) tables: Vec<SpecTableCounters>,
}

/// References that the entries of a message may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) ports: PortSets,
    pub(super) limits: Limits,
    pub(super) groups: &'a SpecGroups,
    pub(super) meters: &'a dyn Ids,
}

impl<B: Copy> Flows<B> {
    pub(super) fn new(tables: u8) -> Self {
        Self {
            list: Vec::new(),
            tables: vec![SpecTableCounters::default(); tables.into()],
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.tables.len() as u8);
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SpecEntry<B>> {
        self.list.iter()
    }

    pub(super) fn entry(&self, position: usize) -> &SpecEntry<B> {
        &self.list[position]
    }

    /// Removes what `is_meant`.
    pub(super) fn remove_where(
        &mut self,
        memory: &mut impl Memory<Block = B>,
        reason: FlowRemovedReason,
        is_meant: impl Fn(&SpecEntry<B>) -> bool,
    ) -> Vec<Removed<B>> {
        let mut gone = Vec::new();
        let mut position = 0;
        while position < self.list.len() {
            if is_meant(&self.list[position]) {
                let entry = self.list.remove(position);
                entry.blocks.free(memory);
                gone.push(Removed { entry, reason });
            } else {
                position += 1;
            }
        }
        gone
    }

    /// Removes all entries whose timeouts are over.
    pub(super) fn expire(
        &mut self,
        memory: &mut impl Memory<Block = B>,
        now_ns: u64,
    ) -> Vec<Removed<B>> {
        let over = |since_ns: u64, timeout_s: u16| {
            timeout_s > 0 && now_ns.saturating_sub(since_ns) / NS_PER_S >= timeout_s.into()
        };
        let mut gone = self.remove_where(memory, FlowRemovedReason::Hard, |entry| {
            over(entry.installed_ns, entry.hard_timeout_s)
        });
        gone.extend(self.remove_where(memory, FlowRemovedReason::Idle, |entry| {
            over(entry.matched_ns, entry.idle_timeout_s)
        }));
        gone
    }

    /// Carries out a `FLOW_MOD`. Returns the entries that a DELETE removes.
    pub(super) fn flow_mod(
        &mut self,
        memory: &mut impl Memory<Block = B>,
        message: &[u8],
        known: Known,
        now_ns: u64,
    ) -> Result<Vec<Removed<B>>, ErrorCode> {
        if message.len() < FLOW_MOD_BYTES {
            return Err(error::BAD_LENGTH);
        }
        let (command, table) = (message[field::COMMAND], message[field::TABLE]);
        let (fields, oxms, padded) = OxmMatch::read(&message[field::MATCH..])?;
        let instructions = &message[field::MATCH + padded..];
        let deletes = matches!(command, 3 | 4);
        if table >= known.limits.tables && !(deletes && table == ALL_TABLES) {
            return Err(error::BAD_TABLE);
        }
        let flags = be16(message, field::FLAGS);
        if flags & !flag::ALL != 0 {
            return Err(error::BAD_FLOW_FLAGS);
        }
        let priority = be16(message, field::PRIORITY);
        if deletes {
            let filter = Filter::of_flow_mod(message, fields);
            return Ok(
                self.remove_where(memory, FlowRemovedReason::Delete, |entry| {
                    filter.means(entry)
                }),
            );
        }
        if command > 2 {
            return Err(error::BAD_FLOW_COMMAND);
        }
        // There are no buffers.
        if be32(message, field::BUFFER) != ANY {
            return Err(error::BUFFER_UNKNOWN);
        }
        let scope = Scope {
            ports: known.ports,
            groups: Some(known.groups),
            to_tables: false,
        };
        let program = SpecProgram::read(
            instructions,
            (table, known.limits.tables),
            scope,
            known.meters,
            fields.known(),
        )?;
        if command != 0 {
            let filter = Filter::of_flow_mod(message, fields);
            return self
                .modify(memory, &filter, instructions, &program, flags)
                .map(|()| Vec::new());
        }
        let lengths = (oxms.len(), instructions.len());
        let (same, blocks) = self.make_room(
            memory,
            (table, priority),
            &fields,
            flags,
            lengths,
            known.limits,
        )?;
        let mut head = [0; FLOW_MOD_BYTES];
        head.copy_from_slice(&message[..FLOW_MOD_BYTES]);
        let mut entry = SpecEntry {
            blocks,
            table,
            priority,
            cookie: be64(message, field::COOKIE),
            idle_timeout_s: be16(message, field::IDLE_TIMEOUT),
            hard_timeout_s: be16(message, field::HARD_TIMEOUT),
            flags,
            fields,
            head,
            oxms: oxms.to_vec(),
            instructions: instructions.to_vec(),
            program,
            packets: 0,
            bytes: 0,
            installed_ns: now_ns,
            matched_ns: now_ns,
        };
        if let Some(position) = same {
            let replaced = &self.list[position];
            if flags & flag::RESET_COUNTS == 0 {
                (entry.packets, entry.bytes) = (replaced.packets, replaced.bytes);
            }
            self.list[position] = entry;
        } else {
            self.list.push(entry);
        }
        Ok(Vec::new())
    }

    /// Finds the entry that a new one with this table and priority replaces, if there is one, and takes the new one's
    /// memory, for so many bytes of fields and instructions.
    fn make_room(
        &mut self,
        memory: &mut impl Memory<Block = B>,
        of: (u8, u16),
        fields: &OxmMatch,
        flags: u16,
        (match_bytes, instruction_bytes): (usize, usize),
        limits: Limits,
    ) -> Result<(Option<usize>, Blocks<B>), ErrorCode> {
        let rivals = |entry: &SpecEntry<B>| (entry.table, entry.priority) == of;
        let mut list = self.list.iter();
        if flags & flag::CHECK_OVERLAP != 0
            && list.any(|entry| rivals(entry) && entry.fields.overlaps(fields))
        {
            return Err(error::OVERLAP);
        }
        let mut list = self.list.iter();
        let same = list.position(|entry| rivals(entry) && entry.fields.equals(fields));
        if same.is_none() && self.list.len() == limits.entries {
            return Err(error::TABLE_FULL);
        }
        // The memory of an entry that is replaced is free for the new one.
        if let Some(position) = same {
            self.list[position].blocks.free(memory);
        }
        let Some(blocks) = Blocks::take(memory, match_bytes, instruction_bytes) else {
            self.restore(memory, same);
            return Err(error::TABLE_FULL);
        };
        Ok((same, blocks))
    }

    /// Takes back the memory of an entry that was freed, before anything else has taken it.
    fn restore(&mut self, memory: &mut impl Memory<Block = B>, position: Option<usize>) {
        if let Some(entry) = position.and_then(|position| self.list.get_mut(position)) {
            let lengths = (entry.oxms.len(), entry.instructions.len());
            entry.blocks = Blocks::take(memory, lengths.0, lengths.1).unwrap_or(entry.blocks);
        }
    }

    /// Returns the entries that are meant other instructions.
    fn modify(
        &mut self,
        memory: &mut impl Memory<Block = B>,
        filter: &Filter,
        instructions: &[u8],
        program: &SpecProgram,
        flags: u16,
    ) -> Result<(), ErrorCode> {
        for position in 0..self.list.len() {
            if !filter.means(&self.list[position]) {
                continue;
            }
            let table = self.list[position].table;
            if program.next_table.is_some_and(|next| next <= table) {
                return Err(error::BAD_NEXT_TABLE);
            }
            self.list[position].blocks.free(memory);
            let match_bytes = self.list[position].oxms.len();
            let Some(blocks) = Blocks::take(memory, match_bytes, instructions.len()) else {
                self.restore(memory, Some(position));
                return Err(error::TABLE_FULL);
            };
            let entry = &mut self.list[position];
            entry.blocks = blocks;
            entry.instructions = instructions.to_vec();
            entry.program = program.clone();
            if flags & flag::RESET_COUNTS != 0 {
                (entry.packets, entry.bytes) = (0, 0);
            }
        }
        Ok(())
    }

    /// Searches a table: the entry of the highest priority wins.
    pub(super) fn find(
        &mut self,
        table: u8,
        packet: &ParsedPacket,
        observer: &mut impl Observer,
    ) -> Option<usize> {
        self.tables[usize::from(table)].lookups += 1;
        let mut best: Option<(usize, u16)> = None;
        for (position, entry) in self.list.iter().enumerate() {
            if entry.table != table {
                observer.step(PipelineStep::OtherTable);
                continue;
            }
            if let Some((_, priority)) = best {
                if entry.priority <= priority {
                    observer.step(PipelineStep::Skipped);
                    continue;
                }
            }
            observer.step(PipelineStep::Examined {
                after_hit: best.is_some(),
            });
            if matches(&entry.fields, packet, observer) {
                best = Some((position, entry.priority));
            }
        }
        best.map(|(position, _)| position)
    }

    /// Counts a frame of `bytes` bytes for which the search of this entry's table finds it.
    #[inline]
    pub(super) fn record_match(&mut self, position: usize, bytes: usize, now_ns: u64) {
        self.tables[usize::from(self.list[position].table)].lookups += 1;
        self.use_entry(position, bytes, now_ns);
    }

    /// A frame of `bytes` bytes uses an entry.
    #[inline]
    pub(super) fn use_entry(&mut self, position: usize, bytes: usize, now_ns: u64) {
        let entry = &mut self.list[position];
        entry.matched_ns = now_ns;
        self.tables[usize::from(entry.table)].matches += 1;
        entry.packets += u64::from(entry.flags & flag::NO_PACKET_COUNTS == 0);
        if entry.flags & flag::NO_BYTE_COUNTS == 0 {
            entry.bytes += bytes as u64;
        }
    }

    /// Entries of a table.
    pub(super) fn count(&self, table: u8) -> usize {
        self.list
            .iter()
            .filter(|entry| entry.table == table)
            .count()
    }
}

/// Returns whether a match holds of a packet.
fn matches(fields: &OxmMatch, packet: &ParsedPacket, observer: &mut impl Observer) -> bool {
    for wanted in &fields.wanted {
        let holds = packet.matches(wanted);
        observer.step(PipelineStep::Field { wanted, holds });
        if !holds {
            return false;
        }
    }
    observer.step(PipelineStep::Matched {
        fields: fields.wanted.len(),
    });
    true
}
