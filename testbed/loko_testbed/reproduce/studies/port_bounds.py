"""Bounds of delay in networks of ports, by our methods and by others, beside what frames reach.

xTFA and panco are asked through Saihu, if the user provides it (`loko_testbed.reproduce.saihu`). Without it,
only our bounds are computed. No valid bound for whole frames is below what frames reach.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import Final, NamedTuple

import networkx as nx

from loko.document import StrictModel
from loko.switch_model.calculus.token_buckets import RateLatency, TokenBucket
from loko.switch_model.calculus.total_flow import PathStep, PortServer, TotalFlow, UnsettledError
from loko.switch_model.calculus.whole_path import whole_path_ns
from loko.units import NS_PER_US
from loko_testbed.reproduce.chart import Chart, ChartAxis, Cloud, Panel, ScatterPanel
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.saihu import Saihu, SaihuNetwork, saihu_bounds, saihu_of_environment
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.simulation.worst_case.port_frames import FrameFlow, search

_LINE_MBPS: Final = 1000
_FRAME_BYTES: Final = 1542
_LATENCY_US: Final = 12.336
"""One frame of other traffic on the cable."""
_ROUNDING_US: Final = 0.01
"""Saihu gives bounds with two digits after the microsecond."""
_OURS: Final = "ours"
_WHOLE_PATHS: Final = "ours, whole paths"
_SIMULATED: Final = "frames in a simulation"
_CORRECTED: Final = ("panco/SFA", "panco/PLP")
"""Methods that let a frame's first bits go on before its last one is there, where whole frames are meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """An assumption about the cables between the servers."""

    name: str
    line_rate_bps: float
    frame_bytes: float
    """Amount of data that a cable may deliver at once."""
    methods: tuple[str, ...]
    """Methods of the peers, as `tool/method`."""


SHAPINGS: Final = (
    Shaping(name="no shaping", line_rate_bps=math.inf, frame_bytes=0, methods=("xtfa/TFA", "panco/TFA")),
    Shaping(name="fluid cables", line_rate_bps=1e9, frame_bytes=0, methods=("xtfa/TFA", "panco/TFA")),
    Shaping(
        name="whole frames",
        line_rate_bps=1e9,
        frame_bytes=_FRAME_BYTES,
        methods=("panco/TFA", "panco/SFA", "panco/PLP"),
    ),
)
"""xTFA models whole frames with a packetizer of its own, which is a different problem, so it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortNetwork:
    """Servers of one rate and latency, and the flows' paths through them."""

    name: str
    paths: Mapping[str, tuple[str, ...]]
    buckets: Mapping[str, TokenBucket]

    @property
    def servers(self) -> list[str]:
        """Every server that a flow passes, in a stable order."""
        return sorted({server for path in self.paths.values() for server in path})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds from one method for one network."""

    network: str
    shaping: str
    method: str
    seconds: float | None
    worst_us: float | None
    """The largest bound of a flow; None if there is none."""
    ratio: float | None = None
    """Bounds divided by ours, over the flows: the median, and the range."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    exceeded: int | None = None
    """For how many flows a frame in the simulation takes longer; None if nothing was simulated."""
    error: str = ""


def networks() -> Iterator[PortNetwork]:
    """Rings, a line, a sink tree, and a random network with cycles; the same in every run."""
    for size, hops, rate_mbps in ((6, 3, 100), (12, 6, 25)):
        paths = {f"f{i}": tuple(f"s{(i + hop) % size}" for hop in range(hops)) for i in range(size)}
        yield _even(f"ring of {size}, {hops} hops", paths, rate_mbps=rate_mbps)
    paths = {f"f{i}": tuple(f"s{i + hop}" for hop in range(4)) for i in range(12)}
    yield _even("line of 15, 4 hops", paths, rate_mbps=150)
    to_root: dict[int, tuple[str, ...]] = {6: ("s6",)}
    for number in range(5, -1, -1):  # the root is last, since panco cuts links to servers that come earlier
        to_root[number] = (f"s{number}", *to_root[7 - (7 - number) // 2])
    tree = {f"f{number}{letter}": path for number, path in to_root.items() for letter in "ab"}
    yield _even("sink tree of 7", tree, rate_mbps=50)
    chance = random.Random(1)
    graph = nx.random_regular_graph(4, 12, seed=1)
    paths, buckets = {}, {}
    for number in range(60):
        source, sink = chance.sample(range(12), 2)
        way = chance.choice(sorted(nx.all_shortest_paths(graph, source, sink)))
        paths[f"f{number}"] = tuple(f"s{tail}-{head}" for tail, head in pairwise(way))
        buckets[f"f{number}"] = TokenBucket(
            rate_bps=chance.randint(1, 40) * 1e6, burst_bytes=_FRAME_BYTES * chance.randint(1, 4)
        )
    yield PortNetwork(name="random, 12 switches, 60 flows", paths=paths, buckets=buckets)


class BoundResult(NamedTuple):
    """The delay bounds from one method, by flow in microseconds; none if there is an error."""

    method: str
    seconds: float | None
    delays_us: Mapping[str, float]
    error: str = ""


class PortBoundsSize(StrictModel):
    """How much is measured."""

    runs: int
    """Simulations that search for the longest delay of one flow."""
    networks: int
    """How many of the networks."""


class PortBoundsTask(NamedTuple):
    """A network, and the peers of it."""

    network: str
    runs: int
    seed: int
    saihu: str
    """The clone of Saihu; empty if there is none."""
    python: str
    """The Python interpreter that has what Saihu needs."""

    def __str__(self) -> str:
        return f"{self.network}{'' if self.saihu else ', only ours, as LOKO_SAIHU names no clone of Saihu'}"


def tasks(size: PortBoundsSize, seed: int) -> list[PortBoundsTask]:
    """Return a task for each network. Raises `InputError` if the peers cannot be found."""
    clone, python = saihu_of_environment() or ("", "")
    names = [network.name for network in networks()][: size.networks]
    return [PortBoundsTask(name, size.runs, seed, clone, python) for name in names]


def measure(task: PortBoundsTask) -> Rows:
    """Return all bounds of a network. Raises `RunError` if Saihu does not run."""
    network = next(network for network in networks() if network.name == task.network)
    found_us = {
        flow: longest_found_us(network, flow, runs=task.runs, seed=task.seed) for flow in network.paths
    }
    rows = []
    for shaping in SHAPINGS:
        results = [*ours(network, shaping)]
        if task.saihu:
            results += _theirs(Saihu(task.saihu, task.python), network, shaping)
        if shaping.frame_bytes:
            results.append(BoundResult(_SIMULATED, 0.0, found_us))
        for result in results:
            bounds = _bounds(network, shaping, result, results[0].delays_us)
            if shaping.frame_bytes and result.delays_us:
                late = sum(
                    found_us[flow] > bound_us + _ROUNDING_US for flow, bound_us in result.delays_us.items()
                )
                bounds = replace(bounds, exceeded=late)
            rows.append(asdict(bounds))
    return rows


def ours(network: PortNetwork, shaping: Shaping) -> Iterator[BoundResult]:
    """Yield our bounds by the sums of ports, and for whole frames also those of whole paths."""
    began = time.perf_counter()
    servers = _servers(network, shaping)
    flows = TotalFlow(servers)
    steps = {flow: tuple(PathStep(name) for name in path) for flow, path in network.paths.items()}
    for flow, path in steps.items():
        flows.add(path, network.buckets[flow])
    try:
        bounds_ns = flows.settle(network.servers)
    except UnsettledError as error:
        yield BoundResult(_OURS, time.perf_counter() - began, {}, str(error))
        return
    sums_us = {flow: sum(bounds_ns[name] for name in path) / 1e3 for flow, path in network.paths.items()}
    yield BoundResult(_OURS, time.perf_counter() - began, sums_us)
    if shaping.frame_bytes:
        sent = [(path, network.buckets[flow]) for flow, path in steps.items()]
        whole_us = {flow: whole_path_ns(flows, path, sent, bounds_ns) / 1e3 for flow, path in steps.items()}
        yield BoundResult(_WHOLE_PATHS, time.perf_counter() - began, whole_us)


def longest_found_us(network: PortNetwork, flow: str, *, runs: int, seed: int) -> float:
    """Return the longest delay of a flow, in microseconds, that a search among simulations finds."""
    servers = _servers(network, SHAPINGS[-1])
    flows = {
        name: FrameFlow(path=path, frame_bytes=_FRAME_BYTES, bucket=network.buckets[name])
        for name, path in network.paths.items()
    }
    return search(servers, flows, itemgetter(flow), runs=runs, seed=seed) / NS_PER_US


def _servers(network: PortNetwork, shaping: Shaping) -> dict[str, PortServer]:
    server = PortServer(
        service=RateLatency(rate_bps=_LINE_MBPS * 1e6, latency_ns=_LATENCY_US * 1e3),
        line_rate_bps=shaping.line_rate_bps,
        frame_bytes=shaping.frame_bytes,
    )
    return dict.fromkeys(network.servers, server)


def _theirs(saihu: Saihu, network: PortNetwork, shaping: Shaping) -> Iterator[BoundResult]:
    given = SaihuNetwork(
        name=network.name,
        paths=network.paths,
        buckets=network.buckets,
        service=RateLatency(rate_bps=_LINE_MBPS * 1e6, latency_ns=_LATENCY_US * 1e3),
        line_rate_bps=_LINE_MBPS * 1e6,
        frame_bytes=_FRAME_BYTES,
        shortest_frame_bytes=84,
        is_shaped=not math.isinf(shaping.line_rate_bps),
        has_packetizer=shaping.frame_bytes > 0,
    )
    for method, (seconds, delays_us, error) in saihu_bounds(saihu, given, shaping.methods).items():
        yield BoundResult(method, seconds, delays_us, error)
        if not error and method in _CORRECTED and shaping.frame_bytes:
            yield BoundResult(f"{method}, corrected", seconds, corrected_us(network, delays_us))


def corrected_us(network: PortNetwork, delays_us: Mapping[str, float]) -> dict[str, float]:
    """Return bounds of a fluid with the time that each port but the last waits for all of a frame."""
    frame_us = _FRAME_BYTES * 8 / _LINE_MBPS
    return {
        flow: delay_us + frame_us * (len(network.paths[flow]) - 1) for flow, delay_us in delays_us.items()
    }


def _even(name: str, paths: Mapping[str, tuple[str, ...]], *, rate_mbps: float) -> PortNetwork:
    bucket = TokenBucket(rate_bps=rate_mbps * 1e6, burst_bytes=2 * _FRAME_BYTES)
    return PortNetwork(name=name, paths=paths, buckets=dict.fromkeys(paths, bucket))


def _bounds(
    network: PortNetwork, shaping: Shaping, result: BoundResult, ours_us: Mapping[str, float]
) -> Bounds:
    bounds = Bounds(
        network=network.name,
        shaping=shaping.name,
        method=result.method,
        seconds=result.seconds,
        worst_us=max(result.delays_us.values(), default=None),
        error=result.error,
    )
    if not ours_us or result.method == _OURS or len(result.delays_us) != len(ours_us):
        return bounds
    ratios = sorted(result.delays_us[flow] / ours_us[flow] for flow in ours_us)
    return replace(bounds, ratio=median(ratios), ratio_low=ratios[0], ratio_high=ratios[-1])


def show(rows: Rows) -> Outcome:
    """Show each method's worst bound of a network over ours."""
    every = [Bounds(**row) for row in rows]
    panels: list[Panel] = [
        ScatterPanel(
            title=shaping.name,
            x=ChartAxis(label="our worst bound of a flow [us]", log=True),
            y=ChartAxis(label="worst bound [us]", log=True),
            clouds=clouds,
            diagonal=True,
        )
        for shaping in SHAPINGS
        if (clouds := _clouds([bounds for bounds in every if bounds.shaping == shaping.name]))
    ]
    return Outcome(
        chart=Chart(panels=panels, columns=2),
        findings=_findings(every),
        x=AxisLabel(name="our worst bound", unit="us"),
        table=TableResult(
            columns=["network", "cables", "method", "worst bound [us]", "of ours", "time", "late flows"],
            rows=[_table_row(bounds) for bounds in every],
        ),
    )


def _clouds(every: Sequence[Bounds]) -> list[Cloud]:
    ours_us = {bounds.network: bounds.worst_us for bounds in every if bounds.method == _OURS}
    clouds = []
    for method in dict.fromkeys(bounds.method for bounds in every if bounds.method != _OURS):
        points = [
            (mine, bounds.worst_us)
            for bounds in every
            if bounds.method == method and bounds.worst_us and (mine := ours_us[bounds.network])
        ]
        if points:
            clouds.append(Cloud(label=method, x=[mine for mine, _ in points], y=[y for _, y in points]))
    return clouds


def _findings(every: Sequence[Bounds]) -> dict[str, float]:
    """Return, by method, the flows whose frames exceed its bounds, and the range of its ratios to ours."""
    findings: dict[str, float] = {}
    for method in dict.fromkeys(bounds.method for bounds in every):
        own = [bounds for bounds in every if bounds.method == method and bounds.worst_us is not None]
        name = re.sub(r"\W+", "_", method).lower()
        exceeded = [bounds.exceeded for bounds in own if bounds.exceeded is not None]
        if exceeded:
            findings[f"{name}_exceeded"] = sum(exceeded)
        ratios = [(bounds.ratio_low, bounds.ratio_high) for bounds in own if bounds.ratio_low is not None]
        if ratios:
            findings[f"{name}_least_ratio"] = min(low for low, _ in ratios if low is not None)
            findings[f"{name}_most_ratio"] = max(high for _, high in ratios if high is not None)
    return findings


def _table_row(bounds: Bounds) -> list[str | float]:
    row: list[str | float] = [bounds.network, bounds.shaping, bounds.method]
    if bounds.worst_us is None or bounds.seconds is None:
        return [*row, "none", bounds.error, "", ""]
    ratio = ""
    if bounds.ratio is not None:
        ratio = f"{bounds.ratio:.4f} ({bounds.ratio_low:.4f} .. {bounds.ratio_high:.4f})"
    late = "" if bounds.exceeded is None else str(bounds.exceeded)
    return [*row, f"{bounds.worst_us:.2f}", ratio, f"{1e3 * bounds.seconds:.1f} ms", late]


STUDY: Final = Study(size=PortBoundsSize, tasks=tasks, measure=measure, show=show, estimate_s={"live": 300.0})
