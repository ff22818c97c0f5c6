"""Control traffic as a token bucket of its own (equation 8's r_CP and b_CP; docs/model.md, section 8).

A message of the controller takes the only CPU for a time that does not follow from its size (section 3.2.3),
so it is charged in time: a `TimeBucket` bounds the CPU time that all messages ask for in any interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from loko.document import InputError
from loko.switch_model.calculus import TokenBucket, bytes_in
from loko.switch_model.device import Profile, openflow_13
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.quantity import Count
from loko.switch_model.scenario import OpenFlow, Unknown
from loko.units import NS_PER_S, PS_PER_NS

_TCP_HEADERS_BYTES: Final = 14 + 20 + 20
_FCS_BYTES: Final = 4
_LEAST_FRAME_BYTES: Final = 64
_SEGMENT_BYTES: Final = 536
"""Payload of a TCP segment of the board; the controller sends one message in each."""
_FLOW_MOD_BYTES: Final = {OpenFlow.V1_0: 72 + 16 + 8, OpenFlow.V1_3: 48 + 48 + 8 + 16 + 16}
"""The longest message: a flow-mod of a five-tuple that sets a field and outputs."""
_OWN_FLOW_MOD_BYTES: Final = {OpenFlow.V1_0: 72 + 16 + 8, OpenFlow.V1_3: 48 + 104}
"""The longest flow-mod of the switch driver; in OpenFlow 1.3 it deletes somebody else's entry."""
_ERROR_BYTES: Final = 12 + 64
_ACTIONS: Final = 2
"""Actions of an entry of Table 1: one sets a field, the other is an output (section 3.3.1)."""
_ACTION_UNITS: Final = 3
"""Length of these actions in a reply, in units of 8 bytes: set-dl-src takes two."""
_REPORTED_ENTRIES: Final = 20
"""The most entries that a reply with flow statistics lists in OpenFlow 1.0."""
_ENTRIES_A_PART: Final = 15
"""In OpenFlow 1.3 flow statistics list all entries, this many in each message (quirk 102)."""
_KEEPALIVE_PER_S: Final = 2.0
"""The board asks every 500 ms for a sign of life if the controller is silent."""
KEEPALIVE_AFTER_NS: Final = 2_500_000_000
"""The board never asks if less than this passes from one segment of the controller to the next (quirk 7)."""
HEARTBEAT_NS: Final = 2_000_000_000
"""The switch driver counts the entries of a table this long after it last heard of it (docs/driver.md)."""
COMPARISON_S: Final = 60.0
"""How often `loko serve` compares the entries of a table by default (docs/driver.md)."""
COMPARED_ENTRIES: Final = 8
"""The most entries, with one action each, of a board's table that the switch driver compares."""


class MessageType(Enum):
    """Kinds of messages of a controller that manages flows at run time."""

    ECHO = "echo"
    BARRIER = "barrier"
    FEATURES = "features"
    FLOW_ADD = "flow-add"
    FLOW_MODIFY = "flow-modify"
    FLOW_MODIFY_STRICT = "flow-modify-strict"
    FLOW_DELETE = "flow-delete"
    FLOW_DELETE_STRICT = "flow-delete-strict"
    FLOW_STATISTICS = "flow-statistics"
    TABLE_STATISTICS = "table-statistics"
    PORT_STATISTICS = "port-statistics"
    DESCRIPTION = "description"
    HEARTBEAT = "heartbeat"
    """The switch driver's count of a table's entries, so frequent that the board asks for no sign of life."""
    CHANGE = "change"
    """One segment of the switch driver: a barrier with two FLOW_MODs (docs/driver.md)."""
    COMPARISON = "comparison"
    """The switch driver's listing of at most `COMPARED_ENTRIES`, or its question for the links (`PORTS`): the
    one that takes longer. In the turn of a change or a heartbeat."""
    PORTS = "ports"
    """A question for the links of all ports: FEATURES in 1.0, PORT_DESC in 1.3."""
    UNKNOWN = "unknown"
    """Any of the other kinds: the most expensive one is charged."""


_OF_DRIVER: Final = (MessageType.HEARTBEAT, MessageType.CHANGE)
"""Messages of the switch driver; one segment at a time is on its way or unanswered."""


@dataclass(frozen=True, kw_only=True)
class TimeBucket:
    """CPU time asked for in any interval t: at most burst_ns + share t. The token bucket of work."""

    share: float
    burst_ns: float

    def in_bytes(self, rate_bps: float) -> TokenBucket:
        """Return (r_CP, b_CP) of equation 8: what a switch of this rate would carry in that time."""
        return TokenBucket(
            rate_bps=self.share * rate_bps,
            burst_bytes=bytes_in(rate_bps=rate_bps, duration_ns=self.burst_ns),
        )

    def stretched(self, stretch: float) -> TimeBucket:
        """Return the same bucket, counted by a clock that is faster by this factor (`Tolerance.stretch`)."""
        return TimeBucket(share=self.share * stretch, burst_ns=self.burst_ns * stretch)


@dataclass(frozen=True, kw_only=True)
class Interference:
    """Load that takes the CPU away from the flows."""

    messages: TimeBucket
    """CPU time that messages of the controller ask for."""
    board: TimeBucket
    """CPU time that the board itself needs: timers of its IP stack, its questions for a sign of life."""

    @property
    def share(self) -> float:
        """Fraction of the CPU's time that is not left to flows."""
        return self.messages.share + self.board.share


NO_INTERFERENCE: Final = Interference(
    messages=TimeBucket(share=0.0, burst_ns=0.0), board=TimeBucket(share=0.0, burst_ns=0.0)
)
"""No interference, as in the paper's sections 4 and 5: the CPU handles nothing but frames."""


@dataclass(frozen=True, kw_only=True)
class MessageRate:
    """A token bucket of messages: in any interval t at most `burst` + `per_s` t of them begin."""

    per_s: float
    burst: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.per_s) and self.per_s > 0 and self.burst >= 1):
            raise InputError(
                f"control traffic: {self.per_s:g} messages/s in bursts of {self.burst}:"
                " give a rate above 0 and bursts of at least 1"
            )


ControlTraffic = Mapping[MessageType, MessageRate]
"""Messages that the controller may send to one switch while flows are guaranteed: no others."""

NO_MESSAGES: Final[ControlTraffic] = MappingProxyType({})
"""A silent controller. What the board does by itself is reserved for all the same (`interference`)."""
HEARTBEAT: Final[ControlTraffic] = MappingProxyType(
    {MessageType.HEARTBEAT: MessageRate(per_s=NS_PER_S / HEARTBEAT_NS)}
)
"""Control traffic of a switch whose table does not change: a count every 2 s (docs/driver.md)."""
CHANGES_PER_S: Final = 20.0
"""Changes of a table per second that `loko serve` reserves for by default."""
AS_PRINTED: Final = None
"""Passed instead of control traffic: the paper's formulas alone, which reserve nothing, even for the board.

Only for replaying the paper's own figures: the results are no guarantees (docs/evidence.md).
"""

_SYNTAX: Final = re.compile(r"([a-z-]+)=([0-9.eE+-]+)(?:x([0-9]+))?")


def parse_control(texts: Iterable[str]) -> ControlTraffic:
    """Parse control traffic from texts such as `echo=0.5` or `flow-add=10x4` (ten a second, four at once).

    The text `none`, alone, is a silent controller. Raises `InputError`.
    """
    texts = tuple(texts)
    if texts == ("none",):
        return NO_MESSAGES
    known = ", ".join(message.value for message in MessageType)
    rates: dict[MessageType, MessageRate] = {}
    for text in texts:
        parts = _SYNTAX.fullmatch(text)
        names = [message for message in MessageType if parts and message.value == parts[1]]
        if parts is None or not names:
            raise InputError(
                f"control '{text}': is not KIND=PER_SECOND or KIND=PER_SECONDxBURST (kinds: {known}), or none"
                " alone"
            )
        if names[0] in rates:
            raise InputError(f"control '{text}': {parts[1]} is there twice; add the rates up")
        try:
            per_s = float(parts[2])
        except ValueError:
            raise InputError(f"control '{text}': '{parts[2]}' is not a number") from None
        rates[names[0]] = MessageRate(per_s=per_s, burst=int(parts[3] or 1))
    return MappingProxyType(rates)


def describe(traffic: ControlTraffic) -> str:
    """Describe in one line what each switch reserves beside flows; `parse_control` reads its messages."""
    rates = (
        f"{message.value}={rate.per_s:g}" + (f"x{rate.burst}" if rate.burst > 1 else "")
        for message, rate in traffic.items()
    )
    own = "the board's timers" if silences_keepalive(traffic) else "the board's timers and keepalive"
    return ", ".join((*rates, own))


def interference(
    profile: Profile | GenericSwitch,
    traffic: ControlTraffic,
    entries: int | Unknown,
    openflow: OpenFlow = OpenFlow.V1_0,
) -> Interference:
    """Return the CPU time that control traffic and the board itself ask for, with at most `entries` entries.

    Every guarantee rests on this: it includes the board's own part, whatever the controller sends. Unknown
    entries mean a full table. Raises `InputError` if the control traffic alone overloads the CPU.
    """
    if isinstance(profile, GenericSwitch):  # its agent has a processor of its own
        return NO_INTERFERENCE
    count = profile.table.entries.value if isinstance(entries, Unknown) else entries
    costs = {message: message_ns(profile, message, count, openflow) for message in traffic}
    if (
        MessageType.COMPARISON in costs
    ):  # for the turn that it takes, another of the driver's segments is charged
        turn_ns = max(costs.get(kind, 0.0) for kind in _OF_DRIVER)
        costs[MessageType.COMPARISON] = max(0.0, costs[MessageType.COMPARISON] - turn_ns)
    messages = TimeBucket(
        share=math.fsum(rate.per_s * costs[message] for message, rate in traffic.items()) / NS_PER_S,
        burst_ns=math.fsum(rate.burst * costs[message] for message, rate in traffic.items()),
    )
    taken = Interference(messages=messages, board=_board(profile, asks=not silences_keepalive(traffic)))
    if taken.share >= 1:
        raise InputError(
            f"control traffic: asks for {taken.share:.0%} of the CPU of {profile.name}, which leaves nothing"
            " to flows; lower its rates"
        )
    return taken


def driver_traffic(changes_per_s: float) -> ControlTraffic:
    """Return the most that the switch driver sends while it keeps a table that changes this often.

    It sends two segments per change: every other one can be a change, and the next one confirms it. A barrier
    alone or a count of the entries costs less. Without changes, it only counts the entries.
    """
    if not changes_per_s:
        return HEARTBEAT
    return MappingProxyType({MessageType.CHANGE: MessageRate(per_s=2 * changes_per_s)})


_LESS: Final = {
    MessageType.CHANGE: "lower --changes-per-s",
    MessageType.HEARTBEAT: "say that tables change, by --changes-per-s",
    MessageType.COMPARISON: "raise --compare-s",
}
"""How to have the switch driver send less."""


def served_traffic(
    changes_per_s: float, others: ControlTraffic, *, compare_s: float = COMPARISON_S
) -> ControlTraffic:
    """Return the messages of `loko serve`, with the further ones stated. Raises `InputError` for less.

    Tables are compared every `compare_s` seconds, and links asked for halfway between (0: never).
    """
    own = dict(driver_traffic(changes_per_s))
    if compare_s:
        own[MessageType.COMPARISON] = MessageRate(per_s=2 / compare_s)
    for kind in own.keys() & others.keys():
        if others[kind].per_s < own[kind].per_s:
            raise InputError(
                f"--control {kind.value}={others[kind].per_s:g}: the driver sends up to"
                f" {own[kind].per_s:g}/s; reserve at least that, leave it out, or {_LESS[kind]}"
            )
    return {**own, **others}


def silences_keepalive(traffic: ControlTraffic) -> bool:
    """Return whether the switch driver sends so often that no board ever asks for a sign of life.

    Heartbeats and changes are the driver's. It is silent until its last segment is answered and for
    `HEARTBEAT_NS` after that (docs/driver.md), unless it is paced to fewer segments.
    """
    return any(traffic[kind].per_s * HEARTBEAT_NS >= NS_PER_S for kind in _OF_DRIVER if kind in traffic)


def ring_units(
    profile: Profile,
    traffic: ControlTraffic,
    entries: int | Unknown,
    openflow: OpenFlow = OpenFlow.V1_0,
    *,
    delay_ns: float,
) -> int:
    """Return the units of the receive buffer that control frames take, if none waits longer than `delay_ns`.

    They take any only if they come as frames (`control: network`): each request, an acknowledgement of each
    segment of its reply, and two small frames of the board's own conversations.
    """
    count = profile.table.entries.value if isinstance(entries, Unknown) else entries
    units = 2
    for message, rate in traffic.items():
        waiting = rate.burst + math.ceil(rate.per_s * delay_ns / NS_PER_S)
        each = max(
            -(-_frame_bytes(_request_bytes(kind, openflow)) // profile.buffer.unit_bytes.value)
            + len(_reply_segments(profile, kind, count, openflow))
            for kind in _forms(message)
        )
        units += waiting * each
    return units


def message_ns(
    profile: Profile, message: MessageType, entries: int, openflow: OpenFlow = OpenFlow.V1_0
) -> float:
    """Return the longest time for which a message keeps frames waiting, with `entries` in the table (3.2.3).

    It is the CPU time of the segment, of the message and of the acknowledgements, and the time of request and
    replies on the inner link. Raises `InputError` if the profile has no costs for the OpenFlow version.
    """
    return max(_form_ns(profile, form, entries, openflow) for form in _forms(message))


def _forms(message: MessageType) -> tuple[MessageType, ...]:
    """Return the messages that one may be."""
    if message is MessageType.UNKNOWN:
        return tuple(kind for kind in MessageType if kind is not MessageType.UNKNOWN)
    return (message, MessageType.PORTS) if message is MessageType.COMPARISON else (message,)


def _form_ns(profile: Profile, message: MessageType, entries: int, openflow: OpenFlow) -> float:
    costs = profile.cpu.control
    replies = _reply_segments(profile, message, entries, openflow)
    work_ps = _WORK_PS[openflow](profile, message, entries)
    cpu_ps = costs.interrupt_ps.value + costs.segment_ps.value + work_ps
    # Each segment of a reply is acknowledged; a request without a reply is acknowledged by the board.
    cpu_ps += len(replies) * (costs.interrupt_ps.value + costs.acknowledgement_ps.value)
    if not replies:
        cpu_ps += costs.acknowledge_ps.value
        replies = [0]
    link_ns = _link_ns(profile, _request_bytes(message, openflow))
    return cpu_ps / PS_PER_NS + link_ns + math.fsum(_link_ns(profile, payload) for payload in replies)


def replies_ns(
    profile: Profile,
    traffic: ControlTraffic,
    entries: int | Unknown,
    openflow: OpenFlow = OpenFlow.V1_0,
) -> float:
    """Return how long replies may keep a frame waiting behind the CPU: their time on the inner link.

    It counts the replies to a burst of each kind, and one question of the board for a sign of life.
    """
    count = profile.table.entries.value if isinstance(entries, Unknown) else entries
    longest = _link_ns(profile, 0)
    for message, rate in traffic.items():
        longest += rate.burst * max(
            math.fsum(
                _link_ns(profile, payload) for payload in _reply_segments(profile, kind, count, openflow)
            )
            for kind in _forms(message)
        )
    return longest


def _board(profile: Profile, *, asks: bool) -> TimeBucket:
    """Return the CPU time for timers of the IP stack (section 3.1) and, if it `asks`, for keepalives."""
    timers, costs = profile.cpu.timers, profile.cpu.control
    timer_ns = timers.cost_ps.value / PS_PER_NS
    if not asks:
        return TimeBucket(share=timer_ns / timers.period_ns.value, burst_ns=timer_ns)
    keepalive_ns = (
        costs.send_ps.value + costs.interrupt_ps.value + costs.segment_ps.value + costs.acknowledge_ps.value
    ) / PS_PER_NS + 2 * _link_ns(profile, 0)
    return TimeBucket(
        share=timer_ns / timers.period_ns.value + keepalive_ns * _KEEPALIVE_PER_S / NS_PER_S,
        burst_ns=timer_ns + keepalive_ns,
    )


def _link_ns(profile: Profile, payload_bytes: int) -> float:
    """Return a TCP segment's time on the link between integrated switch and CPU (equation 7's terms)."""
    ports = profile.ports
    frame_bytes = _frame_bytes(payload_bytes)
    return profile.wire_ns(
        ports.preamble_bytes.value
        + frame_bytes
        + ports.tail_tag_bytes.value
        + ports.interframe_gap_bytes.value
    )


def _frame_bytes(payload_bytes: int) -> int:
    """Return the length of a TCP segment as a frame with FCS."""
    return max(_LEAST_FRAME_BYTES, _TCP_HEADERS_BYTES + payload_bytes + _FCS_BYTES)


def _request_bytes(message: MessageType, openflow: OpenFlow) -> int:
    """Return the payload of the segment that carries the request."""
    if message is MessageType.CHANGE:
        return 8 + 2 * _OWN_FLOW_MOD_BYTES[openflow]
    return _FLOW_MOD_BYTES[openflow]


def _reply_segments(profile: Profile, message: MessageType, entries: int, openflow: OpenFlow) -> list[int]:
    """Return the payload of each segment that carries the reply; an empty list if there is no reply."""
    return [
        min(_SEGMENT_BYTES, size - begin)
        for size in _REPLIES_BYTES[openflow](profile, message, entries)
        for begin in range(0, size, _SEGMENT_BYTES)
    ]


def _replies_10_bytes(profile: Profile, message: MessageType, entries: int) -> list[int]:
    """Return the length of the reply (OpenFlow 1.0, section 5); for an added entry, of the error.

    The board answers a flow-mod with an error if the table is full.
    """
    ports = profile.ports.count.value
    size = {
        MessageType.ECHO: 8,
        MessageType.BARRIER: 8,
        MessageType.FEATURES: 32 + 48 * ports,
        MessageType.PORTS: 32 + 48 * ports,
        MessageType.FLOW_ADD: _ERROR_BYTES,
        MessageType.FLOW_MODIFY: _ERROR_BYTES,
        MessageType.FLOW_MODIFY_STRICT: _ERROR_BYTES,
        MessageType.FLOW_DELETE: 0,
        MessageType.FLOW_DELETE_STRICT: 0,
        MessageType.FLOW_STATISTICS: 12 + (88 + 8 * _ACTION_UNITS) * min(entries, _REPORTED_ENTRIES),
        MessageType.COMPARISON: 12 + (88 + 8) * min(entries, COMPARED_ENTRIES),
        MessageType.TABLE_STATISTICS: 12 + 64,
        MessageType.HEARTBEAT: 12 + 64,
        MessageType.PORT_STATISTICS: 12 + 104 * ports,
        MessageType.DESCRIPTION: 12 + 1056,
        MessageType.CHANGE: 8 + 2 * _ERROR_BYTES,
    }[message]
    return [size]


def _replies_13_bytes(profile: Profile, message: MessageType, entries: int) -> list[int]:
    """Return the same for OpenFlow 1.3 (1.3.4, section 7.3); for flow statistics, the length of each part."""
    if message is MessageType.FLOW_STATISTICS:
        parts = [_ENTRIES_A_PART] * (entries // _ENTRIES_A_PART) + [entries % _ENTRIES_A_PART]
        return [16 + _FLOW_MOD_BYTES[OpenFlow.V1_3] * part for part in parts]
    size = {
        MessageType.ECHO: 8,
        MessageType.BARRIER: 8,
        MessageType.FEATURES: 32,
        MessageType.FLOW_ADD: _ERROR_BYTES,
        MessageType.FLOW_MODIFY: _ERROR_BYTES,
        MessageType.FLOW_MODIFY_STRICT: _ERROR_BYTES,
        MessageType.FLOW_DELETE: 0,
        MessageType.FLOW_DELETE_STRICT: 0,
        MessageType.TABLE_STATISTICS: 16 + 10 * 24,
        MessageType.HEARTBEAT: 16 + 24,
        MessageType.COMPARISON: 16 + _FLOW_MOD_BYTES[OpenFlow.V1_3] * min(entries, COMPARED_ENTRIES),
        MessageType.PORT_STATISTICS: 16 + 112 * profile.ports.count.value,
        MessageType.PORTS: 16 + 64 * profile.ports.count.value,
        MessageType.DESCRIPTION: 16 + 1056,
        MessageType.CHANGE: 8 + 2 * _ERROR_BYTES,
    }[message]
    return [size]


def _work_10_ps(profile: Profile, message: MessageType, entries: int) -> int:
    """Return the cost of the message without its segment (section 3.2.3; `[cpu.control]` of the profile)."""
    costs = profile.cpu.control
    # A Modify appends what it has found, and an Add or Modify may find the table full.
    adding = costs.flow_add_ps.value + _ACTIONS * costs.flow_action_ps.value + costs.flow_refused_ps.value
    entry = costs.flow_statistics_entry_ps.value + _ACTION_UNITS * costs.flow_statistics_action_ps.value
    modify, delete = costs.flow_modify_ps.value, costs.flow_delete_ps.value
    # No two of Loko's entries have the same match and priority: strict commands find one at most.
    deleting_strictly = (
        delete + costs.delete_strict_hit_ps.value + max(entries - 1, 0) * costs.delete_strict_miss_ps.value
    )
    return {
        MessageType.ECHO: costs.echo_ps.value,
        MessageType.BARRIER: costs.barrier_ps.value,
        MessageType.FEATURES: costs.features_ps.value,
        MessageType.PORTS: costs.features_ps.value,
        MessageType.FLOW_ADD: adding,
        MessageType.FLOW_MODIFY: modify
        + adding
        + entries * _dearest(costs.modify_hit_ps, costs.modify_miss_ps),
        MessageType.FLOW_MODIFY_STRICT: modify
        + adding
        + costs.modify_strict_hit_ps.value
        + max(entries - 1, 0) * costs.modify_strict_miss_ps.value,
        MessageType.FLOW_DELETE: delete + entries * _dearest(costs.delete_hit_ps, costs.delete_miss_ps),
        MessageType.FLOW_DELETE_STRICT: deleting_strictly,
        MessageType.CHANGE: costs.barrier_ps.value + 2 * max(adding, deleting_strictly),
        MessageType.FLOW_STATISTICS: costs.flow_statistics_ps.value + min(entries, _REPORTED_ENTRIES) * entry,
        MessageType.COMPARISON: costs.flow_statistics_ps.value
        + min(entries, COMPARED_ENTRIES)
        * (costs.flow_statistics_entry_ps.value + costs.flow_statistics_action_ps.value),
        MessageType.TABLE_STATISTICS: costs.table_statistics_ps.value,
        MessageType.HEARTBEAT: costs.table_statistics_ps.value,
        MessageType.PORT_STATISTICS: costs.port_statistics_ps.value
        + profile.ports.count.value * costs.port_statistics_port_ps.value,
        MessageType.DESCRIPTION: costs.description_ps.value,
    }[message]


def _work_13_ps(profile: Profile, message: MessageType, entries: int) -> int:
    """Return the same for OpenFlow 1.3 (`[cpu.openflow13]`)."""
    common, costs = profile.cpu.control, openflow_13(profile)
    # All entries are searched for what a new one may replace. A MODIFY is passed over, or costs as much.
    adding = costs.flow_add_ps.value + entries * costs.replacement_scan_ps.value + costs.refused_ps.value
    delete = costs.flow_delete_ps.value
    deleting_strictly = delete + entries * costs.delete_strict_ps.value + costs.delete_hit_ps.value
    ports = profile.ports.count.value * costs.port_statistics_port_ps.value
    parts = entries // _ENTRIES_A_PART + 1
    return {
        MessageType.ECHO: common.echo_ps.value,
        MessageType.BARRIER: common.barrier_ps.value,
        MessageType.FEATURES: costs.features_ps.value,
        MessageType.FLOW_ADD: adding,
        MessageType.FLOW_MODIFY: adding,
        MessageType.FLOW_MODIFY_STRICT: adding,
        MessageType.FLOW_DELETE: delete + entries * (costs.delete_miss_ps.value + costs.delete_hit_ps.value),
        MessageType.FLOW_DELETE_STRICT: deleting_strictly,
        MessageType.CHANGE: common.barrier_ps.value + 2 * max(adding, deleting_strictly),
        MessageType.FLOW_STATISTICS: parts
        * (costs.multipart_ps.value + _ENTRIES_A_PART * costs.flow_statistics_entry_ps.value),
        MessageType.TABLE_STATISTICS: costs.table_statistics_ps.value
        + entries * costs.table_statistics_entry_ps.value,
        MessageType.HEARTBEAT: costs.multipart_ps.value + entries * costs.aggregate_entry_ps.value,
        MessageType.COMPARISON: costs.multipart_ps.value
        + min(entries, COMPARED_ENTRIES) * costs.flow_statistics_entry_ps.value,
        MessageType.PORT_STATISTICS: costs.port_statistics_ps.value + ports,
        MessageType.PORTS: costs.port_description_ps.value,
        MessageType.DESCRIPTION: costs.description_ps.value,
    }[message]


_REPLIES_BYTES: Final = {OpenFlow.V1_0: _replies_10_bytes, OpenFlow.V1_3: _replies_13_bytes}
_WORK_PS: Final = {OpenFlow.V1_0: _work_10_ps, OpenFlow.V1_3: _work_13_ps}


def _dearest(*costs: Count) -> int:
    """Return the larger of the costs: all visited entries are hits, or all are misses."""
    return max(cost.value for cost in costs)
