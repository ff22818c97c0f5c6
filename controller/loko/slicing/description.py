"""Output of `loko model slice`: the configuration of each queue of a port, and its prediction."""

from __future__ import annotations

import math
from typing import Any, Final

from loko.slicing.bound import SliceBound, delay_bound
from loko.slicing.document import HtbQueue, Port, TrtcmQueue
from loko.slicing.goodput import goodput_bps
from loko.slicing.latency import mean_latency
from loko.slicing.lengths import MAX_FRAME_BYTES, Protocol

FRAMES_BYTES: Final = (64, 128, 256, 512, 1024, 1500, MAX_FRAME_BYTES)
"""Lengths of frames, with FCS, for which goodput is shown."""
COUNTS: Final = {"htb": "frame without FCS", "trtcm": "IP packet"}
"""Bytes that each scheduler counts in tokens."""


def describe_slices(port: Port) -> list[dict[str, Any]]:
    """Return for each queue its name, its configuration, and what will come out."""
    return [_describe(port, queue) for queue in port.queues]


def _describe(port: Port, queue: HtbQueue | TrtcmQueue) -> dict[str, Any]:
    mean, bound = mean_latency(port, queue), delay_bound(port, queue)
    goodput = {
        protocol.value: {
            str(frame): round(goodput_bps(port, queue, frame, protocol)) for frame in FRAMES_BYTES
        }
        for protocol in Protocol
    }
    latency: dict[str, Any] = {
        "mean": None if mean is None else _finite(mean.mean_us),
        "bound": round(bound.delay_us, 3) if isinstance(bound, SliceBound) else None,
        "mean_at_half_percent_more": None if mean is None else _finite(mean.mean_us_at_more),
    }
    return {
        "name": queue.name,
        "scheduler": port.scheduler,
        "configured_bps": queue.rate_bps if isinstance(queue, HtbQueue) else queue.cir_bps,
        "counts": COUNTS[port.scheduler],
        "goodput_bps": goodput[Protocol.UDP.value],
        "goodput_tcp_bps": goodput[Protocol.TCP.value],
        "latency_us": latency,
        "groups_per_s": None if mean is None else round(mean.groups_per_s, 3),
        "utilisation": None if mean is None else round(mean.utilisation, 6),
        "no_mean_because": _no_mean(queue, latency["mean"]),
        "no_bound_because": None if isinstance(bound, SliceBound) else bound.because,
        "lossy_because": bound.lossy_because if isinstance(bound, SliceBound) else None,
    }


def _no_mean(queue: HtbQueue | TrtcmQueue, mean: float | None) -> str | None:
    if mean is not None:
        return None
    if queue.flow is None:
        return "nothing is said of what is sent; give the queue a flow"
    return "its flow sends all that the queue dequeues, or more; lower the flow's rate_bps"


def _finite(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None
