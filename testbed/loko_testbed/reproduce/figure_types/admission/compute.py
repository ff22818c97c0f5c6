"""Produce admission figures: rows, findings and picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from loko.switch_model.allocation import OPTIMISED, PACKET_GRANULAR
from loko.switch_model.device import deterministic
from loko.switch_model.scenario import loko_scenario
from loko.switch_model.service_curve import SwitchService, service_curve
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.admission.batch import RunRow, batch_of, run_batch
from loko_testbed.reproduce.figure_types.admission.ceilings import CEILINGS
from loko_testbed.reproduce.figure_types.admission.chart import chart_of
from loko_testbed.reproduce.figure_types.admission.document import AdmissionFigure, SchemeSeries
from loko_testbed.reproduce.figure_types.admission.reservations import RESERVATIONS
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_RUNS_PER_TASK: Final = 125
_USABLE_PERCENT: Final = 90.0
"""A path length is usable if a smaller share of its requests is refused."""

Rows = Sequence[RunRow]


def compute(figure: AdmissionFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Carry out all runs of all schemes and path lengths. Raises `InputError`."""
    hops = figure.quick.hops if options.quick else figure.hops
    runs = options.runs or (figure.quick.runs if options.quick else figure.runs)
    others = min(runs, figure.runs_of_others or runs)
    batches = [
        batch_of(figure, series=series, hops=length, runs=part, seed=options.seed)
        for series in figure.series
        for length in hops
        for part in _parts(runs if series == figure.series[0] else others)
    ]
    batches_done = compute_tasks(run_batch, batches, options, progress, lambda batch: f"{batch.hops} hops")
    rows = [row for part in batches_done for row in part]
    columns = pa.table(dict(zip(RunRow._fields, zip(*rows, strict=True), strict=True)))
    if figure.shows != "use":
        columns = columns.drop_columns("rate_uses_percent")
    return _outcome(figure, rows, hops, runs), columns


def _parts(runs: int) -> list[range]:
    return [range(at, min(at + _RUNS_PER_TASK, runs)) for at in range(0, runs, _RUNS_PER_TASK)]


def _outcome(figure: AdmissionFigure, rows: Rows, hops: Sequence[int], runs: int) -> Outcome:
    by_place: dict[tuple[SchemeSeries, int], list[RunRow]] = {
        (series, length): [] for series in figure.series for length in hops
    }
    for row in rows:
        by_place[SchemeSeries(row.scheme, row.reservation), row.hops].append(row)
    service = _service(figure)
    first = [row for length in hops for row in by_place[figure.series[0], length]]
    return Outcome(
        chart=chart_of(figure, by_place, hops, runs),
        findings=_use_findings(first, by_place, hops, service) | _accepted_findings(figure, by_place, hops),
        x=AxisLabel(name="path length", unit="hops"),
        profile=service.profile.name,
        table=_table(figure, by_place, hops) if figure.shows == "accepted" else None,
        runs=runs,
    )


def _use_findings(
    rows: Rows,
    by_place: Mapping[tuple[SchemeSeries, int], Rows],
    hops: Sequence[int],
    service: SwitchService,
) -> dict[str, float]:
    """Return the findings on the use of switches by the first scheme."""
    series = next(iter(by_place))[0]
    largest = max(row.largest_rate_use_percent for row in rows)
    refused_rate = sum(row.refused_for_rate for row in rows)
    refused = refused_rate + sum(row.refused_for_burst for row in rows)
    rejection = {length: _mean(by_place[series, length], "rejection_percent") for length in hops}
    usable = [length + 1 for length in hops if rejection[length] < _USABLE_PERCENT]
    findings = {
        "largest_rate_use_percent": largest,
        "largest_rate_use_mbps": largest / 100 * service.rate_bps / 1e6,
        "usable_nodes": float(max(usable, default=0)),
    }
    if refused:
        findings["refused_for_rate_percent"] = 100 * refused_rate / refused
        findings["refused_for_burst_percent"] = 100 - 100 * refused_rate / refused
    for length in hops:
        findings[f"rejection_h{length}_percent"] = rejection[length]
        findings[f"rate_use_h{length}_percent"] = _mean(by_place[series, length], "rate_use_percent")
        bottleneck = _mean(by_place[series, length], "bottleneck_rate_percent")
        findings[f"bottleneck_rate_h{length}_percent"] = bottleneck
    return findings


def _accepted_findings(
    figure: AdmissionFigure, by_place: Mapping[tuple[SchemeSeries, int], Rows], hops: Sequence[int]
) -> dict[str, float]:
    findings = {}
    for series in figure.series:
        word = figure.label(series).replace("-", "_").replace(" ", "_")
        hop_ns = 0.0
        for length in hops:
            here = by_place[series, length]
            findings[f"accepted_{word}_h{length}"] = _mean(here, "accepted")
            guarantee_ns = max(row.guarantee_ns for row in here)
            if guarantee_ns:
                findings[f"guarantee_{word}_h{length}_ms"] = guarantee_ns / 1e6
                hop_ns = max(hop_ns, guarantee_ns / (length + 1))
        if hop_ns:
            findings[f"switch_delay_{word}_ms"] = hop_ns / 1e6
            if series == figure.series[0]:  # D (l + 1), whether or not anything was accepted there
                findings["guarantee_of_longest_path_ms"] = hop_ns * (max(hops) + 1) / 1e6
    return findings


def _table(
    figure: AdmissionFigure, by_place: Mapping[tuple[SchemeSeries, int], Rows], hops: Sequence[int]
) -> TableResult:
    """Return, for each reservation and path length, flows, their ratios to the first scheme's, guarantees."""
    schemes = [*figure.schemes, *figure.further_schemes]
    guaranteed = [scheme for scheme in schemes if scheme not in CEILINGS]
    columns = ["reserved for", "hops", *schemes]
    columns += [f"{scheme} / {figure.schemes[0]}" for scheme in schemes[1:]]
    columns += [f"{scheme}: ms a switch" for scheme in guaranteed]
    rows: list[list[str | float]] = []
    for reservation in figure.reservations:
        for length in hops:
            here = {
                series.scheme: by_place[series, length]
                for series in figure.series
                if series.reservation == reservation
            }
            means = {scheme: _mean(batches, "accepted") for scheme, batches in here.items()}
            base = means[figure.schemes[0]]
            row: list[str | float] = [RESERVATIONS[reservation].meaning, str(length)]
            row += [round(means[scheme], 1) if scheme in means else "-" for scheme in schemes]
            row += [
                round(means[scheme] / base, 2) if base and scheme in means else "-" for scheme in schemes[1:]
            ]
            row += [
                round(max(run.guarantee_ns for run in here[scheme]) / (length + 1) / 1e6, 3)
                if scheme in here
                else "-"
                for scheme in guaranteed
            ]
            rows.append(row)
    return TableResult(columns=columns, rows=rows)


def _mean(rows: Rows, column: str) -> float:
    return float(np.mean([getattr(row, column) for row in rows]))


def _service(figure: AdmissionFigure) -> SwitchService:
    lab = lab_of(figure)
    scenario = loko_scenario(entries=figure.entries, packet_sizes_bytes=(figure.frame_bytes,))
    return service_curve(deterministic(next(iter(lab.switches.values())).profile), scenario)


_S_PER_REQUEST: Final = 8e-6
_S_PER_PACKET_REQUEST: Final = 200e-6
_S_TO_OPTIMISE: Final = 1.0


def _estimate_s(figure: AdmissionFigure) -> dict[str, float]:
    """Estimate the time on one core."""
    seconds, hops = 2.0, len(figure.hops)
    for number, (scheme, _) in enumerate(figure.series):
        runs = figure.runs_of_others or figure.runs if number else figure.runs
        is_packets = scheme.startswith(PACKET_GRANULAR) or scheme in CEILINGS
        seconds += figure.requests * runs * hops * (_S_PER_PACKET_REQUEST if is_packets else _S_PER_REQUEST)
        seconds += hops * _S_TO_OPTIMISE if scheme.endswith(OPTIMISED) else 0.0
    return {"virtual": seconds}


FIGURE_TYPE: Final = FigureType(
    documents=(AdmissionFigure,),
    compute=OneByOne(compute),
    estimate_s=_estimate_s,
)
