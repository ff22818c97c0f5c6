"""Flow tables of which one entry matches the numbered frames: their actions and priorities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from os_ken.ofproto import ofproto_v1_0_parser as parser

IN_PORT: Final = 1
OUT_PORT: Final = 2
FIRST_PRIORITY: Final = 100

REWRITING: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {
        "set-vlan-id": lambda: parser.OFPActionVlanVid(100),
        "set-vlan-pcp": lambda: parser.OFPActionVlanPcp(3),
        "strip-vlan": parser.OFPActionStripVlan,
        "set-dl-src": lambda: parser.OFPActionSetDlSrc("02:00:00:00:00:0a"),
        "set-dl-dst": lambda: parser.OFPActionSetDlDst("02:00:00:00:00:0b"),
        "set-nw-src": lambda: parser.OFPActionSetNwSrc("10.0.0.10"),
        "set-nw-tos": lambda: parser.OFPActionSetNwTos(0x20),
        "set-tp-src": lambda: parser.OFPActionSetTpSrc(5010),
    }
)
"""Actions of OpenFlow 1.0 that change a frame, each to a value that no numbered frame has."""


def output() -> Any:
    """Return the output action that follows them."""
    return parser.OFPActionOutput(OUT_PORT, 0xFFFF)


def priorities(entries: int, step: int) -> Sequence[int]:
    """Return the priorities of a table's entries: all positive, each `step` above the one before."""
    first = FIRST_PRIORITY + (entries if step < 0 else 0)
    return [first + step * place for place in range(entries)]
