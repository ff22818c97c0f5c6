"""Places of a lab's nodes in a drawing: switches by their topology, hosts around their switches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from loko.topology.lab import Lab
from loko.topology.layout import arrange_lab
from loko_testbed.reproduce.plots.drawing import Point

_FAN = 0.62
"""Angle between the hosts of a switch, if there is room."""


def switch_places(lab: Lab, scale: float, *, upright: bool = False) -> dict[str, Point]:
    """Return the places of the switches around their middle, where neighbours are `scale` or more apart."""
    places = arrange_lab(lab, upright=upright)
    middle_x, middle_y = ((min(some) + max(some)) / 2 for some in zip(*places.values(), strict=True))
    return {name: (scale * (x - middle_x), scale * (y - middle_y)) for name, (x, y) in places.items()}


def has_several_cables(lab: Lab, host: str) -> bool:
    """Return whether the host has other interfaces beside this one."""
    return len(lab.machines[lab.hosts[host].machine]) > 1


def host_angles(lab: Lab, places: Mapping[str, Point]) -> dict[str, float]:
    """Return in which direction each host stands from its switch: where most room is between the cables.

    `places` are those of the switches. Angles are clockwise, from the right. Hosts with several cables belong
    to no switch and are left out.
    """
    angles = {}
    for name in lab.switches:
        ends = [end.node for _, end in lab.neighbours(name)]
        hosts = [node for node in ends if node in lab.hosts and not has_several_cables(lab, node)]
        cables = {
            _angle(places[name], places[node]) for node in ends if node in lab.switches and node != name
        }
        first, gap = max(
            _gaps(sorted(cables)), key=lambda room: (round(room[1], 6), _outwardness(room, places[name]))
        )
        step = min(_FAN, gap / (len(hosts) + 1))
        middle = first + gap / 2
        # From left to right above and below, from top to bottom on either side.
        clockwise = 1 if math.cos(middle) > math.sin(middle) else -1
        for number, host in enumerate(hosts):
            angles[host] = middle + clockwise * step * (number - (len(hosts) - 1) / 2)
    return angles


def _gaps(angles: list[float]) -> Iterator[tuple[float, float]]:
    """Yield where the room between cables begins, and how much it is; without cables all, from the right."""
    if not angles:
        yield -math.pi, 2 * math.pi
    for begin, end in zip(angles, [*angles[1:], *(angle + 2 * math.pi for angle in angles[:1])], strict=True):
        yield begin, end - begin


def _outwardness(room: tuple[float, float], place: Point) -> float:
    """Return how much a room leads away from the middle of the drawing; upwards if it is there."""
    angle = room[0] + room[1] / 2
    return round(place[0] * math.cos(angle) + place[1] * math.sin(angle) - 0.001 * math.sin(angle), 6)


def _angle(begin: Point, end: Point) -> float:
    return math.atan2(end[1] - begin[1], end[0] - begin[0])
