//! Finds what the firmware will do otherwise than a `FLOW_MOD` of OpenFlow 1.0 asks.

use super::message::FlowMod;
use super::spec::check_actions;
use super::{FlowTable, ACTION_BYTES};
use crate::event::Cause;
use crate::matching::selects;
use crate::quirks::{Quirk, Quirks};
use of_switch::v1_0::{FlowEntry, FlowRequest};
use openflow::bytes::{be16, be32};
use openflow::ethernet::{ARP, IPV4};
use openflow::v1_0::flow_mod::{field, flag, FLOW_MOD_BYTES};
use openflow::v1_0::wildcards as w;
use openflow::v1_0::{action, port, Match};

/// `dl_vlan` of frames without a tag.
const NO_VLAN: u16 = 0xffff;

impl FlowTable {
    /// Returns why the board will not do what this `FLOW_MOD` asks, before it is carried out; `None` if it will, or refuses
    /// it.
    pub(crate) fn flow_mod_cause(&self, message: FlowMod) -> Option<Cause> {
        if message.length < FLOW_MOD_BYTES {
            return Some(Cause::Short);
        }
        let is_broken = self.quirks.has(Quirk::BrokenFlowMods);
        match be16(message.head(), field::COMMAND) {
            command @ 0..=2 if is_broken => unchecked_cause(message)
                .or_else(|| self.entry_cause(message))
                .or_else(|| self.change_cause(message, command)),
            // The entries that it changes keep their match and their timeouts.
            1..=2 if self.selected_by_spec(message).contains(&true) => None,
            0..=2 => self.entry_cause(message),
            command @ 3..=4 => self.delete_cause(message, command == 4),
            _ => is_broken.then_some(Cause::CommandUnknown),
        }
    }

    /// Returns why the entry that a message adds will not match and stay as it says.
    fn entry_cause(&self, message: FlowMod) -> Option<Cause> {
        let head = message.head();
        let timed = be16(head, field::IDLE_TIMEOUT) != 0 || be16(head, field::HARD_TIMEOUT) != 0;
        if timed && self.quirks.has(Quirk::TimeoutsByAddress) {
            return Some(Cause::TimeoutsIgnored);
        }
        match_cause(&message.fields(), self.quirks)
    }

    /// Returns what the firmware does with the entries that are there, where ADD or MODIFY asks for something else.
    fn change_cause(&self, message: FlowMod, command: u16) -> Option<Cause> {
        match command {
            0 => self
                .selected_by_spec(message)
                .contains(&true)
                .then_some(Cause::Shadowed),
            1 => Some(self.modify_cause(message, false)),
            _ => Some(self.modify_cause(message, true)),
        }
    }

    /// A MODIFY changes nothing, or appends an entry beside what it changes.
    fn modify_cause(&self, message: FlowMod, strict: bool) -> Cause {
        if self.selected_by_firmware(message, strict).contains(&true) {
            Cause::ModifyAppends
        } else {
            Cause::ModifiesNothing
        }
    }

    fn selected_by_firmware(&self, message: FlowMod, strict: bool) -> Vec<bool> {
        let wanted = message.fields();
        let head = message.head();
        let heads = self.table.entries().iter().map(|entry| self.head(entry));
        heads
            .map(|entry| {
                if strict {
                    super::flow_mod::same_match(entry, head)
                        && be16(entry, field::PRIORITY) == be16(head, field::PRIORITY)
                } else {
                    selects(&wanted, &Match::read(&entry[field::MATCH..]))
                }
            })
            .collect()
    }

    fn selected_by_spec(&self, message: FlowMod) -> Vec<bool> {
        let request = FlowRequest::read(message.head());
        let entries = self.table.entries().iter().map(|entry| &entry.request);
        entries
            .map(|entry| request.selects(&entry.fields, entry.priority))
            .collect()
    }

    fn delete_cause(&self, message: FlowMod, strict: bool) -> Option<Cause> {
        let out_port = be16(message.head(), field::OUT_PORT);
        let is_broken = self.quirks.has(Quirk::BrokenFlowMods);
        if is_broken && out_port != port::NONE {
            return Some(Cause::DeleteByPort);
        }
        let meant = self.selected_by_spec(message);
        let goes = match strict {
            _ if !is_broken => meant.clone(),
            true => self.deleted_strictly(message),
            false => self.selected_by_firmware(message, false),
        };
        if meant != goes {
            return Some(Cause::DeletesOthers);
        }
        let told = message.wants_flow_removed();
        let differs = |entry: &FlowEntry<_>| {
            entry.request.wants_flow_removed() != told && entry.sends_to(&self.memory, out_port)
        };
        let mut gone = self.table.entries().iter().zip(goes);
        let is_lost = gone.any(|(entry, goes)| goes && differs(entry));
        (self.quirks.has(Quirk::FlowRemovedByDeleteFlag) && is_lost).then_some(Cause::NoticeLost)
    }

    /// Returns the entries that `DELETE_STRICT` of the firmware removes: by cookie, and not those that move into a gap.
    fn deleted_strictly(&self, message: FlowMod) -> Vec<bool> {
        let head = message.head();
        let cookie = field::COOKIE..field::COOKIE + 8;
        let is_meant = |index: usize| {
            let entry = self.head(&self.table.entries()[index]);
            super::flow_mod::same_match(entry, head)
                && entry[cookie.clone()] == head[cookie.clone()]
        };
        let mut order: Vec<usize> = (0..self.table.entries().len()).collect();
        let mut goes = vec![false; order.len()];
        let mut at = 0;
        while at < order.len() {
            if is_meant(order[at]) {
                goes[order.swap_remove(at)] = true;
            }
            at += 1;
        }
        goes
    }

    /// Returns whether the entry that a message has just added has further actions, which its memory held before.
    pub(crate) fn has_stale_actions(&self, message: FlowMod) -> bool {
        let Some(entry) = self.table.entries().last() else {
            return false;
        };
        let asked = check_actions(message.actions(), false);
        asked.is_ok_and(|asked| self.memory.pool.read(entry.held.slots, ACTION_BYTES) != asked)
    }
}

/// Returns what the firmware does not look at in a message that adds or changes an entry.
fn unchecked_cause(message: FlowMod) -> Option<Cause> {
    let head = message.head();
    let list = message.actions();
    if check_actions(list, false).is_err() {
        return Some(Cause::ActionsUnchecked);
    }
    if be32(head, field::BUFFER) != u32::MAX {
        return Some(Cause::BufferIgnored);
    }
    if be16(head, field::FLAGS) & (flag::CHECK_OVERLAP | flag::EMERGENCY) != 0 {
        return Some(Cause::FlagsIgnored);
    }
    let mut rest = list;
    while !rest.is_empty() {
        if be16(rest, 0) == action::SET_VLAN_VID && be16(rest, 4) == 0 {
            return Some(Cause::VlanZero);
        }
        rest = &rest[usize::from(be16(rest, 2))..];
    }
    None
}

/// Returns whether the firmware examines a field that means nothing, as packets with the other fields do not have it.
fn examines_more(raw: &Match, normalised: &Match) -> bool {
    let ignored = |bit: u32| raw.wildcards & bit == 0 && normalised.wildcards & bit != 0;
    let address = |shift| {
        w::names_address(raw.wildcards, shift) && !w::names_address(normalised.wildcards, shift)
    };
    ignored(w::NW_PROTO) && raw.nw_proto != 0
        || ignored(w::TP_SRC) && raw.tp_src != 0
        || ignored(w::TP_DST) && raw.tp_dst != 0
        || address(w::NW_SRC_SHIFT) && raw.nw_src != 0
        || address(w::NW_DST_SHIFT) && raw.nw_dst != 0
}

/// Returns why an entry with these fields does not match the frames that it says.
fn match_cause(raw: &Match, quirks: Quirks) -> Option<Cause> {
    let fields = &raw.normalised();
    let is_limited = quirks.has(Quirk::LimitedMatching);
    if let Some(cause) = limited_match_cause(fields).filter(|_| is_limited) {
        return Some(cause);
    }
    let address = |shift| w::names_address(fields.wildcards, shift);
    let of_arp = fields.wildcards & w::DL_TYPE == 0
        && fields.dl_type == ARP
        && (fields.wildcards & w::NW_PROTO == 0
            || address(w::NW_SRC_SHIFT)
            || address(w::NW_DST_SHIFT));
    if of_arp && quirks.has(Quirk::ArpFieldsUnmatched) {
        return Some(Cause::ArpFieldsOpen);
    }
    (is_limited && examines_more(raw, fields)).then_some(Cause::MatchDiffers)
}

/// Returns why the search of the firmware does not find an entry with these fields, normalised, for the frames that it says.
fn limited_match_cause(fields: &Match) -> Option<Cause> {
    let given = |bit: u32| fields.wildcards & bit == 0;
    let address = |shift| w::names_address(fields.wildcards, shift);
    let network = given(w::DL_TYPE) && matches!(fields.dl_type, IPV4 | ARP);
    let ipv4 = network && fields.dl_type == IPV4;
    let never = given(w::DL_TYPE) && fields.dl_type != 0 && !network
        || ipv4
            && given(w::NW_PROTO)
            && fields.nw_proto != 0
            && !matches!(fields.nw_proto, 1 | 6 | 17);
    if never {
        return Some(Cause::MatchNever);
    }
    let zero = given(w::IN_PORT) && fields.in_port == 0
        || given(w::DL_TYPE) && fields.dl_type == 0
        || given(w::NW_PROTO) && fields.nw_proto == 0
        || address(w::NW_SRC_SHIFT) && fields.nw_src == 0
        || address(w::NW_DST_SHIFT) && fields.nw_dst == 0
        || given(w::TP_SRC) && fields.tp_src == 0
        || given(w::TP_DST) && fields.tp_dst == 0;
    let of_vlan = given(w::DL_VLAN) && fields.dl_vlan != NO_VLAN || given(w::DL_VLAN_PCP);
    (zero || of_vlan || given(w::NW_TOS)).then_some(Cause::MatchDiffers)
}
