use openflow::v1_0::flow_mod::{field, flag, FLOW_MOD_BYTES};
use openflow::v1_0::port::{CONTROLLER, FLOOD, IN_PORT, NONE, TABLE};
use openflow::v1_0::{error, wildcards, Match};
use openflow::{ErrorCode, FlowRemovedReason};
use proptest::prelude::*;

use super::*;

const ADD: u16 = 0;
const MODIFY: u16 = 1;
const MODIFY_STRICT: u16 = 2;
const DELETE: u16 = 3;
const DELETE_STRICT: u16 = 4;

/// A switch with five ports that holds so many entries, and keeps the ports to which each of them sends.
struct Ports {
    room: usize,
    released: usize,
}

impl Backing for Ports {
    type Actions = Vec<u16>;
    type Held = Vec<u16>;

    fn read(&self, list: &[u8], _: &Match) -> Result<Vec<u16>, ErrorCode> {
        let limits = ActionLimits {
            types: 1,
            ports: 5,
            actions: 3,
        };
        let actions = limits.split(list, false)?;
        let port = |action: &&[u8]| u16::from_be_bytes([action[4], action[5]]);
        Ok(actions.iter().map(port).collect())
    }

    fn install(
        &mut self,
        _: &[u8],
        actions: Vec<u16>,
        entries: &[FlowEntry<Vec<u16>>],
        replaced: Option<usize>,
        _: u64,
    ) -> Result<Option<Vec<u16>>, ErrorCode> {
        let others = entries.len() - usize::from(replaced.is_some());
        if others + actions.len() > self.room {
            return Err(error::ALL_TABLES_FULL);
        }
        Ok(Some(actions))
    }

    fn change(
        &mut self,
        entries: &mut [FlowEntry<Vec<u16>>],
        changes: Vec<(usize, Vec<u16>)>,
    ) -> Result<(), ErrorCode> {
        for (position, actions) in changes {
            entries[position].held = actions;
        }
        Ok(())
    }

    fn release(&mut self, _: &FlowEntry<Vec<u16>>, _: u64) {
        self.released += 1;
    }

    fn sends_to(&self, held: &Vec<u16>, port: u16) -> bool {
        held.contains(&port)
    }
}

struct Bed {
    ports: Ports,
    table: SpecTable<Vec<u16>>,
}

impl Bed {
    fn new(order: EntryOrder) -> Self {
        Self {
            ports: Ports {
                room: 3,
                released: 0,
            },
            table: SpecTable::new(order),
        }
    }

    fn send(&mut self, now_ns: u64, message: &FlowMod) -> Result<FlowModDone<Vec<u16>>, ErrorCode> {
        let (head, actions) = message.bytes();
        self.table
            .flow_mod(&mut self.ports, &head, &actions, now_ns)
    }

    /// Sends messages that are accepted.
    fn take<const N: usize>(&mut self, messages: [FlowMod; N]) -> &mut Self {
        for message in messages {
            self.send(0, &message).unwrap();
        }
        self
    }

    /// The priorities and ports of the entries in their order.
    fn listed(&self) -> Vec<(u16, Vec<u16>)> {
        let entries = self.table.entries().iter();
        entries
            .map(|entry| (entry.request.priority, entry.held.clone()))
            .collect()
    }

    /// The ports to which a frame goes that came in by a port.
    fn sent(&self, in_port: u16) -> Option<&[u16]> {
        let fields = Match::of_frame(&[0; 60], in_port);
        let matches = |entry: &FlowEntry<_>| entry.request.fields.agrees(&fields);
        let found = self.table.find(matches)?;
        Some(&self.table.entries()[found].held)
    }
}

#[derive(Clone, Debug)]
struct FlowMod {
    command: u16,
    fields: Match,
    priority: u16,
    flags: u16,
    timeouts_s: (u16, u16),
    buffer: u32,
    out_port: u16,
    outputs: Vec<u16>,
}

impl FlowMod {
    fn bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let mut head = vec![0; FLOW_MOD_BYTES];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(field::MATCH, &self.fields.to_bytes());
        put(field::COMMAND, &self.command.to_be_bytes());
        put(field::IDLE_TIMEOUT, &self.timeouts_s.0.to_be_bytes());
        put(field::HARD_TIMEOUT, &self.timeouts_s.1.to_be_bytes());
        put(field::PRIORITY, &self.priority.to_be_bytes());
        put(field::BUFFER, &self.buffer.to_be_bytes());
        put(field::OUT_PORT, &self.out_port.to_be_bytes());
        put(field::FLAGS, &self.flags.to_be_bytes());
        let words = self.outputs.iter().flat_map(|port| [0, 8, *port, 0]);
        (head, words.flat_map(u16::to_be_bytes).collect())
    }

    fn with(&self, change: impl Fn(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }
}

fn any() -> Match {
    Match::read(&wildcards::ALL.to_be_bytes())
}

fn from_port(port: u16) -> Match {
    Match {
        wildcards: wildcards::ALL & !wildcards::IN_PORT,
        in_port: port,
        ..any()
    }
}

fn flow_mod(command: u16, fields: Match, priority: u16, outputs: &[u16]) -> FlowMod {
    FlowMod {
        command,
        fields,
        priority,
        flags: 0,
        timeouts_s: (0, 0),
        buffer: u32::MAX,
        out_port: NONE,
        outputs: outputs.to_vec(),
    }
}

fn add(fields: Match, priority: u16, outputs: &[u16]) -> FlowMod {
    flow_mod(ADD, fields, priority, outputs)
}

#[test]
fn the_highest_rank_wins_and_then_the_oldest() {
    let exact = Match::of_frame(&[0; 60], 3);
    for order in [EntryOrder::Age, EntryOrder::Rank] {
        let mut bed = Bed::new(order);
        bed.ports.room = 4;
        let (low, high) = (add(any(), 1, &[1]), add(from_port(2), 5, &[2]));
        bed.take([low, high.clone(), add(exact, 0, &[3])]);
        assert_eq!([1, 2, 3].map(|port| bed.sent(port).unwrap()[0]), [1, 2, 3]);
        bed.take([
            high.with(|it| it.command = DELETE_STRICT),
            add(any(), 5, &[4]),
            high,
        ]);
        assert_eq!(bed.sent(2).unwrap(), [4]);
    }
}

#[test]
fn entries_are_in_the_order_that_the_switch_keeps() {
    for (order, priorities) in [(EntryOrder::Age, [2, 1, 3]), (EntryOrder::Rank, [3, 2, 1])] {
        let mut bed = Bed::new(order);
        bed.take([2, 1, 3].map(|priority| add(any(), priority, &[1])));
        let listed = bed.listed().into_iter().map(|(priority, _)| priority);
        assert_eq!(listed.collect::<Vec<_>>(), priorities);
    }
}

#[test]
fn an_equal_entry_is_replaced_and_begins_anew() {
    let mut bed = Bed::new(EntryOrder::Age);
    let first = add(any(), 1, &[1]);
    bed.take([first.clone(), add(any(), 2, &[2])]);
    bed.table.record(Some(0), 60, 7);
    assert_eq!((bed.table.lookups, bed.table.matches), (1, 1));
    assert_eq!(bed.table.entries()[0].packets, 1);
    bed.send(9, &first.with(|it| it.outputs = vec![3])).unwrap();
    assert_eq!(bed.listed(), [(2, vec![2]), (1, vec![3])]);
    let replaced = &bed.table.entries()[1];
    assert_eq!((replaced.packets, replaced.installed_ns), (0, 9));
    assert_eq!(bed.ports.released, 0);
}

#[test]
fn what_is_refused_changes_nothing() {
    let full = add(any(), 1, &[1]);
    let mut bed = Bed::new(EntryOrder::Rank);
    bed.take([full.clone(), add(any(), 2, &[2]), add(any(), 3, &[3])]);
    let before = bed.listed();
    let replacing = full.with(|it| it.outputs = vec![1, 2]);
    let buffered = full.with(|it| it.buffer = 1);
    let of_command = |command: u16| full.with(|it| it.command = command);
    let flagged = |flags: u16| full.with(|it| it.flags = flags);
    let overlapping = add(from_port(1), 1, &[1]).with(|it| it.flags = flag::CHECK_OVERLAP);
    for (message, refusal) in [
        (add(any(), 4, &[1]), error::ALL_TABLES_FULL),
        (replacing, error::ALL_TABLES_FULL),
        (full.with(|it| it.outputs = vec![6]), error::BAD_OUT_PORT),
        (buffered.clone(), error::BUFFER_UNKNOWN),
        (
            buffered.with(|it| it.command = MODIFY),
            error::BUFFER_UNKNOWN,
        ),
        (of_command(5), error::BAD_COMMAND),
        (of_command(0x100), error::BAD_COMMAND),
        (flagged(flag::EMERGENCY), error::UNSUPPORTED),
        (overlapping, error::OVERLAP),
        (
            of_command(MODIFY).with(|it| it.outputs = vec![0]),
            error::BAD_OUT_PORT,
        ),
    ] {
        assert_eq!(bed.send(0, &message).unwrap_err(), refusal);
        assert_eq!(bed.listed(), before);
    }
}

#[test]
fn action_lists_are_checked() {
    let refused = |types, list: &[u16], to_table| {
        let limits = ActionLimits {
            types,
            ports: 5,
            actions: 2,
        };
        let list: Vec<u8> = list.iter().flat_map(|word| word.to_be_bytes()).collect();
        limits.split(&list, to_table).err()
    };
    let refusal = |list: &[u16], to_table| refused(1 << 11 | 1, list, to_table);
    let enqueue = [11, 16, 1, 0, 0, 0, 0, 7];
    assert_eq!(refused(1, &enqueue, false), Some(error::BAD_ACTION_QUEUE));
    for port in [1, 5, IN_PORT, FLOOD, CONTROLLER] {
        assert_eq!(refusal(&[0, 8, port, 0, 0, 8, 1, 0], false), None);
    }
    assert_eq!(refusal(&[0, 8, TABLE, 0], true), None);
    assert_eq!(refusal(&[11, 16, IN_PORT, 0, 0, 0, 0, 7], false), None);
    for (list, expected) in [
        (&[0, 8, 1][..], error::BAD_ACTION_LENGTH),
        (&[0, 16, 1, 0, 0, 0, 0, 0], error::BAD_ACTION_LENGTH),
        (&[1, 8, 1, 0], error::BAD_ACTION_TYPE),
        (&[12, 8, 1, 0], error::BAD_ACTION_TYPE),
        (&[0xffff, 8, 0, 1], error::BAD_ACTION_VENDOR),
        (&[0, 8, 6, 0], error::BAD_OUT_PORT),
        (&[0, 8, TABLE, 0], error::BAD_OUT_PORT),
        (&[11, 16, FLOOD, 0, 0, 0, 0, 0], error::BAD_OUT_PORT),
        (
            &[0, 8, 1, 0, 0, 8, 2, 0, 0, 8, 3, 0],
            error::TOO_MANY_ACTIONS,
        ),
    ] {
        assert_eq!(refusal(list, false), Some(expected), "{list:?}");
    }
}

#[test]
fn modify_changes_what_it_covers_or_adds() {
    let mut bed = Bed::new(EntryOrder::Age);
    bed.take([add(from_port(1), 1, &[1]), add(from_port(2), 2, &[2])]);
    bed.table.record(Some(0), 60, 7);
    bed.take([flow_mod(MODIFY, any(), 9, &[3])]);
    assert_eq!(bed.listed(), [(1, vec![3]), (2, vec![3])]);
    assert_eq!(bed.table.entries()[0].packets, 1);
    bed.take([flow_mod(MODIFY_STRICT, from_port(1), 1, &[4])]);
    assert_eq!(bed.listed(), [(1, vec![4]), (2, vec![3])]);
    let done = bed.send(0, &flow_mod(MODIFY_STRICT, from_port(1), 3, &[5]));
    assert_eq!(done.unwrap().selected, 0);
    assert_eq!(bed.sent(1).unwrap(), [5]);
}

#[test]
fn deletes_what_is_covered_and_sends_to_the_port() {
    let mut bed = Bed::new(EntryOrder::Age);
    bed.take([add(from_port(1), 1, &[2]), add(from_port(2), 1, &[3])]);
    let chosen = |out_port| bed.table.chosen(&bed.ports, any(), out_port).count();
    assert_eq!((chosen(3), chosen(NONE)), (1, 2));
    let by_port = flow_mod(DELETE, any(), 0, &[]).with(|it| it.out_port = 3);
    let gone = bed.send(0, &by_port).unwrap().gone;
    assert_eq!((gone.len(), gone[0].held[0]), (1, 3));
    bed.take([flow_mod(DELETE_STRICT, from_port(1), 2, &[])]);
    assert_eq!(bed.listed(), [(1, vec![2])]);
    bed.take([flow_mod(DELETE, any(), 0, &[])]);
    assert_eq!((bed.listed().len(), bed.ports.released), (0, 2));
}

#[test]
fn entries_go_when_their_own_timeouts_are_over() {
    const S: u64 = 1_000_000_000;
    let mut bed = Bed::new(EntryOrder::Age);
    let timed = |priority, idle_s, hard_s| {
        add(any(), priority, &[1]).with(|it| it.timeouts_s = (idle_s, hard_s))
    };
    bed.take([timed(1, 2, 0), timed(2, 0, 3), timed(3, 0, 0)]);
    bed.table.record(Some(0), 60, S);
    let mut reasons = |now_ns| -> Vec<_> {
        let gone = bed.table.expire(&mut bed.ports, now_ns);
        let reason = |entry: &FlowEntry<_>| (entry.request.priority, entry.overdue(now_ns));
        gone.iter().map(reason).collect()
    };
    assert_eq!(reasons(3 * S - 1), []);
    assert_eq!(
        reasons(3 * S),
        [
            (1, Some(FlowRemovedReason::Idle)),
            (2, Some(FlowRemovedReason::Hard))
        ]
    );
    assert_eq!(reasons(1_000_000 * S), []);
}

/// A message that is likely to select entries of others.
fn any_flow_mod() -> impl Strategy<Value = FlowMod> {
    let exact = Match::of_frame(&[0; 60], 3);
    let fields = prop_oneof![Just(any()), (1_u16..5).prop_map(from_port), Just(exact)];
    let flags = prop_oneof![4 => Just(0), 1 => Just(flag::CHECK_OVERLAP)];
    let out_port = prop_oneof![Just(NONE), 1_u16..4];
    let output = prop_oneof![9 => 1_u16..4, 1 => Just(6)];
    let head = (0_u16..=5, fields, 0_u16..3, flags, out_port);
    (head, (0_u16..4, 0_u16..4), output).prop_map(
        |((command, fields, priority, flags, out_port), timeouts_s, output)| FlowMod {
            flags,
            timeouts_s,
            out_port,
            ..flow_mod(command, fields, priority, &[output])
        },
    )
}

proptest! {
    #[test]
    fn the_index_selects_what_a_search_of_all_entries_does(
        order in prop_oneof![Just(EntryOrder::Age), Just(EntryOrder::Rank)],
        messages in proptest::collection::vec(any_flow_mod(), 1..80),
    ) {
        let mut indexed = Bed::new(order);
        let mut searched = Bed::new(order);
        searched.table.entries_mut();
        for (number, message) in (0..).zip(messages) {
            let now_ns = number * 300_000_000;
            let [done, expected] = [&mut indexed, &mut searched].map(|bed| {
                bed.ports.room = 8;
                let expired = bed.table.expire(&mut bed.ports, now_ns);
                let done = bed.send(now_ns, &message);
                bed.table.record(bed.table.entries().len().checked_sub(1), 60, now_ns);
                format!("{expired:?} {done:?} {:?}", bed.table.entries())
            });
            prop_assert_eq!(done, expected);
        }
    }
}
