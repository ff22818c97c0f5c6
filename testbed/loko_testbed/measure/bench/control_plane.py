"""Common code of the control-plane procedures: requests and replies, and changes of entries."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko_testbed.measure.bench.cases import loading_s
from loko_testbed.measure.bench.device import BenchDevice, ControlFrame
from loko_testbed.measure.bench.part import SampleSet
from loko_testbed.simulation.runner import RunError

SPACING_NS: Final = 6_000_000
"""Longer than a board takes for any message of the control plane."""
_JITTER_NS: Final = 100_000
TRIES: Final = 3
"""How often, on average, a sample is repeated because its barrier came too late."""
_ASKED_S: Final = 0.012
"""Rough duration of a message and its reply in real time."""
_RENEWAL_S: Final = 4.0
"""Time for a board to be power-cycled, to boot and to find its controller."""
XID: Final = 7
TABLE_ENTRIES: Final = 128
OTHER_VLAN: Final = 77
"""No entry matches it."""
_FIRST_PRIORITY: Final = 100
_OUT_PORT: Final = 2


def duration_s(samples: int, *, loads: int, entries: int, renewals: int = 0) -> float:
    """Estimate how long samples take in real time, with loads of a table and power-cycles of the switch."""
    return samples * _ASKED_S + loads * loading_s(entries) + renewals * _RENEWAL_S


def exchange(
    device: BenchDevice, gaps_ns: list[int], segments: tuple[bytes, ...], name: str
) -> tuple[ControlFrame, ControlFrame]:
    """Send segments. Return the first one's frame, and the first frame of the answer."""
    for _ in range(TRIES):
        seen = device.control(gaps_ns, segments)
        first = next((sighting for sighting in seen if not sighting.from_switch), None)
        reply = next((sighting for sighting in seen if sighting.from_switch), None)
        if first is not None and reply is not None:
            return first, reply
    raise RunError(f"{device.name}: no reply to '{name}'")


def gaps_ns(samples: int, seed: int) -> list[int]:
    """Return random gaps between questions; the same seed gives the same gaps."""
    random = np.random.default_rng(seed)
    gaps: list[int] = (SPACING_NS + random.integers(0, _JITTER_NS, samples)).tolist()
    return gaps


def samples_of(device: BenchDevice, times: list[int], left_out: int, name: str) -> SampleSet:
    """Return the samples of the question with this name. Raises `RunError` if there are none."""
    if not times:
        raise RunError(
            f"{device.name}: this machine stalled during all {left_out} samples of '{name}';"
            " end other programs and run again"
        )
    return SampleSet(np.array(times, dtype=np.int64), left_out)


def adds(count: int, actions: int) -> list[bytes]:
    """Return FLOW_MODs that add this many different entries."""
    return [add(place, actions) for place in range(count)]


@cache
def add(place: int, actions: int) -> bytes:
    """Return the FLOW_MOD that adds the entry at a place. Cached: the parts' tables begin alike."""
    return table_change(of.OFPFC_ADD, entry_match(place), actions=actions, priority=_FIRST_PRIORITY + place)


def entry_match(place: int) -> Any:
    """Return the match of the entry at a place."""
    return parser.OFPMatch(dl_type=0x0800, nw_proto=17, tp_dst=7000 + place)


def table_change(command: int, match: Any, *, actions: int = 0, priority: int = _FIRST_PRIORITY) -> bytes:
    """Return a FLOW_MOD. All have one cookie, as the Zodiac FX compares it in a strict DELETE (quirk 48)."""
    outputs = [parser.OFPActionOutput(_OUT_PORT, 0xFFFF) for _ in range(actions)]
    return flow_mod(match, outputs, priority=priority, xid=XID, command=command, cookie=1)
