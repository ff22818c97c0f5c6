"""Draw a lab's cabling, with ports and network cards."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loko.topology.lab import Backend, Endpoint, Host, Lab
from loko_testbed.reproduce.plots.drawing import Box, Point, boxes, drawing, lines, texts, write

_Vector = NDArray[np.float64]
_Cable = tuple[Endpoint, Endpoint]
_UNIT = 125
"""Pixels of a unit of all other distances."""
_SWITCHES_AT = 1.0
"""Radius of the circle on which the switches stand; the controller is in its middle."""
_HOSTS_AT = 2.2
_APART = 0.9
"""Distance that a host with several cables keeps from others."""
_PARALLEL = 0.2
"""Distance of cables between the same two nodes."""
_FAN = 0.62
"""Angle between the hosts of a switch."""
_GAP = 5.0
"""Gap between a label and the node at its end of the cable, in pixels."""
_REAL, _EMULATED, _HOST, _CONTROL = "#f6d7a7", "#dfe7ef", "#ffffff", "#777777"
_CONTROLLER = "controller"
"""Key of the controller's place among those of the nodes."""


def draw(lab: Lab, path: Path) -> None:
    """Write the drawing to `path` as SVG, and beside it as PNG."""
    places = {
        name: (_UNIT * x, -_UNIT * y) for name, (x, y) in {**_places(lab), _CONTROLLER: _centre(lab)}.items()
    }
    nodes = {
        name: Box(middle=places[name], text=text, fill=colour)
        for name, (text, colour) in ((name, _looks(lab, name)) for name in lab.switches)
    }
    for machine, interfaces in lab.machines.items():
        box = Box(middle=places[interfaces[0].name], text=_addresses(machine, interfaces), fill=_HOST)
        nodes |= dict.fromkeys((host.name for host in interfaces), box)
    cables = [(link.a, link.b) for link in lab.links]
    control: list[_Cable] = []
    if lab.control_port:
        address = f"controller\n{lab.controller.ip}" if lab.controller else "controller"
        nodes[_CONTROLLER] = Box(middle=places[_CONTROLLER], text=address, fill=_HOST, stroke=_CONTROL)
        controller = Endpoint(node=_CONTROLLER, port=0)
        control = [(Endpoint(node=name, port=lab.control_port), controller) for name in lab.switches]
    drawn, labels = [], []
    aside = _beside_each_other([*cables, *control], places)
    for alike, look in ((cables, {"color": "black"}), (control, {"color": _CONTROL, "strokeDash": [6, 4]})):
        ends = [
            (_moved(places[cable[0].node], aside[cable]), _moved(places[cable[1].node], aside[cable]))
            for cable in alike
        ]
        drawn.append(lines(ends, strokeWidth=1.8, **look))
        for cable, (first, last) in zip(alike, ends, strict=True):
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
            aside[cable] = across * _UNIT * _PARALLEL * (number - (len(parallel) - 1) / 2)
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


def _places(lab: Lab) -> dict[str, Point]:
    """Place the switches on a circle, the hosts of each outside, and those of several switches in between."""
    places = {}
    count = len(lab.switches)
    for index, name in enumerate(lab.switches):
        first = math.pi if count <= 2 else math.pi / 2
        angle = first - 2 * math.pi * index / count
        places[name] = _at(angle, _SWITCHES_AT)
        hosts: Sequence[str] = [end.node for _, end in lab.neighbours(name) if end.node in lab.hosts]
        for number, host in enumerate(hosts):
            turn = (number - (len(hosts) - 1) / 2) * _FAN * (1 if count == 2 and index == 1 else -1)
            places[host] = _at(angle + turn, _HOSTS_AT)
    several = [[host.name for host in interfaces] for interfaces in lab.machines.values() if interfaces[1:]]
    for names, ends in [(names, [places.pop(name) for name in names]) for names in several]:
        places |= dict.fromkeys(names, _between(ends, places.values()))
    return places


def _between(ends: Sequence[Point], others: Collection[Point]) -> Point:
    """Return a place for a host with several cables: amid their ends, but outside, and near no other host."""
    x, y = np.mean(ends, axis=0)
    angle, radius = math.atan2(y, x / 1.35), math.hypot(x / 1.35, y)
    if radius < _SWITCHES_AT / 2:  # opposite each other: above
        angle = math.pi / 2
    radius = max(radius, _SWITCHES_AT)
    while any(math.dist(_at(angle, radius), other) < _APART for other in others):
        radius += _APART
    return _at(angle, radius)


def _centre(lab: Lab) -> Point:
    """Return the controller's place: the middle, or below the cable if there are only two switches."""
    return (0.0, 0.0) if len(lab.switches) > 2 else (0.0, -1.0)


def _at(angle: float, radius: float) -> Point:
    return radius * math.cos(angle) * 1.35, radius * math.sin(angle)
