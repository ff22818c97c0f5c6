"""Log of the latest events and refusals, numbered. Pure: the wall clock is passed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from loko.service.outcome import Event, LoggedEvent

CAPACITY: Final = 1000
"""How many of the latest events are kept."""


class EventLog:
    """The latest events. Each has a number, higher than all before it, also after a restart."""

    def __init__(self, kept: Iterable[LoggedEvent] = ()) -> None:
        """`kept` is what the store has of former runs, in order."""
        self._noted: deque[LoggedEvent] = deque(kept, maxlen=CAPACITY)
        self._last = self._noted[-1].number if self._noted else 0

    def add(self, event: Event, *, at_ms: int) -> LoggedEvent:
        """Note an event. `at_ms` is in milliseconds since 1970, UTC."""
        self._last += 1
        noted = LoggedEvent(self._last, at_ms, event)
        self._noted.append(noted)
        return noted

    def values(self) -> list[dict[str, Any]]:
        """The latest events as plain values, in order."""
        return [event_values(noted) for noted in self._noted]


def event_values(noted: LoggedEvent) -> dict[str, Any]:
    """One event as plain values."""
    what = noted.event
    return {
        "number": noted.number,
        "at_ms": noted.at_ms,
        "kind": what.kind,
        "name": what.name,
        "text": what.text,
        "warning": what.warning,
    }
