"""Traffic classes of flows on switches with queues: their delay targets, and which class each flow gets.

Both follow the deadlines (docs/port-queues.md, "Classes").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from loko.admission import Admission
from loko.admission.planning import plan
from loko.admission.port_queues import PortAdmission
from loko.document import InputError
from loko.topology.lab import Lab
from loko.topology.requests import Request, deadlines_of

_MOST_CUTS: Final = 24
"""So many places are tried at which a class ends: each takes a plan of all flows."""

Ready = Callable[[Sequence[Request], Mapping[int, float]], Admission]
"""Returns an empty admission for flows with their classes, and the targets of classes."""


def with_class_targets(requests: Sequence[Request], ready: Ready, *, is_given: bool = False) -> Admission:
    """Return an empty admission in which every class has the target that its deadlines ask for.

    That is the largest with which all its flows are in time on their shortest paths, but for those that no
    target allows. A class without deadlines has the target of its room, and so has every flow if all are of
    one class. `is_given` leaves the target of the highest class as it is.
    """
    admission = ready(requests, {})
    if not isinstance(admission, PortAdmission) or all(request.traffic_class == 1 for request in requests):
        return admission
    least_ns, targets_ns = admission.least_target_ns, dict[int, float]()
    for flow, deadline_ns, _, traffic_class in requests:
        if deadline_ns is not None and not (is_given and traffic_class == 1):
            even_ns = admission.even_target_ns(flow, deadline_ns)
            if even_ns >= least_ns:
                targets_ns[traffic_class] = min(even_ns, targets_ns.get(traffic_class, math.inf))
    return ready(requests, targets_ns)


def in_classes(
    lab: Lab, requests: Sequence[Request], most: int, ready: Ready, *, is_given: bool = False
) -> list[Request]:
    """Return the flows in at most so many classes, the earlier deadlines in the higher ones.

    One class is divided after the other, at the deadline with which most flows fit, as long as more fit.
    Flows without a deadline come last. The order of the flows stays. Raises `InputError` as `plan` does.
    """
    best = [request._replace(traffic_class=1) for request in requests]
    admission = ready(best, {})
    if not isinstance(admission, PortAdmission):
        raise InputError("--classes: only --scheme ports has classes; leave it out")
    even_ns = [
        math.inf
        if request.deadline_ns is None
        else admission.even_target_ns(request.flow, request.deadline_ns)
        for request in requests
    ]
    deadlines_ns = deadlines_of(requests)

    def fit(classed: Sequence[Request]) -> int:
        admission = with_class_targets(classed, ready, is_given=is_given)
        flows = [request.flow for request in classed]
        return len(plan(lab, flows, admission, deadlines_ns=deadlines_ns).accepted)

    accepted = fit(best)
    ordered = sorted(set(even_ns))[1:]
    step = math.ceil(len(ordered) / _MOST_CUTS) or 1
    cuts: tuple[float, ...] = ()
    while len(cuts) < most - 1 and accepted < len(requests):
        tried = []
        for cut in ordered[::step]:
            if cut not in cuts:
                now = (*cuts, cut)
                classed = [
                    request._replace(traffic_class=1 + sum(ns >= each for each in now))
                    for request, ns in zip(requests, even_ns, strict=True)
                ]
                tried.append((fit(classed), now, classed))
        count, now, classed = max(tried, key=lambda one: one[0], default=(0, (), best))
        if count <= accepted:
            break
        accepted, cuts, best = count, now, classed
    return best
