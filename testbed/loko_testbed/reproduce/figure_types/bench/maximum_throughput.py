"""Figure 12b: the maximum throughput compared with equations 5 and 6 (section 3.4.2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from loko.units import BPS_PER_MBPS
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.equations import LinkTiming, sequential_throughput_bps, throughput_bps
from loko_testbed.measure.bench.part import Combinations, Key, MeasurementPart, Samples, counts
from loko_testbed.measure.bench.procedures import dp_time, throughput
from loko_testbed.reproduce.chart import Chart, ChartAxis, Cloud, Reference, ScatterPanel
from loko_testbed.reproduce.figure_types.bench.document import MaximumThroughput, ThroughputCases
from loko_testbed.reproduce.figure_types.bench.measured import LEFT_OUT, Measured, Shown, parts_with
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult

_RESOLVED_BPS: Final = throughput.PAPER_PRECISION_BPS / 0.06
"""Rate from which the paper's resolution is finer than the 6 % that it claims."""
_COLUMNS: Final = [
    "match",
    "priorities",
    "used_entry",
    "entries",
    "frame_bytes",
    "measured_mbps",
    "measured_by_650_kbps_steps_mbps",
    "equation_5_mbps",
    "equation_6_mbps",
    "equation_5_error_percent",
    "equation_6_error_percent",
]


@dataclass(frozen=True, slots=True)
class ThroughputComparison:
    """One case: the measured throughput, and the results of the equations."""

    table: TableCase
    frame_bytes: int
    measured_bps: float
    by_paper_bps: float
    """Measured with the paper's precision."""
    equation_5_bps: float
    equation_6_bps: float

    def error_percent(self, computed_bps: float) -> float:
        """Return the relative error of a computed throughput in per cent."""
        return 100 * (computed_bps / self.measured_bps - 1)


def _evaluate(figure: MaximumThroughput, measured: Measured) -> tuple[Outcome, pa.Table]:
    quick = measured.options.quick
    compared = list(_comparisons(figure.cases(quick=quick), measured.samples, measured.wire))
    table = TableResult(columns=_COLUMNS, rows=[_row(comparison) for comparison in compared])
    outcome = Outcome(
        chart=_chart(compared, figure.count(quick=quick)),
        findings={**_findings(compared), LEFT_OUT: measured.left_out},
        x=AxisLabel(name="measured throughput", unit="Mbit/s"),
        table=table,
    )
    columns = zip(*table.rows, strict=True)
    return outcome, pa.table(dict(zip(_COLUMNS, map(list, columns), strict=True)))


def _parts(figure: MaximumThroughput, quick: bool) -> list[MeasurementPart]:
    """Return the parts to measure: processing times and maximum throughput of every case."""
    cases = figure.cases(quick=quick)
    tables = list(cases.tables())
    keys = {dp_time.PROCEDURE.key(table) for table in tables}
    maxima = [_maximum(table, size) for table in tables for size in cases.frame_bytes]
    return parts_with(keys, figure.count(quick=quick), dp_time.PROCEDURE) + maxima


def _maximum(table: TableCase, size: int) -> MeasurementPart:
    def measure_one(device: BenchDevice, _: int) -> Combinations:
        maximum = throughput.finer_maximum(device, table, size)
        return {size: counts(maximum.bps, maximum.by_paper_bps)}

    return MeasurementPart(_key(table, size), measure_one)


def _key(table: TableCase, size: int) -> Key:
    return throughput.PROCEDURE.key("finer", size, table)


def _comparisons(
    cases: ThroughputCases, samples: Samples, wire: LinkTiming
) -> Iterator[ThroughputComparison]:
    """Yield each case with the equations' results for its mean processing time."""
    for table in cases.tables():
        for size in cases.frame_bytes:
            p_fx_ns = float(samples[dp_time.PROCEDURE.key(table)][size].mean())
            measured, by_paper = samples[_key(table, size)][size]
            yield ThroughputComparison(
                table,
                size,
                float(measured),
                float(by_paper),
                sequential_throughput_bps(size, p_fx_ns),
                throughput_bps(size, p_fx_ns, wire),
            )


def _chart(compared: list[ThroughputComparison], samples: int) -> Chart:
    measured = [comparison.measured_bps / BPS_PER_MBPS for comparison in compared]
    of_values = ScatterPanel(
        x=ChartAxis(label="measured throughput [Mbit/s]", log=True),
        y=ChartAxis(label="computed throughput [Mbit/s]", log=True),
        clouds=[
            Cloud(
                label="equation 5",
                x=measured,
                y=[comparison.equation_5_bps / BPS_PER_MBPS for comparison in compared],
            ),
            Cloud(
                label="equation 6",
                x=measured,
                y=[comparison.equation_6_bps / BPS_PER_MBPS for comparison in compared],
            ),
        ],
        diagonal=True,
    )
    of_errors = ScatterPanel(
        x=ChartAxis(label="measured throughput [Mbit/s]", log=True),
        y=ChartAxis(label="equation 6 over measurement - 1 [%]", linear_to=10),
        clouds=[
            Cloud(
                label="measured to within 0.5 %",
                x=measured,
                y=[comparison.error_percent(comparison.equation_6_bps) for comparison in compared],
            ),
            Cloud(
                label="measured in steps of 650 kbit/s, as the paper",
                x=measured,
                y=[_paper_error(comparison) for comparison in compared],
            ),
        ],
        references=[Reference(label="paper: below 6 %", value=value) for value in (6, -6)],
    )
    caption = f"{len(compared)} cases, p_FX from {samples} packets each"
    return Chart(panels=[of_values, of_errors], columns=2, caption=caption)


def _paper_error(comparison: ThroughputComparison) -> float:
    return 100 * (comparison.equation_6_bps / comparison.by_paper_bps - 1)


def _findings(compared: list[ThroughputComparison]) -> dict[str, float]:
    errors_6 = [abs(comparison.error_percent(comparison.equation_6_bps)) for comparison in compared]
    errors_5 = [comparison.error_percent(comparison.equation_5_bps) for comparison in compared]
    by_paper = [abs(_paper_error(comparison)) for comparison in compared]
    resolved = [
        error
        for error, comparison in zip(by_paper, compared, strict=True)
        if comparison.measured_bps >= _RESOLVED_BPS
    ]
    rising = np.argsort([comparison.measured_bps for comparison in compared], kind="stable")
    ordered = [errors_5[place] for place in rising]
    third = max(len(ordered) // 3, 1)
    return {
        "cases": float(len(compared)),
        "equation_6_error_max_percent": max(errors_6),
        "equation_6_error_mean_percent": float(np.mean(errors_6)),
        "equation_6_cases_at_6_percent_or_more": float(sum(error >= 6 for error in errors_6)),
        "equation_6_error_max_by_650_kbps_steps_percent": max(by_paper),
        "equation_6_error_max_by_650_kbps_steps_above_10800_kbps_percent": max(resolved, default=0.0),
        "equation_5_error_max_percent": max(errors_5),
        "equation_5_too_low_by_max_percent": -min(errors_5),
        "equation_5_too_low_at_low_throughput_percent": -float(np.mean(ordered[:third])),
        "equation_5_too_low_at_high_throughput_percent": -float(np.mean(ordered[-third:])),
        "measured_min_mbps": min(comparison.measured_bps for comparison in compared) / BPS_PER_MBPS,
        "measured_max_mbps": max(comparison.measured_bps for comparison in compared) / BPS_PER_MBPS,
    }


def _row(comparison: ThroughputComparison) -> list[str | float]:
    table = comparison.table
    rates = (
        comparison.measured_bps,
        comparison.by_paper_bps,
        comparison.equation_5_bps,
        comparison.equation_6_bps,
    )
    return [
        str(table.match.value),
        str(table.priorities.value),
        str(table.used_entry.value),
        table.entries,
        comparison.frame_bytes,
        *(round(rate / BPS_PER_MBPS, 6) for rate in rates),
        round(comparison.error_percent(comparison.equation_5_bps), 4),
        round(comparison.error_percent(comparison.equation_6_bps), 4),
    ]


_CASE_CPU_S: Final = 0.4
"""One case in virtual time; measured on an x86-64 VM."""


def _virtual_s(figure: MaximumThroughput) -> float:
    cases = figure.cases(quick=False)
    count = sum(1 for _ in cases.tables()) * len(cases.frame_bytes)
    return count * _CASE_CPU_S / len(os.sched_getaffinity(0))


MAXIMUM_THROUGHPUT: Final = Shown(_parts, _evaluate, _virtual_s)
