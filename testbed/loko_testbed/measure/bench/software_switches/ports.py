"""The ports of a software switch: pairs of veths, lines of one rate with priority queues, cables, taps.

A veth has no rate. So tc's HTB at the switch's end of each pair makes a line: frames count with preamble, gap
and FCS, and a queue of higher priority is served first. A tap at the same end stamps when a frame has
arrived, and, behind the queues, when it departs.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np

from loko.units import NS_PER_S
from loko_testbed.instruments.numbered_frame import FCS_BYTES, number_of
from loko_testbed.instruments.packet_tap import PacketTap, TappedFrame, packet_socket, stamping_socket
from loko_testbed.instruments.programs import run
from loko_testbed.instruments.traffic_control import Htb, class_id, htb_rates, redirect
from loko_testbed.measure.bench.device import MISSING
from loko_testbed.measure.bench.live.interruptions import disturbed_mask
from loko_testbed.measure.bench.live.pacing import STALL_NS, at_instants, realtime_core
from loko_testbed.measure.predictability.subject import FrameStream, StreamTimes, SwitchUnderTest
from loko_testbed.simulation.runner import LOST, RunError, Stall

QUEUES: Final = 8
QUEUE_FRAMES: Final = 64
"""Room of each queue."""
_OVERHEAD_BYTES: Final = 24
"""Preamble, gap and FCS, which the kernel does not see."""
_SHORTEST_BYTES: Final = 84
_LINE_CLASS: Final = 0xFF
_BUCKET_BYTES: Final = 1600
"""A little more than the longest frame: less would drop it, more would let a burst pass at once."""
_NUMBER_BYTES: Final = 4
_MOST_ROUNDS: Final = 400
_ROUND_S: Final = 0.05
_MOST_QUIET_S: Final = 1.0
"""A switch that has sent nothing for this long holds no more frames."""
_LOOK_GAP_NS: Final = 1_000_000
_LOOK_NS: Final = 3_000_000_000
_GLANCE_NS: Final = 500_000_000
_LAST_NUMBER: Final = 2**32 - 1
"""The number of a nudge, which no other frame has."""
_REST_S: Final = 0.1
"""A thread that polls for the switch on the core that is looked at needs turns of its own: after a second
without one the kernel would take them, 50 ms at a time, and that would look like a pause of the machine."""


def near(port: int) -> str:
    """Return the switch's end of a port's pair."""
    return f"port{port}"


def far(port: int) -> str:
    """Return the end where frames are sent."""
    return f"host{port}"


def pairs(ports: int) -> list[tuple[str, str]]:
    """Return the names of all pairs."""
    return [(far(port), near(port)) for port in range(1, ports + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortInstruments:
    """Senders and taps at the ports of a switch."""

    core: int
    """Core of the thread that sends."""
    switch_core: int
    """Core where the switch forwards."""
    waited_ns: Callable[[], int]
    """Returns for how long the thread that forwards has waited for a core, since it began."""
    keeps_back: bool = False
    """Whether the switch keeps a frame that found no room in a queue of tc until it has another to send."""


class SwitchPorts:
    """The ports of one switch, in this thread's network."""

    def __init__(self, subject: SwitchUnderTest, instruments: PortInstruments) -> None:
        """Give each port a line with queues. The pairs of veths are there already. Raises `RunError`."""
        self._subject = subject
        self._with = instruments
        self._cabled: set[int] = set()
        self._first = 0
        """Number of the next frame, by which it differs from those that earlier runs left in the switch."""
        self._asks = stamping_socket()
        for port in range(1, subject.ports + 1):
            make_line(near(port), subject.link_rate_bps)

    def longest_pause_ns(self) -> int:
        """Watch the switch's core for a while; return the longest time this machine did other work there."""
        steps = [(_LOOK_GAP_NS, _nothing, b"")] * (_GLANCE_NS // _LOOK_GAP_NS)
        longest_ns = STALL_NS
        for _ in range(_LOOK_NS // _GLANCE_NS):
            with realtime_core(self._with.switch_core):
                stalls = at_instants(steps)
            longest_ns = max([longest_ns, *(stall.duration_ns for stall in stalls)])
            time.sleep(_REST_S)
        return longest_ns

    def close(self) -> None:
        """Close the socket that keeps the kernel's time stamping on."""
        self._asks.close()

    def cabled(self, cables: Mapping[int, int]) -> Self:
        """Connect these ports, and no others. Raises `RunError`."""
        for port in self._cabled:
            run(["tc", "qdisc", "del", "dev", far(port), "clsact"], what="a cable")
        self._cabled = {*cables, *cables.values()}
        for a, b in (*cables.items(), *((b, a) for a, b in cables.items())):
            redirect(far(a), far(b), what="a cable")
        return self

    def send(self, streams: Sequence[FrameStream], *, drain_ns: int) -> list[StreamTimes]:
        """Send the streams' frames at their instants. Raises `RunError`."""
        if self._first + sum(len(stream.instants_ns) for stream in streams) > _LAST_NUMBER:
            self._first = 0
        frames = _NumberedFrames.of(streams, self._first)
        self._first += frames.count
        used = sorted({port for stream in streams for port in (stream.enters, stream.leaves)})
        watch = _Waits(self._with.waited_ns)
        with ExitStack() as stack:
            taps = {port: stack.enter_context(PacketTap(near(port))) for port in used}
            sends: dict[int, Callable[[bytes], object]] = {}
            for port in {stream.enters for stream in streams}:
                # Frames that wait in the switch count as the sender's, who must not wait for them.
                opened = packet_socket(far(port), 0, never_waits=True)
                stack.callback(opened.close)
                sends[port] = watch.before(_offering(opened))
            steps = [
                (gap_ns, sends[int(frames.enters[at])], frames.numbered(at))
                for gap_ns, at in frames.in_order()
            ]
            with realtime_core(self._with.core):
                stalls = at_instants(steps)
            nudges = _nudges(streams) if self._with.keeps_back else []
            quiet_s = 0.0
            for _ in range(_MOST_ROUNDS):
                news = sum(
                    frames.note(port, seen) for port, tap in taps.items() for seen in tap.read(timeout_s=0)
                )
                quiet_s = 0.0 if news else quiet_s + _ROUND_S
                if frames.all_left or quiet_s > min(drain_ns / NS_PER_S, _MOST_QUIET_S):
                    break
                for port, nudge in nudges:
                    sends[port](nudge)
                watch.sleep(_ROUND_S)
            if nudges:
                time.sleep(_ROUND_S)  # the last of them leave, too
        return frames.sent(self._subject, [*stalls, *watch.stalls])


class _NumberedFrames:
    """The frames of several streams, numbered, and when each arrived and departed."""

    def __init__(self, streams: Sequence[FrameStream], counts: Sequence[int], first: int) -> None:
        self._streams = streams
        self._first = first
        self._firsts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self._of = np.repeat(np.arange(len(streams)), counts)
        self.enters = np.array([stream.enters for stream in streams])[self._of]
        self._leaves = np.array([stream.leaves for stream in streams])[self._of]
        self._arrived_ns = np.full(len(self._of), MISSING, dtype=np.int64)
        self._departed_ns = np.full(len(self._of), MISSING, dtype=np.int64)

    @classmethod
    def of(cls, streams: Sequence[FrameStream], first: int) -> Self:
        """Number the frames of these streams, one stream after the other, from `first` on."""
        return cls(streams, [len(stream.instants_ns) for stream in streams], first)

    @property
    def count(self) -> int:
        """How many frames there are."""
        return len(self._of)

    def in_order(self) -> Iterator[tuple[int, int]]:
        """Yield the gap in ns before each frame, and its place, in the order of sending."""
        instants_ns = np.concatenate([stream.instants_ns for stream in self._streams])
        order = np.argsort(instants_ns, kind="stable")
        gaps_ns = np.diff(instants_ns[order], prepend=0)
        yield from zip(gaps_ns.tolist(), order.tolist(), strict=True)

    def numbered(self, place: int) -> bytes:
        """Return the frame at a place among all, with its number, without FCS."""
        return _numbered(self._streams[int(self._of[place])].frame, self._first + place)

    def note(self, port: int, seen: TappedFrame) -> bool:
        """Note what the tap of a port saw. Return whether it is one of the frames."""
        number = number_of(seen.data)
        if number is None or not self._first <= number < self._first + self.count:
            return False
        place = number - self._first
        if seen.outgoing and self._leaves[place] == port:
            self._departed_ns[place] = seen.at_ns
        elif not seen.outgoing and self.enters[place] == port and self._arrived_ns[place] == MISSING:
            self._arrived_ns[place] = seen.at_ns
        return True

    @property
    def all_left(self) -> bool:
        """Whether every frame has departed."""
        return bool((self._departed_ns != MISSING).all())

    def sent(self, subject: SwitchUnderTest, stalls: Sequence[Stall]) -> list[StreamTimes]:
        """Return what became of the frames, by stream.

        A tap sees a frame when all of it has arrived, so its first bit was sent that much earlier.
        """
        met = disturbed_mask(self._arrived_ns, self._departed_ns, [_with_its_wake(stall) for stall in stalls])
        wires_ns = np.array([subject.wire_ns(len(stream.frame) + FCS_BYTES) for stream in self._streams])
        sent_ns = self._arrived_ns - wires_ns[self._of]
        received_ns = np.where(self._departed_ns == MISSING, LOST, self._departed_ns)
        return [
            StreamTimes(sent_ns[begin:end], received_ns[begin:end], met[begin:end])
            for begin, end in pairwise(self._firsts)
        ]


class _Waits:
    """Notes when the thread that forwards waited for a core although it had something to do."""

    def __init__(self, waited_ns: Callable[[], int]) -> None:
        self.stalls: list[Stall] = []
        self._waited_ns = waited_ns
        self._total_ns, self._at_ns = waited_ns(), time.time_ns()

    def before(self, send: Callable[[bytes], object]) -> Callable[[bytes], object]:
        """Return a function that calls `look`, then sends."""

        def looks_and_sends(data: bytes) -> None:
            self.look()
            send(data)

        return looks_and_sends

    def sleep(self, seconds: float) -> None:
        """Sleep, then call `look`."""
        time.sleep(seconds)
        self.look()

    def look(self) -> None:
        """Note a stall if the thread has waited too long since the last look."""
        total_ns, now_ns = self._waited_ns(), time.time_ns()
        if (more_ns := total_ns - self._total_ns) > STALL_NS:
            # The kernel counts a wait when it ends, so it may have begun long before the last look.
            start_ns = min(self._at_ns, now_ns - more_ns)
            self.stalls.append(Stall(start_ns=start_ns, duration_ns=now_ns - start_ns))
        self._total_ns, self._at_ns = total_ns, now_ns


def _offering(sender: socket.socket) -> Callable[[bytes], object]:
    """Return the function that sends a frame, if the machine has room for it.

    One that finds none is not seen at the switch's end, so it does not count.
    """

    def offers(data: bytes) -> None:
        try:
            sender.send(data)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                reason = os.strerror(error.errno or 0).lower()
                raise RunError(f"{sender.getsockname()[0]}: cannot send ({reason})") from None

    return offers


def _nudges(streams: Sequence[FrameStream]) -> list[tuple[int, bytes]]:
    """Return a frame, and where it enters, for each port that the streams leave by."""
    through = {stream.leaves: stream for stream in streams}
    return [(stream.enters, _numbered(stream.frame, _LAST_NUMBER)) for stream in through.values()]


def _numbered(frame: bytes, number: int) -> bytes:
    return frame[:-_NUMBER_BYTES] + number.to_bytes(_NUMBER_BYTES, "big")


def _nothing(data: bytes) -> None:
    del data


def _with_its_wake(stall: Stall) -> Stall:
    """Return a stall extended by the time needed to work off what it held up."""
    return Stall(start_ns=stall.start_ns, duration_ns=2 * stall.duration_ns)


def queue_class(queue: int) -> str:
    """Return the class of HTB that is a queue; the last queue has the highest priority.

    It is the one that the kernel's datapath of Open vSwitch names for the action enqueue.
    """
    return class_id(1 + queue)


def make_line(interface: str, rate_bps: int) -> None:
    """Give an interface a line with strict-priority queues. Unclassified frames wait in the first queue."""
    count = ["overhead", str(_OVERHEAD_BYTES), "mpu", str(_SHORTEST_BYTES)]
    bucket = (_BUCKET_BYTES, _BUCKET_BYTES)
    line = Htb(interface, default=1, what=f"the line of {interface}")
    line.add(_LINE_CLASS, [*htb_rates(rate_bps, rate_bps, *bucket), *count])
    # A rate of almost nothing: what a queue gets it borrows, and priorities decide who may.
    borrowing = [*htb_rates(8, rate_bps, *bucket), *count, "quantum", "1514"]
    for queue in range(QUEUES):
        settings, leaf = [*borrowing, "prio", str(QUEUES - 1 - queue)], ["pfifo", "limit", str(QUEUE_FRAMES)]
        line.add(1 + queue, settings, below=_LINE_CLASS, leaf=leaf)
