"""The conditions of guarantees by port queues (docs/port-queues.md, "The model" and theorem 3)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from loko.admission.port_queues.device import LARGEST_FRAME_BYTES, flow_rule
from loko.switch_model.device import Device
from loko.switch_model.generic_switch import GenericSwitch
from loko.topology.conditions import (
    CLOCKS_AND_CABLES,
    FLOWS_CONFORM,
    FLOWS_STAY,
    NO_SLOWER_THAN,
    TABLES_AS_PLANNED,
    Condition,
    SchemeConditions,
    Terms,
    as_profiled,
)

OTHER_TRAFFIC_LOWEST_QUEUE: Final = Condition(
    id="other-traffic-lowest-queue",
    text="All other traffic waits in the lowest queue of each port, where an entry without a queue sends it."
    " No frame but those of these flows uses the queues of their classes, the highest ones, and none the"
    " queues in between.",
)
NO_JUMBO_FRAMES: Final = Condition(
    id="no-jumbo-frames",
    text=f"No frame of any traffic has more than {LARGEST_FRAME_BYTES:,} bytes with tag and FCS: there are no"
    " jumbo frames.",
)
NO_PAUSE: Final = Condition(
    id="no-pause",
    text="PAUSE is off: no switch stops sending at the request of its neighbour (IEEE 802.3x, 802.1Qbb).",
)
UNCABLED_PORTS_UNUSED: Final = Condition(
    id="uncabled-ports-unused",
    text="Ports to which the lab has no cable stay unused: in a shared memory, a queue has the room that the"
    " other queues of cabled ports leave.",
)


def _have_openflow(terms: Terms) -> list[bool]:
    return [
        not isinstance(switch.profile, GenericSwitch) or switch.profile.table.vlans is None
        for switch in terms.lab.switches.values()
    ]


SWITCHES_AS_CONFIGURED: Final = Condition(
    id="switches-as-configured",
    text="Switches without OpenFlow are configured as `loko plan --configuration` says, and hosts tag their"
    " frames so, whose stated sizes include the tag. Spanning tree and registration of VLANs are off.",
    applies=lambda terms: not all(_have_openflow(terms)),
)

_USED: Final = frozenset(
    {
        "ports.link_rate_bps",
        "table.entries",
        "table.vlans",
        "forwarding.latency_ns",
        "pipeline.latency.latency_ns",
        "pipeline.spread_ns",
        "pipeline.busy.rise_ns",
        "pipeline.tag_push.extra_ns",
        "priorities.queues",
        "priorities.limit_frames",
        "priorities.check_ns",
        "buffer.pool_bytes",
        "buffer.factor_percent",
        "buffer.reserved_bytes",
        "tolerance.board_clock_ppm",
        "tolerance.sender_clock_ppm",
        "tolerance.cable_ns",
    }
)
"""Keys of the numbers that `loko.admission.port_queues` reads of a profile, without places in lists."""


def used_of_ports(key: str, device: Device, _terms: Terms) -> bool:
    """Return whether guarantees of a port depend on a number of the switch's profile."""
    rule = flow_rule(device)
    if rule is not None and key == f"table.rules[{rule}].entries":
        return True
    return re.sub(r"\[\d+\]", "", key) in _USED


CONDITIONS: Final = SchemeConditions(
    conditions=(
        FLOWS_CONFORM,
        OTHER_TRAFFIC_LOWEST_QUEUE,
        NO_JUMBO_FRAMES,
        NO_PAUSE,
        UNCABLED_PORTS_UNUSED,
        replace(
            TABLES_AS_PLANNED,
            applies=lambda terms: TABLES_AS_PLANNED.applies(terms) and any(_have_openflow(terms)),
        ),
        SWITCHES_AS_CONFIGURED,
        CLOCKS_AND_CABLES,
        as_profiled(used_of_ports),
        NO_SLOWER_THAN,
    )
)
WHOLE_PATH_CONDITIONS: Final = SchemeConditions(conditions=(*CONDITIONS.conditions, FLOWS_STAY))
"""Those of bounds for whole paths (theorem 4)."""
