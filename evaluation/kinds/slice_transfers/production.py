"""Carry a transfer over TCP through sliced ports, rate by rate; compare its latency with equation 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from evaluation.chart import Chart, ChartAxis, Curve, LinePanel
from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.slice_transfers.document import SlicedPort, SliceTransfers
from evaluation.kinds.slices.port import Transfer, Transferred, transfer
from evaluation.options import Options, Progress
from evaluation.outcome import OneByOne, Outcome
from evaluation.replay.tasks import computed
from evaluation.result import AxisLabel, TableResult
from evaluation.runner import LOST, RunError
from evaluation.traffic import Tcp
from loko.device import load_device
from loko.slices.document import HtbPort, Port, load_slices
from loko.slices.latency import MeanLatency, effective_rate
from loko.slices.lengths import Scheduler, counted, on_wire
from loko.units import BPS_PER_MBPS, NS_PER_MS, NS_PER_S

WARM_UP: Final = 0.25
"""Share of a transfer that is left out."""


def parameters(figure: SliceTransfers, _options: Options) -> Mapping[str, Any]:
    """Return sliced ports and switches, on which the result depends apart from the figure's document."""
    return {
        port.name: {
            "port": load_slices(port.slices).model_dump(mode="json"),
            "device": load_device(port.device).model_dump(mode="json"),
        }
        for port in figure.ports
    }


def port_with(sliced: SlicedPort, rate_bps: int) -> Port:
    """Return the port with links and first queue at these rates. Raises `RunError` if they do not fit."""
    port = load_slices(sliced.slices)
    rate = "rate_bps" if isinstance(port, HtbPort) else "cir_bps"
    plain = port.model_dump()
    first = {**plain["queues"][0], rate: rate_bps, "flow": None}
    changed = {**plain, "link_rate_bps": sliced.link_rate_bps, "queues": [first]}
    try:
        return type(port).model_validate(changed)
    except ValidationError as error:
        raise RunError(f"port {sliced.name}: {error.errors()[0]['msg']}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a transfer did after its warm-up."""

    latency_ms: float
    """Mean over its segments, from the sender's tap to the receiver's."""
    latency_max_ms: float
    """Of the segment that was on its way the longest."""
    payload_bps: float
    """Payload that the source sent for the first time: what iperf3 shows."""
    retransmissions_pps: float
    window_packets: float
    """Mean over time."""
    timeouts: int
    """Those of the warm-up included."""


def measured(transferred: Transferred, frame_bytes: int, duration_ns: int) -> Measured:
    """Return what a transfer did after its warm-up. Raises `RunError` if nothing arrived then."""
    from_ns, sent = WARM_UP * duration_ns, transferred.segments
    late = sent.sent_ns >= from_ns
    arrived = late & (sent.received_ns != LOST)
    if not arrived.any():
        raise RunError("no segment arrived after the first quarter of a transfer; make seconds longer")
    seconds = (duration_ns - from_ns) / NS_PER_S
    again = int((transferred.retransmitted_ns >= from_ns).sum())
    payload_bits = 8 * (frame_bytes - _HEADERS_BYTES)
    changes_ns = np.append(transferred.window_at_ns, duration_ns).clip(from_ns, duration_ns)
    took_ns = (sent.received_ns - sent.sent_ns)[arrived]
    return Measured(
        latency_ms=float(took_ns.mean()) / NS_PER_MS,
        latency_max_ms=float(took_ns.max()) / NS_PER_MS,
        payload_bps=(int(late.sum()) - again) * payload_bits / seconds,
        retransmissions_pps=again / seconds,
        window_packets=float(np.average(transferred.window_segments, weights=np.diff(changes_ns))),
        timeouts=transferred.timeouts,
    )


_FAR_APART: Final = 100
"""Latencies of a larger ratio would lie on a linear axis itself."""
_HEADERS_BYTES: Final = 14 + 20 + 32 + 4
"""Ethernet, IPv4, TCP with time stamps, FCS."""


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


def compute(figure: SliceTransfers, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Replay the figure."""
    seconds = figure.quick.seconds if options.quick else figure.seconds
    duration_ns = round(seconds * NS_PER_S)
    points = list(product(figure.ports, figure.queue_rates_mbps))
    sends = Tcp(congestion_control=figure.congestion_control)
    tasks = [
        Transfer(
            port_with(port, round(rate * BPS_PER_MBPS)),
            port.device,
            figure.frame_bytes,
            sends,
            duration_ns,
            options.seed,
        )
        for port, rate in points
    ]
    progress.begin(len(tasks), 0, "transfers")
    carried = computed(transfer, tasks, options, lambda _: progress.advance(figure.name))
    did = {
        (port.name, rate): measured(transferred, figure.frame_bytes, duration_ns)
        for (port, rate), transferred in zip(points, carried, strict=True)
    }
    model = {
        (port.name, rate): equation_1_ms(
            task.port, round(rate * BPS_PER_MBPS), figure.frame_bytes, did[port.name, rate].payload_bps
        )
        for (port, rate), task in zip(points, tasks, strict=True)
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
        for port, rate in points
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
        findings=_findings(figure, did, model),
        x=AxisLabel(name="queue rate", unit="Mbit/s"),
        profile=figure.ports[0].device,
        table=TableResult(
            columns=columns, rows=[["none" if cell is None else cell for cell in row] for row in rows]
        ),
        runs=len(tasks),
        assumptions={"seconds": seconds},
    )
    return outcome, pa.table({name: [row[place] for row in rows] for place, name in enumerate(columns)})


Did = Mapping[tuple[str, int], Measured]
Model = Mapping[tuple[str, int], float | None]


def _findings(figure: SliceTransfers, did: Did, model: Model) -> dict[str, float]:
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
        findings[f"longest_{port.name}_ms"] = max(
            did[port.name, rate].latency_max_ms for rate in figure.queue_rates_mbps
        )
        latencies = np.array([did[port.name, rate].latency_ms for rate in figure.queue_rates_mbps])
        product_of = latencies * figure.queue_rates_mbps
        findings[f"latency_times_rate_{port.name}_spread_percent"] = 100 * float(
            product_of.max() / product_of.min() - 1
        )
        wire_ms = on_wire(figure.frame_bytes) * 8e3 / port.link_rate_bps
        findings[f"orders_above_packet_{port.name}"] = float(np.log10(latencies.max() / wire_ms))
    if len(figure.ports) > 1:
        findings["ports_differ_percent"] = max(
            100 * abs(did[port.name, rate].latency_ms / did[figure.ports[0].name, rate].latency_ms - 1)
            for port, rate in product(figure.ports[1:], figure.queue_rates_mbps)
        )
    return findings


def _panel(figure: SliceTransfers, did: Did, model: Model) -> LinePanel:
    shown: Mapping[str, Callable[[Measured], float]] = {
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
    rates = list(map(float, figure.queue_rates_mbps))
    curves = []
    for port in figure.ports:
        y: list[float | None] = [value(did[port.name, rate]) for rate in figure.queue_rates_mbps]
        curves.append(Curve(label=port.label, x=rates, y=y))
        predicted = [model[port.name, rate] for rate in figure.queue_rates_mbps]
        if figure.shows == "latency" and any(each is not None for each in predicted):
            curves.append(Curve(label=f"{port.label}, equation 1", x=rates, y=predicted, dashed=True))
    values = [each for curve in curves for each in curve.y if each]
    apart = figure.shows == "latency" and max(values) > _FAR_APART * min(values)
    return LinePanel(
        x=ChartAxis(label="queue rate [Mbit/s]", low=0),
        y=ChartAxis(label=label, log=True) if apart else ChartAxis(label=label, low=0),
        curves=curves,
    )


_VIRTUAL_S_PER_GBIT: Final = 0.6


def _estimate_s(figure: SliceTransfers) -> dict[str, float]:
    gbits = figure.seconds * len(figure.ports) * sum(figure.queue_rates_mbps) / 1e3
    return {"virtual": 1 + _VIRTUAL_S_PER_GBIT * gbits}


KIND: Final = Kind(
    document=SliceTransfers,
    produce=OneByOne(compute, parameters),
    estimate_s=_estimate_s,
    honours=IN_TASKS,
)
