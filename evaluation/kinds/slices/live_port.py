"""A switch between two veths in real time: links, sender and taps of a sliced port, whatever slices it.

Everything is in a network namespace of its own. Packet sockets send and receive frames, and the kernel stamps
them. The namespace ends with the process that made it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.live.datapaths import LEAST_NICE, USER_SPACE, Datapath
from evaluation.live.interfaces import switch_off_offloads
from evaluation.live.openvswitch import OpenVSwitch, hurry
from evaluation.live.programs import require, run
from evaluation.runner import LOST
from loko.slices.document import Port

SOURCE: Final = "source"
DESTINATION: Final = "destination"
INGRESS: Final = "s1-port1"
EGRESS: Final = "s1-port2"
"""The interface of the port that is sliced."""
IN_PORT, OUT_PORT = 1, 2
"""The switch's numbers of these two."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Frames to send through a queue of a port."""

    port: Port
    queue: int
    """Its number. A port of HTB is built with its first queue only."""
    frame: bytes
    """The frame without FCS."""
    sequence_offset: int
    """Offset of each frame's number, 32 bits."""
    instants_ns: NDArray[np.int64]
    """Release times; frames of the same instant follow each other at the rate of the port's link."""
    slot_ns: float
    """Transmission time of a frame on that link, with preamble and gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """When each frame passed the source's and the destination's interface, in order of sending."""

    sent_ns: NDArray[np.int64]
    received_ns: NDArray[np.int64]
    """`LOST` for frames that never arrived."""
    switch_cpu_s: float
    """CPU time of the switch meanwhile."""
    seconds: float


@contextmanager
def switch_between(
    folder: Path, flows: Sequence[str], *, datapath: Datapath = USER_SPACE
) -> Iterator[OpenVSwitch]:
    """Build links and switch in this network namespace. Raises `RunError`.

    `flows`: its table, in the words of ovs-ofctl.
    """
    _links()
    switch = OpenVSwitch(folder / "openvswitch", datapath=datapath)
    try:
        switch.add_switch(SWITCH, datapath_id=1, ports={IN_PORT: INGRESS, OUT_PORT: EGRESS}, controller=None)
        for flow in flows:
            run(
                ["ovs-ofctl", "-O", "OpenFlow10", "add-flow", switch.management(SWITCH), flow],
                what="the switch's table",
            )
        yield switch
    finally:
        switch.close()
        for interface in (INGRESS, EGRESS):
            # The other end may already have gone with its namespace, and this one with it.
            subprocess.run([require("ip"), "link", "del", interface], capture_output=True, check=False)


def _links() -> None:
    for host, port in ((SOURCE, INGRESS), (DESTINATION, EGRESS)):
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

    def __init__(self, interface: str, request: Request) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.bind((interface, 0))
        self._socket.setblocking(False)
        self._headers = request.frame[12:14]
        self._offset = request.sequence_offset
        self._length = len(request.frame)
        self.stamps: dict[int, int] = {}

    def drain(self) -> None:
        """Read all frames that have arrived."""
        for frame, stamp_ns in self._frames():
            if len(frame) == self._length and frame[12:14] == self._headers:
                number = int.from_bytes(frame[self._offset : self._offset + 4], "big")
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

    def array(self, count: int) -> NDArray[np.int64]:
        """Return the timestamps of frames 0 to `count` - 1; `LOST` for missing ones."""
        return np.array([self.stamps.get(number, LOST) for number in range(count)], dtype=np.int64)


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process with its threads in ns; /proc has it in ticks of 10 ms only."""
    return time.clock_gettime_ns(~pid << 3 | _CPUCLOCK_SCHED)


def send(request: Request, switch: OpenVSwitch) -> Reply:
    """Send the frames of a request through the switch. Raises `RunError`."""
    switch_pid = switch.pid
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.bind((SOURCE, _IPV4))
    taps = [_Tap(SOURCE, request), _Tap(DESTINATION, request)]
    frame = bytearray(request.frame)
    place = slice(request.sequence_offset, request.sequence_offset + 4)
    _keep_apart(switch)
    # Sending spins for a few per cent of the time; preemption meanwhile would tear bursts apart.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    time.sleep(_LEAD_S)
    before_ns = cpu_ns(switch_pid)
    begin_ns = time.monotonic_ns()
    free_ns = 0.0
    for number, instant_ns in enumerate((begin_ns + request.instants_ns).tolist()):
        while instant_ns - time.monotonic_ns() > _SPIN_NS:
            for tap in taps:
                tap.drain()
            time.sleep(max((instant_ns - time.monotonic_ns() - _SPIN_NS) / 1e9, 0.0))
        frame[place] = number.to_bytes(4, "big")
        at_ns = max(float(instant_ns), free_ns)
        while (now_ns := time.monotonic_ns()) < at_ns:
            pass
        sender.send(frame)
        free_ns = now_ns + request.slot_ns
    time.sleep(_LEAD_S)
    for tap in taps:
        tap.drain()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    after_ns = cpu_ns(switch_pid)
    count = len(request.instants_ns)
    return Reply(
        sent_ns=taps[0].array(count),
        received_ns=taps[1].array(count),
        switch_cpu_s=(after_ns - before_ns) / 1e9,
        seconds=(time.monotonic_ns() - begin_ns) / 1e9,
    )


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
