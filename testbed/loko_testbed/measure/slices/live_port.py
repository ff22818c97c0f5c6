"""A switch between veths in real time: links, sender and taps of a sliced port, whatever slices it.

Everything is in a network namespace of its own. Packet sockets send and receive frames, and the kernel stamps
them. One loop sends for all hosts, since they share a core. The namespace ends with the process that made it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.slicing.document import Port
from loko_testbed.instruments.cables import add_cable
from loko_testbed.instruments.packet_tap import PacketTap
from loko_testbed.instruments.programs import require, run
from loko_testbed.live.datapaths import USER_SPACE, Datapath
from loko_testbed.live.openvswitch import OpenVSwitch, hurry, prefer
from loko_testbed.measure.slices.injection import TAP, join_tap
from loko_testbed.measure.slices.live_sender import HostSender, Waker, calls
from loko_testbed.measure.slices.release import PacketTimes, Release
from loko_testbed.simulation.runner import LOST

SOURCE: Final = "source"
OTHER: Final = "other"
DESTINATION: Final = "destination"
EGRESS: Final = "s1-port2"
"""The interface of the port that is sliced."""
IN_PORTS: Final = {SOURCE: 1, OTHER: 3}
OUT_PORT: Final = 2
"""The switch's numbers of the hosts' ports, and of the sliced one."""
SWITCH: Final = "s1"
_FRAME_ROOM_BYTES: Final = 2048
"""For a frame of any length that waits to be read. The kernel takes twice of it, for its own bookkeeping."""
_LEAST_ROOM_BYTES: Final = 64 * 1024 * 1024
_MOST_ROOM_BYTES: Final = 1024 * 1024 * 1024
_NUMBER_BYTES: Final = 4
_LEAD_S: Final = 0.2
_PRIORITY: Final = 50
_CPUCLOCK_SCHED: Final = 2
"""Low bits of Linux's clock ID of a process's CPU time, below the inverted PID (clock_getcpuclockid(3))."""
_SPIN_NS: Final = 2_000_000
_LONGEST_SPIN_NS: Final = 5_000_000
"""How long the sender may spin before it rests. Bursts are shorter, so a rest does not tear them apart."""
_REST_S: Final = 300e-6
"""How long the sender rests: over 5 % of the time, so that other programs get their turns then.

A program that has waited for a core for more than a second is given 50 ms at once (the kernel's fair server),
even before a real-time thread. A rest that ends before the thread has left its core has no effect.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedFrames:
    """A release as the frames that carry it."""

    release: Release
    frame: bytes
    """The frame that is sent each time, without FCS; only its number is filled in."""
    udp_destination: int
    slot_ns: float
    """Transmission time of a frame on the host's link, with preamble and gap."""

    def departures_ns(self) -> NDArray[np.float64]:
        """Return when each frame can leave its host at the earliest, given the link's rate."""
        turns_ns = np.arange(len(self.release.instants_ns)) * self.slot_ns
        times_ns: NDArray[np.float64] = np.maximum.accumulate(self.release.instants_ns - turns_ns) + turns_ns
        return times_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """A request to send through a port at once; each host sends one release."""

    port: Port
    frames: Sequence[ReleasedFrames]
    sequence_offset: int
    """Offset of each frame's number, 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceReply:
    """Times of the released frames, in the order of the request, and the CPU time of the switch."""

    sent: tuple[PacketTimes, ...]
    """When each frame passed the interfaces of its host and of the destination."""
    switch_cpu_s: float
    """CPU time of the switch meanwhile."""
    seconds: float


@contextmanager
def switch_between(
    folder: Path,
    flows: Sequence[str],
    *,
    hosts: Sequence[str] = (SOURCE,),
    datapath: Datapath = USER_SPACE,
    tapped: bool = False,
) -> Iterator[OpenVSwitch]:
    """Build links and switch in this network namespace. Raises `RunError`.

    `flows`: its table, in the words of ovs-ofctl. `hosts` send to the destination. `tapped`: the switch
    reaches its sliced port through a tap.
    """
    ports = {IN_PORTS[host]: f"{SWITCH}-port{IN_PORTS[host]}" for host in hosts} | {OUT_PORT: EGRESS}
    for host, interface in zip((*hosts, DESTINATION), ports.values(), strict=True):
        add_cable(host, interface, what=f"link of {host}")
    its = ports | {OUT_PORT: TAP} if tapped else ports
    switch = OpenVSwitch(folder / "openvswitch", datapath=datapath)
    try:
        taps = [TAP] if tapped else []
        switch.add_switch(SWITCH, datapath_id=1, ports=its, controller=None, taps=taps)
        if tapped:
            join_tap(TAP, EGRESS)
        for flow in flows:
            run(
                ["ovs-ofctl", "-O", "OpenFlow10", "add-flow", switch.management(SWITCH), flow],
                what="the switch's table",
            )
        yield switch
    finally:
        switch.close()
        for interface in ports.values():
            # The other end may already have gone with its namespace, and this one with it.
            subprocess.run([require("ip"), "link", "del", interface], capture_output=True, check=False)


class _TimestampTap:
    """Collects the kernel's timestamps of our frames at an interface, by their numbers."""

    def __init__(self, interface: str, request: SliceRequest, namespace: Path | None = None) -> None:
        self._tap = PacketTap(
            interface, needs_stamps=False, namespace=namespace, room_bytes=_room_bytes(request)
        )
        self._marks = {_mark(frames.frame) for frames in request.frames}
        self._number = slice(request.sequence_offset, request.sequence_offset + _NUMBER_BYTES)
        self.stamps: dict[int, int] = {}

    def drain(self) -> None:
        """Read all frames that have arrived."""
        for at_ns, _, frame in self._tap.drain():
            if _mark(frame) in self._marks:
                self.stamps.setdefault(int.from_bytes(frame[self._number], "big"), at_ns)

    def array(self, numbers: range) -> NDArray[np.int64]:
        """Return the timestamps of these frames; `LOST` for missing ones."""
        return np.array([self.stamps.get(number, LOST) for number in numbers], dtype=np.int64)


def _room_bytes(request: SliceRequest) -> int:
    """Return room for all frames: a sender whose next frame is always due soon never reads its taps."""
    frames = sum(len(frames.release.instants_ns) for frames in request.frames)
    return min(max(frames * _FRAME_ROOM_BYTES, _LEAST_ROOM_BYTES), _MOST_ROOM_BYTES)


def _mark(frame: bytes) -> tuple[int, bytes]:
    """Return what distinguishes our frames from all others: length and EtherType."""
    return len(frame), frame[12:14]


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process with its threads in ns; /proc has it in ticks of 10 ms only."""
    return time.clock_gettime_ns(~pid << 3 | _CPUCLOCK_SCHED)


def send(request: SliceRequest, switch: OpenVSwitch, *, destination: Path | None = None) -> SliceReply:
    """Send the frames of a request through the switch. Raises `RunError`.

    `destination`: the network namespace of the receiving host, if it is another one.
    """
    switch_pid, releases = switch.pid, [frames.release for frames in request.frames]
    taps = {release.host: _TimestampTap(release.host, request) for release in releases}
    taps[DESTINATION] = _TimestampTap(DESTINATION, request, destination)
    counts = [len(release.instants_ns) for release in releases]
    departures_ns = np.concatenate([frames.departures_ns() for frames in request.frames])
    order = np.argsort(departures_ns, kind="stable")
    # On one core the switch could not run while the sender spins.
    spin_ns = _SPIN_NS if len(os.sched_getaffinity(0)) > 1 else 0
    senders = [
        HostSender(
            frames.release.host,
            frames.frame,
            sequence_offset=request.sequence_offset,
            slot_ns=frames.slot_ns,
            spins=spin_ns > 0,
        )
        for frames in request.frames
    ]
    of = np.repeat(np.arange(len(releases)), counts)[order]
    departures = zip(order.tolist(), departures_ns[order].tolist(), of.tolist(), strict=True)
    waker = None
    if spin_ns:
        waker = Waker(DESTINATION, destination)
    _keep_apart(switch)
    # Sending spins for a few per cent of the time; preemption meanwhile would tear bursts apart.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    time.sleep(_LEAD_S)
    before_ns = cpu_ns(switch_pid)
    begin_ns = rested_ns = time.monotonic_ns()
    for numbers, departure_ns, which in calls(departures, senders):
        due_ns, rested = begin_ns + departure_ns, False
        while due_ns - (now_ns := time.monotonic_ns()) > spin_ns:
            for tap in taps.values():
                tap.drain()
            time.sleep(max((due_ns - time.monotonic_ns() - spin_ns) / 1e9, 0.0))
            rested_ns = time.monotonic_ns()
            rested = True
        if waker is not None and rested:
            waker.wake(due_ns)
        if now_ns - rested_ns > _LONGEST_SPIN_NS:
            time.sleep(_REST_S)
            rested_ns = time.monotonic_ns()
        senders[which].send(numbers, due_ns)
    _receive_rest(taps)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    after_ns = cpu_ns(switch_pid)
    ends = itertools.accumulate(counts, initial=0)
    return SliceReply(
        sent=tuple(
            PacketTimes(taps[release.host].array(numbers), taps[DESTINATION].array(numbers))
            for release, numbers in zip(releases, itertools.starmap(range, pairwise(ends)), strict=True)
        ),
        switch_cpu_s=(after_ns - before_ns) / 1e9,
        seconds=(time.monotonic_ns() - begin_ns) / 1e9,
    )


def _receive_rest(taps: Mapping[str, _TimestampTap]) -> None:
    """Read what still comes: a queue may hold frames of seconds."""
    came = -1
    while came < (came := len(taps[DESTINATION].stamps)):
        time.sleep(_LEAD_S)
        for tap in taps.values():
            tap.drain()


def _keep_apart(switch: OpenVSwitch) -> None:
    """Give this process a core of its own, and the switch priority on the others.

    A switch that wakes on the core of a spinning sender waits; so does one that shares its core with other
    programs of the machine.
    """
    *others, mine = sorted(os.sched_getaffinity(0))
    if not others:
        return
    os.sched_setaffinity(0, {mine})
    if switch.datapath.polls:
        prefer(switch)  # its settings name its core
        return
    hurry(switch.pid, others)
