//! Actions (OpenFlow 1.3.4, sections 5.10 to 5.12 and 7.2.5): read, checked, performed on a frame.

use super::Ids;
use crate::PortSets;
use openflow::bytes::{be16, be32};
use openflow::ethernet::{MPLS, PBB};
use openflow::v1_3::error;
use openflow::v1_3::field;
use openflow::v1_3::port;
use openflow::v1_3::ParsedPacket;
use openflow::v1_3::{kind, number, KnownFields, VLAN_PRESENT, VLAN_TYPES};
use openflow::ErrorCode;

/// Where the field of `SET_FIELD` begins.
const OXM_AT: usize = 4;
/// Where its value begins.
const VALUE_AT: usize = 8;

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the standard's names
pub enum SpecAction {
    Output { port: u32, max_bytes: u16 },
    CopyTtlOut,
    CopyTtlIn,
    SetMplsTtl(u8),
    DecMplsTtl,
    PushVlan(u16),
    PopVlan,
    PushMpls(u16),
    PopMpls(u16),
    Group(u32),
    SetNwTtl(u8),
    DecNwTtl,
    SetField { field: u8, value: u128 },
    PushPbb(u16),
    PopPbb,
}

/// Scope of a list of actions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) ports: PortSets,
    /// None inside of a group, where other groups may not be named.
    pub(super) groups: Option<&'a dyn Ids>,
    /// Whether a frame may be sent to the tables: in a `PACKET_OUT`.
    pub(super) to_tables: bool,
}

/// Reads and checks a list. `known` is what is known of the frames that it will be performed on; of those of a group or a
/// `PACKET_OUT` nothing is.
pub(super) fn read(
    mut list: &[u8],
    scope: Scope,
    mut known: Option<KnownFields>,
) -> Result<Vec<SpecAction>, ErrorCode> {
    let mut actions = Vec::new();
    while !list.is_empty() {
        let length = usize::from(be16(list, 2));
        if list.len() < 8 || length < 8 || length % 8 != 0 || length > list.len() {
            return Err(error::BAD_ACTION_LENGTH);
        }
        let (bytes, rest) = list.split_at(length);
        let action = read_one(bytes, scope)?;
        if let Some(known) = &mut known {
            follow(action, known)?;
        }
        actions.push(action);
        list = rest;
    }
    Ok(actions)
}

fn read_one(bytes: &[u8], scope: Scope) -> Result<SpecAction, ErrorCode> {
    let kind = be16(bytes, 0);
    let expected = match kind {
        0 => 16,
        11 | 12 | 15..=24 | 26 | 27 => 8,
        25 => bytes.len(),
        0xffff => return Err(error::BAD_ACTION_EXPERIMENTER),
        _ => return Err(error::BAD_ACTION_TYPE),
    };
    if bytes.len() != expected {
        return Err(error::BAD_ACTION_LENGTH);
    }
    let word = be32(bytes, 4);
    let tag_type = |allowed: &[u16]| {
        let given = be16(bytes, 4);
        let is_allowed = allowed.contains(&given);
        is_allowed.then_some(given).ok_or(error::BAD_ARGUMENT)
    };
    Ok(match kind {
        0 => {
            let known = match word {
                port::IN_PORT | port::ALL | port::FLOOD | port::CONTROLLER => true,
                port::TABLE => scope.to_tables,
                port => scope.ports.exists(port),
            };
            if !known {
                return Err(error::BAD_OUT_PORT);
            }
            SpecAction::Output {
                port: word,
                max_bytes: be16(bytes, 8),
            }
        }
        11 => SpecAction::CopyTtlOut,
        12 => SpecAction::CopyTtlIn,
        15 => SpecAction::SetMplsTtl(bytes[4]),
        16 => SpecAction::DecMplsTtl,
        17 => SpecAction::PushVlan(tag_type(&VLAN_TYPES)?),
        18 => SpecAction::PopVlan,
        19 => SpecAction::PushMpls(tag_type(&MPLS)?),
        20 => SpecAction::PopMpls(be16(bytes, 4)),
        21 => return Err(error::BAD_ACTION_QUEUE),
        22 => match scope.groups {
            Some(groups) if groups.has(word) => SpecAction::Group(word),
            Some(_) => return Err(error::BAD_OUT_GROUP),
            None => return Err(error::CHAINING_UNSUPPORTED),
        },
        23 => SpecAction::SetNwTtl(bytes[4]),
        24 => SpecAction::DecNwTtl,
        25 => set_field(bytes)?,
        26 => SpecAction::PushPbb(tag_type(&[PBB])?),
        _ => SpecAction::PopPbb,
    })
}

fn set_field(bytes: &[u8]) -> Result<SpecAction, ErrorCode> {
    let [high, low, field, length] = [
        bytes[OXM_AT],
        bytes[OXM_AT + 1],
        bytes[OXM_AT + 2],
        bytes[OXM_AT + 3],
    ];
    let kind = kind(field >> 1)
        .filter(|kind| kind.settable && [high, low] == [0x80, 0] && field & 1 == 0)
        .ok_or(error::BAD_SET_TYPE)?;
    let end = VALUE_AT + kind.bytes;
    if usize::from(length) != kind.bytes || bytes.len() != end.next_multiple_of(8) {
        return Err(error::BAD_SET_LENGTH);
    }
    let value = number(&bytes[VALUE_AT..end]);
    let untagged = field >> 1 == field::VLAN_VID && value & VLAN_PRESENT == 0;
    if value & !kind.all() != 0 || untagged {
        return Err(error::BAD_SET_ARGUMENT);
    }
    Ok(SpecAction::SetField {
        field: field >> 1,
        value,
    })
}

/// Updates what is known of the frames by what an action does to them.
fn follow(action: SpecAction, known: &mut KnownFields) -> Result<(), ErrorCode> {
    match action {
        SpecAction::SetField { field, value } => {
            if !known.has(field) || (field == field::VLAN_VID && !known.tagged) {
                return Err(error::MATCH_INCONSISTENT);
            }
            known.learn(field, value);
        }
        SpecAction::PopVlan if !known.tagged => return Err(error::MATCH_INCONSISTENT),
        // A second tag may follow.
        SpecAction::PushVlan(_) => known.tagged = true,
        SpecAction::PushMpls(eth_type) | SpecAction::PopMpls(eth_type) => known.now_of(eth_type),
        SpecAction::PushPbb(eth_type) => {
            known.now_of(eth_type);
            known.tagged = false;
        }
        // The result is not known before the action is carried out.
        SpecAction::PopPbb => *known = KnownFields::default(),
        _ => {}
    }
    Ok(())
}

/// State of a frame after an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Frame,
    /// Its time to live is over.
    InvalidTtl,
}

/// Performs an action that changes the frame; outputs and groups are not its business.
pub(super) fn rewrite(action: SpecAction, packet: &mut ParsedPacket) -> Left {
    match action {
        SpecAction::CopyTtlOut => packet.copy_ttl_out(),
        SpecAction::CopyTtlIn => packet.copy_ttl_in(),
        SpecAction::SetMplsTtl(ttl) => packet.set_own_ttl(ttl, true),
        SpecAction::SetNwTtl(ttl) => packet.set_own_ttl(ttl, false),
        SpecAction::DecMplsTtl if !packet.lower_ttl(true) => return Left::InvalidTtl,
        SpecAction::DecNwTtl if !packet.lower_ttl(false) => return Left::InvalidTtl,
        SpecAction::PushVlan(eth_type) => packet.push_vlan(eth_type),
        SpecAction::PopVlan => packet.pop_vlan(),
        SpecAction::PushMpls(eth_type) => packet.push_mpls(eth_type),
        SpecAction::PopMpls(eth_type) => packet.pop_mpls(eth_type),
        SpecAction::SetField { field, value } => packet.set(field, value),
        SpecAction::PushPbb(eth_type) => packet.push_pbb(eth_type),
        SpecAction::PopPbb => packet.pop_pbb(),
        SpecAction::DecMplsTtl
        | SpecAction::DecNwTtl
        | SpecAction::Output { .. }
        | SpecAction::Group(_) => {}
    }
    Left::Frame
}

/// Returns where an action stands in the order in which an action set is performed (section 5.10).
const fn rank(action: SpecAction) -> u8 {
    match action {
        SpecAction::CopyTtlIn => 0,
        SpecAction::PopVlan | SpecAction::PopMpls(_) | SpecAction::PopPbb => 1,
        SpecAction::PushMpls(_) => 2,
        SpecAction::PushPbb(_) => 3,
        SpecAction::PushVlan(_) => 4,
        SpecAction::CopyTtlOut => 5,
        SpecAction::DecMplsTtl | SpecAction::DecNwTtl => 6,
        SpecAction::SetField { .. } | SpecAction::SetMplsTtl(_) | SpecAction::SetNwTtl(_) => 7,
        SpecAction::Group(_) => 8,
        SpecAction::Output { .. } => 9,
    }
}

/// An action set: at most one action of each type, and of `SET_FIELD` one of each field.
#[derive(Clone, Debug, Default)]
pub(super) struct ActionSet(Vec<SpecAction>);

impl ActionSet {
    /// Puts actions in; each takes the place of an earlier one of its type.
    pub(super) fn write(&mut self, actions: &[SpecAction]) {
        for action in actions {
            self.0.retain(|held| !same_type(*held, *action));
            self.0.push(*action);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The actions in the order in which they are performed: with a group the outputs beside it do not count, and without
    /// both the frame is dropped (section 5.10).
    pub(super) fn ordered(&self) -> Vec<SpecAction> {
        let mut actions = self.0.clone();
        let group = actions.iter().any(|it| matches!(it, SpecAction::Group(_)));
        let output = actions
            .iter()
            .any(|it| matches!(it, SpecAction::Output { .. }));
        if !group && !output {
            return Vec::new();
        }
        actions.retain(|it| !group || !matches!(it, SpecAction::Output { .. }));
        actions.sort_by_key(|action| rank(*action));
        actions
    }
}

fn same_type(one: SpecAction, other: SpecAction) -> bool {
    match (one, other) {
        (SpecAction::SetField { field, .. }, SpecAction::SetField { field: other, .. }) => {
            field == other
        }
        _ => std::mem::discriminant(&one) == std::mem::discriminant(&other),
    }
}
