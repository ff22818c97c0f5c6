"""The cable that would give most flows another path after a failure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from loko.admission.protection.failures import NetworkFailure, Reachability
from loko.switch_model.flow import Flow
from loko.topology.lab import Endpoint, Lab, Link


class HelpfulCable(NamedTuple):
    """A cable that the lab lacks."""

    link: Link
    """Between two free ports, the lowest of their switches."""
    helped: tuple[str, ...]
    """The flows that no failure would cut off any more, whether or not there is room for them."""

    def added_to(self, lab: Lab) -> Lab:
        """Return the lab with this cable."""
        return replace(lab, links=(*lab.links, self.link))


def most_helpful_cable(
    lab: Lab,
    flows: Sequence[Flow],
    failures: Sequence[NetworkFailure],
    cut_off: Mapping[str, tuple[str, ...]],
) -> HelpfulCable | None:
    """Return the cable between two switches with free ports that helps most of the flows that are cut off.

    Of equally helpful ones it is the first in the order of the lab's switches. None if no single cable helps.
    """
    named = {failure.name: failure for failure in failures}
    reached = {name: Reachability(lab, named[name]) for names in cut_off.values() for name in names}
    free = _free_ports(lab)
    best: HelpfulCable | None = None
    lost = [flow for flow in flows if flow.id in cut_off]
    for a, b in itertools.combinations(free, 2):
        helped = tuple(
            flow.id
            for flow in lost
            if all(_joins(reached[name], named[name], flow, a, b) for name in cut_off[flow.id])
        )
        if helped and (best is None or len(helped) > len(best.helped)):
            ends = (Endpoint(node=node, port=free[node]) for node in (a, b))
            best = HelpfulCable(Link(a=next(ends), b=next(ends)), helped)
    return best


def _joins(reached: Reachability, failure: NetworkFailure, flow: Flow, a: str, b: str) -> bool:
    """Return whether a cable between two switches would lead around the failure, and cannot fail with it."""
    if failure.is_joined_by_any_cable or {a, b} & failure.switches:
        return False
    first, last = reached.ends_of(flow)
    ways = ((a, b), (b, a))
    return any(reached.joins(first, near) and reached.joins(far, last) for near, far in ways)


def _free_ports(lab: Lab) -> dict[str, int]:
    """Return the lowest free port of each switch that has one."""
    free = {}
    for name, switch in lab.switches.items():
        used = {port for port, _ in lab.neighbours(name)} | {lab.control_port}
        ports = (port for port in range(1, switch.profile.ports.count.value + 1) if port not in used)
        if (port := next(ports, None)) is not None:
            free[name] = port
    return free
