"""Flows that share an input port are bounded together (docs/packet-granular.md, lemma 6).

A switch delays a frame because others are before it. Those of its own group have left when it leaves, and
need not be counted again in the next switch. So a group brings less there than its flows could bring if each
alone were delayed.

Curves here count frames, in cells of one width: the value at index c is for all intervals of up to c cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from loko.admission import Admitted, Refusal, ResourceShare, SchemeConditions, Usage
from loko.admission.packets.admission import PacketAdmission, PacketRoute
from loko.admission.packets.conditions import JOINT_CONDITIONS
from loko.admission.packets.staircase import Curve, Grid, Staircase
from loko.admission.packets.switch import PortLoad, SwitchUse, refusal_of
from loko.document import InputError
from loko.switch_model.allocation import JOINT, PACKET_GRANULAR
from loko.switch_model.control_traffic import NO_MESSAGES, ControlTraffic
from loko.switch_model.flow import Flow
from loko.switch_model.margin import LimitTest
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab
from loko.topology.network import Hop

_CELL_NS: Final = 50_000
_CELLS: Final = 400
"""Intervals of up to 20 ms are bounded jointly; longer ones flow by flow."""
_STARTS: Final = np.concatenate((np.arange(81), np.arange(84, 801, 4)))
"""Cells between the start of a busy period and a frame's arrival. Beyond the last, a straight line bounds."""
_MOST_DELAY_CELLS: Final = 400
"""A switch that may delay a frame for longer gets no joint bound."""
_GRID: Final = Grid(_CELL_NS * np.arange(_CELLS + int(_STARTS[-1]) + _MOST_DELAY_CELLS, dtype=np.int64))
_UNBOUNDED: Final = 1 << 40

SharedPath = Sequence[tuple[SwitchUse, PortLoad]]
"""The switches of a flow with its load there, in order."""


class JointAdmission(PacketAdmission):
    """Packet-granular admission that bounds flows from one switch jointly if they do not fit one by one.

    The guarantees are the same. A decision also checks the switches after the path, since what passes a
    switch now bounds what leaves it. With several frame sizes it decides as `PacketAdmission` does.
    """

    conditions: ClassVar[SchemeConditions] = JOINT_CONDITIONS

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        targets: Mapping[str, float] | None = None,
        *,
        traffic: ControlTraffic = NO_MESSAGES,
        padding: int | None = None,
    ) -> None:
        """See `PacketAdmission`."""
        super().__init__(lab, scenario, targets, traffic=traffic, padding=padding)
        limits = PacketAdmission(lab, scenario, targets, traffic=traffic, padding=padding, grid=_GRID)
        self._limits = limits.switches
        """Room of each switch and limits of its ports, in cells; no flow is ever added."""
        self._stages: dict[str, SharedPath] = {}
        """Switches and loads of each flow, by id."""
        self._passing: dict[str, dict[str, int]] = {name: {} for name in lab.switches}
        """By switch, the flows that pass it, each with the index of the switch on its path."""
        self._relying: set[str] = set()
        """Switches whose flows fit only jointly."""

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return f"{PACKET_GRANULAR}-{JOINT}"

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """See `PacketAdmission.request`."""
        answer = super().request(flow, path)
        if isinstance(answer, Admitted):
            self._stages[flow.id] = tuple(self._routes[flow.id].loads(flow))
            self._join(flow.id)
            self._relying |= {hop.switch for hop in answer.hops if self._is_overfull(hop.switch)}
        return answer

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Raise `InputError`: lemma 6 is proved only for flows that stay."""
        del now_ns, sent_until_ns
        raise InputError(
            f"flow '{flow_id}': {self.scheme} is for flows that stay; to release some, use"
            f" '{PACKET_GRANULAR}'"
        )

    def cancel(self, flow_id: str) -> None:
        """See `PacketAdmission.cancel`."""
        super().cancel(flow_id)
        for switch, _ in self._stages.pop(flow_id):
            del self._passing[switch.name][flow_id]
        self._relying = set(filter(self._is_overfull, self._relying))

    def rename(self, flow_id: str, flow: Flow) -> Admitted:
        """See `PacketAdmission.rename`."""
        renamed = super().rename(flow_id, flow)
        self._stages[flow.id] = self._stages.pop(flow_id)
        for switch, _ in self._stages[flow.id]:
            passing = self._passing[switch.name]
            passing[flow.id] = passing.pop(flow_id)
        return renamed

    def release_all(self) -> None:
        """See `PacketAdmission.release_all`."""
        super().release_all()
        self._stages.clear()
        self._relying.clear()
        for flows in self._passing.values():
            flows.clear()

    def falls_if_slower(self) -> LimitTest | None:
        """None: to find out takes many times as long as the plan."""
        return None

    def usage(self, switch: str) -> Usage:
        """See `PacketAdmission.usage`."""
        usage = super().usage(switch)
        if switch not in self._relying:
            return usage
        delay = usage.share("delay")
        used_us = delay.allowed - self._slack_ns(switch, None) / 1e3
        others = (share for share in usage.shares if share is not delay)
        return Usage((ResourceShare("delay", used_us, delay.allowed, delay.unit), *others), usage.delay_ns)

    def _decide(self, flow: Flow, route: PacketRoute) -> Admitted | Refusal:
        loads, overfull = [], {}
        for switch, load in route.loads(flow):
            refusal = switch.refusal(flow, load)
            if refusal is not None and (refusal.quantity != "delay" or not _is_joint(switch)):
                return refusal
            if refusal is not None:
                overfull[switch.name] = refusal
            loads.append((switch, load))
        here = {switch.name: load for switch, load in loads}
        self._stages[flow.id] = loads
        self._join(flow.id)
        try:
            behind = {name for name in self._relying if self._is_behind(name, here)}
            for name in sorted(overfull.keys() | behind):
                slack_ns = self._slack_ns(name, here.get(name))
                if slack_ns < 0:
                    return overfull.get(name) or self._too_late(flow, name, slack_ns)
        finally:
            del self._stages[flow.id]
            for name in here:
                del self._passing[name][flow.id]
        return self._accepted(flow, route)

    def _join(self, flow_id: str) -> None:
        for place, (switch, _) in enumerate(self._stages[flow_id]):
            self._passing[switch.name][flow_id] = place

    def _is_overfull(self, name: str) -> bool:
        delay = PacketAdmission.usage(self, name).share("delay")
        return delay.used > delay.allowed

    def _is_behind(self, name: str, here: Mapping[str, PortLoad]) -> bool:
        """Return whether flows that pass a switch also pass one of the switches in `here`."""
        return any(
            switch.name in here
            for flow_id, place in self._passing[name].items()
            for switch, _ in self._stages[flow_id][: place + 1]
        )

    def _too_late(self, flow: Flow, name: str, slack_ns: int) -> Refusal:
        """Refuse a flow for what it would do to a switch, which it need not even pass itself."""
        allowed_us = self.switches[name].usage().share("delay").allowed
        return refusal_of(flow, name, ("delay", "us"), (allowed_us, -slack_ns / 1e3, allowed_us))

    def _slack_ns(self, name: str, load: PortLoad | None) -> int:
        """Return the least that all flows in `_passing` leave of a switch's room; `load` is not added yet."""
        limits, total = self._limits[name], np.zeros(_CELLS, dtype=np.int64)
        service_ns = self._service_ns(limits)
        for port, flows in self._by_port(self._passing[name]).items():
            work = np.minimum(self._frames(flows), limits.limit(port) // service_ns)
            total += np.minimum(work[:_CELLS], self._departing_to(flows)[:_CELLS])
        soon_ns = int((limits.room[:_CELLS] - total * service_ns).min())
        return min(soon_ns, self.switches[name].later_slack_ns(load, (_CELLS - 1) * _CELL_NS))

    def _by_port(self, flows: Mapping[str, int]) -> dict[int, dict[str, int]]:
        ports: dict[int, dict[str, int]] = {}
        for flow_id, place in flows.items():
            ports.setdefault(self._stages[flow_id][place][1].input_port, {})[flow_id] = place
        return ports

    def _frames(self, flows: Mapping[str, int], *, later_ns: int = 0) -> Curve:
        """Return the most frames that flows bring, one by one.

        Flows at their first switch count as if they had waited up to `later_ns` for their host's link.
        """
        total = np.zeros_like(_GRID.right_ns)
        for flow_id, place in flows.items():
            stairs = self._stages[flow_id][place][1].staircase
            first = stairs.first + (0 if place else stairs.frames_per_ns * later_ns)
            total += Staircase(first, stairs.frames_per_ns, 1).work(_GRID, 0, len(total))
        return total

    def _departing_to(self, flows: Mapping[str, int]) -> Curve:
        """Bound the flows that arrive by one port by what leaves the switch before, if any (lemma 6)."""
        flow_id, place = next(iter(flows.items()))
        if not place:
            return np.full(len(_GRID.right_ns), _UNBOUNDED)
        before = self._stages[flow_id][place - 1][0]
        return self._departures(before, {flow: at - 1 for flow, at in flows.items()})

    def _departures(self, switch: SwitchUse, group: Mapping[str, int]) -> Curve:
        """Return the most frames of a group that leave a switch in an interval."""
        if not _is_joint(switch):
            return np.full(len(_GRID.right_ns), _UNBOUNDED)
        name, server = switch.name, switch.server
        (size,) = server.times
        most_delay_ns = server.jitter_ns(size, switch.work_ns)
        if most_delay_ns > _MOST_DELAY_CELLS * _CELL_NS:
            return np.full(len(_GRID.right_ns), _UNBOUNDED)
        limits = self._limits[name]
        service_ns = self._service_ns(limits)
        zeros = np.zeros_like(_GRID.right_ns)
        own, own_later, others, everything = zeros.copy(), zeros.copy(), zeros.copy(), zeros.copy()
        later_ns = server.sender_queue_ns(switch.work_ns)
        for port, flows in self._by_port(self._passing[name]).items():
            mine = {flow_id: place for flow_id, place in flows.items() if flow_id in group}
            rest = {flow_id: place for flow_id, place in flows.items() if flow_id not in group}
            limit = limits.limit(port) // service_ns
            theirs = self._frames(rest)
            others += np.minimum(theirs, limit)
            if mine:
                bound = np.minimum(limit, self._departing_to(mine))
                own += np.minimum(self._frames(mine), bound)
                own_later += np.minimum(self._frames(mine, later_ns=later_ns), bound)
                theirs = theirs + self._frames(mine)
            everything += np.minimum(theirs, limit)
        stairs = [self._stages[flow][place][1].staircase for flow, place in self._passing[name].items()]
        in_group = [self._stages[flow][place][1].staircase for flow, place in group.items()]
        return _output(
            own=own,
            own_later=own_later,
            others=others,
            everything=everything,
            service_ns=service_ns,
            spread_ns=server.times[size].idle_ns - server.times[size].least_idle_ns,
            interrupted_ns=server.first_work_ns() + math.ceil(server.interruption.share * switch.work_ns),
            share=server.interruption.share,
            most_delay_ns=most_delay_ns,
            at_once=sum(staircase.first for staircase in stairs),
            frames_per_ns=sum(staircase.frames_per_ns for staircase in stairs),
            own_per_ns=sum(staircase.frames_per_ns for staircase in in_group),
        )

    @staticmethod
    def _service_ns(switch: SwitchUse) -> int:
        (times,) = switch.server.times.values()
        return times.service_ns


def _is_joint(switch: SwitchUse) -> bool:
    """Return whether flows are bounded together at a switch: lemma 6 is for frames of one size."""
    return len(switch.server.times) == 1


def _output(
    *,
    own: Curve,
    own_later: Curve,
    others: Curve,
    everything: Curve,
    service_ns: int,
    spread_ns: int,
    interrupted_ns: int,
    share: float,
    most_delay_ns: int,
    at_once: float,
    frames_per_ns: float,
    own_per_ns: float,
) -> Curve:
    """Return the supremum of lemma 6, cell by cell, never too small.

    `own`, `others` and `everything` count frames from the beginning of a busy period, `own_later` from any
    instant. `at_once` and `frames_per_ns` give a straight line above all flows together.
    """
    place = np.arange(_CELLS)
    starts, before = _STARTS, np.concatenate(([0], _STARTS[:-1]))
    spare_ns = spread_ns + interrupted_ns + np.ceil(share * starts * _CELL_NS).astype(np.int64)
    reach_ns = spare_ns + (everything[starts] - 1) * service_ns
    output = np.zeros(_CELLS, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(own, _CELLS)
    delay_cells = -(-most_delay_ns // _CELL_NS)
    for delay in range(delay_cells + 1):
        since_ns: Curve = (before + max(delay - 1, 0)) * _CELL_NS
        possible = since_ns <= reach_ns
        if not possible.any():
            break
        gone = np.maximum(0, -((spare_ns - since_ns) // service_ns) - others[starts])[possible]
        # `own` never falls: a window that begins later and has lost no more leaves at least as much.
        counts = np.append(gone[:-1] < np.minimum.accumulate(gone[:0:-1])[::-1], True)
        left = windows[starts[possible][counts] + delay] - gone[counts, None]
        np.maximum(output, np.minimum(own_later[place + delay], left.max(axis=0)), out=output)
    # Busy periods that began even earlier: the longer they are, the less is left (the rates leave room).
    line = at_once + (spread_ns + interrupted_ns) / service_ns + 1
    line -= int(starts[-1]) * _CELL_NS * ((1 - share) / service_ns - frames_per_ns)
    long_ago = np.floor(line + own_per_ns * place * _CELL_NS).astype(np.int64)
    np.maximum(output, np.minimum(own_later[place + delay_cells], long_ago), out=output)
    return np.concatenate((output, np.full(len(own) - _CELLS, _UNBOUNDED)))
