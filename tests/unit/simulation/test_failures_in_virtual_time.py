"""Failures in virtual time: what is lost, late and sent twice, beside what the plan states."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from loko.admission import Admitted
from loko.admission.planning import scenario_of
from loko.admission.protection import (
    MoveTiming,
    NetworkFailure,
    ProtectedFlow,
    Protection,
    failures_of,
    protect,
)
from loko.admission.schemes import admission_of, variant_named
from loko.control.entries import EVALUATION_ENTRIES
from loko.switch_model.control_traffic import served_traffic
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, ring_lab
from loko.topology.ring import Ring
from loko.units import NS_PER_MS, NS_PER_S
from loko_testbed.simulation.failures.protected_lab import Cut, ProtectedLab
from loko_testbed.simulation.failures.sending import all_that_they_may, meeting_bursts
from loko_testbed.simulation.failures.verdict import FailureVerdict, Fate, judge
from loko_testbed.simulation.worst_case.random_cases import random_lab

TIMING = MoveTiming(detection_ns=100 * NS_PER_MS, changes_per_s=50)
LAB = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))


def protected_ring(
    survive: str,
    protection: Protection,
    *,
    scheme: str = "fifth-rate",
    openflow: OpenFlow = OpenFlow.V1_0,
    lab: Lab = LAB,
) -> ProtectedLab:
    choice = random.Random(4)
    pairs = [choice.sample(list(lab.hosts), 2) for _ in range(12)]
    flows = [
        Flow(f"f{number}", source, destination, 1000 + number, 2000, 5e4, 306.0, 306)
        for number, (source, destination) in enumerate(pairs)
    ]
    scenario = scenario_of(flows, entries=EVALUATION_ENTRIES, lab=lab, openflow=openflow)
    traffic = served_traffic(TIMING.changes_per_s, {}, compare_s=0)
    plan = protect(
        lab,
        flows,
        lambda: admission_of(lab, variant_named(scheme), scenario, traffic=traffic),
        failures_of(lab, [survive]),
        protection=protection,
    )
    assert plan.flows
    return ProtectedLab(plan=plan, timing=TIMING, entries=EVALUATION_ENTRIES, openflow=openflow)


def replayed(protected: ProtectedLab, failure: NetworkFailure) -> FailureVerdict:
    """Cut what fails while all hosts send all that they may."""
    cut = Cut(failure=failure, at_ns=NS_PER_S // 4)
    recovery = protected.recovery(failure)
    outage_ns = 0 if recovery is None else round(recovery.outage_ns)
    duration_ns = cut.at_ns + outage_ns + NS_PER_S // 4
    releases = all_that_they_may(protected, duration_ns=duration_ns)
    return judge(protected, cut, protected.run(releases, cut, seed=1, duration_ns=duration_ns))


@pytest.mark.parametrize("openflow", list(OpenFlow))
@pytest.mark.parametrize("scheme", ["fifth-rate", "packet-granular"])
def test_what_moves_loses_no_more_than_stated_and_nothing_is_late(scheme: str, openflow: OpenFlow) -> None:
    protected = protected_ring("cables=1", Protection.BACKUP, scheme=scheme, openflow=openflow)
    verdicts = [replayed(protected, failure) for failure in protected.plan.failures]
    assert not any(verdict.broken or verdict.events for verdict in verdicts)
    moved = [flow for verdict in verdicts for flow in verdict.flows if flow.fate is Fate.MOVES]
    assert moved
    assert all(flow.lost > 0 for flow in moved), "it sends all the time, so a failure costs it frames"
    stays = [flow for verdict in verdicts for flow in verdict.flows if flow.fate is Fate.STAYS]
    assert stays
    assert all(flow.lost == 0 for flow in stays)


def test_duplicated_frames_are_lost_with_no_failure() -> None:
    protected = protected_ring("switches=1", Protection.DUPLICATE)
    fates: set[Fate] = set()
    for failure in protected.plan.failures:
        verdict = replayed(protected, failure)
        assert not verdict.broken
        for flow in verdict.flows:
            fates.add(flow.fate)
            if flow.fate is Fate.DUPLICATED:
                assert flow.lost == 0
                assert flow.eliminated < flow.sent, "one of its paths is cut at half of the time"
    assert Fate.ENDS in fates, "hosts fail with their switch"


def test_a_second_path_through_the_failure_is_noticed() -> None:
    protected = protected_ring("cables=1", Protection.DUPLICATE)
    flow_id, flow = next(
        (flow_id, flow) for flow_id, flow in protected.plan.flows.items() if flow.duplicate is not None
    )
    same = flow.working
    failure = next(
        failure for failure in protected.plan.failures if failure.hits(same.flow.source, same.path)
    )
    wrong = with_flow(protected, flow_id, duplicate=same)
    verdict = replayed(wrong, failure)
    assert [broken.flow for broken in verdict.broken] == [flow_id]
    assert verdict.broken[0].lost > 0


def test_a_controller_that_moves_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    protected = protected_ring("cables=1", Protection.BACKUP)
    failure = protected.plan.recoveries(TIMING)[0].failure
    monkeypatch.setattr(ProtectedLab, "_planned", lambda *_: {})
    verdict = replayed(protected, failure)
    moved = [flow for flow in verdict.flows if flow.fate is Fate.MOVES]
    assert moved
    assert all(flow.lost_outside > 0 for flow in moved)


def test_a_plan_that_states_too_short_an_outage_is_refuted() -> None:
    protected = protected_ring("cables=1", Protection.BACKUP)
    recovery = protected.plan.recoveries(TIMING)[0]
    cut = Cut(failure=recovery.failure, at_ns=NS_PER_S // 4)
    duration_ns = round(cut.at_ns + recovery.outage_ns) + NS_PER_S // 4
    releases = all_that_they_may(protected, duration_ns=duration_ns)
    records = protected.run(releases, cut, seed=1, duration_ns=duration_ns)
    hasty = replace(protected, timing=MoveTiming(detection_ns=0, changes_per_s=1e6))
    assert not judge(protected, cut, records).broken
    assert judge(hasty, cut, records).broken


def test_late_frames_are_counted() -> None:
    protected = protected_ring("cables=1", Protection.BACKUP)
    flow_id, flow = next(iter(protected.plan.flows.items()))
    # Less than a frame takes to cross the idle switches.
    working = flow.working._replace(delays_ns=(1.0,) * len(flow.working.path))
    wrong = with_flow(protected, flow_id, working=working, backups={})
    stays = next(
        failure for failure in wrong.plan.failures if not failure.hits(working.flow.source, working.path)
    )
    verdict = replayed(wrong, stays)
    (late,) = verdict.broken
    assert (late.flow, late.late) == (flow_id, late.sent)
    assert late.worst > 1


def test_chips_divert_flows_by_themselves() -> None:
    lab = random_lab(random.Random(3), "ring", profiles=["ideal-1g"], most_switches=4)
    by_controller = protected_ring("cables=1", Protection.BACKUP, scheme="ports", lab=lab)
    timing = replace(TIMING, port_detection_ns=3 * NS_PER_MS)
    plan = by_controller.plan.with_groups()
    assert plan.groups
    diverting = replace(by_controller, plan=plan, timing=timing)
    fewer = 0
    for failure in plan.failures:
        slow, quick = replayed(by_controller, failure), replayed(diverting, failure)
        assert not slow.broken
        assert not quick.broken
        assert quick.most_lost <= slow.most_lost
        fewer += slow.lost - quick.lost
    assert fewer > 0
    late = replace(diverting, timing=replace(timing, port_detection_ns=NS_PER_S // 4))
    cut = Cut(
        failure=next(found.failure for found in plan.recoveries(timing) if found.diversions),
        at_ns=NS_PER_S // 4,
    )
    releases = all_that_they_may(late, duration_ns=NS_PER_S)
    records = late.run(releases, cut, seed=1, duration_ns=NS_PER_S)
    assert not judge(late, cut, records).broken
    assert judge(diverting, cut, records).broken, "a switch that is slower than stated is noticed"


def test_bursts_meet_just_before_the_failure() -> None:
    protected = protected_ring("cables=1", Protection.BACKUP)
    failure = protected.plan.recoveries(TIMING)[0].failure
    cut = Cut(failure=failure, at_ns=NS_PER_S // 4)
    duration_ns = NS_PER_S
    releases = meeting_bursts(protected, cut, np.random.default_rng(1), duration_ns=duration_ns)
    assert len(releases) == len(protected.plan.flows)
    longest_ns = max(flow.guarantee_ns for flow in protected.plan.flows.values())
    near = [np.any(np.abs(of_flow - cut.at_ns) <= 2 * longest_ns) for of_flow in releases]
    assert all(near)
    verdict = judge(protected, cut, protected.run(releases, cut, seed=1, duration_ns=duration_ns))
    assert not verdict.broken
    assert sum(flow.sent for flow in verdict.flows) > len(releases)


def with_flow(
    protected: ProtectedLab,
    flow_id: str,
    *,
    working: Admitted | None = None,
    duplicate: Admitted | None = None,
    backups: Mapping[str, Admitted] | None = None,
) -> ProtectedLab:
    """Return the lab with another version of one flow."""
    flow: ProtectedFlow = protected.plan.flows[flow_id]
    changed = replace(
        flow,
        working=working or flow.working,
        duplicate=duplicate,
        backups=flow.backups if backups is None else backups,
    )
    flows = {**protected.plan.flows, flow_id: changed}
    return replace(protected, plan=replace(protected.plan, flows=flows))
