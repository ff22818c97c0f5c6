"""Sweep the input rate beyond the maximum throughput (section 3.4.2, figure 12a)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.switch_model.scenario import Scenario
from loko.units import BPS_PER_MBPS
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.equations import LinkTiming, throughput_bps
from loko_testbed.measure.bench.part import Combinations, Key, MeasurementPart, Samples, counts
from loko_testbed.measure.bench.procedures import dp_time, throughput
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Reference
from loko_testbed.reproduce.figure_types import IN_TASKS, FigureType
from loko_testbed.reproduce.figure_types.measured import LEFT_OUT, MEASURED, left_out, linearity, measure
from loko_testbed.reproduce.figure_types.overload.document import OverloadFigure
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options, Progress

_SAMPLES: Final = 100
"""Single frames that give the processing time in equation 6."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve, in Mbit/s."""

    input_mbps: NDArray[np.float64]
    output_mbps: NDArray[np.float64]
    lost: NDArray[np.int64]
    maximum_mbps: float
    equation_6_mbps: float

    @property
    def beyond(self) -> NDArray[np.bool_]:
        """Mask of the input rates clearly above the maximum."""
        return self.input_mbps > (1 + 2 * throughput.FINE_PRECISION) * self.maximum_mbps

    @property
    def within(self) -> NDArray[np.bool_]:
        """Mask of the input rates clearly below the maximum, at which nothing should be lost."""
        return self.input_mbps < (1 - throughput.FINE_PRECISION) * self.maximum_mbps


def compute(figure: OverloadFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Sweep the input for each number of entries."""
    count = figure.quick.rates if options.quick else figure.rates
    rates_bps = tuple(
        int(rate * BPS_PER_MBPS) for rate in np.linspace(figure.lowest_mbps, figure.highest_mbps, count)
    )
    make_parts = partial(parts_for, tuple(map(figure.table, figure.entries)), figure.frame_bytes, rates_bps)
    samples = measure(figure, options, progress, make_parts, samples=_SAMPLES)
    wire = figure.wire(options)
    lines = {
        entries: _line(figure.table(entries), figure.frame_bytes, rates_bps, samples, wire)
        for entries in figure.entries
    }
    outcome = Outcome(
        chart=_chart(lines),
        findings={**_findings(lines), LEFT_OUT: left_out(figure, options, samples.keys(), samples=_SAMPLES)},
        x=AxisLabel(name="input rate", unit="Mbit/s"),
        profile=figure.chosen(options).form,
    )
    return outcome, _rows(lines)


def parts_for(
    tables: tuple[TableCase, ...], frame_bytes: int, rates_bps: tuple[int, ...]
) -> list[MeasurementPart]:
    """Return the parts to measure: for each table processing times, the maximum, and each rate."""
    wanted = {dp_time.PROCEDURE.key(table) for table in tables}
    times = campaign.parts((dp_time.PROCEDURE,), samples=_SAMPLES, scenario=Scenario())
    chosen = [part for part in times if part.key in wanted]
    for table in tables:

        def find(device: BenchDevice, _: int, table: TableCase = table) -> Combinations:
            maximum = throughput.finer_maximum(device, table, frame_bytes)
            return {frame_bytes: counts(maximum.bps)}

        chosen.append(MeasurementPart(_maximum(table, frame_bytes), find))
        for rate_bps in rates_bps:

            def carry(
                device: BenchDevice, _: int, table: TableCase = table, rate_bps: int = rate_bps
            ) -> Combinations:
                rate = throughput.sweep(device, table, frame_bytes, [rate_bps])[0]
                values = (rate.input_bps, rate.output_bps, rate.lost)
                return {frame_bytes: counts(*values, left_out=rate.disturbed)}

            chosen.append(MeasurementPart(_sweep(table, frame_bytes, rate_bps), carry))
    return chosen


def _maximum(table: TableCase, frame_bytes: int) -> Key:
    return throughput.PROCEDURE.key("maximum", frame_bytes, table)


def _sweep(table: TableCase, frame_bytes: int, rate_bps: int) -> Key:
    return throughput.PROCEDURE.key("input", frame_bytes, rate_bps, table)


def _line(
    table: TableCase, frame_bytes: int, rates_bps: tuple[int, ...], samples: Samples, wire: LinkTiming
) -> Line:
    rates = np.array([samples[_sweep(table, frame_bytes, rate)][frame_bytes] for rate in rates_bps])
    maximum = samples[_maximum(table, frame_bytes)][frame_bytes][0]
    p_fx_ns = float(samples[dp_time.PROCEDURE.key(table)][frame_bytes].mean())
    return Line(
        rates[:, 0] / BPS_PER_MBPS,
        rates[:, 1] / BPS_PER_MBPS,
        rates[:, 2],
        float(maximum) / BPS_PER_MBPS,
        throughput_bps(frame_bytes, p_fx_ns, wire) / BPS_PER_MBPS,
    )


def _chart(lines: Mapping[int, Line]) -> Chart:
    panel = LinePanel(
        x=ChartAxis(label="input rate [Mbit/s]", low=0),
        y=ChartAxis(label="output rate [Mbit/s]", low=0),
        curves=[
            ChartCurve(label=f"{entries} entries", x=line.input_mbps.tolist(), y=line.output_mbps.tolist())
            for entries, line in lines.items()
        ],
        references=[
            Reference(label=f"equation 6, {entries} entries", value=line.equation_6_mbps)
            for entries, line in lines.items()
        ],
    )
    return Chart(panels=[panel], caption="5000 frames a rate")


def _findings(lines: Mapping[int, Line]) -> dict[str, float]:
    findings = {}
    for entries, line in lines.items():
        name = f"{entries}_entries"
        findings[f"maximum_{name}_mbps"] = line.maximum_mbps
        findings[f"equation_6_{name}_mbps"] = line.equation_6_mbps
        error = 100 * abs(line.equation_6_mbps / line.maximum_mbps - 1)
        findings[f"equation_6_error_{name}_percent"] = error
        if line.within.any():
            deviation = np.abs(line.output_mbps / line.input_mbps - 1)[line.within]
            findings[f"deviation_below_maximum_{name}_percent"] = 100 * float(deviation.max())
        if line.beyond.sum() > 2:
            slope, r2 = linearity(
                line.input_mbps[line.beyond].tolist(), line.output_mbps[line.beyond].tolist()
            )
            findings[f"slope_{name}_beyond"] = slope
            findings[f"linearity_{name}_beyond"] = r2
            findings[f"last_output_{name}_mbps"] = float(line.output_mbps[-1])
    return findings


def _rows(lines: Mapping[int, Line]) -> pa.Table:
    return pa.table(
        {
            "entries": np.concatenate([np.full(len(line.lost), entries) for entries, line in lines.items()]),
            "input_mbps": np.concatenate([line.input_mbps for line in lines.values()]),
            "output_mbps": np.concatenate([line.output_mbps for line in lines.values()]),
            "lost": np.concatenate([line.lost for line in lines.values()]),
        }
    )


_RATE_S: Final = 0.1
"""One rate in virtual time; measured on an x86-64 VM."""
_LIVE_RATE_S: Final = 3.0


def _estimate_s(figure: OverloadFigure) -> dict[str, float]:
    count = len(figure.entries) * figure.rates
    times = {"virtual": 3 + count * _RATE_S, "live": 15 + count * _LIVE_RATE_S}
    return {mode: times[mode] for mode in figure.modes if mode in times}


FIGURE_TYPE: Final = FigureType(
    document=OverloadFigure,
    compute=OneByOne(compute, MEASURED),
    estimate_s=_estimate_s,
    supported_options=IN_TASKS,
)
