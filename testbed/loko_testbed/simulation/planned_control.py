"""Plans what a controller sends in virtual time: EchoRequests, or all messages that time is reserved for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from loko.control import messages, messages13
from loko.switch_model.control_traffic import ControlTraffic, MessageRate, MessageType
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab

Planned = Mapping[str, Sequence[tuple[int, bytes]]]
"""For each switch, in order: time in ns from the start of the run, and the payload of a TCP segment."""

_FIRST_XID: Final = 1000
"""Larger than any transaction ID of the session that sets up the table."""
_REQUESTS: Final = {
    OpenFlow.V1_0: {
        MessageType.ECHO: messages.echo_request,
        MessageType.BARRIER: messages.barrier_request,
        MessageType.FEATURES: messages.features_request,
        MessageType.TABLE_STATISTICS: messages.table_stats_request,
        MessageType.HEARTBEAT: messages.table_stats_request,
        MessageType.FLOW_STATISTICS: messages.flow_stats_request,
    },
    OpenFlow.V1_3: {
        MessageType.ECHO: messages13.echo_request,
        MessageType.BARRIER: messages13.barrier_request,
        MessageType.FEATURES: messages13.features_request,
        MessageType.TABLE_STATISTICS: messages13.table_stats_request,
        MessageType.HEARTBEAT: messages13.aggregate_request,
        MessageType.FLOW_STATISTICS: messages13.flow_stats_request,
    },
}
SENDABLE: Final = tuple(_REQUESTS[OpenFlow.V1_0])
"""The messages that a planned controller can send."""


def echoes(per_s: float, seconds: float, phase: float) -> list[tuple[int, bytes]]:
    """Plan EchoRequests at equal intervals; the first comes after the fraction `phase` of an interval."""
    count = int(per_s * seconds)
    if not count:
        return []
    times_ns = np.rint((np.arange(count) + phase) * 1e9 / per_s).astype(np.int64)
    return list(zip(times_ns.tolist(), _echo_requests(count), strict=True))


@lru_cache(maxsize=8)
def _echo_requests(count: int) -> tuple[bytes, ...]:
    """Return so many EchoRequests; cached, because every switch in every run gets the same ones."""
    return tuple(messages.echo_request(_FIRST_XID + number) for number in range(count))


def all_that_may_be_sent(
    lab: Lab,
    control: ControlTraffic,
    *,
    duration_ns: int,
    first_ns: Mapping[str, int],
    openflow: OpenFlow = OpenFlow.V1_0,
) -> Planned:
    """Plan as many messages as `control` allows: bursts of each to each switch, repeated as soon as allowed.

    A switch gets its first bursts at its `first_ns`; times are in ns from the start of the run, which ends at
    `duration_ns`.
    """
    planned = {}
    for switch in lab.switches:
        segments: list[tuple[int, bytes]] = []
        for message, rate in control.items():
            request = _REQUESTS[openflow][message](1)
            segments += [(at_ns, request) for at_ns in _bursts_ns(rate, first_ns[switch], duration_ns)]
        planned[switch] = sorted(segments)
    return planned


def _bursts_ns(rate: MessageRate, first_ns: int, duration_ns: int) -> list[int]:
    period_ns = math.ceil(rate.burst * 1e9 / rate.per_s)
    return [at_ns for at_ns in range(first_ns, duration_ns, period_ns) for _ in range(rate.burst)]
