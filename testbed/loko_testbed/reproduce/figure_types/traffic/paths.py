"""Replay flows of all path lengths at the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from loko.topology.lab import cabled, load_lab
from loko_testbed.reproduce.analysis import stalled_mask
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types.traffic.document import PathsFigure
from loko_testbed.reproduce.figure_types.traffic.path_admission import AdmittedPaths, admit_paths
from loko_testbed.reproduce.figure_types.traffic.replay import TrafficOutcome, TrafficReplay
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.replay.campaign import PointAccumulator
from loko_testbed.reproduce.replay.duration import live_s
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.reproduce.result import AxisLabel, PointResult, Series, runs_of
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import LOST, RunRecords

_MODES: Final[dict[str, str]] = {
    "virtual": "computed in virtual time, not sent in real time",
    "live": "sent in real time",
    "hardware": "sent in real time, through real boards",
}
_SETUP_S_PER_SWITCH: Final = 0.5
_VIRTUAL_S_PER_S: Final = 0.1


class PathsReplay(TrafficReplay[PathsFigure]):
    """Admitted flows, whose packets are counted by the length of their paths."""

    admitted: AdmittedPaths

    def __init__(self, figure: PathsFigure, options: Options) -> None:
        """See `TrafficReplay.__init__`."""
        super().__init__(figure, options)
        self._hops = np.array(self.admitted.hops, dtype=np.int32)
        guarantees = {
            length: self.admitted.guarantee_ns(length) for length in sorted(set(self.admitted.hops))
        }
        self.accumulators = [PointAccumulator(guarantees)]
        self._worst = dict.fromkeys(guarantees, 0.0)

    def _points(self) -> list[Point]:
        figure = self.figure
        admitted = admit_paths(figure, self.options.seed, self.senders)
        self.admitted = replace(admitted, lab=cabled(admitted.lab, self.options.cabling))
        return [
            Point(
                figure=figure.name,
                x=0.0,
                label=figure.name,
                lab=self.admitted.lab,
                routed=self.admitted.flows,
                scheme=figure.scheme,
                entries=figure.entries,
                senders=self.admitted.senders,
                seconds=self.seconds,
                seeds=self.seeds(),
                guarantees_ns={
                    number: self.admitted.guarantee_ns(length)
                    for number, length in enumerate(self.admitted.hops)
                },
            )
        ]

    def add(self, place: int, records: RunRecords) -> int | None:
        """See `TrafficReplay.add`."""
        by_length = replace(records, flow=self._hops[records.flow])
        for length, worst in self._worst.items():
            ratio = _worst(by_length, length, self.admitted.guarantee_ns(length))
            self._worst[length] = max(worst, ratio)
        return super().add(place, by_length)

    def outcome(self) -> TrafficOutcome:
        """See `TrafficReplay.outcome`."""
        [accumulator] = self.accumulators
        points = [box.point(float(length), guaranteed=True) for length, box in accumulator.boxes.items()]
        series = [
            Series(label=f"{point.x:.0f} hops", flow=length, points=[point])
            for length, point in zip(self._worst, points, strict=True)
        ]
        lines = {line.label: line.points for line in series}
        return TrafficOutcome(
            chart=_chart(self.admitted, points, self.options.mode, runs_of(self.runs, self.seconds)),
            findings=_findings(self.admitted, points, self._worst),
            x=AxisLabel(name="links between switches", unit=""),
            series=series,
            guarantees=[guarantee(self.figure.scheme, lines, ours=True)],
            **self.replayed_on(self.admitted.lab),
        )

    @staticmethod
    def estimate_s(figure: PathsFigure) -> dict[str, float]:
        """See `TrafficReplay.estimate_s`."""
        switches = len(load_lab(figure.lab).switches)
        live = live_s(figure.runs, figure.seconds, setup_s=5 + switches * _SETUP_S_PER_SWITCH)
        virtual = 1 + switches * figure.runs * figure.seconds * _VIRTUAL_S_PER_S
        return {"virtual": virtual, "live": live, "hardware": live}


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
