"""Plans that survive failures, on rings, trees and random networks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import networkx as nx
import pytest
from harness.plants import plant_of

from loko.admission import Admission, Admitted
from loko.admission.planning import plan, scenario_of
from loko.admission.protection import (
    MoveTiming,
    ProtectedPlan,
    Protection,
    failures_of,
    most_helpful_cable,
    protect,
)
from loko.admission.schemes import admission_of, variant_of
from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab, load_lab, ring_lab
from loko.topology.ring import Ring
from loko.units import NS_PER_MS, NS_PER_S

TIMING = MoveTiming(detection_ns=100 * NS_PER_MS, changes_per_s=20)


def flows_of(lab: Lab, count: int, *, seed: int = 1, rate_bps: float = 2e5) -> list[Flow]:
    choice = random.Random(seed)
    pairs = [choice.sample(list(lab.hosts), 2) for _ in range(count)]
    return [
        Flow(f"f{number}", source, destination, 1000 + number, 2000, rate_bps, 306.0, 306)
        for number, (source, destination) in enumerate(pairs)
    ]


def maker(lab: Lab, flows: Sequence[Flow], scheme: str = "loko") -> Callable[[], Admission]:
    scenario = scenario_of(flows, entries=100, lab=lab)
    target_ns = 6e6 if scheme == "packets" else None
    return lambda: admission_of(lab, variant_of(lab, scheme, None), scenario, target_ns=target_ns)


def protected(
    lab: Lab, flows: Sequence[Flow], survive: str, protection: Protection, scheme: str = "loko"
) -> ProtectedPlan:
    return protect(lab, flows, maker(lab, flows, scheme), failures_of(lab, [survive]), protection=protection)


def switches_of(admitted: Admitted) -> list[str]:
    return [hop.switch for hop in admitted.path]


def refuse_unsound(
    found: ProtectedPlan, make: Callable[[], Admission], deadlines_ns: Mapping[str, float]
) -> None:
    """Request all paths of each state anew: whatever a failure leaves or moves is admitted together."""
    for failure in found.failures:
        state = make()
        for flow_id, flow in found.flows.items():
            source = flow.working.flow.source
            paths = [flow.working, *([] if flow.duplicate is None else [flow.duplicate])]
            if failure.hits(source, flow.working.path) and failure.name not in flow.ends_with:
                second = flow.duplicate or flow.backups[failure.name]
                assert not failure.hits(source, second.path)
                paths = [flow.working, second]
            for number, admitted in enumerate(paths):
                ports = {"udp_source": 1 + number, "udp_destination": admitted.flow.udp_source}
                copy = admitted.flow._replace(id=f"{flow_id}-{number}", **ports)
                answer = state.request(copy, admitted.path)
                assert isinstance(answer, Admitted), answer
                assert answer.guarantee_ns <= flow.guarantee_ns
            assert flow.guarantee_ns <= deadlines_ns.get(flow_id, flow.guarantee_ns)


@pytest.mark.parametrize("protection", list(Protection))
@pytest.mark.parametrize("scheme", ["loko", "packets"])
@pytest.mark.parametrize("seed", range(4))
def test_what_remains_after_any_failure_is_admitted_as_a_whole(
    seed: int, scheme: str, protection: Protection, tmp_path: Path
) -> None:
    choice = random.Random(seed)
    graph = nx.connected_watts_strogatz_graph(6, 3, 0.5, seed=seed)
    boards = Ring(switches=5, hosts_per_switch=2, one_way=False)
    lab = plant_of(tmp_path, graph, [2, 1]) if scheme == "loko" else ring_lab(boards)
    count, rate_bps = (24, 4e5) if scheme == "loko" else (10, 5e4)
    flows = flows_of(lab, count, seed=seed, rate_bps=rate_bps)
    deadlines_ns = {flow.id: choice.choice((8e6, 4e7)) for flow in flows[::2]}
    make = maker(lab, flows, scheme)
    failures = failures_of(lab, ["cables=1", "switches=1"])
    found = protect(lab, flows, make, failures, protection=protection, deadlines_ns=deadlines_ns)
    assert found.flows, "else nothing is shown"
    refuse_unsound(found, make, deadlines_ns)
    for flow in flows:
        if flow.id not in found.flows:
            continue
        for failure in failures:
            left = nx.Graph()
            left.add_nodes_from([*lab.switches, *lab.hosts])
            left.add_edges_from(
                (link.a.node, link.b.node)
                for link in lab.links
                if (link.a.node, link.a.port) not in failure.dead_ends
            )
            is_joined = nx.has_path(left, flow.source, flow.destination)
            assert is_joined or failure.name in found.flows[flow.id].ends_with


def test_flows_are_cut_off_exactly_where_no_path_is_left(tmp_path: Path) -> None:
    graph = nx.cycle_graph(4)
    graph.add_edge(0, 4)  # a switch that hangs on one cable
    lab = plant_of(tmp_path, graph, [1])
    flows = flows_of(lab, 12)
    found = protected(lab, flows, "cables=1", Protection.BACKUP)
    at_the_end = {flow.id for flow in flows if "h5-1" in {flow.source, flow.destination}}
    assert at_the_end
    assert set(found.cut_off) == at_the_end
    assert {name for names in found.cut_off.values() for name in names} == {"cable s1:4-s5:2"}
    assert {flow.id for flow in flows} - at_the_end == set(found.flows)


def test_backup_leads_around_the_failure_and_counts_beside_the_working_path(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.cycle_graph(5), [1])
    flow = Flow("f", "h1-1", "h2-1", 1000, 2000, 1e6, 612.0, 306)
    found = protected(lab, [flow], "cables=1", Protection.BACKUP)
    survivor = found.flows["f"]
    assert switches_of(survivor.working) == ["s1", "s2"]
    (backup,) = survivor.backups.values()
    assert switches_of(backup) == ["s1", "s5", "s4", "s3", "s2"]
    assert survivor.guarantee_ns == backup.guarantee_ns > survivor.working.guarantee_ns
    (recovery,) = found.recoveries(TIMING)
    assert recovery.moved == ("f",)
    assert found.preinstalled == {"f": backup.path[1:4]}
    assert recovery.changes == {"s1": 1}, "the others have their entries"
    assert recovery.in_two_rounds == ()
    assert recovery.outage_ns == 150 * NS_PER_MS
    sent_s = 0.150 + survivor.working.guarantee_ns / NS_PER_S
    assert recovery.most_lost_frames == (612 + 1e6 * sent_s / 8) // 306


def test_duplicates_share_no_cable_and_lose_nothing(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.cycle_graph(5), [1])
    flow = Flow("f", "h1-1", "h3-1", 1000, 2000, 1e6, 612.0, 306)
    found = protected(lab, [flow], "switches=1", Protection.DUPLICATE)
    survivor = found.flows["f"]
    assert survivor.duplicate is not None
    assert set(switches_of(survivor.working)) & set(switches_of(survivor.duplicate)) == {"s1", "s3"}
    assert survivor.most_lost_frames(NS_PER_S) == 0
    assert survivor.ends_with == ("switch s1", "switch s3")
    assert [recovery.moved for recovery in found.recoveries(TIMING)] == [(), ()]


def test_no_second_copy_where_no_failure_hits_the_first(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.cycle_graph(3), [2])
    flow = Flow("f", "h1-1", "h1-2", 1000, 2000, 1e6, 612.0, 306)
    found = protected(lab, [flow], "cables=1", Protection.DUPLICATE)
    assert found.flows["f"].duplicate is None


def test_backups_of_different_failures_share_what_they_reserve(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.cycle_graph(6), [3])
    flows = flows_of(lab, 150)
    shared = protected(lab, flows, "cables=1", Protection.BACKUP)
    twice = protected(lab, flows, "cables=1", Protection.DUPLICATE)
    without = plan(lab, flows, maker(lab, flows)())
    assert len(twice.plan.accepted) < len(shared.plan.accepted) < len(without.accepted)


def test_two_cables_at_a_time_include_one(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.complete_graph(4), [1])
    singles = failures_of(lab, ["cables=1"])
    pairs = failures_of(lab, ["cables=2"])
    assert len(singles) == 6
    assert len(pairs) == 6 + 15
    assert {failure.name for failure in singles} < {failure.name for failure in pairs}
    flow = Flow("f", "h1-1", "h2-1", 1000, 2000, 1e6, 612.0, 306)
    make = maker(lab, [flow])
    found = protect(lab, [flow], make, pairs, protection=Protection.BACKUP)
    assert len({backup.path for backup in found.flows["f"].backups.values()}) > 1
    refuse_unsound(found, make, {})


def test_most_helpful_cable_joins_what_failures_separate(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.path_graph(4), [1])
    flows = flows_of(lab, 20)
    failures = failures_of(lab, ["cables=1"])
    found = protect(lab, flows, maker(lab, flows), failures, protection=Protection.BACKUP)
    assert found.cut_off.keys() == {flow.id for flow in flows}
    helpful = most_helpful_cable(lab, flows, failures, found.cut_off)
    assert helpful is not None
    assert {helpful.link.a.node, helpful.link.b.node} == {"s1", "s4"}
    assert set(helpful.helped) == found.cut_off.keys()
    ring = helpful.added_to(lab)
    again = protect(ring, flows, maker(ring, flows), failures, protection=Protection.BACKUP)
    assert not again.cut_off


def test_no_cable_helps_where_every_port_is_taken() -> None:
    lab = load_lab("two-switch")
    flow = Flow("f", "H1", "H3", 1000, 2000, 1e5, 612.0, 306)
    failures = failures_of(lab, ["cables=1"])
    found = protect(lab, [flow], maker(lab, [flow]), failures, protection=Protection.BACKUP)
    assert found.cut_off.keys() == {"f"}
    assert most_helpful_cable(lab, [flow], failures, found.cut_off) is None


def test_no_cable_helps_where_it_may_fail_with_another(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.path_graph(3), [1])
    flows = flows_of(lab, 3)
    for survive, helps in ((["cables=1"], True), (["cables=2"], False), (["cables=1", "cables=2"], False)):
        failures = failures_of(lab, survive)
        found = protect(lab, flows, maker(lab, flows), failures, protection=Protection.BACKUP)
        assert (most_helpful_cable(lab, flows, failures, found.cut_off) is not None) is helps


@pytest.mark.parametrize("cable", ["core-1:2-core-2:2", "core-2:2-core-1:2"])
def test_groups_name_cables_from_either_end(cable: str, tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.path_graph(2), [1], {0: "core-1", 1: "core-2"})
    (tmp_path / "groups.yml").write_text(f"- {{name: duct, cables: [{cable}]}}\n")
    (failure,) = failures_of(lab, [str(tmp_path / "groups.yml")])
    assert failure.dead_ends == {("core-1", 2), ("core-2", 2)}


def test_more_cables_than_the_lab_has_are_all_of_them(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.cycle_graph(3), [1])
    assert len(failures_of(lab, ["cables=999999999"])) == 2**3 - 1


@pytest.mark.parametrize("protection", list(Protection))
def test_what_survives_each_switch_survives_each_cable(protection: Protection, tmp_path: Path) -> None:
    """A flow between neighbours ends with either switch, so only the failure of their cable hits it."""
    lab = plant_of(tmp_path, nx.cycle_graph(4), [1])
    failures = failures_of(lab, ["switches=1"])
    assert {failure.dead_ends for failure in failures} > {
        failure.dead_ends for failure in failures_of(lab, ["cables=1"])
    }
    assert len(failures) == 4 + 4
    neighbours = Flow("f", "h1-1", "h2-1", 1000, 2000, 1e6, 612.0, 306)
    found = protected(lab, [neighbours], "switches=1", protection).flows["f"]
    assert found.ends_with == ("switch s1", "switch s2")
    (second,) = found.backups.values() if protection is Protection.BACKUP else (found.duplicate,)
    assert second is not None
    assert switches_of(second) == ["s1", "s4", "s3", "s2"]


def test_two_switches_or_cables_fail_together(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.path_graph(3), [1])
    names = [failure.name for failure in failures_of(lab, ["switches=2"])]
    assert {"switch s1 and switch s3", "switch s1 and cable s2:3-s3:2"} <= set(names)
    assert not any(name.startswith("switch s2 and cable") for name in names), "it has both cables"


def test_groups_fail_together(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.cycle_graph(4), [1])
    file = tmp_path / "groups.yml"
    file.write_text("- {name: duct, cables: [s1:2-s2:2], switches: [s3]}\n")
    (failure,) = failures_of(lab, [str(file)])
    assert failure.name == "duct"
    assert failure.switches == {"s3"}
    assert {("s1", 2), ("s2", 2), ("s3", 1)} <= failure.dead_ends


@pytest.mark.parametrize(
    ("survive", "groups", "told"),
    [
        ("cabels=1", "", "give cables=1, switches=1, or a file of groups"),
        ("cables=0", "", "give cables=1, switches=1, or a file of groups"),
        ("cables=9", "", "cover fewer at a time"),
        ("nowhere.yml", "", "no such file"),
        (f"cables={'9' * 5000}", "", "give cables=1, switches=1, or a file of groups"),
        ("", "[]\n", "has no groups"),
        (
            "",
            "- {name: duct, switches: [s1]}\n- {name: duct, switches: [s2]}\n",
            "'duct' names two different failures",
        ),
        ("", "- {name: duct}\n", "group 'duct' is empty"),
        ("", "- {name: duct, cables: [s1:9-s2:9]}\n", "has no cable 's1:9-s2:9'"),
        ("", "- {name: duct, switches: [s77]}\n", "has no switch 's77'"),
    ],
)
def test_wrong_failures_are_told_in_a_line(survive: str, groups: str, told: str, tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.complete_graph(8), [1])
    if groups:
        (tmp_path / "groups.yml").write_text(groups)
        survive = str(tmp_path / "groups.yml")
    with pytest.raises(InputError, match=told):
        failures_of(lab, [survive])
