"""The REST process: serves HTTP, and leaves all decisions to the flow manager.

    python -m loko.service.rest_server LISTENING_FD FLOW_MANAGER_FD

It has the connections of clients, their limits, and the pages. When the flow manager ends, in whatever way,
so does this process.
"""

from __future__ import annotations

import ctypes
import signal

if __name__ == "__main__":
    # Nothing may hold the address at which a new service is to listen, even if this process hangs when the
    # flow manager ends. This comes first, since the modules below take seconds to load.
    _PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import Final

import uvicorn
import uvloop
from pydantic import TypeAdapter

from loko.service.acceptor import Acceptor
from loko.service.api import application
from loko.service.call_protocol import LEAVING_S, LINE_BYTES, RestSettings, receive
from loko.service.connections import IDLE_S, ClientLimits, Clients
from loko.service.counters import RequestMetrics
from loko.service.guard import Guard
from loko.service.hosts import KnownHosts
from loko.service.journal import begin_log
from loko.service.manager_client import ManagerClient

_LOG: Final = logging.getLogger("loko.service")


class RestServer(uvicorn.Server):
    """A server that gets its connections from a `Acceptor`."""

    def __init__(self, config: uvicorn.Config, front: Acceptor, *, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._front = front
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by the server when it begins."""
        await super().startup(sockets)
        self._front.open(self.server_state)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by the server when it is to end."""
        self._front.close()
        await super().shutdown(sockets)


async def serve(listening: socket.socket, to_manager: socket.socket) -> None:
    """Serve until the flow manager says that the service ends."""
    reader, writer = await asyncio.open_connection(sock=to_manager, limit=LINE_BYTES)
    if (first := await receive(reader)) is None:
        return
    settings = TypeAdapter(RestSettings).validate_python(first.values["values"])
    begin_log(settings.log_format, verbose=settings.verbose)
    manager = ManagerClient(reader, writer)
    clients, metrics = Clients(ClientLimits.of(settings.connections, files=settings.files)), RequestMetrics()
    guarded = Guard(
        application(manager, settings, clients, metrics),
        hosts=KnownHosts(settings.host, settings.allow_hosts),
        clients=clients,
        metrics=metrics,
        token=settings.token,
        requests_per_s=settings.requests_per_s,
    )
    config = uvicorn.Config(
        guarded,
        log_config=None,
        log_level="error",  # errors of clients are counted, and logged seldom
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,  # limits apply to the real address of the connection
        server_header=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=LEAVING_S,
    )
    server = RestServer(config, Acceptor(listening, config, clients), ready=manager.ready)

    def end() -> None:
        server.should_exit = True

    async def listen() -> None:
        try:
            await manager.listen(end)
        except (LookupError, TypeError, ValueError):
            _LOG.exception("the flow manager is not understood")
        os._exit(1)  # it has ended, or is of no use: nothing can be answered

    listening_task = asyncio.create_task(listen())
    await server.serve(sockets=[])
    listening_task.cancel()


def main(listening_fd: int, manager_fd: int) -> None:
    """Run until the flow manager ends."""
    uvloop.run(serve(socket.socket(fileno=listening_fd), socket.socket(fileno=manager_fd)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
