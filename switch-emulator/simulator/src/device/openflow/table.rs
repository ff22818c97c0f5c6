//! The flow table: OpenFlow 1.0.1, sections 3.4 and 4.6.

use std::cmp::Reverse;

use of_switch::v1_0::{FlowCommand, FlowRequest};
use openflow::bytes::be16;
use openflow::ethernet::{TYPE_AT, VLAN};
use openflow::v1_0::flow_mod::{field, FLOW_MOD_BYTES};
use openflow::v1_0::{action, error, port, Match, Rewrite};
use openflow::ErrorCode;

use super::agent::{AgentProfile, Handover, InstallOutcome, NEVER};
use super::rules::{ActionKind, MatchKind, Path, Placement, TableModel, WHOLE};
use super::PortSet;
use crate::device::MAX_PORTS;
use crate::random::Stream;

/// An entry of a reply to `OFPST_FLOW`, without its actions.
const STATISTICS_BYTES: usize = 88;
/// Bits of the actions that change frames.
const REWRITING: u32 = 0x7fe;

/// Lookup verdict on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No entry matches.
    Miss,
    /// The entry sends it nowhere.
    Drop,
    /// By these ports, from their queues with this number.
    Forward { ports: PortSet, queue: u32 },
}

/// Treatment of a frame: where it goes, how it is changed, and whether chip or CPU forwards it.
#[derive(Debug)]
pub(crate) struct Treatment<'table> {
    pub(crate) verdict: Verdict,
    pub(crate) path: Path,
    /// The entry looks at nothing but the port.
    pub(crate) by_port: bool,
    pub(crate) rewrites: &'table [Rewrite],
}

/// Where an entry sends frames. What it sends to the controller is not followed any further.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outputs {
    ports: PortSet,
    /// All other ports than the one that the frame came in on.
    all: bool,
    /// The port that the frame came in on, which only an explicit output reaches.
    back: bool,
    /// The numbers as in the messages, for deletions by `out_port`.
    numbers: Vec<u16>,
    /// The queue of the last action `enqueue`; 0 without one.
    queue: u32,
    /// How a frame is changed before it is sent.
    rewrites: Vec<Rewrite>,
    /// The kinds of all its actions.
    kinds: Vec<ActionKind>,
}

impl Outputs {
    fn read(
        mut list: &[u8],
        ports: u8,
        (has_queues, rewrites): (bool, bool),
    ) -> Result<Self, ErrorCode> {
        let mut outputs = Self::default();
        while !list.is_empty() {
            let length = list.get(2..4).map_or(0, |_| usize::from(be16(list, 2)));
            if list.len() < 8 || list.len() < length {
                return Err(error::BAD_ACTION_LENGTH);
            }
            let kind = ActionKind::numbered(be16(list, 0));
            outputs.kinds.extend(kind);
            let is_whole = action::length(be16(list, 0)) == Some(length);
            if let Some(rewrite) = Rewrite::read(list).filter(|_| rewrites && is_whole) {
                if !outputs.numbers.is_empty() {
                    // Some outputs would come before the change, some behind it.
                    return Err(error::UNSUPPORTED);
                }
                outputs.rewrites.push(rewrite);
                list = &list[length..];
                continue;
            }
            match be16(list, 0) {
                action::OUTPUT if is_whole => {}
                action::ENQUEUE if has_queues && is_whole => {
                    outputs.queue = u32::from(be16(list, 12)) << 16 | u32::from(be16(list, 14));
                }
                action::OUTPUT => return Err(error::BAD_ACTION_LENGTH),
                action::ENQUEUE if has_queues => return Err(error::BAD_ACTION_LENGTH),
                _ => return Err(error::BAD_ACTION_TYPE),
            }
            let number = be16(list, 4);
            match number {
                port::IN_PORT => outputs.back = true,
                port::FLOOD | port::ALL => outputs.all = true,
                port::CONTROLLER => {}
                number if (1..=u16::from(ports)).contains(&number) => {
                    outputs.ports = outputs.ports.with(number as u8);
                }
                _ => return Err(error::BAD_OUT_PORT),
            }
            outputs.numbers.push(number);
            list = &list[length..];
        }
        Ok(outputs)
    }
}

#[derive(Clone, Debug)]
struct FlowEntry {
    /// Normalised.
    fields: Match,
    priority: u16,
    outputs: Outputs,
    place: Placement,
    cookie: [u8; 8],
    /// The actions as they came.
    actions: Vec<u8>,
    /// The instant from which on it applies to frames.
    from_ns: u64,
}

impl FlowEntry {
    /// Returns whether it sends frames to this port; true of every entry for `OFPP_NONE`, which names no port.
    fn sends_to(&self, out_port: u16) -> bool {
        out_port == port::NONE || self.outputs.numbers.contains(&out_port)
    }

    /// Returns the entry in a reply to `OFPST_FLOW`. What is not counted is all ones.
    fn statistics(&self) -> Vec<u8> {
        let length = (STATISTICS_BYTES + self.actions.len()) as u16;
        let mut text = Vec::with_capacity(length.into());
        text.extend(length.to_be_bytes());
        text.extend([0, 0]);
        text.extend(self.fields.to_bytes());
        text.extend([0xff; 8]); // how long it has been there
        text.extend(self.priority.to_be_bytes());
        text.extend([0; 10]); // no timeouts
        text.extend(self.cookie);
        text.extend([0xff; 16]); // frames and bytes
        text.extend(&self.actions);
        text
    }
}

/// Entries in the order in which they are searched.
#[derive(Debug)]
pub(super) struct RuleTable {
    ports: u8,
    /// Whether entries can name a queue of a port.
    has_queues: bool,
    /// Whether entries can change frames.
    rewrites: bool,
    model: TableModel,
    handover: Handover,
    entries: Vec<FlowEntry>,
    /// How many entries of each rule of the model were deleted.
    deleted: Vec<u64>,
}

impl RuleTable {
    /// Creates an empty table of a switch with `ports` front ports.
    pub(super) fn new(ports: u8, has_queues: bool, capacity: usize) -> Self {
        let model = TableModel {
            entries: capacity as u64,
            ..TableModel::default()
        };
        Self {
            ports: ports.min(MAX_PORTS),
            has_queues,
            rewrites: false,
            model,
            handover: Handover::new(AgentProfile::default(), Stream::new(0, 0)),
            entries: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// An empty table with the capacity that the model says; its entries can enqueue and change frames, and reach the chip
    /// as `handover` says.
    pub(super) fn modelled(ports: u8, model: TableModel, handover: Handover) -> Self {
        Self {
            ports: ports.min(MAX_PORTS),
            has_queues: true,
            rewrites: true,
            deleted: vec![0; model.rules.len()],
            model,
            handover,
            entries: Vec::new(),
        }
    }

    /// The actions that entries can have, a bit each.
    pub(super) fn actions(&self) -> u32 {
        let rewriting = if self.rewrites { REWRITING } else { 0 };
        1 << action::OUTPUT | u32::from(self.has_queues) << action::ENQUEUE | rewriting
    }

    /// The actions of a `FLOW_MOD`, and where an entry with them goes.
    fn read(&self, message: &[u8], fields: &Match) -> Result<(Outputs, Placement), ErrorCode> {
        let can = (self.has_queues, self.rewrites);
        let outputs = Outputs::read(&message[FLOW_MOD_BYTES..], self.ports, can)?;
        let place = self.model.place(fields, &outputs.kinds);
        match place.path {
            Path::Refused => Err(error::UNSUPPORTED),
            Path::Hardware | Path::Software => Ok((outputs, place)),
        }
    }

    /// Returns whether the table has room for one more entry.
    fn has_room(&self, place: Placement) -> bool {
        let entries = self.entries.iter().map(|entry| entry.place);
        let used: u64 = entries
            .filter(|other| other.path == place.path)
            .map(|other| other.share)
            .sum();
        used + place.share <= WHOLE && self.has_kept(place)
    }

    /// Returns whether the rule of an entry still has room, considering what deleted entries of the rule took with
    /// them.
    fn has_kept(&self, place: Placement) -> bool {
        let losing = place.rule.and_then(|rule| {
            let one_in = self.model.rules[rule].loses_one_in?;
            Some((rule, self.deleted[rule] / one_in))
        });
        losing.is_none_or(|(rule, lost)| {
            let like = |entry: &&FlowEntry| entry.place.rule == Some(rule);
            let there = self.entries.iter().filter(like).count() as u64;
            there + lost < WHOLE / place.share
        })
    }

    /// Returns how many entries there are.
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns how many entries of any kind fill it.
    pub(super) const fn most(&self) -> u64 {
        self.model.entries
    }

    /// Returns the installation of its entries in the chip.
    pub(super) const fn handover(&self) -> &Handover {
        &self.handover
    }

    /// Returns the entries that a match covers and that send to a port, as in a reply to `OFPST_FLOW`.
    pub(super) fn statistics(
        &self,
        fields: &[u8],
        out_port: u16,
    ) -> impl Iterator<Item = Vec<u8>> + '_ {
        let wanted = Match::read(fields).normalised();
        self.entries
            .iter()
            .filter(move |entry| wanted.covers(&entry.fields) && entry.sends_to(out_port))
            .map(FlowEntry::statistics)
    }

    /// Carries out a complete `FLOW_MOD`. Timeouts are not kept: entries stay until they are deleted.
    pub(super) fn flow_mod(&mut self, now_ns: u64, message: &[u8]) -> Result<(), ErrorCode> {
        let request = FlowRequest::read(message);
        match request.command()? {
            FlowCommand::Add => self.add(now_ns, message, &request),
            FlowCommand::Modify => self.modify(now_ns, message, &request),
            FlowCommand::Delete => {
                self.delete(now_ns, &request);
                Ok(())
            }
        }
    }

    fn add(&mut self, now_ns: u64, message: &[u8], request: &FlowRequest) -> Result<(), ErrorCode> {
        if request.is_emergency() {
            return Err(error::UNSUPPORTED);
        }
        let FlowRequest {
            fields, priority, ..
        } = *request;
        let (outputs, mut place) = self.read(message, &fields)?;
        let mut entries = self.entries.iter();
        if entries.any(|entry| request.conflicts(&entry.fields, entry.priority)) {
            return Err(error::OVERLAP);
        }
        self.entries
            .retain(|entry| entry.fields != fields || entry.priority != priority);
        if !self.has_room(place) {
            return Err(error::ALL_TABLES_FULL);
        }
        let fate = match place.path {
            Path::Hardware => self.handover.take(now_ns),
            Path::Software | Path::Refused => InstallOutcome::Written { at_ns: now_ns },
        };
        let from_ns = match fate {
            InstallOutcome::Refused => return Err(error::ALL_TABLES_FULL),
            InstallOutcome::Ignored => return Ok(()),
            InstallOutcome::OnlyListed => {
                place.share = 0;
                NEVER
            }
            InstallOutcome::Written { at_ns } => at_ns,
        };
        // An entry without wildcards comes before all others, whatever its priority.
        let rank = |fields: &Match, priority: u16| Reverse((fields.is_exact(), priority));
        let at = self.entries.partition_point(|entry| {
            rank(&entry.fields, entry.priority) <= rank(&fields, priority)
        });
        self.entries.insert(
            at,
            FlowEntry {
                fields,
                priority,
                outputs,
                place,
                cookie: std::array::from_fn(|at| message[field::COOKIE + at]),
                actions: message[FLOW_MOD_BYTES..].to_vec(),
                from_ns,
            },
        );
        Ok(())
    }

    fn modify(
        &mut self,
        now_ns: u64,
        message: &[u8],
        request: &FlowRequest,
    ) -> Result<(), ErrorCode> {
        let selected = |entry: &FlowEntry| request.selects(&entry.fields, entry.priority);
        let mut changed = self.entries.clone();
        let mut found = false;
        for entry in changed.iter_mut().filter(|entry| selected(entry)) {
            (entry.outputs, entry.place) = self.read(message, &entry.fields)?;
            entry.actions = message[FLOW_MOD_BYTES..].to_vec();
            found = true;
        }
        if !found {
            return self.add(now_ns, message, request);
        }
        for path in [Path::Hardware, Path::Software] {
            let places = changed.iter().map(|entry| entry.place);
            let used: u64 = places
                .filter(|place| place.path == path)
                .map(|place| place.share)
                .sum();
            if used > WHOLE {
                return Err(error::ALL_TABLES_FULL);
            }
        }
        self.entries = changed;
        Ok(())
    }

    fn delete(&mut self, now_ns: u64, request: &FlowRequest) {
        let (handover, deleted) = (&mut self.handover, &mut self.deleted);
        self.entries.retain(|entry| {
            let goes =
                request.selects(&entry.fields, entry.priority) && entry.sends_to(request.out_port);
            if goes {
                handover.deleted(now_ns, entry.from_ns);
                if let Some(rule) = entry.place.rule {
                    deleted[rule] += 1;
                }
            }
            !goes
        });
    }

    /// Returns where a frame goes that came in on `port`.
    pub(super) fn look_up(&self, now_ns: u64, frame: &[u8], port: u8) -> Treatment<'_> {
        let fields = Match::of_frame(frame, port.into());
        let found = self
            .entries
            .iter()
            .find(|entry| entry.from_ns <= now_ns && entry.fields.covers(&fields))
            .filter(|_| !(self.model.misses_tagged && be16(frame, TYPE_AT) == VLAN));
        Treatment {
            verdict: found.map_or(Verdict::Miss, |entry| self.verdict(entry, port)),
            path: found.map_or(Path::Hardware, |entry| entry.place.path),
            by_port: found.is_some_and(|entry| MatchKind::of(&entry.fields) == MatchKind::Port),
            rewrites: found.map_or(&[], |entry| &entry.outputs.rewrites),
        }
    }

    fn verdict(&self, entry: &FlowEntry, port: u8) -> Verdict {
        let mut ports = entry.outputs.ports;
        if entry.outputs.all {
            ports = ports.union(PortSet::up_to(self.ports));
        }
        ports = ports.without(port);
        if entry.outputs.back {
            ports = ports.with(port);
        }
        if ports.is_empty() {
            Verdict::Drop
        } else {
            Verdict::Forward {
                ports,
                queue: entry.outputs.queue,
            }
        }
    }
}
