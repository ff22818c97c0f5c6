"""Draw a lab's cabling, with ports and network cards."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loko.topology.lab import Backend, Endpoint, Host, Lab
from loko.units import rate_text
from loko_testbed.reproduce.plots.drawing import Box, Line, Point, boxes, drawing, lines, texts, write
from loko_testbed.reproduce.plots.lab_places import host_angles, switch_places

_Vector = NDArray[np.float64]
_Cable = tuple[Endpoint, Endpoint]
_UNIT = 200
"""Distance of neighbouring switches, in pixels, unless their hosts need more room."""
_HOST_AWAY = 150
"""Height of the oval on which the hosts of a switch stand about it, if they have room there."""
_GROWTH = 1.1
_MOST_GROWTHS = 40
_UPRIGHT_AREA = 0.6
"""An upright drawing is preferred to a wide one if it takes less than this part of the area."""
_CLEAR = 10.0
"""Room between boxes."""
_APART = 112
"""Distance that the controller, and a host with several cables, keep from other nodes."""
_MOST_RINGS, _TURNS = 200, 24
"""Distances and directions in which a free place is looked for."""
_PARALLEL = 25
"""Distance of cables between the same two nodes."""
_GAP = 5.0
"""Gap between a label and the node at its end of the cable, in pixels."""
_REAL, _EMULATED, _HOST, _CONTROL = "#f6d7a7", "#dfe7ef", "#ffffff", "#777777"
_CONTROLLER = "controller"
"""Key of the controller's place among those of the nodes."""


def draw(lab: Lab, path: Path) -> None:
    """Write the drawing to `path` as SVG, and beside it as PNG."""
    places = node_places(lab)
    nodes = {name: node_box(lab, name, places[name]) for name in (*lab.switches, *lab.hosts)}
    cables = [(link.a, link.b) for link in lab.links]
    control: list[_Cable] = []
    if lab.control_port:
        address = f"controller\n{lab.controller.ip}" if lab.controller else "controller"
        nodes[_CONTROLLER] = Box(middle=places[_CONTROLLER], text=address, fill=_HOST, stroke=_CONTROL)
        controller = Endpoint(node=_CONTROLLER, port=0)
        control = [(Endpoint(node=name, port=lab.control_port), controller) for name in lab.switches]
    drawn, labels = [], []
    rates = {cable: lab.rate_bps(link) for cable, link in zip(cables, lab.links, strict=True)}
    has_speeds = len(set(rates.values())) > 1
    aside = _beside_each_other([*cables, *control], places)
    for alike, look in ((cables, {"color": "black"}), (control, {"color": _CONTROL, "strokeDash": [6, 4]})):
        ends = [
            (_moved(places[cable[0].node], aside[cable]), _moved(places[cable[1].node], aside[cable]))
            for cable in alike
        ]
        drawn.append(lines(ends, strokeWidth=1.8, **look))
        for cable, (first, last) in zip(alike, ends, strict=True):
            if has_speeds and cable in rates:
                speed = rate_text(rates[cable])
                labels.append(
                    Box(middle=_middle([first, last]), text=speed, fill="white", stroke="white", padding=2)
                )
            for end, far, begin, target in ((*cable, first, last), (*cable[::-1], last, first)):
                text, is_card = _label(lab, end, far)
                if text:
                    labels.append(_beside(nodes[end.node], begin, target, text, is_card=is_card))
    top = min(box.middle[1] - box.height / 2 for box in nodes.values())
    title = texts([((0, top - 24), lab.title)], font=14, fontWeight="bold")
    alone = list(dict.fromkeys(nodes.values()))
    write(drawing([*drawn, *boxes(labels), *boxes(alone, cornerRadius=6), title]), path)


def _beside_each_other(cables: Sequence[_Cable], places: Mapping[str, Point]) -> dict[_Cable, _Vector]:
    """Return how far each cable is moved, so that no other one between the same two nodes hides it."""
    between: dict[tuple[Point, ...], list[_Cable]] = {}
    for cable in cables:
        between.setdefault(tuple(sorted(places[end.node] for end in cable)), []).append(cable)
    aside: dict[_Cable, _Vector] = {}
    for (first, last), parallel in between.items():
        x, y = np.subtract(last, first)
        across = np.array([-y, x]) / max(math.hypot(x, y), 1e-9)
        for number, cable in enumerate(parallel):
            aside[cable] = across * _PARALLEL * (number - (len(parallel) - 1) / 2)
    return aside


def _moved(place: Point, aside: _Vector) -> Point:
    return place[0] + float(aside[0]), place[1] + float(aside[1])


def _label(lab: Lab, end: Endpoint, far: Endpoint) -> tuple[str, bool]:
    """Return the text at an end of a cable, and whether it names a network card."""
    card = lab.cards().get(end)
    host = lab.hosts.get(end.node)
    interface = host.interface if host else None
    if end.node == _CONTROLLER and lab.control_port:
        card = lab.switches[far.node].cards.get(lab.control_port)
    if card:
        return (f"{interface}: {card}" if interface else card), True
    return (str(end.port) if end.node in lab.switches else interface or ""), False


def _beside(node: Box, begin: Point, target: Point, text: str, *, is_card: bool) -> Box:
    """Return a label on a cable from `begin` to `target`, just outside of the node at its beginning."""
    fill, stroke = ("#e7f3e4", "#99aa99") if is_card else ("white", "white")
    label = Box(middle=begin, text=text, fill=fill, stroke=stroke, padding=2)
    way = np.subtract(target, begin) / math.dist(target, begin)
    clear = ((node.width + label.width) / 2 + _GAP, (node.height + label.height) / 2 + _GAP)
    sides = zip(clear, way, strict=True)
    distance = min(side / abs(float(part)) for side, part in sides if abs(part) > 1e-9)
    return replace(label, middle=_moved(begin, distance * way))


def _looks(lab: Lab, node: str) -> tuple[str, str]:
    """Return text and colour of a switch."""
    switch = lab.switches[node]
    if switch.backend is Backend.HARDWARE:
        return f"{node}\nreal board", _REAL
    return f"{node}\n{switch.profile.name}", _EMULATED


def _addresses(machine: str, interfaces: Sequence[Host]) -> str:
    """Return the text of a host: name and addresses, with the names of several interfaces."""
    return "\n".join([machine, *(f"{host.interface or ''} {host.ip}".strip() for host in interfaces)])


def node_places(lab: Lab) -> dict[str, Point]:
    """Return the places of all nodes, as near to each other as their boxes and labels allow."""
    wide, upright = _nodes_of_switches(lab, upright=False), _nodes_of_switches(lab, upright=True)
    places = upright if _area(upright) < _UPRIGHT_AREA * _area(wide) else wide
    switches = {name: places[name] for name in lab.switches}
    for interfaces in lab.machines.values():
        names = [host.name for host in interfaces]
        if names[1:]:
            ends = [switches[end.node] for end in (lab.far_end(name, 1) for name in names) if end]
            place = _free_place(_middle(ends), -math.pi / 2, places.values(), _cables(lab, places))
            places |= dict.fromkeys(names, place)
    if lab.control_port:
        middle = _middle(list(switches.values()))
        places[_CONTROLLER] = _free_place(middle, math.pi / 2, places.values(), _cables(lab, places))
    return places


def _cables(lab: Lab, places: Mapping[str, Point]) -> list[Line]:
    """Return the cables between nodes that have their places."""
    ends = ((link.a.node, link.b.node) for link in lab.links)
    return [(places[first], places[last]) for first, last in ends if first in places and last in places]


def _nodes_of_switches(lab: Lab, *, upright: bool) -> dict[str, Point]:
    """Return the places of the switches, and of the hosts that belong to one of them."""
    places: dict[str, Point] = {}
    for growth in range(_MOST_GROWTHS):
        switches = switch_places(lab, _UNIT * _GROWTH**growth, upright=upright)
        places = switches | _host_places(lab, switches)
        if not _overlap([node_box(lab, name, place) for name, place in places.items()]):
            break
    return places


def _area(places: Mapping[str, Point]) -> float:
    """Return the area of a drawing with these nodes."""
    width, height = np.ptp(list(places.values()), axis=0)
    return float((width + _UNIT) * (height + _UNIT))


def _host_places(lab: Lab, switches: Mapping[str, Point]) -> dict[str, Point]:
    """Return the places of hosts, as far from their switch as their boxes need beside each other."""
    angles = host_angles(lab, switches)
    places: dict[str, Point] = {}
    for name in lab.switches:
        hosts = [end.node for _, end in lab.neighbours(name) if end.node in angles]
        for growth in range(_MOST_GROWTHS):
            away = _HOST_AWAY * _GROWTH**growth
            around = {
                host: _moved(
                    switches[name],
                    np.array([1.35 * away * math.cos(angles[host]), away * math.sin(angles[host])]),
                )
                for host in hosts
            }
            if not _overlap([node_box(lab, host, place) for host, place in around.items()]):
                break
        places |= around
    return places


def node_box(lab: Lab, node: str, middle: Point) -> Box:
    """Return the box of a switch or host."""
    if host := lab.hosts.get(node):
        return Box(middle=middle, text=_addresses(host.machine, lab.machines[host.machine]), fill=_HOST)
    text, colour = _looks(lab, node)
    return Box(middle=middle, text=text, fill=colour)


def _overlap(placed: Sequence[Box]) -> bool:
    """Return whether two boxes touch, or nearly."""
    return any(
        abs(a.middle[0] - b.middle[0]) < (a.width + b.width) / 2 + _CLEAR
        and abs(a.middle[1] - b.middle[1]) < (a.height + b.height) / 2 + _CLEAR
        for a, b in combinations(placed, 2)
    )


def _middle(points: Sequence[Point]) -> Point:
    x, y = np.mean(points, axis=0)
    return float(x), float(y)


def _free_place(start: Point, first: float, others: Collection[Point], cables: Sequence[Line]) -> Point:
    """Return the place nearest to `start` that keeps clear of nodes and cables; `first` is tried first."""
    for ring in range(_MOST_RINGS):
        for turn in range(_TURNS):
            angle = first + 2 * math.pi * turn / _TURNS
            way = ring * _APART / 4
            place = start[0] + way * math.cos(angle), start[1] + way * math.sin(angle)
            if all(math.dist(place, other) >= _APART for other in others) and all(
                _distance(place, cable) >= 0.8 * _APART for cable in cables
            ):
                return place
    return start


def _distance(place: Point, cable: Line) -> float:
    """Return the distance of a place from a cable."""
    begin, way = np.array(cable[0]), np.subtract(cable[1], cable[0])
    along = float(np.clip(np.dot(np.subtract(place, begin), way) / max(float(np.dot(way, way)), 1e-9), 0, 1))
    return float(np.linalg.norm(np.subtract(place, begin + along * way)))
