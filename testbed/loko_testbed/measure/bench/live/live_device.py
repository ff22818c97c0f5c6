"""A switch under test in real time, with the interface that the procedures need."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Self

import dpkt
import numpy as np
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_3 as of13

from loko.control.framing import whole_messages
from loko.control.os_ken_messages import PROTOCOL, flow_mod
from loko.switch_model.scenario import OpenFlow
from loko_testbed.instruments.controller_endpoint import ASYNCHRONOUS, ControllerEndpoint
from loko_testbed.instruments.dialect import DIALECTS
from loko_testbed.instruments.numbered_frame import FCS_BYTES, announcement, number_of
from loko_testbed.instruments.packet_tap import PacketTap, TappedFrame, packet_socket
from loko_testbed.measure.bench.device import MISSING, ControlFrame, Instants, TrainTimes
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.live.arrival_tap import ArrivalTap
from loko_testbed.measure.bench.live.cable_watch import CableWatch
from loko_testbed.measure.bench.live.interruptions import disturbed_mask
from loko_testbed.measure.bench.live.pacing import at_instants, realtime_core
from loko_testbed.simulation.runner import Stall

_COMMAND_AT = 56
"""Offsets in a FLOW_MOD of OpenFlow 1.0."""
_ADD: Final = of.OFPFC_ADD.to_bytes(2, "big")
_MIN_FRAME_BYTES: Final = 64
_QUIET_S: Final = 0.1
"""A switch that has sent nothing for this long holds no more frames."""
_ANSWER_S: Final = 1.0
"""A reply that takes longer will never come. The time allows for a stalled host."""
_WARM_UP_FRAMES: Final = 16
_FIRST_ANSWERS: Final = 24
_BETWEEN_ANSWERS_S: Final = 0.002
_MANY_STALLS: Final = 5_000
"""Longer lists make each report of the emulator slow. Power-cycling it starts a new list."""
_CONTROL_QUIET_S: Final = 0.003
_UNREAD_REPLIES: Final = 50
_LONGEST_S: Final = 10.0


class SwitchMode(Enum):
    """The modes that a bench may be able to bring a switch into."""

    USUAL = "as its inventory says"
    HOUSEKEEPING = "with the jobs of its unmodified firmware"
    WITHOUT_CPU = "with OpenFlow switched off"
    OPENFLOW_13 = "in a session of OpenFlow 1.3"


EnterMode = Callable[[SwitchMode], bool]
"""Brings a switch into a mode, with an empty table. Returns whether it can. Raises `RunError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchInstruments:
    """The instruments of a bench, and the interfaces they use."""

    in_interface: str
    out_interface: str
    in_tap: PacketTap
    out_tap: PacketTap
    control_tap: PacketTap
    """Tap at the controller's end. Sees what the switch sends, and requests if there is no `request_tap`."""
    request_tap: ArrivalTap | None = None
    """Tap at the switch's end of the controller's link, where requests arrive."""
    controller: ControllerEndpoint
    core: int | None
    """Core for the thread that sends; None for any."""
    in_tap_passive: bool = False
    """Whether the tap at the entrance only listens. If not, it sees frames as this machine sends them."""
    line_is_real: bool = True
    """Whether frames take time on the cables. They do not on a bench within one machine."""


class LiveDevice:
    """A switch under test between the instruments of this machine."""

    def __init__(
        self,
        name: str,
        wire: LinkTiming,
        instruments: BenchInstruments,
        *,
        stalls: Callable[[], Sequence[Stall]] = tuple,
        renew: Callable[[], None] | None = None,
        enter: EnterMode = lambda mode: mode is SwitchMode.USUAL,
        lateness: Callable[[], int] = int,
        cables: CableWatch | None = None,
    ) -> None:
        """Start to work with a switch that has connected, or will.

        `stalls` returns when the switch's host lost time since the last call, if that is known. `renew`
        power-cycles the switch, if the bench can. `enter` brings it into another mode. `lateness` returns how
        late its frames usually left since then. `cables` watches whether they keep their links.
        """
        self.name = name
        self.warm_up_frames = _WARM_UP_FRAMES
        self.wire = wire
        self._with = instruments
        self._stalls = stalls
        self._renew = renew
        self._enter = enter
        self._lateness = lateness
        self._cables = cables or CableWatch({})
        self._mode = SwitchMode.USUAL
        self._is_due = False
        """Whether the switch must return to its usual mode before it is used."""
        self._changed = False
        """Whether messages other than those of `load` may have changed the table."""
        self._entries: list[bytes] = []
        """FLOW_MODs that `load` has put into the table, in order."""
        self._listed_stalls = 0
        self._most_action_bytes = 0
        """Largest size of an entry's actions since the switch was switched on."""
        self._sender = packet_socket(instruments.in_interface, 0)

    @property
    def now_ns(self) -> int:
        """See `BenchDevice.now_ns`."""
        return time.time_ns()

    def load(self, messages: Sequence[bytes]) -> None:
        """See `BenchDevice.load`.

        Deletes the old entries strictly and from the last one on: then a Zodiac FX frees their memory and
        none moves (quirks 46 to 49). If other messages have changed the table, it is emptied by a power
        cycle, or by the request that every switch understands. So is a table whose places have held more
        actions, since the board obeys those left behind (quirk 55). Tables of 1.3 do not need this: that
        request empties them, or a power cycle if there are groups or meters.
        """
        self._come_back()
        controller = self._with.controller
        controller.messages()
        if self._mode is SwitchMode.OPENFLOW_13:
            if self._changed:
                self.revive()
            self._changed = any(message[1] != of13.OFPT_FLOW_MOD for message in messages)
            controller.load([DIALECTS[OpenFlow.V1_3].delete_all, *messages])
            return
        actions = [_action_bytes(add) for add in messages]
        fewer = any(count < self._most_action_bytes for count in actions)
        if self._changed or fewer:
            self.revive()
        self._most_action_bytes = max([self._most_action_bytes, *actions])
        self._changed = False
        controller.load([strict_delete(add) for add in reversed(self._entries)])
        self._entries = []
        controller.load([DIALECTS[OpenFlow.V1_0].delete_all, *messages])
        self._entries = list(messages)

    def revive(self) -> bool:
        """See `BenchDevice.revive`."""
        if self._renew is None:
            return False
        self._renew()
        self._begun_anew()
        self._entries, self._listed_stalls, self._most_action_bytes = [], 0, 0
        return True

    def _begun_anew(self) -> None:
        """Put the request tap ahead of the restarted program again, and let the switch answer a few times.

        An emulator learns from these answers how long its host needs to send.
        """
        if self._with.request_tap is not None:
            self._with.request_tap.renew()
        request = DIALECTS[self._with.controller.openflow].echo_request
        for _ in range(_FIRST_ANSWERS):
            self._with.controller.ask(request, of.OFPT_ECHO_REPLY)
            time.sleep(_BETWEEN_ANSWERS_S)

    def send(self, gaps_ns: Sequence[int], frames: Sequence[bytes]) -> TrainTimes:
        """See `BenchDevice.send`."""
        self._come_back()
        bench = self._with
        if self._mode is not SwitchMode.WITHOUT_CPU:
            bench.controller.messages()
        bench.in_tap.purge()
        bench.out_tap.purge()
        line_ns = [self._line_ns(len(data)) for data in frames]
        # A frame starts no earlier than the one before allows.
        least = [0, *line_ns[:-1]]
        steps = [
            (max(gap, free), self._sender.send, data)
            for gap, free, data in zip(gaps_ns, least, frames, strict=True)
        ]
        with realtime_core(bench.core):
            stalls = at_instants(steps)
        left = self._left(frames)
        entered = _stamps(bench.in_tap.read(), frames, outgoing=not bench.in_tap_passive)
        if not (bench.in_tap_passive and bench.line_is_real):
            entered = on_the_line(entered, np.array(line_ns, dtype=np.int64))
        met = disturbed_mask(entered, left, [*stalls, *self._stalls_of_host()])
        return TrainTimes(entered, left, met)

    def _left(self, frames: Sequence[bytes]) -> Instants:
        """Return when each frame came out. Waits until all have, or none has come for a while."""
        left = np.full(len(frames), MISSING, dtype=np.int64)
        until_s = time.monotonic() + _LONGEST_S
        while time.monotonic() < until_s and (left == MISSING).any():
            seen = self._with.out_tap.read(timeout_s=_QUIET_S)
            if not seen:
                break
            more = _stamps(seen, frames, outgoing=False)
            left = np.where(left == MISSING, more, left)
        return left

    def _line_ns(self, kept_bytes: int) -> int:
        length = max(kept_bytes + FCS_BYTES, _MIN_FRAME_BYTES)
        return self.wire.time_ns(self.wire.preamble_bytes + length + self.wire.gap_bytes)

    @property
    def lateness_ns(self) -> int:
        """See `BenchDevice.lateness_ns`."""
        return self._lateness()

    def begin(self, seed: int) -> None:
        """See `BenchDevice.begin`. Nobody can set the phase of a real switch.

        A switch in another mode stays there until it is used, so that parts in one mode do not restart it.
        """
        del seed
        self._cables.begin()
        self._is_due = True

    def _come_back(self) -> None:
        if self._is_due:
            self._into(SwitchMode.USUAL)

    def unplugged(self) -> str | None:
        """See `BenchDevice.unplugged`."""
        return self._cables.unplugged()

    def with_housekeeping(self) -> Self | None:
        """See `BenchDevice.with_housekeeping`."""
        return self if self._into(SwitchMode.HOUSEKEEPING) else None

    def in_openflow13(self) -> Self | None:
        """See `BenchDevice.in_openflow13`."""
        return self if self._into(SwitchMode.OPENFLOW_13) else None

    def without_cpu(self) -> Self | None:
        """See `BenchDevice.without_cpu`."""
        if not self._into(SwitchMode.WITHOUT_CPU):
            return None
        with packet_socket(self._with.out_interface, 0) as out:
            out.send(announcement())
        return self

    def _into(self, mode: SwitchMode) -> bool:
        self._is_due = False
        if mode is not self._mode:
            if not self._enter(mode):
                return False
            self._listed_stalls = self._most_action_bytes = 0
            self._mode, self._entries, self._changed = mode, [], False
            if mode is not SwitchMode.WITHOUT_CPU:
                self._begun_anew()
        return True

    @property
    def acknowledgement_ns(self) -> None:
        """See `BenchDevice.acknowledgement_ns`. The kernel chooses when to acknowledge."""

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        """See `BenchDevice.control`."""
        self._come_back()
        bench = self._with
        bench.controller.messages()
        for tap in self._control_taps():
            tap.purge()
        self._note_changes(segments)
        with realtime_core(bench.core):
            # Unread replies to a long train would fill the socket.
            act = bench.controller.exchange if len(segments) > _UNREAD_REPLIES else bench.controller.write
            stalls = at_instants((gap, act, segment) for gap, segment in zip(gaps_ns, segments, strict=True))
        seen: list[ControlFrame] = []
        until_s = time.monotonic() + _ANSWER_S
        while time.monotonic() < until_s:
            seen += self._openflow(timeout_s=_CONTROL_QUIET_S)
            if any(sighting.from_switch for sighting in seen) and len(seen) > len(segments):
                while more := self._openflow(timeout_s=_CONTROL_QUIET_S):
                    seen += more
                break
        bench.controller.messages()
        # A board that does not answer may hang: have the next load power-cycle it.
        self._changed |= not any(sighting.from_switch for sighting in seen)
        seen.sort(key=lambda sighting: sighting.at_ns)
        return self._marked(seen, [*stalls, *self._stalls_of_host()])

    def _stalls_of_host(self) -> Sequence[Stall]:
        """Return the emulator's stalls since the last call. After many, the next load power-cycles it."""
        new = self._stalls()
        self._listed_stalls += len(new)
        self._changed |= self._listed_stalls > _MANY_STALLS
        return new

    def _note_changes(self, segments: Sequence[bytes]) -> None:
        """Remember what these segments leave in the table. Tables of 1.3 do not need it: they are emptied."""
        if self._mode is SwitchMode.OPENFLOW_13:
            return
        for message in whole_messages(b"".join(segments))[0]:
            if message[1] != of.OFPT_FLOW_MOD:
                continue
            if message[_COMMAND_AT : _COMMAND_AT + 2] == _ADD and not self._changed:
                self._entries.append(message)
                self._most_action_bytes = max(self._most_action_bytes, _action_bytes(message))
            elif self._entries and _same_entry(message, strict_delete(self._entries[-1])):
                self._entries.pop()
            else:
                self._changed = True

    def _control_taps(self) -> list[PacketTap | ArrivalTap]:
        bench = self._with
        return [bench.control_tap] if bench.request_tap is None else [bench.control_tap, bench.request_tap]

    def _openflow(self, *, timeout_s: float) -> list[ControlFrame]:
        """Read the OpenFlow frames that have come, each from the tap where it arrives."""
        bench = self._with
        loopback = bench.control_tap.interface == "lo"  # which shows every frame twice
        sightings = []
        for tap in self._control_taps():
            for sighting in tap.read(timeout_s=timeout_s if tap is bench.control_tap else 0):
                if loopback and not sighting.outgoing:
                    continue
                frame = control_frame(sighting, bench.controller.port)
                if frame is None:
                    continue
                if bench.request_tap is None or frame.from_switch == (tap is bench.control_tap):
                    sightings.append(frame)
        return sightings

    def _marked(self, seen: Sequence[ControlFrame], stalls: Sequence[Stall]) -> list[ControlFrame]:
        """Return the frames, marked as disturbed if the host lost time between the first and the last."""
        if not seen:
            return []
        begin, end = (np.array([sighting.at_ns], dtype=np.int64) for sighting in (seen[0], seen[-1]))
        met = bool(disturbed_mask(begin, end, stalls)[0])
        return [replace(sighting, disturbed=met) for sighting in seen]

    def close(self) -> None:
        """Close the instruments."""
        bench = self._with
        self._sender.close()
        bench.controller.close()
        for tap in (bench.in_tap, bench.out_tap, *self._control_taps()):
            tap.close()


def strict_delete(add: bytes) -> bytes:
    """Return the FLOW_MOD that deletes exactly what this one added."""
    message = ofproto_parser.msg(PROTOCOL, *ofproto_parser.header(add), add)
    return flow_mod(
        message.match,
        [],
        priority=message.priority,
        xid=message.xid,
        command=of.OFPFC_DELETE_STRICT,
        cookie=message.cookie,
    )


def _action_bytes(add: bytes) -> int:
    """Return the length of the actions of a FLOW_MOD."""
    return len(add) - int(of.OFP_FLOW_MOD_SIZE)


def _same_entry(first: bytes, other: bytes) -> bool:
    """Whether two FLOW_MODs have the same match, command and priority."""
    return first[8:48] == other[8:48] and first[_COMMAND_AT:64] == other[_COMMAND_AT:64]


def on_the_line(entered_ns: Instants, line_ns: Instants) -> Instants:
    """Return when each frame begins on the line, from when it was handed to the interface.

    The line takes `line_ns` for each frame, so a frame may have to wait for those before it.
    """
    seen = entered_ns != MISSING
    stamps, times = entered_ns[seen], line_ns[seen]
    begun_ns = entered_ns.copy()
    if len(stamps):
        busy = np.concatenate(([0], np.cumsum(times[:-1])))
        begun_ns[seen] = np.maximum.accumulate(stamps - busy) + busy
    return begun_ns


def control_frame(seen: TappedFrame, port: int) -> ControlFrame | None:
    """Parse a frame with OpenFlow bytes to or from the controller's port.

    None for other frames, and for messages that the switch sent unasked.
    """
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


def _stamps(seen: Sequence[TappedFrame], frames: Sequence[bytes], *, outgoing: bool) -> Instants:
    """Return when each frame of the train was first seen in this direction."""
    first = number_of(frames[0])
    if first is None:
        raise ValueError("the bench's frames carry numbers")
    stamps = np.full(len(frames), MISSING, dtype=np.int64)
    for sighting in seen:
        number = number_of(sighting.data) if sighting.outgoing == outgoing else None
        if number is not None and 0 <= number - first < len(frames) and stamps[number - first] == MISSING:
            stamps[number - first] = sighting.at_ns
    return stamps
