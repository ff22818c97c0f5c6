//! Matches of OpenFlow 1.0, and the search as the firmware does it.

use crate::cost::Costs;
use crate::packet::{Key, TAGGED};
use openflow::bytes::{be32, be48};
use openflow::v1_0::{wildcards, Match};

/// Returns whether MODIFY or DELETE with the match `wanted` means the entry with the match `entry`.
///
/// Only its wildcards count; the entry's are taken as values. VLAN priority and type of service are
/// not compared.
pub(crate) fn selects(wanted: &Match, entry: &Match) -> bool {
    let wild = |bit: u32| wanted.wildcards & bit != 0;
    let prefix_equal = |shift: u32, ours: u32, theirs: u32| match (wanted.wildcards >> shift) & 0x3f
    {
        bits @ 0..32 => (ours ^ theirs) >> bits == 0,
        _ => true,
    };
    wanted.wildcards == EVERYTHING
        || ((wild(wildcards::IN_PORT) || wanted.in_port == entry.in_port)
            && (wild(wildcards::DL_VLAN) || wanted.dl_vlan == entry.dl_vlan)
            && (wild(wildcards::DL_SRC) || wanted.dl_src == entry.dl_src)
            && (wild(wildcards::DL_DST) || wanted.dl_dst == entry.dl_dst)
            && (wild(wildcards::DL_TYPE) || wanted.dl_type == entry.dl_type)
            && (wild(wildcards::NW_PROTO) || wanted.nw_proto == entry.nw_proto)
            && (wild(wildcards::TP_SRC) || wanted.tp_src == entry.tp_src)
            && (wild(wildcards::TP_DST) || wanted.tp_dst == entry.tp_dst)
            && prefix_equal(wildcards::NW_SRC_SHIFT, wanted.nw_src, entry.nw_src)
            && prefix_equal(wildcards::NW_DST_SHIFT, wanted.nw_dst, entry.nw_dst))
}

/// Wildcards by which DELETE and MODIFY recognise "every entry" without comparing.
pub(crate) const EVERYTHING: u32 = 0x0038_20ff;

/// An entry's match, ready to be compared with a [`Key`].
#[derive(Clone, Copy, Debug)]
struct Rule {
    value: [u64; 4],
    mask: [u64; 4],
}

impl Rule {
    /// Fields whose value is zero are wildcards too, except MAC addresses. A VLAN is either "any tag" or nothing;
    /// VLAN priority and type of service are never examined.
    fn compile(bytes: &[u8]) -> Self {
        let entry = Match::read(bytes);
        let wild = |bit: u32| entry.wildcards & bit != 0;
        let field =
            |absent: bool, value: u64, mask: u64| if absent { (0, 0) } else { (value, mask) };
        let number = |bit: u32, value: u64, mask: u64| field(wild(bit) || value == 0, value, mask);
        let address = |shift: u32, value: u32| match (entry.wildcards >> shift) & 0x3f {
            bits @ 0..32 if value != 0 => {
                let mask = u32::MAX << bits;
                (u64::from(value & mask), u64::from(mask))
            }
            _ => (0, 0),
        };
        let in_port = number(wildcards::IN_PORT, entry.in_port.into(), 0xffff);
        let dl_src = field(wild(wildcards::DL_SRC), be48(bytes, 6), MAC);
        let dl_dst = field(wild(wildcards::DL_DST), be48(bytes, 12), MAC);
        let dl_type = number(wildcards::DL_TYPE, entry.dl_type.into(), 0xffff);
        let tagged = field(
            wild(wildcards::DL_VLAN) || entry.dl_vlan == 0xffff,
            TAGGED,
            TAGGED,
        );
        let nw_proto = number(wildcards::NW_PROTO, entry.nw_proto.into(), 0xff);
        let nw_src = address(wildcards::NW_SRC_SHIFT, entry.nw_src);
        let nw_dst = address(wildcards::NW_DST_SHIFT, entry.nw_dst);
        let tp_src = number(wildcards::TP_SRC, entry.tp_src.into(), 0xffff);
        let tp_dst = number(wildcards::TP_DST, entry.tp_dst.into(), 0xffff);
        let word = |pick: fn((u64, u64)) -> u64| {
            [
                pick(dl_src) << 16 | pick(in_port),
                pick(dl_dst) << 16 | pick(dl_type),
                pick(nw_src) << 32 | pick(nw_dst),
                pick(tagged) | pick(nw_proto) << 32 | pick(tp_src) << 16 | pick(tp_dst),
            ]
        };
        Self {
            value: word(|(value, _)| value),
            mask: word(|(_, mask)| mask),
        }
    }

    #[inline]
    fn matches(&self, key: &Key) -> bool {
        let differs = |i: usize| (key.words[i] ^ self.value[i]) & self.mask[i];
        differs(0) | differs(1) | (differs(2) & key.care[0]) | (differs(3) & key.care[1]) == 0
    }
}

const MAC: u64 = 0xffff_ffff_ffff;

/// Returns a hash of the words under the mask. Comparing it first, a search reads few bytes of each entry, and all of
/// only one.
fn digest(words: [u64; 4], mask: [u64; 4]) -> u32 {
    const FACTORS: [u64; 4] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xd6e8_feb8_6659_fd93,
    ];
    let mixed = |i: usize| (words[i] & mask[i]).wrapping_mul(FACTORS[i]);
    ((mixed(0) ^ mixed(1) ^ mixed(2) ^ mixed(3)) >> 32) as u32
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The entry that is used.
    pub(crate) index: Option<usize>,
    /// Entries compared with the frame.
    pub(crate) examined: usize,
    /// Entries passed over because of their priority.
    pub(crate) skipped: usize,
    /// Cost of the search.
    pub(crate) cost_ps: i64,
}

/// State of a search at an entry.
#[derive(Clone, Copy, Debug, Default)]
struct SearchStep {
    /// Cost of examining the entries before it.
    cost_before: i64,
    priority: u16,
    /// Highest priority from this entry on.
    highest_from: u16,
}

/// The table in the form that is quick to search; rebuilt whenever an entry changes.
#[derive(Debug, Default)]
pub(crate) struct Search {
    rules: Vec<Rule>,
    /// The mask that all rules share, if they do, and the digests of the rules' values.
    shared_mask: Option<[u64; 4]>,
    digests: Vec<u32>,
    /// A hash table of the first entry of each digest: at the slot that the digest's low bits name, or behind it if another
    /// digest has taken that (linear probing).
    by_digest: Vec<Option<u16>>,
    /// One for each entry, and one behind the last.
    steps: Vec<SearchStep>,
    skipped_ps: i64,
    after_hit_ps: i64,
}

impl Search {
    /// Prepares the search through `entries`: match and priority, in table order.
    pub(crate) fn rebuild<'a>(
        &mut self,
        costs: &Costs,
        entries: impl Iterator<Item = (&'a [u8], u16)>,
    ) {
        self.rules.clear();
        self.steps.clear();
        self.skipped_ps = costs.skipped_ps();
        self.after_hit_ps = costs.after_hit_ps();
        let mut step = SearchStep::default();
        for (bytes, priority) in entries {
            self.rules.push(Rule::compile(bytes));
            self.steps.push(SearchStep { priority, ..step });
            step.cost_before += costs.examined_ps(be32(bytes, 0));
        }
        self.steps.push(step);
        let mask = self.rules.first().map(|rule| rule.mask);
        self.shared_mask = mask.filter(|mask| self.rules.iter().all(|rule| rule.mask == *mask));
        let values = self.rules.iter();
        self.digests.clear();
        self.digests
            .extend(values.map(|rule| digest(rule.value, rule.mask)));
        self.index_digests();
        let mut highest = 0;
        for step in self.steps.iter_mut().rev() {
            highest = highest.max(step.priority);
            step.highest_from = highest;
        }
    }

    /// Returns the result of a search that examined every entry and found the one at `index`.
    pub(crate) fn all_examined(&self, index: Option<usize>) -> Found {
        let all = self.rules.len();
        Found {
            index,
            examined: all,
            skipped: 0,
            cost_ps: self.steps[all].cost_before,
        }
    }

    /// Notes where the first entry of each digest is found.
    fn index_digests(&mut self) {
        let slots = (2 * self.digests.len()).next_power_of_two();
        self.by_digest.clear();
        self.by_digest.resize(slots, None);
        for (index, digest) in self.digests.iter().enumerate() {
            let slot = self.slot_of(*digest);
            self.by_digest[slot].get_or_insert(index as u16);
        }
    }

    /// Returns the slot that names the first entry with this digest; an empty one if there is none.
    fn slot_of(&self, digest: u32) -> usize {
        let last = self.by_digest.len() - 1; // all ones in binary
        let mut slot = digest as usize & last;
        while self.by_digest[slot].is_some_and(|index| self.digests[usize::from(index)] != digest) {
            slot = (slot + 1) & last;
        }
        slot
    }

    /// The first entry with this digest that is a hit.
    fn first_alike(&self, digest: u32, hit: impl Fn(&usize) -> bool) -> Option<usize> {
        let first = usize::from(self.by_digest[self.slot_of(digest)]?);
        if hit(&first) {
            return Some(first);
        }
        // The first one is another match with the same digest.
        let mut behind = first + 1..self.digests.len();
        behind.find(|index| self.digests[*index] == digest && hit(index))
    }

    /// Searches in table order. An entry is examined only if its priority is above the best hit so far: the highest
    /// priority wins, and among equal ones the first.
    pub(crate) fn find(&self, key: &Key) -> Found {
        let all = self.rules.len();
        let mask = self.shared_mask.filter(|_| key.care == [u64::MAX; 2]);
        let wanted = mask.map(|mask| digest(key.words, mask));
        let hit = |index: &usize| self.rules[*index].matches(key);
        let first = match wanted {
            _ if !key.matchable => None,
            Some(wanted) => self.first_alike(wanted, hit),
            None => (0..all).find(hit),
        };
        let Some(first) = first else {
            return Found {
                index: None,
                examined: all,
                skipped: 0,
                cost_ps: self.steps[all].cost_before,
            };
        };
        let mut best = first;
        let mut examined = first + 1;
        let mut cost_ps = self.steps[first + 1].cost_before;
        for index in first + 1..all {
            if self.steps[index].highest_from <= self.steps[best].priority {
                break;
            }
            if self.steps[index].priority > self.steps[best].priority {
                examined += 1;
                cost_ps += self.steps[index + 1].cost_before - self.steps[index].cost_before
                    + self.after_hit_ps;
                if hit(&index) {
                    best = index;
                }
            }
        }
        let skipped = all - examined;
        Found {
            index: Some(best),
            examined,
            skipped,
            cost_ps: cost_ps + self.skipped_ps * skipped as i64,
        }
    }
}

#[cfg(test)]
mod tests;
