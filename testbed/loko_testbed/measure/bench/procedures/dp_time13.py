"""Processing time of frames in OpenFlow 1.3: what entries, fields, tables, groups and meters cost.

A lone frame's time is the sum of its costs. Each trial repeats one cost many times: a hundred entries that
differ from the frame in one field, or match it with rising priorities, or a frame that visits every table.
What frames, bytes and the main loop cost is the same in both versions, so 1.0 tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from loko.control.os_ken_messages import serialized
from loko.control.os_ken_messages13 import PROTOCOL
from loko_testbed.instruments.numbered_frame import (
    IP_IN,
    IP_OUT,
    MAC_IN,
    MAC_OUT,
    TOS,
    UDP_OUT,
    VLAN,
    FrameLayout,
)
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.measure.bench.cases import loading_s
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.part import Combination, MeasurementPart, MeasurementSize, Procedure
from loko_testbed.measure.bench.procedures.dp_time import lone_frames

ENTRIES: Final = 100
"""Entries of a trial about entries; a board holds more of any kind."""
TABLES: Final = 10
_FRAME_BYTES: Final = {FrameLayout.UDP: 64, FrameLayout.TAGGED: 68, FrameLayout.TCP: 96, FrameLayout.MPLS: 96}
_FRAME_S: Final = 2e-3
"""Time of a frame in the longest tables, with the gap behind it."""
_XID: Final = 7
_METER_KBPS: Final = 1_000_000
"""More than a port carries, so that the meter drops no frame."""
_SURER: Final = 4
"""Samples for costs that one frame can meet only a few times, as a multiple of those for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A field of a match: its name in a profile, the fields that it requires, and a frame that has it."""

    name: str
    holds: dict[str, Any]
    """Match in which the field agrees with the bench's frames."""
    differs: dict[str, Any]
    """The match with this field, and none before it, changed."""
    before: tuple[str, ...] = ()
    """The fields before it, which agree."""
    shape: FrameLayout = FrameLayout.UDP


_IP: Final = {"eth_type": 0x0800}
_UDP: Final = {**_IP, "ip_proto": 17}
_TCP: Final = {**_IP, "ip_proto": 6}
_MPLS: Final = {"eth_type": 0x8847}
_TAG: Final = of.OFPVID_PRESENT | VLAN
_OTHER_MAC: Final = "02:00:00:00:01:01"
_WITHOUT_LAST_BYTE: Final = "ff:ff:ff:ff:ff:00"
_ALL_BUT_LAST: Final = "255.255.255.0"

FIELDS: Final = (
    Tested(name="in_port", holds={"in_port": IN_PORT}, differs={"in_port": 3}),
    Tested(name="eth_dst", holds={"eth_dst": MAC_OUT}, differs={"eth_dst": _OTHER_MAC}),
    Tested(name="eth_src", holds={"eth_src": MAC_IN}, differs={"eth_src": _OTHER_MAC}),
    Tested(
        name="eth_masked",
        holds={"eth_dst": ("02:00:00:00:00:00", _WITHOUT_LAST_BYTE)},
        differs={"eth_dst": ("02:00:00:00:03:00", _WITHOUT_LAST_BYTE)},
    ),
    Tested(name="eth_type", holds=_IP, differs={"eth_type": 0x9000}),
    Tested(
        name="vlan_vid",
        holds={"vlan_vid": _TAG},
        differs={"vlan_vid": _TAG + 1},
        shape=FrameLayout.TAGGED,
    ),
    Tested(
        name="vlan_vid_masked",
        holds={"vlan_vid": (_TAG, 0x1007)},
        differs={"vlan_vid": (of.OFPVID_PRESENT | 2, 0x1007)},
        shape=FrameLayout.TAGGED,
    ),
    Tested(
        name="vlan_pcp",
        holds={"vlan_vid": _TAG, "vlan_pcp": 0},
        differs={"vlan_vid": _TAG, "vlan_pcp": 3},
        before=("vlan_vid",),
        shape=FrameLayout.TAGGED,
    ),
    Tested(
        name="ip_dscp",
        holds={**_IP, "ip_dscp": TOS >> 2},
        differs={**_IP, "ip_dscp": 5},
        before=("eth_type",),
    ),
    Tested(name="ip_proto", holds=_UDP, differs={**_IP, "ip_proto": 100}, before=("eth_type",)),
    Tested(
        name="ipv4_src",
        holds={**_IP, "ipv4_src": IP_IN},
        differs={**_IP, "ipv4_src": "10.2.0.1"},
        before=("eth_type",),
    ),
    Tested(
        name="ipv4_dst",
        holds={**_IP, "ipv4_dst": IP_OUT},
        differs={**_IP, "ipv4_dst": "10.2.0.1"},
        before=("eth_type",),
    ),
    Tested(
        name="ipv4_masked",
        holds={**_IP, "ipv4_dst": ("10.0.1.0", _ALL_BUT_LAST)},
        differs={**_IP, "ipv4_dst": ("10.2.1.0", _ALL_BUT_LAST)},
        before=("eth_type",),
    ),
    Tested(
        name="tcp_port",
        holds={**_TCP, "tcp_dst": UDP_OUT},
        differs={**_TCP, "tcp_dst": 7000},
        before=("eth_type", "ip_proto"),
        shape=FrameLayout.TCP,
    ),
    Tested(
        name="udp_port",
        holds={**_UDP, "udp_dst": UDP_OUT},
        differs={**_UDP, "udp_dst": 7000},
        before=("eth_type", "ip_proto"),
    ),
    Tested(
        name="mpls",
        holds={**_MPLS, "mpls_bos": 1},  # the label is compared with its bytes reversed (quirk 145)
        differs={**_MPLS, "mpls_bos": 0},
        before=("eth_type",),
        shape=FrameLayout.MPLS,
    ),
)
"""One field for each cost that a search can meet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCase:
    """Tables, a frame, and the costs in its time beyond those of every frame."""

    name: str
    messages: tuple[bytes, ...]
    """The messages that build the tables: FLOW_MODs, and what they refer to."""
    costs: dict[str, float]
    """How often each cost of ``[cpu.openflow13]`` is in the frame's time."""
    shape: FrameLayout = FrameLayout.UDP
    sure: int = field(default=1)
    """Samples, as a multiple of the usual number."""

    @property
    def frame_bytes(self) -> int:
        """Length of the frames."""
        return _FRAME_BYTES[self.shape]


def trials() -> Iterator[CostCase]:
    """Yield all trials."""
    yield from _without_fields()
    for tested in FIELDS:
        yield from _about(tested)
    several = {"in_port": IN_PORT, **_UDP}
    parts = {f"{name}.passes_ps": float(ENTRIES) for name in ("in_port", "eth_type", "ip_proto")}
    yield CostCase(
        name=f"{ENTRIES} entries with three fields hold",
        messages=tuple(_rising(several)),
        costs={**parts, "hit_ps": ENTRIES, "after_hit_ps": ENTRIES - 1},
    )
    yield CostCase(
        name=f"{ENTRIES} entries for tunnels",
        messages=(*_falling({"tunnel_id": 5}), add({}, priority=1)),
        costs={"unsupported.fails_ps": ENTRIES, "no_fields_ps": 1},
    )
    yield from _further_tables()


def _without_fields() -> Iterator[CostCase]:
    yield CostCase(name="an entry without fields", messages=(add({}, priority=1),), costs={"no_fields_ps": 1})
    yield CostCase(
        name=f"{ENTRIES} entries without fields, the last used",
        messages=tuple(_rising({})),
        costs={"no_fields_ps": ENTRIES, "after_hit_ps": ENTRIES - 1},
    )
    yield CostCase(
        name=f"{ENTRIES} entries without fields, the first used",
        messages=tuple(_falling({})),
        costs={"no_fields_ps": 1, "skipped_ps": ENTRIES - 1},
    )

    behind = FIELDS[0]
    yield CostCase(
        name=f"{ENTRIES} entries with {behind.name} fail behind one that holds",
        messages=(add({}, priority=1), *_falling(behind.differs)),
        costs={"no_fields_ps": 1, "after_hit_ps": ENTRIES, f"{behind.name}.fails_ps": ENTRIES},
    )


def _about(tested: Tested) -> Iterator[CostCase]:
    before = {f"{name}.passes_ps": float(ENTRIES) for name in tested.before}
    yield CostCase(
        name=f"{ENTRIES} entries with {tested.name} hold",
        messages=tuple(_rising(tested.holds)),
        costs={
            **before,
            f"{tested.name}.passes_ps": ENTRIES,
            "hit_ps": ENTRIES,
            "after_hit_ps": ENTRIES - 1,
        },
        shape=tested.shape,
    )
    yield CostCase(
        name=f"{ENTRIES} entries with {tested.name} fail",
        messages=(*_falling(tested.differs), add({}, priority=1)),
        costs={**before, f"{tested.name}.fails_ps": ENTRIES, "no_fields_ps": 1},
        shape=tested.shape,
    )


def _further_tables() -> Iterator[CostCase]:
    others = [add({}, table=1, priority=_priority(place)) for place in range(ENTRIES)]
    yield CostCase(
        name=f"{ENTRIES} entries of another table",
        messages=(*others, add({}, priority=1)),
        costs={"other_table_ps": ENTRIES, "no_fields_ps": 1},
    )
    chain = {
        "no_fields_ps": TABLES,
        "next_table_ps": TABLES - 1,
        "other_table_ps": TABLES * (TABLES - 1),
    }
    yield CostCase(name=f"{TABLES} tables", messages=tuple(_chain()), costs=dict(chain), sure=_SURER)
    meters = TABLES - 2
    bands = [parser.OFPMeterBandDrop(rate=_METER_KBPS, burst_size=0)]
    adds = [
        serialized(
            parser.OFPMeterMod(PROTOCOL, of.OFPMC_ADD, of.OFPMF_KBPS, meter_id=1 + number, bands=bands), _XID
        )
        for number in range(meters)
    ]
    yield CostCase(
        name=f"{TABLES} tables, {meters} with a meter",
        messages=(*adds, *_chain(meters=meters)),
        costs={**chain, "meter_ps": meters},
        sure=_SURER,
    )
    # This group sends a frame back to where it came from, so nowhere, and no output costs anything. Without
    # buckets the Zodiac FX would use old ones (quirk 172).
    bucket = parser.OFPBucket(actions=[parser.OFPActionOutput(IN_PORT, 0)])
    group = parser.OFPGroupMod(PROTOCOL, of.OFPGC_ADD, of.OFPGT_ALL, group_id=1, buckets=[bucket])
    yield CostCase(
        name=f"{TABLES} tables, {TABLES - 1} with a group",
        messages=(serialized(group, _XID), *_chain(group=1)),
        costs={**chain, "group_ps": TABLES - 1},
        sure=_SURER,
    )


def _chain(*, meters: int = 0, group: int | None = None) -> Iterator[bytes]:
    """Yield an entry for each table that sends every frame on to the next; the last one sends it out."""
    for table in range(TABLES):
        instructions: list[Any] = []
        if table < meters:
            instructions.append(parser.OFPInstructionMeter(1 + table))
        if table == TABLES - 1:
            instructions.append(_applied(parser.OFPActionOutput(OUT_PORT, 0)))
        else:
            if group is not None:
                instructions.append(_applied(parser.OFPActionGroup(group)))
            instructions.append(parser.OFPInstructionGotoTable(table + 1))
        yield _flow_mod({}, table, 1, instructions)


def _rising(match: dict[str, Any]) -> Iterator[bytes]:
    """Yield entries that differ only in priority, each above the one before: all are examined."""
    for place in range(ENTRIES):
        yield add(match, priority=_priority(place))


def _falling(match: dict[str, Any]) -> Iterator[bytes]:
    for place in reversed(range(ENTRIES)):
        yield add(match, priority=_priority(place))


def _priority(place: int) -> int:
    return 100 + place


def add(match: dict[str, Any], *, priority: int, table: int = 0, xid: int = _XID) -> bytes:
    """Return the FLOW_MOD of an entry that sends frames out of the switch."""
    return _flow_mod(match, table, priority, [_applied(parser.OFPActionOutput(OUT_PORT, 0))], xid)


def _applied(action: Any) -> Any:
    return parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, [action])


def _flow_mod(
    match: dict[str, Any], table: int, priority: int, instructions: list[Any], xid: int = _XID
) -> bytes:
    message = parser.OFPFlowMod(
        PROTOCOL,
        table_id=table,
        priority=priority,
        match=parser.OFPMatch(**match),
        instructions=instructions,
    )
    return serialized(message, xid)


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    for trial in trials():
        samples = trial.sure * extent.samples
        expected_s = loading_s(len(trial.messages)) + samples * _FRAME_S
        yield MeasurementPart(PROCEDURE.key(trial.name), partial(_measured, trial, samples), expected_s)


def _measured(trial: CostCase, samples: int, device: BenchDevice, seed: int) -> Iterator[Combination]:
    there = device.in_openflow13()
    if there is None:
        return
    there.load(trial.messages)
    size = trial.frame_bytes
    random = np.random.default_rng(seed)
    yield (
        size,
        lone_frames(there, size, samples=samples, random=random, what=trial.name, shape=trial.shape),
    )


PROCEDURE: Final = Procedure(
    name="dp-time --openflow 1.3",
    text="Processing time of frames in OpenFlow 1.3: fields, tables, groups, meters.",
    parts=_parts,
)
