"""A sliced port in real time: Open vSwitch in user space between two veths, with `tc htb` on its egress.

Everything is in a network namespace of its own, without addresses. Packet sockets send and receive frames,
and the kernel stamps them. The namespace ends with the process that made it.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.live.interfaces import switch_off_offloads
from evaluation.live.openvswitch import OpenVSwitch, hurry
from evaluation.live.programs import require, run
from evaluation.runner import LOST, RunError
from loko.slices.document import HtbPort, HtbQueue

SOURCE: Final = "source"
DESTINATION: Final = "destination"
_INGRESS: Final = "s1-port1"
_EGRESS: Final = "s1-port2"
_SWITCH: Final = "s1"
_CLASS: Final = "1:10"
_LEAF = "pfifo"
"""What holds the frames of a class."""
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
_US_PER_S: Final = 1_000_000
_VALUES: Final = re.compile(r"\b(rate|ceil|burst|cburst) ([0-9.]+)([KMG]?bit|[KMG]?b)\b")
_UNITS: Final = {
    **{"bit": 1.0, "Kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9},
    **{"b": 1.0, "Kb": 2.0**10, "Mb": 2.0**20, "Gb": 2.0**30},
}
_SHOWN: Final = 0.01
"""Relative error due to the rounding of values that tc shows, such as 1001Kbit for 1000500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Frames to send through the first queue of a port."""

    port: HtbPort
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


def carry(request: Request, folder: Path) -> Reply:
    """Build the port in this network namespace and send. Raises `RunError`."""
    with sliced_switch(request.port, folder, addressed=False) as switch:
        return _send(request, switch.pid)


@contextmanager
def sliced_switch(port: HtbPort, folder: Path, *, addressed: bool) -> Iterator[OpenVSwitch]:
    """Build links, switch and sliced port in this network namespace. Raises `RunError`.

    `addressed`: source and destination have addresses, so that the switch also carries what comes back.
    """
    check(port)
    _links()
    switch = OpenVSwitch(folder / "openvswitch")
    try:
        switch.add_switch(_SWITCH, datapath_id=1, ports={1: _INGRESS, 2: _EGRESS}, controller=None)
        flows = ["in_port=1,actions=output:2", *(["in_port=2,actions=output:1"] if addressed else [])]
        for flow in flows:
            run(
                ["ovs-ofctl", "-O", "OpenFlow10", "add-flow", switch.management(_SWITCH), flow],
                what="the switch's table",
            )
        slice_port(port)
        yield switch
    finally:
        switch.close()
        for interface in (_INGRESS, _EGRESS):
            # The other end may already have gone with its namespace, and this one with it.
            subprocess.run([require("ip"), "link", "del", interface], capture_output=True, check=False)


def check(port: HtbPort) -> None:
    """Raise `RunError` if no kernel can do what the port's first queue shall."""
    if port.queues[0].drops is not None:
        raise RunError(
            f"htb on the port: queue '{port.queues[0].name}' drops what is late or what CoDel picks, which"
            " only the simulator's does: use --mode virtual, or leave out its drops"
        )


def _links() -> None:
    for host, port in ((SOURCE, _INGRESS), (DESTINATION, _EGRESS)):
        run(["ip", "link", "add", host, "type", "veth", "peer", "name", port], what=f"link of {host}")
        for interface in (host, port):
            switch_off_offloads(interface, what=interface)
            run(
                ["sysctl", "-q", "-w", f"net.ipv6.conf.{interface}.disable_ipv6=1"],
                what=f"{interface}: no IPv6",
            )
            run(["ip", "link", "set", interface, "up"], what=interface)


def slice_port(port: HtbPort) -> None:
    """Set up the port's classes with tc and verify them; leave no half of them. Raises `RunError`."""
    try:
        _slice(port)
    except RunError:
        subprocess.run(
            [require("tc"), "qdisc", "del", "dev", _EGRESS, "root"], capture_output=True, check=False
        )
        raise


def _slice(port: HtbPort) -> None:
    queue = port.queues[0]
    what = "htb on the port"
    device = ["dev", _EGRESS]
    _discipline("htb", [*device, "root", "handle", "1:", "htb", "default", "10"], what)
    root = _rates(port.root_bps, port.root_bps, port.root_burst_bytes, port.root_burst_bytes)
    run(["tc", "class", "add", *device, "parent", "1:", "classid", "1:1", "htb", *root], what=what)
    leaf = _rates(queue.rate_bps, queue.ceiling_bps, queue.burst_bytes, queue.ceiling_burst_bytes)
    leaf += ["quantum", str(queue.quantum_bytes), "prio", str(queue.priority)]
    run(["tc", "class", "add", *device, "parent", "1:1", "classid", _CLASS, "htb", *leaf], what=what)
    limit = [_LEAF, "limit", str(queue.limit_frames)]
    _discipline(_LEAF, [*device, "parent", _CLASS, "handle", "10:", *limit], what)
    shown = run(["tc", "class", "show", *device], what=what)
    if (differs := difference(queue, shown)) is not None:
        raise RunError(f"{what}: {differs}: this kernel or tc did not obey")


_UNKNOWN: Final = ("qdisc kind is unknown", "Unknown qdisc", "No such file or directory")
"""What tc says of a discipline that kernel or tc does not have."""


def _discipline(kind: str, arguments: list[str], what: str) -> None:
    try:
        run(["tc", "qdisc", "replace", *arguments], what=what)
    except RunError as error:
        if any(words in str(error) for words in _UNKNOWN):
            raise RunError(
                f"{what}: this kernel has no queueing discipline '{kind}' (module sch_{kind}): load it,"
                " or use --mode virtual"
            ) from None
        raise


def _rates(rate_bps: int, ceil_bps: int, burst_bytes: int, cburst_bytes: int) -> list[str]:
    return [
        *("rate", f"{rate_bps}bit", "ceil", f"{ceil_bps}bit"),
        *("burst", str(burst_bytes), "cburst", str(cburst_bytes)),
    ]


def difference(queue: HtbQueue, shown: str) -> str | None:
    """Describe how the output of ``tc class show`` deviates beyond rounding; None if it does not."""
    line = next((line for line in shown.splitlines() if line.startswith(f"class htb {_CLASS} ")), None)
    if line is None:
        return "the class is not there"
    values = {name: float(number) * _UNITS[unit] for name, number, unit in _VALUES.findall(line)}
    for name, expected, rate_bps in (
        ("burst", queue.burst_bytes, queue.rate_bps),
        ("cburst", queue.ceiling_burst_bytes, queue.ceiling_bps),
    ):
        # tc stores a bucket as whole microseconds at its rate, and rounds once more when it shows it.
        rounding = 2 + rate_bps / 8 / _US_PER_S + expected * _SHOWN
        if abs(values.get(name, 0.0) - expected) > rounding:
            return f"{name} is {values.get(name, 0.0):.0f} bytes instead of {expected}"
    for name, expected in (("rate", queue.rate_bps), ("ceil", queue.ceiling_bps)):
        if abs(values.get(name, 0.0) - expected) > expected * _SHOWN:
            return f"{name} is {values.get(name, 0.0):.0f} bit/s instead of {expected}"
    return None


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


def _send(request: Request, switch_pid: int) -> Reply:
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.bind((SOURCE, _IPV4))
    taps = [_Tap(SOURCE, request), _Tap(DESTINATION, request)]
    frame = bytearray(request.frame)
    place = slice(request.sequence_offset, request.sequence_offset + 4)
    _keep_apart(switch_pid)
    # Sending spins for a few per cent of the time; preemption meanwhile would tear bursts apart.
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


def _keep_apart(switch_pid: int) -> None:
    """Give this process a core of its own, and the switch priority on the others.

    A switch that wakes on the core of a spinning sender waits; so does one that shares its core with other
    programs of the machine.
    """
    *others, mine = sorted(os.sched_getaffinity(0))
    if not others:
        return
    os.sched_setaffinity(0, {mine})
    hurry(switch_pid, others)
