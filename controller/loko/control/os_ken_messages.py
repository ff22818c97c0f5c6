"""OpenFlow 1.0 messages with the matches and actions of os-ken, as bytes.

Only measuring and other people's tests need these; `messages` has those of the controller, without os-ken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.framing import SEGMENT_BYTES

PROTOCOL: Final = ofproto_protocol.ProtocolDesc(version=of.OFP_VERSION)
"""Datapath as os-ken's messages need it."""


def flow_mod(
    match: Any,
    actions: Sequence[Any],
    *,
    priority: int,
    xid: int,
    command: int = of.OFPFC_ADD,
    cookie: int = 0,
) -> bytes:
    """FLOW_MOD with an os-ken match and os-ken actions, without timeouts."""
    message = parser.OFPFlowMod(
        PROTOCOL, match, cookie=cookie, command=command, priority=priority, actions=list(actions)
    )
    return serialized(message, xid)


def output_to(port: int) -> Any:
    """Return os-ken's action that sends a whole frame out of a port."""
    return parser.OFPActionOutput(port, 0xFFFF)


def serialized(message: Any, xid: int) -> bytes:
    """Return the bytes of an os-ken message. Raises `ValueError` if it does not fit a board's segment."""
    message.set_xid(xid)
    message.serialize()
    data = bytes(message.buf)
    if len(data) > SEGMENT_BYTES:
        raise ValueError(
            f"{type(message).__name__} of {len(data)} bytes exceeds a segment of {SEGMENT_BYTES}"
        )
    return data
