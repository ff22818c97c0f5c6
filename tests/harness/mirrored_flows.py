"""Flows from each host of the two-switch lab to its mirror host, as in section 2.3."""

from __future__ import annotations

from loko.switch_model.flow import Flow

FLOWS = tuple(
    Flow(
        id=f"{source}-{destination}",
        source=source,
        destination=destination,
        udp_source=5000,
        udp_destination=5001,
        rate_bps=1e6,
        burst_bytes=306,
        frame_bytes=306,
    )
    for source, destination in (("H1", "H3"), ("H3", "H1"), ("H2", "H4"), ("H4", "H2"))
)
