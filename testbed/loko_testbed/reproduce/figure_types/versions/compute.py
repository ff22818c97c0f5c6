"""Compare the guarantees of a lab in both versions of OpenFlow, and test them in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from loko.document import InputError
from loko.switch_model.allocation import Allocation
from loko.switch_model.scenario import OpenFlow
from loko.switch_model.split import split
from loko.topology.lab import Lab
from loko.topology.network import RoutedFlow, shortest_path
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Panel
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.versions.document import Versions
from loko_testbed.reproduce.guarantees import guarantee_of_packets
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.campaign import purge_runs, records_of, replay
from loko_testbed.reproduce.replay.point import Point, seed_of, transmission_options
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options, Progress
from loko_testbed.simulation.records import rows_of
from loko_testbed.simulation.runner import LOST, RunRecords
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender, flow_of

VersionNumbers = Mapping[tuple[OpenFlow, int], Allocation]
"""Allocation of a switch by version and number of entries."""


@dataclass(frozen=True, kw_only=True)
class VersionResult:
    """Results of the flows in one version."""

    packets: int
    lost: int
    late: int
    worst_ns: float


def compute(figure: Versions, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Allocate and send in both versions. Raises `InputError` if the profile has no costs of OpenFlow 1.3."""
    lab = lab_of(figure)
    lengths = {len(shortest_path(lab, flow.source, flow.destination)) for flow in figure.flows}
    if len(lengths) != 1:
        raise InputError(f"{figure.name}: flows cross different numbers of switches; split the figure")
    switches = lengths.pop()
    sizes = sorted({*figure.tables, figure.entries})
    results: VersionNumbers = {
        (version, entries): allocation_of(figure, lab, figure.allocation, entries=entries, openflow=version)
        for version in OpenFlow
        for entries in sizes
    }
    runs, seconds = figure.scale(options)
    how = options.senders.of(figure.senders)
    points = {}
    for number, version in enumerate(OpenFlow):
        routed, senders = admitted_senders(figure, how, lab, results[version, figure.entries])
        points[version] = Point(
            figure=figure.name,
            x=float(number),
            label=f"{figure.name}, OpenFlow {version.value}",
            lab=lab,
            routed=routed,
            scheme=figure.allocation,
            entries=figure.entries,
            senders=senders,
            seconds=seconds,
            # Both versions get the same seeds.
            seeds=[seed_of(options.seed, figure.name, run) for run in range(runs)],
            openflow=version,
            guarantees_ns=dict.fromkeys(
                range(len(senders)), switches * results[version, figure.entries].delay_ns
            ),
        )
    replay(list(points.values()), options, progress)
    carried: dict[OpenFlow, VersionResult] = {}
    rows: list[pa.Table] = []
    for version, point in points.items():
        of_version = list(records_of(point, options))
        rows += [rows_of(records, run=run, point=point.x) for run, records in enumerate(of_version)]
        carried[version] = _delivered(of_version, max(point.guarantees_ns.values()))
    purge_runs(figure.name, options)
    labels = [flow.label for flow in figure.flows]
    outcome = Outcome(
        chart=Chart(panels=_panels(figure, results, carried, sizes, switches), columns=2),
        findings=_findings(figure, results, carried, switches),
        guarantees=[
            guarantee_of_packets(
                f"{figure.allocation}, OpenFlow {version.value}",
                labels,
                packets=run.packets,
                lost=run.lost,
                late=run.late,
                ours=True,
            )
            for version, run in carried.items()
        ],
        x=AxisLabel(name="flow entries", unit=""),
        profile=next(iter(lab.switches.values())).profile.name,
        assumptions=how.described(),
        runs=runs,
        seconds=seconds,
    )
    return outcome, pa.concat_tables(rows)


def admitted_senders(
    figure: Versions, how: SenderSettings, lab: Lab, allocation: Allocation
) -> tuple[list[RoutedFlow], list[Sender]]:
    """Return the flows of equation 8 as admitted, and their senders."""
    shares = split(allocation, ratio=figure.split)
    if not shares.feasible:
        raise InputError(f"{figure.name}: not feasible: {shares.reason}")
    routed, senders = [], []
    for number, flow in enumerate(figure.flows):
        bucket = shares.first if flow.share == 1 else shares.second
        admitted = flow_of(
            number,
            flow.source,
            flow.destination,
            rate_bps=bucket.rate_bps,
            burst_bytes=bucket.burst_bytes,
            frame_bytes=figure.frame_bytes,
        )
        routed.append(RoutedFlow(admitted, shortest_path(lab, flow.source, flow.destination)))
        senders.append(how.conforming(number, admitted))
    return routed, senders


def _delivered(records: list[RunRecords], guarantee_ns: float) -> VersionResult:
    received = np.concatenate([record.received_ns for record in records])
    sent = np.concatenate([record.sent_ns for record in records])
    arrived = received != LOST
    delays = (received - sent)[arrived]
    return VersionResult(
        packets=len(sent),
        lost=int((~arrived).sum()),
        late=int((delays > guarantee_ns).sum()),
        worst_ns=float(delays.max(initial=0)),
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


_VIRTUAL_S_PER_S: Final = 0.05
"""Computing time per second of a run."""


FIGURE_TYPE: Final = FigureType(
    documents=(Versions,),
    compute=OneByOne(compute, transmission_options),
    estimate_s=lambda figure: {"virtual": 1 + 2 * figure.runs * figure.seconds * _VIRTUAL_S_PER_S},
)
"""Comparisons of versions: in virtual time only."""
