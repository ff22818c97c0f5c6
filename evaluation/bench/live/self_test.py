"""Looks, in a few seconds, whether a switch is wired as its inventory says, before anything long starts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final

from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from evaluation.bench.cases import IN_PORT, OUT_PORT, frame, number_of
from evaluation.bench.live.bench import Bench
from evaluation.bench.live.controller_endpoint import PACKET_IN, ControllerEndpoint
from evaluation.bench.live.packet_tap import PacketTap, Seen, packet_socket
from evaluation.bench.wiring import NOTHING, Observations, Wiring, diagnose
from evaluation.runner import RunError
from loko.controller.messages import PROTOCOL, barrier_request, serialized

_SESSIONS: Final = 3
"""A board whose session broke under what else it was sent is examined in a new one, so often at most."""
_PROBES: Final = 3
_PROBE_BYTES: Final = 64
_PAUSE_S: Final = 0.005
_ANSWER_S: Final = 0.5
_IN_PORT_AT: Final = 14
_DATA_AT: Final = 18
"""Places in a PACKET_IN of OpenFlow 1.0."""


def self_test(bench: Bench, *, connect_s: float) -> None:
    """Wait for the switch and examine its wiring. Raises `RunError` with the one line of `diagnose`."""
    around = bench.around
    wiring = Wiring(ports=around.ports, controller=around.controller, datapath_id=around.datapath_id)
    for session in itertools.count(1):
        seen = observe(bench, connect_s=connect_s)
        problem = diagnose(wiring, seen)
        if problem is None:
            return
        error = RunError(f"{bench.name}: {problem}")
        if seen is NOTHING:
            raise error
        refuse_unless_broken(around.endpoint, bench.name, error, session)


def refuse_unless_broken(endpoint: ControllerEndpoint, name: str, error: RunError, session: int) -> None:
    """Raise what an examination found, unless its session broke: end that one, so that another follows.

    `session` counts the switch's from 1; the last one that may break raises `RunError`, too.
    """
    if endpoint.is_alive():
        raise error
    if session == _SESSIONS:
        raise RunError(
            f"{name}: its connection to the controller breaks while its cables are examined (docs/quirks.md,"
            " 14 and 15): let nothing else send to it, and switch it off and on"
        ) from None
    endpoint.hang_up()


def observe(bench: Bench, *, connect_s: float) -> Observations:
    """Send probes along every cable. The table is empty afterwards."""
    datapath_id = bench.around.endpoint.accept(connect_s)
    if datapath_id is None:
        return NOTHING
    said = bench.device.control([0], [barrier_request(7)])
    bench.device.load([])
    with ExitStack() as stack:
        ends = {
            port: stack.enter_context(PacketTap(end.interface)) for port, end in bench.around.ports.items()
        }
        taps = {
            port: stack.enter_context(PacketTap(end.tap_interface))
            for port, end in bench.around.ports.items()
        }
        arrived, at_entrance = {}, frozenset[int]()
        for port in (IN_PORT, OUT_PORT):
            arrived[port] = arrival(bench.around.endpoint, bench.around.ports[port].interface)
            saw = {
                tap
                for tap, one in taps.items()
                if probes(one.read(), passive=bench.around.ports[tap].passive)
            }
            if port == IN_PORT:
                at_entrance = frozenset(saw)
        came_out: dict[int, frozenset[int]] = {}
        for port in (IN_PORT, OUT_PORT):
            for one in (*ends.values(), *taps.values()):
                one.forget()
            let_out(bench.around.endpoint, port)
            came_out[port] = frozenset(end for end, one in ends.items() if probes(one.read()))
        at_exit = frozenset(tap for tap, one in taps.items() if probes(one.read()))
    return Observations(
        datapath_id=datapath_id,
        control_tap_saw={one.from_switch for one in said} == {True, False},
        arrived_at=arrived,
        came_out_at=came_out,
        taps_at_entrance=at_entrance,
        taps_at_exit=at_exit,
    )


def arrival(endpoint: ControllerEndpoint, interface: str) -> int | None:
    """Send probes from an interface; where they arrive at the switch, as it tells for want of an entry.

    One at a time: a board that tells of several before they are acknowledged may break its session: quirk
    15.
    """
    endpoint.messages()
    with packet_socket(interface, 0) as sender:
        for number in range(_PROBES):
            sender.send(frame(_PROBE_BYTES, number))
            if (port := _told(endpoint)) is not None:
                return port
    return None


def _told(endpoint: ControllerEndpoint) -> int | None:
    """The port of entry of a probe that the switch tells of; None if it tells of none in time."""
    deadline = time.monotonic() + _ANSWER_S
    while (left_s := deadline - time.monotonic()) > 0:
        for message in endpoint.messages(left_s):
            if (
                message[1] == PACKET_IN
                and number_of(message[_DATA_AT : _DATA_AT + _PROBE_BYTES - 4]) is not None
            ):
                return int.from_bytes(message[_IN_PORT_AT : _IN_PORT_AT + 2], "big")
    return None


def let_out(endpoint: ControllerEndpoint, port: int) -> None:
    """Have the switch send probes at a port."""
    for number in range(_PROBES):
        message = parser.OFPPacketOut(
            PROTOCOL,
            buffer_id=0xFFFFFFFF,
            in_port=of.OFPP_NONE,
            actions=[parser.OFPActionOutput(port, 0xFFFF)],
            data=frame(_PROBE_BYTES, number),
        )
        endpoint.write(serialized(message, number))
        time.sleep(_PAUSE_S)
    time.sleep(_ANSWER_S)
    endpoint.messages()


def probes(seen: Iterable[Seen], *, passive: bool = True) -> bool:
    """Whether there are probes; those that an interface itself sent count at a tap of its own only."""
    return any(number_of(one.data) is not None and one.outgoing is not passive for one in seen)
