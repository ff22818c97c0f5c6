"""Compare our bounds for networks of ports with those of xTFA and panco in one run (docs/port-queues.md).

The user provides the peers through Saihu, their common interface: `LOKO_SAIHU` names its clone, and
`LOKO_SAIHU_PYTHON` a Python with its dependencies. Without them, only our bounds are printed. Beside the
bounds for whole frames stands what frames reach in a simulation, which no valid bound is below.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import networkx as nx

from benchmarks.measure import ROOT, BenchmarkError, MeasuredRow
from loko.switch_model.calculus.token_buckets import RateLatency, TokenBucket
from loko.switch_model.calculus.total_flow import PathStep, PortServer, TotalFlow, UnsettledError
from loko.switch_model.calculus.whole_path import whole_path_ns
from loko.units import NS_PER_US
from loko_testbed.simulation.worst_case.port_frames import FrameFlow, search

_PEER: Final = ROOT / "benchmarks" / "saihu-peer" / "bounds.py"
_LINE_MBPS: Final = 1000
_FRAME_BYTES: Final = 1542
_LATENCY_US: Final = 12.336
"""One frame of other traffic on the cable."""
_PATIENCE_S: Final = 300
_ROUNDING_US: Final = 0.01
"""Saihu gives bounds with two digits after the microsecond."""
RUNS: Final = 2_000
"""Simulations that search for the longest delay of one flow."""
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
    of_ours: tuple[float, float, float] | None = None
    """Bounds divided by ours, over the flows: median, smallest, largest."""
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


def measure(*, tell: Callable[[str], None]) -> tuple[dict[str, Any], list[MeasuredRow]]:
    """Return all bounds, and rows for the table."""
    peer = _peer()
    if peer is None:
        tell("port-bounds: only ours: LOKO_SAIHU names no clone of Saihu (docs/port-queues.md)")
    all_bounds: list[Bounds] = []
    for network in networks():
        tell(f"port-bounds: {network.name}: what frames reach")
        found_us = {flow: longest_found_us(network, flow) for flow in network.paths}
        for shaping in SHAPINGS:
            tell(f"port-bounds: {network.name}, {shaping.name}")
            answers = [*ours(network, shaping)]
            if peer is not None:
                answers += _theirs(peer, network, shaping)
            if shaping.frame_bytes:
                answers.append(BoundResult("frames in a simulation", 0.0, found_us))
            ours_us = answers[0].delays_us
            for answer in answers:
                bounds = _bounds(network, shaping, answer, ours_us)
                if shaping.frame_bytes and answer.delays_us:
                    late = sum(
                        found_us[flow] > bound_us + _ROUNDING_US
                        for flow, bound_us in answer.delays_us.items()
                    )
                    bounds = replace(bounds, exceeded=late)
                all_bounds.append(bounds)
    return {"bounds": [asdict(bounds) for bounds in all_bounds]}, [_row(bounds) for bounds in all_bounds]


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
        yield BoundResult("ours", time.perf_counter() - began, {}, str(error))
        return
    sums_us = {flow: sum(bounds_ns[name] for name in path) / 1e3 for flow, path in network.paths.items()}
    yield BoundResult("ours", time.perf_counter() - began, sums_us)
    if shaping.frame_bytes:
        sent = [(path, network.buckets[flow]) for flow, path in steps.items()]
        whole_us = {flow: whole_path_ns(flows, path, sent, bounds_ns) / 1e3 for flow, path in steps.items()}
        yield BoundResult("ours, whole paths", time.perf_counter() - began, whole_us)


def longest_found_us(network: PortNetwork, flow: str) -> float:
    """Return the longest delay of a flow, in microseconds, that a search among simulations finds."""
    servers = _servers(network, SHAPINGS[-1])
    flows = {
        name: FrameFlow(path=path, frame_bytes=_FRAME_BYTES, bucket=network.buckets[name])
        for name, path in network.paths.items()
    }
    return search(servers, flows, itemgetter(flow), runs=RUNS, seed=1) / NS_PER_US


def _servers(network: PortNetwork, shaping: Shaping) -> dict[str, PortServer]:
    server = PortServer(
        service=RateLatency(rate_bps=_LINE_MBPS * 1e6, latency_ns=_LATENCY_US * 1e3),
        line_rate_bps=shaping.line_rate_bps,
        frame_bytes=shaping.frame_bytes,
    )
    return dict.fromkeys(network.servers, server)


def _theirs(peer: tuple[Path, Path], network: PortNetwork, shaping: Shaping) -> Iterator[BoundResult]:
    python, packages = peer
    with tempfile.TemporaryDirectory() as scratch:
        document = Path(scratch, "network.json")
        document.write_text(json.dumps(_document(network, shaping)), encoding="utf-8")
        mode = "OFF" if math.isinf(shaping.line_rate_bps) else "ON"
        words = [str(python), str(_PEER), str(packages), str(document), mode, *shaping.methods]
        try:
            ran = subprocess.run(
                words, cwd=scratch, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
            )
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"Saihu took more than {_PATIENCE_S} s for {network.name}") from None
        except (OSError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
            raise BenchmarkError(f"Saihu does not run: {said} (docs/port-queues.md says how)") from None
    for method, result in json.loads(ran.stdout).items():
        if "error" in result:
            yield BoundResult(method, None, {}, result["error"])
            continue
        delays_us = {flow: delay_s * 1e6 for flow, delay_s in result["delays_s"].items()}
        yield BoundResult(method, result["seconds"], delays_us)
        if method in _CORRECTED and shaping.frame_bytes:
            yield BoundResult(f"{method}, corrected", result["seconds"], corrected_us(network, delays_us))


def corrected_us(network: PortNetwork, delays_us: Mapping[str, float]) -> dict[str, float]:
    """Return bounds of a fluid with the time that each port but the last waits for all of a frame."""
    frame_us = _FRAME_BYTES * 8 / _LINE_MBPS
    return {
        flow: delay_us + frame_us * (len(network.paths[flow]) - 1) for flow, delay_us in delays_us.items()
    }


def _peer() -> tuple[Path, Path] | None:
    clone = os.environ.get("LOKO_SAIHU")
    if not clone:
        return None
    packages = Path(clone, "src")
    if not (packages / "saihu").is_dir():
        raise BenchmarkError(f"LOKO_SAIHU: {clone} is no clone of Saihu: it has no src/saihu")
    return Path(os.environ.get("LOKO_SAIHU_PYTHON", sys.executable)), packages


def _even(name: str, paths: Mapping[str, tuple[str, ...]], *, rate_mbps: float) -> PortNetwork:
    bucket = TokenBucket(rate_bps=rate_mbps * 1e6, burst_bytes=2 * _FRAME_BYTES)
    return PortNetwork(name=name, paths=paths, buckets=dict.fromkeys(paths, bucket))


def _document(network: PortNetwork, shaping: Shaping) -> dict[str, Any]:
    # Saihu's output-port format. The packetizer makes panco's cables deliver whole frames.
    return {
        "network": {
            "name": network.name,
            "packetizer": shaping.frame_bytes > 0,
            "multiplexing": "FIFO",
            "analysis_option": ["IS"],
            "time_unit": "us",
            "data_unit": "B",
            "rate_unit": "Mbps",
            "min_packet_length": 84,
        },
        "flows": [
            {
                "name": flow,
                "path": list(path),
                "arrival_curve": {
                    "bursts": [network.buckets[flow].burst_bytes],
                    "rates": [network.buckets[flow].rate_bps / 1e6],
                },
                "max_packet_length": _FRAME_BYTES,
            }
            for flow, path in network.paths.items()
        ],
        "servers": [
            {
                "name": name,
                "service_curve": {"latencies": [_LATENCY_US], "rates": [_LINE_MBPS]},
                "capacity": _LINE_MBPS,
            }
            for name in network.servers
        ],
    }


def _bounds(
    network: PortNetwork, shaping: Shaping, answer: BoundResult, ours_us: Mapping[str, float]
) -> Bounds:
    bounds = Bounds(
        network=network.name,
        shaping=shaping.name,
        method=answer.method,
        seconds=answer.seconds,
        worst_us=max(answer.delays_us.values(), default=None),
        error=answer.error,
    )
    if ours_us and len(answer.delays_us) == len(ours_us) and answer.delays_us is not ours_us:
        ratios = sorted(answer.delays_us[flow] / ours_us[flow] for flow in ours_us)
        bounds = replace(bounds, of_ours=(median(ratios), ratios[0], ratios[-1]))
    return bounds


def _row(bounds: Bounds) -> MeasuredRow:
    what = f"Worst bound of {bounds.network}, {bounds.shaping}: {bounds.method}"
    if bounds.worst_us is None or bounds.seconds is None:
        return what, "none", bounds.error
    remark = f"{1e3 * bounds.seconds:.1f} ms"
    if bounds.of_ours is not None:
        middle, low, high = bounds.of_ours
        remark = f"{middle:.4f} of ours ({low:.4f} .. {high:.4f}); {remark}"
    if bounds.exceeded:
        remark += f"; frames of {bounds.exceeded} flows take longer"
    return what, f"{bounds.worst_us:.2f} us", remark
