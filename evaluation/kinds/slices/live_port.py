"""A switch between veths in real time: links, sender and taps of a sliced port, whatever slices it.

Everything is in a network namespace of its own. Packet sockets send and receive frames, and the kernel stamps
them. One loop sends for all hosts, since they share a core. The namespace ends with the process that made it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.live.datapaths import LEAST_NICE, USER_SPACE, Datapath
from evaluation.live.interfaces import switch_off_offloads
from evaluation.live.openvswitch import OpenVSwitch, hurry
from evaluation.live.programs import require, run
from evaluation.runner import LOST
from loko.slices.document import Port

SOURCE: Final = "source"
OTHER: Final = "other"
DESTINATION: Final = "destination"
EGRESS: Final = "s1-port2"
"""The interface of the port that is sliced."""
IN_PORTS: Final = {SOURCE: 1, OTHER: 3}
OUT_PORT: Final = 2
"""The switch's numbers of the hosts' ports, and of the sliced one."""
SWITCH: Final = "s1"
_SO_RCVBUFFORCE: Final = 33
_SO_TIMESTAMPNS: Final = 35
_ALL_PROTOCOLS: Final = 0x0003
_IPV4: Final = 0x0800
_BUFFER_BYTES: Final = 64 * 1024 * 1024
_ANCILLARY_BYTES: Final = 64
_LEAD_S: Final = 0.2
_PRIORITY: Final = 50
_CPUCLOCK_SCHED: Final = 2
"""Low bits of Linux's clock ID of a process's CPU time, below the inverted PID (clock_getcpuclockid(3))."""
_SPIN_NS: Final = 2_000_000
_UDP_DESTINATION_AT: Final = 36
"""In an Ethernet frame with an IPv4 header without options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Frames that a host sends through a queue."""

    host: str
    queue: int
    """Its number."""
    frame: bytes
    """The frame without FCS."""
    sequence_offset: int
    """Offset of each frame's number, 32 bits."""
    instants_ns: NDArray[np.int64]
    """Release times; frames of the same instant follow each other at the rate of the host's link."""
    slot_ns: float
    """Transmission time of a frame on that link, with preamble and gap."""

    @property
    def udp_destination(self) -> int:
        """The UDP port to which all of them go."""
        return int.from_bytes(self.frame[_UDP_DESTINATION_AT : _UDP_DESTINATION_AT + 2], "big")

    def departures_ns(self) -> NDArray[np.float64]:
        """When each can leave its host."""
        turns_ns = np.arange(len(self.instants_ns)) * self.slot_ns
        times_ns: NDArray[np.float64] = np.maximum.accumulate(self.instants_ns - turns_ns) + turns_ns
        return times_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to send through a port at once; each host sends frames of one kind."""

    port: Port
    frames: tuple[Frames, ...]


class Passed(NamedTuple):
    """When each frame passed the interfaces of its host and of the destination, in order of sending."""

    sent_ns: NDArray[np.int64]
    received_ns: NDArray[np.int64]
    """`LOST` for frames that never arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of the frames of each host, in the order of the request."""

    passed: tuple[Passed, ...]
    switch_cpu_s: float
    """CPU time of the switch meanwhile."""
    seconds: float


@contextmanager
def switch_between(
    folder: Path, flows: Sequence[str], *, hosts: Sequence[str] = (SOURCE,), datapath: Datapath = USER_SPACE
) -> Iterator[OpenVSwitch]:
    """Build links and switch in this network namespace. Raises `RunError`.

    `flows`: its table, in the words of ovs-ofctl. `hosts` send to the destination.
    """
    ports = {_port(host): IN_PORTS[host] for host in hosts} | {EGRESS: OUT_PORT}
    _links({**{host: _port(host) for host in hosts}, DESTINATION: EGRESS})
    switch = OpenVSwitch(folder / "openvswitch", datapath=datapath)
    try:
        numbered = {number: interface for interface, number in ports.items()}
        switch.add_switch(SWITCH, datapath_id=1, ports=numbered, controller=None)
        for flow in flows:
            run(
                ["ovs-ofctl", "-O", "OpenFlow10", "add-flow", switch.management(SWITCH), flow],
                what="the switch's table",
            )
        yield switch
    finally:
        switch.close()
        for interface in ports:
            # The other end may already have gone with its namespace, and this one with it.
            subprocess.run([require("ip"), "link", "del", interface], capture_output=True, check=False)


def _port(host: str) -> str:
    """Return the switch's interface where a host is connected that sends."""
    return f"s1-port{IN_PORTS[host]}"


def _links(cables: Mapping[str, str]) -> None:
    for host, port in cables.items():
        run(["ip", "link", "add", host, "type", "veth", "peer", "name", port], what=f"link of {host}")
        for interface in (host, port):
            switch_off_offloads(interface, what=interface)
            run(
                ["sysctl", "-q", "-w", f"net.ipv6.conf.{interface}.disable_ipv6=1"],
                what=f"{interface}: no IPv6",
            )
            run(["ip", "link", "set", interface, "up"], what=interface)


class _Tap:
    """Collects the kernel's timestamps of our frames at an interface, by their numbers."""

    def __init__(self, interface: str, kinds: Sequence[Frames]) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.bind((interface, 0))
        self._socket.setblocking(False)
        self._kinds = {_mark(kind.frame): kind.sequence_offset for kind in kinds}
        self.stamps: dict[int, int] = {}

    def drain(self) -> None:
        """Read all frames that have arrived."""
        for frame, stamp_ns in self._frames():
            offset = self._kinds.get(_mark(frame))
            if offset is not None:
                number = int.from_bytes(frame[offset : offset + 4], "big")
                self.stamps.setdefault(number, stamp_ns)

    def _frames(self) -> Iterator[tuple[bytes, int]]:
        while True:
            try:
                frame, ancillary, _, _ = self._socket.recvmsg(2048, _ANCILLARY_BYTES)
            except BlockingIOError:
                return
            for _, kind, data in ancillary:
                if kind == _SO_TIMESTAMPNS:
                    seconds, nanoseconds = struct.unpack("ll", data[:16])
                    yield frame, seconds * 1_000_000_000 + nanoseconds

    def array(self, numbers: range) -> NDArray[np.int64]:
        """Return the timestamps of these frames; `LOST` for missing ones."""
        return np.array([self.stamps.get(number, LOST) for number in numbers], dtype=np.int64)


def _mark(frame: bytes) -> tuple[int, bytes]:
    """Return what tells our frames of one kind from all else: length and type."""
    return len(frame), frame[12:14]


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process with its threads in ns; /proc has it in ticks of 10 ms only."""
    return time.clock_gettime_ns(~pid << 3 | _CPUCLOCK_SCHED)


def send(request: Request, switch: OpenVSwitch) -> Reply:
    """Send the frames of a request through the switch. Raises `RunError`."""
    switch_pid, kinds = switch.pid, request.frames
    taps = {host: _Tap(host, kinds) for host in (*(kind.host for kind in kinds), DESTINATION)}
    ends = np.cumsum([len(kind.instants_ns) for kind in kinds]).tolist()
    numbers = [range(begin, end) for begin, end in pairwise([0, *ends])]
    departures_ns = np.concatenate([kind.departures_ns() for kind in kinds])
    order = np.argsort(departures_ns, kind="stable")
    senders = [_Sender(kind) for kind in kinds]
    of = np.repeat(np.arange(len(kinds)), [len(kind.instants_ns) for kind in kinds])
    steps = zip(order.tolist(), departures_ns[order].tolist(), of[order].tolist(), strict=True)
    _keep_apart(switch)
    # Sending spins for a few per cent of the time; preemption meanwhile would tear bursts apart.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    time.sleep(_LEAD_S)
    before_ns = cpu_ns(switch_pid)
    begin_ns = time.monotonic_ns()
    for number, departure_ns, kind in steps:
        due_ns = begin_ns + departure_ns
        while due_ns - time.monotonic_ns() > _SPIN_NS:
            for tap in taps.values():
                tap.drain()
            time.sleep(max((due_ns - time.monotonic_ns() - _SPIN_NS) / 1e9, 0.0))
        senders[kind].send(number, due_ns)
    time.sleep(_LEAD_S)
    for tap in taps.values():
        tap.drain()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    after_ns = cpu_ns(switch_pid)
    there = taps[DESTINATION]
    return Reply(
        passed=tuple(
            Passed(taps[kind.host].array(own), there.array(own))
            for kind, own in zip(kinds, numbers, strict=True)
        ),
        switch_cpu_s=(after_ns - before_ns) / 1e9,
        seconds=(time.monotonic_ns() - begin_ns) / 1e9,
    )


class _Sender:
    """Sends the frames of one host, no faster than its link."""

    def __init__(self, frames: Frames) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.bind((frames.host, _IPV4))
        self._frame = bytearray(frames.frame)
        self._place = slice(frames.sequence_offset, frames.sequence_offset + 4)
        self._slot_ns = frames.slot_ns
        self._free_ns = 0.0

    def send(self, number: int, due_ns: float) -> None:
        """Send the frame of that number when it is due and the link is free."""
        self._frame[self._place] = number.to_bytes(4, "big")
        at_ns = max(due_ns, self._free_ns)
        while (now_ns := time.monotonic_ns()) < at_ns:
            pass
        self._socket.send(self._frame)
        self._free_ns = now_ns + self._slot_ns


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
        # Its settings name its core. It never sleeps, so real-time priority would keep all else from there.
        os.setpriority(os.PRIO_PROCESS, switch.forwarding_thread, LEAST_NICE)
        return
    hurry(switch.pid, others)
