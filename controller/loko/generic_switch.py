"""The profile of a generic switch (`kind = "generic-switch"`): a fixed time a frame, then a port's queues.

The simulator carries such switches (docs/devices.md). What a port's queues guarantee is in `loko.slices`.
"""

from __future__ import annotations

from typing import Literal

from loko.document import Strict
from loko.quantity import Count
from loko.tolerance import Tolerant


class GenericPorts(Strict):
    """The front ports and their rate."""

    count: Count
    link_rate_bps: Count


class GenericTable(Strict):
    """The flow table."""

    entries: Count


class Forwarding(Strict):
    """From a frame's last bit in until it is in its queue."""

    latency_ns: Count


class GenericSwitch(Tolerant):
    """All that the simulator knows of such a switch."""

    format: Literal[1]
    kind: Literal["generic-switch"]
    name: str
    title: str
    ports: GenericPorts
    table: GenericTable
    forwarding: Forwarding
