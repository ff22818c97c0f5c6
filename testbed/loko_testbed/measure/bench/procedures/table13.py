"""Size of the tables of OpenFlow 1.3, in five-tuples: the bench adds them until the switch refuses one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loko_testbed.instruments.numbered_frame import IP_IN, IP_OUT, UDP_IN
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.part import (
    NOTHING,
    Combinations,
    MeasurementPart,
    MeasurementSize,
    NoFrameLength,
    Procedure,
    counts,
)
from loko_testbed.measure.bench.procedures.dp_time13 import add
from loko_testbed.measure.bench.procedures.table import first_refused


def entries(device: BenchDevice) -> int | None:
    """Return how many five-tuples the switch takes in OpenFlow 1.3; None if it takes all that are tried."""
    device.load([])
    return first_refused(device, _add)


def _add(number: int) -> bytes:
    match = {
        **{"eth_type": 0x0800, "ip_proto": 17, "ipv4_src": IP_IN, "ipv4_dst": IP_OUT},
        **{"udp_src": UDP_IN, "udp_dst": number},
    }
    return add(match, priority=1, xid=number)


def _parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    yield MeasurementPart(PROCEDURE.key("five-tuples"), _measured)


def _measured(device: BenchDevice, _: int) -> Combinations:
    there = device.in_openflow13()
    held = None if there is None else entries(there)
    return {NoFrameLength.VALUES: NOTHING if held is None else counts(held)}


PROCEDURE: Final = Procedure(
    name="table --openflow 1.3",
    text="How many five-tuples the tables of OpenFlow 1.3 hold.",
    parts=_parts,
    unit="entries",
    scale=1,
)
