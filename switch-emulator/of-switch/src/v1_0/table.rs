//! The table: what messages and time do to its entries, and which one a frame uses (1.0.1, sections 3.4 and 4.6).
//!
//! A message that is refused changes nothing. In particular an entry that is to be replaced stays if the new one finds no
//! room; else it goes with its counters, and the new one is the youngest.

use std::cmp::Reverse;
use std::collections::HashMap;

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
    /// How many entries its table had been given before it.
    serial: u64,
}

impl<H> FlowEntry<H> {
    /// Creates an entry that no frame has used. One that a table does not add itself has no serial number.
    pub const fn new(request: FlowRequest, held: H, now_ns: u64) -> Self {
        Self {
            request,
            packets: 0,
            bytes: 0,
            installed_ns: now_ns,
            matched_ns: now_ns,
            held,
            serial: 0,
        }
    }

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
    entries: Vec<FlowEntry<H>>,
    /// Serial number of the entry with a match and a priority: with its rank, it tells its position. `None` if the switch
    /// has changed the entries itself: then there may be several, in any order.
    serials: Option<HashMap<(Match, u16), u64>>,
    next_serial: u64,
    /// Frames looked up.
    pub lookups: u64,
    /// Frames among these that an entry matched.
    pub matches: u64,
}

impl<H> SpecTable<H> {
    /// Creates an empty table.
    #[must_use]
    pub fn new(order: EntryOrder) -> Self {
        Self {
            order,
            entries: Vec::new(),
            serials: Some(HashMap::new()),
            next_serial: 0,
            lookups: 0,
            matches: 0,
        }
    }

    /// Returns the entries, in their order.
    #[must_use]
    pub fn entries(&self) -> &[FlowEntry<H>] {
        &self.entries
    }

    /// Returns the entries, for a switch that deviates from the specification to change them itself. From then on, a
    /// message has to search them all.
    pub fn entries_mut(&mut self) -> &mut Vec<FlowEntry<H>> {
        self.serials = None;
        &mut self.entries
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
            let mut selected = self.selected(&request);
            selected.retain(|&position| self.entries[position].sends_to(backing, request.out_port));
            let gone = self.take(&selected);
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
        if request.checks_overlap() {
            let overlaps = |FlowEntry { request: other, .. }: &FlowEntry<H>| {
                request.overlaps(&other.fields, other.priority)
            };
            if self.entries.iter().any(overlaps) {
                return Err(error::OVERLAP);
            }
        }
        let replaced = self.selected(&request).last().copied();
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
        let serial = self.next_serial;
        self.next_serial += 1;
        if let Some(serials) = &mut self.serials {
            serials.insert(request.key(), serial);
        }
        let entry = FlowEntry {
            serial,
            ..FlowEntry::new(request, kept, now_ns)
        };
        self.entries.insert(position, entry);
        Ok(())
    }

    /// Returns the positions, in their order, of the entries that a MODIFY or DELETE means, or an ADD replaces. If it is
    /// strict, this takes logarithmic time.
    fn selected(&self, request: &FlowRequest) -> Vec<usize> {
        match &self.serials {
            Some(serials) if request.is_strict() => {
                let serial = serials.get(&request.key());
                let position = serial.map(|&serial| self.position(request.rank(), serial));
                position.into_iter().collect()
            }
            _ => self.positions(|FlowEntry { request: entry, .. }| {
                request.selects(&entry.fields, entry.priority)
            }),
        }
    }

    /// Returns the position of the entry with this rank and this serial number.
    fn position(&self, rank: (bool, u16), serial: u64) -> usize {
        self.entries.partition_point(|entry| match self.order {
            EntryOrder::Age => entry.serial < serial,
            EntryOrder::Rank => {
                (Reverse(entry.request.rank()), entry.serial) < (Reverse(rank), serial)
            }
        })
    }

    /// Returns the positions of the entries that are meant, in their order.
    fn positions(&self, is_meant: impl Fn(&FlowEntry<H>) -> bool) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        let meant = entries.filter(|(_, entry)| is_meant(entry));
        meant.map(|(position, _)| position).collect()
    }

    /// Replaces the actions of all selected entries. Returns how many these are.
    fn modify<B: Backing<Held = H>>(
        &mut self,
        backing: &mut B,
        request: &FlowRequest,
        actions: &[u8],
    ) -> Result<usize, ErrorCode> {
        let mut changes = Vec::new();
        for position in self.selected(request) {
            let fields = &self.entries[position].request.fields;
            changes.push((position, backing.read(actions, fields)?));
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
        let gone = self.take(&self.positions(|entry| entry.overdue(now_ns).is_some()));
        for entry in &gone {
            backing.release(entry, now_ns);
        }
        gone
    }

    /// Removes the entries at these positions, which are in order.
    fn take(&mut self, positions: &[usize]) -> Vec<FlowEntry<H>> {
        let gone = match *positions {
            [] => return Vec::new(),
            [position] => vec![self.entries.remove(position)],
            [first, ..] => {
                let mut gone = Vec::with_capacity(positions.len());
                for (position, entry) in (first..).zip(self.entries.split_off(first)) {
                    let list = match positions.binary_search(&position) {
                        Ok(_) => &mut gone,
                        Err(_) => &mut self.entries,
                    };
                    list.push(entry);
                }
                gone
            }
        };
        if let Some(serials) = &mut self.serials {
            for entry in &gone {
                serials.remove(&entry.request.key());
            }
        }
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
