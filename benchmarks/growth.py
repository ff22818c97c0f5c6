"""Measure how admission scales with the network: bidirectional rings, and random networks of 4-port boards.

Flows cross up to five switches between random hosts. ``python -m benchmarks.growth KIND SWITCHES SCHEME``
measures one network in a process of its own and prints JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.encoding import encoded
from benchmarks.measure import MeasuredRow, run
from loko.admission import Admission, Admitted
from loko.admission.schemes import SchemeVariant, admission_of, variant_named
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import Lab, lab_of, ring_lab, stays_loaded
from loko.topology.ring import Ring
from loko_testbed.reproduce.plots.canvas import EDGE, REFERENCE, SECOND, STYLE

SIZES: Final = (31, 100, 300, 1000, 4000)
GOAL_SWITCHES: Final = 1000
GOALS_PER_S: Final = {"full-rate": 50_000, "packet-granular": 10_000}
GOAL_FIRST_MS: Final = 50
ON_A_PATH: Final = 5
"""Most switches that a flow crosses."""
REQUESTS_PER_SWITCH: Final = 8
"""Requests from each host; a host of a ring has no more others within `ON_A_PATH` switches."""
_ROUNDS: Final = 3
_SEED: Final = 1


class NetworkKind(StrEnum):
    """Kinds of networks. Every switch has one host."""

    RING = "ring"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The result for a network with one scheme. Times are CPU time."""

    kind: str
    scheme: str
    switches: int
    load_ms: float
    """Time to create the lab from its values, as if read from a file."""
    first_ms: float
    """Time from the lab to the first answer."""
    requests_per_s: float
    """Requests one after another in an initially empty network, between pairs of hosts not requested
    before."""
    requests_again_per_s: float
    """Likewise when the requests are repeated after all flows were released."""
    cycles_per_s: float
    """Requests of flows that fit, each cancelled at once."""
    accepted: int
    requests: int
    memory_bytes: int
    """Memory allocated after all requests, without the lab and the flows themselves."""


def measure(sizes: Sequence[int], *, tell: Callable[[str], None]) -> list[Growth]:
    """Measure every network with every scheme, each in its own process. Raises `BenchmarkError`."""
    growths = []
    for kind in NetworkKind:
        for scheme in GOALS_PER_S:
            for switches in sizes:
                tell(f"  {kind}, {switches} switches, {scheme}")
                output = run([sys.executable, "-m", "benchmarks.growth", kind, switches, scheme]).output
                growths.append(Growth(**json.loads(output.splitlines()[-1])))
    return growths


def network_of(kind: NetworkKind, switches: int) -> Lab:
    """Create a network of that kind; random ones are the same on every machine."""
    if kind is NetworkKind.RING:
        return ring_lab(Ring(switches=switches, one_way=False))
    boards = Ring(switches=switches, hosts_per_switch=2).written_out()["switches"]
    hosts = Ring(switches=switches).written_out()["hosts"]
    links = _random_links(switches)
    values = {"switches": boards, "hosts": hosts, "links": links, "control_port": 0}
    return lab_of({"name": "random", "title": "Random network", **values})


def _random_links(switches: int) -> list[dict[str, object]]:
    """Return links: hosts at ports 1; at ports 2 to 4 a random chain of all switches, then random pairs."""
    chance = random.Random(_SEED)
    free = {number: [4, 3, 2] for number in range(1, switches + 1)}
    links: list[dict[str, object]] = [{"a": f"h{number}", "b": f"s{number}:1"} for number in free]

    def connect(near: int, other: int) -> None:
        links.append({"a": f"s{near}:{free[near].pop()}", "b": f"s{other}:{free[other].pop()}"})

    order = chance.sample(list(free), switches)
    for near, other in pairwise(order):
        connect(near, other)
    left = [number for number, ports in free.items() for _ in ports]
    chance.shuffle(left)
    for near, other in zip(left[::2], left[1::2], strict=False):
        if near != other:
            connect(near, other)
    return links


def _flows(lab: Lab) -> list[Flow]:
    """Return flows in random order, from every host to others within `ON_A_PATH` switches."""
    chance = random.Random(_SEED)
    asked = []
    for source in lab.hosts:
        near = _near(lab, source)
        asked += [(source, end) for end in chance.sample(near, min(REQUESTS_PER_SWITCH, len(near)))]
    chance.shuffle(asked)
    return [
        Flow(f"f{number}", source, destination, 5000, 6000, 100e3, 306.0, 306)
        for number, (source, destination) in enumerate(asked)
    ]


def _near(lab: Lab, source: str) -> list[str]:
    seen, level = {source: None}, [far.node for _, far in lab.outgoing_cables(source)]
    for _ in range(ON_A_PATH):
        seen |= dict.fromkeys(level)
        ends = [far.node for here in level for _, far in lab.outgoing_cables(here)]
        level = [node for node in dict.fromkeys(ends) if node in lab.switches and node not in seen]
        seen |= dict.fromkeys(node for node in ends if node in lab.hosts)
    return [node for node in seen if node in lab.hosts and node != source]


def _measured(kind: NetworkKind, switches: int, scheme: str) -> Growth:
    network_of(kind, 31)  # warm up: imports and cached files
    begin = time.process_time()
    lab = network_of(kind, switches)
    load_ms = _ms_since(begin)
    flows = _flows(lab)
    stays_loaded()  # as `loko plan` and `loko serve` do
    choice = variant_named(scheme)
    begin = time.process_time()
    control = admission_of(lab, choice, EVALUATION)
    control.check(flows[0])
    first_ms = _ms_since(begin)
    accepted, first_s = _requested(control, flows)
    first, again, cycles = [first_s], [], []
    for _ in range(_ROUNDS if switches <= GOAL_SWITCHES else 1):
        control.release_all()
        again.append(_requested(control, flows)[1])
        control.release_all()
        cycles.append(_cycled(control, flows))
        control = admission_of(lab, choice, EVALUATION)
        first.append(_requested(control, flows)[1])
    return Growth(
        kind=kind,
        scheme=scheme,
        switches=switches,
        load_ms=load_ms,
        first_ms=first_ms,
        requests_per_s=len(flows) / median(first),
        requests_again_per_s=len(flows) / median(again),
        cycles_per_s=len(flows) / median(cycles),
        accepted=accepted,
        requests=len(flows),
        memory_bytes=_memory_bytes(lab, choice, flows),
    )


def _requested(control: Admission, flows: Sequence[Flow]) -> tuple[int, float]:
    """Request all flows; return how many fit, and the CPU time in s."""
    begin = time.process_time()
    for flow in flows:
        control.request(flow)
    return len(control.admitted), time.process_time() - begin


def _cycled(control: Admission, flows: Sequence[Flow]) -> float:
    begin = time.process_time()
    for flow in flows:
        if isinstance(control.request(flow), Admitted):
            control.cancel(flow.id)
    return time.process_time() - begin


def _ms_since(begin: float) -> float:
    return 1e3 * (time.process_time() - begin)


def _memory_bytes(lab: Lab, choice: SchemeVariant, flows: Sequence[Flow]) -> int:
    tracemalloc.start()
    control = admission_of(lab, choice, EVALUATION)
    _requested(control, flows)
    allocated_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return allocated_bytes


def of_values(rows: Sequence[Mapping[str, Any]]) -> list[Growth]:
    """Restore results from JSON values."""
    return [Growth(**row) for row in rows]


def rows(growths: Sequence[Growth]) -> list[MeasuredRow]:
    """Return rows that compare the results with the goals."""
    lines: list[MeasuredRow] = []
    for growth in growths:
        where = f"{growth.kind} of {growth.switches:,}, {growth.scheme}"
        if growth.switches == GOAL_SWITCHES:
            goal = GOALS_PER_S[growth.scheme]
            lines += [
                (
                    f"{where}: requests a second",
                    f"{growth.requests_per_s:,.0f}",
                    f"goal {goal:,}: {_reached(growth.requests_per_s >= goal)}; asked again"
                    f" {growth.requests_again_per_s:,.0f}, request-release cycles {growth.cycles_per_s:,.0f}",
                ),
                (
                    f"{where}: first answer",
                    f"{growth.first_ms:.1f} ms",
                    f"goal {GOAL_FIRST_MS} ms: {_reached(growth.first_ms <= GOAL_FIRST_MS)}",
                ),
            ]
        if growth.switches in (GOAL_SWITCHES, max(each.switches for each in growths)):
            lines.append(
                (
                    f"{where}: memory",
                    f"{growth.memory_bytes / 2**20:.0f} MiB",
                    f"{growth.memory_bytes / growth.switches / 1024:.0f} KiB a switch",
                )
            )
    return lines


def _reached(reached: bool) -> str:
    return "reached" if reached else "**missed**"


def pictures(growths: Sequence[Growth]) -> dict[str, bytes]:
    """Return the picture by file suffix, without date and with reproducible identifiers."""
    with mpl.rc_context(STYLE):
        return encoded(_draw(growths))


def _draw(growths: Sequence[Growth]) -> Figure:
    figure = Figure(figsize=(9.6, 3.6))
    panels: tuple[tuple[str, Callable[[Growth], float], str], ...] = (
        ("requests a second", lambda growth: growth.requests_per_s, "new pairs of hosts, up to 5 switches"),
        ("first answer [ms]", lambda growth: growth.first_ms, "from the lab to the first answer"),
        ("memory [MiB]", lambda growth: growth.memory_bytes / 2**20, "of admission, beside the lab"),
    )
    for axes, (label, value, title) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        axes.spines["right"].set_visible(False)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for scheme, colour in zip(GOALS_PER_S, (SECOND, EDGE), strict=True):
            for kind, style in zip(NetworkKind, ("o-", "s--"), strict=True):
                mine = [growth for growth in growths if growth.scheme == scheme and growth.kind == kind]
                numbers = [growth.switches for growth in mine]
                axes.plot(
                    numbers,
                    [max(value(growth), 0.01) for growth in mine],
                    style,
                    color=colour,
                    markersize=3.5,
                    linewidth=1,
                    label=f"{scheme}, {kind}",
                )
        axes.set_xlabel("switches")
        axes.set_ylabel(label)
        axes.set_title(title, loc="left", fontsize=9)
    speed, first, _ = figure.axes
    for goal in GOALS_PER_S.values():
        speed.plot([GOAL_SWITCHES], [goal], "_", color=REFERENCE, markersize=14)
    first.plot([GOAL_SWITCHES], [GOAL_FIRST_MS], "_", color=REFERENCE, markersize=14, label="goal")
    speed.set_ylim(bottom=1e3)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=5, frameon=False, fontsize=7.5)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    return figure


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(NetworkKind(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))))
