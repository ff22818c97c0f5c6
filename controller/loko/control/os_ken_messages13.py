"""OpenFlow 1.3 messages with the matches and actions of os-ken, as bytes; see `os_ken_messages`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from loko.control.os_ken_messages import serialized

PROTOCOL: Final = ofproto_protocol.ProtocolDesc(version=of.OFP_VERSION)
"""Datapath as os-ken's messages need it."""


_WHOLE_COOKIE: Final = 0xFFFF_FFFF_FFFF_FFFF


def flow_mod(
    match: Any,
    actions: Sequence[Any],
    *,
    priority: int,
    xid: int,
    command: int = of.OFPFC_ADD,
    cookie: int = 0,
) -> bytes:
    """FLOW_MOD of the first table with an os-ken match and os-ken actions, without timeouts."""
    apply = [parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, list(actions))] if actions else []
    is_deletion = command in {of.OFPFC_DELETE, of.OFPFC_DELETE_STRICT}
    message = parser.OFPFlowMod(
        PROTOCOL,
        cookie=cookie,
        cookie_mask=_WHOLE_COOKIE if is_deletion and cookie else 0,
        command=command,
        priority=priority,
        out_port=of.OFPP_ANY,
        out_group=of.OFPG_ANY,
        match=match,
        instructions=apply,
    )
    return serialized(message, xid)


def output_to(port: int) -> Any:
    """Return os-ken's action that sends a whole frame out of a port."""
    return parser.OFPActionOutput(port, of.OFPCML_NO_BUFFER)
