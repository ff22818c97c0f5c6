"""Flow tables of which one entry matches the numbered frames: their matches, actions and priorities."""

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


def entries_of(
    count: int, entry: Callable[[int | None, int], bytes], *, used_is_first: bool, step: int
) -> list[bytes]:
    """Return the FLOW_MODs of a table, in table order, of which the first or the last matches the frames.

    `entry` returns the one with a priority; it gets None for the one that matches, else a number of its own
    (see `match`). Priorities are positive, each `step` above the one before.
    """
    used = 0 if used_is_first else count - 1
    first = FIRST_PRIORITY + (count if step < 0 else 0)
    return [entry(None if place == used else place, first + step * place) for place in range(count)]


def match(fields: Sequence[str], frame: Mapping[str, Any], *, other: int | None, masked: bool = False) -> Any:
    """Return a match on these fields of the frames, or, given a number, one that no frame has.

    Both have the same shape. `masked`: of `nw_dst` it compares the first 24 bits.
    """
    values = {field: frame[field] for field in fields}
    if other is not None and fields:
        field = next((last for last in ("tp_dst", "nw_dst") if last in fields), fields[0])
        values[field] = _OTHERS[field](other)
    return parser.OFPMatch(**values, **({"nw_dst_mask": 24} if masked else {}))


# Values that no frame has, by field and number of the entry.
_OTHERS: Final[Mapping[str, Callable[[int], Any]]] = MappingProxyType(
    {
        "in_port": lambda number: 1000 + number,
        "dl_src": lambda number: f"02:00:00:00:02:{number:02x}",
        "dl_dst": lambda number: f"02:00:00:01:{number // 256:02x}:{number % 256:02x}",
        "dl_vlan": lambda number: 10 + number,
        "dl_vlan_pcp": lambda number: number % 8,
        "dl_type": lambda number: 0x9000 + number,
        "nw_tos": lambda number: 4 * (number % 64),
        "nw_proto": lambda number: 100 + number,
        "nw_src": lambda number: f"10.2.{number}.1",
        "nw_dst": lambda number: f"10.{1 + number // 256}.{number % 256}.2",
        "tp_src": lambda number: 7000 + number,
        "tp_dst": lambda number: 7000 + number,
    }
)
