"""Entries of OpenFlow 1.0 as filters of tc: a flow table of the kernel, with a switch's answers.

Each entry is a filter at the ingress of the ports that it matches, with the action mirred; its cookie is the
action's. Where the kernel has the classifier flower it is used, else u32, which cannot see VLAN tags. What tc
has no words for is refused as a switch refuses it.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, Final

from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.framing import HEADER, framed, whole_messages
from loko_testbed.instruments.programs import require, run, run_json
from loko_testbed.measure.bench.software_switches.ports import queue_class

_COOKIE_AT, _COMMAND_AT, _PRIORITY_AT, _OUT_PORT_AT, _ACTIONS_AT = 48, 56, 62, 68, 72
_ENTRY_BYTES, _ENTRY_COOKIE_AT = 88, 64
_MOST_LISTED: Final = 600
"""Entries in one part of a reply, which has at most 64 KiB."""
_REFUSED_MATCH: Final = (of.OFPET_FLOW_MOD_FAILED, of.OFPFMFC_UNSUPPORTED)
_REFUSED_ACTION: Final = (of.OFPET_BAD_ACTION, of.OFPBAC_BAD_TYPE)
_REFUSED_COMMAND: Final = (of.OFPET_FLOW_MOD_FAILED, of.OFPFMFC_BAD_COMMAND)
_FULL: Final = (of.OFPET_FLOW_MOD_FAILED, of.OFPFMFC_ALL_TABLES_FULL)
_FAILED_LINE: Final = re.compile(r"Command failed .*?:(\d+)")
_PRIORITIES: Final = 65_536
_IP: Final = 0x0800


@dataclass(frozen=True, slots=True)
class TcMatch:
    """The match of an entry; None for a wildcarded field."""

    in_port: int | None
    fields: Mapping[str, Any]
    """The other fields by the names of OpenFlow 1.0; addresses of IP with the length of their prefix."""

    @classmethod
    def of_message(cls, message: bytes) -> TcMatch:
        """Read the match of a FLOW_MOD."""
        match = parser.OFPMatch.parse(message, 8)
        wildcards = match.wildcards
        fields: dict[str, Any] = {}
        for name, bit in _WILDCARDS.items():
            if not wildcards & bit:
                fields[name] = getattr(match, name)
        for name, shift in (("nw_src", of.OFPFW_NW_SRC_SHIFT), ("nw_dst", of.OFPFW_NW_DST_SHIFT)):
            prefix = 32 - min(32, wildcards >> shift & 0x3F)
            if prefix:
                fields[name] = f"{IPv4Address(getattr(match, name))}/{prefix}"
        in_port = fields.pop("in_port", None)
        return cls(in_port, fields)


_WILDCARDS: Final = {
    "in_port": of.OFPFW_IN_PORT,
    "dl_vlan": of.OFPFW_DL_VLAN,
    "dl_src": of.OFPFW_DL_SRC,
    "dl_dst": of.OFPFW_DL_DST,
    "dl_type": of.OFPFW_DL_TYPE,
    "nw_proto": of.OFPFW_NW_PROTO,
    "tp_src": of.OFPFW_TP_SRC,
    "tp_dst": of.OFPFW_TP_DST,
    "dl_vlan_pcp": of.OFPFW_DL_VLAN_PCP,
    "nw_tos": of.OFPFW_NW_TOS,
}


def by_u32(match: TcMatch) -> list[str] | None:
    """Return the match as tc's arguments for u32, from the protocol on; None if it cannot express it."""
    fields = dict(match.fields)
    words = ["protocol", "ip" if fields.pop("dl_type", None) == _IP else "all"]
    keys: list[str] = []
    for name, value in fields.items():
        if name not in _U32:
            return None
        keys += ["match", *_U32[name], *_value(name, value)]
    return [*words, "u32", *(keys or ["match", "u32", "0", "0"])]


_U32: Final = {
    "dl_src": ("ether", "src"),
    "dl_dst": ("ether", "dst"),
    "nw_tos": ("ip", "dsfield"),
    "nw_proto": ("ip", "protocol"),
    "nw_src": ("ip", "src"),
    "nw_dst": ("ip", "dst"),
    "tp_src": ("ip", "sport"),
    "tp_dst": ("ip", "dport"),
}
_MASKS: Final = {"nw_tos": "0xfc", "nw_proto": "0xff", "tp_src": "0xffff", "tp_dst": "0xffff"}


def _value(name: str, value: Any) -> list[str]:
    text = _mac(value) if isinstance(value, bytes) else str(value)
    return [text, _MASKS[name]] if name in _MASKS else [text]


def by_flower(match: TcMatch) -> list[str] | None:
    """Return the match as tc's arguments for flower, from the protocol on; None if it cannot express it."""
    fields = dict(match.fields)
    inner = "ip" if fields.pop("dl_type", None) == _IP else None
    tagged = "dl_vlan" in fields or "dl_vlan_pcp" in fields
    words = ["protocol", "802.1Q" if tagged else inner or "all", "flower"]
    if tagged and inner:
        words += ["vlan_ethtype", inner]
    for name, value in fields.items():
        if name == "nw_proto":
            if value not in _PROTOCOLS:
                return None
            words += ["ip_proto", _PROTOCOLS[value]]
        elif name == "nw_tos":
            words += ["ip_tos", f"{value:#x}/0xfc"]
        else:
            words += [_FLOWER[name], _mac(value) if isinstance(value, bytes) else str(value)]
    return words


_PROTOCOLS: Final = {1: "icmp", 6: "tcp", 17: "udp"}
_FLOWER: Final = {
    "dl_src": "src_mac",
    "dl_dst": "dst_mac",
    "dl_vlan": "vlan_id",
    "dl_vlan_pcp": "vlan_prio",
    "nw_src": "src_ip",
    "nw_dst": "dst_ip",
    "tp_src": "src_port",
    "tp_dst": "dst_port",
}


class TcTable:
    """The filters at the ports, and the answers to OpenFlow messages."""

    def __init__(self, interfaces: Sequence[str]) -> None:
        """Begin with an empty table. Raises `RunError`."""
        self._interfaces = interfaces
        self._queued: set[str] = set()
        """Interfaces with filters that choose queues."""
        for interface in interfaces:
            run(["tc", "qdisc", "add", "dev", interface, "clsact"], what=f"filters of {interface}")
        self.has_flower = self._tries_flower()

    def _tries_flower(self) -> bool:
        add = ["tc", "filter", "add", "dev", self._interfaces[0], "ingress", "protocol", "ip", "flower"]
        tried = subprocess.run([require("tc"), *add[1:]], capture_output=True, check=False)
        self.clear()
        return tried.returncode == 0

    def clear(self) -> None:
        """Delete all entries. Raises `RunError`."""
        for interface in self._interfaces:
            run(["tc", "filter", "del", "dev", interface, "ingress"], what=f"filters of {interface}")
        for interface in self._queued:
            run(["tc", "filter", "del", "dev", interface, "parent", "1:"], what=f"queues of {interface}")
        self._queued.clear()

    def execute(self, segment: bytes) -> list[bytes]:
        """Carry out OpenFlow messages in their order, and return the replies. Raises `RunError`."""
        messages, _ = whole_messages(segment)
        replies: list[bytes] = []
        adds: list[bytes] = []
        for message in messages:
            if message[1] == of.OFPT_FLOW_MOD and _command(message) == of.OFPFC_ADD:
                adds.append(message)
                continue
            replies += self._added(adds)
            adds = []
            replies += self._answered(message)
        return replies + self._added(adds)

    def _answered(self, message: bytes) -> Iterator[bytes]:
        _, kind, _, xid = HEADER.unpack_from(message)
        if kind == of.OFPT_FLOW_MOD:
            if not deletes_all(message):
                yield _error(message, _REFUSED_COMMAND)
                return
            self.clear()
        elif kind == of.OFPT_BARRIER_REQUEST:
            yield _message(of.OFPT_BARRIER_REPLY, xid)
        elif kind == of.OFPT_ECHO_REQUEST:
            yield _message(of.OFPT_ECHO_REPLY, xid, message[HEADER.size :])
        elif kind == of.OFPT_STATS_REQUEST:
            yield from self._listed(xid)

    def _added(self, messages: Sequence[bytes]) -> list[bytes]:
        """Add entries, all in one call of tc. Return an error for each that is refused."""
        refused: dict[int, tuple[int, int]] = {}
        lines: list[tuple[int, str]] = []
        for place, message in enumerate(messages):
            filters = self._filters(message)
            if isinstance(filters, tuple):
                refused[place] = filters
            else:
                lines += [(place, line) for line in filters]
        if lines:
            batch = "".join(f"{line}\n" for _, line in lines)
            done = subprocess.run(
                [require("tc"), "-force", "-batch", "-"],
                input=batch,
                capture_output=True,
                text=True,
                check=False,
            )
            for number in _FAILED_LINE.findall(done.stderr):
                refused.setdefault(lines[int(number) - 1][0], _FULL)
        return [_error(messages[place], why) for place, why in sorted(refused.items())]

    def _filters(self, message: bytes) -> list[str] | tuple[int, int]:
        """Return the lines that make an entry, or type and code of the error."""
        match = TcMatch.of_message(message)
        words = by_flower(match) if self.has_flower else by_u32(match)
        if words is None:
            return _REFUSED_MATCH
        preference = [
            "pref",
            str(_PRIORITIES - int.from_bytes(message[_PRIORITY_AT : _PRIORITY_AT + 2], "big")),
        ]
        action = _action(message)
        if action is None:
            return _REFUSED_ACTION
        out_port, queue = action
        if not 1 <= out_port <= len(self._interfaces):
            return _REFUSED_ACTION
        out = self._interfaces[out_port - 1]
        cookie = message[_COOKIE_AT : _COOKIE_AT + 8].hex()
        mirred = ["action", "mirred", "egress", "redirect", "dev", out, "cookie", cookie]
        lines = []
        for interface in self._matched(match):
            lines.append(["filter", "add", "dev", interface, "ingress", *preference, *words, *mirred])
        if queue is not None:
            self._queued.add(out)
            lines.append(
                [
                    "filter",
                    "add",
                    "dev",
                    out,
                    "parent",
                    "1:",
                    *preference,
                    *words,
                    "classid",
                    queue_class(queue),
                ]
            )
        return [" ".join(line) for line in lines]

    def _matched(self, match: TcMatch) -> Sequence[str]:
        """Return the ports where an entry's frames come in; empty if it names a port that does not exist."""
        if match.in_port is None:
            return self._interfaces
        return self._interfaces[match.in_port - 1 : match.in_port]

    def _listed(self, xid: int) -> Iterator[bytes]:
        """Yield the parts of a reply with all entries that the kernel shows at any port."""
        cookies: dict[str, None] = {}
        for interface in self._interfaces:
            show = ["tc", "-json", "filter", "show", "dev", interface, "ingress"]
            for shown in run_json(show, what=f"filters of {interface}"):
                for action in shown.get("options", {}).get("actions", ()):
                    cookies[action["cookie"]] = None
        listed = list(cookies)
        firsts = range(0, max(1, len(listed)), _MOST_LISTED)
        for first in firsts:
            more = first != firsts[-1]
            body = struct.pack("!HH", of.OFPST_FLOW, int(more))
            body += b"".join(_listing(cookie) for cookie in listed[first : first + _MOST_LISTED])
            yield _message(of.OFPT_STATS_REPLY, xid, body)


def _action(message: bytes) -> tuple[int, int | None] | None:
    """Return port and queue of an entry's only action; None for any other, which mirred cannot do."""
    actions = message[_ACTIONS_AT:]
    if len(actions) == of.OFP_ACTION_OUTPUT_SIZE and actions[:2] == of.OFPAT_OUTPUT.to_bytes(2, "big"):
        return int.from_bytes(actions[4:6], "big"), None
    if len(actions) == of.OFP_ACTION_ENQUEUE_SIZE and actions[:2] == of.OFPAT_ENQUEUE.to_bytes(2, "big"):
        return int.from_bytes(actions[4:6], "big"), int.from_bytes(actions[12:16], "big")
    return None


def _command(message: bytes) -> int:
    return int.from_bytes(message[_COMMAND_AT : _COMMAND_AT + 2], "big")


def _listing(cookie: str) -> bytes:
    entry = bytearray(_ENTRY_BYTES)
    entry[:2] = _ENTRY_BYTES.to_bytes(2, "big")
    entry[_ENTRY_COOKIE_AT : _ENTRY_COOKIE_AT + 8] = bytes.fromhex(cookie)
    return bytes(entry)


def deletes_all(message: bytes) -> bool:
    """Return whether a FLOW_MOD deletes every entry. Beside additions the campaign sends no other kind."""
    out_port = int.from_bytes(message[_OUT_PORT_AT : _OUT_PORT_AT + 2], "big")
    return (
        _command(message) == of.OFPFC_DELETE
        and TcMatch.of_message(message) == TcMatch(None, {})
        and out_port == of.OFPP_NONE
    )


def _message(kind: int, xid: int, body: bytes = b"") -> bytes:
    return framed(of.OFP_VERSION, kind, xid, body)


def _error(message: bytes, why: tuple[int, int]) -> bytes:
    xid = int.from_bytes(message[4:8], "big")
    return _message(of.OFPT_ERROR, xid, struct.pack("!HH", *why) + message[:64])


def _mac(address: bytes) -> str:
    return address.hex(":")
