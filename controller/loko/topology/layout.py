"""Where the switches of a network stand in a drawing, by its topology. Pure and deterministic.

Lines run in rows. Trees stand in layers, or round their root if they are bushy. Rings are round, and rings at
rings lie beside each other, since two that share a switch, or that a cable joins, are different blocks of the
network (its biconnected components, the nodes of the block-cut tree). All other networks are drawn so that
distances on the paper follow the number of cables between switches (stress majorization; Gansner, Koren and
North, "Graph Drawing by Stress Majorization", 2004).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from loko.topology.lab import Lab

_ROW: Final = 8
"""Switches in a row of a line."""
_UPRIGHT_ROW: Final = 3
_LAYER: Final = 16
"""Leaves of a tree in layers; on a wide drawing, a tree with more stands round its root."""
_ROUND: Final = 12
"""Switches of a ring that is a circle on an upright drawing; a longer one is an oval as wide as that."""
_MOST: Final = 400
"""Switches of a network for which time is spent on more than a circle, unless it is a tree or a ring."""
_STEPS: Final = 300
"""Of stress majorization, at most."""
_GROWTH: Final = 1.1
_APART: Final = 0.5
"""Room that a switch keeps on every side."""
_BETWEEN_PARTS: Final = 2.0
_FAN: Final = math.radians(60)
"""Angle between what hangs at the same switch, unless there is more of it than has room so."""
_WHOLE_FAN: Final = math.radians(200)
_WEDGE: Final = 0.8
"""How much of its angle something may fill that does not hang alone."""


class Place(NamedTuple):
    """A point of a drawing: x to the right, y downwards; one is the shortest distance of two switches."""

    x: float
    y: float


_Points = dict[str, complex]
"""Places as complex numbers, which turn and grow by multiplication."""


def arrange_lab(lab: Lab, *, upright: bool = False) -> dict[str, Place]:
    """Return the place of every switch of a lab, as `arrange`."""
    cables = ((link.a.node, link.b.node) for link in lab.links)
    between = (ends for ends in cables if ends[0] in lab.switches and ends[1] in lab.switches)
    return arrange(list(lab.switches), between, upright=upright)


def arrange(
    switches: Sequence[str], cables: Iterable[tuple[str, str]], *, upright: bool = False
) -> dict[str, Place]:
    """Return the place of every switch, in their order.

    `cables` are pairs of switches; parallel cables, and cables back to the same switch, do not matter. A
    drawing is wide rather than high, or, for narrow screens, `upright`. Parts that no cable connects lie
    beside each other.
    """
    graph = nx.Graph()
    graph.add_nodes_from(switches)
    graph.add_edges_from((a, b) for a, b in cables if a != b)
    order = {name: number for number, name in enumerate(switches)}
    parts = sorted(
        nx.connected_components(graph), key=lambda part: (-len(part), min(map(order.__getitem__, part)))
    )
    placed: _Points = {}
    edge = 0.0
    for part in parts:
        ordered = nx.Graph()
        ordered.add_nodes_from(sorted(part, key=order.__getitem__))
        ordered.add_edges_from((a, b) for a in ordered for b in sorted(graph[a], key=order.__getitem__))
        points = _part(ordered, upright=upright)
        begin = min(_along(point, upright=upright) for point in points.values())
        shift = (edge - begin) * (1j if upright else 1)
        placed |= {name: point + shift for name, point in points.items()}
        edge = max(_along(placed[name], upright=upright) for name in points) + _BETWEEN_PARTS
    left = min((point.real for point in placed.values()), default=0.0)
    top = min((point.imag for point in placed.values()), default=0.0)
    return {
        name: Place(round(placed[name].real - left, 3) + 0.0, round(placed[name].imag - top, 3) + 0.0)
        for name in switches
    }


def _along(point: complex, *, upright: bool) -> float:
    return point.imag if upright else point.real


def _part(graph: nx.Graph, *, upright: bool) -> _Points:
    """Place the switches of a connected network."""
    if nx.is_tree(graph):
        return _tree(graph, upright=upright)
    if all(degree == 2 for _, degree in graph.degree):
        return _ring(_round_trip(graph), upright=upright)
    if len(graph) > _MOST:
        return _ring(_round_trip(graph), upright=upright)
    blocks = [graph.subgraph(block) for block in nx.biconnected_components(graph)]
    if all(len(block) == 2 or block.size() == len(block) for block in blocks):
        points = _nested(graph, upright=upright)
    else:
        points = _by_distance(graph)
    return _turned(points, upright=upright)


def _turned(points: _Points, *, upright: bool) -> _Points:
    """Mirror a drawing at its diagonal if it is high and should be wide, or the other way."""
    width, height = (
        max(values) - min(values)
        for values in ([point.real for point in points.values()], [point.imag for point in points.values()])
    )
    if (height > width) is upright:
        return points
    return {name: complex(point.imag, point.real) for name, point in points.items()}


def _round_trip(graph: nx.Graph) -> list[str]:
    """Return all switches, neighbours beside each other as far as a walk in depth finds them."""
    return list(nx.dfs_preorder_nodes(graph))


# Rings, lines and trees


def _ring(order: Sequence[str], *, upright: bool) -> _Points:
    """Place switches round a circle or, if there are many and the drawing is upright, an oval."""
    return dict(zip(order, _outline(len(order), upright=upright), strict=True))


def _outline(count: int, *, upright: bool) -> list[complex]:
    """Return points on a circle or an upright oval about zero, clockwise from the top, one apart.

    The oval is a rectangle with half circles above and below, so that all points are as far from the next.
    """
    if not upright or count <= _ROUND:
        radius = 0.5 / math.sin(math.pi / count)
        return [-1j * radius * cmath.exp(2j * math.pi * number / count) for number in range(count)]
    radius = 0.5 / math.sin(math.pi / _ROUND)
    straight = (count - 2 * math.pi * radius) / 2
    quarter, half = math.pi * radius / 2, math.pi * radius

    def at(way: float) -> complex:
        top, foot = -1j * straight / 2, 1j * straight / 2
        if way < quarter:
            return top - 1j * radius * cmath.exp(1j * way / radius)
        if way < quarter + straight:
            return complex(radius, -straight / 2 + way - quarter)
        if way < quarter + straight + half:
            return foot + radius * cmath.exp(1j * (way - quarter - straight) / radius)
        if way < quarter + 2 * straight + half:
            return complex(-radius, straight / 2 - (way - quarter - straight - half))
        return top - radius * cmath.exp(1j * (way - quarter - 2 * straight - half) / radius)

    return [at(float(number)) for number in range(count)]


def _tree(graph: nx.Graph, *, upright: bool) -> _Points:
    if all(degree <= 2 for _, degree in graph.degree):
        return _line(graph, upright=upright)
    centre = nx.center(graph)
    root = max(centre, key=graph.degree)
    depth = nx.single_source_shortest_path_length(graph, root)
    below = dict(nx.bfs_successors(graph, root))
    slots: dict[str, float] = {}
    leaves = 0
    for name in nx.dfs_postorder_nodes(graph, root):
        if children := below.get(name):
            slots[name] = (slots[children[0]] + slots[children[-1]]) / 2
        else:
            slots[name] = float(leaves)
            leaves += 1
    if upright:
        return {name: complex(1.5 * depth[name], slots[name]) for name in graph}
    if leaves <= _LAYER:
        return {name: complex(slots[name], 1.5 * depth[name]) for name in graph}
    angles = {name: 2 * math.pi * slot / leaves for name, slot in slots.items()}
    step = max(
        1.0,
        *(
            _step(sorted(angles[name] for name in graph if depth[name] == level), level)
            for level in range(1, max(depth.values()) + 1)
        ),
    )
    return {name: -1j * step * depth[name] * cmath.exp(1j * angles[name]) for name in graph}


def _step(angles: Sequence[float], level: int) -> float:
    """Return the distance of levels for which switches at these angles of a level are one apart."""
    gaps = [later - earlier for earlier, later in pairwise([*angles, angles[0] + 2 * math.pi])]
    return 0.5 / math.sin(min(*gaps, math.pi) / 2) / level


def _line(graph: nx.Graph, *, upright: bool) -> _Points:
    """Place switches in a row, or, if there are many, in rows that run to and fro."""
    ends = [name for name, degree in graph.degree if degree < 2]
    order = list(nx.dfs_preorder_nodes(graph, ends[0]))
    if upright and len(order) <= _ROW:
        return {name: 1j * number for number, name in enumerate(order)}
    row = _UPRIGHT_ROW if upright else _ROW
    points = {}
    for number, name in enumerate(order):
        below, along = divmod(number, row)
        points[name] = complex(along if below % 2 == 0 else row - 1 - along, below)
    return points


# Rings at rings


class _Disc(NamedTuple):
    """A circle about some switches, with the room that they keep."""

    centre: complex
    radius: float

    def is_clear_of(self, other: _Disc) -> bool:
        return abs(self.centre - other.centre) >= self.radius + other.radius - 1e-9


def _disc(points: Iterable[complex]) -> _Disc:
    some = list(points)
    centre = complex(
        (min(point.real for point in some) + max(point.real for point in some)) / 2,
        (min(point.imag for point in some) + max(point.imag for point in some)) / 2,
    )
    return _Disc(centre, max(abs(point - centre) for point in some) + _APART)


@dataclass
class _GraphBlock:
    """A ring, or the two ends of a cable, with all blocks that hang at its switches.

    `shape` has its switches in a drawing of its own. The switch at which it hangs itself, if any, is at
    zero, and the block extends to the right of it.
    """

    at: str | None
    shape: _Points
    middle: complex
    """From where its switches look outwards."""
    hanging: dict[str, list[_GraphBlock]] = field(default_factory=dict)
    points: _Points = field(default_factory=dict)
    """Places of its own switches and of all that hang at them."""

    def compose(self) -> None:
        """Place all that hangs at this block, and make the block as large as that needs.

        What hangs has been composed before.
        """
        groups = {name: self._fan(name) for name in self.hanging}
        scale = 1.0
        while not self._is_clear(groups, scale):
            scale *= _GROWTH
        self.points = {name: scale * point for name, point in self.shape.items()}
        for name, group in groups.items():
            self.points |= {other: self.points[name] + point for other, point in group.items()}

    def _fan(self, name: str) -> _Points:
        """Return the places of what hangs at a switch, relative to it; itself is left out.

        Each of several blocks keeps to a wedge of its own.
        """
        blocks = self.hanging[name]
        outwards = cmath.phase(self.shape[name] - self.middle)
        step = min(_FAN, _WHOLE_FAN / len(blocks))
        groups = []
        for number, block in enumerate(blocks):
            points = {other: point for other, point in block.points.items() if other != name}
            if len(blocks) > 1:
                points = _narrowed(points, _WEDGE * step / 2)
            turn = cmath.rect(1, outwards + step * (number - (len(blocks) - 1) / 2))
            groups.append({other: turn * point for other, point in points.items()})
        nearest = min(
            (
                abs(a - b)
                for one, other in combinations(groups, 2)
                for a in one.values()
                for b in other.values()
            ),
            default=1.0,
        )
        scale = max(1.0, 1 / nearest)
        return {other: scale * point for group in groups for other, point in group.items()}

    def _is_clear(self, groups: Mapping[str, _Points], scale: float) -> bool:
        """Whether nothing that hangs at a switch touches anything else, and nothing lies left of zero."""
        own = {name: _Disc(scale * point, _APART) for name, point in self.shape.items()}
        hanging = {
            name: [own[name].centre + point for point in (0j, *group.values())]
            for name, group in groups.items()
        }
        if self.at is not None and any(point.real <= 0 for points in hanging.values() for point in points):
            return False
        discs = {name: _disc(points) for name, points in hanging.items()}
        return all(a.is_clear_of(b) for a, b in combinations(discs.values(), 2)) and all(
            disc.is_clear_of(other)
            for name, disc in discs.items()
            for switch, other in own.items()
            if switch != name
        )


def _narrowed(points: _Points, angle: float) -> _Points:
    """Squeeze a drawing that extends to the right from zero, so that nothing of it lies beyond this angle."""
    widest = max(abs(math.tan(cmath.phase(point))) for point in points.values())
    squeeze = min(1.0, math.tan(angle) / max(widest, 1e-9))
    if squeeze == 1:
        return points
    narrow = {name: complex(point.real, squeeze * point.imag) for name, point in points.items()}
    nearest = min((abs(a - b) for a, b in combinations([0j, *narrow.values()], 2)), default=1.0)
    return {name: point * max(1.0, 1 / nearest) for name, point in narrow.items()}


def _nested(graph: nx.Graph, *, upright: bool) -> _Points:
    """Place rings, and trees between and at them, each outside of the ring at which it hangs."""
    members = [graph.subgraph(block) for block in nx.biconnected_components(graph)]
    of = {name: [k for k, block in enumerate(members) if name in block] for name in graph}
    tree = nx.Graph((("block", k), ("switch", name)) for name, ks in of.items() for k in ks)
    distance = nx.eccentricity(tree)
    order = {name: number for number, name in enumerate(graph)}
    root = min(
        range(len(members)),
        key=lambda k: (distance["block", k], -len(members[k]), min(order[name] for name in members[k])),
    )
    blocks = {root: _block(members[root], None, order, upright=upright)}
    waiting = [root]
    for here in waiting:
        for name in blocks[here].shape:
            if name == blocks[here].at:
                continue
            for k in sorted(set(of[name]) - {here}):
                blocks[k] = _block(members[k], name, order, upright=upright)
                blocks[here].hanging.setdefault(name, []).append(blocks[k])
                waiting.append(k)
    for k in reversed(waiting):
        blocks[k].compose()
    return blocks[root].points


def _block(members: nx.Graph, at: str | None, order: Mapping[str, int], *, upright: bool) -> _GraphBlock:
    """Return a block that hangs at a switch, or, if it is the first of all, at none."""
    begin = min(members, key=order.__getitem__) if at is None else at
    ring = list(
        nx.dfs_preorder_nodes(members, begin, sort_neighbors=lambda some: sorted(some, key=order.__getitem__))
    )
    if len(ring) == 2:
        shape = dict(zip(ring, (-0.5 + 0j, 0.5 + 0j) if at is None else (0j, 1 + 0j), strict=True))
        return _GraphBlock(at, shape, 0j)
    outline = _outline(len(ring), upright=upright and at is None)
    if at is not None:
        outline = [-1j * point for point in outline]
        outline = [point - outline[0] for point in outline]
    middle = sum(outline) / len(outline)
    return _GraphBlock(at, dict(zip(ring, outline, strict=True)), middle)


# All other networks


def _by_distance(graph: nx.Graph) -> _Points:
    """Place switches by stress majorization, from the start that gives the fewest crossings."""
    index = {name: number for number, name in enumerate(graph)}
    hops = np.zeros((len(index), len(index)))
    for name, lengths in nx.all_pairs_shortest_path_length(graph):
        for other, length in lengths.items():
            hops[index[name], index[other]] = length
    ends = [(index[a], index[b]) for a, b in graph.edges]
    drawn = [_majorized(start, hops) for start in _starts(graph, index)]
    best = min(drawn, key=lambda points: (_crossings(points, ends), round(_stress(points, hops), 3)))
    return dict(zip(index, _upright_by_axes(best), strict=True))


def _starts(graph: nx.Graph, index: Mapping[str, int]) -> Iterator[NDArray[np.complex128]]:
    """Yield places to begin with: a circle and, if there is one, a drawing without crossings."""
    start = np.zeros(len(index), dtype=complex)
    for name, point in _ring(_round_trip(graph), upright=False).items():
        start[index[name]] = point
    yield start
    is_planar, embedding = nx.check_planarity(graph)
    if is_planar:
        flat = np.zeros(len(index), dtype=complex)
        for name, (x, y) in nx.combinatorial_embedding_to_pos(embedding).items():
            flat[index[name]] = complex(x, y)
        yield flat


def _majorized(points: NDArray[np.complex128], hops: NDArray[np.float64]) -> NDArray[np.complex128]:
    weights = np.divide(1.0, hops**2, out=np.zeros_like(hops), where=hops > 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    wanted = weights * hops
    before = math.inf
    for _ in range(_STEPS):
        apart = points[:, None] - points[None, :]
        lengths = np.abs(apart)
        ratio = np.divide(wanted, lengths, out=np.zeros_like(lengths), where=lengths > 1e-9)
        points = inverse @ (ratio * apart).sum(axis=1)
        now = _stress(points, hops)
        if now > before * (1 - 1e-5):
            break
        before = now
    return points


def _stress(points: NDArray[np.complex128], hops: NDArray[np.float64]) -> float:
    """Return the sum over pairs of the squared relative error of their distance."""
    lengths = np.abs(points[:, None] - points[None, :])
    part = np.divide(lengths, hops, out=np.ones_like(hops), where=hops > 0)
    return float(((part - 1) ** 2).sum()) / 2


def _crossings(points: NDArray[np.complex128], ends: Sequence[tuple[int, int]]) -> int:
    def side(a: complex, b: complex, c: complex) -> bool:
        return ((b - a).conjugate() * (c - a)).imag > 0

    return sum(
        side(points[a], points[b], points[c]) != side(points[a], points[b], points[d])
        and side(points[c], points[d], points[a]) != side(points[c], points[d], points[b])
        for (a, b), (c, d) in combinations(ends, 2)
        if not {a, b} & {c, d}
    )


def _upright_by_axes(points: NDArray[np.complex128]) -> list[complex]:
    """Turn a drawing so that it is longest from left to right. The nearest two switches become one apart."""
    middle = points - points.mean()
    turn = cmath.phase(complex((middle**2).sum())) / 2
    turned = middle * cmath.exp(-1j * turn)
    lengths = np.abs(turned[:, None] - turned[None, :])
    nearest = float(lengths[~np.eye(len(turned), dtype=bool)].min())
    return [complex(point) for point in turned / max(nearest, 1e-3)]
