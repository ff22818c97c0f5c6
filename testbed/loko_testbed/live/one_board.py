"""Live boards between veths in a network namespace of their own, with controllers and taps.

For benchmarks and tests. The namespace belongs to a process that the kernel kills when this process ends,
however it ends; everything in the namespace goes with it.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.entries import ETHERTYPE_IPV4, PROTOCOL_UDP
from loko.control.framing import framed
from loko.control.os_ken_messages import flow_mod, output_to
from loko_testbed.instruments.cables import add_cable
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.network_namespace import (
    another_namespace,
    inside,
    namespace_of,
    set_up_namespace,
    within,
)
from loko_testbed.instruments.packet_tap import PacketTap, TappedFrame, packet_socket
from loko_testbed.simulation.runner import RunError

TIMEOUT_S = 30.0
SEQUENCE_OFFSET = 42
"""Offset of the number in a frame of `udp_frame`: the start of the UDP payload."""


class Namespace:
    """A network namespace with a loopback interface and pairs of veths."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._stack = ExitStack()
        self.pid = self._stack.enter_context(another_namespace())
        self.path = namespace_of(self.pid)
        set_up_namespace("a benchmark's network", self.command())
        lines = [
            f"link add {near} type veth peer name {far}\nlink set {near} up\nlink set {far} up\n"
            for near, far in pairs
        ]
        subprocess.run(self.command("ip", "-batch", "-"), input="".join(lines), text=True, check=True)

    def command(self, *command: str) -> list[str]:
        """Return the command line that runs a command inside the namespace."""
        return [*within(self.path), *command]

    def run(self, *command: str) -> None:
        """Run a command inside the namespace."""
        subprocess.run(self.command(*command), check=True)

    def add_cable(self, near: str, far: str) -> None:
        """Add a pair of veths, up and without offloads."""
        add_cable(near, far, what="a cable", prefix=self.command())

    def take(self, interface: str, source: Namespace, address: str, *, mac: str | None = None) -> None:
        """Take an interface from another namespace, and put it up with this address."""
        source.run("ip", "link", "set", interface, "netns", str(self.pid))
        if mac is not None:
            self.run("ip", "link", "set", interface, "address", mac)
        self.run("ip", "address", "add", address, "dev", interface)
        self.run("ip", "link", "set", interface, "up")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the namespace: sockets that this thread creates meanwhile belong to it."""
        with inside(self.path):
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Wait until a condition holds. Raises `TimeoutError`, which names `what` is missing."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} within {timeout_s} s")
        time.sleep(0.005)


class BenchmarkTap:
    """Sends frames on an interface, and captures what it sends and receives there with kernel timestamps.

    It also serves tests. So it accepts a frame that the kernel has not stamped because timestamps were
    enabled only just before. Such a frame gets the time at which it is read.
    """

    def __init__(self, namespace: Namespace, interface: str) -> None:
        # Two sockets, as a packet socket does not see its own frames.
        self._sender = packet_socket(interface, 0, namespace=namespace.path)
        self._tap = PacketTap(interface, needs_stamps=False, namespace=namespace.path)
        self._unread: deque[TappedFrame] = deque()

    def send(self, frame: bytes) -> None:
        """Send a frame without FCS."""
        self._sender.send(frame)

    def seen(self, *, outgoing: bool, count: int, timeout_s: float = 2.0) -> list[TappedFrame]:
        """Return the frames of one direction; waits for `count` of them, at most `timeout_s`."""
        frames: list[TappedFrame] = []
        deadline = time.monotonic() + timeout_s
        while len(frames) < count:
            if not self._unread:
                self._unread += self._tap.drain(timeout_s=max(0.0, deadline - time.monotonic()))
            if not self._unread:
                break
            frame = self._unread.popleft()
            if frame.outgoing == outgoing:
                frames.append(frame)
        return frames

    def waiting(self, *, outgoing: bool) -> list[TappedFrame]:
        """Return the frames of one direction that have arrived already."""
        return self.seen(outgoing=outgoing, count=sys.maxsize, timeout_s=0.0)

    def close(self) -> None:
        """Close the sockets."""
        self._sender.close()
        self._tap.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """Encode an OpenFlow 1.0 message."""
    return framed(1, kind, xid, body)


def add_flow(output: int, *, udp_port: int | None = None, priority: int = 100) -> bytes:
    """Build FLOW_MOD ADD for all IPv4 UDP, or for one five-tuple of `udp_frame` (section 5.3.3)."""
    fields: dict[str, object] = {"dl_type": ETHERTYPE_IPV4, "nw_proto": PROTOCOL_UDP}
    if udp_port is not None:
        fields |= {"nw_src": "10.0.0.1", "nw_dst": "10.0.0.2", "tp_src": udp_port, "tp_dst": udp_port}
    return flow_mod(parser.OFPMatch(**fields), [output_to(output)], priority=priority, xid=priority)


def udp_frame(
    sequence: int, *, frame_bytes: int = 306, udp_port: int = 5000, source: int = 1, destination: int = 2
) -> bytes:
    """Build a UDP frame without FCS between hosts of 10.0.0.0/24; its payload begins with `sequence`.

    `frame_bytes` is its length with FCS. It is put together by hand, since senders make each frame when it is
    due, and a library would take longer than the gap.
    """
    total = frame_bytes - 4 - 14
    ethernet = bytes([2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source]) + b"\x08\x00"
    addresses = (0x0A00_0000 + source, 0x0A00_0000 + destination)
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, total, 0, 0, 64, 17, 0, *addresses)
    udp = struct.pack("!HHHH", udp_port, udp_port, total - 20, 0)
    payload = struct.pack("!I", sequence).ljust(total - 28, b"\xa5")
    return ethernet + ip + udp + payload


def sequence_of(frame: bytes) -> int:
    """Return the number that `udp_frame` wrote."""
    return int(struct.unpack_from("!I", frame, SEQUENCE_OFFSET)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedFlow:
    """Frames at exact times, the first `first_ns` after the start."""

    interface: str
    frame: bytes
    count: int
    interval_ns: int
    """Mean interval; 0: back to back."""
    spread_ns: int = 0
    """Width of the range of intervals; without spread, frames may stay in step with the machine's clock."""
    first_ns: int = 0


def send_paced(
    program: Path,
    namespace: Namespace,
    folder: Path,
    flows: Sequence[PacedFlow],
    *,
    elsewhere: int,
    first_number: int = 0,
) -> None:
    """Send flows with consecutively numbered frames, on cores other than `elsewhere`, the emulator's."""
    lines = [
        f"{flow.interface} {flow.count} {flow.first_ns} {flow.interval_ns} {flow.spread_ns} "
        f"{flow.frame.hex()}\n"
        for flow in flows
    ]
    schedule = folder / "flows"
    schedule.write_text("".join(lines), encoding="ascii")
    sender = _paced_sender(program)
    cores = os.sched_getaffinity(0) - {elsewhere} or {elsewhere}
    pinned = ["taskset", "--cpu-list", ",".join(map(str, cores))]
    namespace.run(*pinned, sender, str(schedule), str(SEQUENCE_OFFSET), str(first_number))


def _paced_sender(program: Path) -> str:
    """Return the path of the program that sends. It is an example, which set-up does not build."""
    path = program.resolve().parent / "examples" / "paced_sender"
    if not path.is_file():
        build = "cargo build --release -p zodiac-live --examples"
        raise RunError(f"{path}: is not built; in the folder switch-emulator: {build}")
    return str(path)


@dataclass(frozen=True, slots=True)
class Departure:
    """A frame's departure in the emulator's trace."""

    intended_ns: int
    in_stall: bool


def read_trace(path: Path) -> dict[int, Departure]:
    """Read the departures of a trace by the frames' numbers."""
    with path.open(newline="", encoding="ascii") as lines:
        return {
            int(row["sequence"]): Departure(int(row["intended_ns"]), row["in_stall"] == "1")
            for row in csv.DictReader(lines)
        }


class BenchmarkController(ControllerEndpoint):
    """The controller of a board, in a namespace: a listening socket and at most one session.

    Its methods raise `RunError`, as those of `ControllerEndpoint`.
    """

    def __init__(self, namespace: Namespace, port: int = 0, address: str = "127.0.0.1") -> None:
        with namespace.entered():
            super().__init__(address, port)

    def handshake(self) -> bytes:
        """Accept the board's connection, agree on OpenFlow 1.0 and return the FEATURES_REPLY."""
        reply = self.features(TIMEOUT_S)
        if reply is None:
            raise RunError(
                f"controller: no board has connected to {self.address}:{self.port} in {TIMEOUT_S:g} s"
            )
        return reply

    def vanish(self, *, reset: bool = False) -> None:
        """End the session, with RST if `reset`, and stop listening."""
        if reset and self.session is not None:
            self.session.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


def board_table(
    name: str,
    controller: str,
    ports: Mapping[int, str],
    *,
    seed: int = 1,
    profile: str = "zodiac-fx",
    settings: str,
) -> str:
    """Return a board's section of the configuration file, with its controller and the ports' interfaces."""
    wiring = "".join(f'{number} = "{interface}"\n' for number, interface in ports.items())
    return (
        f'[[board]]\nname = "{name}"\nprofile = "{profile}"\n'
        f'controller = "{controller}"\nseed = {seed}\n'
        f"[board.ports]\n{wiring}[board.config]\n{settings}"
    )


UNHURRIED: Final = 'scheduling = "other"\nrest_us = 1000\n'
"""Settings for boards whose delays do not matter: they use a tenth of the CPU time."""


class BenchmarkBoards:
    """A running `zodiac-fx` process with these boards."""

    def __init__(
        self,
        program: Path,
        namespace: Namespace,
        folder: Path,
        boards: str,
        *,
        process: str = 'scheduling = "other"\n',
    ) -> None:
        self.report_path, self.log_path = folder / "report.json", folder / "log"
        ready = folder / "ready"
        config = folder / "zodiac-fx.toml"
        config.write_text(f'[process]\nreport = "{self.report_path}"\nready = "{ready}"\n{process}{boards}')
        command = namespace.command(str(program), "run", "--die-with-parent", str(config))
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log)
        try:
            wait_for(lambda: ready.exists() or self.process.poll() is not None, "ready file")
        except TimeoutError:
            self.process.kill()
            raise
        if self.process.poll() is not None:
            raise RuntimeError(f"zodiac-fx did not start: {self.log()}")

    def log(self) -> str:
        """Return what the process has written to standard error so far."""
        return self.log_path.read_text()

    def end(self) -> dict[str, Any]:
        """End the process cleanly; return its report."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(TIMEOUT_S)
        if status != 0:
            raise RuntimeError(f"zodiac-fx ended with status {status}: {self.log()}")
        return self._report()

    def _report(self) -> dict[str, Any]:
        report = json.loads(self.report_path.read_text())
        assert isinstance(report, dict)
        return report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class EmulatorProcess(BenchmarkBoards):
    """A running `zodiac-fx` process with one board, s1."""

    def __init__(
        self,
        program: Path,
        namespace: Namespace,
        folder: Path,
        controller_port: int,
        *,
        process: str = 'scheduling = "other"\n',
        profile: str = "zodiac-fx",
        settings: str = "ofchecks = false\n",
        ports: Mapping[int, str] = MappingProxyType({1: "s1-eth1", 2: "s1-eth2"}),
        controller_address: str = "127.0.0.1",
    ) -> None:
        controller = f"{controller_address}:{controller_port}"
        board = board_table("s1", controller, ports, profile=profile, settings=settings)
        super().__init__(program, namespace, folder, board, process=process)
