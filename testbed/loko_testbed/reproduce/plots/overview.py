"""Drawings for an overview: the parts of the testbed, and the ring with a flow's way round it.

`loko_testbed.reproduce.plots.explained` writes them with the others (`make drawings`).
"""

from __future__ import annotations

import math
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from loko.notebook_api import plan
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko_testbed.reproduce.plots.canvas import EDGE, REFERENCE, SECOND, SOFT

_WIDTH_INCHES: Final = 7.6
_DATA, _LOKO, _SWITCHES, _EVALUATION = "#f3efe4", "#dfe8f7", "#e3efe3", "#f7e3e3"
_BOXES: Final = {
    "labs and profiles": ((0.02, 0.42), _DATA, "data that all others read:\nnetworks, switches, figures"),
    "planner": ((0.38, 0.74), _LOKO, "loko plan: which flows fit,\nwith which guarantee"),
    "service": ((0.38, 0.42), _LOKO, "loko serve: admits flows,\nkeeps them in the tables"),
    "application": ((0.38, 0.10), _LOKO, "OpenFlow application\n(os-ken or Ryu)"),
    "bench": ((0.02, 0.74), _EVALUATION, "loko bench: measures a switch,\nwrites its profile"),
    "evaluation": ((0.02, 0.10), _EVALUATION, "loko evaluate: runs, records,\nfigures, claims"),
    "boards": ((0.74, 0.10), _SWITCHES, "emulated boards (Rust)\nor real ones"),
    "hosts": ((0.74, 0.42), _SWITCHES, "hosts that send, in virtual\nor real time"),
    "page": ((0.74, 0.74), _LOKO, "web page, REST:\nrequests of users"),
}
"""Each part: the lower left corner of its box, its colour, and what it is."""
_BOX: Final = (0.24, 0.17)
_ARROWS: Final = (
    ("bench", "labs and profiles", "profile"),
    ("labs and profiles", "planner", ""),
    ("labs and profiles", "service", ""),
    ("labs and profiles", "evaluation", ""),
    ("planner", "service", "same admission"),
    ("page", "service", "flows"),
    ("service", "application", "entries"),
    ("application", "boards", "OpenFlow"),
    ("hosts", "boards", "frames"),
)
_RUNS: Final = ("evaluation", "boards", "runs them, and records every packet")
"""The arrow below all boxes."""
_HOPS: Final = 4
"""Switches on the way of the flow that is drawn."""
_CENTRED: Final[dict[str, Any]] = {"ha": "center", "va": "center"}
_LINE: Final[dict[str, Any]] = {
    "arrowstyle": "-|>",
    "color": EDGE,
    "linewidth": 0.9,
    "shrinkA": 0,
    "shrinkB": 0,
}


def draw_components() -> Figure:
    """Draw the parts of the testbed, and what passes between them."""
    figure = Figure(figsize=(_WIDTH_INCHES, 3.9))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.axis("off")
    width, height = _BOX
    for name, ((left, bottom), colour, told) in _BOXES.items():
        shape = "round,pad=0,rounding_size=0.015"
        axes.add_patch(
            FancyBboxPatch(
                (left, bottom), width, height, boxstyle=shape, facecolor=colour, edgecolor=EDGE, linewidth=0.8
            )
        )
        middle = left + width / 2
        axes.text(middle, bottom + 0.135, name, **_CENTRED, color=EDGE, fontsize=9.5, weight="bold")
        axes.text(middle, bottom + 0.06, told, **_CENTRED, color=EDGE, fontsize=7.6)
    for here, there, told in _ARROWS:
        _arrow(axes, _BOXES[here][0], _BOXES[there][0], told)
    here, there, told = _RUNS
    (left, bottom), (left_there, _) = _BOXES[here][0], _BOXES[there][0]
    begin, end = (left + width, bottom + 0.03), (left_there, bottom + 0.03)
    axes.annotate("", xy=end, xytext=begin, arrowprops={**_LINE, "connectionstyle": "arc3,rad=0.13"})
    axes.text((begin[0] + end[0]) / 2, 0.012, told, ha="center", va="bottom", color=SOFT, fontsize=7.6)
    return figure


def _arrow(axes: Axes, here: tuple[float, float], there: tuple[float, float], told: str) -> None:
    """Draw an arrow between boxes: vertical within a column, else from side to side."""
    (left, bottom), (left_there, bottom_there) = here, there
    width, height = _BOX
    is_upright = left == left_there
    if is_upright:
        begin, end = (left + width / 2, bottom), (left + width / 2, bottom_there + height)
    elif left < left_there:
        begin, end = (left + width, bottom + height / 2), (left_there, bottom_there + height / 2)
    else:
        begin, end = (left, bottom + height / 2), (left_there + width, bottom_there + height / 2)
    axes.annotate("", xy=end, xytext=begin, arrowprops=_LINE)
    x, y = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
    if is_upright:
        axes.text(x + 0.01, y, told, ha="left", va="center", color=SOFT, fontsize=7.6)
    else:
        axes.text(x - 0.01, y + 0.015, told, ha="center", va="bottom", color=SOFT, fontsize=7.6)


def draw_ring(lab: Lab, frame_bytes: int) -> Figure:
    """Draw a ring's switches and hosts, and a flow over several, with what each adds to its delay."""
    switches = list(lab.switches)
    hosts_at: dict[str, list[str]] = {name: [] for name in switches}
    for host in lab.hosts:
        end = lab.far_end(host, 1)
        assert end is not None, "a lab's host has a cable"
        hosts_at[end.node].append(host)
    flow = Flow(
        id="f",
        source=hosts_at[switches[0]][0],
        destination=hosts_at[switches[_HOPS - 1]][-1],
        udp_source=1,
        udp_destination=2,
        rate_bps=70e3,
        burst_bytes=float(frame_bytes),
        frame_bytes=frame_bytes,
    )
    (admitted,) = plan(lab, [flow]).accepted
    places = {name: _on_circle(number, len(switches), 1.0) for number, name in enumerate(switches)}
    for number, name in enumerate(switches):
        count = len(hosts_at[name])
        for place, host in enumerate(hosts_at[name]):
            aside = (place - (count - 1) / 2) * 0.4
            places[host] = _on_circle(number + aside, len(switches), 1.16)
    figure = Figure(figsize=(_WIDTH_INCHES, 4.6))
    axes = figure.add_axes((0, 0, 1, 0.93))
    axes.set_aspect("equal")
    axes.axis("off")
    cables = list(zip(switches, [*switches[1:], switches[0]], strict=True))
    cables += [(name, host) for name in switches for host in hosts_at[name]]
    for here, there in cables:
        axes.plot(*zip(places[here], places[there], strict=True), color=SOFT, linewidth=0.8, zorder=1)
    nodes = [flow.source, *(hop.switch for hop in admitted.path), flow.destination]
    axes.plot(*zip(*(places[name] for name in nodes), strict=True), color=REFERENCE, linewidth=2.2, zorder=2)
    x, y = zip(*(places[name] for name in switches), strict=True)
    axes.scatter(x, y, s=52, marker="s", color="#b6c2d6", edgecolor=EDGE, zorder=3)
    x, y = zip(*(places[name] for name in lab.hosts), strict=True)
    axes.scatter(x, y, s=14, color="white", edgecolor=EDGE, zorder=3)
    for name in (flow.source, flow.destination):
        across, up = places[name]
        axes.text(1.07 * across, 1.07 * up, name, **_CENTRED, color=EDGE, fontsize=8.5)
    for hop in admitted.path:
        across, up = places[hop.switch]
        axes.text(0.88 * across, 0.88 * up, hop.switch, **_CENTRED, color=SECOND, fontsize=8.5)
    terms = " + ".join(f"{delay_ns / 1e6:.3f}" for delay_ns in admitted.delays_ns)
    guarantee_ms = math.ceil(admitted.guarantee_ns / 1e3) / 1e3
    told = f"from {flow.source} to {flow.destination}\n{terms}\n= {guarantee_ms:.3f} ms at most"
    axes.text(0, 0, told, **_CENTRED, color=EDGE, fontsize=10, linespacing=1.6)
    figure.text(0.02, 0.95, lab.title, color=EDGE, fontsize=10)
    return figure


def _on_circle(number: float, count: int, radius: float) -> tuple[float, float]:
    """Return a point on a circle; points are numbered clockwise from the top."""
    angle = 2 * math.pi * number / count
    return radius * math.sin(angle), radius * math.cos(angle)
