"""Open vSwitch in user space, with dummy ports: a reference that needs neither root nor a kernel module.

`ovs-vswitchd` takes frames by its control socket, writes those that leave to files, and connects to a
controller here. Nothing is compared before Open vSwitch has said that it has handled what came before.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self

import dpkt

from loko.control.framing import framed, whole_messages

PORTS: Final = (1, 2, 3)
SCHEMA: Final = Path("/usr/share/openvswitch/vswitch.ovsschema")
HELLO: Final = 0
BARRIER_REQUEST: Final = {1: 18, 4: 20}
ECHO_REQUEST: Final = 2

_PATIENCE_S = 20.0
_BARRIER_XID = 0x62617272
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
"""The daemons are in a folder that users other than root need not have in PATH."""
_PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-vswitchd")


def missing() -> str | None:
    """Return why it cannot run here, and how to fix that; None if it can."""
    absent = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    if absent or not SCHEMA.exists():
        return f"{', '.join(absent) or SCHEMA} is not installed: apt-get install openvswitch-switch"
    return None


class OpenVSwitch:
    """One bridge with three ports and a session of OpenFlow `version` (the number on the wire)."""

    def __init__(self, folder: Path, version: int) -> None:
        self.version = version
        self._folder = folder
        self._stack = ExitStack()
        self._stream = b""
        self._unread: deque[bytes] = deque()
        self._read = dict.fromkeys(PORTS, 0)
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        here, database = self._folder, f"unix:{self._folder / 'db.sock'}"
        subprocess.run(["ovsdb-tool", "create", here / "conf.db", SCHEMA], check=True)
        self._run(
            stack, "ovsdb-server", f"--remote=p{database}", f"--unixctl={here / 'db.ctl'}", here / "conf.db"
        )
        _await(here / "db.sock")
        self._run(
            stack,
            "ovs-vswitchd",
            "--enable-dummy=override",
            "--disable-system",
            f"--unixctl={here / 'switch.ctl'}",
            f"--log-file={here / 'switch.log'}",
            database,
        )
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(here / "br0.controller"))
        listener.listen()
        listener.settimeout(_PATIENCE_S)
        protocol = {1: "OpenFlow10", 4: "OpenFlow13"}[self.version]
        command = ["ovs-vsctl", f"--db={database}", "--timeout=20", "add-br", "br0", "--"]
        command += [
            "set",
            "bridge",
            "br0",
            "datapath-type=dummy",
            "fail-mode=secure",
            f"protocols={protocol}",
        ]
        command += ['other-config:hwaddr="70:b3:d5:6c:00:01"', "other-config:disable-in-band=true"]
        for port in PORTS:
            name = f"p{port}"
            command += ["--", "add-port", "br0", name, "--", "set", "interface", name, "type=dummy"]
            command += [f"ofport-request={port}"]
            command += [f"options:tx_pcap={here / name}.pcap"]
        command += ["--", "set-controller", "br0", f"unix:{here / 'br0.controller'}"]
        command += ["--", "set", "controller", "br0", "inactivity-probe=0"]
        subprocess.run(command, check=True)
        self._control = stack.enter_context(socket.socket(socket.AF_UNIX))
        self._control.settimeout(_PATIENCE_S)
        self._control.connect(str(here / "switch.ctl"))
        self._session, _ = listener.accept()
        stack.enter_context(self._session)
        self._session.settimeout(_PATIENCE_S)
        self._session.sendall(framed(self.version, HELLO, 1))
        self.messages()

    def _run(self, stack: ExitStack, *command: str | Path) -> None:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *map(str, command)],
            # Open vSwitch allows sockets of controllers in its own folder only.
            env=os.environ | {"OVS_RUNDIR": str(self._folder), "PATH": _PATH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)

    def call(self, method: str, *arguments: str) -> str:
        """Call a method of the control socket; return what it says."""
        request = {"method": method, "params": arguments, "id": 0}
        self._control.sendall(json.dumps(request).encode())
        text = b""
        while True:
            text += self._control.recv(1 << 16)
            with suppress(json.JSONDecodeError):
                answer: dict[str, Any] = json.loads(text)
                break
        if answer["error"] is not None:
            raise RuntimeError(f"ovs-vswitchd: {method}: {answer['error']}")
        return str(answer["result"])

    def send(self, message: bytes) -> list[bytes]:
        """Send a message; return what came of it."""
        # Frames that were handled count, and none is handled by what held before.
        self.call("revalidator/purge")
        self._session.sendall(message)
        replies = self.messages()
        self.call("revalidator/purge")
        return replies

    def frame(self, port: int, frame: bytes) -> list[bytes]:
        """Let a frame come in by a port; return what the controller gets of it."""
        self.call("netdev-dummy/receive", f"p{port}", frame.hex())
        return self.messages()

    def messages(self) -> list[bytes]:
        """Return the messages that have come by the time that all is handled."""
        # Each call runs the main loop once, and one of the next runs sends the results of a frame.
        came = self._until_barrier()
        for _ in range(2):
            self.call("coverage/read-counter", "poll_create_node")
        return came + self._until_barrier()

    def _until_barrier(self) -> list[bytes]:
        barrier = BARRIER_REQUEST[self.version]
        self._session.sendall(framed(self.version, barrier, _BARRIER_XID))
        came: list[bytes] = []
        while True:
            message = self._receive()
            if message == framed(self.version, barrier + 1, _BARRIER_XID):
                return came
            if message[1] == ECHO_REQUEST:
                self._session.sendall(message[:1] + b"\3" + message[2:])
            elif message[1] != HELLO:
                came.append(message)

    def _receive(self) -> bytes:
        while not self._unread:
            received = self._session.recv(1 << 16)
            if not received:
                raise RuntimeError(f"ovs-vswitchd ended the session: see {self._folder / 'switch.log'}")
            messages, self._stream = whole_messages(self._stream + received)
            self._unread += messages
        return self._unread.popleft()

    def departures(self) -> list[tuple[int, bytes]]:
        """Return the frames that have left since the last call: port and bytes, by ports."""
        left = []
        for port in PORTS:
            with (self._folder / f"p{port}.pcap").open("rb") as file:
                frames = [frame for _, frame in dpkt.pcap.Reader(file)]
            left += [(port, frame) for frame in frames[self._read[port] :]]
            self._read[port] = len(frames)
        return left


def _await(path: Path) -> None:
    """Wait until a process listens there: the socket's file is there a little before."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with socket.socket(socket.AF_UNIX) as probe, suppress(FileNotFoundError, ConnectionRefusedError):
            probe.connect(str(path))
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"nothing listens at {path}")
        time.sleep(0.01)
