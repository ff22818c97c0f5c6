//! The table: what messages and time do to its entries, and which one a frame uses (1.0.1, sections 3.4 and 4.6).
//!
//! A message that is refused changes nothing. In particular an entry that is to be replaced stays if the new one finds no
//! room; else it goes with its counters, and the new one is the youngest.

use super::{FlowCommand, FlowRequest};
use openflow::v1_0::{error, port, Match};
use openflow::{ErrorCode, FlowRemovedReason};

const NS_PER_S: u64 = 1_000_000_000;

/// An entry.
#[derive(Clone, Debug)]
pub struct FlowEntry<H> {
    /// The message that added it.
    pub request: FlowRequest,
    /// Frames that used it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When it was added.
    pub installed_ns: u64,
    /// When the last frame used it, or it was added.
    pub matched_ns: u64,
    /// Data that its switch keeps beside that.
    pub held: H,
}

impl<H> FlowEntry<H> {
    /// Returns whether it sends to the port with this number; true of every entry for `OFPP_NONE`, which names no port.
    pub fn sends_to<B: Backing<Held = H>>(&self, backing: &B, port: u16) -> bool {
        port == port::NONE || backing.sends_to(&self.held, port)
    }

    /// Returns which of its timeouts is over, if one is.
    pub fn overdue(&self, now_ns: u64) -> Option<FlowRemovedReason> {
        let is_over = |since_ns: u64, timeout_s: u16| {
            timeout_s > 0 && now_ns.saturating_sub(since_ns) / NS_PER_S >= timeout_s.into()
        };
        if is_over(self.installed_ns, self.request.hard_timeout_s) {
            Some(FlowRemovedReason::Hard)
        } else {
            is_over(self.matched_ns, self.request.idle_timeout_s).then_some(FlowRemovedReason::Idle)
        }
    }
}

/// The switch behind a table: which actions it can perform, and how it holds entries.
pub trait Backing {
    /// The actions of an entry, as the switch has read them.
    type Actions;
    /// Data that it keeps of an entry.
    type Held;

    /// Reads a list of actions for an entry with this match.
    ///
    /// # Errors
    ///
    /// It cannot perform them.
    fn read(&self, list: &[u8], fields: &Match) -> Result<Self::Actions, ErrorCode>;

    /// Takes a new entry, with the beginning of its message, in place of the one at position `replaced`. Returns `None` if
    /// it loses the new entry without saying so.
    ///
    /// # Errors
    ///
    /// There is no room.
    fn install(
        &mut self,
        head: &[u8],
        actions: Self::Actions,
        entries: &[FlowEntry<Self::Held>],
        replaced: Option<usize>,
        now_ns: u64,
    ) -> Result<Option<Self::Held>, ErrorCode>;

    /// Replaces the actions of the entries at some positions.
    ///
    /// # Errors
    ///
    /// There is no room.
    fn change(
        &mut self,
        entries: &mut [FlowEntry<Self::Held>],
        changes: Vec<(usize, Self::Actions)>,
    ) -> Result<(), ErrorCode>;

    /// Frees the room of an entry that has gone.
    fn release(&mut self, gone: &FlowEntry<Self::Held>, now_ns: u64);

    /// Returns whether an entry sends to the port with this number.
    fn sends_to(&self, held: &Self::Held, port: u16) -> bool;
}

/// Order of the entries. OpenFlow leaves it open; it shows in lists, and in how long a search takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryOrder {
    /// As they were added.
    Age,
    /// By rank, the highest first, then by age: a search ends at the first match.
    Rank,
}

/// Effect of a `FLOW_MOD`.
#[derive(Debug)]
pub struct FlowModDone<H> {
    /// How many entries a MODIFY has changed or a DELETE has removed.
    pub selected: usize,
    /// Those removed, in their order.
    pub gone: Vec<FlowEntry<H>>,
}

/// The table.
#[derive(Debug)]
pub struct SpecTable<H> {
    order: EntryOrder,
    /// The entries. A switch that deviates from the specification may change them itself.
    pub entries: Vec<FlowEntry<H>>,
    /// Frames looked up.
    pub lookups: u64,
    /// Frames among these that an entry matched.
    pub matches: u64,
}

impl<H> SpecTable<H> {
    /// Creates an empty table.
    #[must_use]
    pub const fn new(order: EntryOrder) -> Self {
        Self {
            order,
            entries: Vec::new(),
            lookups: 0,
            matches: 0,
        }
    }

    /// Carries out a `FLOW_MOD`: `head` is all before its `actions`.
    ///
    /// # Errors
    ///
    /// Type and code of the error that OpenFlow 1.0.1 asks for.
    pub fn flow_mod<B: Backing<Held = H>>(
        &mut self,
        backing: &mut B,
        head: &[u8],
        actions: &[u8],
        now_ns: u64,
    ) -> Result<FlowModDone<H>, ErrorCode> {
        let request = FlowRequest::read(head);
        let command = request.command()?;
        if command == FlowCommand::Delete {
            let gone = self.take_where(|entry| {
                request.selects(&entry.request.fields, entry.request.priority)
                    && entry.sends_to(backing, request.out_port)
            });
            for entry in &gone {
                backing.release(entry, now_ns);
            }
            let selected = gone.len();
            return Ok(FlowModDone { selected, gone });
        }
        if request.has_buffer() {
            return Err(error::BUFFER_UNKNOWN);
        }
        let selected = match command {
            FlowCommand::Modify => self.modify(backing, &request, actions)?,
            _ => 0,
        };
        if selected == 0 {
            self.add(backing, request, head, actions, now_ns)?;
        }
        let gone = Vec::new();
        Ok(FlowModDone { selected, gone })
    }

    fn add<B: Backing<Held = H>>(
        &mut self,
        backing: &mut B,
        request: FlowRequest,
        head: &[u8],
        actions: &[u8],
        now_ns: u64,
    ) -> Result<(), ErrorCode> {
        if request.is_emergency() {
            return Err(error::UNSUPPORTED);
        }
        let actions = backing.read(actions, &request.fields)?;
        let mut replaced = None;
        for (position, FlowEntry { request: other, .. }) in self.entries.iter().enumerate() {
            if request.conflicts(&other.fields, other.priority) {
                return Err(error::OVERLAP);
            }
            if request.selects(&other.fields, other.priority) {
                replaced = Some(position);
            }
        }
        let installed = backing.install(head, actions, &self.entries, replaced, now_ns)?;
        let Some(kept) = installed else {
            return Ok(());
        };
        if let Some(position) = replaced {
            self.entries.remove(position);
        }
        let position = match self.order {
            EntryOrder::Age => self.entries.len(),
            EntryOrder::Rank => {
                let rank = request.rank();
                self.entries
                    .partition_point(|other| other.request.rank() >= rank)
            }
        };
        let entry = FlowEntry {
            request,
            packets: 0,
            bytes: 0,
            installed_ns: now_ns,
            matched_ns: now_ns,
            held: kept,
        };
        self.entries.insert(position, entry);
        Ok(())
    }

    /// Replaces the actions of all selected entries. Returns how many these are.
    fn modify<B: Backing<Held = H>>(
        &mut self,
        backing: &mut B,
        request: &FlowRequest,
        actions: &[u8],
    ) -> Result<usize, ErrorCode> {
        let mut changes = Vec::new();
        for (position, FlowEntry { request: entry, .. }) in self.entries.iter().enumerate() {
            if request.selects(&entry.fields, entry.priority) {
                changes.push((position, backing.read(actions, &entry.fields)?));
            }
        }
        let selected = changes.len();
        backing.change(&mut self.entries, changes)?;
        Ok(selected)
    }

    /// Removes the entries that are [overdue](FlowEntry::overdue). How long after depends on how often this is called.
    pub fn expire<B: Backing<Held = H>>(
        &mut self,
        backing: &mut B,
        now_ns: u64,
    ) -> Vec<FlowEntry<H>> {
        let gone = self.take_where(|entry| entry.overdue(now_ns).is_some());
        for entry in &gone {
            backing.release(entry, now_ns);
        }
        gone
    }

    /// Removes what `is_meant`.
    fn take_where(&mut self, is_meant: impl Fn(&FlowEntry<H>) -> bool) -> Vec<FlowEntry<H>> {
        let Some(first) = self.entries.iter().position(&is_meant) else {
            return Vec::new();
        };
        if !self.entries[first + 1..].iter().any(&is_meant) {
            return vec![self.entries.remove(first)];
        }
        let (gone, mut rest): (Vec<_>, Vec<_>) = self.entries.drain(first..).partition(is_meant);
        self.entries.append(&mut rest);
        gone
    }

    /// Returns the entries that a request for statistics means: those that its match, normalised, covers, and that send to
    /// `out_port`, unless that is `OFPP_NONE`.
    pub fn chosen<'a, B: Backing<Held = H>>(
        &'a self,
        backing: &'a B,
        fields: Match,
        out_port: u16,
    ) -> impl Iterator<Item = &'a FlowEntry<H>> + 'a {
        self.entries.iter().filter(move |entry| {
            fields.covers(&entry.request.fields) && entry.sends_to(backing, out_port)
        })
    }

    /// Returns the position of the entry that is used: of those that match, the one of the highest rank; of equal ones the
    /// oldest.
    pub fn find(&self, matches: impl Fn(&FlowEntry<H>) -> bool) -> Option<usize> {
        if self.order == EntryOrder::Rank {
            return self.entries.iter().position(matches);
        }
        let mut best = None;
        for (position, entry) in self.entries.iter().enumerate() {
            let rank = entry.request.rank();
            if best.is_none_or(|(highest, _)| rank > highest) && matches(entry) {
                best = Some((rank, position));
            }
        }
        best.map(|(_, position)| position)
    }

    /// Counts a frame of `bytes` bytes that uses the entry at this position, or none.
    pub fn record(&mut self, position: Option<usize>, bytes: usize, now_ns: u64) {
        self.lookups += 1;
        let Some(entry) = position.and_then(|position| self.entries.get_mut(position)) else {
            return;
        };
        self.matches += 1;
        entry.packets += 1;
        entry.bytes += bytes as u64;
        entry.matched_ns = now_ns;
    }
}
