//! Rules of a hardware table: which entries it holds, and where, by the kinds of their match and actions.
//!
//! A switch chip has no one table for all entries: some kinds of match or action it cannot do, and its agent then
//! forwards such frames itself or refuses the entry; and wide entries need more of the memory. The kinds are those of
//! table III of the predictability study (Van Bemten et al., "Empirical Predictability Study of SDN Switches").

use openflow::v1_0::Match;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zodiac_firmware::{section, some_number, NumberSource, Sourced};

/// The whole memory of a hardware table, of which each entry takes a share.
pub(crate) const WHOLE: u64 = 1 << 40;

/// Names of fields in sets of these, beside the bits of [`wildcards`]: these two stand where the wildcards have the number
/// of open address bits.
mod field {
    pub(super) use openflow::v1_0::wildcards::*;

    pub(super) const NW_SRC: u32 = 1 << NW_SRC_SHIFT;
    pub(super) const NW_DST: u32 = 1 << NW_DST_SHIFT;
    pub(super) const FIVE_TUPLE: u32 = NW_SRC | NW_DST | NW_PROTO | TP_SRC | TP_DST;
    pub(super) const WITH_MACS: u32 = FIVE_TUPLE | DL_SRC | DL_DST;
    pub(super) const WITH_MACS_AND_TOS: u32 = WITH_MACS | NW_TOS;
    pub(super) const VLAN_AND_PCP: u32 = DL_VLAN | DL_VLAN_PCP;
    pub(super) const TRANSPORT: u32 = NW_PROTO | TP_DST;
}

/// Kinds of matches, by the fields that they name; the type of frame is named by all that look into IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchKind {
    /// The port that the frame came in on, alone.
    Port,
    /// Ethernet destination.
    DlDst,
    /// VLAN.
    DlVlan,
    /// VLAN and its priority.
    DlVlanPcp,
    /// IP destination, or a prefix of it.
    MaskedNwDst,
    /// Transport destination port.
    TpDst,
    /// IP addresses, protocol and transport ports.
    FiveTuple,
    /// Ethernet addresses and the five-tuple, with or without type of service.
    All,
    /// Any other set of fields.
    Other,
}

impl MatchKind {
    /// Returns the kind of a normalised match.
    pub(crate) fn of(fields: &Match) -> Self {
        let mut named = !fields.wildcards
            & (field::IN_PORT
                | field::DL_VLAN
                | field::DL_SRC
                | field::DL_DST
                | field::NW_PROTO
                | field::TP_SRC
                | field::TP_DST
                | field::DL_VLAN_PCP
                | field::NW_TOS);
        if field::names_address(fields.wildcards, field::NW_SRC_SHIFT) {
            named |= field::NW_SRC;
        }
        if field::names_address(fields.wildcards, field::NW_DST_SHIFT) {
            named |= field::NW_DST;
        }
        match named {
            field::IN_PORT => Self::Port,
            field::DL_DST if fields.wildcards & field::DL_TYPE != 0 => Self::DlDst,
            field::DL_VLAN => Self::DlVlan,
            field::VLAN_AND_PCP => Self::DlVlanPcp,
            field::NW_DST => Self::MaskedNwDst,
            field::TRANSPORT => Self::TpDst,
            field::FIVE_TUPLE => Self::FiveTuple,
            field::WITH_MACS | field::WITH_MACS_AND_TOS => Self::All,
            _ => Self::Other,
        }
    }
}

/// Kinds of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the standard's names
pub enum ActionKind {
    Output,
    SetVlanId,
    SetVlanPcp,
    StripVlan,
    SetDlSrc,
    SetDlDst,
    SetNwSrc,
    SetNwDst,
    SetNwTos,
    SetTpSrc,
    SetTpDst,
    Enqueue,
}

impl ActionKind {
    const IN_ORDER: [Self; 12] = [
        Self::Output,
        Self::SetVlanId,
        Self::SetVlanPcp,
        Self::StripVlan,
        Self::SetDlSrc,
        Self::SetDlDst,
        Self::SetNwSrc,
        Self::SetNwDst,
        Self::SetNwTos,
        Self::SetTpSrc,
        Self::SetTpDst,
        Self::Enqueue,
    ];

    /// Returns the kind with this number of OpenFlow 1.0.
    pub(crate) fn numbered(number: u16) -> Option<Self> {
        Self::IN_ORDER.get(usize::from(number)).copied()
    }
}

/// Who forwards what an entry matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// The switch chip.
    #[default]
    Hardware,
    /// The switch's CPU.
    Software,
    /// Nobody: such entries are refused.
    Refused,
}

section! {
    /// Rule for entries of some kinds.
    pub struct TableRule {
        /// Kinds of matches to which the rule applies; if empty, all.
        #[serde(default)]
        matches: Vec<MatchKind>,
        /// It applies to entries with any of these actions; if empty, to those with whatever actions.
        #[serde(default)]
        actions: Vec<ActionKind>,
        /// Who forwards what such entries match.
        #[serde(default)]
        path: Path,
        /// How many of them fill the hardware table; if absent, as many as if there were no rule.
        entries: Option<u64>,
        /// One in this many of them that are deleted takes its room with it: from then on fewer entries of this rule fit.
        loses_one_in: Option<u64>,
        /// Where the rule comes from.
        source: NumberSource,
        #[serde(default)]
        note: String,
    }
}

/// The rules of a table. The first one that fits an entry counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableModel {
    pub(crate) rules: Vec<TableRule>,
    /// Default capacity of the hardware table in entries.
    pub(crate) entries: u64,
    /// Entries that the software table holds.
    pub(crate) software_entries: u64,
    /// Tagged frames match no entry.
    pub(crate) misses_tagged: bool,
}

/// Which table an entry goes to, and how much of its memory it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) path: Path,
    /// Its share of that table's memory, which is [`WHOLE`].
    pub(crate) share: u64,
    /// Index of the rule that applies, if one does.
    pub(crate) rule: Option<usize>,
}

impl TableModel {
    /// Returns where an entry with this match and these actions goes.
    pub(crate) fn place(&self, fields: &Match, actions: &[ActionKind]) -> Placement {
        let kind = MatchKind::of(fields);
        let number = self.rules.iter().position(|rule| {
            (rule.matches.is_empty() || rule.matches.contains(&kind))
                && (rule.actions.is_empty()
                    || rule.actions.iter().any(|action| actions.contains(action)))
        });
        let rule = number.map(|number| &self.rules[number]);
        let path = rule.map_or(Path::Hardware, |rule| rule.path);
        let entries = match path {
            Path::Software => self.software_entries,
            _ => rule.and_then(|rule| rule.entries).unwrap_or(self.entries),
        };
        Placement {
            path,
            share: WHOLE / entries.max(1),
            rule: number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(bits: u32, nw_src_open: u32, nw_dst_open: u32) -> Match {
        let addresses = nw_src_open << 8 | nw_dst_open << 14;
        Match {
            wildcards: field::ALL & !bits & !(0x3f << 8) & !(0x3f << 14) | addresses,
            dl_type: 0x0800,
            nw_proto: 17,
            dl_vlan: 5,
            ..Match::read(&[])
        }
        .normalised()
    }

    #[test]
    fn matches_are_of_the_kinds_of_the_study() {
        use field::*;
        let ip = DL_TYPE | NW_PROTO;
        let ports = TP_SRC | TP_DST;
        for (fields, kind) in [
            (named(IN_PORT, 32, 32), MatchKind::Port),
            (named(DL_DST, 32, 32), MatchKind::DlDst),
            (named(DL_VLAN, 32, 32), MatchKind::DlVlan),
            (named(DL_VLAN | DL_VLAN_PCP, 32, 32), MatchKind::DlVlanPcp),
            (named(DL_TYPE, 32, 8), MatchKind::MaskedNwDst),
            (named(ip | TP_DST, 32, 32), MatchKind::TpDst),
            (named(ip | ports, 0, 0), MatchKind::FiveTuple),
            (
                named(ip | ports | DL_SRC | DL_DST | NW_TOS, 0, 0),
                MatchKind::All,
            ),
            (named(IN_PORT | DL_DST, 32, 32), MatchKind::Other),
            (named(0, 32, 32), MatchKind::Other),
        ] {
            assert_eq!(MatchKind::of(&fields), kind, "{fields:?}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_counts_and_says_what_an_entry_takes() {
        let rule = |text: &str| toml::from_str::<TableRule>(text).unwrap();
        let model = TableModel {
            rules: vec![
                rule("actions = ['set-nw-src']\npath = 'software'\nsource = 'paper'"),
                rule("matches = ['port']\nentries = { value = 10, source = 'paper' }\nsource = 'paper'"),
            ],
            entries: 100,
            software_entries: 1_000,
            misses_tagged: false,
        };
        let port = named(field::IN_PORT, 32, 32);
        let place = |actions: &[ActionKind]| model.place(&port, actions);
        assert_eq!(place(&[ActionKind::Output]).share, WHOLE / 10);
        let software = place(&[ActionKind::SetNwSrc, ActionKind::Output]);
        assert_eq!(
            (software.path, software.share),
            (Path::Software, WHOLE / 1_000)
        );
        let other = model.place(&named(field::DL_DST, 32, 32), &[ActionKind::Output]);
        assert_eq!((other.path, other.share), (Path::Hardware, WHOLE / 100));
    }
}
