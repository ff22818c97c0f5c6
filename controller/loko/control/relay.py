"""Runs the OpenFlow application as a child process, and relays between it and the service."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, cast

from loko.control.access import AccessList
from loko.control.relay_protocol import (
    ListeningSettings,
    RelayMessage,
    RelayMessageKind,
    RelayMessageReader,
    SwitchIdentity,
)
from loko.control.tls_files import TlsFiles
from loko.document import InputError

FRAMEWORKS: Final = {"os-ken": "os_ken", "ryu": "ryu"}
"""The OpenFlow frameworks, with the names of their packages."""
_PACKAGES: Final = str(Path(__file__).resolve().parents[2])


class Listener(Protocol):
    """Receiver of reports about the switches."""

    def switch_connected(self, connection: int, introduction: SwitchIdentity) -> None:
        """Called when a switch has introduced itself."""

    def switch_said(self, connection: int, message: bytes) -> None:
        """Called with each whole message of a switch."""

    def switch_disconnected(self, connection: int) -> None:
        """Called when a connection is gone."""

    def connection_refused(self, text: str) -> None:
        """Called with a line when the application has refused a connection."""

    def application_ended(self, status: int) -> None:
        """Called when the OpenFlow application has ended, which it should not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The bound sockets at which switches connect."""

    plain: socket.socket
    tls: socket.socket | None = None
    tls_files: TlsFiles | None = None
    """The files for TLS, which its socket needs."""


class Relay(asyncio.Protocol):
    """The service's end of the socket to an application, from its start to its end."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._reader = RelayMessageReader()
        self._transport: asyncio.WriteTransport | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._ending = False
        self._is_over = False

    async def start(
        self, listening: Listening, access: AccessList, framework: str, python: str, version: int
    ) -> None:
        """Start the application on bound sockets, with one of the `FRAMEWORKS` and its interpreter.

        `version` is the OpenFlow wire version that it speaks.
        """
        near, far = socket.socketpair()
        environment = {**os.environ, "LOKO_FRAMEWORK": FRAMEWORKS[framework], "PYTHONPATH": _PACKAGES}
        tls_fd = None if listening.tls is None else listening.tls.fileno()
        settings = ListeningSettings(
            listening_fd=listening.plain.fileno(),
            access=access,
            tls_listening_fd=tls_fd,
            tls=listening.tls_files,
        )
        descriptors = [settings.listening_fd, far.fileno(), *([] if tls_fd is None else [tls_fd])]
        try:
            self._child = await asyncio.create_subprocess_exec(
                python,
                "-W",
                "ignore",
                "-m",
                "loko.control.shim",
                *map(str, (far.fileno(), version)),
                pass_fds=descriptors,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the service, which then ends the application
            )
        except OSError as error:
            near.close()
            raise InputError(f"--framework-python {python}: {error.strerror}") from None
        finally:
            far.close()
        if self._child.stdin is not None:
            self._child.stdin.write(settings.encoded())
            self._child.stdin.close()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: self, near)
        self._watch = asyncio.create_task(self._wait(self._child))

    async def _wait(self, child: asyncio.subprocess.Process) -> None:
        status = await child.wait()
        self._is_over = True  # its last messages are about connections that are gone
        if self._transport is not None:
            self._transport.abort()
        if not self._ending:
            self._listener.application_ended(status)

    async def end(self) -> None:
        """End the application, and with it all connections."""
        self._ending = True
        if self._transport is not None:
            self._transport.close()
        if self._child is not None:
            try:
                await asyncio.wait_for(self._child.wait(), 2)
            except TimeoutError:
                self._child.kill()

    def send(self, connection: int, data: bytes) -> None:
        """Send to a switch, in one write."""
        self._write(RelayMessage(RelayMessageKind.SEND, connection, data))

    def close(self, connection: int) -> None:
        """Close a switch's connection."""
        self._write(RelayMessage(RelayMessageKind.CLOSE, connection))

    def load(self, echoes_per_s: float) -> None:
        """Send this many EchoRequests per second to each switch from now on, as a load."""
        self._write(RelayMessage(RelayMessageKind.LOAD, 0, str(echoes_per_s).encode("ascii")))

    def _write(self, frame: RelayMessage) -> None:
        if self._transport is not None and not (self._is_over or self._transport.is_closing()):
            self._transport.write(frame.encoded())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is not derived from it

    def connection_lost(self, _: Exception | None) -> None:
        """Called by asyncio. An application that cannot be reached is of no use, so it is killed."""
        self._is_over = True
        if self._child is not None and self._child.returncode is None and not self._ending:
            self._child.kill()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._is_over:
            return
        for frame in self._reader.messages(data):
            match frame.kind:
                case RelayMessageKind.CONNECTED:
                    self._listener.switch_connected(frame.connection, SwitchIdentity.decoded(frame.data))
                case RelayMessageKind.MESSAGE:
                    self._listener.switch_said(frame.connection, frame.data)
                case RelayMessageKind.DISCONNECTED:
                    self._listener.switch_disconnected(frame.connection)
                case RelayMessageKind.REFUSED:
                    self._listener.connection_refused(frame.data.decode())


def interpreter(framework: str, given: str | None) -> str:
    """Return the interpreter of a framework, os-ken or ryu.

    Raises `InputError` for Ryu without one: it needs packages that this interpreter does not have.
    """
    if framework not in FRAMEWORKS:
        raise InputError(f"--framework '{framework}' is neither os-ken nor ryu")
    if given is not None:
        return given
    if framework == "ryu":
        raise InputError("--framework ryu: give the interpreter that has Ryu 4.34 by --framework-python")
    return sys.executable
