"""How exactly the live emulator keeps its departure times.

A paced sender's frames pass one board between two veths.
The emulator records when each frame should leave; the kernel's timestamp at the receiving veth tells when it
did. Frames delayed by a stall of the emulator tell about this machine only, so they are counted separately.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from loko.document import StrictModel
from loko_testbed.instruments.programs import require_emulator
from loko_testbed.live.one_board import (
    SEQUENCE_OFFSET,
    BenchmarkController,
    BenchmarkTap,
    EmulatorProcess,
    Namespace,
    PacedFlow,
    add_flow,
    read_trace,
    send_paced,
    sequence_of,
    udp_frame,
)
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study


class LiveAccuracySize(StrictModel):
    """How much is measured."""

    rates_pps: list[int]
    seconds: float
    """For how long frames are sent at each rate."""


class LiveAccuracyTask(NamedTuple):
    """A rate."""

    rate_pps: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.rate_pps:,} packets a second"


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Observed minus intended departure in nanoseconds; negative is early."""

    count: int
    p50: int
    p99: int
    p999: int
    max: int

    @classmethod
    def of(cls, errors_ns: Sequence[int]) -> Errors:
        """Compute the quantiles of errors; all are 0 without any errors."""
        if not errors_ns:
            return cls(count=0, p50=0, p99=0, p999=0, max=0)
        p50, p99, p999 = (int(value) for value in np.quantile(errors_ns, [0.5, 0.99, 0.999]))
        return cls(count=len(errors_ns), p50=p50, p99=p99, p999=p999, max=max(errors_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The result for one rate."""

    rate_pps: int
    sent: int
    received: int
    dropped_by_board: int
    """Frames dropped because the buffer was full, as this machine delivered frames in bursts."""
    error_ns: Errors
    """Errors of frames that no stall delayed."""
    error_in_stalls_ns: Errors
    stalls: int
    worst_stall_ns: int
    scheduling: str
    send_lead_ns: int


def tasks(size: LiveAccuracySize, _seed: int) -> list[LiveAccuracyTask]:
    """Return the rates."""
    return [LiveAccuracyTask(rate_pps, size.seconds) for rate_pps in size.rates_pps]


def measure(task: LiveAccuracyTask) -> Rows:
    """Send at a rate. Raises `RunError`."""
    return [asdict(_measure_rate(require_emulator(), task.rate_pps, task.seconds))]


def _measure_rate(program: Path, rate_pps: int, seconds: float) -> Accuracy:
    sent = int(rate_pps * seconds)
    core = max(os.sched_getaffinity(0))
    with (
        tempfile.TemporaryDirectory(prefix="loko-live-accuracy-") as name,
        Namespace([("h1", "s1-eth1"), ("h2", "s1-eth2")]) as namespace,
    ):
        folder = Path(name)
        trace = folder / "trace.csv"
        process = f'cpu = {core}\ntrace = "{trace}"\ntrace_sequence_offset = {SEQUENCE_OFFSET}\n'
        with (
            BenchmarkController(namespace) as controller,
            BenchmarkTap(namespace, "h2") as tap,
            EmulatorProcess(program, namespace, folder, controller.port, process=process) as emulator,
        ):
            controller.handshake()
            controller.write(add_flow(2))
            controller.confirm()
            interval_ns = 1_000_000_000 // rate_pps
            flow = PacedFlow(
                interface="h1",
                frame=udp_frame(0),
                count=sent,
                interval_ns=interval_ns,
                spread_ns=interval_ns // 2,
            )
            send_paced(program, namespace, folder, [flow], elsewhere=core)
            frames = tap.seen(outgoing=False, count=sent, timeout_s=1.0)
            report = emulator.end()
        observed = {sequence_of(frame.data): frame.at_ns for frame in frames}
        outside, inside = errors(trace, observed)
    return Accuracy(
        rate_pps=rate_pps,
        sent=sent,
        received=len(observed),
        dropped_by_board=report["boards"]["s1"]["counters"]["dropped_buffer"],
        error_ns=Errors.of(outside),
        error_in_stalls_ns=Errors.of(inside),
        stalls=report["stalls"]["count"],
        worst_stall_ns=report["stalls"]["worst_ns"],
        scheduling=report["scheduling"],
        send_lead_ns=report["send_lead_ns"],
    )


def errors(trace: Path, observed: dict[int, int]) -> tuple[list[int], list[int]]:
    """Return errors in ns outside and inside stalls, matching trace and observations by frame number."""
    outside: list[int] = []
    inside: list[int] = []
    for number, departure in read_trace(trace).items():
        if number in observed:
            error_ns = observed[number] - departure.intended_ns
            (inside if departure.in_stall else outside).append(error_ns)
    return outside, inside


def show(rows: Rows) -> Outcome:
    """Show the errors at each rate, outside and inside stalls of the machine."""
    quantiles = ("p50", "p99", "p999", "max")
    kinds = {"error_ns": "outside stalls", "error_in_stalls_ns": "within stalls"}
    return Outcome(
        chart=Chart(
            panels=[
                LinePanel(
                    x=ChartAxis(label="packets a second", low=0),
                    y=ChartAxis(label="error of the departure [us], outside stalls", log=True),
                    curves=[
                        ChartCurve(
                            label=quantile,
                            x=[row["rate_pps"] for row in rows],
                            y=[max(row["error_ns"][quantile], 1) / 1e3 for row in rows],
                        )
                        for quantile in quantiles
                    ],
                )
            ]
        ),
        findings={
            f"rate_{row['rate_pps']}_{quantile}_us": row["error_ns"][quantile] / 1e3
            for row in rows
            for quantile in quantiles
        },
        x=AxisLabel(name="packets a second", unit=""),
        profile="zodiac-fx",
        table=TableResult(
            columns=["packets a second", "", "packets", "p50", "p99", "p99.9", "max", "stalls"],
            rows=[
                [
                    f"{row['rate_pps']:,}",
                    words,
                    f"{row[kind]['count']:,}",
                    *(time_text(row[kind][quantile]) for quantile in quantiles),
                    str(row["stalls"]),
                ]
                for row in rows
                for kind, words in kinds.items()
            ],
        ),
    )


def time_text(nanoseconds: float) -> str:
    """Format a time in nanoseconds with a suitable unit."""
    if nanoseconds < 100:
        return f"{nanoseconds:.0f} ns"
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.1f} us"
    return f"{nanoseconds / 1e6:.2f} ms"


STUDY: Final = Study(
    size=LiveAccuracySize,
    tasks=tasks,
    measure=measure,
    show=show,
    estimate_s={"live": 30.0},
    needs_root=True,
)
