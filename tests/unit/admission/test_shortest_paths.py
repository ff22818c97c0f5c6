"""The bidirectional search for shortest paths, against a search of the whole network from the source."""

from __future__ import annotations

import itertools
import random
from collections import deque
from pathlib import Path
from types import MappingProxyType

import pytest

from loko.admission import AdmittedFlows, BarePath, LokoAdmission, admitted_flows
from loko.document import InputError
from loko.switch_model.allocation import FULL_RATE
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology import network
from loko.topology.lab import Endpoint, Lab, Link, load_lab, ring_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop, ShortestPaths, longest_path, shortest_path
from loko.topology.ring import Ring

TWO = load_lab("two-switch")


def every_shortest_path(lab: Lab, source: str) -> dict[str, tuple[Hop, ...]]:
    """Breadth-first search from the source in port order: the first path to reach a node is the shortest."""
    paths: dict[str, tuple[Hop, ...]] = {source: ()}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for port, far in lab.outgoing_cables(node):
            if far.node not in paths:
                hop = () if node == source else (Hop(switch=node, output_port=port),)
                paths[far.node] = (*paths[node], *hop)
                if far.node in lab.switches:
                    waiting.append(far.node)
    del paths[source]
    return {name: path for name, path in paths.items() if name in lab.hosts}


def random_lab(seed: int) -> Lab:
    """A random network.

    Switches have up to two hosts, and three more hosts have no switch. Cables may be parallel, one-way, or
    loop back to the same node, and parts of the network may be unreachable.
    """
    choice = random.Random(seed)
    count = choice.randint(1, 25)
    names = [f"s{number}" for number in range(count)]
    choice.shuffle(names)
    ports = {name: iter(choice.sample(range(1, 200), 199)) for name in names}

    def end(name: str) -> Endpoint:
        return Endpoint(node=name, port=next(ports[name]))

    links = [
        Link(a=end(a), b=end(b), one_way=choice.random() < choice.choice((0, 0.3)))
        for a, b in (choice.choices(names, k=2) for _ in range(choice.randint(count - 1, 2 * count)))
    ]
    attached = {f"{letter}{name}": name for name in names for letter in "gh" if choice.random() < 0.7}
    links += [Link(a=Endpoint(node=host, port=1), b=end(name)) for host, name in attached.items()]
    links.append(Link(a=Endpoint(node="left", port=1), b=Endpoint(node="right", port=1)))
    choice.shuffle(links)
    hosts = [*attached, "left", "right", "alone"]
    return Lab(
        name="made",
        title="made",
        path=Path("made"),
        switches=MappingProxyType(dict.fromkeys(names, TWO.switches["s1"])),
        hosts=MappingProxyType(dict.fromkeys(hosts, TWO.hosts["H1"])),
        links=tuple(links),
        control_port=0,
    )


@pytest.mark.parametrize("near", [0, 3, 64])
@pytest.mark.parametrize("seed", range(40))
def test_paths_are_those_of_the_search_from_the_source(
    monkeypatch: pytest.MonkeyPatch, seed: int, near: int
) -> None:
    monkeypatch.setattr(network, "_NEAR", near)
    lab = random_lab(seed)
    paths = ShortestPaths(lab)
    for source in lab.hosts:
        expected = every_shortest_path(lab, source)
        for destination in lab.hosts:
            if destination in expected:
                assert paths.between(source, destination) == expected[destination]
            elif destination != source:
                with pytest.raises(InputError, match=f"no path leads from {source} to {destination}"):
                    paths.between(source, destination)


@pytest.mark.parametrize("seed", range(40))
def test_paths_do_not_depend_on_what_was_asked_for_before(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(network, "_NEAR", seed % 20)
    lab = random_lab(seed)
    expected = {(a, b): path for a in lab.hosts for b, path in every_shortest_path(lab, a).items()}
    asked = list(expected)
    random.Random(seed).shuffle(asked)
    paths = ShortestPaths(lab)
    assert {ends: paths.between(*ends) for ends in asked} == expected
    assert all(paths.between(*ends) == expected[ends] for ends in asked)


@pytest.mark.parametrize("one_way", [False, True])
@pytest.mark.parametrize("switches", [3, 8, 131])
def test_paths_on_a_ring(switches: int, *, one_way: bool) -> None:
    lab = ring_lab(Ring(switches=switches, hosts_per_switch=2, one_way=one_way))
    for source in ("h1a", "h2b"):
        expected = every_shortest_path(lab, source)
        assert {name: shortest_path(lab, source, name) for name in expected} == expected


@pytest.mark.parametrize("seed", range(40))
def test_the_longest_path_is_the_longest_of_all(seed: int) -> None:
    lab = random_lab(seed)
    lengths = [len(path) for source in lab.hosts for path in every_shortest_path(lab, source).values()]
    assert longest_path(lab) == max(lengths, default=0)


def flows(lab: Lab, count: int, seed: int) -> list[Flow]:
    choice = random.Random(seed)
    return [
        Flow(str(number), *choice.sample(sorted(lab.hosts), 2), number + 1, 1, 1e5, 306.0, 306)
        for number in range(count)
    ]


def test_what_is_kept_of_paths_is_bounded_and_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = ring_lab(Ring(switches=12, hosts_per_switch=2, one_way=False))
    allocations = allocations_of(lab, FULL_RATE, EVALUATION)
    asked = flows(lab, 600, 1)
    wide = LokoAdmission(lab, allocations)
    expected = [wide.request(flow) for flow in asked]
    monkeypatch.setattr(admitted_flows, "_CACHED_ROUTES", 40)
    monkeypatch.setattr(admitted_flows, "_CACHED_PER_SWITCH", 0)
    narrow = LokoAdmission(lab, allocations)
    assert [narrow.request(flow) for flow in asked] == expected
    prepared: list[tuple[Hop, ...]] = []

    def prepare(source: str, path: tuple[Hop, ...]) -> BarePath:
        prepared.append(path)
        return BarePath.prepare(source, path)

    kept = AdmittedFlows(lab, prepare)
    for flow in itertools.chain(asked, asked[-3:], asked[-3:]):
        kept.route(flow, None)
    assert len(prepared) > len({flow[1:3] for flow in asked})  # many were searched again
    again = len(prepared)
    for flow in asked[-3:]:
        kept.route(flow, None)
    assert len(prepared) == again  # the last ones were still in the cache


def test_a_path_that_was_asked_for_is_checked_cable_by_cable() -> None:
    lab = ring_lab(Ring(switches=5, one_way=False))
    control = LokoAdmission(lab, allocations_of(lab, FULL_RATE, EVALUATION))
    flow = Flow("f", "h1", "h3", 1, 1, 1e5, 306.0, 306)
    other_way = [
        Hop(switch=name, output_port=port) for name, port in (("s1", 3), ("s5", 3), ("s4", 3), ("s3", 1))
    ]
    assert [hop.switch for hop in control.check(flow, other_way).path] == ["s1", "s5", "s4", "s3"]
    for wrong in ([], other_way[1:], other_way[:-1], [*other_way[:-1], other_way[0]]):
        with pytest.raises(InputError, match="does not lead from h1 to h3"):
            control.check(flow, wrong)
