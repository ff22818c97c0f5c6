//! The OpenFlow 1.3 switch of the firmware: ten tables in one list, groups, meters, multipart replies. No session and no
//! clock; what it shares with OpenFlow 1.0 is the agent's.
//!
//! It deviates from the standard as quirks 84 to 189 of `docs/quirks.md` say; [`spec`] does not.

mod cost;
mod diagnosis;
mod groups;
mod header;
mod instructions;
mod matching;
mod meters;
mod multipart;
mod pipeline;
mod replies;
mod rewrite;
mod selection;
pub(crate) mod spec;
mod table;

use serde::Serialize;

use crate::block_pool::BlockPool;
use crate::profile::OpenFlow13Costs;
use groups::Groups;
use meters::Meters;
use multipart::FlowParts;
use of_switch::MatchedEntries;
use replies::Replies;
use table::Entries;

pub(crate) use multipart::{description, Answer, PortCounters, PortDescription, Surroundings};
pub(crate) use pipeline::{tail_bit, EffectKind, PipelineRun};
pub(crate) use table::{FlowMod13, FlowMod13Outcome};

/// The clocks of the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableClock {
    /// Agent seconds.
    pub(crate) now_s: u32,
    /// Milliseconds since power-up.
    pub(crate) now_ms: u64,
}

/// An entry of the OpenFlow 1.3 tables, as a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow13 {
    /// The first 56 bytes of its `FLOW_MOD`.
    pub head: Vec<u8>,
    /// The fields of its match as they were sent.
    pub oxms: Vec<u8>,
    /// Its instructions as they were sent.
    pub instructions: Vec<u8>,
    /// Frames that used it: the firmware's counter has 16 bits.
    pub packets: u64,
    /// Bytes that used it: the firmware's counter has 31 bits and a sign.
    pub bytes: i64,
}

/// The switch.
#[derive(Debug)]
pub(crate) struct Switch13 {
    costs: OpenFlow13Costs,
    pool: BlockPool,
    entries: Entries,
    groups: Groups,
    meters: Meters,
    replies: Replies,
    flow_parts: Option<FlowParts>,
}

impl Switch13 {
    /// An empty switch, which takes blocks of `pool`.
    pub(crate) fn new(costs: OpenFlow13Costs, pool: BlockPool) -> Self {
        Self {
            costs,
            pool,
            entries: Entries::new(),
            groups: Groups::new(),
            meters: Meters::default(),
            replies: Replies::new(),
            flow_parts: None,
        }
    }

    /// Erases entries, meters and groups. What they held in memory stays (quirks 170, 179, 189).
    pub(crate) fn erase(&mut self) {
        self.entries.clear();
        self.pool.free_all();
        self.meters.clear();
        self.groups.clear();
    }

    pub(crate) const fn block_pool(&self) -> &BlockPool {
        &self.pool
    }

    /// Continues with the pool as the other version has left it.
    pub(crate) fn replace_pool(&mut self, pool: &BlockPool) {
        self.pool.clone_from(pool);
    }

    /// Entries of all tables.
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Entries in the order of the list, as values.
    pub(crate) fn flows(&self) -> Vec<Flow13> {
        let view = |view: table::EntryView13| Flow13 {
            head: view.entry.head.to_vec(),
            oxms: view.entry.oxms.clone(),
            instructions: view.entry.instructions.clone(),
            packets: view.packets.into(),
            bytes: view.bytes.into(),
        };
        self.entries.views().map(view).collect()
    }

    pub(crate) const fn costs(&self) -> &OpenFlow13Costs {
        &self.costs
    }

    /// Counts a frame of `bytes` bytes for which the searches find these entries, at `now_s` agent seconds.
    #[inline]
    pub(crate) fn record_entries(&mut self, matched: MatchedEntries, bytes: usize, now_s: u32) {
        for position in matched.iter() {
            self.entries.record_match(position, bytes, now_s);
        }
    }

    /// Carries a `FLOW_MOD` out at `now_s` agent seconds.
    pub(crate) fn flow_mod(&mut self, message: FlowMod13, now_s: u32) -> FlowMod13Outcome {
        self.entries
            .flow_mod(&mut self.pool, message, now_s, &self.costs)
    }

    /// Carries out the `GROUP_MOD` of `length` bytes at the beginning of `bytes`. Returns type and code of the error if
    /// it is refused.
    pub(crate) fn group_mod(
        &mut self,
        bytes: &[u8],
        length: usize,
        now_s: u32,
    ) -> Result<(), (u16, u16)> {
        self.groups.modify(bytes, length, now_s)
    }

    /// Returns the same for a `METER_MOD`.
    pub(crate) fn meter_mod(
        &mut self,
        bytes: &[u8],
        length: usize,
        now_ms: u64,
    ) -> Result<(), (u16, u16)> {
        self.meters.modify(&mut self.pool, bytes, length, now_ms)
    }

    /// Removes an entry that has expired at `now_s` agent seconds, if there is one. Returns its notice if it asked for
    /// one.
    pub(crate) fn expire_one(&mut self, now_s: u32) -> Option<Vec<u8>> {
        self.entries.expire(&mut self.pool, now_s)
    }

    /// Loses what a segment has collected and not sent.
    pub(crate) fn forget_collected(&mut self) {
        self.replies.begin_segment();
    }

    /// Returns whether multipart replies wait for the end of the segment.
    pub(crate) const fn has_collected(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Takes the multipart replies of the segment.
    pub(crate) fn take_collected(&mut self) -> Vec<u8> {
        self.replies.take()
    }

    /// An error about what stands in the reply buffer.
    pub(crate) fn error_from_buffer(&self, (kind, code): (u16, u16)) -> Vec<u8> {
        self.replies.error(kind, code)
    }

    /// Builds a `PACKET_IN` in the reply buffer.
    pub(crate) fn packet_in(
        &mut self,
        in_port: u32,
        table: u8,
        cookie: u64,
        data: &[u8],
    ) -> Vec<u8> {
        self.replies.packet_in(in_port, table, cookie, data)
    }
}
