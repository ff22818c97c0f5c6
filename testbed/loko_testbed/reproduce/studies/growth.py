"""How admission grows with the network: bidirectional rings, and random networks of 4-port boards.

Flows cross up to five switches between random hosts. Each network is measured in a process of its own.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from multiprocessing import get_context
from statistics import median
from typing import Final, NamedTuple

from loko.admission import Admission, Admitted
from loko.admission.schemes import SchemeVariant, admission_of, variant_named
from loko.document import StrictModel
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import Lab, lab_of, ring_lab, stays_loaded
from loko.topology.ring import Ring
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study

SCHEMES: Final = ("full-rate", "packet-granular")
ON_A_PATH: Final = 5
"""Most switches that a flow crosses."""
REQUESTS_PER_SWITCH: Final = 8
"""Requests from each host; a host of a ring has no more others within `ON_A_PATH` switches."""
_ROUNDS: Final = 3
_ROUNDS_UP_TO: Final = 1000
"""Switches of the largest network that is measured several times."""
_NETWORK_SEED: Final = 1
_MIB: Final = 1 << 20


class GrowthSize(StrictModel):
    """How much is measured."""

    switches: list[int]
    """The size of each network."""


class GrowthTask(NamedTuple):
    """A network with a scheme."""

    kind: str
    scheme: str
    switches: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.switches} switches, {self.scheme}"


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


def tasks(size: GrowthSize, seed: int) -> list[GrowthTask]:
    """Return every network with every scheme."""
    return [
        GrowthTask(kind, scheme, switches, seed)
        for kind in NetworkKind
        for scheme in SCHEMES
        for switches in size.switches
    ]


def measure(task: GrowthTask) -> Rows:
    """Measure a network in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        return [asdict(pool.submit(_measured, task).result())]


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
    chance = random.Random(_NETWORK_SEED)
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


def _flows(lab: Lab, seed: int) -> list[Flow]:
    """Return flows in random order, from every host to others within `ON_A_PATH` switches."""
    chance = random.Random(seed)
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


def _measured(task: GrowthTask) -> Growth:
    kind, scheme, switches = NetworkKind(task.kind), task.scheme, task.switches
    network_of(kind, 31)  # warm up: imports and cached files
    begin = time.process_time()
    lab = network_of(kind, switches)
    load_ms = _ms_since(begin)
    flows = _flows(lab, task.seed)
    stays_loaded()  # as `loko plan` and `loko serve` do
    choice = variant_named(scheme)
    begin = time.process_time()
    control = admission_of(lab, choice, EVALUATION)
    control.check(flows[0])
    first_ms = _ms_since(begin)
    accepted, first_s = _requested(control, flows)
    first, again, cycles = [first_s], [], []
    for _ in range(_ROUNDS if switches <= _ROUNDS_UP_TO else 1):
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


def show(rows: Rows) -> Outcome:
    """Show speed, first answer and memory by the number of switches."""
    growths = [Growth(**row) for row in rows]
    panels: tuple[tuple[str, Callable[[Growth], float], str], ...] = (
        ("thousand requests a second", lambda growth: growth.requests_per_s / 1e3, "new pairs of hosts"),
        ("first answer [ms]", lambda growth: growth.first_ms, "from the lab to the first answer"),
        ("memory [MiB]", lambda growth: growth.memory_bytes / _MIB, "of admission, beside the lab"),
    )
    return Outcome(
        chart=Chart(
            panels=[
                LinePanel(
                    title=title,
                    x=ChartAxis(label="switches", log=True),
                    y=ChartAxis(label=label, log=True),
                    curves=[
                        ChartCurve(
                            label=f"{scheme}, {kind}",
                            x=[growth.switches for growth in own],
                            y=[max(value(growth), 0.01) for growth in own],
                            dashed=kind is NetworkKind.RANDOM,
                        )
                        for kind in NetworkKind
                        for scheme in SCHEMES
                        if (own := [each for each in growths if (each.kind, each.scheme) == (kind, scheme)])
                    ],
                )
                for label, value, title in panels
            ],
            columns=2,
            caption="CPU time of one process",
        ),
        findings={name: value for growth in growths for name, value in _findings(growth)},
        x=AxisLabel(name="switches", unit=""),
        table=TableResult(
            columns=[
                *("network", "switches", "scheme", "lab made", "first answer", "requests/s", "asked again"),
                *("cycles/s", "accepted", "memory"),
            ],
            rows=[_table_row(growth) for growth in growths],
        ),
    )


def _findings(growth: Growth) -> Iterator[tuple[str, float]]:
    name = f"{growth.kind}_{growth.switches}_{growth.scheme.replace('-', '_')}"
    yield f"{name}_requests_per_second", growth.requests_per_s
    yield f"{name}_first_answer_ms", growth.first_ms
    yield f"{name}_memory_bytes", growth.memory_bytes


def _table_row(growth: Growth) -> list[str | float]:
    rates = (growth.requests_per_s, growth.requests_again_per_s, growth.cycles_per_s)
    return [
        growth.kind,
        f"{growth.switches:,}",
        growth.scheme,
        f"{growth.load_ms:.0f} ms",
        f"{growth.first_ms:.1f} ms",
        *(f"{per_s:,.0f}" for per_s in rates),
        f"{growth.accepted:,} of {growth.requests:,}",
        f"{growth.memory_bytes / _MIB:.1f} MiB",
    ]


STUDY: Final = Study(size=GrowthSize, tasks=tasks, measure=measure, show=show, estimate_s={"live": 600.0})
