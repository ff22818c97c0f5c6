"""What a frame costs that does not come out at port 2: the delay of the frame right behind it tells.

A leader and a follower arrive back to back. The follower waits for the leader, so the time from the leader's
arrival until the follower leaves is the sum of what both take of the CPU. Not in the paper; it needs its
assumption that one CPU serves all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from os_ken.ofproto import ofproto_v1_0_parser as parser

from evaluation.bench.cases import OUT_PORT
from evaluation.bench.device import MISSING, Device
from evaluation.bench.equations import Wire, data_time_ns
from evaluation.instruments.numbered_frame import UDP_OUT, frame
from evaluation.runner import RunError
from loko.controller.messages import flow_mod

_SIZES: Final = (64, 306, 790, 1516)
_TRAINS: Final = 3
"""How often a train is sent again of which frames did not come out."""
_SPACING_NS: Final = 4_000_000
_JITTER_NS: Final = 100_000
_LEADER_UDP: Final = UDP_OUT + 1
_MISSING_UDP: Final = UDP_OUT + 2
_OTHER_PORT: Final = 3
_PS_PER_NS: Final = 1000
_DUMMIES: Final = 60
"""Entries that make each frame take longer than the next one needs to arrive, so that the follower does wait,
and than the leader's copies need to leave, so that it waits for nothing else."""
_DUMMY_UDP: Final = 7000
_ENTRIES: Final = _DUMMIES + 2


@dataclass(frozen=True, slots=True)
class Leader:
    """The frame in front, and which costs of a profile's ``[cpu.action]`` it brings."""

    name: str
    actions: tuple[Any, ...]
    costs: tuple[str, ...]
    sizes: tuple[int, ...]
    udp: int = _LEADER_UDP


def leaders() -> Iterator[Leader]:
    """Every leader of the campaign."""
    there = parser.OFPActionOutput(_OTHER_PORT, 0xFFFF)
    yield Leader("output", (there,), (), _SIZES)
    yield Leader("output three times", (there, there, there), ("output_again", "output_again"), _SIZES)
    yield Leader("drop", (), ("drop",), _SIZES)
    # Longer ones need several segments on the controller's connection.
    yield Leader("miss", (there,), ("packet_in",), (64, 128, 306, 480), udp=_MISSING_UDP)


def table(leader: Leader) -> list[bytes]:
    """An entry for the leader and one for the follower behind dummies; every frame visits all."""
    there = (parser.OFPActionOutput(OUT_PORT, 0xFFFF),)
    return [
        *(_entry(1 + place, _DUMMY_UDP + place, there) for place in range(_DUMMIES)),
        _entry(100, _LEADER_UDP, leader.actions),
        _entry(101, UDP_OUT, there),
    ]


def _entry(priority: int, udp: int, actions: tuple[Any, ...]) -> bytes:
    return flow_mod(parser.OFPMatch(tp_dst=udp), actions, priority=priority, xid=priority)


def measure(device: Device, leader: Leader, size: int, *, samples: int, seed: int) -> NDArray[np.int64]:
    """From the leader's complete arrival until the follower begins to leave, in nanoseconds."""
    gaps, train = [], []
    random = np.random.default_rng(seed)
    for number in range(samples):
        gaps += [_SPACING_NS + int(random.integers(0, _JITTER_NS)), 0]
        train += [
            frame(size, 2 * number, udp=leader.udp),
            frame(size, 2 * number + 1),
        ]
    for _ in range(_TRAINS):
        passage = device.send(gaps, train)
        entered, left = passage.entered_ns[::2], passage.left_ns[1::2]
        fine = ~(passage.disturbed[::2] | passage.disturbed[1::2])
        if fine.any() and not np.any(left[fine] == MISSING):
            break
    else:
        raise RunError(f"{device.name}: frames of {size} bytes behind '{leader.name}' did not come out")
    return left[fine] - entered[fine] + data_time_ns(0, size, device.wire)


def terms(
    leader: Leader, size: int, offsets: dict[str, int], capacity_factor: float = 1.0
) -> dict[str, float]:
    """The costs in what `measure` gives, beside `link_ps`.

    The leader keeps the CPU busy for its p_CPU over `capacity_factor`, the follower leaves after its own.
    """
    share = 1 / capacity_factor
    found: defaultdict[str, float] = defaultdict(float)
    found["cpu.base_ps"] = 1 + share
    found["cpu.per_byte_ps"] = (1 + share) * size
    found["cpu.entry.base_ps"] = found["cpu.entry.tp_dst_ps"] = (1 + share) * _ENTRIES
    for cost in leader.costs:
        found[f"cpu.action.{cost}.fixed_ps"] += share
        found[f"cpu.action.{cost}.per_byte_ps"] += share * max(size - offsets[cost], 0)
    return {name: times for name, times in found.items() if times}


def link_ps(size: int, wire: Wire) -> int:
    """The leader's way to the CPU and the follower's way back on the inner link."""
    return 2 * wire.time_ns(wire.preamble_bytes + size + wire.tag_bytes) * _PS_PER_NS
