"""A switch under test in real time, as the procedures need it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import dpkt
import numpy as np
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from evaluation.bench.cases import FCS_BYTES, number_of
from evaluation.bench.device import MISSING, ControlFrame, Instants, Passage
from evaluation.bench.equations import Wire
from evaluation.bench.live.controller_endpoint import ASYNCHRONOUS, ControllerEndpoint
from evaluation.bench.live.interruptions import disturbed
from evaluation.bench.live.pacing import at_instants, undisturbed
from evaluation.bench.live.packet_tap import PacketTap, Seen, collect, packet_socket
from evaluation.runner import Stall
from loko.controller.messages import PROTOCOL, serialized

_LENGTH_AT, _COMMAND_AT, _OUT_PORT_AT = 2, 56, 68
"""Places in a FLOW_MOD of OpenFlow 1.0."""
_MIN_FRAME_BYTES: Final = 64
_QUIET_S: Final = 0.1
"""A switch that has given nothing for so long holds nothing."""
_CONTROL_QUIET_S: Final = 0.003
_LONGEST_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """What is plugged in where."""

    in_interface: str
    in_tap: PacketTap
    out_tap: PacketTap
    control_tap: PacketTap
    controller: ControllerEndpoint
    core: int | None
    """For the thread that sends; None for any."""
    in_tap_passive: bool = False
    """Whether the tap at the entrance sees frames on the line, not only on their way to the card."""


class LiveDevice:
    """The instruments around a switch, put together."""

    def __init__(
        self,
        name: str,
        wire: Wire,
        instruments: Instruments,
        stalls: Callable[[], Sequence[Stall]] = tuple,
        renew: Callable[[], None] | None = None,
    ) -> None:
        """Begin to work with a switch that connects.

        `stalls` tells when the switch's host lost time since the last call, if that is known; `renew`
        switches it off and on again, if the bench can.
        """
        self.name = name
        self.wire = wire
        self._with = instruments
        self._stalls = stalls
        self._renew = renew
        self._changed = False
        """Whether messages other than `load`'s may have changed the table."""
        self._entries: list[bytes] = []
        """FLOW_MODs of what `load` has put into the table, in its order."""
        self._sender = packet_socket(instruments.in_interface, 0)

    @property
    def now_ns(self) -> int:
        """As `Device.now_ns`."""
        return time.time_ns()

    def load(self, messages: Sequence[bytes]) -> None:
        """As `Device.load`.

        Strictly and from the end: then a Zodiac FX frees the memory of its entries and none moves (quirks 46
        to 49). A table that other messages have changed is emptied by switching off, or in the way that every
        switch understands.
        """
        controller = self._with.controller
        controller.messages()
        if self._changed and self._renew:
            self._renew()
            self._entries = []
        self._changed = False
        controller.load([strict_delete(add) for add in reversed(self._entries)])
        self._entries = []
        controller.load([delete_all(), *messages])
        self._entries = list(messages)

    def send(self, gaps_ns: Sequence[int], frames: Sequence[bytes]) -> Passage:
        """As `Device.send`."""
        bench = self._with
        bench.controller.messages()
        bench.in_tap.forget()
        bench.out_tap.forget()
        line_ns = [self._line_ns(len(data)) for data in frames]
        # A frame begins no earlier than the one before lets it.
        least = [0, *line_ns[:-1]]
        steps = [
            (max(gap, free), self._sender.send, data)
            for gap, free, data in zip(gaps_ns, least, frames, strict=True)
        ]
        with undisturbed(bench.core):
            stalls = at_instants(steps)
        until_s = time.monotonic() + _LONGEST_S
        left = _stamps(collect(bench.out_tap, quiet_s=_QUIET_S, until_s=until_s), frames, outgoing=False)
        entered = _stamps(bench.in_tap.read(), frames, outgoing=not bench.in_tap_passive)
        if not bench.in_tap_passive:
            entered = on_the_line(entered, np.array(line_ns, dtype=np.int64))
        met = disturbed(entered, left, [*stalls, *self._stalls()])
        return Passage(entered, left, met)

    def _line_ns(self, kept_bytes: int) -> int:
        length = max(kept_bytes + FCS_BYTES, _MIN_FRAME_BYTES)
        return self.wire.time_ns(self.wire.preamble_bytes + length + self.wire.gap_bytes)

    def begin(self, seed: int) -> None:
        """As `Device.begin`; a real switch is at a phase that nobody sets."""

    def with_housekeeping(self) -> None:
        """As `Device.with_housekeeping`: not from here."""

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        """As `Device.control`."""
        bench = self._with
        bench.controller.messages()
        bench.control_tap.forget()
        self._changed |= any(kind == of.OFPT_FLOW_MOD for one in segments for kind in message_types(one))
        with undisturbed(bench.core):
            at_instants(
                (gap, bench.controller.write, segment) for gap, segment in zip(gaps_ns, segments, strict=True)
            )
        seen: list[ControlFrame] = []
        until_s = time.monotonic() + _QUIET_S
        while time.monotonic() < until_s:
            seen += self._openflow(bench.control_tap.read(patience_s=_CONTROL_QUIET_S))
            if seen and seen[-1].from_switch and len(seen) > len(segments):
                seen += self._openflow(collect(bench.control_tap, quiet_s=_CONTROL_QUIET_S, until_s=until_s))
                break
        bench.controller.messages()
        return sorted(seen, key=lambda one: one.at_ns)

    def _openflow(self, frames: Sequence[Seen]) -> list[ControlFrame]:
        loopback = self._with.control_tap.interface == "lo"  # which shows every frame twice
        found = []
        for one in frames:
            if loopback and not one.outgoing:
                continue
            frame = control_frame(one, self._with.controller.port)
            if frame is not None:
                found.append(frame)
        return found

    def close(self) -> None:
        """Put the instruments away."""
        bench = self._with
        self._sender.close()
        bench.controller.close()
        for tap in (bench.in_tap, bench.out_tap, bench.control_tap):
            tap.close()


def delete_all() -> bytes:
    """FLOW_MOD that empties the table."""
    message = parser.OFPFlowMod(
        PROTOCOL,
        parser.OFPMatch(wildcards=of.OFPFW_ALL),
        cookie=0,
        command=of.OFPFC_DELETE,
        out_port=of.OFPP_NONE,
        actions=[],
    )
    return serialized(message, 1)


def message_types(segment: bytes) -> list[int]:
    """Types of the OpenFlow messages in a segment."""
    found, at = [], 0
    while at + of.OFP_HEADER_SIZE <= len(segment):
        found.append(segment[at + 1])
        at += max(int.from_bytes(segment[at + 2 : at + 4], "big"), of.OFP_HEADER_SIZE)
    return found


def strict_delete(add: bytes) -> bytes:
    """FLOW_MOD that deletes exactly what this one added."""
    message = bytearray(add[: of.OFP_FLOW_MOD_SIZE])
    struct.pack_into("!H", message, _LENGTH_AT, len(message))
    struct.pack_into("!H", message, _COMMAND_AT, of.OFPFC_DELETE_STRICT)
    struct.pack_into("!H", message, _OUT_PORT_AT, of.OFPP_NONE)
    return bytes(message)


def on_the_line(entered_ns: Instants, line_ns: Instants) -> Instants:
    """When a line that needs so long for each frame begins it, from when it was handed to the interface."""
    seen = entered_ns != MISSING
    stamps, times = entered_ns[seen], line_ns[seen]
    found = entered_ns.copy()
    if len(stamps):
        busy = np.concatenate(([0], np.cumsum(times[:-1])))
        found[seen] = np.maximum.accumulate(stamps - busy) + busy
    return found


def control_frame(seen: Seen, port: int) -> ControlFrame | None:
    """A frame with OpenFlow bytes of the controller's port that somebody asked for; None for others."""
    try:
        ip = dpkt.ethernet.Ethernet(seen.data).data
    except dpkt.UnpackError:
        return None
    tcp = ip.data if isinstance(ip, dpkt.ip.IP) else None
    if not isinstance(tcp, dpkt.tcp.TCP) or port not in (tcp.sport, tcp.dport) or len(tcp.data) < 8:
        return None
    payload, from_switch = bytes(tcp.data), tcp.dport == port
    if from_switch and payload[1] in ASYNCHRONOUS:
        return None
    length = max(len(seen.data) + FCS_BYTES, _MIN_FRAME_BYTES)
    return ControlFrame(seen.at_ns, from_switch, length, payload)


def _stamps(seen: Sequence[Seen], frames: Sequence[bytes], *, outgoing: bool) -> Instants:
    """The first instant at which each frame of the train was seen in a direction."""
    first = number_of(frames[0])
    if first is None:
        raise ValueError("the bench's frames carry numbers")
    stamps = np.full(len(frames), MISSING, dtype=np.int64)
    for one in seen:
        number = number_of(one.data) if one.outgoing == outgoing else None
        if number is not None and 0 <= number - first < len(frames) and stamps[number - first] == MISSING:
            stamps[number - first] = one.at_ns
    return stamps
