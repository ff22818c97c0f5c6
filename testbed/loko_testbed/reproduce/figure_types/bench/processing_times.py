"""Figures 9 and 10: processing times, with the throughput of equation 6 (section 3.3)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.switch_model.scenario import TABLE_1_FRAME_BYTES
from loko.units import BPS_PER_MBPS, NS_PER_US
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.equations import LinkTiming, link_bps, throughput_bps
from loko_testbed.measure.bench.part import MeasurementPart, Samples
from loko_testbed.measure.bench.procedures import dp_time
from loko_testbed.reproduce.analysis import linearity
from loko_testbed.reproduce.chart import BoxPanel, Chart, ChartAxis, FindingPlace, PlacedLine
from loko_testbed.reproduce.figure_types.bench.document import ProcessingTimesFigure, Subset
from loko_testbed.reproduce.figure_types.bench.measured import (
    LEFT_OUT,
    WHISKERS,
    Measured,
    Shown,
    boxes_us,
    parts_with,
    sample_numbers,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel

_FRAMES_PER_CPU_S: Final = 50_000
"""Single frames measured per CPU second in virtual time, with tables installed; on an x86-64 VM."""
_AT_LINE_RATE: Final = 0.9999
_NAMES: Final = {
    "entries": "number of entries",
    "frame_bytes": "packet size [byte]",
    "match": "match type",
    "action": "action",
    "order": "priorities and used entry",
}
_NUMBERS: Final = frozenset({"entries", "frame_bytes"})
"""Dimensions that are numbers; the others are categories."""


@dataclass(frozen=True, slots=True)
class MeasuredCombination:
    """One combination of Table 1 with its samples."""

    table: TableCase
    frame_bytes: int
    times_ns: NDArray[np.int64]
    throughput_bps: float
    """Throughput by equation 6 for the mean time."""
    at_line_rate: bool
    """Whether the link to the CPU, not the CPU itself, limits the throughput."""


def _evaluate(figure: ProcessingTimesFigure, measured: Measured) -> tuple[Outcome, pa.Table]:
    """Aggregate the samples by place on the x axis."""
    quick = measured.options.quick
    every = list(_combinations(figure.chosen_part(quick=quick), measured.samples, measured.wire))
    places: dict[str, list[MeasuredCombination]] = {}
    for combination in every:
        places.setdefault(figure.place(combination.table, combination.frame_bytes), []).append(combination)
    outcome = Outcome(
        chart=_chart(figure, places, figure.count(quick=quick)),
        findings={**_findings(figure, every, places), LEFT_OUT: measured.left_out},
        x=AxisLabel(name=_NAMES[figure.over], unit=""),
    )
    return outcome, _rows(every)


def _parts(figure: ProcessingTimesFigure, quick: bool) -> list[MeasurementPart]:
    """Return the parts of the figure's tables, with all frame lengths of Table 1."""
    keys = {dp_time.PROCEDURE.key(table) for table in figure.chosen_part(quick=quick).tables()}
    return parts_with(keys, figure.count(quick=quick), dp_time.PROCEDURE)


def _combinations(part: Subset, samples: Samples, wire: LinkTiming) -> Iterator[MeasuredCombination]:
    """Yield the combinations of a part of Table 1 with their samples."""
    for table in part.tables():
        by_size = samples[dp_time.PROCEDURE.key(table)]
        for size in part.frame_bytes:
            times_ns = by_size[size]
            throughput = throughput_bps(size, float(times_ns.mean()), wire)
            yield MeasuredCombination(
                table, size, times_ns, throughput, throughput >= _AT_LINE_RATE * link_bps(size, wire)
            )


def _chart(
    figure: ProcessingTimesFigure, places: Mapping[str, list[MeasuredCombination]], samples: int
) -> Chart:
    throughputs = [
        [combination.throughput_bps / BPS_PER_MBPS for combination in combined]
        for combined in places.values()
    ]
    aggregated = any(len(values) > 1 for values in throughputs)
    means: list[float | None] = [float(np.mean(values)) for values in throughputs]
    joined = figure.over in _NUMBERS
    lines = [PlacedLine(label="throughput (eq. 6)", y=means, joined=joined)]
    if aggregated:
        ends = "least and largest throughput of a combination"
        lines = [
            PlacedLine(label=ends, y=[min(values) for values in throughputs], dashed=True, joined=joined),
            PlacedLine(label=ends, y=[max(values) for values in throughputs], dashed=True, joined=joined),
            PlacedLine(label="mean throughput (eq. 6)", y=means, joined=joined),
        ]
    panel = BoxPanel(
        x=ChartAxis(label=_NAMES[figure.over]),
        y=ChartAxis(label="processing time [us]"),
        findings=_finding_places(places),
        places=list(places),
        groups=boxes_us([_times(combined) for combined in places.values()]),
        whiskers=WHISKERS,
        second=ChartAxis(label="throughput [Mbit/s]"),
        lines=lines,
    )
    count = sum(map(len, places.values()))
    return Chart(panels=[panel], caption=f"{count} combinations, {samples} packets each")


def _in_finding(place: str) -> str:
    """Return a place's name as it is in names of findings."""
    return place.replace("-", "_")


def _finding_places(places: Mapping[str, list[MeasuredCombination]]) -> list[FindingPlace]:
    """Return the places of the findings that the chart shows."""
    of_all = [
        FindingPlace(finding="p_fx_min_us", words="(shortest)"),
        FindingPlace(finding="p_fx_max_us", words="(longest)"),
        FindingPlace(finding="p_fx_max_ms", scale=1e3, words="(longest)"),
        FindingPlace(finding="throughput_min_mbps", of="second", words="(lowest)"),
    ]
    names = [_in_finding(place) for place in places]
    of_each = [FindingPlace(finding=f"p_fx_{name}_us", x=number) for number, name in enumerate(names)]
    of_each += [
        FindingPlace(finding=f"throughput_{name}_mbps", of="second", x=number)
        for number, name in enumerate(names)
    ]
    return [*of_all, *of_each]


def _times(combined: list[MeasuredCombination]) -> NDArray[np.int64]:
    return np.concatenate([combination.times_ns for combination in combined])


def _findings(
    figure: ProcessingTimesFigure,
    measured: list[MeasuredCombination],
    places: Mapping[str, list[MeasuredCombination]],
) -> dict[str, float]:
    times = _times(measured)
    rates = [combination.throughput_bps / BPS_PER_MBPS for combination in measured]
    spreads = [float(combination.times_ns.std()) for combination in measured]
    findings = {
        "combinations": float(len(measured)),
        "p_fx_min_us": float(times.min()) / NS_PER_US,
        "p_fx_max_us": float(times.max()) / NS_PER_US,
        "p_fx_max_ms": float(times.max()) / NS_PER_US / 1000,
        "throughput_min_mbps": min(rates),
        "throughput_max_mbps": max(rates),
        "spread_max_us": max(spreads) / NS_PER_US,
        "spread_median_percent": 100
        * float(
            np.median(
                [s / combination.times_ns.mean() for s, combination in zip(spreads, measured, strict=True)]
            )
        ),
    }
    means = {}
    for place, combined in places.items():
        name = _in_finding(place)
        means[place] = float(_times(combined).mean())
        findings[f"p_fx_{name}_us"] = means[place] / NS_PER_US
        findings[f"throughput_{name}_mbps"] = (
            float(np.mean([combination.throughput_bps for combination in combined])) / BPS_PER_MBPS
        )
    fast = [
        place
        for place, combined in places.items()
        if any(combination.at_line_rate for combination in combined)
    ]
    findings["line_rate_places"] = float(len(fast))
    findings["growth"] = max(means.values()) / min(means.values())
    if figure.over in _NUMBERS:
        findings |= _numeric(figure, means, fast)
    return findings | _growths(measured)


def _numeric(figure: ProcessingTimesFigure, means: Mapping[str, float], fast: list[str]) -> dict[str, float]:
    """Return findings on an x axis of numbers."""
    unit = "entries" if figure.over == "entries" else "bytes"
    growths = {}
    if len(means) > 2:
        slope, r2 = linearity([float(place) for place in means], list(means.values()))
        growths = {f"slope_per_{unit}_ns": slope, "linearity": r2}
    if fast:
        numbers = [float(place) for place in fast]
        growths[f"line_rate_from_{unit}"] = min(numbers)
        growths[f"line_rate_to_{unit}"] = max(numbers)
    return growths


def _growths(measured: list[MeasuredCombination]) -> dict[str, float]:
    """Return the ratios of largest to smallest mean time by entries and by frame size, if these vary."""
    growths = {}
    for name in ("entries", "frame_bytes"):
        by_value: dict[int, list[float]] = {}
        for combination in measured:
            value = combination.table.entries if name == "entries" else combination.frame_bytes
            by_value.setdefault(value, []).append(float(combination.times_ns.mean()))
        means = [float(np.mean(values)) for values in by_value.values()]
        if len(means) > 1:
            growths[f"growth_with_{name}"] = max(means) / min(means)
    return growths


def _rows(measured: list[MeasuredCombination]) -> pa.Table:
    """Return a table with a row for each sample."""
    counts = [len(combination.times_ns) for combination in measured]

    def column(values: list[object]) -> pa.Array:
        indices = np.repeat(np.arange(len(values), dtype=np.int32), counts)
        return pa.DictionaryArray.from_arrays(indices, pa.array(values)).dictionary_decode()

    def words(dimension: str) -> pa.Array:
        values = [getattr(combination.table, dimension).value for combination in measured]
        return column(values).dictionary_encode()

    return pa.table(
        {
            "entries": column([combination.table.entries for combination in measured]),
            **{name: words(name) for name in ("match", "action", "priorities", "used_entry")},
            "frame_bytes": column([combination.frame_bytes for combination in measured]),
            "sample": sample_numbers([combination.times_ns for combination in measured]),
            "p_fx_ns": _times(measured),
        }
    )


def _virtual_s(figure: ProcessingTimesFigure) -> float:
    frames = sum(1 for _ in figure.of.tables()) * len(TABLE_1_FRAME_BYTES) * figure.samples
    return frames / (_FRAMES_PER_CPU_S * len(os.sched_getaffinity(0)))


PROCESSING_TIMES: Final = Shown(_parts, _evaluate, _virtual_s)
