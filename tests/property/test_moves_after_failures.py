"""All connected networks of up to five switches: what every table does to frames while flows move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, permutations
from pathlib import Path

import networkx as nx
import pytest
from harness.plants import plant_of

from loko.admission.planning import scenario_of
from loko.admission.protection import NetworkFailure, Protection, failures_of, protect
from loko.admission.schemes import admission_of, variant_of
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop

NETWORKS = [
    graph for graph in nx.graph_atlas_g() if 2 <= graph.number_of_nodes() <= 5 and nx.is_connected(graph)
]


NOTHING = NetworkFailure(name="nothing", switches=frozenset(), dead_ends=frozenset())


def flows_between_all(lab: Lab) -> list[Flow]:
    return [
        Flow(f"f{number}", source, destination, 1000 + number, 2000, 1e4, 306.0, 306)
        for number, (source, destination) in enumerate(permutations(lab.hosts, 2))
    ]


def ports_of(path: Sequence[Hop]) -> dict[str, int]:
    return {hop.switch: hop.output_port for hop in path}


def tables_during_a_move(former: Sequence[Hop], path: Sequence[Hop]) -> Iterator[Mapping[str, int]]:
    """Yield a flow's output port at each switch, after each change from the former path to the new one."""
    before, after = ports_of(former), ports_of(path)
    table = {**after, **before}
    yield table
    for hop in reversed(path):
        if hop.switch in before:
            table = {**table, hop.switch: hop.output_port}
            yield table


def tables_of_any_order(former: Sequence[Hop], path: Sequence[Hop]) -> Iterator[Mapping[str, int]]:
    """Yield a flow's output ports after any of the switches of both paths have changed."""
    before, after = ports_of(former), ports_of(path)
    shared = before.keys() & after.keys()
    for changed in chain.from_iterable(combinations(shared, size) for size in range(len(shared) + 1)):
        yield {**after, **before, **{switch: after[switch] for switch in changed}}


def crossed(lab: Lab, flow: Flow, table: Mapping[str, int], failure: NetworkFailure) -> list[tuple[str, int]]:
    """Return where a frame leaves switches, until it reaches a host or a dead cable."""
    far = lab.far_end(flow.source, 1)
    left: list[tuple[str, int]] = []
    while far is not None and far.node in lab.switches:
        end = far.node, table[far.node]
        assert end not in left, f"a loop: {left}"
        left.append(end)
        if end in failure.dead_ends:
            return left
        far = lab.far_end(*end)
    assert far is not None
    assert far.node == flow.destination
    return left


@pytest.mark.parametrize("survive", ["cables=1", "switches=1", "cables=2"])
def test_frames_follow_a_reserved_path_after_each_change(survive: str, tmp_path: Path) -> None:
    moves = 0
    for number, graph in enumerate(NETWORKS):
        folder = tmp_path / str(number)
        folder.mkdir()
        lab = plant_of(folder, graph, [1])
        flows = flows_between_all(lab)
        scenario = scenario_of(flows, entries=100, lab=lab)
        choice = variant_of(lab, "loko", None)
        failures = {failure.name: failure for failure in failures_of(lab, [survive])}
        found = protect(
            lab,
            flows,
            lambda lab=lab, choice=choice, scenario=scenario: admission_of(lab, choice, scenario),
            list(failures.values()),
            protection=Protection.BACKUP,
        )
        assert found.flows.keys() | found.cut_off.keys() == {flow.id for flow in flows}, (
            "there is room for all"
        )
        for flow in found.flows.values():
            former = flow.working.path
            for name, backup in flow.backups.items():
                counted = {*ports_of(former).items(), *ports_of(backup.path).items()}
                for table in tables_during_a_move(former, backup.path):
                    left = crossed(lab, flow.working.flow, table, failures[name])
                    assert len({switch for switch, _ in left}) == len(left)
                    assert set(left) <= counted
                assert left == list(ports_of(backup.path).items()), "at last it takes the new path"
                whole = [list(ports_of(path).items()) for path in (former, backup.path)]
                for table in tables_of_any_order(former, backup.path):
                    left = crossed(lab, flow.working.flow, table, NOTHING)
                    assert left in whole, "it takes one path from end to end"
                moves += 1
    assert moves
