"""Models of released flows: the rules in use hold, weaker ones do not, and programs count as models do."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from random import Random

import pytest

from loko.admission import residual_backlog
from loko.admission.port_queues import admission
from loko.admission.residual_backlog import ResidualBacklog
from loko.switch_model.calculus import PathStep, PortServer, RateLatency, TokenBucket, UnsettledError
from loko_testbed.simulation.state_models import CASES, IN_USE, check_case
from loko_testbed.simulation.state_models.boards import NO_BACKLOG, PacketRule, ShareRule
from loko_testbed.simulation.state_models.explorer import explore
from loko_testbed.simulation.state_models.network import ModelFlow
from loko_testbed.simulation.state_models.ports import PortRule


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda number: "-".join((CASES[number].scheme, CASES[number].rule))
)
def test_a_rule_in_use_holds_and_a_weaker_one_is_refuted(number: int) -> None:
    found = check_case(number)
    assert found["as_expected"]
    assert bool(found["counterexample"]) == (CASES[number].rule != IN_USE)


def test_the_rule_that_fixes_the_time_at_the_release_is_refuted_by_flows_that_come_later() -> None:
    (number,) = (
        number for number, case in enumerate(CASES) if "at the release" in case.rule and "fix" in case.rule
    )
    steps = [step for step in check_case(number)["counterexample"] if step != "tick"]
    assert steps[:2] == ["A is admitted", "A is released"]
    assert steps[-1] == "N is admitted"
    assert {"X1 is admitted", "X2 is admitted", "X3 is admitted"} < set(steps)


def test_every_network_can_refute_a_rule() -> None:
    networks = {(case.scheme, case.network) for case in CASES if case.rule == IN_USE}
    assert {scheme for scheme, _ in networks} == {"ports", "full-rate", "packet-granular", "slots"}
    assert {(case.scheme, case.network) for case in CASES if case.rule != IN_USE} == networks


def test_a_search_finds_the_fewest_steps_or_visits_every_state() -> None:
    found = explore(0, lambda state: [("double", 2 * state % 64), ("add", state + 1)], (17).__eq__)
    assert found.counterexample is not None
    assert len(found.counterexample) == len(["add", "double", "double", "double", "double", "add"])
    assert explore(0, lambda state: [("add", (state + 1) % 8)], (9).__eq__) == (8, None)


@pytest.mark.parametrize("rule_type", [ShareRule, PacketRule])
@pytest.mark.parametrize("seed", range(20))
def test_a_board_has_the_backlogs_of_its_model(
    seed: int, rule_type: type[ShareRule], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board forwards a frame per tick, of a nanosecond. Rates are powers of two, so sums are exact."""
    monkeypatch.setattr(residual_backlog, "_CLOCK_DRIFT", 0.0)
    rng = Random(seed)
    flows = tuple(
        ModelFlow(f"f{n}", (0,), rng.randint(1, 3), rng.choice((0, 4, 8)), leaves=True) for n in range(4)
    )
    rule = rule_type(flows, (6,))
    state, real = rule.initial(), ResidualBacklog[tuple[float, float]]()
    counted: list[tuple[float, float]] = []

    def settle(now_ns: int) -> None:
        real.settle(
            now_ns,
            lambda: 1 - sum(rate for rate, _ in counted),
            counted.remove,
            lambda: -sum(burst for _, burst in counted) if rule_type is PacketRule else 0.0,
        )

    seen = set()
    for tick in range(80):
        number = rng.randrange(4)
        flow = flows[number]
        kept = 1 / flow.period if flow.period else 0.0, float(flow.burst)
        settle(tick)
        if number in state.admitted:
            state = rule.release(state, number)
            real.drain(tick, share=kept[0], burst=kept[1], payload=kept)
            settle(tick)
        elif (further := rule.admit(state, number)) is not None:
            state = further
            counted.append(kept)
        assert state.backlogs[0] == (
            NO_BACKLOG if real.amount == residual_backlog.NONE else Fraction(real.amount)
        )
        seen.add(NO_BACKLOG if state.backlogs[0] == NO_BACKLOG else state.backlogs[0] > 0)
        state = rule.tick(state)
    assert {NO_BACKLOG, True} <= seen


FRAME_BYTES, TICK_NS = 1_000, 1_000
PERFECT = PortServer(service=RateLatency(rate_bps=8e9, latency_ns=0.0), frame_bytes=FRAME_BYTES)
"""Sends a frame in a tick."""
SLACK_NS = 100
"""Bounds are rounded up to whole nanoseconds, again and again."""


@pytest.mark.parametrize("seed", range(20))
def test_ports_have_the_flows_and_bounds_of_their_model(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets that never refill, so that all bounds are whole ticks, but for rounding."""
    monkeypatch.setattr(residual_backlog, "_CLOCK_DRIFT", 0.0)
    rng = Random(seed)
    paths = ((0, 1, 2), (1, 2), (0,), (1,), (2,), (2,))
    flows = tuple(ModelFlow(f"f{n}", path, rng.randint(1, 3), leaves=True) for n, path in enumerate(paths))
    rule = PortRule(flows, (6, 6, 6))
    state, real = rule.initial(), admission._PortState({str(n): PERFECT for n in range(3)})
    limits_ns = dict.fromkeys("012", 6.0 * TICK_NS + SLACK_NS)
    forgotten = fallen = 0
    for tick in range(150):
        now_ns, before = tick * TICK_NS, state
        number = rng.randrange(len(flows))
        flow = flows[number]
        if number in state.admitted:
            state = rule.release(state, number)
            real.draining.append(admission._DrainingFlow(real.flows.pop(flow.name), now_ns))
        elif not rule.is_draining(state, number):
            state = rule.admit(state, number) or state
            steps = tuple(PathStep(str(server), TICK_NS) for server in flow.path)
            bucket = TokenBucket(rate_bps=0.0, burst_bytes=flow.burst * FRAME_BYTES)
            counted_flow = admission._CountedFlow(flow.name, (), steps, bucket, 0.0, ("", ""))
            with suppress(UnsettledError):
                with admission._added(real.network, counted_flow):
                    bounds = real.network.settle([step.server for step in steps], limits_ns=limits_ns)
                real.admit(counted_flow, bounds, now_ns=now_ns)
        state = rule.tick(state)
        real.settle(now_ns + TICK_NS + SLACK_NS)
        counted = {*real.flows, *(released.counted.flow_id for released in real.draining)}
        assert counted == {flows[place].name for place in state.counted}
        assert [real.network.bounds.get(name, 0) // TICK_NS for name in "012"] == list(state.bounds)
        forgotten += len(state.draining) < len(before.draining)
        fallen += any(later < earlier for earlier, later in zip(before.bounds, state.bounds, strict=True))
    assert forgotten > 5
    assert fallen > 0
