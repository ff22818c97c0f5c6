"""Figure 12a: output by input rate, up to and beyond the maximum throughput (section 3.4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.units import BPS_PER_MBPS
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.equations import throughput_bps
from loko_testbed.measure.bench.part import Combinations, Key, MeasurementPart, counts
from loko_testbed.measure.bench.procedures import dp_time, throughput
from loko_testbed.reproduce.analysis import linearity
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Reference
from loko_testbed.reproduce.figure_types.bench.document import Overload
from loko_testbed.reproduce.figure_types.bench.measured import LEFT_OUT, Measured, Shown, parts_with
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel


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


def _evaluate(figure: Overload, measured: Measured) -> tuple[Outcome, pa.Table]:
    lines = {entries: _line(figure, figure.table(entries), measured) for entries in figure.entries}
    outcome = Outcome(
        chart=_chart(lines),
        findings={**_findings(lines), LEFT_OUT: measured.left_out},
        x=AxisLabel(name="input rate", unit="Mbit/s"),
    )
    return outcome, _rows(lines)


def _parts(figure: Overload, quick: bool) -> list[MeasurementPart]:
    """Return the parts to measure: for each table processing times, the maximum, and each rate."""
    tables, frame_bytes = [figure.table(entries) for entries in figure.entries], figure.frame_bytes
    keys = {dp_time.PROCEDURE.key(table) for table in tables}
    chosen = parts_with(keys, figure.count(quick=quick), dp_time.PROCEDURE)
    for table in tables:

        def find(device: BenchDevice, _: int, table: TableCase = table) -> Combinations:
            maximum = throughput.finer_maximum(device, table, frame_bytes)
            return {frame_bytes: counts(maximum.bps)}

        chosen.append(MeasurementPart(_maximum(table, frame_bytes), find))
        for rate_bps in figure.rates_bps(quick=quick):

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


def _line(figure: Overload, table: TableCase, measured: Measured) -> Line:
    samples, frame_bytes = measured.samples, figure.frame_bytes
    rates_bps = figure.rates_bps(quick=measured.options.quick)
    rates = np.array([samples[_sweep(table, frame_bytes, rate)][frame_bytes] for rate in rates_bps])
    maximum = samples[_maximum(table, frame_bytes)][frame_bytes][0]
    p_fx_ns = float(samples[dp_time.PROCEDURE.key(table)][frame_bytes].mean())
    return Line(
        rates[:, 0] / BPS_PER_MBPS,
        rates[:, 1] / BPS_PER_MBPS,
        rates[:, 2],
        float(maximum) / BPS_PER_MBPS,
        throughput_bps(frame_bytes, p_fx_ns, measured.wire) / BPS_PER_MBPS,
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
            Reference(
                label=f"equation 6, {entries} entries",
                value=line.equation_6_mbps,
                curve=f"{entries} entries",
            )
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


OVERLOAD: Final = Shown(_parts, _evaluate, lambda figure: len(figure.entries) * figure.rates * _RATE_S)
