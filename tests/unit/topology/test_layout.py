"""Where drawings have the switches: rings round and beside each other, trees in layers, lines in rows."""

from __future__ import annotations

import math
import random
from itertools import combinations

import networkx as nx
import pytest

from loko.topology.lab import load_lab
from loko.topology.layout import Place, arrange, arrange_lab

Drawn = dict[str, Place]


def drawn(graph: nx.Graph, *, upright: bool = False) -> Drawn:
    return arrange([str(node) for node in graph], [(str(a), str(b)) for a, b in graph.edges], upright=upright)


def nearest(places: Drawn) -> float:
    return min(math.dist(a, b) for a, b in combinations(places.values(), 2))


def crossings(graph: nx.Graph, places: Drawn) -> int:
    """Count the pairs of cables that cross, or that touch without a switch in common."""

    def side(a: Place, b: Place, c: Place) -> int:
        turn = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
        return (turn > 1e-9) - (turn < -1e-9)

    lines = [(places[str(a)], places[str(b)]) for a, b in graph.edges]
    return sum(
        side(a, b, c) != side(a, b, d) and side(c, d, a) != side(c, d, b)
        for (a, b), (c, d) in combinations(lines, 2)
        if not {a, b} & {c, d}
    )


def cactus(seed: int) -> nx.Graph:
    """Return rings and cables, each at a switch that was there before."""
    choice = random.Random(seed)
    graph = nx.cycle_graph(choice.randint(3, 7))
    for _ in range(choice.randint(1, 8)):
        at, first = choice.randrange(len(graph)), len(graph)
        ring = [at, *range(first, first + choice.randint(1, 5))]
        (nx.add_cycle if len(ring) > 2 else nx.add_path)(graph, ring)
    return graph


def test_a_ring_is_round() -> None:
    places = drawn(nx.cycle_graph(31))
    middle = [sum(values) / 31 for values in zip(*places.values(), strict=True)]
    radii = [math.dist(place, middle) for place in places.values()]
    assert max(radii) - min(radii) < 0.01
    assert nearest(places) == pytest.approx(1, abs=0.01)
    assert places["0"].y == 0, "the first at the top"


def test_a_long_ring_is_an_oval_on_an_upright_drawing() -> None:
    graph = nx.cycle_graph(31)
    places = drawn(graph, upright=True)
    assert max(place.x for place in places.values()) < 4
    assert nearest(places) > 0.95
    assert crossings(graph, places) == 0


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_rings_at_rings_and_cables_between_them_lie_apart(seed: int, *, upright: bool) -> None:
    graph = cactus(seed)
    places = drawn(graph, upright=upright)
    assert nearest(places) > 0.99
    assert crossings(graph, places) == 0


def test_a_ring_at_a_ring_is_round_and_outside_of_it() -> None:
    graph = nx.cycle_graph(5)
    nx.add_cycle(graph, [0, 5, 6, 7])
    places = drawn(graph)
    for ring in ("01234", "0567"):
        spots = [places[name] for name in ring]
        middle = [sum(values) / len(ring) for values in zip(*spots, strict=True)]
        radii = [math.dist(place, middle) for place in spots]
        assert max(radii) - min(radii) < 0.01
        assert all(
            math.dist(place, middle) > max(radii) for name, place in places.items() if name not in ring
        )


def test_a_tree_is_in_layers_or_if_bushy_round_its_root() -> None:
    small, large = nx.full_rary_tree(2, 15), nx.full_rary_tree(3, 40)
    layers, beside, around = drawn(small), drawn(small, upright=True), drawn(large)
    for node, depth in nx.single_source_shortest_path_length(small, 0).items():
        assert layers[str(node)].y == 1.5 * depth
        assert beside[str(node)].x == 1.5 * depth
    for graph, places in ((small, layers), (small, beside), (large, around)):
        assert nearest(places) > 0.99
        assert crossings(graph, places) == 0
    radii = {round(math.dist(around["0"], around[str(node)]), 1) for node in range(13, 40)}
    assert len(radii) == 1


def test_a_line_is_in_rows_that_run_to_and_fro() -> None:
    assert {place.y for place in drawn(nx.path_graph(8)).values()} == {0}
    graph = nx.path_graph(20)
    for upright in (False, True):
        places = drawn(graph, upright=upright)
        assert all(math.dist(places[str(a)], places[str(b)]) == 1 for a, b in graph.edges)
        assert nearest(places) == 1
        width, height = (max(values) for values in zip(*places.values(), strict=True))
        assert (height > width) is upright


def test_other_networks_show_how_far_switches_are_from_each_other() -> None:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 5))
    places = drawn(graph)
    assert crossings(graph, places) == 0
    assert nearest(places) == pytest.approx(1, abs=0.01)
    far = max(combinations(places, 2), key=lambda pair: math.dist(places[pair[0]], places[pair[1]]))
    assert nx.shortest_path_length(graph, int(far[0]), int(far[1])) == 7, "the corners"


def test_every_switch_has_one_place_whatever_the_cables() -> None:
    doubled = [("a", "b"), ("b", "a"), ("b", "b"), ("b", "c")]
    assert arrange(["a", "b", "c"], doubled) == arrange(["a", "b", "c"], [("a", "b"), ("b", "c")])
    assert arrange([], []) == {}
    assert arrange(["a"], [("a", "a")]) == {"a": Place(0, 0)}


def test_parts_that_no_cable_connects_lie_beside_each_other() -> None:
    graph = nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(3))
    places = drawn(graph)
    assert max(places[str(node)].x for node in range(4)) < min(places[str(node)].x for node in range(4, 7))


def test_many_switches_take_little_time_and_have_places() -> None:
    ring = drawn(nx.cycle_graph(4000), upright=True)
    chain = drawn(nx.path_graph(4000))
    tree = drawn(nx.full_rary_tree(2, 4000))
    meshed = drawn(nx.random_regular_graph(3, 1000, seed=1))
    assert [len(places) for places in (ring, chain, tree, meshed)] == [4000, 4000, 4000, 1000]


def test_the_places_of_a_lab_are_of_its_switches_alone() -> None:
    lab = load_lab("two-switch")
    assert arrange_lab(lab) == {"s1": Place(0, 0), "s2": Place(1, 0)}
    assert arrange_lab(lab, upright=True) == {"s1": Place(0, 0), "s2": Place(0, 1)}
