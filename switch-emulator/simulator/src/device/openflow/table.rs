//! The flow table ([`of_switch::v1_0`]): which entries the switch has room for, and where they send frames.

use of_switch::v1_0::{ActionLimits, Backing, EntryOrder, FlowEntry, SpecTable};
use openflow::bytes::{be16, be32};
use openflow::ethernet::{TYPE_AT, VLAN};
use openflow::v1_0::flow_mod::FLOW_MOD_BYTES;
use openflow::v1_0::{action, error, port, Match, Rewrite};
use openflow::ErrorCode;

use super::agent::{AgentProfile, Handover, InstallOutcome, NEVER};
use super::rules::{ActionKind, MatchKind, Path, Placement, TableModel, WHOLE};
use super::PortSet;
use crate::device::MAX_PORTS;
use crate::random::Stream;

/// An entry of a reply to `OFPST_FLOW`, without its actions.
const STATISTICS_BYTES: usize = 88;
/// Types of actions from `output` to `enqueue`, a bit each.
const ALL_ACTIONS: u32 = 0x0fff;

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

/// Where an entry sends frames, and how it changes them. What it sends to the controller is not followed any further.
#[derive(Debug, Default)]
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
    /// The actions as they came.
    list: Vec<u8>,
}

impl Outputs {
    /// Reads actions that have been checked.
    fn read(actions: &[&[u8]]) -> Result<Self, ErrorCode> {
        let mut outputs = Self {
            list: actions.concat(),
            ..Self::default()
        };
        for action in actions {
            if let Some(rewrite) = Rewrite::read(action) {
                if !outputs.numbers.is_empty() {
                    // Some outputs would come before the change, some behind it.
                    return Err(error::UNSUPPORTED);
                }
                outputs.rewrites.push(rewrite);
                continue;
            }
            if be16(action, 0) == action::ENQUEUE {
                outputs.queue = be32(action, 12);
            }
            let number = be16(action, 4);
            match number {
                port::IN_PORT => outputs.back = true,
                port::FLOOD | port::ALL => outputs.all = true,
                port::CONTROLLER => {}
                number => outputs.ports = outputs.ports.with(number as u8),
            }
            outputs.numbers.push(number);
        }
        Ok(outputs)
    }
}

/// Data that the switch keeps of an entry.
#[derive(Debug)]
struct HardwareEntry {
    outputs: Outputs,
    place: Placement,
    /// The instant from which on it applies to frames.
    from_ns: u64,
}

/// Returns an entry as in a reply to `OFPST_FLOW`. What is not counted is all ones.
fn statistics(entry: &FlowEntry<HardwareEntry>) -> Vec<u8> {
    let list = &entry.held.outputs.list;
    let length = (STATISTICS_BYTES + list.len()) as u16;
    let mut text = Vec::with_capacity(length.into());
    text.extend(length.to_be_bytes());
    text.extend([0, 0]);
    text.extend(entry.request.fields.to_bytes());
    text.extend([0xff; 8]); // how long it has been there
    text.extend(entry.request.priority.to_be_bytes());
    text.extend([0; 10]); // no timeouts
    text.extend(entry.request.cookie.to_be_bytes());
    text.extend([0xff; 16]); // frames and bytes
    text.extend(list);
    text
}

/// Room that a switch's entries take up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TableUsage {
    /// The share of memory in use, by [`Path`].
    memory: [u64; 3],
    /// Entries of each rule of the model.
    of_rules: Vec<u64>,
}

impl TableUsage {
    fn new(rules: usize) -> Self {
        Self {
            memory: [0; 3],
            of_rules: vec![0; rules],
        }
    }

    fn add(&mut self, place: Placement) {
        self.memory[place.path as usize] += place.share;
        if let Some(rule) = place.rule {
            self.of_rules[rule] += 1;
        }
    }

    fn remove(&mut self, place: Placement) {
        self.memory[place.path as usize] -= place.share;
        if let Some(rule) = place.rule {
            self.of_rules[rule] -= 1;
        }
    }

    fn exceeds_memory(&self) -> bool {
        self.memory.iter().any(|share| *share > WHOLE)
    }
}

/// Which entries a switch can have, and where it holds them.
#[derive(Debug)]
struct EntryPlaces {
    limits: ActionLimits,
    model: TableModel,
    handover: Handover,
    usage: TableUsage,
    /// How many entries of each rule of the model were deleted.
    deleted: Vec<u64>,
}

impl EntryPlaces {
    /// Returns whether there is room for one more entry besides `others`, considering what deleted entries of its rule
    /// took with them.
    fn has_room(&self, place: Placement, others: &TableUsage) -> bool {
        let losing = place.rule.and_then(|rule| {
            let one_in = self.model.rules[rule].loses_one_in?;
            Some((rule, self.deleted[rule] / one_in))
        });
        others.memory[place.path as usize] + place.share <= WHOLE
            && losing.is_none_or(|(rule, lost)| others.of_rules[rule] + lost < WHOLE / place.share)
    }
}

impl Backing for EntryPlaces {
    type Actions = (Outputs, Placement);
    type Held = HardwareEntry;

    fn read(&self, list: &[u8], fields: &Match) -> Result<Self::Actions, ErrorCode> {
        let actions = self.limits.split(list, false)?;
        let kinds = actions
            .iter()
            .filter_map(|action| ActionKind::numbered(be16(action, 0)));
        let place = self.model.place(fields, &kinds.collect::<Vec<_>>());
        match place.path {
            Path::Refused => Err(error::UNSUPPORTED),
            Path::Hardware | Path::Software => Ok((Outputs::read(&actions)?, place)),
        }
    }

    fn install(
        &mut self,
        _: &[u8],
        (outputs, mut place): Self::Actions,
        entries: &[FlowEntry<HardwareEntry>],
        replaced: Option<usize>,
        now_ns: u64,
    ) -> Result<Option<HardwareEntry>, ErrorCode> {
        let mut usage = self.usage.clone();
        if let Some(position) = replaced {
            usage.remove(entries[position].held.place);
        }
        if !self.has_room(place, &usage) {
            return Err(error::ALL_TABLES_FULL);
        }
        let fate = match place.path {
            Path::Hardware => self.handover.take(now_ns),
            Path::Software | Path::Refused => InstallOutcome::Written { at_ns: now_ns },
        };
        let from_ns = match fate {
            InstallOutcome::Refused => return Err(error::ALL_TABLES_FULL),
            InstallOutcome::Ignored => return Ok(None),
            InstallOutcome::OnlyListed => {
                place.share = 0;
                NEVER
            }
            InstallOutcome::Written { at_ns } => at_ns,
        };
        usage.add(place);
        self.usage = usage;
        Ok(Some(HardwareEntry {
            outputs,
            place,
            from_ns,
        }))
    }

    fn change(
        &mut self,
        entries: &mut [FlowEntry<HardwareEntry>],
        changes: Vec<(usize, Self::Actions)>,
    ) -> Result<(), ErrorCode> {
        let mut usage = self.usage.clone();
        for (position, (_, place)) in &changes {
            usage.remove(entries[*position].held.place);
            usage.add(*place);
        }
        if usage.exceeds_memory() {
            return Err(error::ALL_TABLES_FULL);
        }
        self.usage = usage;
        for (position, actions) in changes {
            let held = &mut entries[position].held;
            (held.outputs, held.place) = actions;
        }
        Ok(())
    }

    fn release(&mut self, gone: &FlowEntry<HardwareEntry>, now_ns: u64) {
        self.handover.deleted(now_ns, gone.held.from_ns);
        self.usage.remove(gone.held.place);
        if let Some(rule) = gone.held.place.rule {
            self.deleted[rule] += 1;
        }
    }

    fn sends_to(&self, held: &HardwareEntry, port: u16) -> bool {
        held.outputs.numbers.contains(&port)
    }
}

/// The table of a switch, and what it can hold.
#[derive(Debug)]
pub(super) struct RuleTable {
    table: SpecTable<HardwareEntry>,
    places: EntryPlaces,
}

impl RuleTable {
    /// Creates an empty table of a switch with `ports` front ports, to whose queues entries can `enqueue` if there are any.
    pub(super) fn new(ports: u8, has_queues: bool, capacity: usize) -> Self {
        let model = TableModel {
            entries: capacity as u64,
            ..TableModel::default()
        };
        let types = 1 << action::OUTPUT | u32::from(has_queues) << action::ENQUEUE;
        let handover = Handover::new(AgentProfile::default(), Stream::new(0, 0));
        Self::of_places(ports, types, model, handover)
    }

    /// An empty table with the capacity that the model says; its entries can enqueue and change frames, and reach the chip
    /// as `handover` says.
    pub(super) fn modelled(ports: u8, model: TableModel, handover: Handover) -> Self {
        Self::of_places(ports, ALL_ACTIONS, model, handover)
    }

    fn of_places(ports: u8, types: u32, model: TableModel, handover: Handover) -> Self {
        let limits = ActionLimits {
            types,
            ports: ports.min(MAX_PORTS).into(),
            actions: usize::MAX,
        };
        Self {
            table: SpecTable::new(EntryOrder::Rank),
            places: EntryPlaces {
                limits,
                usage: TableUsage::new(model.rules.len()),
                deleted: vec![0; model.rules.len()],
                model,
                handover,
            },
        }
    }

    /// The actions that entries can have, a bit each.
    pub(super) const fn actions(&self) -> u32 {
        self.places.limits.types
    }

    /// Returns how many entries there are.
    pub(super) fn len(&self) -> u64 {
        self.table.entries().len() as u64
    }

    /// Returns how many entries of any kind fill it.
    pub(super) const fn most(&self) -> u64 {
        self.places.model.entries
    }

    /// Returns the installation of its entries in the chip.
    pub(super) const fn handover(&self) -> &Handover {
        &self.places.handover
    }

    /// Returns the entries that a match covers and that send to a port, as in a reply to `OFPST_FLOW`.
    pub(super) fn statistics(
        &self,
        fields: &[u8],
        out_port: u16,
    ) -> impl Iterator<Item = Vec<u8>> + '_ {
        let fields = Match::read(fields).normalised();
        let chosen = self.table.chosen(&self.places, fields, out_port);
        chosen.map(statistics)
    }

    /// Carries out a complete `FLOW_MOD`. Timeouts do not count: entries stay until they are deleted.
    pub(super) fn flow_mod(&mut self, now_ns: u64, message: &[u8]) -> Result<(), ErrorCode> {
        let (head, actions) = message.split_at(FLOW_MOD_BYTES);
        self.table
            .flow_mod(&mut self.places, head, actions, now_ns)
            .map(|_| ())
    }

    /// Returns where a frame goes that came in on `port`.
    pub(super) fn look_up(&self, now_ns: u64, frame: &[u8], port: u8) -> Treatment<'_> {
        let fields = Match::of_frame(frame, port.into());
        let applies = |entry: &FlowEntry<HardwareEntry>| {
            entry.request.fields.agrees(&fields) && entry.held.from_ns <= now_ns
        };
        let misses = self.places.model.misses_tagged && be16(frame, TYPE_AT) == VLAN;
        let found = self.table.find(applies).filter(|_| !misses);
        let Some(entry) = found.map(|position| &self.table.entries()[position]) else {
            return Treatment {
                verdict: Verdict::Miss,
                path: Path::Hardware,
                by_port: false,
                rewrites: &[],
            };
        };
        Treatment {
            verdict: self.verdict(&entry.held.outputs, port),
            path: entry.held.place.path,
            by_port: MatchKind::of(&entry.request.fields) == MatchKind::Port,
            rewrites: &entry.held.outputs.rewrites,
        }
    }

    fn verdict(&self, outputs: &Outputs, port: u8) -> Verdict {
        let mut ports = outputs.ports;
        if outputs.all {
            ports = ports.union(PortSet::up_to(self.places.limits.ports as u8));
        }
        ports = ports.without(port);
        if outputs.back {
            ports = ports.with(port);
        }
        if ports.is_empty() {
            Verdict::Drop
        } else {
            Verdict::Forward {
                ports,
                queue: outputs.queue,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::agent::Settling;
    use super::super::tests::{any, flow_mod_of, from_port};
    use super::*;

    /// Returns a table for few entries: fewer with `set-tp-src`, and those with `strip-vlan` in software.
    fn small_table() -> RuleTable {
        let rule = |text: &str| toml::from_str(text).unwrap();
        let model = TableModel {
            rules: vec![
                rule("actions = ['strip-vlan']\npath = 'software'\nsource = 'assumption'"),
                rule(
                    "actions = ['set-tp-src']\n\
                     entries = { value = 4, source = 'assumption' }\n\
                     loses_one_in = { value = 3, source = 'assumption' }\n\
                     source = 'assumption'",
                ),
            ],
            entries: 6,
            software_entries: 2,
            misses_tagged: false,
        };
        let settling = Settling {
            least_ns: 2,
            most_ns: 3,
            lost_percent: 50,
            listed_percent: 50,
        };
        let agent = AgentProfile {
            settling: Some(settling),
            ..AgentProfile::default()
        };
        RuleTable::modelled(5, model, Handover::new(agent, Stream::new(1, 0)))
    }

    fn any_flow_mod() -> impl Strategy<Value = Vec<u8>> {
        let fields = prop_oneof![Just(any()), (1_u16..4).prop_map(from_port)];
        let rewrite = prop_oneof![
            Just(vec![]),
            Just(vec![0, action::STRIP_VLAN as u8, 0, 8, 0, 0, 0, 0]),
            Just(vec![0, action::SET_TP_SRC as u8, 0, 8, 0, 1, 0, 0]),
        ];
        let output = [0, 0, 0, 8, 0, 2, 0, 0];
        (0_u16..=4, fields, 0_u16..3, rewrite).prop_map(
            move |(command, fields, priority, rewrite)| {
                let actions = [&rewrite[..], &output].concat();
                flow_mod_of(command, &fields, (priority, port::NONE), &actions)
            },
        )
    }

    proptest! {
        #[test]
        fn what_entries_take_up_is_counted_as_they_come_change_and_go(
            messages in proptest::collection::vec(any_flow_mod(), 1..60),
        ) {
            let mut table = small_table();
            for (now_ns, message) in (0..).zip(messages) {
                let _ = table.flow_mod(now_ns, &message);
                let mut counted = TableUsage::new(2);
                for entry in table.table.entries() {
                    counted.add(entry.held.place);
                }
                prop_assert_eq!(&table.places.usage, &counted);
                prop_assert!(!counted.exceeds_memory());
            }
        }
    }
}
