"""Table III of the study: the flow tables and frames that vary when processing times are measured.

OpenFlow 1.0 has no action that pushes a tag, but setting a VLAN does so on frames without one. So *push-vlan*
is set-vlan-id on untagged frames; *set-vlan-id*, *set-vlan-pcp* and *strip-vlan* are measured with tagged
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, Final, Literal

from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko.switch_model.scenario import MatchType
from loko_testbed.instruments import numbered_frame
from loko_testbed.instruments.numbered_frame import FIELDS, UDP_OUT, VLAN
from loko_testbed.instruments.numbered_table import (
    FIRST_PRIORITY,
    IN_PORT,
    OUT_PORT,
    REWRITING,
    entries_of,
    match,
    output,
)

OTHER_PORT: Final = 3

TimingDimension = Literal[
    "entries", "match", "action", "matching_rule", "priorities", "frame_bytes", "rate_mbps"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingScenario:
    """One value of each dimension. The defaults are those printed in bold."""

    entries: int = 100
    match: str = "five-tuple"
    action: str = "output"
    matching_rule: str = "last"
    priorities: str = "increasing"
    frame_bytes: int = 306
    rate_mbps: float = 100

    @property
    def tagged(self) -> bool:
        """Whether its frames carry a VLAN tag."""
        return is_tagged(self.match, self.action)


VALUES: Final[dict[TimingDimension, tuple[Any, ...]]] = {
    "entries": (1, 100, 200, 300, 400, 500),
    "match": ("port", "dl-dst", "dl-vlan", "dl-vlan-pcp", "masked-nw-dst", "tp-dst", "five-tuple", "all"),
    "action": (
        *("output", "enqueue", "set-dl-src", "set-vlan-id", "set-vlan-pcp", "strip-vlan", "push-vlan"),
        *("set-nw-src", "set-nw-tos", "set-tp-src", "all"),
    ),
    "matching_rule": ("first", "last"),
    "priorities": ("increasing", "decreasing", "same"),
    "frame_bytes": (64, 306, 548, 790, 1032, 1274, 1516),
    "rate_mbps": (5, 100, 500, 750, 900, 950, 1000),
}
"""The values of table III, in its order."""

assert list(VALUES) == [field.name for field in fields(TimingScenario)]
_TAGGED_MATCHES: Final = frozenset({"dl-vlan", "dl-vlan-pcp"})
_TAGGED_ACTIONS: Final = frozenset({"set-vlan-id", "set-vlan-pcp", "strip-vlan"})


def is_tagged(match: str, action: str) -> bool:
    """Return whether frames for such entries carry a VLAN tag."""
    return match in _TAGGED_MATCHES or action in _TAGGED_ACTIONS


def variations(dimension: TimingDimension) -> Iterator[tuple[str, TimingScenario]]:
    """Yield the scenarios that differ in one dimension, each with its value in words."""
    for value in VALUES[dimension]:
        yield str(value), replace(TimingScenario(), **{dimension: value})


def flow_mods(scenario: TimingScenario) -> list[bytes]:
    """Return the FLOW_MODs of a scenario's table. Exactly one entry matches its frames."""
    return entries_of(
        scenario.entries,
        partial(_entry, scenario.match, scenario.action),
        used_is_first=scenario.matching_rule == "first",
        step={"increasing": 1, "decreasing": -1, "same": 0}[scenario.priorities],
    )


@lru_cache(maxsize=8192)
def _entry(match: str, action: str, other: int | None, priority: int) -> bytes:
    return flow_mod(_match(match, other), ACTIONS[action](), priority=priority, xid=priority)


def like_entry(match: str, action: str, priority: int) -> bytes:
    """Return the FLOW_MOD of an entry that matches the frames of the scenarios."""
    return _entry(match, action, None, priority)


def _match(kind: str, other: int | None) -> Any:
    """Return a match on the frames, or one of the same kind on something else."""
    fields = _NOT_OF_TABLE_1.get(kind) or MatchType(kind).fields
    return match(fields, _FRAME, other=other, masked=kind == MatchType.MASKED_NW_DST.value)


_FRAME: Final[Mapping[str, Any]] = {"in_port": IN_PORT, "dl_vlan": VLAN, **FIELDS}
_NOT_OF_TABLE_1: Final[Mapping[str, tuple[str, ...]]] = {
    "dl-vlan-pcp": ("dl_vlan", "dl_vlan_pcp"),
    "all": ("dl_src", "dl_dst", "nw_tos", *MatchType.FIVE_TUPLE.fields),
}
"""The fields of matches that Table 1 of Loko lacks, or that have other fields there."""


def _rewriting(*names: str) -> list[Any]:
    return [*(REWRITING[name]() for name in names), output()]


ACTIONS: Final[dict[str, Callable[[], list[Any]]]] = {
    **{name: partial(_rewriting, name) for name in REWRITING},
    "output": lambda: [output()],
    "enqueue": lambda: [parser.OFPActionEnqueue(OUT_PORT, 0)],
    "push-vlan": partial(_rewriting, "set-vlan-id"),
    "all": partial(_rewriting, "set-dl-src", "set-vlan-id", "set-vlan-pcp", "set-nw-tos"),
}
"""Actions by the names of table III, and set-dl-dst, which the study also uses (section III-A.2c)."""


def enqueue_message(udp_out: int, port: int, queue: int) -> bytes:
    """Return the FLOW_MOD that sends frames for a UDP port into a queue of a port."""
    hit = match(MatchType.FIVE_TUPLE.fields, {**_FRAME, "tp_dst": udp_out}, other=None)
    return flow_mod(hit, [parser.OFPActionEnqueue(port, queue)], priority=FIRST_PRIORITY, xid=udp_out)


def frame(frame_bytes: int, *, tagged: bool = False, udp_out: int = UDP_OUT) -> bytes:
    """Return a frame without FCS, with room for a flow and a sequence number behind the headers."""
    shape = numbered_frame.FrameLayout.TAGGED if tagged else numbered_frame.FrameLayout.UDP
    return numbered_frame.frame(frame_bytes, 0, udp=udp_out, shape=shape)
