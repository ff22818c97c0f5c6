"""Figure 10d: the integrated switch alone, compared with the two other elements (section 3.4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.switch_model.scenario import ActionType, MatchType, PriorityOrder, UsedEntry
from loko.units import BPS_PER_MBPS, NS_PER_US
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.part import MeasurementPart
from loko_testbed.measure.bench.procedures import dp_time, is_time
from loko_testbed.measure.bench.procedures.is_time import (
    FOOTNOTE_BYTES,
    PipelineComparison,
    compare,
    longest_that_suffices_ns,
)
from loko_testbed.reproduce.chart import BoxPanel, Chart, ChartAxis, FindingPlace, Span
from loko_testbed.reproduce.figure_types.bench.document import IntegratedSwitchFigure
from loko_testbed.reproduce.figure_types.bench.measured import (
    WHISKERS,
    Measured,
    Shown,
    boxes_us,
    parts_with,
    sample_numbers,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult

_FASTEST: Final = TableCase(
    entries=1,
    match=MatchType.PORT,
    action=ActionType.OUTPUT,
    used_entry=UsedEntry.FIRST,
    priorities=PriorityOrder.INCREASING,
)
"""The table with which the CPU is fastest."""
_CPU_PART: Final = dp_time.PROCEDURE.key(_FASTEST)

ByLength = Mapping[int, NDArray[np.int64]]


def _evaluate(_figure: IntegratedSwitchFigure, measured: Measured) -> tuple[Outcome, pa.Table]:
    times, wire = is_time.times_ns(measured.samples), measured.wire
    compared = _compared(times, measured.samples[_CPU_PART], wire)
    findings = _findings(times, compared, wire)
    outcome = Outcome(
        chart=_chart(times, findings),
        findings=findings,
        x=AxisLabel(name="packet size", unit="byte"),
        table=TableResult(
            columns=["frame_bytes", "switch_mbps", "twice_link_mbps", "fastest_cpu_mbps"],
            rows=[_row(size, comparison) for size, comparison in compared.items()],
        ),
    )
    return outcome, _rows(times)


def _parts(figure: IntegratedSwitchFigure, quick: bool) -> list[MeasurementPart]:
    """Return the parts to measure: the integrated switch alone, and the board with its fastest table."""
    keys = {is_time.ALONE, _CPU_PART}
    return parts_with(keys, figure.count(quick=quick), is_time.PROCEDURE, dp_time.PROCEDURE)


def _compared(times: ByLength, p_fx: ByLength, wire: LinkTiming) -> dict[int, PipelineComparison]:
    """Compare rates by frame length, including the frame of footnote 1, whose times are extrapolated.

    p_IS does not depend on the length, and p_FX is linear in it.
    """
    longest = {size: float(samples.max()) for size, samples in times.items()}
    shortest = {size: float(samples.min()) for size, samples in p_fx.items()}
    slope, offset = np.polyfit(list(shortest), list(shortest.values()), 1)
    longest = {FOOTNOTE_BYTES: max(longest.values()), **longest}
    shortest[FOOTNOTE_BYTES] = float(slope * FOOTNOTE_BYTES + offset)
    return compare(longest, shortest, wire)


def _findings(
    times: ByLength, compared: Mapping[int, PipelineComparison], wire: LinkTiming
) -> dict[str, float]:
    means = [float(samples.mean()) for samples in times.values()]
    every = np.concatenate(list(times.values()))
    of_ethernet = {size: comparison for size, comparison in compared.items() if size != FOOTNOTE_BYTES}
    footnote = compared[FOOTNOTE_BYTES]
    return {
        "p_is_mean_us": float(every.mean()) / NS_PER_US,
        "p_is_max_us": float(every.max()) / NS_PER_US,
        "p_is_spread_us": float(every.std()) / NS_PER_US,
        "change_over_sizes_percent": 100 * (max(means) - min(means)) / float(np.mean(means)),
        "switch_over_twice_link_min": min(
            _over_twice_link(comparison) for comparison in of_ethernet.values()
        ),
        "sizes_with_switch_as_bottleneck": float(
            sum(comparison.is_bottleneck for comparison in of_ethernet.values())
        ),
        "footnote_switch_over_twice_link": _over_twice_link(footnote),
        "footnote_cpu_over_link": (footnote.cpu_bps or 0.0) / footnote.inner_link_bps,
        "footnote_switch_is_bottleneck": float(footnote.is_bottleneck),
        "longest_for_48_bytes_us": longest_that_suffices_ns(FOOTNOTE_BYTES, wire) / NS_PER_US,
        "longest_for_64_bytes_us": longest_that_suffices_ns(min(times), wire) / NS_PER_US,
    }


def _over_twice_link(comparison: PipelineComparison) -> float:
    return comparison.switch_bps / (2 * comparison.inner_link_bps)


def _row(size: int, comparison: PipelineComparison) -> list[str | float]:
    cpu_mbps = (comparison.cpu_bps or 0.0) / BPS_PER_MBPS
    return [
        float(size),
        comparison.switch_bps / BPS_PER_MBPS,
        2 * comparison.inner_link_bps / BPS_PER_MBPS,
        cpu_mbps,
    ]


def _chart(times: ByLength, findings: Mapping[str, float]) -> Chart:
    """Return boxes of the measured times. Behind them is where footnote 1 says that the longest one lies."""
    low_us, high_us = findings["longest_for_48_bytes_us"], findings["longest_for_64_bytes_us"]
    allowed = Span(
        label=f"longest time by footnote 1, {low_us:.2f} to {high_us:.2f} us", low=low_us, high=high_us
    )
    panel = BoxPanel(
        x=ChartAxis(label="packet size [byte]"),
        y=ChartAxis(label="processing time of the integrated switch [us]"),
        findings=[FindingPlace(finding="p_is_mean_us")],
        places=[str(size) for size in times],
        groups=boxes_us(times.values()),
        whiskers=WHISKERS,
        spans=[allowed],
    )
    return Chart(panels=[panel], caption=f"{min(map(len, times.values()))} packets of each size")


def _rows(times: ByLength) -> pa.Table:
    return pa.table(
        {
            "frame_bytes": np.repeat(list(times), [len(samples) for samples in times.values()]),
            "sample": sample_numbers(times.values()),
            "p_is_ns": np.concatenate(list(times.values())),
        }
    )


INTEGRATED_SWITCH: Final = Shown(_parts, _evaluate, lambda _: 1.0)
