"""What has happened: the latest events and refusals, numbered. Pure: the wall clock is passed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from loko.serve.outcome import Happening, Noted

KEPT: Final = 1000
"""How many of the latest events are kept."""


class History:
    """The latest events. Each has a number, higher than all before it, also after a restart."""

    def __init__(self, kept: Iterable[Noted] = ()) -> None:
        """`kept` is what the store has of former runs, in order."""
        self._noted: deque[Noted] = deque(kept, maxlen=KEPT)
        self._last = self._noted[-1].number if self._noted else 0

    def add(self, happening: Happening, *, at_ms: int) -> Noted:
        """Note an event. `at_ms` is in milliseconds since 1970, UTC."""
        self._last += 1
        noted = Noted(self._last, at_ms, happening)
        self._noted.append(noted)
        return noted

    def values(self) -> list[dict[str, Any]]:
        """The latest events as plain values, in order."""
        return [noted_values(noted) for noted in self._noted]


def noted_values(noted: Noted) -> dict[str, Any]:
    """One event as plain values."""
    what = noted.what
    return {
        "number": noted.number,
        "at_ms": noted.at_ms,
        "kind": what.kind,
        "name": what.name,
        "text": what.text,
        "warning": what.warning,
    }
