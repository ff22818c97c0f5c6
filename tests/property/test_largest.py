"""The largest set is as large as an exhaustive search finds, and never smaller than in the file's order."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from gate_examples import examples
from harness.managed_switches import OWN_BUFFERS, managed_switch, ring_of_managed
from hypothesis import HealthCheck, assume, example, given
from hypothesis import strategies as st

from loko.admission import Admission, Admitted
from loko.admission.largest import LargestSet, largest
from loko.admission.planning import plan
from loko.admission.port_queues import PortAdmission
from loko.admission.protection import Protection, Survival, failures_of
from loko.admission.protection.largest_protected import largest_protected
from loko.admission.routing import paths
from loko.admission.schemes import VARIANTS, admission_of
from loko.document import InputError
from loko.solvers import Solver, solver_named
from loko.solvers.program import IntegerProgram, SolverResult, TimeBudget
from loko.switch_model.control_traffic import HEARTBEAT
from loko.switch_model.flow import Flow
from loko.switch_model.mix import FlowKind, Mix
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, load_lab, ring_lab
from loko.topology.network import Hop
from loko.topology.ring import Ring
from loko_testbed.simulation.worst_case.random_cases import random_lab

SIZES = (64, 306)
RING = ring_lab(Ring(switches=4, one_way=False))
LABS = {"two-switch": load_lab("two-switch"), "ring": RING}
SCHEMES = sorted(name for name, choice in VARIANTS.items() if choice.is_monotone)
HIGHS = solver_named(Solver.HIGHS)


def empty(lab: Lab, scheme: str, entries: int) -> Admission:
    choice = VARIANTS[scheme]
    mix = Mix(
        kinds=[FlowKind(rate_bps=5e4, burst_bytes=size, frame_bytes=size) for size in SIZES], requests=30
    )
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=SIZES)
    return admission_of(
        lab, choice, scenario, mix=mix, traffic=HEARTBEAT if choice.reserves_control else None
    )


def drawn(rng: Random, lab: Lab, count: int, kinds: int) -> list[Flow]:
    """Draw flows of a few kinds, so that some are alike, as many are in practice."""
    hosts = list(lab.hosts)
    pool = []
    for _ in range(kinds):
        frame_bytes = rng.choice(SIZES)
        ends = rng.sample(hosts, 2)
        for _ in range(rng.choice((1, 2))):  # larger and smaller flows on the same path
            rate_bps = rng.choice((rng.uniform(1e3, 1e5), rng.uniform(1e5, 2e6), rng.uniform(1e6, 2e7)))
            burst_bytes = frame_bytes * rng.choice((1.0, 1.0, rng.uniform(1, 4), rng.uniform(1, 20)))
            pool.append((*ends, rate_bps, burst_bytes, frame_bytes))
    flows = []
    for number in range(count):
        source, destination, *rest = rng.choice(pool)
        flows.append(Flow(f"f{number}", source, destination, 1000 + number, 2000, *rest))
    return flows


def found(
    lab: Lab,
    flows: Sequence[Flow],
    admission: Admission,
    deadlines_ns: dict[str, float],
    solve=HIGHS,
) -> LargestSet:
    clock = TimeBudget(now_ns=time.monotonic_ns, end_ns=time.monotonic_ns() + 240 * 10**9)
    return largest(lab, flows, admission, solve=solve, clock=clock, deadlines_ns=deadlines_ns)


def most_by_trying(lab: Lab, flows: Sequence[Flow], admission: Admission, deadlines_ns) -> int:
    """Try every choice of flows, each on every path. Return the size of the largest that fits."""
    ways = {flow.id: [*paths(lab, flow.source, flow.destination)] for flow in flows}
    for count in range(len(flows), 0, -1):
        for chosen in itertools.combinations(flows, count):
            for on in itertools.product(*(ways[flow.id] for flow in chosen)):
                if fits(admission, list(zip(chosen, on, strict=True)), deadlines_ns):
                    return count
    return 0


def fits(admission: Admission, asked: Sequence[tuple[Flow, tuple[Hop, ...]]], deadlines_ns) -> bool:
    admission.release_all()
    for flow, path in asked:
        answer = admission.request(flow, path)
        late = isinstance(answer, Admitted) and answer.guarantee_ns > deadlines_ns.get(flow.id, 1e18)
        if late or not isinstance(answer, Admitted):
            return False
    return True


def drawn_case(seed: int, scheme: str, where: str, entries: int, most: int):
    rng = Random(seed)
    lab = LABS.get(where) or random_lab(rng, where, most_switches=4)
    try:
        admission = empty(lab, scheme, entries)
    except InputError:
        assume(False)  # for example, a mix of which nothing fits
    flows = drawn(rng, lab, rng.randint(1, most), rng.choice((1, 3, 6)))
    sometimes = rng.choice((0.0, 0.5))
    deadlines_ns = {flow.id: rng.uniform(2e6, 2e7) for flow in flows if rng.random() < sometimes}
    return lab, admission, flows, deadlines_ns


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(SCHEMES),
    where=st.sampled_from([*sorted(LABS), "cycles"]),
    entries=st.sampled_from((3, 5, 17)),
)
def test_it_is_what_trying_everything_finds(seed: int, scheme: str, where: str, entries: int) -> None:
    lab, admission, flows, deadlines_ns = drawn_case(seed, scheme, where, entries, 5)
    result = found(lab, flows, admission, deadlines_ns)
    assert result.is_proven
    assert not result.is_by_few_paths
    assert set(admission.admitted) == {accepted.flow.id for accepted in result.plan.accepted}
    assert len(result.plan.accepted) == most_by_trying(lab, flows, admission, deadlines_ns)


@examples(15)
@given(seed=st.integers(0, 10**6))
@example(seed=10)
def test_with_classes_it_is_what_trying_everything_finds(seed: int) -> None:
    """A flow of another class is not less of the same, however little it asks for."""
    rng = Random(seed)
    lab = random_lab(rng, "line", most_switches=3, profiles=["ideal-1g"])
    source, destination = rng.sample(list(lab.hosts), 2)
    flows = []
    for number in range(8):
        rate_bps, frames = rng.choice((1e6, 5e7, 1e8, 2e8, 3e8)), rng.choice((1, 5, 20, 40))
        flow = Flow(f"f{number}", source, destination, 1000 + number, 2000, rate_bps, 1518.0 * frames, 1518)
        flows.append(flow._replace(traffic_class=rng.randint(1, 3)))
    targets_ns = {1: rng.choice((1e5, 3e5, 6e5)), 2: rng.choice((3e5, 6e5, 2e6)), 3: 3e6}
    scenario = loko_scenario(entries=17, packet_sizes_bytes=(1518,))
    admission = PortAdmission(lab, scenario, classes=3, class_targets_ns=targets_ns)
    result = found(lab, flows, admission, {})
    assert result.is_proven
    assert len(result.plan.accepted) == most_by_trying(lab, flows, admission, {})


@examples(30)
@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(SCHEMES),
    where=st.sampled_from([*sorted(LABS), "cycles"]),
)
def test_no_order_has_more(seed: int, scheme: str, where: str) -> None:
    lab, admission, flows, deadlines_ns = drawn_case(seed, scheme, where, 17, 25)
    end_ns = time.monotonic_ns() + 10**9
    clock = TimeBudget(now_ns=time.monotonic_ns, end_ns=end_ns)
    result = largest(lab, flows, admission, solve=HIGHS, clock=clock, deadlines_ns=deadlines_ns)
    accepted = {accepted.flow.id: accepted for accepted in result.plan.accepted}
    assert len(accepted) + len(result.plan.refused) == len(flows)
    assert len(accepted) <= result.bound
    assert fits(admission, [(granted.flow, granted.path) for granted in accepted.values()], deadlines_ns)
    rng = Random(seed)
    for _ in range(5):
        in_order = len(plan(lab, flows, fresh(admission), deadlines_ns=deadlines_ns).accepted)
        assert in_order <= len(accepted) if flows[0].id == "f0" else in_order <= result.bound
        rng.shuffle(flows)


def fresh(admission: Admission) -> Admission:
    admission.release_all()
    return admission


@examples(50)
@given(seed=st.integers(0, 10**6), scheme=st.sampled_from(SCHEMES), where=st.sampled_from(sorted(LABS)))
def test_a_part_fits_and_less_in_the_place_of_more(seed: int, scheme: str, where: str) -> None:
    """The rows of the integer program rely on this, in every scheme that claims it."""
    lab, admission, flows, _ = drawn_case(seed, scheme, where, 17, 20)
    granted = [(accepted.flow, accepted.path) for accepted in plan(lab, flows, admission).accepted]
    rng = Random(seed)
    part = [admitted for admitted in granted if rng.random() < 0.7]
    less = [
        (
            flow._replace(
                rate_bps=flow.rate_bps * rng.choice((1.0, rng.random())),
                burst_bytes=max(flow.frame_bytes, flow.burst_bytes * rng.choice((1.0, rng.random()))),
            ),
            path,
        )
        for flow, path in part
    ]
    rng.shuffle(less)
    assert fits(admission, part, {})
    assert fits(admission, less, {})


@examples(30)
@given(seed=st.integers(0, 10**6), scheme=st.sampled_from(SCHEMES), where=st.sampled_from(sorted(LABS)))
def test_what_is_granted_demands_no_more_than_there_is(seed: int, scheme: str, where: str) -> None:
    """As `Admission.demands` says. Otherwise the program would exclude sets that fit."""
    lab, admission, flows, _ = drawn_case(seed, scheme, where, 5, 40)
    accepted = plan(lab, flows, admission).accepted
    total: dict[tuple[str, str], float] = {}
    for granted in accepted:
        for demand in admission.demands(granted):
            key = demand.server, demand.quantity
            total[key] = total.get(key, 0.0) + demand.amount
            assert total[key] <= demand.capacity * (1 + 1e-12), key


def one_way(count: int, rates_bps: Sequence[float]) -> list[Flow]:
    return [
        Flow(f"f{number}", "H1", "H3", 1000 + number, 2000, rates_bps[number % len(rates_bps)], 64.0, 64)
        for number in range(count)
    ]


def test_one_large_flow_does_not_keep_out_many_small_ones() -> None:
    lab = LABS["two-switch"]
    flows = one_way(8, (4e5, *7 * (2e4,)))
    result = found(lab, flows, empty(lab, "fifth-rate", 17), {})
    assert result.in_order < len(result.plan.accepted)
    assert [refusal.flow.id for refusal in result.plan.refused] == ["f0"]
    assert result.is_proven
    assert str(result).endswith(f"fit, and no larger set fits; {result.in_order} in the order asked for")


def test_the_order_of_the_file_is_kept_where_no_set_is_larger() -> None:
    lab = LABS["two-switch"]
    flows = one_way(6, (9e5,))
    admission = empty(lab, "fifth-rate", 17)
    result = found(lab, flows, admission, {})
    assert result.plan.accepted == plan(lab, flows, fresh(admission)).accepted
    assert result.is_proven
    assert result.plan.refused


def test_paths_that_were_not_looked_at_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loko.admission.largest.MOST_PATHS", 1)
    flows = [flow._replace(source="h1", destination="h3") for flow in one_way(12, (4e5, 2e4))]
    result = found(RING, flows, empty(RING, "fifth-rate", 17), {})
    assert result.is_by_few_paths
    assert result.plan.refused
    assert "fits on the 1 shortest paths of each flow" in str(result)


def test_without_time_it_says_what_it_does_not_know() -> None:
    lab = LABS["two-switch"]
    flows = one_way(8, (4e5, *7 * (2e4,)))
    over = TimeBudget(now_ns=lambda: 1, end_ns=0)
    result = largest(lab, flows, empty(lab, "fifth-rate", 17), solve=HIGHS, clock=over)
    assert not result.is_proven
    assert result.bound == len(flows)
    assert "no set of more than 8 fits" in str(result)
    assert "--time-limit" in str(result)


@pytest.mark.parametrize("scheme", ["fifth-rate", "packet-granular"])
def test_a_solver_that_finds_nothing_leaves_what_was_found(scheme: str) -> None:
    lab = LABS["two-switch"]
    flows = one_way(40, (2e6, 5e5))

    def useless(
        program: IntegerProgram, *, time_limit_s: float, start: Sequence[int] | None = None
    ) -> SolverResult:
        return SolverResult(values=None, bound=program.trivial_bound, is_optimal=False)

    result = found(lab, flows, empty(lab, scheme, 17), {}, useless)
    assert len(result.plan.accepted) == result.in_order
    assert result.bound <= len(flows)


@pytest.mark.parametrize("protection", [None, Protection.DUPLICATE])
@examples(5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6))
def test_few_vlans_prove_nothing(seed: int, protection: Protection | None, tmp_path: Path) -> None:
    """Flows get VLANs in their order: those that find none in one order may find some in another."""
    rng = Random(seed)
    lab = ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, vlans=rng.choice((3, 4))), hosts_each=2)
    ends = [rng.sample(list(lab.hosts), 2) for _ in range(12)]
    flows = [Flow(f"f{n}", *pair, 1000 + n, 2000, 1e6, 306.0, 306) for n, pair in enumerate(ends)]
    scenario = loko_scenario(entries=4096, packet_sizes_bytes=(306,))

    def make() -> PortAdmission:
        return PortAdmission(lab, scenario)

    if protection is None:
        result = found(lab, flows, make(), {})
    else:
        survival = Survival(failures=failures_of(lab, ["cables=1"]), protection=protection)
        clock = TimeBudget(now_ns=time.monotonic_ns, end_ns=time.monotonic_ns() + 240 * 10**9)
        result = largest_protected(lab, flows, make, survival, solve=HIGHS, clock=clock).proof
    assert len(result.plan.accepted) >= result.in_order
    assert {refusal.quantity for refusal in result.plan.refused} <= {"VLANs"}
    assert result.bound == len(flows)
    assert result.is_proven or str(result).endswith("and in another order they may be enough for more")
