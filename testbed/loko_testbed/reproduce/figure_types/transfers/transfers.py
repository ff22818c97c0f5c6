"""Measurements of a TCP transfer through a sliced port, in virtual time or live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import ValidationError

from loko.slicing.document import HtbPort, Port, load_slices
from loko.units import BPS_PER_MBPS, NS_PER_MS, NS_PER_S, NS_PER_US
from loko_testbed.measure.slices.port import Transfer, TransferResult, transfer
from loko_testbed.reproduce.figure_types.transfers.document import (
    CongestionControl,
    SlicedPort,
    TransfersFigure,
)
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.simulation.traffic import Tcp

WARM_UP: Final = 0.25
"""Share of a transfer that is left out."""
VIRTUAL_S_PER_GBIT: Final = 0.6
BUILD_S: Final = 5.0
"""Computing time of a transfer in virtual time, and time to build a switch."""
SPARE: Final = 0.9
"""Share of what a switch carries up to which a queue's rate, and not the switch, limits a transfer."""
_HEADERS_BYTES: Final = 14 + 20 + 32 + 4
"""Ethernet, IPv4, TCP with time stamps, FCS."""


def port_with(sliced: SlicedPort, rate_bps: int) -> Port:
    """Return the port with links and first queue at these rates. Raises `RunError` if they do not fit."""
    port = load_slices(sliced.slices)
    rate, bucket = ("rate_bps", "burst_bytes") if isinstance(port, HtbPort) else ("cir_bps", "cbs_bytes")
    plain = port.model_dump()
    first = {**plain["queues"][0], rate: rate_bps, "flow": None}
    if sliced.bucket_bytes is not None:
        first[bucket] = sliced.bucket_bytes
    changed = {**plain, "link_rate_bps": sliced.link_rate_bps, "queues": [first]}
    try:
        return type(port).model_validate(changed)
    except ValidationError as error:
        raise RunError(f"port {sliced.name}: {error.errors()[0]['msg']}") from None


def transfer_task(
    sliced: SlicedPort,
    rate_mbps: int,
    figure: TransfersFigure,
    control: CongestionControl,
    *,
    seconds: float,
    seed: int,
) -> Transfer:
    """Return the transfer in virtual time through the port's queue at this rate. Raises as `port_with`."""
    port = port_with(sliced, round(rate_mbps * BPS_PER_MBPS))
    sends = Tcp(congestion_control=control)
    return Transfer(
        port=port,
        device=sliced.device,
        frame_bytes=figure.frame_bytes,
        sends=sends,
        duration_ns=round(seconds * NS_PER_S),
        seed=seed,
        host_delay_ns=round(figure.host_delay_us * NS_PER_US),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferMeasurement:
    """Measurement of a transfer after its warm-up."""

    latency_ms: float
    """Mean over its segments, from the sender's tap to the receiver's."""
    latency_max_ms: float
    """Latency of the segment that was on its way the longest."""
    payload_bps: float
    """Payload that the source sent for the first time: what iperf3 shows."""
    retransmissions_pps: float
    window_packets: float
    """Mean over time."""
    timeouts: int | None
    """Number of timeouts, including those of the warm-up; None if unknown."""


def virtual_transfer(task: Transfer) -> TransferMeasurement:
    """Carry out a transfer in virtual time and measure it. Raises `RunError`."""
    return measure_transfer(transfer(task), task.frame_bytes, task.duration_ns)


def measure_transfer(transferred: TransferResult, frame_bytes: int, duration_ns: int) -> TransferMeasurement:
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
    return TransferMeasurement(
        latency_ms=float(took_ns.mean()) / NS_PER_MS,
        latency_max_ms=float(took_ns.max()) / NS_PER_MS,
        payload_bps=(int(late.sum()) - again) * payload_bits / seconds,
        retransmissions_pps=again / seconds,
        window_packets=float(np.average(transferred.window_segments, weights=np.diff(changes_ns))),
        timeouts=transferred.timeouts,
    )
