"""Scenarios: the fixed traffic and table of a switch, in the dimensions of the paper's Table 1."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from loko.document import InputError


class Unknown(Enum):
    """The value of a dimension that is not fixed."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN
"""Not fixed: the model takes the worst case over the values of Table 1."""


class OpenFlow(Enum):
    """The OpenFlow version of a board's session. Each version has its own tables and its own search."""

    V1_0 = "1.0"
    V1_3 = "1.3"


class MatchType(Enum):
    """Match types: those of Table 1, then others. The value names one, `fields` what its entries compare."""

    PORT = "port"
    TP_DST = "tp-dst"
    DL_DST = "dl-dst"
    MASKED_NW_DST = "masked-nw-dst"
    FIVE_TUPLE = "five-tuple"
    ALL = "all"
    FIVE_TUPLE_AND_PORT = "five-tuple-and-port"
    """For paths that visit a switch several times."""
    DL_VLAN = "dl-vlan"
    """For source routing by stacks of VLAN tags."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of OpenFlow 1.0 that are not wildcards, with those that others presuppose."""
        return _FIELDS[self]

    @property
    def oxms(self) -> tuple[str, ...]:
        """Fields of the match in OpenFlow 1.3, in the firmware's order: each after its prerequisites."""
        return _OXMS[self]


_FIVE_TUPLE = ("dl_type", "nw_proto", "nw_src", "nw_dst", "tp_src", "tp_dst")
_FIELDS: Final = {
    MatchType.PORT: ("in_port",),
    MatchType.TP_DST: ("dl_type", "nw_proto", "tp_dst"),
    MatchType.DL_DST: ("dl_dst",),
    MatchType.MASKED_NW_DST: ("dl_type", "nw_dst"),
    MatchType.FIVE_TUPLE: _FIVE_TUPLE,
    MatchType.ALL: (*_FIVE_TUPLE, "in_port", "nw_tos", "dl_src", "dl_dst"),
    MatchType.FIVE_TUPLE_AND_PORT: (*_FIVE_TUPLE, "in_port"),
    MatchType.DL_VLAN: ("dl_vlan",),
}

_FIVE_TUPLE_OXMS = ("eth_type", "ip_proto", "ipv4_src", "ipv4_dst", "transport_port", "transport_port")
_OXMS: Final = {
    MatchType.PORT: ("in_port",),
    MatchType.TP_DST: ("eth_type", "ip_proto", "transport_port"),
    MatchType.DL_DST: ("eth_dst",),
    MatchType.MASKED_NW_DST: ("eth_type", "ipv4_masked"),
    MatchType.FIVE_TUPLE: _FIVE_TUPLE_OXMS,
    MatchType.ALL: (
        *("in_port", "eth_dst", "eth_src", "eth_type", "ip_dscp", "ip_proto", "ipv4_src", "ipv4_dst"),
        *("transport_port", "transport_port"),
    ),
    MatchType.FIVE_TUPLE_AND_PORT: ("in_port", *_FIVE_TUPLE_OXMS),
    MatchType.DL_VLAN: ("vlan_vid",),
}
_OTHER_MATCHES: Final = (MatchType.FIVE_TUPLE_AND_PORT, MatchType.DL_VLAN)
TABLE_1_MATCHES: Final = tuple(match for match in MatchType if match not in _OTHER_MATCHES)


class ActionType(Enum):
    """Actions of Table 1. All but `OUTPUT` are followed by an output (section 3.3.1)."""

    OUTPUT = "output"
    SET_VLAN_ID = "set-vlan-id"
    SET_VLAN_PCP = "set-vlan-pcp"
    STRIP_VLAN = "strip-vlan"
    SET_DL_SRC = "set-dl-src"
    SET_NW_SRC = "set-nw-src"
    SET_NW_TOS = "set-nw-tos"
    SET_TP_SRC = "set-tp-src"


class UsedEntry(Enum):
    """Which entry of the table matches; exactly one does."""

    FIRST = "first"
    LAST = "last"


class PriorityOrder(Enum):
    """How priorities run along the table."""

    INCREASING = "increasing"
    DECREASING = "decreasing"


TABLE_1_ENTRIES: Final = (1, 17, 33, 49, 65, 81, 97, 113, 128)
TABLE_1_FRAME_BYTES: Final = (64, 306, 548, 790, 1032, 1274, 1516)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A scenario in which everything is fixed."""

    entries: int
    match: MatchType
    action: ActionType
    used_entry: UsedEntry
    priorities: PriorityOrder
    frame_bytes: int
    openflow: OpenFlow = OpenFlow.V1_0

    @property
    def skipped_entries(self) -> int:
        """Entries that the search skips: those after the hit, if their priority is lower (section 2.2.2)."""
        first_hit_wins = self.used_entry is UsedEntry.FIRST and self.priorities is PriorityOrder.DECREASING
        return self.entries - 1 if first_hit_wins else 0

    @property
    def examined_after_hit(self) -> int:
        """Entries compared after the hit, since their priority is higher."""
        late = self.used_entry is UsedEntry.FIRST and self.priorities is PriorityOrder.INCREASING
        return self.entries - 1 if late else 0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Promises about a switch's table and traffic; each dimension may be `UNKNOWN` (section 4).

    `packet_sizes_bytes` lists every frame size (with FCS) that may pass.
    """

    entries: int | Unknown = UNKNOWN
    match: MatchType | Unknown = UNKNOWN
    action: ActionType | Unknown = UNKNOWN
    packet_sizes_bytes: tuple[int, ...] | Unknown = UNKNOWN
    priorities: PriorityOrder | Unknown = UNKNOWN
    used_entry: UsedEntry | Unknown = UNKNOWN
    openflow: OpenFlow = OpenFlow.V1_0
    """In 1.3, all entries are in the first table."""
    sizes_at: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    """Of a lab with frames of several sizes: those that can reach each switch, by name
    (`loko.topology.frame_sizes`).

    Empty: all sizes reach all switches. Switches that no frame can reach are left out."""

    def __post_init__(self) -> None:
        if isinstance(self.entries, int) and self.entries < 1:
            raise InputError(f"scenario: entries is {self.entries}; at least one is needed")
        if not isinstance(self.packet_sizes_bytes, Unknown):
            if not self.packet_sizes_bytes:
                raise InputError("scenario: packet_sizes_bytes is empty; name at least one size")
            for size in self.packet_sizes_bytes:
                if not 64 <= size <= 1518:
                    raise InputError(f"scenario: packet size {size} is outside 64 to 1518 bytes (with FCS)")

    @property
    def frame_bytes(self) -> tuple[int, ...]:
        """The frame sizes that may pass, in increasing order if they are known."""
        sizes = self.packet_sizes_bytes
        return TABLE_1_FRAME_BYTES if isinstance(sizes, Unknown) else tuple(sorted(set(sizes)))

    def at(self, switch: str) -> Scenario:
        """Return the scenario of one switch of a lab.

        A switch that no frame can reach is planned for the largest size alone: with several, it might fit no
        mixture of them.
        """
        if not self.sizes_at:
            return self
        sizes = self.sizes_at.get(switch, self.frame_bytes[-1:])
        return replace(self, packet_sizes_bytes=sizes, sizes_at={})

    @property
    def compares_ports(self) -> bool:
        """Whether entries may compare the input port of a frame."""
        return isinstance(self.match, Unknown) or "in_port" in self.match.fields

    def cases(self) -> Iterator[Case]:
        """Yield every case that the scenario leaves open."""
        for entries, match, action, used, priorities, size in itertools.product(
            TABLE_1_ENTRIES if isinstance(self.entries, Unknown) else (self.entries,),
            TABLE_1_MATCHES if isinstance(self.match, Unknown) else (self.match,),
            tuple(ActionType) if isinstance(self.action, Unknown) else (self.action,),
            tuple(UsedEntry) if isinstance(self.used_entry, Unknown) else (self.used_entry,),
            tuple(PriorityOrder) if isinstance(self.priorities, Unknown) else (self.priorities,),
            self.frame_bytes,
        ):
            yield Case(
                entries=entries,
                match=match,
                action=action,
                used_entry=used,
                priorities=priorities,
                frame_bytes=size,
                openflow=self.openflow,
            )


def loko_scenario(
    *,
    entries: int | Unknown,
    packet_sizes_bytes: tuple[int, ...],
    openflow: OpenFlow = OpenFlow.V1_0,
    match: MatchType = MatchType.FIVE_TUPLE,
    action: ActionType = ActionType.OUTPUT,
    sizes_at: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> Scenario:
    """Return the scenario of Loko's own tables (`loko.control.entries`): five-tuples, output.

    Flows' entries are the last ones. But a frame of the first flow meets the entries of all others after its
    own, each of which may cost more than before a hit.
    """
    return Scenario(
        entries=entries,
        match=match,
        action=action,
        packet_sizes_bytes=packet_sizes_bytes,
        priorities=PriorityOrder.INCREASING,
        used_entry=UNKNOWN,
        openflow=openflow,
        sizes_at=sizes_at,
    )


EVALUATION: Final = loko_scenario(entries=17, packet_sizes_bytes=(306,))
"""Section 6: 17 five-tuple entries, output, increasing priorities, last entry used, 306 bytes."""
