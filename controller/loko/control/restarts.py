"""Programs that run beside a service and are restarted when they end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from loko.document import InputError

_LOG: Final = logging.getLogger("loko.control")


class Backoff:
    """How long to wait before a program that has ended is restarted: each time twice as long.

    A program that has run for long begins anew with the shortest wait. So rare ends cost little time, and a
    fault at every start costs few restarts.
    """

    FIRST_S: Final = 0.25
    MOST_S: Final = 30.0
    STEADY_S: Final = 60.0

    def __init__(self) -> None:
        self._wait_s = self.FIRST_S
        self._started_s = 0.0

    def started(self, now_s: float) -> None:
        """Note that the program runs."""
        self._started_s = now_s

    def ended(self, now_s: float) -> float:
        """Note that the program has ended. Return the seconds until it is to be restarted."""
        if now_s - self._started_s >= self.STEADY_S:
            self._wait_s = self.FIRST_S
        wait_s = self._wait_s
        self._wait_s = min(2 * wait_s, self.MOST_S)
        return wait_s


class Restarts:
    """Starts a program, and restarts it whenever it has ended."""

    def __init__(self, what: str, start: Callable[[], Awaitable[None]]) -> None:
        """`what` names it in the log. `start` raises `InputError` if it cannot be started."""
        self._what = what
        self._start = start
        self._backoff = Backoff()
        self._again: asyncio.Task[None] | None = None
        self._is_over = False
        self.count = 0
        """How often it was restarted."""

    async def begin(self) -> None:
        """Start it for the first time. Raises `InputError`."""
        await self._start()
        self._backoff.started(time.monotonic())

    def ended(self, status: int) -> None:
        """Schedule a restart: the program has ended with this status, which it should not."""
        if self._is_over:
            return
        wait_s = self._backoff.ended(time.monotonic())
        _LOG.error("%s has ended with status %d; starting it again in %g s", self._what, status, wait_s)
        self._again = asyncio.get_running_loop().create_task(self._start_in(wait_s))

    def end(self) -> None:
        """Stop restarting it."""
        self._is_over = True
        if self._again is not None:
            self._again.cancel()

    async def _start_in(self, wait_s: float) -> None:
        while True:
            await asyncio.sleep(wait_s)
            self.count += 1
            try:
                await self.begin()
            except InputError as error:
                wait_s = self._backoff.ended(time.monotonic())
                _LOG.error("%s does not start: %s; trying again in %g s", self._what, error, wait_s)
            else:
                return
