"""Source ports that no other flow between the same hosts has: for second copies and second paths."""

from __future__ import annotations

from collections.abc import Container, Iterable

from loko.service.outcome import StoredFlow
from loko.switch_model.flow import Flow

SourcePort = tuple[str, str, int]
"""Source and destination by name, and a UDP source port: fields 1 to 3 of a flow."""


def free_port(flow: Flow, taken: Container[SourcePort]) -> int:
    """Return the highest source port between the hosts of a flow that is not taken."""
    return next(port for port in range(65535, 0, -1) if (flow.source, flow.destination, port) not in taken)


def from_free_port(flow: Flow, taken: set[SourcePort]) -> Flow:
    """Return the flow from a source port that is not taken, which then is."""
    beside = flow._replace(udp_source=free_port(flow, taken))
    taken.add(beside[1:4])
    return beside


def stored_ports(stored: Iterable[StoredFlow]) -> set[SourcePort]:
    """Return the ports of stored flows and of their second copies."""
    return {sent[1:4] for flow in stored for sent in flow.sent}
