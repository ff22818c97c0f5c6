"""The largest set that survives failures is as large as an exhaustive search finds."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.admission import Admission, Admitted
from loko.admission.planning import scenario_of
from loko.admission.protection import NetworkFailure, Protection, Survival, failures_of, protect
from loko.admission.protection.largest_protected import largest_protected
from loko.admission.protection.replacement import may_exchange
from loko.admission.routing import paths
from loko.admission.schemes import admission_of, variant_named
from loko.solvers import Solver, solver_named
from loko.solvers.program import TimeBudget
from loko.switch_model.control_traffic import served_traffic
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab, ring_lab
from loko.topology.network import Hop
from loko.topology.ring import Ring

HIGHS = solver_named(Solver.HIGHS)
RING = ring_lab(Ring(switches=3, hosts_per_switch=1, one_way=False))
SCHEMES = ("full-rate", "packet-granular")


class States:
    """The admission controls that a set must fit, whatever fails."""

    def __init__(self, lab: Lab, flows: Sequence[Flow], scheme: str, entries: int) -> None:
        scenario = scenario_of(flows, entries=entries, lab=lab)
        traffic = served_traffic(20, {}, compare_s=0)
        self.make: Callable[[], Admission] = lambda: admission_of(
            lab, variant_named(scheme), scenario, traffic=traffic
        )
        self._one = self.make()

    def fit(self, requests: Sequence[tuple[Flow, tuple[Hop, ...]]]) -> bool:
        admission = self._one
        admission.release_all()
        return all(isinstance(admission.request(flow, path), Admitted) for flow, path in requests)


def drawn(rng: Random, lab: Lab, count: int) -> list[Flow]:
    kinds = []
    for _ in range(3):
        source, destination = rng.sample(list(lab.hosts), 2)
        rate_bps, burst_bytes = rng.choice((2e4, 3e5, 9e5)), 306.0 * rng.choice((1, 2, 4))
        kinds.append(Flow("", source, destination, 0, 2000, rate_bps, burst_bytes, 306))
    return [rng.choice(kinds)._replace(id=f"f{number}", udp_source=1000 + number) for number in range(count)]


def choices(
    lab: Lab, flow: Flow, failures: Sequence[NetworkFailure], protection: Protection
) -> Iterator[tuple[tuple[Hop, ...], Mapping[str, tuple[Hop, ...]]]]:
    """Yield each working path with each choice of second paths by failure."""
    ways = [*paths(lab, flow.source, flow.destination)]
    for working in ways:
        hit = [failure for failure in failures if failure.hits(flow.source, working)]
        if protection is Protection.DUPLICATE and hit:
            for second in ways:
                if not any(failure.hits(flow.source, second) for failure in hit):
                    yield working, dict.fromkeys((failure.name for failure in failures), second)
            continue
        options = [
            [way for way in ways if not failure.hits(flow.source, way) and may_exchange(working, way)]
            for failure in hit
        ]
        for chosen in itertools.product(*options):
            yield working, {failure.name: way for failure, way in zip(hit, chosen, strict=True)}


def most_by_trying(
    lab: Lab,
    flows: Sequence[Flow],
    states: States,
    failures: Sequence[NetworkFailure],
    protection: Protection,
) -> int:
    for count in range(len(flows), 0, -1):
        for chosen in itertools.combinations(flows, count):
            each = [[*choices(lab, flow, failures, protection)] for flow in chosen]
            for ways in itertools.product(*each):
                together = list(zip(chosen, ways, strict=True))
                if all(states.fit(requests_after(together, failure)) for failure in failures):
                    return count
    return 0


def requests_after(
    together: Sequence[tuple[Flow, tuple[tuple[Hop, ...], Mapping[str, tuple[Hop, ...]]]]],
    failure: NetworkFailure,
) -> list[tuple[Flow, tuple[Hop, ...]]]:
    requests = []
    for flow, (working, seconds) in together:
        requests.append((flow, working))
        if failure.name in seconds:
            copy = flow._replace(id=f"{flow.id}-copy", udp_destination=flow.udp_source)
            requests.append((copy, seconds[failure.name]))
    return requests


@examples(20)
@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(SCHEMES),
    protection=st.sampled_from(list(Protection)),
    entries=st.sampled_from((4, 8, 17)),
)
def test_trying_everything_finds_no_more(
    seed: int, scheme: str, protection: Protection, entries: int
) -> None:
    rng = Random(seed)
    flows = drawn(rng, RING, rng.randint(2, 4))
    failures = failures_of(RING, ["cables=1"])
    states = States(RING, flows, scheme, entries)
    end_ns = time.monotonic_ns() + 120 * 10**9
    found = largest_protected(
        RING,
        flows,
        states.make,
        Survival(failures=failures, protection=protection),
        solve=HIGHS,
        clock=TimeBudget(now_ns=time.monotonic_ns, end_ns=end_ns),
    )
    assert found.proof.is_proven
    assert not found.proof.is_by_few_paths
    assert len(found.protected.flows) == most_by_trying(RING, flows, states, failures, protection)


def one_large_and_many_small(count: int) -> list[Flow]:
    rates_bps = [8e5, *(count - 1) * [1e5]]
    return [
        Flow(f"f{number}", "h1", "h2", 1000 + number, 2000, rate_bps, 306.0, 306)
        for number, rate_bps in enumerate(rates_bps)
    ]


@pytest.mark.parametrize("protection", list(Protection))
def test_a_large_flow_does_not_keep_out_small_ones(protection: Protection) -> None:
    flows = one_large_and_many_small(6)
    states = States(RING, flows, "fifth-rate", 17)
    failures = failures_of(RING, ["cables=1"])
    in_order = protect(RING, flows, states.make, failures, protection=protection)
    clock = TimeBudget(now_ns=time.monotonic_ns, end_ns=time.monotonic_ns() + 120 * 10**9)
    survival = Survival(failures=failures, protection=protection)
    found = largest_protected(RING, flows, states.make, survival, solve=HIGHS, clock=clock)
    assert found.proof.in_order == len(in_order.flows) < len(found.protected.flows)
    assert found.proof.is_proven
    assert "f0" not in found.protected.flows


def test_without_time_the_gap_is_told() -> None:
    flows = one_large_and_many_small(6)
    states = States(RING, flows, "fifth-rate", 17)
    found = largest_protected(
        RING,
        flows,
        states.make,
        Survival(failures=failures_of(RING, ["cables=1"]), protection=Protection.BACKUP),
        solve=HIGHS,
        clock=TimeBudget(now_ns=lambda: 1, end_ns=0),
    )
    assert not found.proof.is_proven
    assert found.proof.bound == len(flows)
    assert len(found.protected.flows) == found.proof.in_order
