//! Finds what the firmware will do otherwise than a message of OpenFlow 1.3 asks.

use super::groups::Groups;
use super::matching::{compile, Test};
use super::meters::Meters;
use super::spec::LIMITS;
use super::table::{self, padded, Entry13, EntryView13, FlowMod13, TABLES};
use super::Switch13;
use crate::event::Cause;
use crate::port::PortMask;
use of_switch::v1_3::{check_entry, check_group, Ids};
use of_switch::PortSets;
use openflow::bytes::{be16, be32, be64};
use openflow::message::FLOW_MOD;
use openflow::message13::{GROUP_MOD, METER_MOD, MULTIPART_REQUEST};
use openflow::v1_3::flow_mod::{self, flag, FLOW_MOD_BYTES};
use openflow::v1_3::port::ANY;
use openflow::v1_3::{field, split, Oxm, OxmMatch};

/// The action that sends to a port.
const OUTPUT: u16 = 0;

impl Ids for Groups {
    fn has(&self, id: u32) -> bool {
        self.views().any(|group| group.id == id)
    }
}

impl Ids for Meters {
    fn has(&self, id: u32) -> bool {
        self.list().iter().any(|meter| meter.id == id)
    }
}

impl Switch13 {
    /// Returns why the firmware will not do what a message asks, before it is carried out; `None` if it will.
    pub(crate) fn message_cause(
        &self,
        bytes: &[u8],
        length: usize,
        ports: PortMask,
    ) -> Option<Cause> {
        let shortest = match bytes[1] {
            FLOW_MOD => FLOW_MOD_BYTES,
            GROUP_MOD | METER_MOD | MULTIPART_REQUEST => 16,
            _ => 8,
        };
        if length < shortest {
            return Some(Cause::Short);
        }
        match bytes[1] {
            FLOW_MOD => self.flow_mod_cause(bytes, length, ports),
            GROUP_MOD => self.group_mod_cause(bytes, length, ports),
            METER_MOD => self.meter_mod_cause(bytes, length),
            MULTIPART_REQUEST => self.multipart_cause(bytes, length),
            _ => None,
        }
    }

    fn flow_mod_cause(&self, bytes: &[u8], length: usize, ports: PortMask) -> Option<Cause> {
        let message = &bytes[..length];
        let match_bytes = usize::from(be16(message, flow_mod::field::MATCH + 2));
        if flow_mod::field::MATCH + padded(match_bytes) > length {
            return Some(Cause::Short);
        }
        match message[flow_mod::field::COMMAND] {
            0 => self.add_cause(message, ports),
            3 | 4 => self.delete_cause(message),
            _ => None, // told already
        }
    }

    fn add_cause(&self, message: &[u8], ports: PortMask) -> Option<Cause> {
        let match_bytes = usize::from(be16(message, flow_mod::field::MATCH + 2));
        let Ok(wanted) = check_entry(message, known(ports), LIMITS, &self.groups, &self.meters)
        else {
            return Some(Cause::Unchecked);
        };
        if be32(message, flow_mod::field::BUFFER) != ANY {
            return Some(Cause::BufferIgnored);
        }
        if be16(message, flow_mod::field::FLAGS) & !flag::SEND_FLOW_REMOVED != 0 {
            return Some(Cause::FlagsIgnored);
        }
        let oxms = &message[flow_mod::field::OXMS..flow_mod::field::MATCH + match_bytes];
        if let Some(cause) = match_cause(oxms) {
            return Some(cause);
        }
        let instructions = &message[flow_mod::field::MATCH + padded(match_bytes)..];
        instructions_cause(instructions).or_else(|| self.replacement_cause(message, oxms, &wanted))
    }

    /// Returns a cause if an ADD replaces another entry than the one with the same match, or not that one.
    fn replacement_cause(&self, message: &[u8], oxms: &[u8], wanted: &OxmMatch) -> Option<Cause> {
        let (list, _) = split(oxms);
        let request = FlowMod13::new(message, message.len(), message.len());
        self.entries.views().find_map(|view| {
            let entry = view.entry;
            if !table::is_beside(entry, request) {
                return None;
            }
            let is_same = is_same(entry, &list, wanted);
            match (is_same, table::begins_with(entry, request)) {
                (true, false) => Some(Cause::Shadowed),
                (false, true) => Some(Cause::ReplacesAnother),
                _ => None,
            }
        })
    }

    fn delete_cause(&self, message: &[u8]) -> Option<Cause> {
        let Ok((wanted, oxms, _)) = OxmMatch::read(&message[flow_mod::field::MATCH..]) else {
            return Some(Cause::Unchecked);
        };
        if be16(message, flow_mod::field::FLAGS) & !flag::ALL != 0 {
            return Some(Cause::FlagsIgnored);
        }
        let word = |at: usize| be32(message, at);
        if word(flow_mod::field::OUT_PORT) != ANY || word(flow_mod::field::OUT_GROUP) != ANY {
            return Some(Cause::DeleteByPort);
        }
        let number = message[flow_mod::field::TABLE];
        if usize::from(number) >= TABLES && number != u8::MAX {
            return Some(Cause::DeletesOthers);
        }
        let strict = message[flow_mod::field::COMMAND] == 4;
        let request = FlowMod13::new(message, message.len(), message.len());
        let (list, _) = split(oxms);
        let cookie = be64(message, flow_mod::field::COOKIE);
        let mask = be64(message, flow_mod::field::COOKIE_MASK);
        let is_meant = |entry: &Entry13| {
            (number == u8::MAX || number == entry.table)
                && (entry.cookie() ^ cookie) & mask == 0
                && if strict {
                    entry.half(flow_mod::field::PRIORITY) == request.priority()
                        && is_same(entry, &list, &wanted)
                } else {
                    list.is_empty()
                        || OxmMatch::of(&entry.oxms).is_ok_and(|held| wanted.covers(&held))
                }
        };
        let tells_all = be16(message, flow_mod::field::FLAGS) & flag::SEND_FLOW_REMOVED != 0;
        self.entries.views().find_map(|EntryView13 { entry, .. }| {
            let goes = table::is_deleted(entry, request, strict, &self.pool);
            if goes != is_meant(entry) {
                return Some(Cause::DeletesOthers);
            }
            (goes && tells_all && !entry.wants_flow_removed()).then_some(Cause::NoticeLost)
        })
    }

    fn group_mod_cause(&self, bytes: &[u8], length: usize, ports: PortMask) -> Option<Cause> {
        let (command, id) = (be16(bytes, 8), be32(bytes, 12));
        let is_active = self.groups.has(id);
        match command {
            0 if check_group(&bytes[..length], known(ports), LIMITS).is_err() => {
                Some(Cause::Unchecked)
            }
            0 => {
                let buckets = &bytes[16..length];
                let first = usize::from(be16(buckets, 0));
                let mut actions = buckets.get(16..first).unwrap_or(&[]).chunks_exact(16);
                let only = first > 0 && first == buckets.len();
                let outputs = actions
                    .all(|action| be16(action, 0) == OUTPUT && be16(action, 2) == 16)
                    && actions.remainder().is_empty();
                (!only || !outputs).then_some(Cause::GroupDiffers)
            }
            2 if (1..=4).contains(&id) => {
                let used = self
                    .entries
                    .views()
                    .any(|view| view.entry.program.groups().any(|group| group == id));
                (used || !is_active && self.groups.had(id)).then_some(Cause::GroupStays)
            }
            2 if id != 0xffff_fffc && id <= 0xffff_ff00 => None, // there is no such group
            _ => Some(Cause::GroupIgnored),
        }
    }

    fn meter_mod_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        let (command, flags, id) = (be16(bytes, 8), be16(bytes, 10), be32(bytes, 12));
        match command {
            0 | 1 => {
                let bands = &bytes[16..length];
                let usual = |band: &[u8]| {
                    matches!(be16(band, 0), 1 | 2) && be16(band, 2) == 16 && be32(band, 4) > 0
                };
                let rate = matches!(flags & 3, 1 | 2) && flags & !0b1011 == 0;
                let valid = (1..=0xffff_0000).contains(&id)
                    && rate
                    && bands.len() % 16 == 0
                    && bands.chunks_exact(16).all(usual);
                (!valid).then_some(Cause::MeterUnchecked)
            }
            2 => {
                let used = self.entries.views().any(|view| {
                    let meter = view.entry.program.meter;
                    meter.is_some_and(|meter| meter == id || id == ANY)
                });
                used.then_some(Cause::MeterStays)
            }
            _ => Some(Cause::CommandUnknown),
        }
    }

    fn multipart_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        match be16(bytes, 8) {
            1 | 2 if length < 56 => Some(Cause::Short),
            kind @ 1..=2 => {
                let all = bytes[16] == u8::MAX
                    && be32(bytes, 20) == ANY
                    && be32(bytes, 24) == ANY
                    && be64(bytes, 40) == 0
                    && be16(bytes, 48) == 1
                    && be16(bytes, 50) == 4;
                if !all {
                    return Some(Cause::FilterIgnored);
                }
                (kind == 1 && self.leaves_entries_out()).then_some(Cause::StatisticsCut)
            }
            3 if !self.has_room_for_tables() => Some(Cause::NoRoom),
            4 | 6 | 9 | 10 if length < 24 => Some(Cause::Short),
            6 if be32(bytes, 16) != 0xffff_fffc => Some(Cause::FilterIgnored),
            12 => Some(Cause::TableFeatures),
            _ => None,
        }
    }
}

/// Returns whether an entry has the match of a message, whose fields are `list` and mean `wanted`.
fn is_same(entry: &Entry13, list: &[Oxm], wanted: &OxmMatch) -> bool {
    // Most entries of a table have the same fields with other values: no need to read those.
    !list.iter().any(|oxm| oxm.differs_among(&entry.oxms))
        && OxmMatch::of(&entry.oxms).is_ok_and(|held| held.equals(wanted))
}

/// The ports as the checks of the specification take them.
fn known(ports: PortMask) -> PortSets {
    let ports = ports.into();
    PortSets {
        all: ports,
        forwarding: ports,
        live: ports,
    }
}

/// Returns why an entry with these fields, which are valid, does not match the frames that it says.
fn match_cause(oxms: &[u8]) -> Option<Cause> {
    let tests = compile(oxms);
    if tests.contains(&Test::Never) {
        return Some(Cause::MatchNever);
    }
    let partial = |mask: &[u8; 6]| mask.iter().any(|byte| !matches!(byte, 0 | 0xff));
    let differs = tests.iter().any(|test| match test {
        Test::EthDstMasked(_, mask) | Test::EthSrcMasked(_, mask) => partial(mask),
        Test::MplsLabel(_) | Test::MplsTc(_) | Test::MplsBos(_) => true,
        Test::VlanVidMasked(value, mask) => value & !mask != 0,
        _ => false,
    });
    differs.then_some(Cause::MatchDiffers)
}

/// Returns what the firmware does otherwise than valid instructions say.
fn instructions_cause(mut rest: &[u8]) -> Option<Cause> {
    while !rest.is_empty() {
        let (this, behind) = rest.split_at(usize::from(be16(rest, 2)).clamp(8, rest.len()));
        match be16(this, 0) {
            1 | 6 => {}
            4 => {
                if has_other_action(&this[8..]) {
                    return Some(Cause::ActionsDiffer);
                }
            }
            _ => return Some(Cause::InstructionsIgnored),
        }
        rest = behind;
    }
    None
}

fn has_other_action(mut list: &[u8]) -> bool {
    while !list.is_empty() {
        let (this, behind) = list.split_at(usize::from(be16(list, 2)).clamp(8, list.len()));
        let known = match be16(this, 0) {
            0 | 18 | 22 => true,
            17 => be16(this, 4) == 0x8100,
            25 => matches!(
                this[6] >> 1,
                field::ETH_DST | field::ETH_SRC | field::ETH_TYPE | field::VLAN_VID..=field::IPV4_DST | field::TCP_SRC..=field::UDP_DST
            ),
            _ => false,
        };
        if !known {
            return true;
        }
        list = behind;
    }
    false
}
