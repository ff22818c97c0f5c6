"""Processing time of messages (section 3.2, figures 6 and 7): with a reply, or by the barrier method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.framing import whole_messages
from loko.control.messages import barrier_request, echo_request, features_request
from loko.control.os_ken_messages import PROTOCOL, serialized
from loko.switch_model.scenario import TABLE_1_ENTRIES
from loko_testbed.measure.bench.control_plane import (
    OTHER_VLAN,
    SPACING_NS,
    TRIES,
    XID,
    add,
    adds,
    duration_s,
    entry_match,
    exchange,
    gaps_ns,
    samples_of,
    table_change,
)
from loko_testbed.measure.bench.device import BenchDevice, ControlFrame
from loko_testbed.measure.bench.equations import barrier_was_in_time, control_time_ns, silent_control_time_ns
from loko_testbed.measure.bench.part import (
    AFTER_RENEWAL,
    Combinations,
    Design,
    Key,
    MeasurementPart,
    MeasurementSize,
    NoFrameLength,
    Procedure,
    SampleSet,
    counts,
)
from loko_testbed.simulation.runner import RunError

ACTIONS: Final = (0, 1, 2, 3, 4)
ENTRIES: Final = TABLE_1_ENTRIES
_PACKET_OUT_BYTES: Final = 64
_REPLY_BYTES, _ENTRY_BYTES, _ACTION_BYTES = 12, 88, 8
_SHOWN_ENTRIES: Final = 20
_LONGEST_REPLY_BYTES: Final = 2048
"""A longer reply to a request for flow statistics hangs the Zodiac FX (quirk 28). It lists 20 entries."""
_ACTIVE_AT: Final = 56
"""Offset of the number of entries in table statistics of OpenFlow 1.0."""
INTERRUPTED_NS: Final = 20_000
"""A sample this far above the shortest one met a timer of the IP stack, not only the main loop's phase."""
ECHO_SPACING_NS: Final = 1_252_100
"""Time between the requests of a series.

Requests that come while the CPU reads port counters fit into its ring, and the firmware's 501 ms are no
multiple of it.
"""
ECHO_SERIES_NS: Final = 30_000_000_000
"""Twenty rounds of the three jobs. A request meets a job of 0.1 ms in every sixth round."""
FLOW_STATISTICS: Final = "FlowStatsRequest"
_SOME_ENTRIES: Final = 17
_BARRIER_SEED: Final = 0

FlowModCommand = Literal["delete", "delete-strict", "modify", "modify-strict"]
Hit = Literal["all", "none"]
_COMMANDS: Final[dict[FlowModCommand, int]] = {
    "delete": of.OFPFC_DELETE,
    "delete-strict": of.OFPFC_DELETE_STRICT,
    "modify": of.OFPFC_MODIFY,
    "modify-strict": of.OFPFC_MODIFY_STRICT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMessage:
    """A message whose processing time is measured."""

    what: tuple[str | int, ...]
    """Its name, and what is varied, such as the numbers of entries and actions."""
    message: bytes
    replies: bool = False
    """Whether it has a reply (equation 1). If not, a barrier follows it (equations 2 and 3)."""
    table: tuple[bytes, ...] = ()
    """FLOW_MODs of the entries that are there before."""
    undo: bytes | None = None
    """A message that restores the table."""
    changes: bool = False
    """Whether it changes the table, which must then be loaded again for each sample."""

    @property
    def key(self) -> Key:
        """Key of its part."""
        return PROCEDURE.key(*self.what)

    @property
    def name(self) -> str:
        """Name for people."""
        return self.key.name


def messages() -> Iterator[MeasuredMessage]:
    """Yield all messages but FLOW_MOD (figure 6b), with an empty table."""
    for name, message in _WITH_REPLY.items():
        yield MeasuredMessage(what=(name,), message=message, replies=True)
    yield MeasuredMessage(what=("SetConfig",), message=serialized(parser.OFPSetConfig(PROTOCOL, 0, 128), XID))
    out = parser.OFPPacketOut(
        PROTOCOL,
        buffer_id=0xFFFFFFFF,
        in_port=of.OFPP_NONE,
        actions=[parser.OFPActionOutput(2, 0xFFFF)],
        data=bytes(_PACKET_OUT_BYTES - 4),
    )
    yield MeasuredMessage(what=("PacketOut",), message=serialized(out, XID))
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


_TABLE_STATISTICS: Final = _WITH_REPLY["TableStatsRequest"]
_BARRIER: Final = MeasuredMessage(
    what=("BarrierRequest",), message=_WITH_REPLY["BarrierRequest"], replies=True
)


def flow_statistics() -> Iterator[MeasuredMessage]:
    """Yield FlowStatsRequest for all numbers of entries and actions whose reply does not hang the board."""
    everything = parser.OFPMatch(wildcards=of.OFPFW_ALL)
    request = serialized(parser.OFPFlowStatsRequest(PROTOCOL, 0, everything, 0xFF, of.OFPP_NONE), XID)
    for entries in ENTRIES:
        for actions in ACTIONS:
            if not hangs(entries, actions):
                yield MeasuredMessage(
                    what=(FLOW_STATISTICS, entries, actions),
                    message=request,
                    replies=True,
                    table=tuple(adds(entries, actions)),
                )


def hangs(entries: int, actions: int) -> bool:
    """Return whether a Zodiac FX with such a table hangs when it is asked for its flow statistics."""
    shown = min(entries, _SHOWN_ENTRIES)
    return _REPLY_BYTES + shown * (_ENTRY_BYTES + actions * _ACTION_BYTES) > _LONGEST_REPLY_BYTES


def flow_adds() -> Iterator[MeasuredMessage]:
    """Yield FlowMod Add (figure 7a): the last of this many entries, with this many actions."""
    for entries in ENTRIES:
        for actions in ACTIONS:
            yield MeasuredMessage(
                what=("Add", entries, actions),
                message=add(entries - 1, actions),
                table=tuple(adds(entries - 1, actions)),
                undo=table_change(of.OFPFC_DELETE_STRICT, entry_match(entries - 1)),
            )


def flow_searches() -> Iterator[MeasuredMessage]:
    """Yield FlowMod Delete and Modify (figure 7b), strict or not, which hit all entries or none."""
    for command in _COMMANDS:
        for hit in ("all", "none"):
            for entries in ENTRIES:
                yield flow_search(command, hit, entries)


def flow_search(
    command: FlowModCommand, hit: Hit, entries: int, *, always_fresh: bool = False
) -> MeasuredMessage:
    """Return one such command. A strict one hits the whole table only if all entries are the same.

    `always_fresh`: load the table again for each sample, even if the command hits none of its entries.
    """
    strict = command.endswith("-strict")
    if hit == "none":
        match = parser.OFPMatch(dl_vlan=OTHER_VLAN)
    else:
        match = entry_match(0) if strict else parser.OFPMatch(wildcards=of.OFPFW_ALL)
    return MeasuredMessage(
        what=(command, hit, entries),
        message=table_change(_COMMANDS[command], match, actions=1 if command.startswith("modify") else 0),
        table=tuple([add(0, 1)] * entries if strict and hit == "all" else adds(entries, 1)),
        changes=always_fresh or hit == "all",
    )


@dataclass(frozen=True, slots=True)
class EchoTimes:
    """Processing times of echo requests over time."""

    at_ns: NDArray[np.int64]
    """When each request was sent, relative to the first one."""
    times_ns: NDArray[np.int64]
    missing: int
    """Requests without a reply."""


def with_reply(device: BenchDevice, subject: MeasuredMessage, *, samples: int, seed: int) -> SampleSet:
    """Measure a message with a reply (equation 1). Raises `RunError` if none comes.

    If the reply has several frames, the first one counts.
    """
    device.load(subject.table)
    times: list[int] = []
    disturbed = 0
    for gap in gaps_ns(TRIES * samples, seed):
        if len(times) == samples:
            break
        first, reply = exchange(device, [gap], (subject.message,), subject.name)
        if reply.disturbed:
            disturbed += 1
        else:
            times.append(control_time_ns(reply.at_ns - first.at_ns, first.length_bytes, device.wire))
    return samples_of(device, times, disturbed, subject.name)


@dataclass(frozen=True, slots=True)
class BarrierTime:
    """The processing time of a barrier alone."""

    usual_ns: int
    """p_BR of equation 2: the median."""
    longest_ns: int
    """p_BR of equation 3, without interruptions. With the median, every other late barrier would pass."""


def barrier(device: BenchDevice, *, samples: int, seed: int) -> BarrierTime:
    """Measure p_BR. Raises `RunError`, also if half of the barriers are interrupted."""
    times = with_reply(device, _BARRIER, samples=samples, seed=seed).values
    calm = times[times < times.min() + INTERRUPTED_NS]
    if 2 * len(calm) <= len(times):
        raise RunError(
            f"{device.name}: {len(times) - len(calm)} of {len(times)} barriers took over"
            f" {INTERRUPTED_NS // 1000} us longer than the shortest: use a quieter machine"
        )
    return BarrierTime(int(np.median(times)), int(calm.max()))


def without_reply(
    device: BenchDevice, subject: MeasuredMessage, *, barrier: BarrierTime, samples: int, seed: int
) -> SampleSet:
    """Measure a message without a reply (equations 2 and 3): a barrier follows as closely as it can.

    If the barrier arrived after the message was finished, the sample says nothing about the message: it is
    counted and taken again. Raises `RunError` if that happens too often, or no reply comes.
    """
    times: list[int] = []
    late = disturbed = 0
    shortest_ns = 0
    fresh = False
    for gap in gaps_ns(TRIES * samples, seed):
        if len(times) == samples:
            break
        if not fresh or subject.changes:
            device.load(subject.table)
            fresh = True
        first, second, reply = _with_barrier(device, gap, subject)
        to_reply_ns = reply.at_ns - first.at_ns
        apart_ns = second.at_ns - first.at_ns
        if reply.disturbed:
            disturbed += 1
        elif barrier_was_in_time(apart_ns, to_reply_ns, second.length_bytes, barrier.longest_ns, device.wire):
            times.append(
                silent_control_time_ns(to_reply_ns, first.length_bytes, barrier.usual_ns, device.wire)
            )
        else:
            late += 1
            shortest_ns = min(apart_ns, shortest_ns or apart_ns)
        if subject.undo is not None:
            # The barrier's reply acknowledges the undoing; else that would be charged to the next message.
            device.control([SPACING_NS, 0], [subject.undo, _BARRIER.message])
    if late > TRIES * samples // 2:
        raise RunError(
            f"{device.name}: {late} of {len(times) + late} barriers behind '{subject.name}' came too late"
            f" (equation 3), the earliest {shortest_ns / 1000:.0f} us behind it: use a quieter machine"
        )
    return samples_of(device, times, late + disturbed, subject.name)


def echo_over_time(
    device: BenchDevice, *, spacing_ns: int = ECHO_SPACING_NS, duration_ns: int = ECHO_SERIES_NS
) -> EchoTimes:
    """Send echo requests at fixed distances (figure 6a), with the firmware that the device has."""
    count = duration_ns // spacing_ns
    device.load([])
    seen = device.control([spacing_ns] * count, [echo_request(number) for number in range(count)])
    sent: dict[int, ControlFrame] = {}
    replied: dict[int, int] = {}
    for frame in seen:
        for message in whole_messages(frame.payload)[0]:
            number = int.from_bytes(message[4:8], "big")
            if not frame.from_switch:
                sent.setdefault(number, frame)
            elif message[1] == of.OFPT_ECHO_REPLY:
                replied.setdefault(number, frame.at_ns)
    if len(replied) < count // 2:
        raise RunError(f"{device.name}: only {len(replied)} of {count} echo requests were answered")
    numbers = sorted(set(sent) & set(replied))
    begin_ns = sent[numbers[0]].at_ns
    return EchoTimes(
        np.array([sent[number].at_ns - begin_ns for number in numbers], dtype=np.int64),
        np.array(
            [
                control_time_ns(replied[number] - sent[number].at_ns, sent[number].length_bytes, device.wire)
                for number in numbers
            ],
            dtype=np.int64,
        ),
        count - len(numbers),
    )


def entries_added(device: BenchDevice, subject: MeasuredMessage) -> int:
    """Return how many entries a message adds, by the switch's table statistics. Raises `RunError`."""
    device.load(subject.table)
    seen = device.control([SPACING_NS, SPACING_NS], [subject.message, _TABLE_STATISTICS])
    for sighting in seen:
        if sighting.from_switch and sighting.payload[1] == of.OFPT_STATS_REPLY:
            return int.from_bytes(sighting.payload[_ACTIVE_AT : _ACTIVE_AT + 4], "big") - len(subject.table)
    raise RunError(f"{device.name}: no table statistics behind '{subject.name}'")


def _with_barrier(
    device: BenchDevice, gap_ns: int, subject: MeasuredMessage
) -> tuple[ControlFrame, ControlFrame, ControlFrame]:
    """Send the message and a barrier. Return both frames, and that of the barrier's reply."""
    seen = device.control([gap_ns, 0], [subject.message, _BARRIER.message])
    requests = [sighting for sighting in seen if not sighting.from_switch]
    replies = [
        sighting for sighting in seen if sighting.from_switch and sighting.payload[1] == of.OFPT_BARRIER_REPLY
    ]
    if len(replies) != 1 or len(requests) != 2:
        raise RunError(f"{device.name}: no reply to the barrier behind '{subject.name}'")
    first, second = requests
    return first, second, replies[0]


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    """Yield the parts. For messages without reply, samples that equation 3 excludes count as left out."""
    samples = extent.samples
    changing = min(samples, AFTER_RENEWAL) if extent.design is Design.REDUCED else samples
    echo_s = ECHO_SERIES_NS / 1e9
    yield MeasurementPart(ECHO_UNMODIFIED, _echo_unmodified, echo_s)
    yield MeasurementPart(ECHO_MODIFIED, _echo_modified, echo_s)
    added = flow_search("modify", "none", _SOME_ENTRIES)
    yield MeasurementPart(ENTRIES_ADDED, partial(_entries_added, added), _expected_s(added, 1))
    barrier_of = _BarrierOfDevice(samples)
    for subject in (*messages(), *flow_adds(), *flow_searches()):
        count = changing if subject.changes else samples
        measure = partial(_measured, subject, count, barrier_of)
        yield MeasurementPart(subject.key, measure, _expected_s(subject, count))


def _expected_s(subject: MeasuredMessage, samples: int) -> float:
    loads = samples if subject.changes else 1
    renewals = samples if subject.changes else 0
    return duration_s(samples, loads=loads, entries=len(subject.table), renewals=renewals)


def _echo_unmodified(device: BenchDevice, seed: int) -> Combinations:
    return _echo_modified(device.with_housekeeping() or device, seed)


def _echo_modified(device: BenchDevice, _: int) -> Combinations:
    series = echo_over_time(device)
    return {
        NoFrameLength.VALUES: SampleSet(series.times_ns, series.missing),
        NoFrameLength.CONTEXT: SampleSet(series.at_ns),
    }


def _entries_added(subject: MeasuredMessage, device: BenchDevice, _: int) -> Combinations:
    return {NoFrameLength.VALUES: counts(entries_added(device, subject))}


class _BarrierOfDevice:
    """p_BR of a device, measured when it is first needed. Every part gets the same, even when resumed."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self._known: BarrierTime | None = None

    def of(self, device: BenchDevice, seed: int) -> BarrierTime:
        """Return p_BR, and leave the device as at the start of a part with this seed."""
        if self._known is None:
            device.begin(_BARRIER_SEED)
            self._known = barrier(device, samples=self._samples, seed=_BARRIER_SEED)
            device.begin(seed)
        return self._known


def _measured(
    subject: MeasuredMessage, samples: int, barrier_of: _BarrierOfDevice, device: BenchDevice, seed: int
) -> Combinations:
    if subject.replies:
        replies = with_reply(device, subject, samples=samples, seed=seed)
    else:
        p_br = barrier_of.of(device, seed)
        replies = without_reply(device, subject, barrier=p_br, samples=samples, seed=seed)
    return {NoFrameLength.VALUES: replies}


PROCEDURE: Final = Procedure(
    name="messages",
    text="Processing time of messages (section 3.2, equations 1 to 3; figures 6 and 7).",
    parts=_parts,
)

ECHO_UNMODIFIED: Final = PROCEDURE.key("echo over time, unmodified firmware")
ECHO_MODIFIED: Final = PROCEDURE.key("echo over time, firmware as measured")
"""Without the three jobs (section 3.1), if the bench has such a firmware; else both series are the same."""
ENTRIES_ADDED: Final = PROCEDURE.key("entries added by a Modify that hits none")
"""One sample: a count, not a time."""
