"""Replay flows of all path lengths at the same time, run after run."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from loko.topology.lab import cabled, load_lab
from loko_testbed.reproduce.analysis import stalled_mask
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.paths.admission import AdmittedPaths, admit_paths
from loko_testbed.reproduce.figure_types.paths.document import PathsFigure
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.campaign import PointAccumulator, purge_runs, records_of, replay
from loko_testbed.reproduce.replay.duration import live_s
from loko_testbed.reproduce.replay.point import Point, seed_of, transmission_options
from loko_testbed.reproduce.result import AxisLabel, PointResult, Series, runs_of
from loko_testbed.simulation.options import Options, Progress
from loko_testbed.simulation.records import rows_of
from loko_testbed.simulation.runner import LOST, RunRecords

_MODES: Final[dict[str, str]] = {
    "virtual": "computed in virtual time, not sent in real time",
    "live": "sent in real time",
    "hardware": "sent in real time, through real boards",
}


def compute(figure: PathsFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Replay the admitted flows. Raises `InputError` or `RunError`."""
    runs, seconds = figure.scale(options)
    senders = options.senders.of(figure.senders)
    admitted = admit_paths(figure, options.seed, senders)
    admitted = replace(admitted, lab=cabled(admitted.lab, options.cabling))
    hops = np.array(admitted.hops, dtype=np.int32)
    rows = []
    point = Point(
        figure=figure.name,
        x=0.0,
        label=figure.name,
        lab=admitted.lab,
        routed=admitted.flows,
        scheme=figure.scheme,
        entries=figure.entries,
        senders=admitted.senders,
        seconds=seconds,
        seeds=[seed_of(options.seed, figure.name, run) for run in range(runs)],
        guarantees_ns={number: admitted.guarantee_ns(length) for number, length in enumerate(admitted.hops)},
    )
    by_hops = {admitted.hops[number]: each for number, each in point.guarantees_ns.items()}
    accumulator = PointAccumulator(dict(sorted(by_hops.items())))
    worst = dict.fromkeys(accumulator.boxes, 0.0)
    replay([point], options, progress)
    for run, records in enumerate(records_of(point, options)):
        rows.append(rows_of(records, run=run, point=point.x))
        by_length = replace(records, flow=hops[records.flow])
        accumulator.add(by_length)
        for length in worst:
            worst[length] = max(worst[length], _worst(by_length, length, by_hops[length]))
    purge_runs(figure.name, options)
    points = [box.point(float(length), guaranteed=True) for length, box in accumulator.boxes.items()]
    profile = next(iter(admitted.lab.switches.values())).profile.name
    series = [
        Series(label=f"{point.x:.0f} hops", flow=length, points=[point])
        for length, point in zip(worst, points, strict=True)
    ]
    outcome = Outcome(
        chart=_chart(admitted, points, options.mode, runs_of(runs, seconds)),
        findings=_findings(admitted, points, worst),
        x=AxisLabel(name="links between switches", unit=""),
        series=series,
        guarantees=[guarantee(figure.scheme, {line.label: line.points for line in series}, ours=True)],
        profile=profile,
        assumptions=senders.described(),
        runs=runs,
        seconds=seconds,
        boards=accumulator.boards,
        host=accumulator.host,
        backend=options.switched_by(admitted.lab),
        real_boards=accumulator.real_boards,
    )
    return outcome, pa.concat_tables(rows)


def _worst(records: RunRecords, length: int, guarantee_ns: float) -> float:
    """Return the largest ratio of delay to guarantee among packets that no stall of the host affected."""
    mine = (records.flow == length) & (records.received_ns != LOST)
    sent, received = records.sent_ns[mine], records.received_ns[mine]
    delays = (received - sent)[~stalled_mask(sent, received, records.host.stalls)]
    return float(delays.max()) / guarantee_ns if delays.size else 0.0


def _findings(
    admitted: AdmittedPaths, points: list[PointResult], worst: dict[int, float]
) -> dict[str, float]:
    findings = {
        "requested_flows": float(admitted.requested),
        "admitted_flows": float(len(admitted.flows)),
        "sent_packets": float(sum(point.packets for point in points)),
        "lost_packets": float(sum(point.lost for point in points)),
        "late_packets": float(sum(point.late for point in points)),
        "explained_packets": float(sum(point.explained for point in points)),
        "unexplained_packets": float(sum(point.violations for point in points)),
        "worst_percent": 100 * max(worst.values()),
    }
    for point, (length, ratio) in zip(points, worst.items(), strict=True):
        findings[f"guarantee_h{length}_ms"] = admitted.guarantee_ns(length) / 1e6
        findings[f"worst_h{length}_percent"] = 100 * ratio
        if point.delay_ms.max is not None:
            findings[f"greatest_delay_h{length}_ms"] = point.delay_ms.max
    return findings


def _chart(admitted: AdmittedPaths, points: list[PointResult], mode: str, how_long: str) -> Chart:
    """Return the chart, titled with the mode: results of virtual time say nothing about real time."""
    seen = [point for point in points if point.delay_ms.p50 is not None]
    x = [point.x for point in seen]
    return Chart(
        panels=[
            LinePanel(
                title=_MODES[mode],
                x=ChartAxis(label="links between switches on the path"),
                y=ChartAxis(label="delay [ms]", low=0),
                curves=[
                    ChartCurve(
                        label="guarantee",
                        x=x,
                        y=[admitted.guarantee_ns(int(point.x)) / 1e6 for point in seen],
                        dashed=True,
                    ),
                    ChartCurve(
                        label="packets: median, least and greatest",
                        x=x,
                        y=[point.delay_ms.p50 for point in seen],
                        low=[point.delay_ms.min or 0.0 for point in seen],
                        high=[point.delay_ms.max or 0.0 for point in seen],
                    ),
                ],
            )
        ],
        caption=(
            f"{len(admitted.flows)} of {admitted.requested} flows,"
            f" {sum(point.packets for point in points)} packets, {how_long}"
        ),
    )


_SETUP_S_PER_SWITCH: Final = 0.5
_VIRTUAL_S_PER_S: Final = 0.1


def _estimate_s(figure: PathsFigure) -> dict[str, float]:
    switches = len(load_lab(figure.lab).switches)
    live = live_s(figure.runs, figure.seconds, setup_s=5 + switches * _SETUP_S_PER_SWITCH)
    virtual = 1 + switches * figure.runs * figure.seconds * _VIRTUAL_S_PER_S
    seconds = {"virtual": virtual, "live": live, "hardware": live}
    return {mode: seconds[mode] for mode in figure.modes if mode in seconds}


FIGURE_TYPE: Final = FigureType(
    documents=(PathsFigure,),
    compute=OneByOne(compute, transmission_options),
    estimate_s=_estimate_s,
)
