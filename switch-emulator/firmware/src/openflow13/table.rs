//! The entries of all ten tables, in one list, and what `FLOW_MOD` does to them (quirks 118 to 128 and 132 to 139).

use super::header::Header;
use super::instructions::Program;
use super::matching::{compile, Test};
use super::selection::selects;
use crate::block_pool::{BlockPool, PoolBlock};
use crate::profile::OpenFlow13Costs;
use openflow::bytes::{be16, be32, be64};
use openflow::v1_3::flow_mod::{field, flag, ALL_TABLES, FLOW_MOD_BYTES};
use openflow::v1_3::{error, port};
use openflow::FlowRemovedReason;

/// Tables of the board.
pub(super) const TABLES: usize = 10;
/// Entries that all tables together hold at most.
pub(super) const MAX_ENTRIES: usize = 512;
/// Flags of a `FLOW_MOD` that the firmware takes for the overlap check, and for resetting counters (quirk 126).
const CHECK_OVERLAP: u16 = 0x0200;
const RESET_COUNTS: u16 = 0x0400;

/// Returns the length of a match with its header, padded to a multiple of eight bytes.
pub(super) const fn padded(match_bytes: usize) -> usize {
    match_bytes.next_multiple_of(8)
}

/// A `FLOW_MOD` at the beginning of `bytes`, which go on behind it: the firmware reads a short one beyond its end
/// (quirk 139).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowMod13<'a> {
    bytes: &'a [u8],
    length: usize,
    received: usize,
}

impl<'a> FlowMod13<'a> {
    /// `length` is what its header says; the segment ends after the first `received` bytes.
    pub(crate) const fn new(bytes: &'a [u8], length: usize, received: usize) -> Self {
        Self {
            bytes,
            length,
            received,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn flags(&self) -> u16 {
        be16(self.bytes, field::FLAGS)
    }

    fn table(&self) -> u8 {
        self.byte(field::TABLE)
    }

    pub(super) fn priority(&self) -> u16 {
        be16(self.bytes, field::PRIORITY)
    }

    /// Returns the length of the match with its header. It is garbage, and more than any block holds, if the segment ends
    /// before it.
    fn match_bytes(&self) -> usize {
        if self.received < field::OXMS {
            return u16::MAX.into();
        }
        usize::from(be16(self.bytes, field::MATCH + 2))
    }

    /// Returns the bytes from the match's fields up to the end of the firmware's memory of the segment.
    fn oxm_area(&self) -> &'a [u8] {
        self.bytes.get(field::OXMS..).unwrap_or(&[])
    }

    /// Fields of the match; none if the match names none.
    fn oxms(&self) -> &'a [u8] {
        let length = self.match_bytes().saturating_sub(4);
        let area = self.oxm_area();
        &area[..length.min(area.len())]
    }

    /// Returns the instructions; none if the message ends before its match does, with the padding.
    fn instructions(&self) -> &'a [u8] {
        let begin = field::MATCH + padded(self.match_bytes());
        self.bytes.get(begin..self.length).unwrap_or(&[])
    }
}

/// Hits of a position in the list. Positions without an entry keep theirs (quirks 123, 127).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    packets: u16,
    bytes: i32,
}

/// One entry.
#[derive(Debug)]
pub(super) struct Entry13 {
    head_block: PoolBlock,
    oxm_block: Option<PoolBlock>,
    instruction_block: Option<PoolBlock>,
    /// The beginning of its `FLOW_MOD`.
    pub(super) head: [u8; FLOW_MOD_BYTES],
    pub(super) oxms: Vec<u8>,
    pub(super) instructions: Vec<u8>,
    tests: Vec<Test>,
    pub(super) program: Program,
    pub(super) table: u8,
    priority: u16,
    /// Agent seconds.
    pub(super) installed_s: u32,
    matched_s: u32,
}

impl Entry13 {
    pub(super) fn cookie(&self) -> u64 {
        be64(&self.head, field::COOKIE)
    }

    pub(super) fn half(&self, at: usize) -> u16 {
        be16(&self.head, at)
    }

    /// Returns the length of its `FLOW_MOD`.
    pub(super) fn message_bytes(&self) -> usize {
        usize::from(be16(&self.head, 2))
    }

    pub(super) fn match_bytes(&self) -> usize {
        usize::from(be16(&self.head, field::MATCH + 2))
    }

    /// Returns whether it is to be told when the entry goes.
    pub(super) fn wants_flow_removed(&self) -> bool {
        self.half(field::FLAGS) & flag::SEND_FLOW_REMOVED != 0
    }
}

/// An entry, its place, and how much it was used.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryView13<'a> {
    pub(super) entry: &'a Entry13,
    pub(super) packets: u16,
    pub(super) bytes: i32,
}

/// Outcome of a `FLOW_MOD`.
#[derive(Debug, Default)]
pub(crate) struct FlowMod13Outcome {
    /// Error with this type and code.
    pub(crate) refused: Option<(u16, u16)>,
    /// `FLOW_REMOVED` messages.
    pub(crate) flow_removed: Vec<Vec<u8>>,
    pub(crate) cost_ps: i64,
    /// The command is one that the firmware passes over (quirks 118, 119).
    pub(crate) ignored: Option<u8>,
}

/// Counters of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableCounters {
    pub(super) lookups: i32,
    pub(super) matches: i32,
}

/// Result of a table search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableMatch {
    pub(super) position: Option<usize>,
    /// Entries compared with the frame.
    pub(super) examined: u64,
    pub(super) cost_ps: i64,
}

/// The list of entries.
#[derive(Debug)]
pub(super) struct Entries {
    list: Vec<Entry13>,
    used: Vec<Used>,
    pub(super) tables: [TableCounters; TABLES],
    /// Positions of each table's entries, ascending.
    positions: [Vec<usize>; TABLES],
}

impl Entries {
    pub(super) fn new() -> Self {
        Self {
            list: Vec::new(),
            used: vec![Used::default(); MAX_ENTRIES + 1],
            tables: [TableCounters::default(); TABLES],
            positions: Default::default(),
        }
    }

    /// Erases entries and counters. The pool is the caller's.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.used.fill(Used::default());
        self.tables = Default::default();
        self.index();
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn entry(&self, position: usize) -> &Entry13 {
        &self.list[position]
    }

    pub(super) fn views(&self) -> impl Iterator<Item = EntryView13<'_>> {
        self.list
            .iter()
            .zip(&self.used)
            .map(|(entry, used)| EntryView13 {
                entry,
                packets: used.packets,
                bytes: used.bytes,
            })
    }

    /// Entries of a table.
    pub(super) fn count(&self, table: usize) -> usize {
        self.positions[table].len()
    }

    fn index(&mut self) {
        for positions in &mut self.positions {
            positions.clear();
        }
        for (position, entry) in self.list.iter().enumerate() {
            self.positions[usize::from(entry.table)].push(position);
        }
    }

    /// Carries a `FLOW_MOD` out at `now_s` agent seconds.
    pub(super) fn flow_mod(
        &mut self,
        pool: &mut BlockPool,
        message: FlowMod13,
        now_s: u32,
        costs: &OpenFlow13Costs,
    ) -> FlowMod13Outcome {
        let mut outcome = FlowMod13Outcome::default();
        match message.byte(field::COMMAND) {
            0 => {
                outcome.refused = self
                    .add(pool, message, now_s, costs, &mut outcome.cost_ps)
                    .err();
            }
            3 => self.delete(pool, message, now_s, false, costs, &mut outcome),
            4 => self.delete(pool, message, now_s, true, costs, &mut outcome),
            command => outcome.ignored = Some(command),
        }
        outcome
    }

    fn add(
        &mut self,
        pool: &mut BlockPool,
        message: FlowMod13,
        now_s: u32,
        costs: &OpenFlow13Costs,
        cost_ps: &mut i64,
    ) -> Result<(), (u16, u16)> {
        *cost_ps += costs.flow_add_ps;
        if self.list.len() == MAX_ENTRIES {
            return Err(error::TABLE_FULL);
        }
        let table = message.table();
        if usize::from(table) >= TABLES {
            return Err(error::BAD_TABLE);
        }
        *cost_ps += costs.replacement_scan_ps * self.list.len() as i64;
        let done = self.replace(pool, message).and_then(|()| {
            let entry = make(pool, message, now_s).ok_or(error::TABLE_FULL)?;
            self.list.push(entry);
            Ok(())
        });
        self.index();
        done
    }

    /// Removes the entries that a new one replaces. Their counters go to the position behind the last entry, where the
    /// new one finds them.
    fn replace(&mut self, pool: &mut BlockPool, message: FlowMod13) -> Result<(), (u16, u16)> {
        let mut position = 0;
        while position < self.list.len() {
            let entry = &self.list[position];
            if is_beside(entry, message) && begins_with(entry, message) {
                if message.flags() & CHECK_OVERLAP != 0 {
                    return Err(error::OVERLAP);
                }
                let used = self.used[position];
                self.remove(pool, position);
                if message.flags() & RESET_COUNTS == 0 {
                    self.used[self.list.len()] = used;
                }
            }
            // The entry that has moved into the gap is skipped.
            position += 1;
        }
        Ok(())
    }

    fn remove(&mut self, pool: &mut BlockPool, position: usize) {
        let removed = self.list.swap_remove(position);
        let others = [removed.oxm_block, removed.instruction_block];
        pool.free(removed.head_block);
        for block in others.into_iter().flatten() {
            pool.free(block);
        }
        let last = self.list.len();
        self.used[position] = self.used[last];
        self.used[last] = Used::default();
    }

    fn delete(
        &mut self,
        pool: &mut BlockPool,
        message: FlowMod13,
        now_s: u32,
        strict: bool,
        costs: &OpenFlow13Costs,
        outcome: &mut FlowMod13Outcome,
    ) {
        let anywhere = be32(message.bytes, field::OUT_PORT) == port::ANY
            && be32(message.bytes, field::OUT_GROUP) == port::ANY;
        let by_message = message.flags() & flag::SEND_FLOW_REMOVED != 0;
        outcome.cost_ps += costs.flow_delete_ps;
        if !anywhere {
            outcome.cost_ps += costs.delete_by_port_ps * self.list.len() as i64;
            return;
        }
        let mut position = 0;
        while position < self.list.len() {
            let entry = &self.list[position];
            let (selected, cost_ps) = if strict {
                strictly_selected(entry, message, costs)
            } else {
                (
                    is_meant(entry, message)
                        && selects(message.oxms(), &entry.oxms, entry.memory_behind(pool)),
                    if message.oxms().is_empty() {
                        0
                    } else {
                        costs.delete_miss_ps
                    },
                )
            };
            outcome.cost_ps += cost_ps;
            if !selected {
                position += 1;
                continue;
            }
            outcome.cost_ps += costs.delete_hit_ps;
            if by_message || entry.wants_flow_removed() {
                let message = self.flow_removed(position, FlowRemovedReason::Delete, now_s);
                outcome.flow_removed.push(message);
            }
            self.remove(pool, position);
        }
        self.index();
    }

    /// Removes the first entry that has expired at `now_s` agent seconds, if there is one (quirk 187). Returns its
    /// notice if it asked for one.
    pub(super) fn expire(&mut self, pool: &mut BlockPool, now_s: u32) -> Option<Vec<u8>> {
        let is_over = |since_s: u32, timeout_s: u16| {
            timeout_s > 0 && now_s.saturating_sub(since_s) >= timeout_s.into()
        };
        let (position, reason) = self.list.iter().enumerate().find_map(|(position, entry)| {
            if is_over(entry.matched_s, entry.half(field::IDLE_TIMEOUT)) {
                Some((position, FlowRemovedReason::Idle))
            } else if is_over(entry.installed_s, entry.half(field::HARD_TIMEOUT)) {
                Some((position, FlowRemovedReason::Hard))
            } else {
                None
            }
        })?;
        let asked = self.list[position].wants_flow_removed();
        let message = asked.then(|| self.flow_removed(position, reason, now_s));
        self.remove(pool, position);
        self.index();
        message
    }

    /// A notice that an entry has gone; it is correct even where the board would write beyond its memory (quirk 188).
    fn flow_removed(&self, position: usize, reason: FlowRemovedReason, now_s: u32) -> Vec<u8> {
        let entry = &self.list[position];
        let used = self.used[position];
        let mut message = vec![0; field::MATCH + padded(entry.match_bytes()).max(8)];
        let length = message.len() as u16;
        message[..2].copy_from_slice(&[4, 11]);
        message[2..4].copy_from_slice(&length.to_be_bytes());
        message[8..16].copy_from_slice(&entry.head[field::COOKIE..field::COOKIE + 8]);
        message[16..18].copy_from_slice(&entry.priority.to_be_bytes());
        message[18..20].copy_from_slice(&[reason as u8, entry.table]);
        message[20..24].copy_from_slice(&now_s.saturating_sub(entry.installed_s).to_be_bytes());
        message[28..30].copy_from_slice(&entry.half(field::IDLE_TIMEOUT).to_be_bytes());
        message[30..32].copy_from_slice(&entry.half(field::HARD_TIMEOUT).to_be_bytes());
        message[32..40].copy_from_slice(&u64::from(used.packets).to_be_bytes());
        message[40..48].copy_from_slice(&i64::from(used.bytes).to_be_bytes());
        message[48..52].copy_from_slice(&entry.head[field::MATCH..field::OXMS]);
        let oxms = &entry.oxms[..];
        message[52..52 + oxms.len()].copy_from_slice(oxms);
        message
    }

    /// Searches a table. The entry of the highest priority wins, and among equal ones the first.
    pub(super) fn find(
        &mut self,
        table: usize,
        header: &Header,
        frame: &[u8],
        costs: &OpenFlow13Costs,
    ) -> TableMatch {
        let counters = &mut self.tables[table];
        counters.lookups = counters.lookups.wrapping_add(1);
        let positions = &self.positions[table];
        let mut cost_ps = costs.other_table_ps * (self.list.len() - positions.len()) as i64;
        let mut examined = 0;
        let mut best: Option<(usize, u16)> = None;
        for position in positions {
            let entry = &self.list[*position];
            if let Some((_, priority)) = best {
                if entry.priority <= priority {
                    cost_ps += costs.skipped_ps;
                    continue;
                }
                cost_ps += costs.after_hit_ps;
            }
            let (holds, examined_ps) = examine(entry, header, frame, costs);
            examined += 1;
            cost_ps += examined_ps;
            if holds {
                best = Some((*position, entry.priority));
            }
        }
        TableMatch {
            position: best.map(|(position, _)| position),
            examined,
            cost_ps,
        }
    }

    /// Counts a frame of `bytes` bytes for which the search of this entry's table finds it.
    #[inline]
    pub(super) fn record_match(&mut self, position: usize, bytes: usize, now_s: u32) {
        let counters = &mut self.tables[usize::from(self.list[position].table)];
        counters.lookups = counters.lookups.wrapping_add(1);
        self.use_entry(position, bytes, now_s);
    }

    /// A frame of `bytes` bytes uses an entry.
    #[inline]
    pub(super) fn use_entry(&mut self, position: usize, bytes: usize, now_s: u32) {
        let entry = &mut self.list[position];
        entry.matched_s = now_s;
        let counters = &mut self.tables[usize::from(entry.table)];
        counters.matches = counters.matches.wrapping_add(1);
        let used = &mut self.used[position];
        used.packets = used.packets.wrapping_add(1);
        used.bytes = used.bytes.wrapping_add(bytes as i32);
    }
}

/// Returns whether an entry's match holds of a frame, and what finding out costs.
fn examine(entry: &Entry13, header: &Header, frame: &[u8], costs: &OpenFlow13Costs) -> (bool, i64) {
    if entry.tests.is_empty() {
        return (true, costs.no_fields_ps);
    }
    let mut cost_ps = 0;
    for test in &entry.tests {
        let field = costs.field(*test);
        if !test.holds(header, frame) {
            return (false, cost_ps + field.fails_ps);
        }
        cost_ps += field.passes_ps;
    }
    (true, cost_ps + costs.hit_ps)
}

/// Returns whether a message that deletes means entries of this table and cookie (quirks 132, 136).
fn is_meant(entry: &Entry13, message: FlowMod13) -> bool {
    let table = message.table();
    let mask = be64(message.bytes, field::COOKIE_MASK);
    let cookie = be64(message.bytes, field::COOKIE);
    (table == ALL_TABLES || table == entry.table)
        && (mask >> 56 & 1 == 0 || entry.cookie() == cookie & mask)
}

/// Returns whether a `DELETE_STRICT` means an entry, and what finding out costs.
fn strictly_selected(entry: &Entry13, message: FlowMod13, costs: &OpenFlow13Costs) -> (bool, i64) {
    if !is_meant(entry, message) || entry.priority != message.priority() {
        return (false, costs.delete_strict_priority_ps);
    }
    (begins_with(entry, message), costs.delete_strict_ps)
}

/// Returns whether a DELETE of any port and group removes an entry.
pub(super) fn is_deleted(
    entry: &Entry13,
    message: FlowMod13,
    strict: bool,
    pool: &BlockPool,
) -> bool {
    is_meant(entry, message)
        && if strict {
            entry.priority == message.priority() && begins_with(entry, message)
        } else {
            selects(message.oxms(), &entry.oxms, entry.memory_behind(pool))
        }
}

/// Returns whether an entry has the table and the priority of a message.
pub(super) fn is_beside(entry: &Entry13, message: FlowMod13) -> bool {
    entry.priority == message.priority() && entry.table == message.table()
}

/// Returns whether the match of a message begins with that of an entry, byte by byte (quirks 124, 135).
pub(super) fn begins_with(entry: &Entry13, message: FlowMod13) -> bool {
    let area = message.oxm_area();
    if entry.oxm_block.is_none() {
        return be32(&entry.head, field::OXMS) == be32(area, 0);
    }
    area.starts_with(&entry.oxms)
}

/// Takes the blocks of a new entry. Those that were taken before one that cannot be had are lost (quirk 123).
fn make(pool: &mut BlockPool, message: FlowMod13, now_s: u32) -> Option<Entry13> {
    let mut head = [0; FLOW_MOD_BYTES];
    let known = message.bytes.len().min(FLOW_MOD_BYTES);
    head[..known].copy_from_slice(&message.bytes[..known]);
    let head_block = pool.take(FLOW_MOD_BYTES)?;
    pool.write(head_block, 0, &head);
    let mut store = |bytes: &[u8]| {
        let block = pool.take(bytes.len())?;
        pool.write(block, 0, bytes);
        Some(block)
    };
    let length = message.match_bytes().saturating_sub(4);
    let mut oxms = message.oxms().to_vec();
    oxms.resize(length, 0);
    let oxm_block = if oxms.is_empty() {
        None
    } else {
        Some(store(&oxms)?)
    };
    let instructions = message.instructions().to_vec();
    let instruction_block = if instructions.is_empty() {
        None
    } else {
        Some(store(&instructions)?)
    };
    let memory = instruction_block.map_or(&[][..], |block| pool.read_on(block));
    Some(Entry13 {
        program: Program::read(memory, instructions.len()),
        tests: compile(&oxms),
        table: message.table(),
        priority: message.priority(),
        head_block,
        oxm_block,
        instruction_block,
        head,
        oxms,
        instructions,
        installed_s: now_s,
        matched_s: now_s,
    })
}

impl Entry13 {
    /// Returns the memory behind the fields of its match, if it has any.
    pub(super) fn memory_behind<'a>(&self, pool: &'a BlockPool) -> &'a [u8] {
        self.oxm_block
            .map_or(&[], |block| &pool.read_on(block)[self.oxms.len()..])
    }
}
