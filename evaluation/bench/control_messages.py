"""The messages whose processing time section 3.2 measures: all of figure 6b, FLOW_MODs of figure 7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from evaluation.bench.control_entries import XID, add, adds, entry_match, table_change
from loko.controller.messages import PROTOCOL, barrier_request, echo_request, features_request, serialized
from loko.scenario import TABLE_1_ENTRIES

ACTIONS: Final = (0, 1, 2, 3, 4)
ENTRIES: Final = TABLE_1_ENTRIES
_PACKET_OUT_BYTES: Final = 64
_REPLY_BYTES, _ENTRY_BYTES, _ACTION_BYTES = 12, 88, 8
_SHOWN_ENTRIES: Final = 20
_LONGEST_REPLY_BYTES: Final = 2048
"""A longer reply to a request for flow statistics hangs the Zodiac FX (quirk 28). It shows 20 entries."""
_OTHER_VLAN: Final = 77

Command = Literal["delete", "delete-strict", "modify", "modify-strict"]
Hit = Literal["all", "none"]
_COMMANDS: Final[dict[Command, int]] = {
    "delete": of.OFPFC_DELETE,
    "delete-strict": of.OFPFC_DELETE_STRICT,
    "modify": of.OFPFC_MODIFY,
    "modify-strict": of.OFPFC_MODIFY_STRICT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A message whose processing time is measured."""

    name: str
    message: bytes
    replies: bool = False
    """Whether it has a reply (equation 1), or is followed by a barrier (equations 2 and 3)."""
    table: tuple[bytes, ...] = ()
    """Entries that are there before."""
    undo: bytes | None = None
    """What makes the table as it was before."""
    changes: bool = False
    """Whether it changes the table so that it must be made anew."""


def messages() -> Iterator[Subject]:
    """All messages but FLOW_MOD (figure 6b), with an empty table."""
    for name, message in _WITH_REPLY.items():
        yield Subject(name=name, message=message, replies=True)
    yield Subject(name="SetConfig", message=serialized(parser.OFPSetConfig(PROTOCOL, 0, 128), XID))
    out = parser.OFPPacketOut(
        PROTOCOL,
        buffer_id=0xFFFFFFFF,
        in_port=of.OFPP_NONE,
        actions=[parser.OFPActionOutput(2, 0xFFFF)],
        data=bytes(_PACKET_OUT_BYTES - 4),
    )
    yield Subject(name="PacketOut", message=serialized(out, XID))
    yield from flow_statistics()


def _statistics(request: Any) -> bytes:
    return serialized(request, XID)


_WITH_REPLY: Final = {
    "EchoRequest": echo_request(XID),
    "FeaturesRequest": features_request(XID),
    "GetConfigRequest": serialized(parser.OFPGetConfigRequest(PROTOCOL), XID),
    "BarrierRequest": barrier_request(XID),
    "Vendor": bytes([of.OFP_VERSION, of.OFPT_VENDOR, 0, 12, 0, 0, 0, XID, 0, 0, 0x23, 0x20]),
    "DescStatsRequest": _statistics(parser.OFPDescStatsRequest(PROTOCOL, 0)),
    "TableStatsRequest": _statistics(parser.OFPTableStatsRequest(PROTOCOL, 0)),
    "PortStatsRequest": _statistics(parser.OFPPortStatsRequest(PROTOCOL, 0, of.OFPP_NONE)),
}


def flow_statistics() -> Iterator[Subject]:
    """FlowStatsRequest over entries and actions; not those whose reply hangs the board."""
    everything = parser.OFPMatch(wildcards=of.OFPFW_ALL)
    request = serialized(parser.OFPFlowStatsRequest(PROTOCOL, 0, everything, 0xFF, of.OFPP_NONE), XID)
    for entries in ENTRIES:
        for actions in ACTIONS:
            if not hangs(entries, actions):
                yield Subject(
                    name=f"FlowStatsRequest/{entries}/{actions}",
                    message=request,
                    replies=True,
                    table=tuple(adds(entries, actions)),
                )


def hangs(entries: int, actions: int) -> bool:
    """Whether a Zodiac FX with such a table is dead after it was asked for its flow statistics."""
    shown = min(entries, _SHOWN_ENTRIES)
    return _REPLY_BYTES + shown * (_ENTRY_BYTES + actions * _ACTION_BYTES) > _LONGEST_REPLY_BYTES


def flow_adds() -> Iterator[Subject]:
    """FlowMod Add (figure 7a): the last of so many entries, with so many actions."""
    for entries in ENTRIES:
        for actions in ACTIONS:
            yield Subject(
                name=f"Add/{entries}/{actions}",
                message=add(entries - 1, actions),
                table=tuple(adds(entries - 1, actions)),
                undo=table_change(of.OFPFC_DELETE_STRICT, entry_match(entries - 1)),
            )


def flow_searches() -> Iterator[Subject]:
    """FlowMod Delete and Modify (figure 7b), strict or not, which hit all entries or none."""
    for command in _COMMANDS:
        for hit in ("all", "none"):
            for entries in ENTRIES:
                yield flow_search(command, hit, entries)


def flow_search(command: Command, hit: Hit, entries: int) -> Subject:
    """One of them. Only a table whose entries are all the same is hit as a whole by a strict command."""
    strict = command.endswith("-strict")
    if hit == "none":
        match = parser.OFPMatch(dl_vlan=_OTHER_VLAN)
    else:
        match = entry_match(0) if strict else parser.OFPMatch(wildcards=of.OFPFW_ALL)
    return Subject(
        name=f"{command}/{hit}/{entries}",
        message=table_change(_COMMANDS[command], match, actions=1 if command.startswith("modify") else 0),
        table=tuple([add(0, 1)] * entries if strict and hit == "all" else adds(entries, 1)),
        changes=hit == "all",
    )
