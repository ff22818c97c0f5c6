"""Frames of a live lab between taps and files: put in order, and commented. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Final

from loko.topology.lab import Endpoint, Lab
from loko.units import NS_PER_MS
from loko_testbed.live.lab_capture.openflow_sessions import OpenFlowSession, OpenFlowSessions, TcpSegment
from loko_testbed.live.messages import CONTROLLER_PORT
from loko_testbed.simulation.captures.control_stream import Payload
from loko_testbed.simulation.captures.flow_comments import KnownFlows
from loko_testbed.simulation.captures.pcapng import CapturedPacket
from loko_testbed.simulation.captures.places import (
    CONTROLLER,
    CapturePlace,
    place_of_port,
    place_of_session,
    quirks_of,
)
from loko_testbed.simulation.captures.quirk_comments import (
    frame_of,
    is_of_frame,
    names_a_quirk,
    session_comments,
)
from loko_testbed.simulation.virtual import BoardEvent

_HELD_NS: Final = 200 * NS_PER_MS
"""Within this time taps are read and emulators report, so that frames can be put in order and commented."""
_REPORTED_NS: Final = _HELD_NS // 4
"""After this time the frames to which an event of a board belongs have been seen."""
NO_SWITCH: Final = CapturePlace(CONTROLLER, "lo")
"""Place of segments of connections whose switch has not yet said its datapath id."""


@dataclass(slots=True, eq=False)
class HeldFrame:
    """A frame at an interface."""

    at_ns: int
    place: CapturePlace | None
    """None: that of its session."""
    is_outbound: bool
    data: bytes
    session: OpenFlowSession | None = None
    payload: Payload | None = None
    """Its part of the session."""
    remarks: list[str] = field(default_factory=list)


_time: Final[Callable[[HeldFrame], int]] = attrgetter("at_ns")


class HeldFrames:
    """The frames that have passed cables and sessions of a lab and are in no file yet."""

    def __init__(self, lab: Lab) -> None:
        """Begin without frames."""
        self.flows = KnownFlows.guaranteed(lab, ())
        """The flows that comments name from now on."""
        self._place_of = cache(lambda end: place_of_port(lab, end.node, end.port))
        self._quirks = {name: quirks_of(switch) for name, switch in lab.switches.items()}
        self._sessions = OpenFlowSessions({switch.datapath_id: name for name, switch in lab.switches.items()})
        self._frames: list[HeldFrame] = []
        self._events: list[BoardEvent] = []
        self._missed: defaultdict[CapturePlace | None, int] = defaultdict(int)

    def passed(self, at_ns: int, source: Endpoint, destination: Endpoint, data: bytes) -> None:
        """Take a frame that has passed a cable."""
        is_control = CONTROLLER in (source.node, destination.node)
        segment = TcpSegment.parse(data, CONTROLLER_PORT) if is_control else None
        for end, is_outbound in ((source, True), (destination, False)):
            frame = HeldFrame(at_ns, self._place_of(end), is_outbound, data)
            if segment is not None and end.node != CONTROLLER:
                self._assign(frame, segment)
            self._hold(frame)

    def passed_loopback(self, at_ns: int, data: bytes) -> None:
        """Take a frame of the network of the switches themselves; only its sessions are kept."""
        segment = TcpSegment.parse(data, CONTROLLER_PORT)
        if segment is not None:
            frame = HeldFrame(at_ns, None, segment.is_from_switch, data)
            self._assign(frame, segment)
            self._hold(frame)

    def missed(self, destination: Endpoint | None, count: int) -> None:
        """Note that a tap has missed frames: at the end of a cable, or else of sessions."""
        self._missed[None if destination is None else self._place_of(destination)] += count

    def reported(self, event: BoardEvent) -> None:
        """Take what a board has reported."""
        if names_a_quirk(event):
            self._events.append(event)

    def release(self, now_ns: int | None = None) -> Iterator[tuple[CapturePlace, CapturedPacket]]:
        """Yield, in order of time, what need not be held any longer; everything if no time is given."""
        self._frames.sort(key=_time)
        for event in self._events:
            if now_ns is None or event.at_ns <= now_ns - _REPORTED_NS:
                self._remark(event)
        self._events = [e for e in self._events if now_ns is not None and e.at_ns > now_ns - _REPORTED_NS]
        count = (
            len(self._frames) if now_ns is None else bisect_right(self._frames, now_ns - _HELD_NS, key=_time)
        )
        released, self._frames = self._frames[:count], self._frames[count:]
        for frame in released:
            packet = CapturedPacket(frame.at_ns, 0, frame.is_outbound, frame.data, self._comment(frame))
            yield self._place(frame), packet

    def _assign(self, frame: HeldFrame, segment: TcpSegment) -> None:
        frame.session = self._sessions.session_of(segment)
        frame.payload = Payload(frame.at_ns, segment.is_from_switch, segment.payload)

    def _hold(self, frame: HeldFrame) -> None:
        if missed := self._missed.pop(frame.place, 0):
            frame.remarks.append(f"{missed} frames before it were missed: the machine is too busy")
        self._frames.append(frame)

    def _place(self, frame: HeldFrame) -> CapturePlace:
        if frame.place is not None:
            return frame.place
        if frame.session is None or frame.session.switch is None:
            return NO_SWITCH
        return place_of_session(frame.session.switch)

    def _comment(self, frame: HeldFrame) -> str:
        flow = self.flows.flow_of(frame.data)
        said = [flow.comment()] if flow else []
        if frame.session is not None and frame.payload is not None:
            said += frame.session.comments(frame.payload, self._quirks)
        return "; ".join(dict.fromkeys([*said, *frame.remarks]))

    def _remark(self, event: BoardEvent) -> None:
        """Add an event to the frames that it is about."""
        if not is_of_frame(event):
            session = [
                (frame, frame.payload)
                for frame in self._frames
                if frame.payload
                and frame.payload.data
                and frame.session
                and frame.session.switch == event.board
            ]
            payloads = [payload for _, payload in session]
            for place, text in session_comments(payloads, [event], "spec").items():
                session[place][0].remarks.append(text)
            if session:
                return
        received = self._received_by(event.board)
        number = frame_of(event, [(frame.at_ns, frame.data) for frame in received])
        if number is not None:
            received[number].remarks.append(event.text)

    def _received_by(self, switch: str) -> Sequence[HeldFrame]:
        """Return the frames that have come to the ports of a switch."""
        return [
            frame
            for frame in self._frames
            if frame.place is not None and frame.place.file == switch and not frame.is_outbound
        ]
