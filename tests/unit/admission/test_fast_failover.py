"""Groups of type fast failover: where switches may divert flows by themselves, and what that saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from harness.plants import plant_of

from loko.admission.planning import scenario_of
from loko.admission.protection import MoveTiming, ProtectedPlan, Protection, failures_of, protect
from loko.admission.schemes import admission_of, variant_of
from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab, ring_lab
from loko.topology.ring import Ring
from loko.units import NS_PER_MS, NS_PER_S

TIMING = MoveTiming(detection_ns=NS_PER_S, changes_per_s=20, port_detection_ns=5 * NS_PER_MS)
NEXT = Flow("next", "h1-1", "h2-1", 1000, 2000, 1e6, 306.0, 306)
FAR = Flow("far", "h1-1", "h3-1", 1001, 2000, 1e6, 306.0, 306)


def planned(lab: Lab, flows: Sequence[Flow], survive: Sequence[str], entries: int = 100) -> ProtectedPlan:
    scenario = scenario_of(flows, entries=entries, lab=lab)
    plan = protect(
        lab,
        flows,
        lambda: admission_of(lab, variant_of(lab, "loko", None), scenario),
        failures_of(lab, survive),
        protection=Protection.BACKUP,
    )
    return plan.with_groups()


@pytest.fixture
def ring(tmp_path: Path) -> Lab:
    return plant_of(tmp_path, nx.cycle_graph(5), [1])


def test_the_switch_at_the_dead_cable_diverts_at_once(ring: Lab) -> None:
    plan = planned(ring, [NEXT], ["cables=1"])
    (group,) = plan.groups["next"]
    (name, backup), *_ = plan.flows["next"].backups.items()
    assert group.switch == "s1"
    assert (group.working_port, group.backup_port) == (
        plan.flows["next"].working.path[0].output_port,
        backup.path[0].output_port,
    )
    assert [hop.switch for hop in group.installed] == ["s5", "s4", "s3"]
    assert group.failures == {name}
    (recovery,) = plan.recoveries(TIMING)
    assert recovery.outage_ns == TIMING.port_detection_ns
    assert not recovery.changes
    assert [diversion.hop for diversion in recovery.diversions] == [backup.path[0]]
    sent_s = (5 * NS_PER_MS + plan.flows["next"].working.guarantee_ns) / NS_PER_S
    assert recovery.most_lost_frames == (306 + 1e6 * sent_s / 8) // 306


def test_a_path_that_parts_before_the_dead_cable_needs_the_controller(ring: Lab) -> None:
    plan = planned(ring, [FAR], ["cables=1"])
    assert [hop.switch for hop in plan.flows["far"].working.path] == ["s1", "s2", "s3"]
    (group,) = plan.groups["far"]
    assert group.switch == "s1"
    near, far = sorted(plan.recoveries(TIMING), key=lambda recovery: recovery.outage_ns)
    assert [len(recovery.diversions) for recovery in (near, far)] == [1, 0]
    assert near.outage_ns == TIMING.port_detection_ns
    assert far.outage_ns > TIMING.detection_ns


def test_nothing_is_diverted_that_a_covered_failure_would_lead_astray(ring: Lab) -> None:
    """If the next switch fails, the port is dead, too, but the flow ends with its destination there."""
    plan = planned(ring, [NEXT], ["cables=1", "switches=1"])
    assert not plan.groups
    assert all(not recovery.diversions for recovery in plan.recoveries(TIMING))


def test_one_group_serves_only_failures_with_the_same_backup_path(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.complete_graph(4), [1])
    plan = planned(lab, [NEXT], ["cables=2"])
    backups = plan.flows["next"].backups
    assert len({backup.path for backup in backups.values()}) > 1
    assert not plan.groups


def test_a_group_needs_the_entries_behind_it_beforehand(ring: Lab) -> None:
    plan = planned(ring, [NEXT], ["cables=1"])
    few = replace(plan, preinstalled={"next": plan.preinstalled["next"][1:]}).with_groups()
    assert not few.groups


def test_boards_have_no_such_groups() -> None:
    lab = ring_lab(Ring(switches=3, hosts_per_switch=1, one_way=False))
    flow = NEXT._replace(source="h1", destination="h2")
    with pytest.raises(InputError, match="no groups of type fast failover"):
        planned(lab, [flow], ["cables=1"])
