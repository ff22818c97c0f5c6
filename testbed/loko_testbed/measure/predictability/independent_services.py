"""Step 0 of Loko's method: how many independent services a switch has, from what its ports forward together.

Network calculus gives each port of a data-centre switch a service of its own. Where one CPU, or one lookup,
serves several ports, they slow each other down, and the switch has one service for all of them. Trains of
frames enter some of the ports at the same time; how fast they come out tells which ports share a service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Final

import numpy as np
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko.units import NS_PER_S
from loko_testbed.measure.predictability.subject import (
    FrameStream,
    StreamTimes,
    SwitchUnderTest,
    evenly,
    transmit,
)
from loko_testbed.measure.predictability.table_iii import frame
from loko_testbed.simulation.runner import LOST

Ports = frozenset[int]

TOLERANCE: Final = 0.1
"""Share by which ports may slow each other down before they count as sharing a service.

Below it are the spread of processing times and the ends of the trains.
"""
_FRAME_BYTES: Final = 64
_TRAINS: Final = (256, 128, 64, 32, 16, 8, 4)
"""Lengths of trains, of which the longest is used that no buffer loses frames of."""
_LOSSY_TRAIN: Final = 64


def independent_services(forwarded_per_s: Mapping[Ports, float]) -> list[Ports]:
    """Return the groups of ports that share a service, in the order of their lowest ports.

    `forwarded_per_s` has the frames per second that come out while frames enter the ports of a set: for each
    port alone, for each pair, and for all ports. Two ports share a service if together they forward less than
    the sum of both. If all ports forward less than their groups do, something serves all groups, and they are
    one. Raises `ValueError` if a set is missing.
    """
    ports = sorted(set().union(*forwarded_per_s))
    try:
        alone = {port: forwarded_per_s[frozenset({port})] for port in ports}
        together = {pair: forwarded_per_s[frozenset(pair)] for pair in combinations(ports, 2)}
        everything = forwarded_per_s[frozenset(ports)]
    except KeyError as missing:
        raise ValueError(f"no rate of the ports {sorted(missing.args[0])}") from None
    groups = {port: frozenset({port}) for port in ports}
    for (a, b), rate in together.items():
        if _is_less(rate, alone[a] + alone[b]):
            merged = groups[a] | groups[b]
            groups |= dict.fromkeys(merged, merged)
    found = sorted(set(groups.values()), key=min)
    if len(found) > 1 and _is_less(everything, sum(_rate(group, forwarded_per_s) for group in found)):
        return [frozenset(ports)]
    return found


def _is_less(rate: float, expected: float) -> bool:
    return rate < (1 - TOLERANCE) * expected


def _rate(group: Ports, forwarded_per_s: Mapping[Ports, float]) -> float:
    """Return the rate of a group: the largest of any set of its ports."""
    return max(rate for ports, rate in forwarded_per_s.items() if ports <= group)


def port_sets(ports: int) -> list[Ports]:
    """Return the sets of ports that `independent_services` needs."""
    every = range(1, ports + 1)
    sets = [frozenset(chosen) for size in (1, 2) for chosen in combinations(every, size)]
    return list(dict.fromkeys([*sets, frozenset(every)]))


def measure(subject: SwitchUnderTest, ports: int, *, seed: int) -> dict[Ports, float]:
    """Return the frames per second that come out while trains enter each set of the first `ports` ports.

    What enters a port leaves by the next one, and by no other. Raises `RunError`, `RefusedError`.
    """
    frames = _longest_train(subject, ports, seed)
    return {chosen: _rate_of(_trains(subject, ports, chosen, frames, seed)) for chosen in port_sets(ports)}


def _longest_train(subject: SwitchUnderTest, ports: int, seed: int) -> int:
    """Return the length of the longest train of which no frame is lost while all ports receive one."""
    every = frozenset(range(1, ports + 1))
    for frames in _TRAINS:
        if not any(stream.lost for stream in _trains(subject, ports, every, frames, seed)):
            return frames
    return _LOSSY_TRAIN


def _trains(
    subject: SwitchUnderTest, ports: int, chosen: Iterable[int], frames: int, seed: int
) -> list[StreamTimes]:
    """Send a train into each of the chosen ports at the same time."""
    entries = [
        flow_mod(
            parser.OFPMatch(in_port=port),
            [parser.OFPActionOutput(_next(port, ports), 0xFFFF)],
            priority=100,
            xid=port,
        )
        for port in range(1, ports + 1)
    ]
    streams = [
        FrameStream(
            enters=port,
            leaves=_next(port, ports),
            frame=frame(_FRAME_BYTES),
            instants_ns=evenly(frames, subject.slot_ns(_FRAME_BYTES)),
        )
        for port in sorted(chosen)
    ]
    return transmit(subject, entries, streams, seed=seed, drain_ns=NS_PER_S)


def _next(port: int, ports: int) -> int:
    return port % ports + 1


def _rate_of(streams: list[StreamTimes]) -> float:
    """Return the frames per second that came out, from the first to the last of all."""
    received_ns = np.concatenate([stream.received_ns for stream in streams])
    came_ns = received_ns[received_ns != LOST]
    return (len(came_ns) - len(streams)) * NS_PER_S / float(came_ns.max() - came_ns.min())
