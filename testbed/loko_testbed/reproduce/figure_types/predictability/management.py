"""Figures 8 to 10: the entries that switches report, and those by which they forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability import flow_management
from loko_testbed.measure.predictability.measurements import Measurement, measure
from loko_testbed.measure.predictability.numbered_entries import FIGURE_ACTIONS, MATCHES
from loko_testbed.reproduce.chart import (
    Chart,
    ChartAxis,
    ChartCurve,
    FindingPlace,
    HeatPanel,
    HistogramPanel,
    HistogramSeries,
    LinePanel,
    Panel,
)
from loko_testbed.reproduce.figure_types.predictability.document import (
    Aging,
    Alternation,
    Divergence,
    Insertion,
    Predictability,
    TableSizes,
)
from loko_testbed.reproduce.figure_types.predictability.times import key
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_each
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_MIN: Final = 60
_ENTRIES: Final = "entries"
_COUNTS: Final = (500, 1000, 2000)
"""Numbers of entries whose time of insertion is a finding."""


def compute_divergence(
    figure: Predictability, measures: Divergence, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 8: for each rate and run, the entries sent, reported and forwarded."""
    runs = measures.quick_runs if options.quick else measures.runs
    tasks = {
        (device, per_s, seed): Measurement.of(
            device, flow_management.fill_at_rate, per_s, at_most=measures.most_entries, seed=seed
        )
        for device in figure.devices
        for per_s in measures.rates_per_s
        for seed in range(options.seed, options.seed + runs)
    }
    results = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    panels: list[Panel] = []
    for device in figure.devices:
        of = [(per_s, *result) for (named, per_s, _), result in results.items() if named == device]
        name = key(device)
        for per_s, fill, _ in of:
            findings[f"forwarded_{name}_{per_s}_per_s_entries"] = fill.forwarded
        fills = [fill for _, fill, _ in of]
        counts = {
            "sent without an error": [float(fill.sent) for fill in fills],
            "of these reported": [float(fill.listed) for fill in fills],
            "of these forwarded": [float(fill.forwarded) for fill in fills],
        }
        rates = ", ".join(map(str, measures.rates_per_s))
        panels.append(
            HistogramPanel(
                title=load_device(device).title,
                x=ChartAxis(label=f"runs, {runs} each at {rates} entries/s", low=0, high=float(len(fills))),
                y=ChartAxis(label=_ENTRIES, low=0),
                findings=[
                    FindingPlace(finding=f"least_forwarded_{name}_{per_s}_per_s_entries")
                    for per_s in measures.rates_per_s
                ],
                edges=[float(place) for place in range(len(fills) + 1)],
                histograms=[HistogramSeries(label=word, counts=of_runs) for word, of_runs in counts.items()],
            )
        )
        for per_s in measures.rates_per_s:
            fills = [fill for at_per_s, fill, _ in of if at_per_s == per_s]
            findings[f"astray_{name}_{per_s}_per_s_entries"] = float(
                np.mean([fill.sent - fill.forwarded for fill in fills])
            )
            findings[f"only_reported_{name}_{per_s}_per_s_entries"] = float(
                np.mean([fill.only_listed for fill in fills])
            )
            findings[f"least_forwarded_{name}_{per_s}_per_s_entries"] = min(fill.forwarded for fill in fills)
        fastest = [there for per_s, _, there in of if per_s == measures.rates_per_s[-1]]
        sent = min(fill.sent for per_s, fill, _ in of if per_s == measures.rates_per_s[-1])
        first_gone = [next(place for place in range(sent) if place not in set(there)) for there in fastest]
        findings[f"first_gone_{name}_entries"] = float(max(first_gone))
        findings[f"alike_{name}_runs"] = float(sum(there == fastest[0] for there in fastest[1:]))
    rows = pa.table(
        {
            "device": [device for device, _, _ in results],
            "rate_per_s": [per_s for _, per_s, _ in results],
            "seed": [seed for _, _, seed in results],
            "sent": [fill.sent for fill, _ in results.values()],
            "listed": [fill.listed for fill, _ in results.values()],
            "forwarded": [fill.forwarded for fill, _ in results.values()],
        }
    )
    outcome = Outcome(
        chart=Chart(
            panels=panels,
            columns=2,
            caption=f"{runs} runs a rate, each until the first error, on a fresh switch",
        ),
        findings=findings,
        x=AxisLabel(name="rate", unit="entries/s"),
    )
    return outcome, rows


def compute_aging(
    figure: Predictability, measures: Aging, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 9a: reported and forwarded entries in successive runs on one switch."""
    runs = measures.quick_runs if options.quick else measures.runs
    tasks = {
        (device, wait_s): Measurement.of(
            device,
            flow_management.age,
            wait_s=wait_s,
            runs=runs,
            at_most=measures.most_entries,
            seed=options.seed,
            per_s=measures.per_s,
        )
        for device in figure.devices
        for wait_s in measures.waits_s
    }
    results = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    panels: list[Panel] = []
    for device in figure.devices:
        curves = []
        for wait_s in measures.waits_s:
            fills = results[device, wait_s]
            numbers = [float(number) for number in range(1, len(fills) + 1)]
            for word, counts in (
                ("reported", [float(fill.listed) for fill in fills]),
                ("forwarded", [float(fill.forwarded) for fill in fills]),
            ):
                curves.append(
                    ChartCurve(
                        label=f"{word}, {wait_s} s apart",
                        x=numbers,
                        y=list(counts),
                        dashed=word == "forwarded",
                    )
                )
                findings[f"{word}_first_{key(device)}_{wait_s}_s_entries"] = counts[0]
                findings[f"{word}_later_{key(device)}_{wait_s}_s_entries"] = max(counts[1:], default=0.0)
                findings[f"{word}_least_{key(device)}_{wait_s}_s_entries"] = min(counts)
        panels.append(
            LinePanel(
                title=load_device(device).title,
                x=ChartAxis(label="run"),
                y=ChartAxis(label=_ENTRIES, low=0),
                findings=[
                    FindingPlace(finding=f"{word}_first_{key(device)}_{wait_s}_s_entries", x=1)
                    for word in ("reported", "forwarded")
                    for wait_s in measures.waits_s
                ],
                curves=curves,
            )
        )
    every = [(*case, number, fill) for case, fills in results.items() for number, fill in enumerate(fills, 1)]
    rows = pa.table(
        {
            "device": [device for device, *_ in every],
            "wait_s": [wait_s for _, wait_s, _, _ in every],
            "run": [number for *_, number, _ in every],
            "listed": [fill.listed for *_, fill in every],
            "forwarded": [fill.forwarded for *_, fill in every],
        }
    )
    outcome = Outcome(
        chart=Chart(panels=panels, caption=f"{measures.per_s} entries/s until the first error, then deleted"),
        findings=findings,
        x=AxisLabel(name="run", unit=""),
    )
    return outcome, rows


def compute_alternation(
    figure: Predictability, measures: Alternation, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 9b: accepted entries in runs that alternate between two actions."""
    runs = measures.quick_runs if options.quick else measures.runs
    tasks = {
        device: Measurement.of(
            device, flow_management.alternate, runs=runs, at_most=measures.most_entries, seed=options.seed
        )
        for device in figure.devices
    }
    results = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    panels: list[Panel] = []
    rows: list[dict[str, str | int]] = []
    for device, alternation in results.items():
        curves = []
        ends = []
        for first, (action, counts) in enumerate(alternation.items()):
            numbers = [1 + first + len(alternation) * place for place in range(len(counts))]
            curves.append(
                ChartCurve(
                    label=f"five-tuple/{action}",
                    x=[float(number) for number in numbers],
                    y=[float(count) for count in counts],
                    marker=False,
                )
            )
            where = f"{key(device)}_{action.replace('-', '_')}_entries"
            findings[f"first_{where}"], findings[f"last_{where}"] = counts[0], counts[-1]
            ends += [
                FindingPlace(finding=f"{end}_{where}", x=number)
                for end, number in (("first", numbers[0]), ("last", numbers[-1]))
                if end == "first" or not options.quick  # fewer runs end elsewhere
            ]
            for number, count in zip(numbers, counts, strict=True):
                rows.append({"device": device, "action": action, "run": number, "entries": count})
        panels.append(
            LinePanel(
                title=load_device(device).title,
                x=ChartAxis(label="run", low=0),
                y=ChartAxis(label=_ENTRIES, low=0),
                findings=ends,
                curves=curves,
            )
        )
    outcome = Outcome(
        chart=Chart(panels=panels, caption=f"{runs} runs on one switch, the two actions in turn"),
        findings=findings,
        x=AxisLabel(name="run", unit=""),
    )
    return outcome, pa.Table.from_pylist(rows)


def compute_insertion(
    figure: Predictability, measures: Insertion, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 9c: entries over time, with a barrier after each."""
    tasks = {
        device: Measurement.of(
            device, flow_management.fill_paced, at_most=measures.most_entries, seed=options.seed
        )
        for device in figure.devices
    }
    results = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    panels: list[Panel] = []
    for device, insertion in results.items():
        minutes = [at_s / _MIN for at_s in insertion.at_s]
        for count in _COUNTS:
            if count <= insertion.entries[-1]:
                needed = float(np.interp(count, insertion.entries, minutes))
                findings[f"for_{count}_{key(device)}_min"] = needed
        findings[f"accepted_{key(device)}_entries"] = insertion.fill.forwarded
        panels.append(
            LinePanel(
                title=load_device(device).title,
                x=ChartAxis(label="time [min]", low=0),
                y=ChartAxis(label=_ENTRIES, low=0),
                findings=[
                    *(
                        FindingPlace(finding=f"for_{count}_{key(device)}_min", of="x", y=count)
                        for count in _COUNTS
                    ),
                    FindingPlace(finding=f"accepted_{key(device)}_entries"),
                ],
                curves=[
                    ChartCurve(
                        label="entries",
                        x=minutes,
                        y=[float(count) for count in insertion.entries],
                        marker=False,
                    )
                ],
            )
        )
    pairs = [
        (device, *pair)
        for device, insertion in results.items()
        for pair in zip(insertion.at_s, insertion.entries, strict=True)
    ]
    rows = pa.table(
        {
            "device": [device for device, _, _ in pairs],
            "at_s": [at_s for _, at_s, _ in pairs],
            "entries": [count for _, _, count in pairs],
        }
    )
    outcome = Outcome(
        chart=Chart(
            panels=panels, caption="a barrier after each entry, and 10 ms after its reply the next entry"
        ),
        findings=findings,
        x=AxisLabel(name="time", unit="min"),
    )
    return outcome, rows


def _cell(finding: str, cells: Sequence[Sequence[float]], value: float) -> FindingPlace:
    """Return the place of a finding: the first cell with its value, but none of matches on the port."""
    y, x = next(
        (y, x)
        for y, (match, row) in enumerate(zip(MATCHES, cells, strict=True))
        for x, cell in enumerate(row)
        if cell == value and match != "port"
    )
    return FindingPlace(finding=finding, of="cell", x=x, y=y)


def compute_sizes(
    figure: Predictability, measures: TableSizes, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 10: table sizes by match and action."""
    tasks = {
        (device, match): Measurement.of(
            device, flow_management.sizes, match, at_most=measures.most_entries, seed=options.seed
        )
        for device in figure.devices
        for match in MATCHES
    }
    results = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    panels: list[Panel] = []
    for device in figure.devices:
        cells = [[float(results[device, match][action]) for action in FIGURE_ACTIONS] for match in MATCHES]
        # Entries that match the port are limited by the number of ports, not by the table.
        sized = [
            cell
            for match, row in zip(MATCHES, cells, strict=True)
            for cell in row
            if cell and match != "port"
        ]
        findings[f"smallest_{key(device)}_entries"] = min(sized)
        findings[f"least_cell_{key(device)}_entries"] = min(cell for row in cells for cell in row if cell)
        findings[f"largest_{key(device)}_entries"] = max(sized)
        findings[f"without_hardware_{key(device)}"] = float(sum(not cell for row in cells for cell in row))
        findings[f"five_tuple_output_{key(device)}_entries"] = results[device, "five-tuple"]["output"]
        panels.append(
            HeatPanel(
                title=load_device(device).title,
                x=ChartAxis(label="action"),
                y=ChartAxis(label="match"),
                findings=[
                    _cell(f"smallest_{key(device)}_entries", cells, min(sized)),
                    _cell(f"largest_{key(device)}_entries", cells, max(sized)),
                    FindingPlace(
                        finding=f"five_tuple_output_{key(device)}_entries",
                        of="cell",
                        x=FIGURE_ACTIONS.index("output"),
                        y=MATCHES.index("five-tuple"),
                    ),
                ],
                value=ChartAxis(label=_ENTRIES, low=0, high=max(sized)),
                x_values=[float(place) for place in range(len(FIGURE_ACTIONS))],
                y_values=[float(place) for place in range(len(MATCHES))],
                x_names=list(FIGURE_ACTIONS),
                y_names=list(MATCHES),
                cells=[[cell or None for cell in row] for row in cells],
            )
        )
    every = [(device, match, action) for device, match in results for action in FIGURE_ACTIONS]
    rows = pa.table(
        {
            "device": [device for device, _, _ in every],
            "match": [match for _, match, _ in every],
            "action": [action for _, _, action in every],
            "entries": [results[device, match][action] for device, match, action in every],
        }
    )
    outcome = Outcome(
        chart=Chart(panels=panels, caption="white: none in hardware; port: as many as there are ports"),
        findings=findings,
        x=AxisLabel(name="action", unit=""),
    )
    return outcome, rows
