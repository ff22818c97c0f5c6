//! Whether the board deviates from OpenFlow 1.0.1 and 1.3.4 as its firmware does. `docs/quirks.md` lists the deviations.

use serde::{Deserialize, Serialize};

/// Which behaviour a board shows where firmware and specification differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quirks {
    /// Behaviour of firmware 0.84.
    #[default]
    Firmware,
    /// Behaviour by OpenFlow 1.0.1 and 1.3.4.
    Spec,
}

impl Quirks {
    /// Returns whether this deviation of the firmware is shown: the one place that decides. What the specification
    /// leaves open, or how the board is built, is the same in both, and nobody asks for it.
    #[must_use]
    pub(crate) const fn has(self, quirk: Quirk) -> bool {
        let _ = quirk; // a board shows all of them or none
        matches!(self, Self::Firmware)
    }
}

/// The deviations for which the code asks, with their numbers in `docs/quirks.md` (1 to 83, 190 to 202).
///
/// Where one algorithm replaces another and several deviations go with it, the code asks for one of them. Those of 1.3 (84 to
/// 189) go together: the correct 1.3 switch is another one (`openflow13::spec`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// The first HELLO says the newest version.
    HelloOfNewest = 1,
    /// The board answers and asks before versions are agreed.
    SpeaksBeforeHello = 6,
    /// A session without `FEATURES_REQUEST` ends.
    AsksForFeaturesRequest = 8,
    /// Silence before a session counts against it.
    SilenceBeforeSession = 9,
    /// Segments are read by themselves: with it go all of how messages are taken from the stream.
    NoReassembly = 10,
    /// Replies in buffers of exact size break the connection: with it goes all of sending.
    BrokenSends = 14,
    /// Ports have random addresses.
    MadeUpAddresses = 19,
    /// `FEATURES_REPLY` takes note of links.
    FeaturesHideLinkChanges = 21,
    /// Counters of ports are read seldom, and cut.
    RareCounters = 32,
    /// A second lasts two ticks.
    LongSeconds = 34,
    /// Table counters begin again with each session.
    CountersOfSession = 36,
    /// Identical flows are appended: with it goes all of `FLOW_MOD`.
    BrokenFlowMods = 37,
    /// The DELETE, not the entry, asks for `FLOW_REMOVED`.
    NoticeByDelete = 50,
    /// Entries are compared with addresses: with it go all timeouts.
    TimeoutsByAddress = 51,
    /// `FLOW_REMOVED` counts in the byte order of the CPU.
    CountersOfCpu = 53,
    /// Only ARP and some of IPv4 can match: with it goes all of matching.
    FewMatches = 61,
    /// Operation and addresses of ARP do not count.
    ArpUnmatched = 66,
    /// FLOOD does what ALL does.
    FloodIsAll = 71,
    /// VLAN actions go by the first tag: with it go all actions.
    TagsAtTheBeginning = 74,
    /// In safe mode nothing is forwarded between connection and HELLO.
    PauseBeforeHello = 82,
    /// A tag inserted into a `PACKET_OUT` overwrites the next message.
    InsertedTagOverwrites = 198,
}
