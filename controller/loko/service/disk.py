"""Queue of writes, one transaction at a time, and the state of the disk. Pure: time is passed in.

There is one instant for all kinds of writes: since when the transaction that is on its way has been there. As
there is never a second one, none can hide behind another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from loko.service.history import CAPACITY
from loko.service.outcome import LoggedEvent, Write

STALL_TIMEOUT_S: Final = 20.0
"""A disk that takes longer than this for a transaction will not recover by itself."""
NOTES_S: Final = 1.0
"""Time after which what has happened is on disk; a kill loses no more of it."""
RETRY_S: Final = 1.0
"""Time until a disk that took nothing is tried again."""


class WriteQueue:
    """All writes, in order. What gathers while a transaction is on its way shares the next one.

    Notes alone wait for others, or a while. If the disk takes nothing, the flow manager decides what is to be
    tried again (`FlowManager.failed`); notes always are.
    """

    def __init__(self) -> None:
        self.failure: str | None = None
        """Why the disk took nothing the last time, in one line; None if it took the last transaction."""
        self._pending: list[Write] = []
        self._notes: deque[LoggedEvent] = deque(maxlen=CAPACITY)
        self._not_before_s = 0.0
        self._notes_s = 0.0
        self._on_its_way: list[Write] = []
        self._since_s: float | None = None

    def add(self, writes: Iterable[Write]) -> None:
        """Add writes behind those that are waiting."""
        self._pending += writes

    def put_back(self, writes: Iterable[Write]) -> None:
        """Add writes of a transaction that has failed, before those that came later."""
        self._pending[:0] = writes

    def note(self, noted: LoggedEvent) -> None:
        """Add something that has happened."""
        self._notes.append(noted)

    def take(self, now_s: float, *, notes_at_once: bool = False) -> list[Write]:
        """Return the transaction to hand to the disk; an empty list if none is due, or one is on its way.

        Each one that is returned must be followed by `written` or `failed`.
        """
        if self._since_s is not None or now_s < self._not_before_s:
            return []
        if not self._pending and not (self._notes and (notes_at_once or now_s >= self._notes_s)):
            return []
        self._on_its_way = [*self._pending, *self._notes]
        self._pending = []
        self._notes.clear()
        self._since_s = now_s
        self._notes_s = now_s + NOTES_S
        return self._on_its_way

    def written(self) -> list[Write]:
        """Note that the transaction is on disk. Return what was in it."""
        self.failure = None
        return self._ended()

    def failed(self, now_s: float, reason: str) -> list[Write]:
        """Note that the disk took nothing of the transaction. Return what was in it, without the notes."""
        self.failure = reason
        self._not_before_s = now_s + RETRY_S
        writes = self._ended()
        notes = [write for write in writes if isinstance(write, LoggedEvent)]
        self._notes = deque([*notes, *self._notes], maxlen=CAPACITY)
        return [write for write in writes if not isinstance(write, LoggedEvent)]

    def is_stuck(self, now_s: float) -> bool:
        """Return whether the transaction on its way has been there for longer than any disk takes."""
        return self._since_s is not None and now_s - self._since_s > STALL_TIMEOUT_S

    def _ended(self) -> list[Write]:
        assert self._since_s is not None, "no transaction is on its way"
        writes, self._on_its_way, self._since_s = self._on_its_way, [], None
        return writes
