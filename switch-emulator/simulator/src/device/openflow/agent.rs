//! Hardware installation of entries: from a switch's OpenFlow agent to its chip, and how the two come to differ.
//!
//! The agent is a program on the switch's CPU. It has a table of its own, from which it answers questions, and hands entries
//! over to the chip. Each part here is one of the ways in which the predictability study (Van Bemten et al.,
//! section III-A) saw that go wrong; a switch may have any of them. Without parts entries are in the chip at once.
//!
//! | part | what happens |
//! |---|---|
//! | `throttle` | the agent reads its session no faster than it works, and the more entries there are, the slower that is |
//! | `settling` | entries that come while the one before them settles may be lost, and the agent may list them none the less |
//! | `writer` | entries are written at a rate; a limited number can wait, and those deleted meanwhile may keep their room |

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zodiac_firmware::{number, section, Sourced};

use crate::random::Stream;

/// An instant that never comes: the chip will not have the entry.
pub(super) const NEVER: u64 = u64::MAX;
/// Longest span in a profile, 100 s.
const MAX_NS: u64 = 100_000_000_000;

/// Meaning of the reply to a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Barrier {
    /// The agent has worked on all that came before.
    #[default]
    Agent,
    /// The chip has all entries, too.
    Chip,
}

/// The parts of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AgentProfile {
    /// Meaning of the reply to a barrier.
    #[serde(default)]
    pub barrier: Barrier,
    /// How long it works on a `FLOW_MOD`.
    #[serde(default)]
    pub throttle: Option<Throttle>,
    /// Fate of entries that come too fast.
    #[serde(default)]
    pub settling: Option<Settling>,
    /// How entries come to the chip.
    #[serde(default)]
    pub writer: Option<Writer>,
}

section! {
    /// How long the agent works on a `FLOW_MOD`; what comes meanwhile waits.
    #[derive(Copy)]
    pub struct Throttle {
        /// Time while the table is empty.
        first_ns: u64,
        /// Additional time for each entry in the table.
        each_ns: u64,
    }
}

section! {
    /// Fate of entries that come while the one before them settles.
    #[derive(Copy)]
    pub struct Settling {
        /// Shortest time that an entry takes to settle.
        least_ns: u64,
        /// Longest time; all times in between are equally likely.
        most_ns: u64,
        /// Percentage of the entries coming too early that never get to the chip.
        lost_percent: u64,
        /// Percentage of these that are in the agent's table nevertheless.
        listed_percent: u64,
    }
}

section! {
    /// Entries are written to the chip one after another.
    #[derive(Copy)]
    pub struct Writer {
        /// Time to write an entry.
        write_ns: u64,
        /// How many entries can wait to be written; further ones are refused as if the table were full.
        waiting_entries: u64,
        /// Whether entries that are deleted while they wait keep their room for ever.
        #[serde(default)]
        keeps_deleted: bool,
    }
}

impl AgentProfile {
    /// Checks of the values: whether each holds, the key that it concerns, and how to mend it.
    pub(crate) fn rules(&self) -> Vec<(bool, &'static str, &'static str)> {
        let throttle = |one: Throttle| one.first_ns <= MAX_NS && one.each_ns <= MAX_NS;
        let settling = |one: Settling| {
            one.least_ns <= one.most_ns
                && one.most_ns <= MAX_NS
                && one.lost_percent <= 100
                && one.listed_percent <= 100
        };
        let writer = |one: Writer| {
            (1..=MAX_NS).contains(&one.write_ns) && (1..=1_000_000).contains(&one.waiting_entries)
        };
        vec![
            (
                self.throttle.is_none_or(throttle),
                "agent.throttle",
                "choose at most 100 s for first_ns and each_ns",
            ),
            (
                self.settling.is_none_or(settling),
                "agent.settling",
                "choose least_ns up to most_ns, that at most 100 s, and at most 100 per cent",
            ),
            (
                self.writer.is_none_or(writer),
                "agent.writer",
                "choose 1 ns to 100 s write_ns, and 1 to 1000000 waiting_entries",
            ),
        ]
    }
}

/// Result of installing an entry in the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallOutcome {
    /// The chip has it from this instant on; the agent lists it at once.
    Written { at_ns: u64 },
    /// The agent lists it, and the chip never has it.
    OnlyListed,
    /// Neither has it, and there is no error message.
    Ignored,
    /// It is refused, as too many entries wait already.
    Refused,
}

/// The way of entries from the agent to the chip.
#[derive(Debug)]
pub(super) struct Handover {
    profile: AgentProfile,
    random: Stream,
    settled_ns: u64,
    /// When the last of the entries that wait is written.
    written_ns: u64,
    /// Places of waiting entries that deleted ones have kept.
    kept: u64,
}

impl Handover {
    pub(super) fn new(profile: AgentProfile, random: Stream) -> Self {
        Self {
            profile,
            random,
            settled_ns: 0,
            written_ns: 0,
            kept: 0,
        }
    }

    /// Returns how long the agent works on a `FLOW_MOD` while there are so many entries.
    pub(super) fn flow_mod_ns(&self, entries: u64) -> u64 {
        let taken = |one: Throttle| one.first_ns + one.each_ns.saturating_mul(entries).min(MAX_NS);
        self.profile.throttle.map_or(0, taken)
    }

    /// Returns how long the agent waits before it answers a barrier.
    pub(super) fn barrier_ns(&self, now_ns: u64) -> u64 {
        match self.profile.barrier {
            Barrier::Agent => 0,
            Barrier::Chip => self.written_ns.saturating_sub(now_ns),
        }
    }

    /// Hands an entry to the chip. Returns the result.
    pub(super) fn take(&mut self, now_ns: u64) -> InstallOutcome {
        if let Some(settling) = self.profile.settling {
            if now_ns < self.settled_ns && self.percent() < settling.lost_percent {
                return if self.percent() < settling.listed_percent {
                    InstallOutcome::OnlyListed
                } else {
                    InstallOutcome::Ignored
                };
            }
            let span = settling.most_ns - settling.least_ns + 1;
            self.settled_ns = now_ns + settling.least_ns + self.random.bits() % span;
        }
        let Some(writer) = self.profile.writer else {
            return InstallOutcome::Written { at_ns: now_ns };
        };
        let begin_ns = self.written_ns.max(now_ns);
        let waiting = (begin_ns - now_ns).div_ceil(writer.write_ns);
        if waiting + self.kept >= writer.waiting_entries {
            return InstallOutcome::Refused;
        }
        self.written_ns = begin_ns + writer.write_ns;
        InstallOutcome::Written {
            at_ns: self.written_ns,
        }
    }

    /// An entry was deleted that the chip would have had from `written_ns` on.
    pub(super) fn deleted(&mut self, now_ns: u64, written_ns: u64) {
        let keeps = self.profile.writer.is_some_and(|one| one.keeps_deleted);
        if keeps && written_ns > now_ns && written_ns != NEVER {
            self.kept += 1;
        }
    }

    fn percent(&mut self) -> u64 {
        self.random.bits() % 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn handover(profile: AgentProfile) -> Handover {
        Handover::new(profile, Stream::new(1, 0))
    }

    #[test]
    fn without_parts_entries_are_in_the_chip_at_once() {
        let mut handover = handover(AgentProfile::default());
        assert_eq!(handover.take(7), InstallOutcome::Written { at_ns: 7 });
        assert_eq!((handover.flow_mod_ns(9), handover.barrier_ns(7)), (0, 0));
    }

    #[test]
    fn an_agent_is_the_slower_the_more_entries_there_are() {
        let throttle = Some(Throttle {
            first_ns: 5,
            each_ns: 3,
        });
        let handover = handover(AgentProfile {
            throttle,
            ..AgentProfile::default()
        });
        assert_eq!((handover.flow_mod_ns(0), handover.flow_mod_ns(4)), (5, 17));
    }

    #[test]
    fn entries_are_lost_only_while_another_one_settles() {
        let settling = |lost_percent, listed_percent| AgentProfile {
            settling: Some(Settling {
                least_ns: 10,
                most_ns: 20,
                lost_percent,
                listed_percent,
            }),
            ..AgentProfile::default()
        };
        for (listed_percent, fate) in [
            (0, InstallOutcome::Ignored),
            (100, InstallOutcome::OnlyListed),
        ] {
            let mut handover = handover(settling(100, listed_percent));
            assert_eq!(handover.take(100), InstallOutcome::Written { at_ns: 100 });
            assert_eq!(handover.take(109), fate);
            assert_eq!(handover.take(121), InstallOutcome::Written { at_ns: 121 });
        }
        let mut handover = handover(settling(50, 50));
        let fates: Vec<_> = (1..=200).map(|at_ns| handover.take(at_ns)).collect();
        let count = |wanted: InstallOutcome| fates.iter().filter(|fate| **fate == wanted).count();
        assert!((30..=70).contains(&count(InstallOutcome::Ignored)));
        assert!((30..=70).contains(&count(InstallOutcome::OnlyListed)));
    }

    #[test]
    fn the_writer_takes_one_entry_after_another_and_refuses_what_finds_no_room() {
        let profile = AgentProfile {
            barrier: Barrier::Chip,
            writer: Some(Writer {
                write_ns: S,
                waiting_entries: 2,
                keeps_deleted: true,
            }),
            ..AgentProfile::default()
        };
        let mut handover = handover(profile);
        assert_eq!(handover.take(0), InstallOutcome::Written { at_ns: S });
        assert_eq!(handover.take(0), InstallOutcome::Written { at_ns: 2 * S });
        assert_eq!(handover.take(0), InstallOutcome::Refused);
        assert_eq!(handover.barrier_ns(S / 2), 3 * S / 2);
        assert_eq!(handover.take(S), InstallOutcome::Written { at_ns: 3 * S });
        handover.deleted(2 * S, 2 * S); // written already
        assert_eq!(
            handover.take(10 * S),
            InstallOutcome::Written { at_ns: 11 * S }
        );
        assert_eq!(
            handover.take(10 * S),
            InstallOutcome::Written { at_ns: 12 * S }
        );
        handover.deleted(10 * S, 11 * S);
        handover.deleted(10 * S, 12 * S);
        assert_eq!(handover.take(100 * S), InstallOutcome::Refused);
    }
}
