"""Traffic classes of flows on switches with queues: their delay targets, and which class each flow gets.

Both follow the deadlines (docs/port-queues.md, "Classes").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from loko.admission import Admission
from loko.admission.planning import plan
from loko.admission.port_queues import PortAdmission
from loko.admission.protection import Survival
from loko.topology.lab import Lab
from loko.topology.requests import Request, deadlines_of, has_lower_class, in_class

_MOST_CUTS: Final = 24
"""So many places are tried at which a class ends: each takes a plan of all flows."""

Ready = Callable[[Sequence[Request], Mapping[int, float]], Admission]
"""Returns an empty admission for flows with their classes, and the targets of classes."""


def with_class_targets(
    lab: Lab,
    requests: Sequence[Request],
    ready: Ready,
    *,
    is_given: bool = False,
    survival: Survival | None = None,
) -> Admission:
    """Return an empty admission in which every class has the target that its deadlines ask for.

    That is the largest with which all its flows are in time on their shortest paths, but for those that no
    target allows; with `survival`, on the shortest paths after each failure as well. A class without
    deadlines has the target of its room, and so has every flow if all are of one class. `is_given` leaves the
    target of the highest class as it is.
    """
    admission = ready(requests, {})
    if not isinstance(admission, PortAdmission) or not has_lower_class(requests):
        return admission
    even_ns = _even_targets_ns(lab, requests, admission, survival)
    return ready(requests, _targets_ns(requests, even_ns, admission.least_target_ns, is_given=is_given))


def class_targets_of(admission: Admission) -> Mapping[int, float]:
    """Return the delay targets of traffic classes, in ns, that `with_class_targets` has found; else none."""
    return admission.class_targets_ns if isinstance(admission, PortAdmission) else {}


def in_classes(
    lab: Lab,
    requests: Sequence[Request],
    most: int,
    ready: Ready,
    *,
    is_given: bool = False,
    survival: Survival | None = None,
) -> list[Request]:
    """Return the flows in at most so many classes, the earlier deadlines in the higher ones.

    One class is divided after the other, at the deadline with which most flows fit, or with `survival`
    survive, as long as more do. Flows without a deadline come last. The order of the flows stays. `ready`
    knows classes. Raises `InputError` as `plan` does.
    """
    best = [in_class(request, 1) for request in requests]
    admission = ready(best, {})
    assert isinstance(admission, PortAdmission), "others have one class"
    even_ns = _even_targets_ns(lab, best, admission, survival)
    deadlines_ns = deadlines_of(requests)

    def fit(classed: Sequence[Request]) -> int:
        flows = [request.flow for request in classed]
        targets_ns = _targets_ns(classed, even_ns, admission.least_target_ns, is_given=is_given)
        make = partial(ready, classed, targets_ns)
        if survival is not None:
            return len(survival.plan(lab, flows, make, deadlines_ns).flows)
        return len(plan(lab, flows, make(), deadlines_ns=deadlines_ns).accepted)

    accepted = fit(best)
    ordered = sorted(set(even_ns.values()))[1:]
    step = math.ceil(len(ordered) / _MOST_CUTS) or 1
    cuts: tuple[float, ...] = ()
    while len(cuts) < most - 1 and accepted < len(requests):
        tried = []
        for cut in ordered[::step]:
            if cut not in cuts:
                now = (*cuts, cut)
                classed = [
                    in_class(request, 1 + sum(even_ns[request.flow.id] >= each for each in now))
                    for request in requests
                ]
                tried.append((fit(classed), now, classed))
        count, now, classed = max(tried, key=lambda one: one[0], default=(0, (), best))
        if count <= accepted:
            break
        accepted, cuts, best = count, now, classed
    return best


def _targets_ns(
    requests: Sequence[Request], even_ns: Mapping[str, float], least_ns: float, *, is_given: bool
) -> dict[int, float]:
    """Return the targets of classes for what `_even_targets_ns` says; none if all flows are of one class."""
    targets_ns: dict[int, float] = {}
    if not has_lower_class(requests):
        return targets_ns
    for request in requests:
        of_flow_ns, traffic_class = even_ns[request.flow.id], request.flow.traffic_class
        if least_ns <= of_flow_ns < math.inf and not (is_given and traffic_class == 1):
            targets_ns[traffic_class] = min(of_flow_ns, targets_ns.get(traffic_class, math.inf))
    return targets_ns


def _even_targets_ns(
    lab: Lab, requests: Sequence[Request], admission: PortAdmission, survival: Survival | None
) -> dict[str, float]:
    """Return by flow the target of all ports with which it is just in time on all paths that it needs.

    It is infinite without a deadline, and for a flow that a failure leaves no path.
    """
    flows = [request.flow for request in requests]
    needed = {} if survival is None else survival.needed_paths(lab, flows, admission)
    return {
        flow.id: min(
            (
                math.inf if deadline_ns is None else admission.even_target_ns(flow, deadline_ns, path)
                for path in needed.get(flow.id, [None])
            ),
            default=math.inf,
        )
        for flow, deadline_ns, _ in requests
    }
