"""Size of the flow table: the bench adds entries until the switch refuses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.part import (
    NOTHING,
    Combinations,
    MeasurementPart,
    MeasurementSize,
    NoFrameLength,
    Procedure,
    ProfileNumber,
    Samples,
    counts,
)

_CHUNK: Final = 32
_MOST: Final = 2048
_SPACING_NS: Final = 2_000_000
_ENTRIES: Final = "entries"


def entries(device: BenchDevice) -> int | None:
    """Return how many entries the switch takes; None if it takes all that the bench tries."""
    device.load([])
    return first_refused(device, _add)


def first_refused(device: BenchDevice, add: Callable[[int], bytes]) -> int | None:
    """Return how many of the entries 1, 2, 3 … a switch takes; None if it takes all.

    `add` returns the FLOW_MOD of an entry. Its transaction id is the entry's number, so that an error tells
    which entry was refused.
    """
    for first in range(1, _MOST, _CHUNK):
        adds = [add(number) for number in range(first, first + _CHUNK)]
        seen = device.control([_SPACING_NS] * _CHUNK, adds)
        refused = [
            int.from_bytes(sighting.payload[4:8], "big")
            for sighting in seen
            if sighting.from_switch and sighting.payload[1] == of.OFPT_ERROR
        ]
        if refused:
            return min(refused) - 1
    return None


def _add(number: int) -> bytes:
    match = parser.OFPMatch(dl_type=0x0800, nw_proto=17, tp_dst=number)
    return flow_mod(match, (parser.OFPActionOutput(2, 0xFFFF),), priority=number, xid=number)


def _parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    yield MeasurementPart(PROCEDURE.key(_ENTRIES), _measured)


def _measured(device: BenchDevice, _: int) -> Combinations:
    held = entries(device)
    return {NoFrameLength.VALUES: NOTHING if held is None else counts(held)}


def numbers(samples: Samples) -> dict[str, ProfileNumber]:
    """Return how many entries the table holds, if it refused one."""
    held = samples.get(PROCEDURE.key(_ENTRIES), {}).get(NoFrameLength.VALUES, NOTHING.values)
    return {"table.entries": ProfileNumber(int(held[0]), 0.0, (PROCEDURE.name,), 1)} if len(held) else {}


PROCEDURE: Final = Procedure(
    name="table",
    text="How many entries the flow table holds.",
    parts=_parts,
    unit="entries",
    scale=1,
)
