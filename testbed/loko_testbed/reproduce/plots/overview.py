"""Drawings for an overview: the parts of the testbed, and the ring with a flow's way round it.

`loko_testbed.reproduce.plots.explained` writes them with the others (`make drawings`).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

from loko.notebook_api import plan
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko_testbed.reproduce.plots.drawing import Line, Point, arrows, dots, drawing, frames, lines, texts
from loko_testbed.reproduce.plots.lab_places import host_angles, switch_places
from loko_testbed.reproduce.plots.marks import Spec
from loko_testbed.reproduce.plots.theme import EDGE, REFERENCE, SECOND, SOFT, WIDTH

_DATA, _LOKO, _SWITCHES, _EVALUATION = "#f3efe4", "#dfe8f7", "#e3efe3", "#f7e3e3"
_BOXES: Final = {
    "labs and profiles": ((0, 95), _DATA, "data that all others read:\nnetworks, switches, figures"),
    "planner": ((230, 0), _LOKO, "loko plan: which flows fit,\nwith which guarantee"),
    "service": ((230, 95), _LOKO, "loko serve: admits flows,\nkeeps them in the tables"),
    "application": ((230, 190), _LOKO, "OpenFlow application\n(os-ken or Ryu)"),
    "bench": ((0, 0), _EVALUATION, "loko bench: measures a switch,\nwrites its profile"),
    "evaluation": ((0, 190), _EVALUATION, "loko evaluate: runs, records,\nfigures, claims"),
    "boards": ((460, 190), _SWITCHES, "emulated boards (Rust)\nor real ones"),
    "hosts": ((460, 95), _SWITCHES, "hosts that send, in virtual\nor real time"),
    "page": ((460, 0), _LOKO, "web page, REST:\nrequests of users"),
}
"""Each part: the upper left corner of its box, its colour, and what it is."""
_BOX: Final = (152, 50)
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
_RADIUS: Final = 165
"""Radius of the circle of switches, in pixels."""
_HOST_AWAY: Final = 27
"""Distance of a host from its switch, in pixels."""
_HOPS: Final = 4
"""Switches on the way of the flow that is drawn."""
_SMALL: Final = 8.5
"""Font size of what stands beside arrows and below names."""


def draw_components() -> Spec:
    """Draw the parts of the testbed, and what passes between them."""
    width, height = _BOX
    corners = {name: corner for name, (corner, _, _) in _BOXES.items()}
    rows = [
        {"x": left, "y": top, "x2": left + width, "y2": top + height, "fill": fill, "stroke": EDGE}
        for (left, top), fill, _ in _BOXES.values()
    ]
    middles = [(left + width / 2, top) for left, top in corners.values()]
    ends = [_between(corners[here], corners[there]) for here, there, _ in _ARROWS]
    told: dict[str, list[tuple[Point, str]]] = {"left": [], "center": []}
    for (begin, end), (_, _, text) in zip(ends, _ARROWS, strict=True):
        x, y = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
        if begin[0] == end[0]:
            told["left"].append(((x + 6, y), text))
        else:
            told["center"].append(((x - (14 if begin[1] != end[1] else 0), y - 7), text))
    here, there, text = _RUNS
    (left, top), (right, _) = ((x + width / 2, y + height) for x, y in (corners[here], corners[there]))
    below = top + 20
    told["center"].append((((left + right) / 2, below + 8), text))
    return drawing(
        [
            frames(rows, cornerRadius=5),
            texts(
                [((x, y + 14), name) for (x, y), name in zip(middles, corners, strict=True)],
                fontWeight="bold",
            ),
            texts(
                [((x, y + 34), part[2]) for (x, y), part in zip(middles, _BOXES.values(), strict=True)],
                font=_SMALL,
            ),
            *arrows([*ends, ((right, below), (right, top))]),
            lines([((left, top), (left, below)), ((left, below), (right, below))]),
            *(texts(placed, font=_SMALL, color=SOFT, align=align) for align, placed in told.items()),
        ]
    )


def _between(here: Point, there: Point) -> Line:
    """Return an arrow between boxes: vertical within a column, else from side to side."""
    width, height = _BOX
    if here[0] == there[0]:
        return (here[0] + width / 2, here[1] + height), (there[0] + width / 2, there[1])
    begin, end = (width, 0) if here[0] < there[0] else (0, width)
    return (here[0] + begin, here[1] + height / 2), (there[0] + end, there[1] + height / 2)


def draw_ring(lab: Lab, frame_bytes: int) -> Spec:
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
    places = switch_places(lab, 2 * _RADIUS * math.sin(math.pi / len(switches)))
    angles = host_angles(lab, places)
    for name in switches:
        x, y = places[name]
        places |= {
            host: (x + _HOST_AWAY * math.cos(angles[host]), y + _HOST_AWAY * math.sin(angles[host]))
            for host in hosts_at[name]
        }
    cables = [(link.a.node, link.b.node) for link in lab.links]
    nodes = [flow.source, *(hop.switch for hop in admitted.path), flow.destination]
    terms = " + ".join(f"{delay_ns / 1e6:.3f}" for delay_ns in admitted.delays_ns)
    guarantee_ms = math.ceil(admitted.guarantee_ns / 1e3) / 1e3
    told = f"from {flow.source} to {flow.destination}\n{terms}\n= {guarantee_ms:.3f} ms at most"

    def beside(names: list[str], distance: float) -> list[tuple[Point, str]]:
        return [((distance * places[name][0], distance * places[name][1]), name) for name in names]

    return drawing(
        [
            lines([(places[here], places[there]) for here, there in cables], color=SOFT),
            lines(
                [(places[here], places[there]) for here, there in pairwise(nodes)],
                color=REFERENCE,
                strokeWidth=2.6,
            ),
            dots([places[name] for name in switches], shape="square", size=70, fill="#b6c2d6"),
            dots([places[name] for name in lab.hosts], size=20, fill="white"),
            texts(beside([flow.source, flow.destination], 1.09), font=10),
            texts(beside([hop.switch for hop in admitted.path], 0.88), font=10, color=SECOND),
            texts([((0, 0), told)], font=12),
            texts([((-WIDTH / 2, -1.4 * _RADIUS), lab.title)], font=12, align="left"),
        ]
    )
