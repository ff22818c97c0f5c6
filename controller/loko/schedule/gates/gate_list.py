"""Gate control lists of a schedule: for each port that its flows leave by, which gates are open when.

A frame whose slot begins at the instant t leaves its host between t - guard and t + guard, and its last bit
has passed a link within the bound of the path up to there (`loko.schedule.timing`). So a window from
t - guard to t + guard + bound contains its transmission on this link. The windows here are longer by the
clock error of the gates on both sides (docs/tssdn.md, "Gate control lists").
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from loko.document import InputError
from loko.schedule.gates.options import ALL_CLOSED, GateOptions
from loko.schedule.lab_schedule import LabSchedule
from loko.schedule.preemption import longest_wait_ns
from loko.schedule.timing import CycleTiming
from loko.topology.lab import Endpoint, Lab
from loko.units import NS_PER_S

LONGEST_OTHER_BYTES: Final = 1522
"""The longest frame of other traffic: 1518 bytes and a VLAN tag."""
SHORTEST_FRAME_BYTES: Final = 64
_LONGEST_INTERVAL_NS: Final = 2**32 - 1
"""Intervals have 32 bits (IEEE 802.1Q, 12.29.1.2.3)."""


class GateEntry(NamedTuple):
    """A row of a gate control list: gate states for an interval."""

    states: int
    """A bit for each traffic class, open if it is set; class 7 is the most significant."""
    interval_ns: int


@dataclass(frozen=True, kw_only=True)
class PortGates:
    """The gate control list of a port."""

    end: Endpoint
    interface: str
    rate_bps: int
    cycle_ns: int
    base_time_ns: int
    """When a cycle begins, less than a cycle after a whole base period on the clock of the slots."""
    entries: tuple[GateEntry, ...]


class OpenWindow(NamedTuple):
    """An interval in which the scheduled class is open. It may end after the cycle in which it begins."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, kw_only=True)
class GateLists:
    """The gate control lists of a schedule."""

    schedule: LabSchedule
    options: GateOptions
    ports: Mapping[str, tuple[PortGates, ...]]
    """By node, the ports that scheduled flows leave by. The gates of all other ports may stay open."""


def gate_lists(schedule: LabSchedule, options: GateOptions) -> GateLists:
    """Return the gate control lists of switches and of hosts that send.

    Raises `InputError` if a list cannot express a cycle as long as the base period.
    """
    lab, cycle_ns = schedule.lab, schedule.timing.base_period_ns
    if cycle_ns > _LONGEST_INTERVAL_NS:
        raise InputError(
            f"a base period of {cycle_ns / NS_PER_S:g} s: gate control lists have cycles of at most"
            f" {_LONGEST_INTERVAL_NS / NS_PER_S:.2f} s; shorten --base-period-us"
        )
    rates_bps = {end: lab.rate_bps(link) for link in lab.links for end in (link.a, link.b)}
    ports: dict[str, tuple[PortGates, ...]] = {}
    for end, passages in _passages(schedule).items():
        gates = _port_gates(
            lab, end, passages, rate_bps=rates_bps[end], timing=schedule.timing, options=options
        )
        ports[end.node] = (*ports.get(end.node, ()), gates)
    return GateLists(schedule=schedule, options=options, ports=ports)


class _Passage(NamedTuple):
    """When frames of a flow leave by a port: from `offset_ns` on in a base period, for up to `bound_ns`."""

    offset_ns: int
    bound_ns: float


def _passages(schedule: LabSchedule) -> dict[Endpoint, list[_Passage]]:
    """Return the passages by each port, hosts' ports first, as in the lab; those of a port in order."""
    passages: dict[Endpoint, list[_Passage]] = defaultdict(list)
    for flow in schedule.scheduled:
        leaves = [(flow.timed.source, 1), *((hop.switch, hop.output_port) for hop in flow.path)]
        for (node, port), bound_ns in zip(leaves, flow.link_bounds_ns, strict=True):
            passages[Endpoint(node=node, port=port)].append(_Passage(flow.offset_ns, bound_ns))
    nodes = (*schedule.lab.hosts, *schedule.lab.switches)
    ends = (Endpoint(node=node, port=port) for node in nodes for port, _ in schedule.lab.neighbours(node))
    return {end: sorted(passages[end]) for end in ends if end in passages}


def _windows(passages: Sequence[_Passage], margin_ns: int) -> list[OpenWindow]:
    """Return the windows of a port in order, with times from the beginning of a base period.

    The first may begin before it. Windows that meet are one.
    """
    windows: list[OpenWindow] = []
    for offset_ns, bound_ns in passages:
        start_ns = offset_ns - margin_ns
        end_ns = offset_ns + math.ceil(bound_ns) + margin_ns
        if windows and start_ns <= windows[-1].end_ns:
            last = windows.pop()
            start_ns, end_ns = last.start_ns, max(last.end_ns, end_ns)
        windows.append(OpenWindow(start_ns, end_ns))
    return windows


def _port_gates(
    lab: Lab,
    end: Endpoint,
    passages: Sequence[_Passage],
    *,
    rate_bps: int,
    timing: CycleTiming,
    options: GateOptions,
) -> PortGates:
    guard_band_ns = longest_wait_ns(LONGEST_OTHER_BYTES, rate_bps, preempted=False)
    needed_ns = guard_band_ns + longest_wait_ns(SHORTEST_FRAME_BYTES, rate_bps, preempted=False)
    windows = _windows(passages, timing.guard_ns + options.clock_ns)
    entries = tuple(
        _entries(windows, timing.base_period_ns, guard_band_ns=guard_band_ns, needed_ns=needed_ns, to=options)
    )
    return PortGates(
        end=end,
        interface=lab.hosts[end.node].device if end.node in lab.hosts else f"{end.node}-eth{end.port}",
        rate_bps=rate_bps,
        cycle_ns=timing.base_period_ns,
        base_time_ns=windows[0].start_ns % timing.base_period_ns,
        entries=entries,
    )


def _entries(
    windows: Sequence[OpenWindow], cycle_ns: int, *, guard_band_ns: int, needed_ns: int, to: GateOptions
) -> Iterator[GateEntry]:
    """Yield a cycle that begins with the first window.

    Between two windows the other classes are open until the guard band. If that is too short for a frame of
    theirs, the scheduled class stays open instead.
    """
    again = OpenWindow(windows[0].start_ns + cycle_ns, windows[0].end_ns + cycle_ns)
    open_ns = 0
    for window, following in pairwise((*windows, again)):
        gap_ns = following.start_ns - window.end_ns
        if gap_ns < needed_ns:
            open_ns += following.start_ns - window.start_ns
            continue
        yield GateEntry(to.scheduled_open, open_ns + window.end_ns - window.start_ns)
        yield GateEntry(to.others_open, gap_ns - guard_band_ns)
        yield GateEntry(ALL_CLOSED, guard_band_ns)
        open_ns = 0
    if open_ns:
        yield GateEntry(to.scheduled_open, open_ns)
