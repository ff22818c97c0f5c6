//! Instructions and actions of an entry, read once into the form that the pipeline performs (quirks 151 to 158).

use openflow::bytes::{be16, be32};

/// Types of instructions.
mod instruction {
    pub(super) const GOTO_TABLE: u16 = 1;
    pub(super) const APPLY_ACTIONS: u16 = 4;
    pub(super) const METER: u16 = 6;
    /// The firmware takes the type for the index of a word on its stack, and overwrites that (quirk 155). From this type on
    /// the word is outside the 128 KB of RAM, wherever the stack is.
    pub(super) const FIRST_FATAL: u16 = (128 * 1_024 / size_of::<u32>()) as u16;
}

/// Types of actions.
mod action {
    pub(super) const OUTPUT: u16 = 0;
    pub(super) const SET_MPLS_TTL: u16 = 15;
    pub(super) const PUSH_VLAN: u16 = 17;
    pub(super) const POP_VLAN: u16 = 18;
    pub(super) const PUSH_MPLS: u16 = 19;
    pub(super) const POP_MPLS: u16 = 20;
    pub(super) const GROUP: u16 = 22;
    pub(super) const SET_FIELD: u16 = 25;
}

/// Shortest instruction with a list of actions.
const ACTIONS_AT: usize = 8;
/// Longest value that `SET_FIELD` puts into a frame.
const VALUE_BYTES: usize = 6;

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action13 {
    Output {
        port: u32,
        max_bytes: u16,
    },
    Group(u32),
    PushVlan(u16),
    PopVlan,
    PushMpls(u16),
    PopMpls,
    SetMplsTtl(u8),
    SetField {
        field: u8,
        value: [u8; VALUE_BYTES],
    },
    /// Its length is 0: the board stops here for good (quirk 154).
    Hang,
}

/// Reads a list of `length` bytes at the beginning of `memory`. A list that is longer than what was stored goes on in
/// the memory behind.
pub(super) fn read_actions(memory: &[u8], length: usize) -> Vec<Action13> {
    let mut actions = Vec::new();
    let mut at = 0;
    while at < length {
        let bytes = memory.get(at..).unwrap_or(&[]);
        let step = usize::from(be16(bytes, 2));
        if step == 0 {
            actions.push(Action13::Hang);
            return actions;
        }
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        match be16(bytes, 0) {
            action::OUTPUT => actions.push(Action13::Output {
                port: be32(bytes, 4),
                max_bytes: be16(bytes, 8),
            }),
            action::GROUP => actions.push(Action13::Group(be32(bytes, 4))),
            action::PUSH_VLAN => actions.push(Action13::PushVlan(be16(bytes, 4))),
            action::POP_VLAN => actions.push(Action13::PopVlan),
            action::PUSH_MPLS => actions.push(Action13::PushMpls(be16(bytes, 4))),
            action::POP_MPLS => actions.push(Action13::PopMpls),
            action::SET_MPLS_TTL => actions.push(Action13::SetMplsTtl(byte(4))),
            // Class, mask and length of the field are not looked at (quirk 164).
            action::SET_FIELD => actions.push(Action13::SetField {
                field: byte(6) >> 1,
                value: core::array::from_fn(|i| byte(8 + i)),
            }),
            _ => {} // skipped (quirk 158)
        }
        at += step;
    }
    actions
}

/// Instructions of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) meter: Option<u32>,
    pub(super) actions: Vec<Action13>,
    pub(super) next_table: Option<u8>,
    /// The board stops for good when a frame hits the entry, before it does anything with it (quirks 154, 155).
    pub(super) hangs: bool,
    /// There are no instructions.
    pub(super) is_empty: bool,
    /// It does nothing but send frames on, unchanged, to ports, groups, and the next table: all frames alike.
    pub(super) only_sends: bool,
}

impl Program {
    /// Reads the `length` bytes of instructions at the beginning of `memory`. Of several of a type the last one counts
    /// (quirk 152).
    pub(super) fn read(memory: &[u8], length: usize) -> Self {
        let mut program = Self {
            is_empty: length == 0,
            ..Self::default()
        };
        let mut at = 0;
        while at < length {
            let bytes = memory.get(at..).unwrap_or(&[]);
            let (kind, step) = (be16(bytes, 0), usize::from(be16(bytes, 2)));
            match kind {
                instruction::GOTO_TABLE => program.next_table = bytes.get(4).copied(),
                instruction::METER => program.meter = Some(be32(bytes, 4)),
                instruction::APPLY_ACTIONS => {
                    program.actions = match step.checked_sub(ACTIONS_AT) {
                        Some(list) => read_actions(bytes.get(ACTIONS_AT..).unwrap_or(&[]), list),
                        None => vec![Action13::Hang],
                    };
                }
                _ => program.hangs |= kind >= instruction::FIRST_FATAL,
            }
            if step == 0 {
                program.hangs = true;
                break;
            }
            at += step;
        }
        let sends =
            |action: &Action13| matches!(action, Action13::Output { .. } | Action13::Group(_));
        program.only_sends =
            !program.hangs && program.meter.is_none() && program.actions.iter().all(sends);
        program
    }

    /// Returns the groups that it sends frames to.
    pub(super) fn groups(&self) -> impl Iterator<Item = u32> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action13::Group(id) => Some(*id),
            _ => None,
        })
    }
}
