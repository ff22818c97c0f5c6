"""Computes RFC 8456's metrics from the instants that a fleet has measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from loko.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyStats:
    """Times of one kind, in ns. Quantiles by nearest rank."""

    count: int
    min_ns: int
    p50_ns: int
    p99_ns: int
    max_ns: int


def times(values_ns: Iterable[int]) -> LatencyStats | None:
    """Summarise times; None if there are none."""
    ordered = sorted(values_ns)
    if not ordered:
        return None

    def rank(part: float) -> int:
        return ordered[max(0, math.ceil(part * len(ordered)) - 1)]

    count = len(ordered)
    return LatencyStats(
        count=count, min_ns=ordered[0], p50_ns=rank(0.5), p99_ns=rank(0.99), max_ns=ordered[-1]
    )


def rate_per_s(instants_ns: Sequence[int], since_ns: int) -> float | None:
    """Return how many events there were per second from `since_ns` to the last one; None without any."""
    if not instants_ns or max(instants_ns) <= since_ns:
        return None
    return len(instants_ns) * NS_PER_S / (max(instants_ns) - since_ns)


@dataclass(slots=True, kw_only=True)
class FleetResult:
    """Results so far, in the terms of RFC 8456. A metric without any sample yet is None."""

    boards: int
    control_cost: bool
    """Whether the boards need time for control messages, as real ones do."""
    rounds: int = 0
    """Complete rounds."""
    is_complete: bool = False
    sessions: int = 0
    """Control sessions that were up together: control session capacity, as far as there were boards."""
    left_out: int = 0
    """Boards of all rounds that were left out: no PACKET_OUT came for the broadcast of a host."""
    setup: LatencyStats | None = None
    """From the begin of the TCP connection until the board has sent its features."""
    setups_per_s: float | None = None
    processing: LatencyStats | None = None
    """Asynchronous message processing time: from PACKET_IN to its FLOW_MOD, one at a time."""
    provisioning: LatencyStats | None = None
    """Reactive path provisioning time of one switch: from the frame to FLOW_MOD, one at a time."""
    processed_per_s: float | None = None
    """Asynchronous message processing rate: FLOW_MODs a second under load."""
    loaded: LatencyStats | None = None
    """From PACKET_IN to its FLOW_MOD, under load."""
    requests: int = 0
    lost: int = 0
    """PACKET_INs that had no FLOW_MOD in time, of all requests."""
    recovery: LatencyStats | None = None
    """From the restart of a board until its first FLOW_MOD, half of the fleet at once."""
    not_recovered: int = 0
    closed_by_controller: int = 0
    """Sessions that the controller has ended."""
    complaints: dict[str, int] = field(default_factory=dict)
    """Requests that the boards could not carry out, and how often."""

    def as_values(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)
