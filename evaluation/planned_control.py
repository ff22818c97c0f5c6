"""What a controller sends in a run in virtual time: EchoRequests, or all that is reserved for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from loko.control_traffic import ControlTraffic, Message, MessageRate
from loko.controller import messages, messages13
from loko.lab import Lab
from loko.scenario import OpenFlow

Planned = Mapping[str, Sequence[tuple[int, bytes]]]
"""By switch, in order: ns after the beginning of a run, and the payload of a TCP segment."""

_FIRST_XID: Final = 1000
"""Above those of the session that sets up the table."""
_REQUESTS: Final = {
    OpenFlow.V1_0: {
        Message.ECHO: messages.echo_request,
        Message.BARRIER: messages.barrier_request,
        Message.FEATURES: messages.features_request,
        Message.TABLE_STATISTICS: messages.table_stats_request,
        Message.HEARTBEAT: messages.table_stats_request,
        Message.FLOW_STATISTICS: messages.flow_stats_request,
    },
    OpenFlow.V1_3: {
        Message.ECHO: messages13.echo_request,
        Message.BARRIER: messages13.barrier_request,
        Message.FEATURES: messages13.features_request,
        Message.TABLE_STATISTICS: messages13.table_stats_request,
        Message.HEARTBEAT: messages13.aggregate_request,
        Message.FLOW_STATISTICS: messages13.flow_stats_request,
    },
}
SENDABLE: Final = tuple(_REQUESTS[OpenFlow.V1_0])
"""Messages of a controller that a run can contain."""


def echoes(per_s: float, seconds: float, phase: float) -> list[tuple[int, bytes]]:
    """EchoRequests at equal distances, the first after this part of the distance."""
    count = int(per_s * seconds)
    return [
        (round((number + phase) * 1e9 / per_s), messages.echo_request(_FIRST_XID + number))
        for number in range(count)
    ]


def all_that_may_be_sent(
    lab: Lab,
    control: ControlTraffic,
    *,
    duration_ns: int,
    first_ns: Mapping[str, int],
    openflow: OpenFlow = OpenFlow.V1_0,
) -> Planned:
    """A burst of each message to each switch, the first at `first_ns`, again as soon as allowed."""
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
