"""Step 2 of Loko: from a device's profile to the service curve of a scenario (sections 3.4, 3.5 and 4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from loko.document import InputError
from loko.notebook_display import html_table
from loko.switch_model.calculus import RateLatency, time_ns
from loko.switch_model.control_traffic import Interference
from loko.switch_model.device import ActionCost, ActionCosts, Profile, openflow_13
from loko.switch_model.generic_switch import ForwardingServer, GenericSwitch
from loko.switch_model.scenario import ActionType, Case, OpenFlow, Scenario, Unknown
from loko.units import NS_PER_US, PS_PER_NS

_VLAN_TAG_BYTES: Final = 4
_BESIDE_BYTES: Final = 8 + 12
"""Preamble and gap, which a frame takes on the wire beside its length."""
_PORT_FRAMES: Final = 1000
"""Frames that a port of a simple device holds; its server may be faster than the wire."""
_TAGGING_ACTIONS: Final = frozenset({ActionType.SET_VLAN_ID, ActionType.SET_VLAN_PCP})


@dataclass(frozen=True, kw_only=True)
class Term:
    """One addend of a bound."""

    name: str
    value_ns: float


@dataclass(frozen=True, kw_only=True)
class Processing:
    """How long a switch takes to process one frame, with the terms that add up to it."""

    case: Case
    cpu_terms: tuple[Term, ...]
    link_terms: tuple[Term, ...]
    link_throughput_bps: float
    """The link between integrated switch and CPU carries l / (l + 21) of its rate."""
    capacity_factor: float = 1.0
    """True capacity of a busy CPU over that of equation 6; at most 1, since more is never relied on."""

    @property
    def cpu_ns(self) -> float:
        """p_CPU: as equation 7 defines it, so with the integrated switch's own time."""
        return sum(term.value_ns for term in self.cpu_terms)

    @property
    def switch_ns(self) -> float:
        """p_FX, from the end of a frame's arrival to the beginning of its departure (equation 4)."""
        return self.cpu_ns + sum(term.value_ns for term in self.link_terms)

    @property
    def sequential_throughput_bps(self) -> float:
        """Equation 5: frames one after another. A lower bound for a pipelined device."""
        return self.case.frame_bytes * 8e9 / self.switch_ns

    @property
    def throughput_bps(self) -> float:
        """Equation 6: the slower of CPU and inner link; the CPU by its true capacity, if that is less."""
        of_cpu_bps = self.case.frame_bytes * 8e9 / self.cpu_ns
        return min(of_cpu_bps * self.capacity_factor, self.link_throughput_bps)


def processing(profile: Profile | GenericSwitch, case: Case) -> Processing:
    """Processing time of one frame, by the cost model of the profile and equation 7.

    In OpenFlow 1.3 it is the longest: the time depends on which fields of the other entries match.
    """
    if isinstance(profile, GenericSwitch):
        return _simple_processing(profile, case)
    if case.openflow is OpenFlow.V1_3:
        return _processing(profile, case, _search_13_ps(profile, case, dearest=True))
    return _processing(profile, case, _search_ps(profile, case))


def shortest_processing(profile: Profile, case: Case) -> Processing:
    """Return the shortest processing time of one frame. In OpenFlow 1.0 it equals the longest."""
    if case.openflow is OpenFlow.V1_3:
        return _processing(profile, case, _search_13_ps(profile, case, dearest=False))
    return processing(profile, case)


def _processing(profile: Profile, case: Case, search_ps: Mapping[str, int]) -> Processing:
    length = case.frame_bytes
    actions = _ACTION_COSTS[case.action](profile.cpu.action)
    if case.openflow is OpenFlow.V1_3 and case.action in _TAGGING_ACTIONS:
        actions = (*actions, profile.cpu.action.set_dl)  # PUSH_VLAN, and then SET_FIELD
    cpu_ps = {
        "base": profile.cpu.base_ps.value,
        "bytes of the frame": profile.cpu.per_byte_ps.value * length,
        **search_ps,
        "actions": profile.cpu.action.output.cost_ps(length) + sum(cost.cost_ps(length) for cost in actions),
    }
    ports = profile.ports
    preamble_bytes, tag_bytes = ports.preamble_bytes.value, ports.tail_tag_bytes.value
    overhead_bytes = tag_bytes + preamble_bytes + ports.interframe_gap_bytes.value
    link_bytes = {
        "preambles on the inner link": 2 * preamble_bytes,
        "tagged frame on the inner link": 2 * (length + tag_bytes),
        # Equation 7 leaves this out: the frame goes back larger than it came.
        "VLAN tag on the way back": _VLAN_TAG_BYTES if case.action in _TAGGING_ACTIONS else 0,
    }
    return Processing(
        case=case,
        cpu_terms=tuple(Term(name=name, value_ns=ps / PS_PER_NS) for name, ps in cpu_ps.items() if ps),
        link_terms=tuple(
            Term(name=name, value_ns=profile.wire_ns(size)) for name, size in link_bytes.items() if size
        ),
        link_throughput_bps=length / (length + overhead_bytes) * ports.link_rate_bps.value,
        capacity_factor=min(1.0, profile.cpu.capacity_factor.value),
    )


def _simple_processing(profile: GenericSwitch, case: Case) -> Processing:
    """Return the processing of a simple device: server and wire each take l at the slower of their rates.

    docs/devices.md ("A simple device") has the proof.
    """
    if case.openflow is not OpenFlow.V1_0:
        raise InputError(f"{profile.name}: speaks OpenFlow 1.0 only; leave --openflow out")
    length, link_bps = case.frame_bytes, profile.ports.link_rate_bps.value
    rate_bps = min(_server(profile).rate_bps.value, link_bps * length / (length + _BESIDE_BYTES))
    terms = [Term(name="server or wire, at the slower one's rate", value_ns=length * 8e9 / rate_bps)]
    latency_ns = 0 if profile.forwarding is None else profile.forwarding.latency_ns.value
    return Processing(
        case=case,
        cpu_terms=tuple(terms),
        link_terms=(
            Term(name="latency", value_ns=float(latency_ns)),
            Term(name="the sender's wire", value_ns=(length + _BESIDE_BYTES) * 8e9 / link_bps),
        ),
        link_throughput_bps=math.inf,
    )


def _server(profile: GenericSwitch) -> ForwardingServer:
    assert profile.server is not None, "loko.switch_model.device.bounded lets no others through"
    return profile.server


def _search_ps(profile: Profile, case: Case) -> dict[str, int]:
    """Return the cost of a search in OpenFlow 1.0, which compares every field of every examined entry."""
    entry = profile.cpu.entry
    entry_ps = entry.base_ps.value + sum(getattr(entry, f"{field}_ps").value for field in case.match.fields)
    return {
        "entries examined": entry_ps * (case.entries - case.skipped_entries),
        "entries examined after the hit": entry.after_hit_ps.value * case.examined_after_hit,
        "entries skipped": entry.skipped_ps.value * case.skipped_entries,
    }


def _search_13_ps(profile: Profile, case: Case, *, dearest: bool) -> dict[str, int]:
    """Return the cost of a search in OpenFlow 1.3 if other entries fail at their dearest, or cheapest, field.

    Raises `InputError` if the profile has no costs of 1.3.
    """
    costs = openflow_13(profile)
    fields = [costs.field(name, dearest=dearest) for name in case.match.oxms]
    passed_ps = list(itertools.accumulate((field.passes_ps.value for field in fields), initial=0))
    ends_ps = sorted(passed + field.fails_ps.value for passed, field in zip(passed_ps, fields, strict=False))
    failing_ps = ends_ps[-1 if dearest else 0]
    return {
        "entry that matches": passed_ps[-1] + costs.hit_ps.value,
        "other entries examined": failing_ps * (case.entries - 1 - case.skipped_entries),
        "entries examined after the hit": costs.after_hit_ps.value * case.examined_after_hit,
        "entries skipped": costs.skipped_ps.value * case.skipped_entries,
    }


def _no_cost(_: ActionCosts) -> tuple[ActionCost, ...]:
    return ()


# Cost of an action beside the output that ends it. Strip-vlan counts as on tagged frames, the dearer case.
_ACTION_COSTS: Final[dict[ActionType, Callable[[ActionCosts], tuple[ActionCost, ...]]]] = {
    ActionType.OUTPUT: _no_cost,
    ActionType.SET_VLAN_ID: lambda costs: (costs.set_vlan,),
    ActionType.SET_VLAN_PCP: lambda costs: (costs.set_vlan,),
    ActionType.STRIP_VLAN: lambda costs: (costs.strip_vlan,),
    ActionType.SET_DL_SRC: lambda costs: (costs.set_dl,),
    ActionType.SET_NW_SRC: lambda costs: (costs.set_checksummed,),
    ActionType.SET_NW_TOS: lambda costs: (costs.set_checksummed,),
    ActionType.SET_TP_SRC: lambda costs: (costs.set_checksummed,),
}


class Rounding(Enum):
    """Outer rounding of the buffer formula.

    A frame takes whole units, so `FLOOR` is physically right; the paper's printed formula can be read as
    `CEILING`. They agree at 64, 306 and 1516 bytes.
    """

    FLOOR = "floor"
    CEILING = "ceiling"


def capacity_frames(profile: Profile, frame_bytes: int, rounding: Rounding = Rounding.FLOOR) -> int:
    """Return how many frames of one size a switch holds: 1 + floor(24 / ceil(l / 128)) (section 3.5)."""
    units, units_of_frame = profile.buffer.units.value, _units(profile, frame_bytes)
    waiting = units // units_of_frame if rounding is Rounding.FLOOR else -(-units // units_of_frame)
    return profile.buffer.packets.value + waiting


def capacity_bytes(
    profile: Profile | GenericSwitch, sizes: Sequence[int], rounding: Rounding = Rounding.FLOOR
) -> int:
    """Return a backlog up to which no frame is lost, whatever mixture of these sizes it consists of.

    For one size it is the capacity in frames times the size. For several sizes it can be less than the
    smallest of these, as small frames may waste units that a large one then lacks (docs/model.md, section 3).
    """
    if isinstance(profile, GenericSwitch):
        server = _server(profile)
        frames = _PORT_FRAMES if server.buffer_frames is None else server.buffer_frames.value
        of_frames = min(frames, _PORT_FRAMES) * min(sizes)
        return of_frames if server.buffer_bytes is None else min(server.buffer_bytes.value, of_frames)
    if max(_units(profile, size) for size in sizes) > profile.buffer.units.value:
        return 0  # every frame passes through the units, and the largest finds too few
    of_one_size = min(capacity_frames(profile, size, rounding) * size for size in sizes)
    if len(set(sizes)) == 1:
        return of_one_size
    in_work_bytes = profile.buffer.packets.value * min(sizes)
    too_many = 1 + profile.buffer.units.value
    lost_at = [
        in_work_bytes + _least_waiting_bytes(profile, sizes, too_many - _units(profile, size)) + size
        for size in sizes
    ]
    return min(of_one_size, *(backlog - 1 for backlog in lost_at))


def _units(profile: Profile, frame_bytes: int) -> int:
    return -(-frame_bytes // profile.buffer.unit_bytes.value)


def _least_waiting_bytes(profile: Profile, sizes: Sequence[int], units: int) -> int:
    """Return the fewest bytes of whole frames that take at least this many units."""
    takes = [(size, _units(profile, size)) for size in sizes]
    least = [0]
    for wanted in range(1, units + 1):
        least.append(min([size + least[max(0, wanted - taken)] for size, taken in takes]))
    return least[units]


@dataclass(frozen=True, kw_only=True)
class SwitchService:
    """Service curve of a switch in a scenario (section 4), with its derivation."""

    profile: Profile | GenericSwitch
    scenario: Scenario
    slowest: Processing
    """The case with the least throughput: it sets R."""
    longest: Processing
    """The case with the longest processing time: it sets T0."""
    largest_frame_bytes: int
    """l of the term l/R, which turns the delay of a bit into the delay of a frame."""
    capacity_bytes: int
    """B: the backlog up to which no frame is lost."""

    def __repr__(self) -> str:
        return (
            f"SwitchService({self.profile.name!r}: R = {self.rate_bps / 1e6:.3f} Mbit/s,"
            f" T = {self.curve.latency_ns / 1e3:.1f} us, B = {self.capacity_bytes} bytes)"
        )

    def _repr_html_(self) -> str:
        """Return a table of the curve, and of the addends of its latency, for a notebook."""
        rows = [
            ["R, rate", f"{self.rate_bps / 1e6:.3f} Mbit/s"],
            *([f"T: {term.name}", f"{term.value_ns / NS_PER_US:.1f} us"] for term in self.terms),
            ["T, latency", f"{self.curve.latency_ns / NS_PER_US:.1f} us"],
            ["B, buffer", f"{self.capacity_bytes} bytes"],
        ]
        return html_table(f"Service curve of {self.profile.name}", ("quantity", "value"), rows)

    @property
    def rate_bps(self) -> float:
        """R, the worst throughput."""
        return self.slowest.throughput_bps

    @property
    def processing_ns(self) -> float:
        """T0, the worst processing time p_FX."""
        return self.longest.switch_ns

    @property
    def packetisation_ns(self) -> float:
        """The term l/R."""
        return time_ns(size_bytes=self.largest_frame_bytes, rate_bps=self.rate_bps)

    def latency_ns(self, interference: Interference) -> float:
        """Return T0 plus the CPU time for other work meanwhile (docs/model.md, section 8).

        T0 and b/R both count the processing of one frame. The board's own interruptions fit into this double
        count, or they replace it. Messages of the controller come on top.
        """
        if isinstance(self.profile, GenericSwitch):
            return self.processing_ns
        cpu, chip = self.profile.cpu, self.profile.integrated_switch
        wait_ns = (cpu.loop_ps.value + 2 * chip.transit_ps.value) / PS_PER_NS
        links_ns = sum(term.value_ns for term in self.longest.link_terms)
        interrupted_ns = links_ns + wait_ns + interference.board.burst_ns
        return (
            max(self.processing_ns, interrupted_ns if interference.board.burst_ns else 0.0)
            + interference.messages.burst_ns
        )

    @property
    def curve(self) -> RateLatency:
        """beta_{R,T} with T = T0 + l/R, shared by all flows of the switch."""
        return RateLatency(rate_bps=self.rate_bps, latency_ns=self.processing_ns + self.packetisation_ns)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The addends of T."""
        return (
            *self.longest.cpu_terms,
            *self.longest.link_terms,
            Term(name="packetisation l/R", value_ns=self.packetisation_ns),
        )


def service_curve(
    profile: Profile | GenericSwitch, scenario: Scenario, rounding: Rounding = Rounding.FLOOR
) -> SwitchService:
    """Return the service in the worst case over all that the scenario leaves open.

    R and T0 may come from different cases: with unknown sizes the smallest frame has the least throughput,
    the largest takes the longest. Raises `InputError` if the scenario does not fit the device.
    """
    limit = profile.table.entries.value
    if not isinstance(scenario.entries, Unknown) and scenario.entries > limit:
        raise InputError(f"scenario: {scenario.entries} entries; {profile.name} holds {limit}")
    candidates = [processing(profile, case) for case in scenario.cases()]
    sizes = scenario.frame_bytes
    return SwitchService(
        profile=profile,
        scenario=scenario,
        slowest=min(candidates, key=lambda candidate: candidate.throughput_bps),
        longest=max(candidates, key=lambda candidate: candidate.switch_ns),
        largest_frame_bytes=max(sizes),
        capacity_bytes=capacity_bytes(profile, sizes, rounding),
    )
