"""The way from the boards of a confined tree to a controller outside of it.

``python -m loko_testbed.live.namespace_relay``, a process of the tree. It listens where the boards look for
their controller. For each connection of a board it opens one to the real controller, from the network
outside, and copies both ways. It passes on how either side ends, because a board distinguishes an end from a
reset (quirks 16 and 200). What one side writes in one segment may reach the other in several, as through any
TCP proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from pathlib import Path
from typing import Final

from loko.control.address import Address
from loko.program_options import OneLineParser
from loko.terminal import user_errors_end
from loko_testbed.instruments.network_namespace import inside

_CHUNK_BYTES: Final = 1 << 16
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""`SO_LINGER` with which closing a connection resets it."""


class NamespaceRelay:
    """Connects boards with a controller outside the tree."""

    def __init__(self, to: Address, network: Path) -> None:
        """`network` names the network namespace in which the controller is reached."""
        self._to = to
        self._network = network

    async def serve(self, listening: socket.socket, ready: Path) -> None:
        """Serve until cancelled. Makes the file `ready` when it can accept connections."""
        server = await asyncio.start_server(self._relay, sock=listening)
        ready.touch()
        async with server:
            await server.serve_forever()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.to_thread(self._connected)
            far_reader, far_writer = await asyncio.open_connection(sock=there)
        except OSError:  # the board tries again by itself
            _reset(writer)
            return
        copies = asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        try:
            await copies
        except OSError:  # one side was reset, so the other is, too
            copies.cancel()
            for end in (writer, far_writer):
                _reset(end)
        else:
            for end in (writer, far_writer):
                end.close()

    def _connected(self) -> socket.socket:
        with inside(self._network):
            return socket.create_connection(self._to)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy all data, then the end of the stream. Raises `OSError` if either side is gone."""
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    writer.transport.abort()


def main() -> None:
    """Relay the boards' connections until ended."""
    parser = OneLineParser(description="Relay the boards' connections until ended.")
    parser.add_argument("--listen", required=True, help="Address and TCP port where the boards look.")
    parser.add_argument("--to", required=True, help="The controller: tcp:HOST:PORT.")
    parser.add_argument(
        "--network", required=True, type=Path, help="File of the network namespace where that is."
    )
    parser.add_argument("--ready", required=True, type=Path, help="File to make when boards may come.")
    chosen = parser.parse_args()
    listening = socket.create_server(Address.parse(chosen.listen, "--listen"))
    relay = NamespaceRelay(Address.parse(chosen.to, "--to"), chosen.network)
    asyncio.run(relay.serve(listening, chosen.ready))


if __name__ == "__main__":
    with user_errors_end(), contextlib.suppress(KeyboardInterrupt):
        main()
