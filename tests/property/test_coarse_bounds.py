"""Properties of bounds that are found late: no answer differs from those by bounds that are always known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.admission import Admitted, Refusal
from loko.admission.mixed import MixedAdmission
from loko.admission.port_queues import PortAdmission
from loko.admission.protection import NetworkFailure, Protection, failures_of, protect
from loko.document import InputError
from loko.switch_model.calculus import CoarseBounds
from loko.switch_model.control_traffic import NO_MESSAGES
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab
from loko_testbed.simulation.worst_case.port_trial import PROFILES, SIZES, random_flow
from loko_testbed.simulation.worst_case.random_cases import SHAPES, random_lab

MS = 1_000_000


class PlainAdmission(PortAdmission):
    """Finds the bounds of every request."""

    _finds_bounds_late = False


class PlainMixedAdmission(MixedAdmission):
    """Finds the bounds of every request."""

    _finds_bounds_late = False


def random_admissions(rng: Random) -> tuple[Lab, Callable[[], PortAdmission], Callable[[], PortAdmission]]:
    """Return a lab and what makes admission controls of it, one of which finds bounds late."""
    is_mixed, target_ns = rng.random() < 0.2, rng.choice((None, 150_000.0, 400_000.0))
    profiles = ["zodiac-fx", "ideal-1g"] if is_mixed else [rng.choice(PROFILES)]
    lab = random_lab(rng, rng.choice(SHAPES), most_switches=6, profiles=profiles)
    if is_mixed:
        scenario = loko_scenario(entries=17, packet_sizes_bytes=(306,))
        return (
            lab,
            lambda: MixedAdmission(lab, scenario, traffic=NO_MESSAGES),
            lambda: PlainMixedAdmission(lab, scenario, traffic=NO_MESSAGES),
        )
    scenario = loko_scenario(entries=60, packet_sizes_bytes=SIZES)
    most = rng.randint(1, 3) if profiles == ["ideal-1g"] else 1
    return (
        lab,
        lambda: PortAdmission(lab, scenario, target_ns=target_ns, classes=most),
        lambda: PlainAdmission(lab, scenario, target_ns=target_ns, classes=most),
    )


def any_flow(rng: Random, lab: Lab, admission: PortAdmission, number: int) -> Flow:
    size = 306 if isinstance(admission, MixedAdmission) else rng.choice(SIZES)
    most_mbps = 3 if isinstance(admission, MixedAdmission) else rng.choice((5, 50, 300))
    hosts = rng.sample(list(lab.hosts), 2)
    flow = random_flow(
        rng, number, (hosts[0], hosts[1]), size, most_frames=rng.choice((1, 12, 60)), most_mbps=most_mbps
    )
    return flow._replace(traffic_class=rng.choice(admission._every_class))


def changed(seed: int) -> Counter[str]:
    """Change a set at random, compare each answer, and return how often which happened."""
    rng = Random(seed)
    lab, make_late, make_plain = random_admissions(rng)
    late, plain = make_late(), make_plain()
    happened: Counter[str] = Counter()
    gone: list[Flow] = []
    now_ns, has_left, is_undone = 0, False, False
    for number in range(120):
        ids, chance = list(late.admitted), rng.random()
        if ids and chance < 0.15:
            is_undone, undone = True, rng.choice(ids)
            late.cancel(undone)
            plain.cancel(undone)
        elif ids and chance < 0.25 and seed % 2:
            has_left = True
            released = rng.choice(ids)
            gone.append(late.admitted[released].flow)
            for admission in (late, plain):
                admission.release(released, now_ns=now_ns)
        elif chance < 0.3 and seed % 2:
            now_ns += rng.choice((10_000, MS, 100 * MS))
            for admission in (late, plain):
                admission.advance(now_ns)
        else:
            flow = any_flow(rng, lab, late, number)
            if gone and chance > 0.8 and gone[-1].id not in late.admitted:
                flow = gone.pop()
            answer = late.check(flow) if chance < 0.4 else late.request(flow)
            other = plain.check(flow) if chance < 0.4 else plain.request(flow)
            if isinstance(answer, Admitted) or isinstance(other, Admitted):
                assert answer == other
            elif not is_undone:  # after that, another one of several limits may be told
                assert (answer, answer.hint) == (other, other.hint)
            happened[type(answer).__name__] += 1
            happened["found late"] += bool(late._state._unsettled)
        if rng.random() < 0.1:
            assert late.bounds_ns == plain.bounds_ns
            assert [late.usage(name) for name in lab.switches] == [plain.usage(name) for name in lab.switches]
    assert late.bounds_ns == plain.bounds_ns
    if not has_left:
        anew = make_plain()
        for admitted in late.admitted.values():
            assert isinstance(anew.request(admitted.flow, admitted.path), Admitted)
        assert late.bounds_ns == anew.bounds_ns
    return happened


@examples(40)
@given(seed=st.integers(0, 10**9))
def test_bounds_that_are_found_late_change_no_answer(seed: int) -> None:
    """Whatever comes, goes and is undone; and what is undone leaves no trace before any flow has left."""
    changed(seed)


@examples(15)
@given(seed=st.integers(0, 10**9))
def test_states_that_share_coarse_bounds_admit_what_each_would(seed: int) -> None:
    """Until a state is too full for bounds of all states together, and then has its own."""
    rng = Random(seed)
    lab, make_late, make_plain = random_admissions(rng)
    late, plain = make_late(), make_plain()
    flows = [any_flow(rng, lab, late, number) for number in range(30)]
    survive, planned = [NetworkFailure(name="none", switches=frozenset(), dead_ends=frozenset())], []
    with suppress(InputError):  # there may be one switch
        survive += failures_of(lab, ["cables=1"])
    for protection in Protection:
        for first in (late, plain):
            found = protect(lab, flows, first.empty_copy, survive, protection=protection)
            planned.append((found.flows, found.plan.accepted, [each.flow for each in found.plan.refused]))
        assert planned.pop() == planned.pop()


@pytest.mark.parametrize("seed", range(4))
def test_a_leaving_flow_counts_beside_the_one_that_other_states_have(seed: int) -> None:
    """One state releases all its flows and is asked for them again, while the other still has them."""
    rng = Random(seed)
    lab = random_lab(rng, "line", most_switches=4, profiles=["ideal-1g"])
    scenario = loko_scenario(entries=60, packet_sizes_bytes=SIZES)
    late, plain = (make(lab, scenario, target_ns=400_000.0) for make in (PortAdmission, PlainAdmission))
    flows = [
        flow
        for number in range(8)
        if isinstance(late.request(flow := any_flow(rng, lab, late, number)), Admitted)
    ]
    changing = late.empty_copy()
    refused = 0
    for admission in (changing, plain):
        assert all(isinstance(admission.request(flow), Admitted) for flow in flows)
    for _ in range(6):
        for flow in flows:
            if flow.id in plain.admitted:
                changing.release(flow.id, now_ns=0)
                plain.release(flow.id, now_ns=0)
            answer, other = changing.request(flow), plain.request(flow)
            assert isinstance(answer, Admitted) == isinstance(other, Admitted)
            refused += isinstance(other, Refusal)
    assert refused
    assert changing.bounds_ns == plain.bounds_ns


def test_these_sets_are_of_every_kind() -> None:
    happened = sum((changed(seed) for seed in range(12)), Counter[str]())
    assert min(happened["Admitted"], happened["Refusal"], happened["found late"]) > 100


def test_coarse_bounds_that_are_too_low_change_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the tests above can fail."""
    monkeypatch.setattr(CoarseBounds, "fits", lambda _coarse, _flow: True)
    with pytest.raises(AssertionError):
        sum(map(changed, range(12)), Counter[str]())
