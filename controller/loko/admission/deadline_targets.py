"""Delay targets that follow the deadlines of the flows, for Loko's scheme on simple devices.

Loko's delay bound of a switch is the time in which the largest admitted burst is served. A larger buffer
allows larger bursts, so without a target it lengthens every guarantee, and flows with deadlines no longer
fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from loko.admission import Admission
from loko.admission.planning import plan
from loko.admission.schemes import SchemeName, SchemeVariant, takes_target
from loko.document import InputError
from loko.topology.lab import Lab
from loko.topology.network import ShortestPaths
from loko.topology.requests import Request, deadlines_of

_MOST_TARGETS: Final = 32
"""So many targets are tried: each takes a plan of all flows."""


def follows_deadlines(lab: Lab, choice: SchemeVariant, requests: Iterable[Request]) -> bool:
    """Return whether the targets of a plan follow its flows' deadlines if no target is given."""
    is_lokos = choice.scheme == SchemeName.LOKO and takes_target(lab, choice)
    return is_lokos and any(request.deadline_ns is not None for request in requests)


def followed_target_ns(
    lab: Lab, requests: Sequence[Request], admission: Callable[[int | None], Admission]
) -> int | None:
    """Return the target of every switch with which most flows fit; None if that is none at all.

    `admission` returns an empty admission for a target. The candidates are what each deadline leaves to a
    switch of the flow's shortest path: between two of them the same flows are in time, and the larger one has
    more room for bursts. Of several with which equally many fit, the largest is chosen. Raises `InputError`
    as `loko.admission.planning.plan` does.
    """
    flows, deadlines_ns = [request.flow for request in requests], deadlines_of(requests)

    def fit(target_ns: int | None) -> int:
        return len(plan(lab, flows, admission(target_ns), deadlines_ns=deadlines_ns).accepted)

    best, most = None, fit(None)
    for target_ns in _candidates(lab, requests):
        if most == len(flows):
            break
        try:
            count = fit(target_ns)
        except InputError:  # a switch cannot forward a frame so quickly, nor in less
            break
        if count > most:
            best, most = target_ns, count
    return best


def _candidates(lab: Lab, requests: Sequence[Request]) -> list[int]:
    """Return the targets to try, the largest first."""
    shortest = ShortestPaths(lab)
    targets_ns = {
        math.floor(request.deadline_ns / max(1, len(shortest.between(*request.flow[1:3]))))
        for request in requests
        if request.deadline_ns is not None
    }
    ordered = sorted(targets_ns, reverse=True)
    step = math.ceil(len(ordered) / _MOST_TARGETS)
    return ordered[::step] if step else []
