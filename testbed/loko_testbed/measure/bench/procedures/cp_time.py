"""Costs of messages (section 3.2): control-plane requests whose replies tell the costs apart.

A question prepares the table and sends segments back to back; the last one brings a reply. The time until
then is a sum of costs that the question names (`terms`). Least squares over all questions give each cost.

A TCP acknowledgement has no reply, but a request that comes while the CPU works on one waits for it. So the
bench sends an echo request, acknowledges the reply a known time later, and sends a second request right
behind that. This is not in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import ceil
from typing import Any, Final

import numpy as np
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.messages import barrier_request, echo_request, features_request
from loko.control.os_ken_messages import PROTOCOL, serialized
from loko_testbed.measure.bench.control_plane import (
    OTHER_VLAN,
    SPACING_NS,
    TABLE_ENTRIES,
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
from loko_testbed.measure.bench.device import ACKNOWLEDGEMENT_NS, BenchDevice, ControlFrame
from loko_testbed.measure.bench.equations import LinkTiming, control_time_ns
from loko_testbed.measure.bench.part import (
    AFTER_RENEWAL,
    NOTHING,
    ROUNDS,
    Combinations,
    Design,
    MeasurementPart,
    MeasurementSize,
    NoFrameLength,
    Procedure,
    SampleSet,
)
from loko_testbed.measure.bench.procedures import messages
from loko_testbed.simulation.runner import RunError

_BARRIER: Final = barrier_request(XID)
_EVERYTHING: Final = 0x003820FF
"""Wildcards that the Zodiac FX recognises without comparing fields one by one."""
_SOME_ENTRIES: Final = (16, 64)
_SHORT_REPLIES: Final = ((0, 0), (1, 0), (1, 4), (3, 0), (3, 4), (4, 1), (5, 0), (5, 1))
_LONG_REPLIES: Final = ((8, 2), (8, 4), (20, 0), (20, 1))
"""Entries and actions in replies of flow statistics. 20 with two actions hang the board (quirk 28)."""
_BEHIND_NS: Final = 15_000
"""Delay of the second request after the acknowledgement, on which the CPU then still works."""
_JITTER_NS: Final = 100_000
_REPLY_BYTES: Final = 66
"""Length of an echo reply's frame: the headers of Ethernet, IP and TCP, 8 bytes, and FCS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlQuery:
    """Segments to send to a prepared table, and the costs in the time from the first one to the reply."""

    name: str
    segments: tuple[bytes, ...]
    terms: dict[str, float]
    table: tuple[bytes, ...] = ()
    repeatable: bool = field(default=True)
    """Whether the table is the same afterwards as before."""


def questions() -> Iterator[ControlQuery]:
    """Yield all questions. Their costs have the names of a profile's ``[cpu.control]``."""
    yield from _with_reply()
    yield from _statistics()
    yield from _silent()
    yield from _flow_mods()


def _question(
    name: str, segments: Sequence[bytes], terms: dict[str, float], table: Sequence[bytes] = (), **more: Any
) -> ControlQuery:
    """Build a question. Each segment costs one `segment`, and every second silent one an acknowledgement."""
    costs = {"segment_ps": float(len(segments)), **terms}
    if acknowledgements := (len(segments) - 1) // 2:
        costs["acknowledge_ps"] = float(acknowledgements)
    return ControlQuery(
        name=name,
        segments=tuple(segments),
        table=tuple(table),
        terms={f"cpu.control.{cost}": times for cost, times in costs.items() if times},
        **more,
    )


def _with_reply() -> Iterator[ControlQuery]:
    yield _question("echo", [echo_request(XID)], {"echo_ps": 1})
    yield _question("features", [features_request(XID)], {"features_ps": 1})
    config = serialized(parser.OFPGetConfigRequest(PROTOCOL), XID)
    yield _question("configuration", [config], {"get_config_ps": 1})
    yield _question("barrier", [_BARRIER], {"barrier_ps": 1})
    vendor = bytes([of.OFP_VERSION, of.OFPT_VENDOR, 0, 12, 0, 0, 0, XID, 0, 0, 0x23, 0x20])
    yield _question("vendor", [vendor], {"vendor_ps": 1})


def _statistics() -> Iterator[ControlQuery]:
    description = serialized(parser.OFPDescStatsRequest(PROTOCOL, 0), XID)
    yield _question("description", [description], {"description_ps": 1})
    table = serialized(parser.OFPTableStatsRequest(PROTOCOL, 0), XID)
    yield _question("table statistics", [table], {"table_statistics_ps": 1})
    for port, ports in ((1, 1), (of.OFPP_NONE, 3)):
        request = serialized(parser.OFPPortStatsRequest(PROTOCOL, 0, port), XID)
        terms = {"port_statistics_ps": 1.0, "port_statistics_port_ps": float(ports)}
        yield _question(f"statistics of {ports} ports", [request], terms)
    unknown = serialized(parser.OFPPortStatsRequest(PROTOCOL, 0, 99), XID)
    yield _question("statistics of an unknown port", [unknown], {"send_ps": 1})
    everything = parser.OFPMatch(wildcards=of.OFPFW_ALL)
    flows = serialized(parser.OFPFlowStatsRequest(PROTOCOL, 0, everything, 0xFF, of.OFPP_NONE), XID)
    # If a reply has several segments, the first one counts. It leaves when all of the reply is written.
    for entries, actions in (*_SHORT_REPLIES, *_LONG_REPLIES):
        terms = {
            "flow_statistics_ps": 1.0,
            "flow_statistics_entry_ps": float(entries),
            "flow_statistics_action_ps": float(entries * actions),
        }
        name = f"statistics of {entries} flows with {actions} actions"
        yield _question(name, [flows], terms, adds(entries, actions))


def _silent() -> Iterator[ControlQuery]:
    ignored = bytes([of.OFP_VERSION, of.OFPT_QUEUE_GET_CONFIG_REQUEST, 0, 12, 0, 0, 0, XID, 0, 1, 0, 0])
    for segments in (1, 2, 4):
        yield _question(f"{segments} ignored", [ignored] * segments + [_BARRIER], {"barrier_ps": 1})
    setting = serialized(parser.OFPSetConfig(PROTOCOL, 0, 128), XID)
    for times in (1, 12):
        yield _question(
            f"{times} settings", [setting * times, _BARRIER], {"barrier_ps": 1, "set_config_ps": times}
        )
    for length in (64, 128, 306, 450):
        frame = bytes(length - 4)
        out = parser.OFPPacketOut(
            PROTOCOL,
            buffer_id=0xFFFFFFFF,
            in_port=of.OFPP_NONE,
            actions=[parser.OFPActionOutput(2, 0xFFFF)],
            data=frame,
        )
        terms = {
            "barrier_ps": 1.0,
            "packet_out_ps": 1.0,
            "packet_out_per_byte_ps": float(length - 64),
        }
        yield _question(f"packet-out of {length} bytes", [serialized(out, XID), _BARRIER], terms)


def _flow_mods() -> Iterator[ControlQuery]:
    for actions in range(5):
        yield _question(
            f"add with {actions} actions",
            [add(0, actions), _BARRIER],
            {"barrier_ps": 1, "flow_add_ps": 1, "flow_action_ps": actions},
            repeatable=False,
        )
    yield _question(
        "add to a full table",
        [add(TABLE_ENTRIES, 1)],
        {"flow_add_ps": 1, "flow_action_ps": 1, "flow_refused_ps": 1},
        adds(TABLE_ENTRIES, 1),
    )
    for entries in (*_SOME_ENTRIES, TABLE_ENTRIES):
        table = adds(entries, 1)
        for command, name in (
            (of.OFPFC_DELETE, "delete"),
            (of.OFPFC_MODIFY, "modify"),
            (of.OFPFC_DELETE_STRICT, "delete_strict"),
            (of.OFPFC_MODIFY_STRICT, "modify_strict"),
        ):
            fixed = f"flow_{name.removesuffix('_strict')}_ps"
            yield _question(
                f"{name} none of {entries}",
                [table_change(command, parser.OFPMatch(dl_vlan=OTHER_VLAN)), _BARRIER],
                {"barrier_ps": 1, fixed: 1, f"{name}_miss_ps": entries},
                table,
            )
        yield from _hits(entries, table)
        yield from _strict_hits(entries)


def _strict_hits(entries: int) -> Iterator[ControlQuery]:
    """Yield strict commands on a table whose entries are all the same; the board keeps each of them.

    A strict DELETE examines, and removes, only half of them, since it skips what moves into a gap.
    """
    if entries == TABLE_ENTRIES:
        entries -= 2
    same = [add(0, 1)] * entries
    match = entry_match(0)
    yield _question(
        f"delete_strict half of {entries}",
        [table_change(of.OFPFC_DELETE_STRICT, match), _BARRIER],
        {"barrier_ps": 1, "flow_delete_ps": 1, "delete_strict_hit_ps": entries // 2},
        same,
        repeatable=False,
    )
    yield _question(
        f"modify_strict all {entries}",
        [table_change(of.OFPFC_MODIFY_STRICT, match, actions=1), _BARRIER],
        {
            "barrier_ps": 1,
            "flow_modify_ps": 1,
            "modify_strict_hit_ps": entries,
            "flow_add_ps": 1,
            "flow_action_ps": 1,
        },
        same,
        repeatable=False,
    )


def _hits(entries: int, table: Sequence[bytes]) -> Iterator[ControlQuery]:
    """Yield DELETE and MODIFY commands that hit every entry."""
    both = {"barrier_ps": 1.0}
    for wildcards, kind in ((of.OFPFW_ALL, ""), (_EVERYTHING, "_everything")):
        match = parser.OFPMatch(wildcards=wildcards)
        yield _question(
            f"delete{kind} all {entries}",
            [table_change(of.OFPFC_DELETE, match), _BARRIER],
            {**both, "flow_delete_ps": 1, f"delete{kind}_hit_ps": entries},
            table,
            repeatable=False,
        )
        # Entries that a MODIFY selects are also appended, or refused by a full table.
        appended = {"flow_add_ps": 1.0, "flow_action_ps": 1.0}
        refused = {"flow_add_ps": 1.0, "flow_action_ps": 1.0, "flow_refused_ps": 1.0}
        if entries < TABLE_ENTRIES:
            yield _question(
                f"modify{kind} all {entries}",
                [table_change(of.OFPFC_MODIFY, match, actions=1), _BARRIER],
                {**both, "flow_modify_ps": 1, f"modify{kind}_hit_ps": entries, **appended},
                table,
                repeatable=False,
            )
        else:
            yield _question(
                f"modify{kind} all {entries}",
                [table_change(of.OFPFC_MODIFY, match, actions=1)],
                {"flow_modify_ps": 1, f"modify{kind}_hit_ps": entries, **refused},
                table,
            )


def ask(device: BenchDevice, question: ControlQuery, *, samples: int, seed: int) -> SampleSet:
    """Measure from the first request's complete arrival to the departure of the reply's first frame.

    The time of both on the inner link is taken off. Raises `RunError` if a reply does not come.
    """
    wire = device.wire
    times: list[int] = []
    disturbed = 0
    ready = False
    for gap in gaps_ns(TRIES * samples, seed):
        if len(times) == samples:
            break
        if not ready:
            device.load(question.table)
            ready = question.repeatable
        gaps = [gap] + [0] * (len(question.segments) - 1)
        first, reply = exchange(device, gaps, question.segments, question.name)
        if reply.disturbed:
            disturbed += 1
            continue
        inner_ns = sum(
            wire.time_ns(wire.preamble_bytes + sighting.length_bytes + wire.tag_bytes)
            for sighting in (first, reply)
        )
        times.append(control_time_ns(reply.at_ns - first.at_ns, first.length_bytes, wire) - inner_ns)
    return samples_of(device, times, disturbed, question.name)


def measure_acknowledgement(device: BenchDevice, *, samples: int, seed: int) -> SampleSet:
    """Measure from the first reply to the second. Empty if the bench's acknowledgement has no known time."""
    later_ns = device.acknowledgement_ns
    if later_ns is None:
        return NOTHING
    device.load([])
    random = np.random.default_rng(seed)
    first, reply = _echoes(device, [SPACING_NS], 1)
    apart_ns = reply.at_ns - first.at_ns + later_ns + _BEHIND_NS
    # Both ways of the request to the CPU are in the time of the first reply already, but for its own.
    apart_ns -= device.wire.time_ns(2 * (first.length_bytes + device.wire.preamble_bytes))
    times = []
    for gap in SPACING_NS + random.integers(0, _JITTER_NS, samples):
        *_, early, other = _echoes(device, [int(gap), apart_ns], 2)
        times.append(other.at_ns - early.at_ns)
    return SampleSet(np.array(times, dtype=np.int64))


def _echoes(device: BenchDevice, gaps_ns: list[int], replies: int) -> list[ControlFrame]:
    seen = device.control(gaps_ns, [echo_request(number) for number in range(len(gaps_ns))])
    came = [sighting for sighting in seen if sighting.from_switch]
    if len(came) != replies:
        raise RunError(f"{device.name}: {len(came)} replies to {replies} echo requests")
    return [next(sighting for sighting in seen if not sighting.from_switch), *came]


def acknowledgement_ns(
    between_ns: float,
    *,
    echo_ns: float,
    loop_ns: float,
    transit_ns: float,
    wire: LinkTiming,
    later_ns: int = ACKNOWLEDGEMENT_NS,
) -> float:
    """Return the acknowledgement's share in the time from `measure_acknowledgement`.

    `echo_ns` is the cost of an echo request. The CPU has been idle since the first reply, so it finds the
    acknowledgement after a whole number of passes.
    """
    back_ns = wire.time_ns(wire.preamble_bytes + _REPLY_BYTES + wire.tag_bytes) + transit_ns
    passes = ceil((back_ns + later_ns) / loop_ns)
    return between_ns - passes * loop_ns - echo_ns


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    samples = extent.samples
    # A board that messages leave in disorder is power-cycled, which takes seconds. In a reduced design few
    # medians tell the costs of messages, so they are asked more often, in turns.
    reduced = extent.design is Design.REDUCED
    for turn, question in product(range(ROUNDS if reduced else 1), questions()):
        renews = not question.repeatable and _needs_renewal(question)
        if renews and turn:
            continue
        count = min(samples, AFTER_RENEWAL) if renews and reduced else samples
        expected_s = _expected_s(question, count)
        yield MeasurementPart(
            PROCEDURE.key(question.name, turn=turn), partial(_measure_query, question, count), expected_s
        )
    yield MeasurementPart(ACKNOWLEDGEMENT, partial(_acknowledged, samples))


def _needs_renewal(question: ControlQuery) -> bool:
    """Return whether the switch must be power-cycled afterwards. A bench undoes additions by itself."""
    added = of.OFPFC_ADD.to_bytes(2, "big")
    return any(segment[1] == of.OFPT_FLOW_MOD and segment[56:58] != added for segment in question.segments)


def _expected_s(question: ControlQuery, samples: int) -> float:
    loads = 1 if question.repeatable else samples
    renewals = loads if _needs_renewal(question) else 0
    return duration_s(samples, loads=loads, entries=len(question.table), renewals=renewals)


def _measure_query(question: ControlQuery, samples: int, device: BenchDevice, seed: int) -> Combinations:
    return {NoFrameLength.VALUES: ask(device, question, samples=samples, seed=seed)}


def _acknowledged(samples: int, device: BenchDevice, seed: int) -> Combinations:
    return {NoFrameLength.VALUES: measure_acknowledgement(device, samples=samples, seed=seed)}


PROCEDURE: Final = Procedure(
    name="cp-time",
    text=messages.PROCEDURE.text,
    parts=_parts,
    beside=(messages.PROCEDURE,),
)

ACKNOWLEDGEMENT: Final = PROCEDURE.key("acknowledgement")
"""The part that measures the cost of receiving an acknowledgement."""
