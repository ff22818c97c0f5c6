"""Numbered entries with one combination of match and action, and the frame that each of them matches.

So a table can be filled until it is full, and a frame shows for each entry whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import dpkt

from loko.control.messages import barrier_request
from loko_testbed.instruments.numbered_frame import FrameLayout, frame
from loko_testbed.instruments.numbered_table import IN_PORT
from loko_testbed.measure.predictability.table_iii import ACTIONS, OTHER_PORT, VALUES, is_tagged, like_entry

FRAME_BYTES: Final = 128
_PRIORITY: Final = 100
_XID_AT, _IN_PORT_AT, _DL_DST_AT, _VLAN_AT, _PCP_AT = 4, 12, 22, 26, 28
_NW_DST_AT, _TP_DST_AT, _COOKIE_AT = 40, 46, 48
"""Offsets in a FLOW_MOD of OpenFlow 1.0."""
_FIRST_UDP: Final = 1024
_FIRST_VLAN: Final = 2
"""VLAN 1 is the default of many switches."""
_VLANS: Final = 4093
_PRIORITIES_OF_A_VLAN: Final = 8
_FIRST_NETWORK: Final = 10 << 24
_IP_OF_A_NETWORK: Final = 2
_TAG_AT: Final = 14
"""Offset of the tag's two bytes behind the type, in a frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchAction:
    """Match and action of entries. The defaults are those of table III."""

    match: str = "five-tuple"
    action: str = "output"

    @property
    def text(self) -> str:
        """The combination in the study's notation."""
        return f"{self.match}/{self.action}"

    @property
    def tagged(self) -> bool:
        """Whether frames for it carry a VLAN tag."""
        return is_tagged(self.match, self.action)


MATCHES: Final[tuple[str, ...]] = VALUES["match"]
FIGURE_ACTIONS: Final[tuple[str, ...]] = VALUES["action"]
"""The actions of table III. The study also uses set-dl-dst, which is not in the table."""
assert set(FIGURE_ACTIONS) < set(ACTIONS)


def max_entries(combination: MatchAction, ports: int) -> int:
    """Return how many such entries can differ in what they match."""
    return {
        "port": ports - OTHER_PORT + 1,
        "dl-vlan": _VLANS,
        "dl-vlan-pcp": _VLANS * _PRIORITIES_OF_A_VLAN,
        "dl-dst": 1 << 24,
        "masked-nw-dst": 1 << 16,
    }.get(combination.match, (1 << 16) - _FIRST_UDP)


def add_message(combination: MatchAction, number: int, *, barrier: bool = False) -> bytes:
    """Return the FLOW_MOD that adds an entry, with a barrier behind it if `barrier`.

    The number is its cookie and its transaction id.
    """
    message = bytearray(_template(combination.match, combination.action))
    message[_XID_AT : _XID_AT + 4] = number.to_bytes(4, "big")
    message[_COOKIE_AT : _COOKIE_AT + 8] = number.to_bytes(8, "big")
    at, value = _MATCHED[combination.match](number)
    message[at : at + len(value)] = value
    return bytes(message) + (_barrier() if barrier else b"")


def probe(combination: MatchAction, number: int) -> tuple[int, bytes]:
    """Return the port and the frame, without FCS, that only the entry with this number matches."""
    match = combination.match
    udp = {"udp": _FIRST_UDP + number} if match in _BY_UDP else {}
    shape = FrameLayout.TAGGED if combination.tagged else FrameLayout.UDP
    data = bytearray(frame(FRAME_BYTES, 0, shape=shape, **udp))
    if match == "port":
        return OTHER_PORT + number, bytes(data)
    if match == "dl-dst":
        data[2:6] = number.to_bytes(4, "big")
    elif match in ("dl-vlan", "dl-vlan-pcp"):
        (_, vlan), (_, pcp) = _vlan(match, number)
        data[_TAG_AT : _TAG_AT + 2] = (pcp[0] << 13 | int.from_bytes(vlan, "big")).to_bytes(2, "big")
    elif match == "masked-nw-dst":
        ethernet = dpkt.ethernet.Ethernet(bytes(data))
        ethernet.data.dst = _network(number, _IP_OF_A_NETWORK)
        ethernet.data.sum = ethernet.data.data.sum = 0
        return IN_PORT, bytes(ethernet)
    return IN_PORT, bytes(data)


_BY_UDP: Final = frozenset({"tp-dst", "five-tuple", "all"})


def _vlan(match: str, number: int) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
    priorities = _PRIORITIES_OF_A_VLAN if match == "dl-vlan-pcp" else 1
    vlan, pcp = divmod(number, priorities)
    return (_VLAN_AT, (_FIRST_VLAN + vlan).to_bytes(2, "big")), (_PCP_AT, bytes([pcp]))


def _network(number: int, host: int) -> bytes:
    return (_FIRST_NETWORK + (number << 8) + host).to_bytes(4, "big")


def _udp(number: int) -> tuple[int, bytes]:
    return _TP_DST_AT, (_FIRST_UDP + number).to_bytes(2, "big")


def _vlan_and_priority(number: int) -> tuple[int, bytes]:
    (at, vlan), (_, pcp) = _vlan("dl-vlan-pcp", number)
    return at, vlan + pcp


_MATCHED: Final[dict[str, Callable[[int], tuple[int, bytes]]]] = {
    "port": lambda number: (_IN_PORT_AT, (OTHER_PORT + number).to_bytes(2, "big")),
    "dl-dst": lambda number: (_DL_DST_AT, number.to_bytes(4, "big")),
    "dl-vlan": lambda number: _vlan("dl-vlan", number)[0],
    "dl-vlan-pcp": _vlan_and_priority,
    "masked-nw-dst": lambda number: (_NW_DST_AT, _network(number, 0)),
    "tp-dst": _udp,
    "five-tuple": _udp,
    "all": _udp,
}
"""Returns, for each match, the offset in a FLOW_MOD and the bytes that hold a number."""


@lru_cache
def _template(match: str, action: str) -> bytes:
    return like_entry(match, action, _PRIORITY)


@lru_cache
def _barrier() -> bytes:
    return barrier_request(0xFFFFFFFF)
