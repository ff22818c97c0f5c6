"""Plans of several traffic classes that survive failures: each state's flows are admitted as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.admission import Admission, Admitted
from loko.admission.class_targets import with_class_targets
from loko.admission.port_queues import PortAdmission
from loko.admission.protection import ProtectedFlow, Protection, Survival, failures_of
from loko.switch_model.calculus import CoarseBounds
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab
from loko.topology.requests import Request, deadlines_of, in_class
from loko_testbed.simulation.worst_case.port_trial import SIZES, random_flow
from loko_testbed.simulation.worst_case.random_cases import random_lab

SCENARIO = loko_scenario(entries=200, packet_sizes_bytes=SIZES)


class EachBound(PortAdmission):
    """Finds the bounds of every request, so it knows no coarse ones."""

    _finds_bounds_late = False


def requests_of(rng: Random, lab: Lab, most_classes: int) -> list[Request]:
    """Draw flows of several classes, the more of them in the lower ones; half of them have deadlines."""
    hosts, most_mbps = list(lab.hosts), rng.choice((60, 150, 400))
    requests = []
    for number in range(40):
        source, destination = rng.sample(hosts, 2)
        traffic_class = rng.randint(1, most_classes)
        flow = random_flow(
            rng,
            number,
            (source, destination),
            rng.choice(SIZES),
            most_frames=rng.choice((1, 4, 12)),
            most_mbps=most_mbps,
        )
        deadline_ns = rng.uniform(3e5, 2e6) * traffic_class if rng.random() < 0.5 else None
        requests.append(in_class(Request(flow, deadline_ns), traffic_class))
    return requests


def anew(
    kind: type[PortAdmission], lab: Lab, requests: Sequence[Request], class_targets_ns: Mapping[int, float]
) -> PortAdmission:
    return kind(
        lab,
        SCENARIO,
        classes=max(request.flow.traffic_class for request in requests),
        class_targets_ns=class_targets_ns,
    )


def states_anew(seed: int, protection: Protection) -> Counter[str]:
    """Plan, then request what each state has from an empty admission; return what was seen how often."""
    rng = Random(seed)
    lab = random_lab(rng, rng.choice(("ring", "cycles")), most_switches=6, profiles=["ideal-1g"])
    requests = requests_of(rng, lab, rng.randint(2, 3))
    failures = failures_of(lab, ["cables=1", *rng.choice(([], ["switches=1"]))])
    survival = Survival(
        failures=failures,
        protection=protection,
        duplicated=[request.flow.id for request in requests if rng.random() < 0.2],
    )
    targets_ns: dict[int, float] = {}

    def ready(requests: Sequence[Request], class_targets_ns: Mapping[int, float]) -> Admission:
        targets_ns.update(class_targets_ns)
        return anew(PortAdmission, lab, requests, class_targets_ns)

    make = partial(with_class_targets, lab, requests, ready, survival=survival)
    flows, deadlines_ns = [request.flow for request in requests], deadlines_of(requests)
    found = survival.plan(lab, flows, make, deadlines_ns)
    asked = {request.flow.id: request for request in requests}
    seen: Counter[str] = Counter()
    for failure in (None, *failures):
        together = [
            (f"{flow_id}-{number}", admitted, asked[flow_id])
            for flow_id, flow in found.flows.items()
            for number, admitted in enumerate(paths_after(flow, None if failure is None else failure.name))
        ]
        named = [
            request._replace(flow=admitted.flow._replace(id=name, udp_source=place))
            for place, (name, admitted, request) in enumerate(together)
        ]
        state = anew(EachBound, lab, named, targets_ns)
        for request, (_, admitted, original) in zip(named, together, strict=True):
            answer = state.request(request.flow, admitted.path)
            seen["refused"] += not isinstance(answer, Admitted)
            seen["in another class"] += admitted.flow.traffic_class != original.flow.traffic_class
            seen["late"] += admitted.guarantee_ns > deadlines_ns.get(original.flow.id, admitted.guarantee_ns)
            seen["on second paths"] += admitted.path != found.flows[original.flow.id].working.path
            seen["below the highest class"] += original.flow.traffic_class > 1
    return seen


def paths_after(flow: ProtectedFlow, failure: str | None) -> list[Admitted]:
    """Return a flow on all paths on which it counts in a state."""
    backup = None if failure is None else flow.backups.get(failure)
    return [each for each in (flow.working, flow.duplicate, backup) if each is not None]


@examples(25)
@given(seed=st.integers(0, 10**9), protection=st.sampled_from(list(Protection)))
def test_the_flows_of_each_state_are_admitted_together(seed: int, protection: Protection) -> None:
    seen = states_anew(seed, protection)
    assert not seen["refused"]
    assert not seen["late"]
    assert not seen["in another class"]


def test_these_plans_have_second_paths_in_lower_classes() -> None:
    seen = sum((states_anew(seed, Protection.BACKUP) for seed in range(8)), Counter[str]())
    assert min(seen["on second paths"], seen["below the highest class"]) > 100


def test_states_that_admit_everything_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the property above can fail."""
    monkeypatch.setattr(CoarseBounds, "fits", lambda _coarse, _flow: True)
    assert states_anew(1, Protection.BACKUP)["refused"]
