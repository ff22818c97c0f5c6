"""The search respects the token buckets, exposes wrong schemes, and breaks no valid guarantee."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from conformance import excess_bytes
from gate_examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from loko.admission.schemes import variant_named
from loko.switch_model.allocation import FULL_RATE
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import load_lab
from loko.topology.lab_allocation import allocations_of
from loko_testbed.reproduce.studies.attacks import star, succeeded
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.changes import ChangePlan, ignore_released, random_history
from loko_testbed.simulation.worst_case.delivery import (
    judge_delivery,
    random_burst_senders,
    timed_senders,
    transmit,
)
from loko_testbed.simulation.worst_case.random_cases import random_case
from loko_testbed.simulation.worst_case.release import (
    LEAD_NS,
    aimed_pattern,
    release_instants,
    scattered_pattern,
    sustained_pattern,
    vary,
)
from loko_testbed.simulation.worst_case.schemes import GUARANTEED, fill
from loko_testbed.simulation.worst_case.search import random_search, search_worst_case
from loko_testbed.simulation.worst_case.trial import narrow_down, run_trial

PAIRS = (("H1", "H3"), ("H2", "H4"), ("H3", "H1"), ("H4", "H2"))
SEEDS = st.integers(0, 10**9)


def brute_force(sent_ns: list[int], frame_bytes: int, rate_bps: int, burst_bytes: int) -> bool:
    """Check conformance by its definition, interval by interval."""
    return all(
        (last - first + 1) * frame_bytes
        <= burst_bytes + Fraction(rate_bps * (sent_ns[last] - sent_ns[first]), 8_000_000_000)
        for first in range(len(sent_ns))
        for last in range(first, len(sent_ns))
    )


@given(
    gaps=st.lists(st.integers(0, 3_000_000), min_size=1, max_size=25),
    rate_bps=st.integers(1, 20_000_000),
    frames=st.integers(1, 5),
    frame_bytes=st.integers(64, 1518),
)
def test_the_checker_is_the_definition(gaps: list[int], rate_bps: int, frames: int, frame_bytes: int) -> None:
    sent_ns = [int(at_ns) for at_ns in np.cumsum(gaps)]
    burst_bytes = frames * frame_bytes
    excess = excess_bytes(sent_ns, frame_bytes, rate_bps=rate_bps, burst_bytes=burst_bytes)
    assert (excess <= 0) == brute_force(sent_ns, frame_bytes, rate_bps, burst_bytes)


@examples(25)
@given(seed=SEEDS, kind=st.sampled_from(["critical", "varied", "scattered", "sustained"]))
def test_whatever_the_search_asks_for_what_is_sent_conforms(seed: int, kind: str) -> None:
    case = random_case(seed).case
    rng = np.random.default_rng(seed)
    pattern = {
        "critical": lambda: aimed_pattern(case, rng),
        "varied": lambda: vary(aimed_pattern(case, rng), rng, scale_ns=1e6),
        "scattered": lambda: scattered_pattern(case, rng, within_ns=20_000_000),
        "sustained": lambda: sustained_pattern(case, seconds=0.2),
    }[kind]()
    # The second round comes long before the buckets are full again.
    releases = release_instants(case, [LEAD_NS, LEAD_NS + 3_000_000], [pattern, pattern])
    traffic = timed_senders(case, releases, observed=True)
    records = transmit(case, traffic, seed=seed, duration_ns=400_000_000)
    assert len(records) > 0
    for number, flow in enumerate(case.flows):
        sent_ns = records.sent_ns[records.flow == number].tolist()
        excess = excess_bytes(sent_ns, flow.frame_bytes, rate_bps=flow.rate_bps, burst_bytes=flow.burst_bytes)
        assert excess <= 0, flow
        assert records.flows[number]["nonconforming"] == 0


@examples(12)
@given(seed=SEEDS)
def test_no_packet_of_a_random_admitted_set_is_lost_or_late(seed: int) -> None:
    outcome = run_trial(seed, packets=10_000)
    assert outcome.verdict.packets > 0
    assert not outcome.failed, (outcome.verdict.broken, outcome.verdict.events)


@examples(6)
@given(seed=SEEDS)
def test_the_search_breaks_no_random_admitted_set(seed: int) -> None:
    attack = search_worst_case(random_case(seed).case, generations=2, seed=seed)
    assert attack.damage.lost == 0
    assert 0 < attack.damage.worst <= 1


@pytest.mark.parametrize(
    ("scheme", "frame_bytes", "entries", "too_many"),
    [
        ("full-rate", 128, 64, 0.15),
        ("fifth-rate", 306, 17, 0.3),
        ("optimised", 128, 64, 0.15),
        ("packet-granular", 128, 64, 0.01),
    ],
)
def test_a_scheme_that_accepts_too_much_is_found_out(
    scheme: str, frame_bytes: int, entries: int, too_many: float
) -> None:
    def attacked(extra: float) -> tuple[int, float]:
        case = fill(
            scheme,
            star(),
            PAIRS,
            rate_bps=60_000,
            burst_bytes=frame_bytes,
            frame_bytes=frame_bytes,
            entries=entries,
            too_many=extra,
        )
        attack = search_worst_case(case, generations=6, seed=1)
        return attack.damage.lost, attack.history[-1][1]

    lost, worst = attacked(0.0)
    assert lost == 0
    assert worst <= 1
    lost, worst = attacked(too_many)
    assert lost > 0 or worst > 1


def full_rate(scheme: str) -> AdmittedSet:
    """Return two flows that share the whole rate that the scheme allocates at a switch."""
    reserved = {} if scheme == "full-rate" else None
    allocation = allocations_of(star(), FULL_RATE, EVALUATION, reserved)["s1"]
    return fill(scheme, star(), PAIRS[:2], rate_bps=allocation.max_rate_bps / 2, burst_bytes=306)


def test_full_rate_as_printed_loses_packets_to_the_boards_own_timers() -> None:
    as_printed = search_worst_case(full_rate("full-rate-as-printed"), generations=1, seed=1)
    assert as_printed.damage.lost > 0
    reserved = search_worst_case(full_rate("full-rate"), generations=1, seed=1)
    assert reserved.damage.lost == 0
    assert reserved.damage.worst <= 1


# Sets that change ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["packet-granular", "full-rate", "fifth-rate"])
def test_flows_that_take_the_place_of_released_ones(scheme: str) -> None:
    """On the paper's switch of 17 entries, a rule that forgets released flows must be exposed."""
    after_ns = (100_000,) if scheme == "fifth-rate" else (100_000, 1_000_000, 3_000_000, 30_000_000)
    kept, forgotten = (
        [succeeded(scheme, ns, forgets=forgets)[1] for ns in after_ns] for forgets in (False, True)
    )
    assert not any(verdict.broken or verdict.events for verdict in kept)
    assert any(verdict.broken for verdict in forgotten)
    few, many = (succeeded(scheme, ns, forgets=False)[0] for ns in (100_000, 100_000_000))
    assert few < many  # the second flows come as soon as there is room


@examples(15)
@given(seed=SEEDS)
def test_what_a_changing_set_sends_conforms_and_ends_before_its_release(seed: int) -> None:
    drawn = random_case(seed)
    assume(variant_named(drawn.case.scheme).supports_release)
    history, duration_ns = random_history(
        drawn.admission,
        drawn.case.lab,
        drawn.sizes,
        Random(seed),
        entries=drawn.case.entries,
    )
    assume(history.entries)  # another load on the switches may leave no room for any flow
    assert history.entries <= drawn.case.entries
    case = history.case(drawn.case)
    traffic = timed_senders(case, history.offers(), observed=True)
    records = transmit(case, traffic, seed=seed, duration_ns=duration_ns)
    for number, life in enumerate(history.lives):
        assert all(life.since_ns <= at_ns <= life.until_ns for at_ns in life.offers_ns)
        assert records.flows[number]["nonconforming"] == 0
        if life.until_ns < duration_ns:
            sent_ns = records.sent_ns[records.flow == number]
            last_ns = life.until_ns + case.admitted[number].delays_ns[0]  # no frame waits longer for its link
            assert (sent_ns <= last_ns).all()


@examples(12)
@given(seed=SEEDS)
def test_no_packet_of_a_changing_set_is_lost_or_late(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("loko_testbed.simulation.worst_case.trial.WAYS", ("changes",))
        outcome = run_trial(seed, packets=10_000)
    assert not outcome.failed, (outcome.verdict.broken, outcome.verdict.events)


def test_a_rule_that_forgets_what_was_released_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random histories expose it, too, within the first few trials."""
    monkeypatch.setattr("loko_testbed.simulation.worst_case.trial.WAYS", ("changes",))
    begin = ChangePlan.__init__
    monkeypatch.setattr(
        ChangePlan, "__init__", lambda self, admission: begin(self, ignore_released(admission))
    )
    assert any(run_trial(seed, packets=10_000).failed for seed in range(20))


@pytest.mark.parametrize("scheme", ["silo", "qjump-paper"])
def test_the_baselines_break(scheme: str) -> None:
    case = fill(scheme, load_lab("two-switch"), PAIRS, rate_bps=200_000, burst_bytes=306)
    assert search_worst_case(case, generations=2, seed=1).damage.worst > 1


def test_the_search_is_worse_than_chance_and_the_same_every_time() -> None:
    case = fill("fifth-rate", load_lab("two-switch"), PAIRS, rate_bps=200_000, burst_bytes=306)
    first, second = (search_worst_case(case, generations=4, seed=7) for _ in range(2))
    assert (first.damage, first.history) == (second.damage, second.history)
    assert first.damage > random_search(case, generations=4, seed=7).damage


def test_a_trial_is_the_same_every_time() -> None:
    first, second = (run_trial(11, packets=5_000) for _ in range(2))
    assert (first.verdict, first.duration_ns) == (second.verdict, second.duration_ns)


def test_a_set_that_cannot_change_is_carried_as_it_is() -> None:
    result = run_trial(8987271898691, packets=2_000)
    assert (result.way, result.failed) == ("critical", False)
    assert result.verdict.packets > 0


def test_a_failure_is_narrowed_down() -> None:
    failed = next(
        outcome for seed in range(50) if (outcome := run_trial(seed, packets=3_000, scheme="silo")).failed
    )
    only, most_ns = narrow_down(failed, packets=3_000, scheme="silo")
    again = run_trial(failed.drawn.seed, packets=3_000, scheme="silo", only=only, most_ns=most_ns)
    assert again.failed
    assert len(only) < len(failed.drawn.case.admitted)
    assert most_ns < failed.duration_ns


def test_lost_and_late_packets_are_counted_without_records() -> None:
    case = fill("fifth-rate", star(), PAIRS, rate_bps=200_000, burst_bytes=306)
    records = transmit(case, random_burst_senders(case, load=0.9), seed=1, duration_ns=2_000_000_000)
    assert len(records) == 0
    assert not judge_delivery(case, records).broken
    longest_ns = max(seen["max_delay_ns"] for seen in records.flows.values())
    hurried = tuple(
        admitted._replace(delays_ns=(longest_ns - 1,) * len(admitted.delays_ns)) for admitted in case.admitted
    )
    assert len(judge_delivery(replace(case, admitted=hurried), records).broken) == 1


def test_every_guaranteed_scheme_is_drawn() -> None:
    assert {random_case(seed).case.scheme for seed in range(30)} == set(GUARANTEED)
