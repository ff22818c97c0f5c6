"""The cost model: which parameters of a profile add up to the time of a case."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from loko.switch_model.scenario import ActionType
from loko.units import PS_PER_NS
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.procedures.dp_time13 import CostCase
from loko_testbed.measure.bench.procedures.interference import ENTRIES, Leader

_ACTION: Final = {
    ActionType.SET_VLAN_ID: "set_vlan",
    ActionType.SET_VLAN_PCP: "set_vlan",
    ActionType.STRIP_VLAN: "strip_vlan_untagged",
    ActionType.SET_DL_SRC: "set_dl",
    ActionType.SET_NW_SRC: "set_checksummed",
    ActionType.SET_NW_TOS: "set_checksummed",
    ActionType.SET_TP_SRC: "set_checksummed",
}


def frame_terms(table: TableCase, frame_bytes: int, offsets: dict[str, int]) -> dict[str, float]:
    """Return p_CPU of equation 7 as a sum of parameters; `offsets` are the actions' `offset_bytes`."""
    terms: Counter[str] = Counter({"cpu.base_ps": 1, "cpu.per_byte_ps": frame_bytes})
    examined = table.entries - table.skipped_entries
    terms["cpu.entry.base_ps"] += examined
    for field in table.match.fields:
        terms[f"cpu.entry.{field}_ps"] += examined
    terms["cpu.entry.skipped_ps"] += table.skipped_entries
    terms["cpu.entry.after_hit_ps"] += table.examined_after_hit
    action = _ACTION.get(table.action)
    if action is not None:
        if action == "strip_vlan_untagged" and table.tagged:
            action = "strip_vlan"
        # Each action works on the frame as the one before it left it.
        each_bytes = table.grown_bytes // table.rewrites
        lengths = [frame_bytes + each_bytes * place for place in range(table.rewrites)]
        terms[f"cpu.action.{action}.fixed_ps"] += table.rewrites
        terms[f"cpu.action.{action}.per_byte_ps"] += sum(
            max(length - offsets[action], 0) for length in lengths
        )
    return {name: times for name, times in terms.items() if times}


def trial_terms(trial: CostCase) -> dict[str, float]:
    """Return the terms of a frame in OpenFlow 1.3. All but its search costs as in 1.0."""
    shared = {"cpu.base_ps": 1.0, "cpu.per_byte_ps": float(trial.frame_bytes)}
    return {**shared, **{f"cpu.openflow13.{name}": float(times) for name, times in trial.costs.items()}}


def trial_link_ps(trial: CostCase, wire: LinkTiming) -> int:
    """Return `link_ps` of a trial, whose frame leaves as it came."""
    return 2 * wire.time_ns(wire.preamble_bytes + trial.frame_bytes + wire.tag_bytes) * PS_PER_NS


def link_ps(table: TableCase, frame_bytes: int, wire: LinkTiming) -> int:
    """Return the part of p_FX beside p_CPU: both ways on the link between integrated switch and CPU."""
    carried = 2 * (wire.preamble_bytes + frame_bytes + wire.tag_bytes) + table.grown_bytes
    return wire.time_ns(carried) * PS_PER_NS


def leader_terms(
    leader: Leader, size: int, offsets: dict[str, int], capacity_factor: float = 1.0
) -> dict[str, float]:
    """Return the costs in the time that `interference.measure` gives, without `leader_link_ps`.

    The leader keeps the CPU busy for its p_CPU over `capacity_factor`; the follower leaves after its own.
    """
    share = 1 / capacity_factor
    terms: defaultdict[str, float] = defaultdict(float)
    terms["cpu.base_ps"] = 1 + share
    terms["cpu.per_byte_ps"] = (1 + share) * size
    terms["cpu.entry.base_ps"] = terms["cpu.entry.tp_dst_ps"] = (1 + share) * ENTRIES
    for cost in leader.costs:
        terms[f"cpu.action.{cost}.fixed_ps"] += share
        terms[f"cpu.action.{cost}.per_byte_ps"] += share * max(size - offsets[cost], 0)
    return {name: times for name, times in terms.items() if times}


def leader_link_ps(size: int, wire: LinkTiming) -> int:
    """Return the time of the leader to the CPU and of the follower back, on the inner link."""
    return 2 * wire.time_ns(wire.preamble_bytes + size + wire.tag_bytes) * PS_PER_NS
