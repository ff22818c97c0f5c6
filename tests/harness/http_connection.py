"""A connection of the REST interface with a transport that records what is done to it."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn

from loko.service.acceptor import ClientConnection
from loko.service.connections import ConnectionLimiter, Limit
from loko.service.guard import Asgi


class Transport(asyncio.Transport):
    """Takes answers, unless the client reads none, and records whether reading is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_reading = True
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


def connect(app: Asgi) -> tuple[ClientConnection, Transport]:
    places = ConnectionLimiter(Limit(in_all=2, by_address=2))
    place, _ = places.take("a", 0.0)
    assert place is not None
    connection = ClientConnection(
        places,
        place,
        config=uvicorn.Config(app, log_config=None, lifespan="off"),
        server_state=uvicorn.server.ServerState(),
        app_state={},
    )
    transport = Transport()
    connection.connection_made(transport)
    return connection, transport


async def turns(count: int = 8) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
