//! The entries of all tables and what `FLOW_MOD` does to them (OpenFlow 1.3.4, sections 5.2 to 5.5, 6.4, and 7.3.4.1). They
//! share the board's block pool, so as many fit as on the board, if none were ever lost.

use super::super::table::{TableMatch, MAX_ENTRIES, TABLES};
use super::actions::Scope;
use super::groups::SpecGroups;
use super::instructions::SpecProgram;
use super::meters::SpecMeters;
use super::{ErrorCode, PortSets};
use crate::block_pool::{BlockPool, PoolBlock};
use crate::profile::{FieldCost, OpenFlow13Costs};
use crate::time::Instant;
use openflow::bytes::{be16, be32, be64};
use openflow::v1_3::error;
use openflow::v1_3::field as oxm;
use openflow::v1_3::flow_mod::{field, flag, ALL_TABLES, FLOW_MOD_BYTES};
use openflow::v1_3::port::ANY;
use openflow::v1_3::ParsedPacket;
use openflow::v1_3::{kind, OxmMatch, Wanted};
use openflow::FlowRemovedReason;

/// Where an entry lies in the board's memory.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    head: PoolBlock,
    match_fields: Option<PoolBlock>,
    instructions: Option<PoolBlock>,
}

impl Blocks {
    fn take(pool: &mut BlockPool, match_bytes: usize, instruction_bytes: usize) -> Option<Self> {
        let mut taken: Vec<PoolBlock> = Vec::new();
        for bytes in [FLOW_MOD_BYTES, match_bytes, instruction_bytes] {
            if bytes == 0 {
                continue;
            }
            let Some(block) = pool.take(bytes) else {
                for block in taken {
                    pool.free(block);
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

    fn free(self, pool: &mut BlockPool) {
        let others = [self.match_fields, self.instructions];
        pool.free(self.head);
        for block in others.into_iter().flatten() {
            pool.free(block);
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct SpecEntry {
    blocks: Blocks,
    pub(super) table: u8,
    pub(super) priority: u16,
    pub(super) cookie: u64,
    pub(super) idle_timeout_s: u16,
    pub(super) hard_timeout_s: u16,
    pub(super) flags: u16,
    pub(super) fields: OxmMatch,
    /// The beginning of its message.
    pub(super) head: [u8; FLOW_MOD_BYTES],
    /// Fields and instructions as they were sent.
    pub(super) oxms: Vec<u8>,
    pub(super) instructions: Vec<u8>,
    pub(super) program: SpecProgram,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) installed: Instant,
    matched: Instant,
}

/// An entry that has gone.
#[derive(Clone, Debug)]
pub(crate) struct Removed {
    entry: SpecEntry,
    reason: FlowRemovedReason,
}

impl Removed {
    /// Returns whether its flags ask for `FLOW_REMOVED`.
    pub(crate) const fn wants_flow_removed(&self) -> bool {
        self.entry.flags & flag::SEND_FLOW_REMOVED != 0
    }

    /// Returns the number of the reason.
    pub(crate) const fn reason(&self) -> u8 {
        self.reason as u8
    }

    /// Body of `FLOW_REMOVED`.
    pub(crate) fn flow_removed(&self, now: Instant) -> Vec<u8> {
        let entry = &self.entry;
        let age = now.saturating_since(entry.installed);
        let mut body = Vec::new();
        body.extend(entry.cookie.to_be_bytes());
        body.extend(entry.priority.to_be_bytes());
        body.extend([self.reason as u8, entry.table]);
        body.extend(age.whole_seconds().to_be_bytes());
        body.extend(((age.as_nanos() % 1_000_000_000) as u32).to_be_bytes());
        body.extend(entry.idle_timeout_s.to_be_bytes());
        body.extend(entry.hard_timeout_s.to_be_bytes());
        body.extend(entry.packets.to_be_bytes());
        body.extend(entry.bytes.to_be_bytes());
        put_match(&mut body, &entry.oxms);
        body
    }
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

/// Outcome of a `FLOW_MOD`.
#[derive(Debug)]
pub(crate) struct FlowModOutcome {
    pub(crate) done: Result<Vec<Removed>, ErrorCode>,
    pub(crate) cost_ps: i64,
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
    /// Reads that of a request for statistics, whose body begins at `body`.
    pub(super) fn of_request(body: &[u8]) -> Result<Self, ErrorCode> {
        if body.len() < 40 {
            return Err(error::BAD_LENGTH);
        }
        let (fields, ..) = OxmMatch::read(&body[32..])?;
        let table = body[0];
        if table != ALL_TABLES && usize::from(table) >= TABLES {
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

    pub(super) fn means(&self, entry: &SpecEntry) -> bool {
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
pub(super) struct Flows {
    list: Vec<SpecEntry>,
    pub(super) tables: [SpecTableCounters; TABLES],
}

/// References that the entries of a message may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) ports: PortSets,
    pub(super) groups: &'a SpecGroups,
    pub(super) meters: &'a SpecMeters,
}

impl Flows {
    pub(super) fn new() -> Self {
        Self {
            list: Vec::new(),
            tables: [SpecTableCounters::default(); TABLES],
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SpecEntry> {
        self.list.iter()
    }

    pub(super) fn entry(&self, position: usize) -> &SpecEntry {
        &self.list[position]
    }

    /// Removes what `is_meant`.
    pub(super) fn remove_where(
        &mut self,
        pool: &mut BlockPool,
        reason: FlowRemovedReason,
        is_meant: impl Fn(&SpecEntry) -> bool,
    ) -> Vec<Removed> {
        let mut gone = Vec::new();
        let mut position = 0;
        while position < self.list.len() {
            if is_meant(&self.list[position]) {
                let entry = self.list.remove(position);
                entry.blocks.free(pool);
                gone.push(Removed { entry, reason });
            } else {
                position += 1;
            }
        }
        gone
    }

    /// Removes all entries whose timeouts are over.
    pub(super) fn expire(&mut self, pool: &mut BlockPool, now: Instant) -> Vec<Removed> {
        let over = |since: Instant, timeout_s: u16| {
            timeout_s > 0 && now.saturating_since(since).whole_seconds() >= timeout_s.into()
        };
        let mut gone = self.remove_where(pool, FlowRemovedReason::Hard, |entry| {
            over(entry.installed, entry.hard_timeout_s)
        });
        gone.extend(self.remove_where(pool, FlowRemovedReason::Idle, |entry| {
            over(entry.matched, entry.idle_timeout_s)
        }));
        gone
    }

    /// Carries out a `FLOW_MOD`.
    pub(super) fn flow_mod(
        &mut self,
        pool: &mut BlockPool,
        message: &[u8],
        known: Known,
        now: Instant,
        costs: &OpenFlow13Costs,
    ) -> FlowModOutcome {
        let entries = self.list.len() as i64;
        let command = message.get(field::COMMAND);
        let deletes = matches!(command, Some(3 | 4));
        let mut cost_ps = match command {
            Some(3) => costs.flow_delete_ps + costs.delete_miss_ps * entries,
            Some(4) => costs.flow_delete_ps + costs.delete_strict_ps * entries,
            _ => costs.flow_add_ps + costs.replacement_scan_ps * entries,
        };
        let done = self.carry_out(pool, message, known, now);
        if let (true, Ok(gone)) = (deletes, &done) {
            cost_ps += costs.delete_hit_ps * gone.len() as i64;
        }
        FlowModOutcome { done, cost_ps }
    }

    fn carry_out(
        &mut self,
        pool: &mut BlockPool,
        message: &[u8],
        known: Known,
        now: Instant,
    ) -> Result<Vec<Removed>, ErrorCode> {
        if message.len() < FLOW_MOD_BYTES {
            return Err(error::BAD_LENGTH);
        }
        let (command, table) = (message[field::COMMAND], message[field::TABLE]);
        let (fields, oxms, padded) = OxmMatch::read(&message[field::MATCH..])?;
        let instructions = &message[field::MATCH + padded..];
        let deletes = matches!(command, 3 | 4);
        if usize::from(table) >= TABLES && !(deletes && table == ALL_TABLES) {
            return Err(error::BAD_TABLE);
        }
        let flags = be16(message, field::FLAGS);
        if flags & !flag::ALL != 0 {
            return Err(error::BAD_FLOW_FLAGS);
        }
        let priority = be16(message, field::PRIORITY);
        let filter = |strict: bool, fields: OxmMatch| Filter {
            table,
            out_port: if deletes {
                be32(message, field::OUT_PORT)
            } else {
                ANY
            },
            out_group: if deletes {
                be32(message, field::OUT_GROUP)
            } else {
                ANY
            },
            cookie: be64(message, field::COOKIE),
            cookie_mask: be64(message, field::COOKIE_MASK),
            fields,
            strict: strict.then_some(priority),
        };
        if deletes {
            let filter = filter(command == 4, fields);
            return Ok(
                self.remove_where(pool, FlowRemovedReason::Delete, |entry| filter.means(entry))
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
        let program = SpecProgram::read(instructions, table, scope, known.meters, fields.known())?;
        if command != 0 {
            let filter = filter(command == 2, fields);
            return self
                .modify(pool, &filter, instructions, &program, flags)
                .map(|()| Vec::new());
        }
        let lengths = (oxms.len(), instructions.len());
        let (same, blocks) = self.make_room(pool, (table, priority), &fields, flags, lengths)?;
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
            installed: now,
            matched: now,
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
        pool: &mut BlockPool,
        of: (u8, u16),
        fields: &OxmMatch,
        flags: u16,
        (match_bytes, instruction_bytes): (usize, usize),
    ) -> Result<(Option<usize>, Blocks), ErrorCode> {
        let rivals = |entry: &SpecEntry| (entry.table, entry.priority) == of;
        let mut list = self.list.iter();
        if flags & flag::CHECK_OVERLAP != 0
            && list.any(|entry| rivals(entry) && entry.fields.overlaps(fields))
        {
            return Err(error::OVERLAP);
        }
        let mut list = self.list.iter();
        let same = list.position(|entry| rivals(entry) && entry.fields.equals(fields));
        if same.is_none() && self.list.len() == MAX_ENTRIES {
            return Err(error::TABLE_FULL);
        }
        // The memory of an entry that is replaced is free for the new one.
        if let Some(position) = same {
            self.list[position].blocks.free(pool);
        }
        let Some(blocks) = Blocks::take(pool, match_bytes, instruction_bytes) else {
            self.restore(pool, same);
            return Err(error::TABLE_FULL);
        };
        Ok((same, blocks))
    }

    /// Takes back the memory of an entry that was freed, before anything else has taken it.
    fn restore(&mut self, pool: &mut BlockPool, position: Option<usize>) {
        if let Some(entry) = position.and_then(|position| self.list.get_mut(position)) {
            let lengths = (entry.oxms.len(), entry.instructions.len());
            entry.blocks = Blocks::take(pool, lengths.0, lengths.1).unwrap_or(entry.blocks);
        }
    }

    /// Returns the entries that are meant other instructions.
    fn modify(
        &mut self,
        pool: &mut BlockPool,
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
            self.list[position].blocks.free(pool);
            let match_bytes = self.list[position].oxms.len();
            let Some(blocks) = Blocks::take(pool, match_bytes, instructions.len()) else {
                self.restore(pool, Some(position));
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

    /// Searches a table: the entry of the highest priority wins. It costs what the firmware's search would.
    pub(super) fn find(
        &mut self,
        table: u8,
        packet: &ParsedPacket,
        costs: &OpenFlow13Costs,
    ) -> TableMatch {
        self.tables[usize::from(table)].lookups += 1;
        let mut cost_ps = 0;
        let mut examined = 0;
        let mut best: Option<(usize, u16)> = None;
        for (position, entry) in self.list.iter().enumerate() {
            if entry.table != table {
                cost_ps += costs.other_table_ps;
                continue;
            }
            if let Some((_, priority)) = best {
                if entry.priority <= priority {
                    cost_ps += costs.skipped_ps;
                    continue;
                }
                cost_ps += costs.after_hit_ps;
            }
            let (holds, examined_ps) = examine(&entry.fields, packet, costs);
            examined += 1;
            cost_ps += examined_ps;
            if holds {
                best = Some((position, entry.priority));
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
    pub(super) fn record_match(&mut self, position: usize, bytes: usize, now: Instant) {
        self.tables[usize::from(self.list[position].table)].lookups += 1;
        self.use_entry(position, bytes, now);
    }

    /// A frame of `bytes` bytes uses an entry.
    #[inline]
    pub(super) fn use_entry(&mut self, position: usize, bytes: usize, now: Instant) {
        let entry = &mut self.list[position];
        entry.matched = now;
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

/// Returns whether a match holds of a packet, and what finding out costs.
fn examine(fields: &OxmMatch, packet: &ParsedPacket, costs: &OpenFlow13Costs) -> (bool, i64) {
    if fields.wanted.is_empty() {
        return (true, costs.no_fields_ps);
    }
    let mut cost_ps = 0;
    for wanted in &fields.wanted {
        let field = field_cost(wanted, costs);
        if !packet.matches(wanted) {
            return (false, cost_ps + field.fails_ps);
        }
        cost_ps += field.passes_ps;
    }
    (true, cost_ps + costs.hit_ps)
}

/// Returns the cost of testing a field. Fields that the firmware does not know cost as much as a similar one that it
/// knows.
fn field_cost(wanted: &Wanted, costs: &OpenFlow13Costs) -> FieldCost {
    let masked = kind(wanted.number).is_some_and(|kind| wanted.mask != kind.all());
    match wanted.number {
        oxm::IN_PORT | oxm::IN_PHY_PORT | oxm::METADATA => costs.in_port,
        oxm::ETH_DST | oxm::ETH_SRC | oxm::ARP_SHA | oxm::ARP_THA if masked => costs.eth_masked,
        oxm::ETH_DST | oxm::ARP_THA | oxm::IPV6_ND_TLL => costs.eth_dst,
        oxm::ETH_SRC | oxm::ARP_SHA | oxm::IPV6_ND_SLL => costs.eth_src,
        oxm::ETH_TYPE | oxm::ARP_OP => costs.eth_type,
        oxm::VLAN_VID if masked => costs.vlan_vid_masked,
        oxm::VLAN_VID => costs.vlan_vid,
        oxm::VLAN_PCP => costs.vlan_pcp,
        oxm::IP_DSCP | oxm::IP_ECN => costs.ip_dscp,
        oxm::IP_PROTO => costs.ip_proto,
        oxm::TCP_SRC | oxm::TCP_DST | oxm::SCTP_SRC | oxm::SCTP_DST => costs.tcp_port,
        oxm::UDP_SRC
        | oxm::UDP_DST
        | oxm::ICMPV4_TYPE
        | oxm::ICMPV4_CODE
        | oxm::ICMPV6_TYPE
        | oxm::ICMPV6_CODE => costs.udp_port,
        oxm::MPLS_LABEL..=oxm::MPLS_BOS | oxm::PBB_ISID => costs.mpls,
        _ if masked => costs.ipv4_masked,
        oxm::IPV4_DST | oxm::ARP_TPA | oxm::IPV6_DST => costs.ipv4_dst,
        _ => costs.ipv4_src,
    }
}
