"""Measure every switch at every corner. Existing results are reused."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.fidelity.corners import corners, few_corners, label
from benchmarks.fidelity.expected import ExpectedDevice
from benchmarks.fidelity.systems import PROFILE, FidelitySystem, core, systems
from benchmarks.fidelity.trial import QUICK, RATES_PPS, CornerResult, FidelityBudget, trial
from benchmarks.machine import describe
from benchmarks.measure import BenchmarkError
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import Case
from loko_testbed.instruments.programs import require_emulator
from loko_testbed.simulation.runner import RunError

GOAL_VIRTUAL_NS: Final = 1
GOAL_LIVE_P50_NS: Final = 1_000
GOAL_LIVE_P99_NS: Final = 5_000
GOAL_CLOSER: Final = 20.0
GOAL_TIMED_P50_NS: Final = 5_000

_QUANTILES: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
_CURVE: Final = 200
"""Number of points of a distribution that are kept for its picture."""
_ATTEMPTS: Final = 2


def run(folder: Path, *, quick: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure what is missing in `folder` and return a summary. Raises `BenchmarkError`.

    `tell` is called with lines on the progress.
    """
    if os.geteuid() != 0:
        raise BenchmarkError("live switches need root; run as root, or leave the part `fidelity` out")
    effort = QUICK if quick else FidelityBudget()
    places = few_corners() if quick else corners()
    kinds = systems(require_emulator())
    machine = describe()
    # Results with another effort or from another machine are not comparable.
    key = {"effort": asdict(effort), **{name: machine[name] for name in ("processor", "kernel", "cores")}}
    store = folder / "trials"
    store.mkdir(parents=True, exist_ok=True)
    trials: list[CornerResult] = []
    total = len(kinds) * len(places)
    for done, (place, kind) in enumerate((place, kind) for place in places for kind in kinds):
        path = store / f"{kind.name}-{label(place)}.json"
        stored = _stored(path, key)
        if stored is None:
            tell(f"{done + 1} of {total}: {label(place)}: {kind.title}")
            stored = _measured(kind, place, effort)
            path.write_text(json.dumps({"key": key, "trial": stored.as_values()}), encoding="utf-8")
        trials.append(stored)
    return summary(trials, kinds, machine=machine, quick=quick)


def _stored(path: Path, key: dict[str, Any]) -> CornerResult | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return CornerResult.of_values(values["trial"]) if values["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _measured(kind: FidelitySystem, place: Case, effort: FidelityBudget) -> CornerResult:
    device = ExpectedDevice.of(load_profile(PROFILE), place)
    reason: Exception | None = None
    for _ in range(_ATTEMPTS):
        # The folder will hold sockets, whose paths must be short.
        with tempfile.TemporaryDirectory(prefix="loko-", dir="/dev/shm") as folder:
            try:
                with kind.at(place, Path(folder)) as bench:
                    return trial(kind.name, bench, place, device, effort)
            except (OSError, RuntimeError, RunError) as error:
                reason = error
    raise BenchmarkError(f"{kind.title} at {label(place)}: failed {_ATTEMPTS} times: {reason}")


def summary(
    trials: Sequence[CornerResult], kinds: Sequence[FidelitySystem], *, machine: dict[str, str], quick: bool
) -> dict[str, Any]:
    """Return everything that tables, figures and the page need, as plain values."""
    by_system = {kind.name: [trial for trial in trials if trial.system == kind.name] for kind in kinds}
    return {
        "machine": machine,
        "quick": quick,
        "core": core(),
        "goals": {
            "virtual_ns": GOAL_VIRTUAL_NS,
            "live_p50_ns": GOAL_LIVE_P50_NS,
            "live_p99_ns": GOAL_LIVE_P99_NS,
            "closer": GOAL_CLOSER,
            "timed_p50_ns": GOAL_TIMED_P50_NS,
        },
        "systems": {
            kind.name: {
                "title": kind.title,
                "all": _pooled(by_system[kind.name]),
                "rates": {
                    str(rate): _errors(
                        [error for trial in by_system[kind.name] for error in _at_rate(trial, rate)]
                    )
                    for rate in RATES_PPS
                },
                "corners": {trial.corner: _corner(trial) for trial in by_system[kind.name]},
            }
            for kind in kinds
        },
    }


def _at_rate(corner: CornerResult, rate_pps: float) -> list[int]:
    return [error for lone in corner.lone if lone.rate_pps == rate_pps for error in lone.errors_ns]


def _pooled(trials: Sequence[CornerResult]) -> dict[str, Any]:
    errors = [error for trial in trials for lone in trial.lone for error in lone.errors_ns]
    stalled = [error for trial in trials for lone in trial.lone for error in lone.stalled_errors_ns]
    sizes = np.sort(np.abs(np.array(errors, dtype=np.int64)))
    places = np.linspace(0, 1, _CURVE)
    # More points in the tail, where the distributions differ.
    shares = np.unique(np.concatenate([places, 1 - 10.0 ** -np.linspace(1, 5, _CURVE)]))
    throughput = [abs(trial.overload.error) for trial in trials]
    frames = [abs(burst.passed - burst.expected) for trial in trials for burst in trial.bursts]
    return {
        "processing": _errors(errors),
        "processing_in_stalls": _errors(stalled),
        "lost": sum(lone.lost for trial in trials for lone in trial.lone),
        "curve": [[round(float(share), 6), int(np.quantile(sizes, share))] for share in shares if len(sizes)],
        "throughput": {"median": float(np.median(throughput)), "max": max(throughput)},
        "buffer_frames": {"mean": float(np.mean(frames)), "max": max(frames)},
    }


def _errors(errors_ns: Sequence[int]) -> dict[str, int]:
    """Return quantiles of the absolute errors in nanoseconds."""
    if not errors_ns:
        return {"count": 0, **dict.fromkeys(_QUANTILES, 0)}
    sizes = np.abs(np.array(errors_ns, dtype=np.int64))
    errors = {name: int(np.quantile(sizes, share)) for name, share in _QUANTILES.items()}
    return {"count": len(errors_ns), **errors}


def _corner(corner: CornerResult) -> dict[str, Any]:
    return {
        "processing_ns": corner.processing_ns,
        "capacity_pps": corner.capacity_pps,
        "capacity_frames": corner.capacity_frames,
        "processing": _errors([error for lone in corner.lone for error in lone.errors_ns]),
        "median_ns": int(np.median([error for lone in corner.lone for error in lone.errors_ns] or [0])),
        "in_stalls": sum(len(lone.stalled_errors_ns) for lone in corner.lone),
        "offered_pps": corner.overload.offered_pps,
        "throughput": corner.overload.error,
        "bursts": [[burst.expected, burst.passed] for burst in corner.bursts],
    }
