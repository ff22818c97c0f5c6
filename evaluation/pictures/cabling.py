"""A drawing of a lab: which cable goes from where to where, with ports and network cards."""

from __future__ import annotations

import math
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.pictures.canvas import STYLE
from loko.lab import Backend, Lab

_Point = tuple[float, float]
_SWITCHES_AT = 1.0
"""Radius of the circle on which the switches stand; the controller is in its middle."""
_HOSTS_AT = 1.95
_FAN = 0.62
"""Angle between the hosts of a switch."""
_REAL, _EMULATED, _HOST, _CONTROL = "#f6d7a7", "#dfe7ef", "#ffffff", "#777777"


def draw(lab: Lab, path: Path) -> None:
    """Write the drawing as SVG and as PNG beside it."""
    figure = Figure(figsize=(9.0, 4.2) if len(lab.switches) <= 2 else (9.0, 7.6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.axis("off")
    places = _places(lab)
    control = _centre(lab)
    cards = lab.cards()
    for link in lab.links:
        a, b = places[link.a.node], places[link.b.node]
        axes.plot(*zip(a, b, strict=True), color="black", linewidth=1.6, zorder=1)
        for end, near, far in ((link.a, a, b), (link.b, b, a)):
            if end in cards:
                _label(axes, _between(near, far, 0.47), cards[end], card=True)
            elif end.node in lab.switches:
                _label(axes, _between(near, far, 0.29), str(end.port))
    if lab.control_port:
        for switch in lab.switches.values():
            _control(axes, places[switch.name], control, lab.control_port, switch.cards.get(lab.control_port))
        address = f"controller\n{lab.controller.ip}" if lab.controller else "controller"
        _node(axes, control, address, _HOST, dashed=True)
    for name, host in lab.hosts.items():
        _node(axes, places[name], f"{name}\n{host.ip}", _HOST)
    for switch in lab.switches.values():
        real = switch.backend is Backend.HARDWARE
        what = "real board" if real else switch.profile.name
        _node(axes, places[switch.name], f"{switch.name}\n{what}", _REAL if real else _EMULATED)
    axes.set_title(lab.title)
    axes.margins(0.12)
    with style.context(STYLE):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=110)


def _places(lab: Lab) -> dict[str, _Point]:
    """Switches on a circle, each with its hosts outside."""
    places = {}
    count = len(lab.switches)
    for index, name in enumerate(lab.switches):
        first = math.pi if count <= 2 else math.pi / 2
        angle = first - 2 * math.pi * index / count
        places[name] = _at(angle, _SWITCHES_AT)
        hosts = [end.node for _, end in lab.neighbours(name) if end.node in lab.hosts]
        for number, host in enumerate(hosts):
            turn = (number - (len(hosts) - 1) / 2) * _FAN * (1 if count == 2 and index == 1 else -1)
            places[host] = _at(angle + turn, _HOSTS_AT)
    return places


def _centre(lab: Lab) -> _Point:
    """Between two switches there is their cable, so the controller stands below it."""
    return (0.0, 0.0) if len(lab.switches) > 2 else (0.0, -1.0)


def _at(angle: float, radius: float) -> _Point:
    return radius * math.cos(angle) * 1.25, radius * math.sin(angle)


def _between(a: _Point, b: _Point, share: float) -> _Point:
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def _control(axes: Axes, board: _Point, controller: _Point, port: int, card: str | None) -> None:
    axes.plot(*zip(board, controller, strict=True), color=_CONTROL, linewidth=1.2, linestyle="--", zorder=1)
    _label(axes, _between(board, controller, 0.27), str(port))
    if card:
        _label(axes, _between(board, controller, 0.5), card, card=True)


def _node(axes: Axes, place: _Point, text: str, colour: str, *, dashed: bool = False) -> None:
    line = "--" if dashed else "-"
    box = {"boxstyle": "round,pad=0.5", "facecolor": colour, "edgecolor": "black", "linestyle": line}
    axes.text(*place, text, ha="center", va="center", fontsize=9, bbox=box, zorder=3)


def _label(axes: Axes, place: _Point, text: str, *, card: bool = False) -> None:
    colours = (
        {"facecolor": "#e7f3e4", "edgecolor": "#99aa99"}
        if card
        else {"facecolor": "white", "edgecolor": "none"}
    )
    box = {"boxstyle": "square,pad=0.15", **colours}
    axes.text(*place, text, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
