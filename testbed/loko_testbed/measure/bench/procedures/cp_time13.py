"""Costs of messages in OpenFlow 1.3: the requests of `cp_time`, for that version.

Segments, echoes and barriers cost the same in both versions, so 1.0 tells them. Each message goes in a
segment of its own, since replies to one segment displace each other on the Zodiac FX (quirks 86 and 90).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from loko.control.messages13 import (
    aggregate_request,
    barrier_request,
    features_request,
    flow_stats_request,
    table_stats_request,
)
from loko.control.os_ken_messages import serialized
from loko.control.os_ken_messages13 import PROTOCOL
from loko_testbed.measure.bench.control_plane import OTHER_VLAN, XID, duration_s
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.part import (
    NOTHING,
    Combinations,
    MeasurementPart,
    MeasurementSize,
    NoFrameLength,
    Procedure,
)
from loko_testbed.measure.bench.procedures.cp_time import ControlQuery, ask
from loko_testbed.measure.bench.procedures.dp_time13 import add

_BARRIER: Final = barrier_request(XID)
_ENTRIES: Final = (50, 200)
"""Entries of the tables that a message works through."""
_FIRST_PART: Final = 15
"""Entries in the first part of a reply about entries (quirk 102)."""
_PRIORITY: Final = 100
_NO_TABLE: Final = 10
"""A table that the board does not have: it has tables 0 to 9."""


def questions() -> Iterator[ControlQuery]:
    """Yield all questions. Their costs have the names of a profile's numbers."""
    yield from _with_reply()
    yield from _statistics()
    yield from _table_changes()


def _question(
    name: str, segments: Sequence[bytes], costs: dict[str, float], table: Sequence[bytes] = (), **more: Any
) -> ControlQuery:
    shared = {"cpu.control.segment_ps": float(len(segments))}
    if segments[-1] == _BARRIER:
        shared["cpu.control.barrier_ps"] = 1.0
    own = {f"cpu.openflow13.{cost}": float(times) for cost, times in costs.items() if times}
    return ControlQuery(
        name=name, segments=tuple(segments), terms={**shared, **own}, table=tuple(table), **more
    )


def _with_reply() -> Iterator[ControlQuery]:
    yield _question("barrier", [_BARRIER], {})
    yield _question("features", [features_request(XID)], {"features_ps": 1})
    role = parser.OFPRoleRequest(PROTOCOL, of.OFPCR_ROLE_NOCHANGE, 0)
    yield _question("role", [serialized(role, XID)], {"role_ps": 1})
    refused = add({}, priority=_PRIORITY, table=_NO_TABLE)
    yield _question("add to a table that is none", [refused], {"flow_add_ps": 1, "refused_ps": 1})


def _statistics() -> Iterator[ControlQuery]:
    description = serialized(parser.OFPDescStatsRequest(PROTOCOL, 0), XID)
    yield _question("description", [description], {"description_ps": 1})
    features = serialized(parser.OFPTableFeaturesStatsRequest(PROTOCOL, 0, []), XID)
    yield _question("features of tables", [features], {"table_features_ps": 1})
    ports = serialized(parser.OFPPortDescStatsRequest(PROTOCOL, 0), XID)
    yield _question("description of ports", [ports], {"port_description_ps": 1})
    for port, count in ((1, 1), (of.OFPP_ANY, 3)):
        request = serialized(parser.OFPPortStatsRequest(PROTOCOL, 0, port), XID)
        costs = {"port_statistics_ps": 1.0, "port_statistics_port_ps": count}
        yield _question(f"statistics of {count} ports", [request], costs)
    for entries in (0, *_ENTRIES):
        table = _table(entries)
        yield _question(
            f"count of {entries} entries",
            [aggregate_request(XID)],
            {"multipart_ps": 1, "aggregate_entry_ps": entries},
            table,
        )
        yield _question(
            f"statistics of tables with {entries} entries",
            [table_stats_request(XID)],
            {"table_statistics_ps": 1, "table_statistics_entry_ps": entries},
            table,
        )
    for entries in (1, _FIRST_PART):
        yield _question(
            f"statistics of {entries} flows",
            [flow_stats_request(XID)],
            {"multipart_ps": 1, "flow_statistics_entry_ps": entries},
            _table(entries),
        )


def _table_changes() -> Iterator[ControlQuery]:
    group = parser.OFPGroupMod(PROTOCOL, of.OFPGC_DELETE, of.OFPGT_ALL, group_id=1, buckets=[])
    yield _question("deletion of no group", [serialized(group, XID), _BARRIER], {"modification_ps": 1})
    for entries in (0, *_ENTRIES):
        table = _table(entries)
        yield _question(
            f"add to {entries} entries",
            [_entry(entries), _BARRIER],
            {"flow_add_ps": 1, "replacement_scan_ps": entries},
            table,
            repeatable=False,
        )
        if not entries:
            continue
        yield _question(
            f"delete none of {entries}",
            [_delete(of.OFPFC_DELETE, {"vlan_vid": of.OFPVID_PRESENT | OTHER_VLAN}), _BARRIER],
            {"flow_delete_ps": 1, "delete_miss_ps": entries},
            table,
        )
        yield _question(
            f"delete all {entries}",
            [_delete(of.OFPFC_DELETE, {}), _BARRIER],
            {"flow_delete_ps": 1, "delete_hit_ps": entries},
            table,
            repeatable=False,
        )
        yield _question(
            f"delete none of {entries} by port",
            [_delete(of.OFPFC_DELETE, {}, out_port=3), _BARRIER],
            {"flow_delete_ps": 1, "delete_by_port_ps": entries},
            table,
        )
        for priority, cost in ((_PRIORITY, "delete_strict_ps"), (1, "delete_strict_priority_ps")):
            match = {"vlan_vid": of.OFPVID_PRESENT | OTHER_VLAN}
            yield _question(
                f"delete_strict none of {entries} with priority {priority}",
                [_delete(of.OFPFC_DELETE_STRICT, match, priority=priority), _BARRIER],
                {"flow_delete_ps": 1, cost: entries},
                table,
            )


def _table(entries: int) -> list[bytes]:
    return [_entry(place) for place in range(entries)]


def _entry(place: int) -> bytes:
    """Return the FLOW_MOD of an entry. All have one priority, and no two are alike."""
    return add({"eth_type": 0x0800, "ip_proto": 17, "udp_dst": 7000 + place}, priority=_PRIORITY)


def _delete(
    command: int, match: dict[str, Any], *, priority: int = _PRIORITY, out_port: int = of.OFPP_ANY
) -> bytes:
    message = parser.OFPFlowMod(
        PROTOCOL,
        table_id=of.OFPTT_ALL,
        command=command,
        priority=priority,
        out_port=out_port,
        out_group=of.OFPG_ANY,
        match=parser.OFPMatch(**match),
    )
    return serialized(message, XID)


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    for question in questions():
        loads = 1 if question.repeatable else extent.samples
        expected_s = duration_s(extent.samples, loads=loads, entries=len(question.table))
        yield MeasurementPart(
            PROCEDURE.key(question.name), partial(_measure_query, question, extent.samples), expected_s
        )


def _measure_query(question: ControlQuery, samples: int, device: BenchDevice, seed: int) -> Combinations:
    there = device.in_openflow13()
    if there is None:
        return {NoFrameLength.VALUES: NOTHING}
    return {NoFrameLength.VALUES: ask(there, question, samples=samples, seed=seed)}


PROCEDURE: Final = Procedure(
    name="cp-time --openflow 1.3",
    text="Processing time of messages in OpenFlow 1.3.",
    parts=_parts,
)
