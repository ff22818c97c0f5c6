"""Figure 6a: echo requests over time, while the firmware does its three periodic jobs (section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.switch_model.device import load_profile
from loko.switch_model.quantity import Section
from loko.units import NS_PER_US
from loko_testbed.measure.bench.part import Key, NoFrameLength
from loko_testbed.measure.bench.procedures.messages import (
    ECHO_MODIFIED,
    ECHO_SPACING_NS,
    ECHO_UNMODIFIED,
)
from loko_testbed.reproduce.chart import Chart, ChartAxis, Cloud, Panel, TimePanel
from loko_testbed.reproduce.figure_types.bench.document import ControlPlane
from loko_testbed.reproduce.figure_types.bench.measured import Measured, messages_shown
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult

_SPIKE_NS: Final = 5_000_000
"""A request that takes longer has met the job that reads port counters."""
_APART_NS: Final = 250_000_000
"""Requests delayed by the same job are closer together than this; jobs are 501 ms apart."""
_NEAR_NS: Final = 4_000_000
"""Distance from its expected instant within which a job is searched for."""
_JOBS: Final = ("port_counters", "link_status", "flow_timeouts")
_LATE_NS: Final = 10_000
"""Excess over the usual time that the phase of the main loop cannot explain."""


@dataclass(frozen=True, slots=True)
class EchoSeries:
    """Processing times of echo requests, with the instants at which these were sent."""

    at_ns: NDArray[np.int64]
    times_ns: NDArray[np.int64]

    @property
    def usual_ns(self) -> float:
        """The median processing time."""
        return float(np.median(self.times_ns))

    def spikes_ns(self) -> NDArray[np.float64]:
        """Return the instants of the first requests that each occurrence of the longest job delayed."""
        at = self.at_ns[self.times_ns > _SPIKE_NS]
        if not len(at):
            return np.array([])
        first = np.concatenate(([True], np.diff(at) > _APART_NS))
        return at[first].astype(np.float64)

    def near(self, at_ns: float) -> NDArray[np.int64]:
        """Return the processing times of requests sent around an instant."""
        there: NDArray[np.int64] = self.times_ns[np.abs(self.at_ns - at_ns) < _NEAR_NS]
        return there


def _evaluate(_figure: ControlPlane, measured: Measured) -> tuple[Outcome, pa.Table]:
    """Search both series for the jobs."""
    samples = measured.samples
    unmodified, modified = (
        EchoSeries(samples[key][NoFrameLength.CONTEXT], samples[key][NoFrameLength.VALUES])
        for key in (ECHO_UNMODIFIED, ECHO_MODIFIED)
    )
    spikes = unmodified.spikes_ns()
    findings = {
        "usual_us": unmodified.usual_ns / NS_PER_US,
        "longest_ms": float(unmodified.times_ns.max()) / NS_PER_US / 1000,
        "longest_without_jobs_us": float(modified.times_ns.max()) / NS_PER_US,
        "spikes": float(len(spikes)),
        "unanswered": float(measured.left_out),
    }
    table = None
    if len(spikes) > 1:
        spacing_ns = float(spikes[-1] - spikes[0]) / (len(spikes) - 1)
        findings["spike_spacing_s"] = spacing_ns / 1e9
        findings["job_spacing_ms"] = spacing_ns / len(_JOBS) / 1e6
        costs = load_profile(measured.device.form).cpu.housekeeping
        table, of_jobs = _jobs(costs, unmodified, spikes, spacing_ns)
        findings |= of_jobs
    outcome = Outcome(
        chart=_chart(unmodified, modified),
        findings=findings,
        x=AxisLabel(name="time", unit="s"),
        table=table,
    )
    return outcome, _rows({ECHO_UNMODIFIED: unmodified, ECHO_MODIFIED: modified})


def _jobs(
    costs: Section, series: EchoSeries, spikes_ns: NDArray[np.float64], spacing_ns: float
) -> tuple[TableResult, dict[str, float]]:
    """Compare what is observed of each job with the profile's cost; the first job causes the spikes."""
    findings = {}
    rows: list[list[str | float]] = []
    for place, job in enumerate(_JOBS):
        expected = spikes_ns + place * spacing_ns / len(_JOBS)
        expected = expected[expected < series.at_ns[-1]]
        excess = [float(series.near(at).max()) - series.usual_ns for at in expected if len(series.near(at))]
        seen = sum(1 for late_ns in excess if late_ns > _LATE_NS)
        largest_us = max(excess, default=0.0) / NS_PER_US
        findings[f"{job}_excess_us"] = largest_us
        charged_us = getattr(costs, f"{job}_ps").value / 1e6
        # A request is late if it arrives during the job, or so shortly before that it is not answered yet.
        chance = min((charged_us * NS_PER_US + series.usual_ns) / ECHO_SPACING_NS, 1.0) if charged_us else 0.0
        many = float(len(excess))
        rows.append([job.replace("_", " "), charged_us, many, chance * many, float(seen), largest_us])
    columns = ["job", "charged_us", "times", "expected_seen", "seen", "largest_excess_us"]
    return TableResult(columns=columns, rows=rows), findings


def _chart(unmodified: EchoSeries, modified: EchoSeries) -> Chart:
    """Return the chart: a panel with the jobs and one without."""
    x = ChartAxis(label="time [s]")
    panels: list[Panel] = [
        TimePanel(
            title=title,
            x=x,
            y=ChartAxis(label="processing time [us]", log=True, low=50, high=100_000),
            clouds=[
                Cloud(
                    label="",
                    x=np.round(line.at_ns / 1e9, 4).tolist(),
                    y=np.round(line.times_ns / NS_PER_US, 1).tolist(),
                )
            ],
        )
        for title, line in (
            ("unmodified firmware", unmodified),
            ("without the jobs of OFCHECKS()", modified),
        )
    ]
    caption = f"an EchoRequest every {ECHO_SPACING_NS / 1e6:.4g} ms, {len(unmodified.at_ns)} in each series"
    return Chart(panels=panels, caption=caption)


def _rows(series: dict[Key, EchoSeries]) -> pa.Table:
    names = [key.name for key, line in series.items() for _ in range(len(line.at_ns))]
    return pa.table(
        {
            "what": pa.array(names).dictionary_encode(),
            "at_ns": np.concatenate([line.at_ns for line in series.values()]),
            "time_ns": np.concatenate([line.times_ns for line in series.values()]),
        }
    )


ECHO_OVER_TIME: Final = messages_shown(_evaluate, ECHO_UNMODIFIED, ECHO_MODIFIED)
