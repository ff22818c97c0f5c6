"""The news for event streams: each event is put into words once for all clients that watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final

from loko.service.event_streams import EncodedEvents
from loko.service.history import event_values
from loko.service.outcome import LoggedEvent
from loko.service.run import ServiceEvent, ServiceLoop, ShuttingDown
from loko.service.views import delay_values, flow_values, protection_values, switch_values

_KEEPALIVE_S: Final = 10.0
_TOGETHER_S: Final = 0.1
"""Events within this time are sent together."""


class EventFeed:
    """Encodes what happens, while there are event streams."""

    def __init__(self, operation: ServiceLoop) -> None:
        self._operation = operation

    async def publish(self, put: Callable[[EncodedEvents], Awaitable[None]]) -> None:
        """Put the state as it is, then all news, until the service ends."""
        with self._operation.subscribe() as events:
            await put(EncodedEvents(b"", self._state(), self._delays()))
            while True:
                heard = await _heard(events)
                if any(isinstance(event, ShuttingDown) for event in heard):
                    return
                notes = [event for event in heard if isinstance(event, LoggedEvent)]
                changes = any(noted.event.kind != "refusal" for noted in notes)  # a refusal changes nothing
                is_due = changes or not heard  # now and then also to show that it lives
                state = self._state() if is_due else b""
                await put(EncodedEvents(b"".join(map(_note, notes)), state, self._delays()))

    def _state(self) -> bytes:
        manager = self._operation.manager
        state: dict[str, object] = {
            "switches": [switch_values(manager, name) for name in manager.lab.switches],
            "flows": [flow_values(manager, name) for name in manager.flows],
        }
        if manager.protected is not None:
            state["protection"] = protection_values(manager, manager.protected)
        return b"".join(_event(name, values) for name, values in state.items())

    def _delays(self) -> bytes:
        operation = self._operation
        return _event("delays", delay_values(operation.manager, operation.delays))


async def _heard(events: asyncio.Queue[ServiceEvent]) -> list[ServiceEvent]:
    """Return events that follow each other closely; an empty list if none comes for a while."""
    try:
        heard = [await asyncio.wait_for(events.get(), _KEEPALIVE_S)]
    except TimeoutError:
        return []
    await asyncio.sleep(_TOGETHER_S)
    while not events.empty():
        heard.append(events.get_nowait())
    return heard


def _note(noted: LoggedEvent) -> bytes:
    return _event("note", event_values(noted))


def _event(name: str, values: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(values)}\n\n".encode()
