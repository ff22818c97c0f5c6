"""Compare the guarantees of a lab in both versions of OpenFlow, and test them in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from loko.document import InputError
from loko.switch_model.allocation import Allocation
from loko.switch_model.scenario import OpenFlow
from loko.switch_model.split import split
from loko.topology.lab import Lab
from loko.topology.network import RoutedFlow
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Panel
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.traffic.document import Versions
from loko_testbed.reproduce.figure_types.traffic.replay import TrafficOutcome, TrafficReplay
from loko_testbed.reproduce.figure_types.traffic.setting import flows_of, paths_of, share_of
from loko_testbed.reproduce.guarantees import guarantee_of_packets
from loko_testbed.reproduce.replay.campaign import PointAccumulator
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender, number_of

VersionNumbers = Mapping[tuple[OpenFlow, int], Allocation]
"""Allocation of a switch by version and number of entries."""
_VIRTUAL_S_PER_S: Final = 0.05
"""Computing time per second of a run."""


@dataclass(frozen=True, kw_only=True)
class VersionResult:
    """Results of the flows in one version."""

    packets: int
    lost: int
    late: int
    worst_ns: float


class VersionsReplay(TrafficReplay[Versions]):
    """The admitted flows in each version, one at each point. The profile needs the costs of OpenFlow 1.3."""

    lab: Lab
    switches: int
    """Number of switches that each flow crosses."""
    sizes: list[int]
    allocations: VersionNumbers

    def _points(self) -> list[Point]:
        figure = self.figure
        self.lab = lab_of(figure)
        self.switches = len(paths_of(figure, figure.flows, self.lab)[0])
        self.sizes = sorted({*figure.tables, figure.entries})
        self.allocations = {
            (version, entries): allocation_of(
                figure, self.lab, figure.allocation, entries=entries, openflow=version
            )
            for version in OpenFlow
            for entries in self.sizes
        }
        return [self._point(float(number), version) for number, version in enumerate(OpenFlow)]

    def _point(self, x: float, version: OpenFlow) -> Point:
        figure, allocation = self.figure, self.allocations[version, self.figure.entries]
        routed, senders = admitted_senders(figure, self.senders, self.lab, allocation)
        return Point(
            figure=figure.name,
            x=x,
            label=f"{figure.name}, OpenFlow {version.value}",
            lab=self.lab,
            routed=routed,
            scheme=figure.allocation,
            entries=figure.entries,
            senders=senders,
            seconds=self.seconds,
            seeds=self.seeds(),  # the same in both versions
            openflow=version,
            guarantees_ns=dict.fromkeys(range(len(senders)), self.switches * allocation.delay_ns),
        )

    def outcome(self) -> TrafficOutcome:
        """See `TrafficReplay.outcome`."""
        figure, switches = self.figure, self.switches
        carried = {
            version: _delivered(accumulator)
            for version, accumulator in zip(OpenFlow, self.accumulators, strict=True)
        }
        return TrafficOutcome(
            chart=Chart(panels=_panels(figure, self.allocations, carried, self.sizes, switches), columns=2),
            findings=_findings(figure, self.allocations, carried, switches),
            guarantees=[
                guarantee_of_packets(
                    f"{figure.allocation}, OpenFlow {version.value}",
                    [flow.label for flow in figure.flows],
                    packets=run.packets,
                    lost=run.lost,
                    late=run.late,
                    ours=True,
                )
                for version, run in carried.items()
            ],
            x=AxisLabel(name="flow entries", unit=""),
            series=[],
            **self.replayed_on(self.lab),
        )

    @staticmethod
    def estimate_s(figure: Versions) -> dict[str, float]:
        """See `TrafficReplay.estimate_s`. Versions are compared in virtual time only."""
        return {"virtual": 1 + 2 * figure.runs * figure.seconds * _VIRTUAL_S_PER_S}


def admitted_senders(
    figure: Versions, how: SenderSettings, lab: Lab, allocation: Allocation
) -> tuple[list[RoutedFlow], list[Sender]]:
    """Return the flows of equation 8 as admitted, and their senders."""
    shares = split(allocation, ratio=figure.split)
    if not shares.feasible:
        raise InputError(f"{figure.name}: not feasible: {shares.reason}")
    flows = flows_of(figure.flows, lambda ends: share_of(shares, ends), figure.frame_bytes)
    paths = paths_of(figure, figure.flows, lab)
    routed = [RoutedFlow(flow, paths[number_of(flow)]) for flow in flows]
    return routed, [how.conforming(number_of(flow), flow) for flow in flows]


def _delivered(accumulator: PointAccumulator) -> VersionResult:
    points = [box.point(0.0, guaranteed=True) for box in accumulator.boxes.values()]
    return VersionResult(
        packets=sum(point.packets for point in points),
        lost=sum(point.lost for point in points),
        late=sum(point.late for point in points),
        worst_ns=max(round(1e6 * (point.delay_ms.max or 0.0)) for point in points),
    )


def _guarantee_ms(allocation: Allocation, switches: int) -> float | None:
    return switches * allocation.delay_ns / 1e6 if allocation.feasible else None


def _panels(
    figure: Versions,
    results: VersionNumbers,
    carried: Mapping[OpenFlow, VersionResult],
    sizes: list[int],
    switches: int,
) -> list[Panel]:
    x = [float(entries) for entries in sizes]
    guarantees = [
        ChartCurve(
            label=f"guarantee, OpenFlow {version.value}",
            x=x,
            y=[_guarantee_ms(results[version, entries], switches) for entries in sizes],
            dashed=version is OpenFlow.V1_3,
        )
        for version in OpenFlow
    ]
    worst = [
        ChartCurve(
            label=f"latest packet, OpenFlow {version.value}",
            x=[float(figure.entries)],
            y=[result.worst_ns / 1e6],
        )
        for version, result in carried.items()
    ]
    processing = [
        ChartCurve(
            label=f"OpenFlow {version.value}",
            x=x,
            y=[results[version, entries].service.processing_ns / 1e3 for entries in sizes],
            dashed=version is OpenFlow.V1_3,
        )
        for version in OpenFlow
    ]
    entries_axis = ChartAxis(label="flow entries in each switch", low=0)
    return [
        LinePanel(x=entries_axis, y=ChartAxis(label="delay [ms]", low=0), curves=[*guarantees, *worst]),
        LinePanel(
            x=entries_axis, y=ChartAxis(label="longest processing time [us]", low=0), curves=processing
        ),
    ]


def _findings(
    figure: Versions, results: VersionNumbers, carried: Mapping[OpenFlow, VersionResult], switches: int
) -> dict[str, float]:
    findings: dict[str, float] = {}
    for (version, entries), allocation in results.items():
        name = _name(version)
        place = f"at_{entries}_entries_in_{name}"
        findings[f"processing_{place}_us"] = allocation.service.processing_ns / 1e3
        findings[f"rate_{place}_mbps"] = allocation.service.rate_bps / 1e6
        guarantee_ms = _guarantee_ms(allocation, switches)
        if guarantee_ms is not None:
            findings[f"guarantee_{place}_ms"] = guarantee_ms
    for version, of_version in carried.items():
        name = _name(version)
        guarantee_ns = switches * results[version, figure.entries].delay_ns
        findings[f"guarantee_in_{name}_ms"] = guarantee_ns / 1e6
        findings[f"latest_in_{name}_ms"] = of_version.worst_ns / 1e6
        findings[f"latest_in_{name}_percent"] = 100 * of_version.worst_ns / guarantee_ns
        findings[f"sent_in_{name}_packets"] = float(of_version.packets)
        findings[f"broken_in_{name}_packets"] = float(of_version.lost + of_version.late)
    return findings


def _name(version: OpenFlow) -> str:
    return version.value.replace(".", "_")
