//! Which deviations of the firmware from OpenFlow 1.0.1 and 1.3.4 a board has. `docs/quirks.md` lists them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The deviations that a board has, as its settings name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quirks {
    /// All: the firmware 0.84.
    #[default]
    Firmware,
    /// None: OpenFlow 1.0.1 and 1.3.4.
    Spec,
    /// All but these.
    Without(QuirkSet),
    /// None but these.
    Only(QuirkSet),
}

impl Quirks {
    /// Returns whether the board has this deviation: the one place that decides. What the specification leaves open, or how
    /// the board is built, is the same in all boards, and nobody asks for it.
    #[inline]
    #[must_use]
    pub const fn has(self, quirk: Quirk) -> bool {
        match self {
            Self::Firmware => true,
            Self::Spec => false,
            Self::Without(set) => !set.contains(quirk),
            Self::Only(set) => set.contains(quirk),
        }
    }

    /// Returns the first deviation that the settings name although a board that always speaks this version cannot show it.
    pub(crate) fn misplaced(self, applies: impl Fn(Quirk) -> bool) -> Option<Quirk> {
        match self {
            Self::Firmware | Self::Spec => None,
            Self::Without(set) | Self::Only(set) => set.iter().find(|quirk| !applies(*quirk)),
        }
    }
}

/// A set of deviations, written as a list of their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuirkSet(u32);

impl QuirkSet {
    /// Returns whether the set has this deviation.
    #[inline]
    #[must_use]
    pub const fn contains(self, quirk: Quirk) -> bool {
        self.0 >> quirk as u32 & 1 == 1
    }

    /// Returns its deviations in the order of `docs/quirks.md`.
    pub fn iter(self) -> impl Iterator<Item = Quirk> {
        Quirk::ALL
            .into_iter()
            .filter(move |quirk| self.contains(*quirk))
    }
}

impl FromIterator<Quirk> for QuirkSet {
    fn from_iter<I: IntoIterator<Item = Quirk>>(quirks: I) -> Self {
        Self(
            quirks
                .into_iter()
                .fold(0, |bits, quirk| bits | 1 << quirk as u32),
        )
    }
}

impl Serialize for QuirkSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Quirk::name))
    }
}

impl<'de> Deserialize<'de> for QuirkSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<String>::deserialize(deserializer)?
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, UnknownQuirk>>()
            .map_err(serde::de::Error::custom)
    }
}

/// Declares the deviations with their names in settings.
macro_rules! quirks {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A deviation that can be switched on and off.
        ///
        /// Where one algorithm replaces another, the numbered deviations of `docs/quirks.md` that come from it go together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Quirk { $($(#[doc = $doc])+ $variant,)+ }

        impl Quirk {
            /// All of them, in the order of `docs/quirks.md`.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns its name in settings.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

quirks! {
    /// The first HELLO says the newest version, without a list of versions.
    NewestHello = "newest-hello",
    /// The board answers and asks before versions are agreed.
    SpeaksBeforeHello = "speaks-before-hello",
    /// A session without `FEATURES_REQUEST` ends.
    NeedsFeaturesRequest = "needs-features-request",
    /// Silence before a session counts against it.
    SilenceBeforeSession = "silence-before-session",
    /// Segments are read by themselves: with it go how messages are taken from the stream, and most answers of 1.0.
    NoReassembly = "no-reassembly",
    /// Replies in buffers of exact size break the connection: with it goes all of sending.
    TruncatedReplies = "truncated-replies",
    /// Ports have random addresses.
    RandomPortAddresses = "random-port-addresses",
    /// `FEATURES_REPLY` takes note of links.
    HiddenLinkChanges = "hidden-link-changes",
    /// Counters of ports are read seldom, and cut.
    CoarsePortCounters = "coarse-port-counters",
    /// A second lasts two ticks.
    LongSeconds = "long-seconds",
    /// Table counters begin again with each session.
    TableCountersPerSession = "table-counters-per-session",
    /// Identical flows are appended: with it goes all of `FLOW_MOD`.
    BrokenFlowMods = "broken-flow-mods",
    /// The DELETE, not the entry, asks for `FLOW_REMOVED`.
    FlowRemovedByDeleteFlag = "flow-removed-by-delete-flag",
    /// Entries are compared with addresses: with it go all timeouts.
    TimeoutsByAddress = "timeouts-by-address",
    /// `FLOW_REMOVED` counts in the byte order of the CPU.
    FlowRemovedByteOrder = "flow-removed-byte-order",
    /// Only ARP and some of IPv4 can match: with it goes all of matching.
    LimitedMatching = "limited-matching",
    /// Operation and addresses of ARP do not count.
    ArpFieldsUnmatched = "arp-fields-unmatched",
    /// FLOOD does what ALL does.
    FloodIsAll = "flood-is-all",
    /// VLAN actions go by the first tag: with it go all actions that change a frame.
    ActionsByFirstTag = "actions-by-first-tag",
    /// In safe mode nothing is forwarded between connection and HELLO.
    PauseBeforeHello = "pause-before-hello",
    /// A tag inserted into a `PACKET_OUT` overwrites the next message of its segment.
    InsertedTagOverwrites = "inserted-tag-overwrites",
    /// Tables, groups, meters and answers of OpenFlow 1.3, for which there is one implementation of the firmware and one of the
    /// specification.
    OpenFlow13 = "openflow13",
}

impl Quirk {
    /// Returns whether a board can show it in OpenFlow 1.0.
    #[must_use]
    pub const fn is_of_10(self) -> bool {
        !matches!(self, Self::OpenFlow13)
    }

    /// Returns whether a board can show it in OpenFlow 1.3: those of the session, of time and of transmission are shared by both
    /// versions.
    #[must_use]
    pub const fn is_of_13(self) -> bool {
        matches!(
            self,
            Self::NewestHello
                | Self::SpeaksBeforeHello
                | Self::NeedsFeaturesRequest
                | Self::SilenceBeforeSession
                | Self::NoReassembly
                | Self::TruncatedReplies
                | Self::CoarsePortCounters
                | Self::LongSeconds
                | Self::PauseBeforeHello
                | Self::OpenFlow13
        )
    }
}

/// No deviation has this name. Its `Display` is one line with the nearest names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no quirk is called `{name}`; the nearest are {nearest} (docs/quirks.md lists them)")]
pub struct UnknownQuirk {
    name: String,
    nearest: String,
}

impl FromStr for Quirk {
    type Err = UnknownQuirk;

    fn from_str(name: &str) -> Result<Self, UnknownQuirk> {
        const NEAREST: usize = 3;
        if let Some(quirk) = Self::ALL.into_iter().find(|quirk| quirk.name() == name) {
            return Ok(quirk);
        }
        let mut names = Self::ALL.map(Self::name);
        let alike = |other: &str| strsim::jaro(name, other);
        names.sort_by(|one, other| alike(other).total_cmp(&alike(one)));
        Err(UnknownQuirk {
            name: name.into(),
            nearest: list(names.into_iter().take(NEAREST)),
        })
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Names in a sentence.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
