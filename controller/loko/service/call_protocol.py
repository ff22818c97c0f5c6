"""The protocol between the flow manager and the REST process: messages on a local socket.

A message is a line of JSON. Its `kind` says what it is, and `length` how many bytes follow the line.

    from the REST process    ready    it accepts clients
                             alive    every `ALIVE_S`
                             call     `name`, `values`, `number`, and `request`, its id for the log
                             watch    whether there are event streams: `on`
    from the flow manager    settings `values` of `RestSettings`; the first message
                             answer   to the call `number`: `status`, `media_type`, `refusal`; the body
                             news     notes, state and delays for event streams; `starts` of the latter two
                             over     the last news: the service ends
                             end      finish the answers, and end
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from loko.service.journal import LogFormat

LINE_BYTES: Final = 1 << 20
"""A line is never longer than this: a call is at most as long as a request."""
ALIVE_S: Final = 1.0
"""How often the REST process shows that it lives."""
LEAVING_S: Final = 8
"""How long answers on their way may take when the service ends."""


class CallMessage(NamedTuple):
    """A message that was received."""

    values: Mapping[str, Any]
    body: bytes


class CallResponse(NamedTuple):
    """The flow manager's answer to a call: an HTTP response."""

    status: int
    body: bytes = b""
    media_type: str | None = None
    refusal: tuple[str, str] | None = None
    """Code of an error; of a flow that does not fit, also the quantity that runs out."""


@dataclass(frozen=True, kw_only=True)
class RestSettings:
    """Settings of the REST process, which the flow manager sends when it starts."""

    host: str
    """Address that it listens on."""
    allow_hosts: tuple[str, ...]
    token: str | None
    requests_per_s: float
    connections: int
    files: int
    """How many files it may open."""
    gives_slots: bool
    """Whether the service gives slots instead of admitting flows."""
    emulates: bool
    """Whether the service runs emulated boards, in which clients may cause faults."""
    log_format: LogFormat
    verbose: bool


def send(writer: asyncio.StreamWriter, kind: str, body: bytes = b"", **values: object) -> None:
    """Send a message, unless the other end has gone."""
    if not writer.is_closing():
        head = json.dumps({"kind": kind, "length": len(body), **values})
        writer.write(head.encode() + b"\n" + body)


async def receive(reader: asyncio.StreamReader) -> CallMessage | None:
    """Return the next message, or None when the other end has gone."""
    try:
        line = await reader.readuntil(b"\n")
        values = json.loads(line)
        return CallMessage(values, await reader.readexactly(values["length"]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
