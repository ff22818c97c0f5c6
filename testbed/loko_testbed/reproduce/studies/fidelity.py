"""How close emulated switches come to the device's profile, at every corner of the paper's Table 1."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from loko.document import StrictModel
from loko.switch_model.device import load_profile
from loko_testbed.instruments.programs import require_emulator
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, Cloud, LinePanel, ScatterPanel
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, NoteResult, TableResult
from loko_testbed.reproduce.studies.fidelity_bench.corners import corners, few_corners, label
from loko_testbed.reproduce.studies.fidelity_bench.expected import ExpectedDevice
from loko_testbed.reproduce.studies.fidelity_bench.systems import PROFILE, systems
from loko_testbed.reproduce.studies.fidelity_bench.trial import RATES_PPS, FidelityBudget, trial
from loko_testbed.reproduce.studies.live_accuracy import time_text
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.simulation.runner import RunError

_SYSTEMS: Final = ("virtual", "live", "stand-in", "timed", "mininet")
_QUANTILES: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
_CURVE: Final = 200
"""Number of points of a distribution that are kept for its picture."""
_FLOOR_US: Final = 1e-3
"""Smaller errors are drawn here: a nanosecond."""
_FLOOR_PERCENT: Final = 1e-3
_ATTEMPTS: Final = 2

Summary = Mapping[str, Mapping[str, Any]]
"""By system: its `title`, errors over all corners, errors at each rate, and each corner's errors."""


class FidelitySize(StrictModel):
    """How much is measured."""

    few: bool = False
    """Whether only a few corners are measured, with each extreme value in at least one."""
    lone_s: float
    """For how long single frames are sent at each rate."""
    overload_s: float
    bursts: int


class FidelityTask(NamedTuple):
    """A switch at a corner."""

    system: str
    place: int
    """Of the corner in `corners`."""
    lone_s: float
    overload_s: float
    bursts: int

    def __str__(self) -> str:
        return f"{self.system}, {label(corners()[self.place])}"


def tasks(size: FidelitySize, _seed: int) -> list[FidelityTask]:
    """Return every switch at every corner. What is sent is the same for every seed."""
    every = corners()
    return [
        FidelityTask(system, every.index(corner), size.lone_s, size.overload_s, size.bursts)
        for corner in (few_corners() if size.few else every)
        for system in _SYSTEMS
    ]


def measure(task: FidelityTask) -> Rows:
    """Measure a switch at a corner. Raises `RunError` if that fails repeatedly."""
    kind = next(kind for kind in systems(require_emulator()) if kind.name == task.system)
    corner = corners()[task.place]
    device = ExpectedDevice.of(load_profile(PROFILE), corner)
    budget = FidelityBudget(lone_s=task.lone_s, overload_s=task.overload_s, bursts=task.bursts)
    reason: Exception | None = None
    for _ in range(_ATTEMPTS):
        # The folder will hold sockets, whose paths must be short.
        with tempfile.TemporaryDirectory(prefix="loko-", dir="/dev/shm") as folder:
            try:
                with kind.at(corner, Path(folder)) as bench:
                    return [{"title": kind.title, **asdict(trial(kind.name, bench, corner, device, budget))}]
            except (OSError, RuntimeError, RunError) as error:
                reason = error
    raise RunError(f"{kind.title} at {label(corner)}: failed {_ATTEMPTS} times: {reason}")


def summary(rows: Rows) -> Summary:
    """Return quantiles of errors by system, in all, by rate and by corner."""
    by_system = {row["system"]: [each for each in rows if each["system"] == row["system"]] for row in rows}
    return {
        name: {
            "title": own[0]["title"],
            "all": _pooled(own),
            "rates": {
                str(rate): _errors(
                    [
                        error
                        for row in own
                        for lone in row["lone"]
                        if lone["rate_pps"] == rate
                        for error in lone["errors_ns"]
                    ]
                )
                for rate in RATES_PPS
            },
            "corners": {row["corner"]: _corner(row) for row in own},
        }
        for name, own in by_system.items()
    }


def _pooled(rows: Rows) -> dict[str, Any]:
    errors = [error for row in rows for lone in row["lone"] for error in lone["errors_ns"]]
    stalled = [error for row in rows for lone in row["lone"] for error in lone["stalled_errors_ns"]]
    sizes = np.sort(np.abs(np.array(errors, dtype=np.int64)))
    places = np.linspace(0, 1, _CURVE)
    # More points in the tail, where the distributions differ.
    shares = np.unique(np.concatenate([places, 1 - 10.0 ** -np.linspace(1, 5, _CURVE)]))
    throughput = [abs(_throughput_error(row)) for row in rows]
    frames = [abs(burst["passed"] - burst["expected"]) for row in rows for burst in row["bursts"]]
    return {
        "processing": _errors(errors),
        "processing_in_stalls": _errors(stalled),
        "curve": [[round(float(share), 6), int(np.quantile(sizes, share))] for share in shares if len(sizes)],
        "throughput": {"median": float(np.median(throughput)), "max": max(throughput)},
        "buffer_frames": {"mean": float(np.mean(frames)), "max": max(frames)},
    }


def _throughput_error(row: Mapping[str, Any]) -> float:
    overload = row["overload"]
    return float(overload["measured_pps"] / overload["expected_pps"] - 1)


def _errors(errors_ns: Sequence[int]) -> dict[str, int]:
    """Return quantiles of the absolute errors in nanoseconds."""
    if not errors_ns:
        return {"count": 0, **dict.fromkeys(_QUANTILES, 0)}
    sizes = np.abs(np.array(errors_ns, dtype=np.int64))
    errors = {name: int(np.quantile(sizes, share)) for name, share in _QUANTILES.items()}
    return {"count": len(errors_ns), **errors}


def _corner(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "processing_ns": row["processing_ns"],
        "capacity_pps": row["capacity_pps"],
        "capacity_frames": row["capacity_frames"],
        "processing": _errors([error for lone in row["lone"] for error in lone["errors_ns"]]),
        "throughput": _throughput_error(row),
        "bursts": [[burst["expected"], burst["passed"]] for burst in row["bursts"]],
    }


def show(rows: Rows) -> Outcome:
    """Show the errors of processing time, throughput and buffer of every switch."""
    return shown(summary(rows))


def shown(found: Summary) -> Outcome:
    """Show a summary."""
    return Outcome(
        chart=_chart(found),
        findings={
            name: value for system, values in found.items() for name, value in _findings(system, values)
        },
        x=AxisLabel(name="error of the processing time", unit="us"),
        profile=PROFILE,
        table=TableResult(
            columns=[
                *("switch", "frames", "p50", "p99", "p99.9", "max", "number", "within stalls"),
                *("throughput: median", "largest", "burst: mean", "most"),
            ],
            rows=[row for values in found.values() for row in _table_rows(values)],
        ),
        notes=_corner_notes(found),
    )


def _findings(system: str, values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    name, pooled = system.replace("-", "_"), values["all"]
    for quantile in _QUANTILES:
        yield f"{name}_{quantile}_ns", pooled["processing"][quantile]
        for rate, errors in values["rates"].items():
            if errors["count"]:
                yield f"{name}_{rate}_pps_{quantile}_ns", errors[quantile]
    yield f"{name}_throughput_percent", 100 * pooled["throughput"]["median"]
    yield f"{name}_burst_frames", pooled["buffer_frames"]["mean"]


def _table_rows(values: Mapping[str, Any]) -> Iterator[list[str | float]]:
    pooled = values["all"]
    throughput, burst = pooled["throughput"], pooled["buffer_frames"]
    yield [
        *_times(values["title"], "all corners", pooled["processing"]),
        f"{pooled['processing_in_stalls']['count']:,}",
        *(f"{100 * throughput[key]:.3f} %" for key in ("median", "max")),
        f"{burst['mean']:.2f} frames",
        f"{burst['max']} frames",
    ]
    for rate, errors in values["rates"].items():
        yield [*_times(values["title"], f"{int(rate):,} a second", errors), "", "", "", "", ""]


def _times(title: str, frames: str, errors: Mapping[str, int]) -> list[str | float]:
    return [title, frames, *(time_text(errors[key]) for key in _QUANTILES), f"{errors['count']:,}"]


def _corner_notes(found: Summary) -> list[NoteResult]:
    """Return each corner's times by the profile, and the median and p99 of every switch's error there."""
    first = next(iter(found.values()))
    return [
        NoteResult(
            where=name,
            text=f"p_FX {time_text(corner['processing_ns'])}, {corner['capacity_pps']:,.0f} frames/s,"
            f" {corner['capacity_frames']} frames; "
            + "; ".join(
                f"{values['title']}: "
                + ", ".join(time_text(values["corners"][name]["processing"][key]) for key in ("p50", "p99"))
                for values in found.values()
            ),
        )
        for name, corner in first["corners"].items()
    ]


def _chart(found: Summary) -> Chart:
    panel = LinePanel(
        title="distribution of the error",
        x=ChartAxis(label="error of the processing time [us]", log=True),
        y=ChartAxis(label="share of frames with a larger error", log=True),
        curves=[
            ChartCurve(
                label=values["title"],
                x=[max(size / 1e3, _FLOOR_US) for share, size in values["all"]["curve"] if share < 1],
                y=[1 - share for share, _ in values["all"]["curve"] if share < 1],
                marker=False,
            )
            for values in found.values()
        ],
    )
    return Chart(
        panels=[
            panel,
            _corner_panel(
                found,
                ChartAxis(label="p99 of the error [us]", log=True),
                lambda corner: max(corner["processing"]["p99"] / 1e3, _FLOOR_US),
            ),
            _corner_panel(
                found,
                ChartAxis(label="error of the throughput [%]", log=True),
                lambda corner: max(100 * abs(corner["throughput"]), _FLOOR_PERCENT),
            ),
            _corner_panel(
                found,
                ChartAxis(label="frames of a burst that pass, too many", linear_to=1),
                lambda corner: float(np.mean([passed - expected for expected, passed in corner["bursts"]])),
            ),
        ],
        columns=2,
    )


def _corner_panel(
    found: Summary, axis: ChartAxis, value: Callable[[Mapping[str, Any]], float]
) -> ScatterPanel:
    return ScatterPanel(
        x=ChartAxis(label="corner, in the order of the table"),
        y=axis,
        clouds=[
            Cloud(
                label=values["title"],
                x=[float(place + 1) for place, _ in enumerate(values["corners"])],
                y=[value(corner) for corner in values["corners"].values()],
            )
            for values in found.values()
        ],
    )


STUDY: Final = Study(
    size=FidelitySize,
    tasks=tasks,
    measure=measure,
    show=show,
    estimate_s={"live": 600.0},
    needs_root=True,
)
