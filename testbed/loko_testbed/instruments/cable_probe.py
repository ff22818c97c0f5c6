"""Probes along a cable between this machine and a switch: where they arrive, and where they come out.

The switch's table is empty, so it sends every frame to its controller.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import PROTOCOL, serialized
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.numbered_frame import frame, number_of
from loko_testbed.instruments.packet_tap import TappedFrame, packet_socket
from loko_testbed.simulation.runner import RunError

_SESSIONS: Final = 3
"""How many sessions a switch is examined in, at most: other frames sent to it may break one."""
_PROBES: Final = 3
_PROBE_BYTES: Final = 64
_PAUSE_S: Final = 0.005
_ANSWER_S: Final = 0.5
_IN_PORT_AT: Final = 14
_DATA_AT: Final = 18
"""Offsets in a PACKET_IN of OpenFlow 1.0."""


def refuse_unless_broken(endpoint: ControllerEndpoint, name: str, error: RunError, session: int) -> None:
    """Raise what an examination found; but if its session broke, end that, so that another one follows.

    `session` is the number of the switch's session, from 1. If the last one breaks as well, this raises
    `RunError`.
    """
    if endpoint.is_alive():
        raise error
    if session == _SESSIONS:
        raise RunError(
            f"{name}: its connection to the controller breaks while its cables are examined (docs/quirks.md,"
            " 14 and 15): let nothing else send to it, and switch it off and on"
        ) from None
    endpoint.hang_up()


def arrival(endpoint: ControllerEndpoint, interface: str) -> int | None:
    """Send probes from an interface. Return the port of the switch at which they arrive; None if at none.

    The switch reports the port since it has no entry for them. One probe is sent at a time: a board that
    reports several before they are acknowledged may break its session (quirk 15).
    """
    endpoint.messages()
    with packet_socket(interface, 0) as sender:
        for number in range(_PROBES):
            sender.send(frame(_PROBE_BYTES, number))
            if (port := _reported_port(endpoint)) is not None:
                return port
    return None


def _reported_port(endpoint: ControllerEndpoint) -> int | None:
    """Return the port at which the switch says a probe came in; None if it says nothing in time."""
    deadline = time.monotonic() + _ANSWER_S
    while (left_s := deadline - time.monotonic()) > 0:
        for message in endpoint.messages(left_s):
            if (
                message[1] == of.OFPT_PACKET_IN
                and number_of(message[_DATA_AT : _DATA_AT + _PROBE_BYTES - 4]) is not None
            ):
                return int.from_bytes(message[_IN_PORT_AT : _IN_PORT_AT + 2], "big")
    return None


def let_out(endpoint: ControllerEndpoint, port: int) -> None:
    """Have the switch send probes out of a port."""
    for number in range(_PROBES):
        message = parser.OFPPacketOut(
            PROTOCOL,
            buffer_id=0xFFFFFFFF,
            in_port=of.OFPP_NONE,
            actions=[parser.OFPActionOutput(port, 0xFFFF)],
            data=frame(_PROBE_BYTES, number),
        )
        endpoint.write(serialized(message, number))
        time.sleep(_PAUSE_S)
    time.sleep(_ANSWER_S)
    endpoint.messages()


def probes(seen: Iterable[TappedFrame], *, passive: bool = True) -> bool:
    """Return whether probes were seen: incoming ones if the tap is passive, else those that were sent."""
    return any(number_of(sighting.data) is not None and sighting.outgoing is not passive for sighting in seen)
