//! CPU time of the work that a main-loop iteration finds.
//!
//! Costs are summed in picoseconds and rounded to nanoseconds once. `p_CPU` of a frame (equation 7 of the Loko
//! paper) contains both transits of the integrated switch and the mean wait for the main loop; both are taken out
//! again here, because the emulated frame passes them itself.

use crate::actions::{Action, Actions};
use crate::profile::{ActionCost, ActionCosts, ControlCosts, EntryCosts, Housekeeping, Profile};
use crate::time::Duration;
use openflow::v1_0::{wildcards, Rewrite};

/// By which a VLAN tag makes a frame longer.
const VLAN_TAG_BYTES: usize = 4;

/// Costs of one device.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    base_ps: i64,
    per_byte_ps: i64,
    /// Part of `p_CPU` that is not the CPU's own work.
    elsewhere_ps: i64,
    capacity_factor: f64,
    entry: EntryCosts,
    action: ActionCosts,
    control: ControlCosts,
    housekeeping: Housekeeping,
}

/// CPU time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameTime {
    /// From the pass's beginning until the frame is handed to the MAC.
    pub(crate) work: Duration,
    /// From the beginning of the iteration until the next one begins.
    pub(crate) busy: Duration,
}

impl Costs {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            base_ps: profile.cpu.base_ps,
            per_byte_ps: profile.cpu.per_byte_ps,
            elsewhere_ps: 2 * profile.integrated_switch.transit_ps + profile.cpu.loop_ps / 2,
            capacity_factor: profile.cpu.capacity_factor,
            entry: profile.cpu.entry.clone(),
            action: profile.cpu.action.clone(),
            control: profile.cpu.control.clone(),
            housekeeping: profile.cpu.housekeeping.clone(),
        }
    }

    /// Examining an entry with these wildcards.
    pub(crate) fn examined_ps(&self, wild: u32) -> i64 {
        let entry = &self.entry;
        let prefix = |shift| wildcards::names_address(wild, shift);
        let fields = [
            (wild & wildcards::IN_PORT == 0, entry.in_port_ps),
            (wild & wildcards::DL_VLAN == 0, entry.dl_vlan_ps),
            (wild & wildcards::DL_SRC == 0, entry.dl_src_ps),
            (wild & wildcards::DL_DST == 0, entry.dl_dst_ps),
            (wild & wildcards::DL_TYPE == 0, entry.dl_type_ps),
            (wild & wildcards::NW_PROTO == 0, entry.nw_proto_ps),
            (wild & wildcards::TP_SRC == 0, entry.tp_src_ps),
            (wild & wildcards::TP_DST == 0, entry.tp_dst_ps),
            (prefix(wildcards::NW_SRC_SHIFT), entry.nw_src_ps),
            (prefix(wildcards::NW_DST_SHIFT), entry.nw_dst_ps),
            (wild & wildcards::DL_VLAN_PCP == 0, entry.dl_vlan_pcp_ps),
            (wild & wildcards::NW_TOS == 0, entry.nw_tos_ps),
        ];
        entry.base_ps
            + fields
                .iter()
                .filter(|(present, _)| *present)
                .map(|(_, cost)| cost)
                .sum::<i64>()
    }

    /// Passing over an entry whose priority is not above the best hit.
    pub(crate) const fn skipped_ps(&self) -> i64 {
        self.entry.skipped_ps
    }

    /// Additional cost of an entry that is examined after a hit.
    pub(crate) const fn after_hit_ps(&self) -> i64 {
        self.entry.after_hit_ps
    }

    /// The actions of the entry that is used, on a frame of `length` bytes (with FCS).
    pub(crate) fn actions_ps(&self, actions: &Actions, tagged: bool, length: usize) -> i64 {
        let costs = &self.action;
        let mut outputs = 0;
        let mut changed_length = length;
        let mut sum = 0;
        for action in actions.iter() {
            let cost = match action {
                Action::Output(_) | Action::OutputToIngress | Action::Flood | Action::All => {
                    outputs += 1;
                    if outputs == 1 {
                        costs.output
                    } else {
                        costs.output_again
                    }
                }
                Action::OutputToController { .. } => {
                    outputs += 1;
                    costs.packet_in
                }
                Action::Rewrite(rewrite) => match rewrite {
                    Rewrite::SetDlSrc(_) | Rewrite::SetDlDst(_) | Rewrite::SetTpDst(_) => {
                        costs.set_dl
                    }
                    Rewrite::SetNwSrc(_)
                    | Rewrite::SetNwDst(_)
                    | Rewrite::SetNwTos(_)
                    | Rewrite::SetTpSrc(_) => costs.set_checksummed,
                    Rewrite::SetVlanVid(_) | Rewrite::SetVlanPcp(_) => costs.set_vlan,
                    Rewrite::StripVlan if tagged => costs.strip_vlan,
                    Rewrite::StripVlan => costs.strip_vlan_untagged,
                },
                Action::OutputToTable | Action::Nothing => continue,
            };
            sum += at_length(cost, changed_length);
            // Later actions work on the changed frame. But whether it is tagged is told from the frame as it came, as on the
            // board.
            match action {
                Action::Rewrite(Rewrite::SetVlanVid(_) | Rewrite::SetVlanPcp(_)) if !tagged => {
                    changed_length += VLAN_TAG_BYTES;
                }
                Action::Rewrite(Rewrite::StripVlan) if tagged => {
                    changed_length = changed_length.saturating_sub(VLAN_TAG_BYTES);
                }
                _ => {}
            }
        }
        if outputs == 0 {
            sum += at_length(costs.drop, length);
        }
        sum
    }

    /// Sending a frame that no entry matches to the controller.
    pub(crate) fn miss_ps(&self, length: usize) -> i64 {
        at_length(self.action.packet_in, length)
    }

    /// Dropping a frame without a search.
    pub(crate) fn drop_ps(&self, length: usize) -> i64 {
        at_length(self.action.drop, length)
    }

    /// Times of a frame of `length` bytes (with FCS) whose search and actions cost `extra_ps`.
    pub(crate) fn frame(&self, length: usize, extra_ps: i64) -> FrameTime {
        let p_cpu_ps = self.base_ps + self.per_byte_ps * length as i64 + extra_ps;
        FrameTime {
            work: Duration::from_picos_rounded(p_cpu_ps - self.elsewhere_ps),
            busy: Duration::from_picos_rounded(self.at_capacity(p_cpu_ps)),
        }
    }

    /// Returns the costs of an entry's actions.
    pub(crate) const fn action(&self) -> &ActionCosts {
        &self.action
    }

    /// Returns the costs of the controller's messages.
    pub(crate) const fn control(&self) -> &ControlCosts {
        &self.control
    }

    /// Returns the costs of housekeeping.
    pub(crate) const fn housekeeping(&self) -> &Housekeeping {
        &self.housekeeping
    }

    #[allow(clippy::cast_precision_loss)] // sums stay far below 2^53 ps = 9 s
    fn at_capacity(&self, p_cpu_ps: i64) -> i64 {
        if (self.capacity_factor - 1.0).abs() < f64::EPSILON {
            p_cpu_ps
        } else {
            (p_cpu_ps as f64 / self.capacity_factor).round() as i64
        }
    }
}

pub(crate) fn at_length(cost: ActionCost, length: usize) -> i64 {
    cost.fixed_ps + cost.per_byte_ps * (length as i64 - cost.offset_bytes).max(0)
}
