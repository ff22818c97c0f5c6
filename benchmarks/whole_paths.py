"""Bounds of whole paths: whether frames ever exceed them, what more fits with them, and what they take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from benchmarks.measure import BenchmarkError, MeasuredRow, Spread
from loko.admission.planning import plan
from loko.admission.schemes import VARIANTS, admission_of
from loko.switch_model.calculus import PathStep, PortServer, RateLatency, TokenBucket, TotalFlow
from loko.switch_model.calculus.whole_path import whole_path_ns
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, lab_of
from loko_testbed.simulation.worst_case.port_frames import whole_path_trial
from loko_testbed.simulation.worst_case.port_trial import port_trial

_RUNS: Final = 600
_PACKETS: Final = 5_000
_SWITCHES: Final = 9
_FRAME_BYTES: Final = 1518
_DEADLINES_MS: Final = (0.3, 0.4, 0.5, 0.7)
_TARGETS_MS: Final = (0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2)
_HOPS: Final = (3, 6, 8, 12)


def measure(*, quick: bool, tell: Callable[[str], None]) -> tuple[dict[str, Any], list[MeasuredRow]]:
    """Return all results, and rows for the table. Raises `BenchmarkError` if a frame is late."""
    parts: dict[str, Callable[[], tuple[dict[str, Any], list[MeasuredRow]]]] = {
        "frames": lambda: _frames(20 if quick else 500),
        "sets": lambda: _sets(4 if quick else 100),
        "fit": _fit,
        "time": lambda: _times(1 if quick else 5),
    }
    values: dict[str, Any] = {}
    rows: list[MeasuredRow] = []
    for name, part in parts.items():
        tell(f"whole-paths: {name}")
        values[name], more = part()
        rows += more
    return values, rows


def _frames(count: int) -> tuple[dict[str, Any], list[MeasuredRow]]:
    trials = [trial for seed in range(count) if (trial := whole_path_trial(seed, runs=_RUNS)) is not None]
    worst = max(trials, key=lambda trial: trial.worst)
    if worst.worst > 1:
        raise BenchmarkError(f"whole-paths: a frame is late: network {worst.seed}, {worst.worst:.6f}")
    shortest = min(trial.of_sum for trial in trials)
    row = (
        f"Longest delay : bound of a whole path, {len(trials)} random networks, {_RUNS} simulations each",
        f"{worst.worst:.5f}",
        f"the lowest bound is {shortest:.3f} of the sum of the ports'",
    )
    return {"networks": len(trials), "worst": worst.worst, "shortest": shortest}, [row]


def _sets(count: int) -> tuple[dict[str, Any], list[MeasuredRow]]:
    verdicts = [port_trial(seed, packets=_PACKETS, is_by_path=True).verdict for seed in range(count)]
    late = sum(len(verdict.broken) for verdict in verdicts)
    if late:
        raise BenchmarkError(f"whole-paths: {late} flows of random sets have a late or lost frame")
    packets = sum(verdict.packets for verdict in verdicts)
    worst = max(verdict.worst for verdict in verdicts)
    row = (
        f"Longest delay : bound, {count} random sets of whole paths in the simulator",
        f"{worst:.3f}",
        f"{packets:,} packets, none late, none lost",
    )
    return {"sets": count, "packets": packets, "worst": worst}, [row]


def _fit() -> tuple[dict[str, Any], list[MeasuredRow]]:
    lab = _line()
    values: dict[str, Any] = {}
    rows: list[MeasuredRow] = []
    for deadline_ms in _DEADLINES_MS:
        by_target = {target_ms: _fitting(lab, deadline_ms, "ports", target_ms) for target_ms in _TARGETS_MS}
        best_ms = max(by_target, key=lambda target_ms: by_target[target_ms])
        by_path = _fitting(lab, deadline_ms, "ports-whole-paths", None)
        values[f"{deadline_ms} ms"] = {"targets": by_target, "whole paths": by_path}
        rows.append(
            (
                f"Flows that fit a line of {_SWITCHES} within {deadline_ms} ms: whole paths",
                f"{by_path}",
                f"{by_target[best_ms]} with the best target, {best_ms} ms",
            )
        )
    return values, rows


def _fitting(lab: Lab, deadline_ms: float, scheme: str, target_ms: float | None) -> int:
    """Return how many flows over four switches each fit, asked for one after another along the line."""
    flows = [
        Flow(
            id=f"f{number}",
            source=f"h{number % (_SWITCHES - 3)}",
            destination=f"h{number % (_SWITCHES - 3) + 3}",
            udp_source=5_000 + number,
            udp_destination=6_000 + number,
            rate_bps=50e6,
            burst_bytes=2.0 * _FRAME_BYTES,
            frame_bytes=_FRAME_BYTES,
        )
        for number in range(36)
    ]
    deadlines_ns = dict.fromkeys((flow.id for flow in flows), deadline_ms * 1e6)
    admission = admission_of(
        lab,
        VARIANTS[scheme],
        loko_scenario(entries=60, packet_sizes_bytes=(_FRAME_BYTES,)),
        target_ns=None if target_ms is None else target_ms * 1e6,
        deadlines_ns=deadlines_ns,
    )
    return len(plan(lab, flows, admission, deadlines_ns=deadlines_ns).accepted)


def _line() -> Lab:
    names = range(_SWITCHES)
    return lab_of(
        {
            "name": "line",
            "title": "a line of ideal switches",
            "switches": {
                f"s{n}": {"datapath_id": f"00:00:02:00:00:00:01:{n:02x}", "profile": "ideal-1g"}
                for n in names
            },
            "hosts": {f"h{n}": {"mac": f"02:00:00:00:00:{n:02x}", "ip": f"10.0.0.{n + 1}/24"} for n in names},
            "links": [
                *({"a": f"h{n}", "b": f"s{n}:1"} for n in names),
                *({"a": f"s{n}:2", "b": f"s{n + 1}:3"} for n in names[:-1]),
            ],
        }
    )


def _times(repetitions: int) -> tuple[dict[str, Any], list[MeasuredRow]]:
    values: dict[str, Any] = {}
    rows: list[MeasuredRow] = []
    for hops in _HOPS:
        spread = Spread.of([_time_ms(hops, burst) for burst in range(1, repetitions + 1)])
        values[str(hops)] = spread.median
        row = f"Bound of a whole path of {hops} ports, processor time", f"{spread.median:.1f} ms"
        rows.append((*row, f"{spread.low:.1f} .. {spread.high:.1f} ms"))
    return values, rows


def _time_ms(hops: int, frames: int) -> float:
    """Return the time for one path of a ring of 16 with a flow from every server. Loads seen are kept."""
    service = RateLatency(rate_bps=1e9, latency_ns=12_336.0)
    server = PortServer(service=service, line_rate_bps=1e9, frame_bytes=1542.0)
    servers: Mapping[str, PortServer] = {f"s{number}": server for number in range(16)}
    network = TotalFlow(servers)
    bucket = TokenBucket(rate_bps=1e7, burst_bytes=1542.0 * frames)
    paths = [tuple(PathStep(f"s{(first + hop) % 16}") for hop in range(hops)) for first in range(16)]
    for path in paths:
        network.add(path, bucket)
    bounds = network.settle(servers)
    began = time.process_time()
    whole_path_ns(network, paths[0], [(path, bucket) for path in paths], bounds)
    return 1e3 * (time.process_time() - began)
