"""Draw a lab's cabling, with ports and network cards."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray

from loko.topology.lab import Backend, Endpoint, Host, Lab
from loko_testbed.reproduce.plots.canvas import STYLE

_Point = tuple[float, float]
_Vector = NDArray[np.float64]
_SWITCHES_AT = 1.0
"""Radius of the circle on which the switches stand; the controller is in its middle."""
_HOSTS_AT = 2.2
_APART = 0.9
"""Distance that a host with several cables keeps from others."""
_PARALLEL = 0.2
"""Distance of cables between the same two nodes."""
_FAN = 0.62
"""Angle between the hosts of a switch."""
_NODE_POINTS, _NODE_PAD = 9, 0.5
_LABEL_POINTS, _LABEL_PAD = 8, 0.15
_GAP_POINTS = 4.0
"""Gap between a label and the node at its end of the cable."""
_REAL, _EMULATED, _HOST, _CONTROL = "#f6d7a7", "#dfe7ef", "#ffffff", "#777777"
_CONTROLLER = "controller"
"""Key of the controller's place among those of the nodes."""


def draw(lab: Lab, path: Path) -> None:
    """Write the drawing to `path` as SVG, and beside it as PNG."""
    with style.context(STYLE):
        figure = Figure(figsize=(9.0, 4.2) if len(lab.switches) <= 2 else (9.0, 7.6), layout="constrained")
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.axis("off")
        axes.set_title(lab.title)
        _Drawing(figure, axes, lab)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=110)


class _Drawing:
    """Draws nodes, the cables between them, and labels on the visible parts of the cables."""

    def __init__(self, figure: Figure, axes: Axes, lab: Lab) -> None:
        self._axes = axes
        self._point = figure.dpi / 72
        """One point in pixels."""
        self._places = {**_places(lab), _CONTROLLER: _centre(lab)}
        self._boxes = {name: self._node(name, *_looks(lab, name)) for name in lab.switches}
        for machine, interfaces in lab.machines.items():
            box = self._node(interfaces[0].name, _addresses(machine, interfaces), _HOST)
            self._boxes |= dict.fromkeys((host.name for host in interfaces), box)
        cards = lab.cards()
        cables = [((link.a, link.b), "black", "-") for link in lab.links]
        if lab.control_port:
            address = f"controller\n{lab.controller.ip}" if lab.controller else "controller"
            self._boxes[_CONTROLLER] = self._node(_CONTROLLER, address, _HOST, dashed=True)
            for switch in lab.switches.values():
                ends = (Endpoint(node=switch.name, port=lab.control_port), Endpoint(node=_CONTROLLER, port=0))
                cables.append((ends, _CONTROL, "--"))
        self._aside = self._beside_each_other([ends for ends, _, _ in cables])
        for ends, colour, line in cables:
            points = zip(*(self._places[end.node] + self._aside[end] for end in ends), strict=True)
            axes.plot(*points, color=colour, linewidth=1.5, linestyle=line, zorder=1)
        axes.margins(0.12)
        axes.autoscale_view()
        axes.autoscale(enable=False)
        figure.draw_without_rendering()  # fixes the positions and sizes of everything
        for ends, _, _ in cables:
            for end, far in (ends, ends[::-1]):
                card = cards.get(end)
                host = lab.hosts.get(end.node)
                interface = host.interface if host else None
                if end.node == _CONTROLLER:
                    card = lab.switches[far.node].cards.get(lab.control_port)
                if card:
                    self._label(end, far, f"{interface}: {card}" if interface else card, card=True)
                elif end.node in lab.switches:
                    self._label(end, far, str(end.port))
                elif interface:
                    self._label(end, far, interface)

    def _beside_each_other(self, cables: Sequence[tuple[Endpoint, Endpoint]]) -> dict[Endpoint, _Vector]:
        """Return how far each end of a cable is moved, so that no other one between the same two hides it."""
        between: dict[tuple[_Point, ...], list[tuple[Endpoint, Endpoint]]] = {}
        for ends in cables:
            between.setdefault(tuple(sorted(self._places[end.node] for end in ends)), []).append(ends)
        aside: dict[Endpoint, _Vector] = {}
        for (first, last), parallel in between.items():
            x, y = np.subtract(last, first)
            across = np.array([-y, x]) / max(math.hypot(x, y), 1e-9)
            for number, ends in enumerate(parallel):
                moved = across * _PARALLEL * (number - (len(parallel) - 1) / 2)
                aside |= dict.fromkeys(ends, moved)
        return aside

    def _node(self, name: str, text: str, colour: str, *, dashed: bool = False) -> Text:
        line = "--" if dashed else "-"
        pad = f"round,pad={_NODE_PAD}"
        box = {"boxstyle": pad, "facecolor": colour, "edgecolor": "black", "linestyle": line}
        place = self._places[name]
        return self._axes.text(
            *place, text, ha="center", va="center", fontsize=_NODE_POINTS, bbox=box, zorder=3
        )

    def _label(self, end: Endpoint, far: Endpoint, text: str, *, card: bool = False) -> None:
        """Write a label on a cable, just outside of the node at its end."""
        colours = ("#e7f3e4", "#99aa99") if card else ("white", "none")
        pad = f"square,pad={_LABEL_PAD}"
        box = {"boxstyle": pad, "facecolor": colours[0], "edgecolor": colours[1]}
        label = self._axes.text(
            0, 0, text, ha="center", va="center", fontsize=_LABEL_POINTS, bbox=box, zorder=2
        )
        to_pixels = self._axes.transData
        begin, target = to_pixels.transform(
            [self._places[node.node] + self._aside[node] for node in (end, far)]
        )
        way = (target - begin) / np.hypot(*(target - begin))
        pads = (_NODE_POINTS * _NODE_PAD, _LABEL_POINTS * _LABEL_PAD, _GAP_POINTS)
        distance = _clear(self._boxes[end.node], label, sum(pads) * self._point, way)
        label.set_position(tuple(to_pixels.inverted().transform(begin + distance * way)))


def _clear(near: Text, other: Text, pads: float, way: _Vector) -> float:
    """Return the distance in a direction at which another text's box does not touch this one's, in pixels."""
    extents = [text.get_window_extent() for text in (near, other)]
    across = sum(float(extent.width) for extent in extents) / 2 + pads
    along = sum(float(extent.height) for extent in extents) / 2 + pads
    sides = zip((across, along), way, strict=True)
    return min(side / abs(float(part)) for side, part in sides if abs(part) > 1e-9)


def _looks(lab: Lab, node: str) -> tuple[str, str]:
    """Return text and colour of a switch."""
    switch = lab.switches[node]
    if switch.backend is Backend.HARDWARE:
        return f"{node}\nreal board", _REAL
    return f"{node}\n{switch.profile.name}", _EMULATED


def _addresses(machine: str, interfaces: Sequence[Host]) -> str:
    """Return the text of a host: name and addresses, with the names of several interfaces."""
    return "\n".join([machine, *(f"{host.interface or ''} {host.ip}".strip() for host in interfaces)])


def _places(lab: Lab) -> dict[str, _Point]:
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


def _between(ends: Sequence[_Point], others: Collection[_Point]) -> _Point:
    """Return a place for a host with several cables: amid their ends, but outside, and near no other host."""
    x, y = np.mean(ends, axis=0)
    angle, radius = math.atan2(y, x / 1.35), math.hypot(x / 1.35, y)
    if radius < _SWITCHES_AT / 2:  # opposite each other: above
        angle = math.pi / 2
    radius = max(radius, _SWITCHES_AT)
    while any(math.dist(_at(angle, radius), other) < _APART for other in others):
        radius += _APART
    return _at(angle, radius)


def _centre(lab: Lab) -> _Point:
    """Return the controller's place: the middle, or below the cable if there are only two switches."""
    return (0.0, 0.0) if len(lab.switches) > 2 else (0.0, -1.0)


def _at(angle: float, radius: float) -> _Point:
    return radius * math.cos(angle) * 1.35, radius * math.sin(angle)
