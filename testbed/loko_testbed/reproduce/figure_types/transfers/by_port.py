"""Figures 4 to 6: a transfer through each port, rate by rate; its latency compared with equation 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa

from loko.slicing.document import HtbPort, Port, load_slices
from loko.slicing.latency import MeanLatency, effective_rate
from loko.slicing.lengths import Scheduler, counted, on_wire
from loko.switch_model.device import load_device
from loko.units import BPS_PER_MBPS
from loko_testbed.live.datapaths import missing_for_dpdk
from loko_testbed.measure.slices.injection import best_injection_method
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, FindingPlace, LinePanel
from loko_testbed.reproduce.figure_types.transfers.document import SlicedPort, TransfersByPort
from loko_testbed.reproduce.figure_types.transfers.real_time import LiveTransfersResult, in_real_time
from loko_testbed.reproduce.figure_types.transfers.transfers import (
    BUILD_S,
    VIRTUAL_S_PER_GBIT,
    TransferMeasurement,
    port_with,
    transfer_task,
    virtual_transfer,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, NoteResult, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def parameters(figure: TransfersByPort, options: Options) -> Mapping[str, Any]:
    """Return sliced ports and switches, on which the result depends apart from the figure's document."""
    live: dict[str, Any] = {}
    if options.mode == "live":
        live = {"dpdk": missing_for_dpdk() is None, "injection": best_injection_method().value}
    return live | {
        port.name: {
            "port": load_slices(port.slices).model_dump(mode="json"),
            "live_port": load_slices(port.live_slices or port.slices).model_dump(mode="json"),
            "device": load_device(port.device).model_dump(mode="json"),
        }
        for port in figure.ports
    }


_UNITS: Final = {"latency": "ms", "retransmissions": "pps", "window": "packets"}
"""Units of the findings that the chart shows, as their names have them."""
_FAR_APART: Final = 100
"""Latencies of a larger ratio would lie on a linear axis itself."""


def equation_1_ms(port: Port, rate_bps: int, frame_bytes: int, payload_bps: float) -> float | None:
    """Return equation 1 with the utilisation that iperf3 would show.

    None for a policer, which is no M/M/1, and if the source sends as much as leaves, or more.
    """
    if not isinstance(port, HtbPort):
        return None
    packet = counted(Scheduler.HTB, frame_bytes)
    groups_per_s = effective_rate(rate_bps, port.dequeue.group_frames, packet)
    latency = MeanLatency(groups_per_s=groups_per_s, utilisation=payload_bps / rate_bps)
    return latency.mean_us / 1e3 if latency.utilisation < 1 else None


def _in_virtual_time(
    figure: TransfersByPort, seconds: float, options: Options, progress: Progress
) -> LiveTransfersResult:
    points = list(product(figure.ports, figure.queue_rates_mbps))
    tasks = [
        transfer_task(port, rate, figure, figure.congestion_control, seconds=seconds, seed=options.seed)
        for port, rate in points
    ]
    results = compute_tasks(
        virtual_transfer, tasks, options, progress, lambda task: task.port.queues[0].name, unit="transfers"
    )
    return LiveTransfersResult(
        did={(port.name, rate): measured for (port, rate), measured in zip(points, results, strict=True)}
    )


def compute(figure: TransfersByPort, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Replay the figure."""
    scale = figure.live if options.mode == "live" else figure
    assert scale is not None
    seconds = scale.quick.seconds if options.quick else scale.seconds
    if options.mode == "live":
        progress.begin(len(figure.ports), 0, "ports")
        result = in_real_time(figure, seconds, options.seed, progress.advance)
    else:
        result = _in_virtual_time(figure, seconds, options, progress)
    did = result.did
    ports = [
        port.model_copy(update={"label": f"{port.label}, virtual time"})
        if port.name in result.virtual
        else port
        for port in figure.ports
    ]
    figure = figure.model_copy(update={"ports": ports})
    model = {
        (port.name, rate): equation_1_ms(
            port_with(port, round(rate * BPS_PER_MBPS)),
            round(rate * BPS_PER_MBPS),
            figure.frame_bytes,
            did[port.name, rate].payload_bps,
        )
        for port, rate in _points(figure, did)
    }
    rows = [
        [
            port.label,
            rate,
            steady.payload_bps / BPS_PER_MBPS,
            steady.latency_ms,
            steady.latency_max_ms,
            model[port.name, rate],
            steady.retransmissions_pps,
            steady.window_packets,
            steady.timeouts,
        ]
        for port, rate in _points(figure, did)
        for steady in [did[port.name, rate]]
    ]
    columns = [
        *("port", "queue [Mbit/s]", "payload [Mbit/s]", "latency [ms]", "longest [ms]"),
        *("equation 1 [ms]", "sent again [1/s]", "window [packets]", "timeouts"),
    ]
    outcome = Outcome(
        chart=Chart(
            panels=[_panel(figure, did, model)],
            caption=f"one transfer of {seconds:g} s each, without its first quarter",
        ),
        findings=_findings(figure, did, model) | result.findings,
        x=AxisLabel(name="queue rate", unit="Mbit/s"),
        profile=figure.ports[0].device if options.mode == "virtual" else "",
        table=TableResult(
            columns=columns, rows=[["none" if cell is None else cell for cell in row] for row in rows]
        ),
        notes=[NoteResult(where="this replay", text=remark) for remark in result.remarks],
        runs=len(did),
        assumptions={"seconds": seconds},
    )
    return outcome, pa.table({name: [row[place] for row in rows] for place, name in enumerate(columns)})


def _points(figure: TransfersByPort, did: TransfersByRate) -> list[tuple[SlicedPort, int]]:
    """Return ports and rates that were replayed, in order."""
    return [(port, rate) for port in figure.ports for rate in _rates(port, did)]


def _rates(port: SlicedPort, did: TransfersByRate) -> list[int]:
    return sorted(rate for name, rate in did if name == port.name)


TransfersByRate = Mapping[tuple[str, int], TransferMeasurement]
EquationModel = Mapping[tuple[str, int], float | None]


def _findings(figure: TransfersByPort, did: TransfersByRate, model: EquationModel) -> dict[str, float]:
    findings: dict[str, float] = {}
    packet_bits = 8 * counted(Scheduler.TRTCM, figure.frame_bytes)
    for (name, rate), steady in did.items():
        findings[f"latency_{name}_{rate}_ms"] = steady.latency_ms
        findings[f"longest_{name}_{rate}_ms"] = steady.latency_max_ms
        findings[f"payload_{name}_{rate}_mbps"] = steady.payload_bps / BPS_PER_MBPS
        findings[f"retransmissions_{name}_{rate}_pps"] = steady.retransmissions_pps
        findings[f"extra_{name}_{rate}_mbps"] = steady.retransmissions_pps * packet_bits / BPS_PER_MBPS
        findings[f"window_{name}_{rate}_packets"] = steady.window_packets
        equation_ms = model[name, rate]
        if equation_ms is not None:
            findings[f"equation_1_{name}_{rate}_ms"] = equation_ms
            findings[f"latency_to_equation_1_{name}_{rate}_percent"] = 100 * steady.latency_ms / equation_ms
    for port in figure.ports:
        rates = _rates(port, did)
        if not rates:
            continue
        findings[f"longest_{port.name}_ms"] = max(did[port.name, rate].latency_max_ms for rate in rates)
        latencies = np.array([did[port.name, rate].latency_ms for rate in rates])
        product_of = latencies * rates
        if len(rates) > 1:
            spread = float(product_of.max() / product_of.min() - 1)
            findings[f"latency_times_rate_{port.name}_spread_percent"] = 100 * spread
        wire_ms = on_wire(figure.frame_bytes) * 8e3 / port.link_rate_bps
        findings[f"orders_above_packet_{port.name}"] = float(np.log10(latencies.max() / wire_ms))
    first, *others = figure.ports
    differ = [
        100 * abs(did[port.name, rate].latency_ms / did[first.name, rate].latency_ms - 1)
        for port in others
        for rate in _rates(port, did)
        if (first.name, rate) in did
    ]
    if differ:
        findings["ports_differ_percent"] = max(differ)
    return findings


def _panel(figure: TransfersByPort, did: TransfersByRate, model: EquationModel) -> LinePanel:
    shown: Mapping[str, Callable[[TransferMeasurement], float]] = {
        "latency": lambda steady: steady.latency_ms,
        "retransmissions": lambda steady: steady.retransmissions_pps,
        "window": lambda steady: steady.window_packets,
    }
    value = shown[figure.shows]
    label = {
        "latency": "latency of a segment [ms], mean",
        "retransmissions": "segments sent again [1/s]",
        "window": "congestion window [packets], mean",
    }[figure.shows]
    curves = []
    for port in figure.ports:
        rates = _rates(port, did)
        x = list(map(float, rates))
        y: list[float | None] = [value(did[port.name, rate]) for rate in rates]
        curves.append(ChartCurve(label=port.label, x=x, y=y))
        predicted = [model[port.name, rate] for rate in rates]
        if figure.shows == "latency" and any(each is not None for each in predicted):
            label_of_model = f"{port.label}, equation 1"
            curves.append(ChartCurve(label=label_of_model, x=x, y=predicted, dashed=True, curve=port.label))
    values = [each for curve in curves for each in curve.y if each]
    apart = figure.shows == "latency" and max(values) > _FAR_APART * min(values)
    return LinePanel(
        x=ChartAxis(label="queue rate [Mbit/s]", low=0),
        y=ChartAxis(label=label, log=True) if apart else ChartAxis(label=label, low=0),
        findings=[
            FindingPlace(finding=f"{figure.shows}_{port.name}_{rate}_{_UNITS[figure.shows]}", x=rate)
            for port, rate in _points(figure, did)
        ],
        curves=curves,
    )


def estimate_s(figure: TransfersByPort) -> dict[str, float]:
    """Estimate the time in seconds by mode."""
    gbits = figure.seconds * len(figure.ports) * sum(figure.queue_rates_mbps) / 1e3
    estimates = {"virtual": 1 + VIRTUAL_S_PER_GBIT * gbits}
    if figure.live is not None:
        transfers = len(figure.ports) * (1 + len(figure.live.queue_rates_mbps))
        estimates["live"] = transfers * (BUILD_S + figure.live.seconds)
    return estimates
