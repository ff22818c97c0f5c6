"""Replay deployments: each system on the lab in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loko.topology.lab import cabled
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.figure_types.traffic.deployed import Deployed, deploy
from loko_testbed.reproduce.figure_types.traffic.distribution import Distribution, panels
from loko_testbed.reproduce.figure_types.traffic.document import DeployedSystem, Deployment, LokoSystem
from loko_testbed.reproduce.figure_types.traffic.replay import TrafficOutcome, TrafficReplay
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.replay.duration import live_s, virtual_s
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.reproduce.result import GUARANTEE_MS, AxisLabel, NoteResult, Series, runs_of
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunRecords

_KEPT_PACKETS: Final = 4_000_000
"""Approximate limit on a system's packets that are kept as rows; all packets are counted."""


class DeploymentReplay(TrafficReplay[Deployment]):
    """The systems as deployed, one at each point."""

    systems: list[Deployed]

    def __init__(self, figure: Deployment, options: Options) -> None:
        """See `TrafficReplay.__init__`."""
        super().__init__(figure, options)
        self._distributions = [
            Distribution(deployed.guarantee_ns, deployed.shown) for deployed in self.systems
        ]
        self._kept = [0] * len(self.systems)
        self._left_out = 0

    def _points(self) -> list[Point]:
        figure = self.figure
        deployments = [deploy(figure, system, self.senders) for system in _chosen(figure, self.options)]
        self.systems = [
            replace(deployed, lab=cabled(deployed.lab, self.options.cabling)) for deployed in deployments
        ]
        return [
            Point(
                figure=figure.name,
                x=float(number),
                label=f"{figure.name}, {deployed.system.label}",
                lab=deployed.lab,
                routed=deployed.flows,
                scheme=deployed.system.scheme,
                entries=figure.entries,
                senders=deployed.senders,
                seconds=self.seconds,
                seeds=self.seeds(deployed.system.label),
                guarantees_ns=dict.fromkeys(deployed.shown, deployed.guarantee_ns),
            )
            for number, deployed in enumerate(self.systems)
        ]

    def add(self, place: int, records: RunRecords) -> int | None:
        """See `TrafficReplay.add`."""
        super().add(place, records)
        self._distributions[place].add(records)
        if self._kept[place] >= _KEPT_PACKETS:
            self._left_out += 1
            return 0
        self._kept[place] += len(records)
        return _KEPT_PACKETS

    def outcome(self) -> TrafficOutcome:
        """See `TrafficReplay.outcome`."""
        systems, series = self.systems, self._series()
        packets = sum(distribution.packets for distribution in self._distributions)
        by_system = dict(zip((deployed.system for deployed in systems), self._distributions, strict=True))
        findings: dict[str, float] = {}
        for system, distribution in by_system.items():
            findings |= distribution.findings(system.key)
        for deployed in systems:
            findings[f"{deployed.system.key}_rate_mbps"] = deployed.senders[0].bucket.rate_bps / 1e6
        for deployed in systems:
            for name, value in deployed.queues_ns.items():
                findings[f"{deployed.system.key}_{name}_us"] = value / 1e3
        if len(systems) == 1:
            findings[GUARANTEE_MS] = systems[0].guarantee_ns / 1e6
        return TrafficOutcome(
            chart=Chart(
                panels=panels(by_system),
                caption=f"{packets} packets shown, {runs_of(self.runs, self.seconds)}",
            ),
            findings=findings,
            x=AxisLabel(
                name=", ".join(f"{x}: {deployed.system.label}" for x, deployed in enumerate(systems)),
                unit="",
            ),
            series=series,
            guarantees=[
                guarantee(
                    deployed.system.label,
                    {line.label: [line.points[place]] for line in series},
                    ours=isinstance(deployed.system, LokoSystem),
                )
                for place, deployed in enumerate(systems)
            ],
            notes=self._notes(),
            **self.replayed_on(systems[0].lab),
        )

    def _series(self) -> list[Series]:
        """Return the observed flows with a box for each system. Only Loko's guarantee is ours to keep."""
        return [
            Series(
                label=ends.label,
                flow=flow,
                points=[
                    accumulator.boxes[flow].point(point.x, guaranteed=isinstance(deployed.system, LokoSystem))
                    for point, deployed, accumulator in zip(
                        self.points, self.systems, self.accumulators, strict=True
                    )
                ],
            )
            for flow, ends in enumerate(self.figure.flows)
            if ends.label in self.figure.observed
            and all(flow in accumulator.boxes for accumulator in self.accumulators)
        ]

    def _notes(self) -> list[NoteResult]:
        figure = self.figure
        notes = self.note_if_shorter("sec 2.3", f", the paper {runs_of(figure.runs, figure.seconds)}.")
        if self._left_out:
            text = (
                f"{figure.figure}.parquet leaves out {self._left_out} runs, whose packets are counted all the"
                " same."
            )
            notes.append(NoteResult(where="this replay", text=text))
        return notes

    @staticmethod
    def estimate_s(figure: Deployment) -> dict[str, float]:
        """See `TrafficReplay.estimate_s`."""
        systems = [deploy(figure, system) for system in figure.systems]
        bits_per_s = sum(sender.bucket.rate_bps for system in systems for sender in system.senders)
        packets = bits_per_s * figure.runs * figure.seconds / (8 * figure.frame_bytes)
        live = len(systems) * live_s(figure.runs, figure.seconds)
        return {"virtual": virtual_s(packets), "live": live, "hardware": live}


def _chosen(figure: Deployment, options: Options) -> Sequence[DeployedSystem]:
    """Return the systems to run: with ``--points admitted`` only Loko, if the figure has it."""
    admitted = [system for system in figure.systems if isinstance(system, LokoSystem)]
    return admitted if admitted and options.points == "admitted" else figure.systems
