"""When a program that has ended is restarted."""

from __future__ import annotations

import asyncio

from loko.control.restarts import Backoff, Restarts
from loko.document import InputError


def test_waits_grow_to_a_limit_and_begin_anew_after_a_steady_run() -> None:
    backoff, now_s, waits = Backoff(), 100.0, []
    for _ in range(10):
        backoff.started(now_s)
        now_s += 1.0
        waits.append(backoff.ended(now_s))
        now_s += waits[-1]
    assert waits[:4] == [0.25, 0.5, 1.0, 2.0]
    assert waits[-2:] == [30.0, 30.0]
    backoff.started(now_s)
    assert backoff.ended(now_s + 59.9) == 30.0
    backoff.started(now_s)
    assert backoff.ended(now_s + 60.0) == 0.25


class Program:
    """Starts whenever told to, or fails as the test specifies."""

    def __init__(self, *failures: bool) -> None:
        self.failures = list(failures)
        self.starts = 0

    async def start(self) -> None:
        self.starts += 1
        if self.failures and self.failures.pop(0):
            raise InputError("there is none")


def test_one_that_ends_is_started_again_also_if_that_fails_at_first(monkeypatch) -> None:
    monkeypatch.setattr(Backoff, "FIRST_S", 0.001)

    async def scene() -> None:
        program = Program(False, True, True, False)
        restarts = Restarts("it", program.start)
        await restarts.begin()
        restarts.ended(1)
        while program.starts < 4:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert (program.starts, restarts.count) == (4, 3)

    asyncio.run(scene())


def test_after_the_end_nothing_is_started(monkeypatch) -> None:
    monkeypatch.setattr(Backoff, "FIRST_S", 0.001)

    async def scene() -> None:
        program = Program()
        restarts = Restarts("it", program.start)
        await restarts.begin()
        restarts.ended(1)
        restarts.end()
        restarts.ended(1)
        await asyncio.sleep(0.02)
        assert program.starts == 1

    asyncio.run(scene())
