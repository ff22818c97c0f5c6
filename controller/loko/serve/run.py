"""The service in operation: the keeper, its store, the OpenFlow application, and who waits for answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from loko.controller.switchboard import Switchboard
from loko.controller.wire import Reply
from loko.flow import Flow
from loko.network import Hop
from loko.serve.delays import DelayBook, Measured, Observation
from loko.serve.keeper import FlowKeeper
from loko.serve.outcome import Effects, Happening, Outcome
from loko.serve.store import Store

TICK_S: Final = 0.05
News = Happening | Measured
_MEASURED_S: Final = 0.5
"""Who watches hears of measured delays so often at most."""
_LOG: Final = logging.getLogger("loko.serve")


class Operation:
    """Runs a keeper in an event loop. All its calls are made in that loop's thread.

    What happens while the disk is busy shares the next transaction, however many requests that are.
    """

    def __init__(self, keeper: FlowKeeper, store: Store, *, fatal: Callable[[str], None]) -> None:
        """`fatal` is called with one line when the service cannot go on."""
        self.keeper = keeper
        self.switches = Switchboard(keeper.lab, self)
        self._store = store
        self._fatal = fatal
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self.delays = DelayBook()
        self._watchers: set[asyncio.Queue[News]] = set()
        self._is_measured = False
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="disk")
        self._flush_is_due = self._is_flushing = self._is_waking = False
        self._loop = asyncio.get_running_loop()
        self._ticking = self._loop.create_task(self._tick_forever())
        self._flush_soon()

    async def request(self, flow: Flow, path: tuple[Hop, ...] | None, deadline_ns: float | None) -> Outcome:
        """Admit and install a flow; comes back when that is decided."""
        return await self._outcome(self.keeper.request(time.monotonic_ns(), flow, path, deadline_ns))

    async def release(self, flow_id: str) -> Outcome:
        """Remove a flow; comes back when it is gone."""
        return await self._outcome(self.keeper.release(time.monotonic_ns(), flow_id))

    async def _outcome(self, ticket: int) -> Outcome:
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._waiting[ticket] = future
        self._flush_soon()
        try:
            return await future
        finally:
            self._waiting.pop(ticket, None)

    @contextmanager
    def watching(self) -> Iterator[asyncio.Queue[News]]:
        """Meanwhile everything that happens is put there; a queue that is full misses it."""
        queue: asyncio.Queue[News] = asyncio.Queue(maxsize=1000)
        self._watchers.add(queue)
        try:
            yield queue
        finally:
            self._watchers.discard(queue)

    def observed(self, observation: Observation) -> None:
        """Delays were measured."""
        self.delays.add(observation)
        if not self._is_measured:
            self._is_measured = True
            self._loop.call_later(_MEASURED_S, self._tell_measured)

    def _tell_measured(self) -> None:
        self._is_measured = False
        self._tell(Measured())

    def _tell(self, news: News) -> None:
        for queue in self._watchers:
            if not queue.full():
                queue.put_nowait(news)

    async def end(self) -> None:
        """End the OpenFlow application, and let the disk finish."""
        self._ticking.cancel()
        await self.switches.end()
        self._disk.shutdown()

    # What the switches tell.

    def switch_connected(self, name: str) -> None:
        """A switch has introduced itself."""
        self.keeper.connected(time.monotonic_ns(), name)
        self._flush_soon()

    def switch_replied(self, name: str, reply: Reply) -> None:
        """A switch has answered."""
        self.keeper.reply(time.monotonic_ns(), name, reply)
        self._flush_soon()

    def switch_disconnected(self, name: str) -> None:
        """A connection is gone."""
        self.keeper.disconnected(time.monotonic_ns(), name)
        self._flush_soon()

    def application_ended(self, status: int) -> None:
        """The OpenFlow application should not end."""
        self._fatal(f"the OpenFlow application has ended with status {status}; its messages are above")

    # Effects.

    async def _tick_forever(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.keeper.tick(time.monotonic_ns())
            self._flush_soon()

    def _wake_when_due(self) -> None:
        """A flow that is being removed waits for milliseconds, not for the next tick."""
        due_ns = self.keeper.due_ns
        if due_ns is not None and not self._is_waking:
            self._is_waking = True
            self._loop.call_later(max(0, due_ns - time.monotonic_ns()) / 1e9, self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        self.keeper.tick(time.monotonic_ns())
        self._flush_soon()

    def _flush_soon(self) -> None:
        self._flush_is_due = True
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Carry out the effects. While the disk is busy with some, more come together for the next time."""
        self._flush_is_due = False
        effects = self.keeper.effects()
        self._wake_when_due()
        if effects.writes:
            written = self._loop.run_in_executor(self._disk, self._store.write, effects.writes)
            written.add_done_callback(self._check_disk)
            if effects.must_wait:
                written.add_done_callback(lambda done: self._written(effects, done))
                return
        self._flushed(effects)

    def _written(self, effects: Effects, done: asyncio.Future[None]) -> None:
        if done.exception() is None:
            self._flushed(effects)

    def _check_disk(self, done: asyncio.Future[None]) -> None:
        if (problem := done.exception()) is not None:
            self._fatal(f"{problem}: nothing more can be promised")

    def _flushed(self, effects: Effects) -> None:
        """The disk has what must be there before the rest may follow."""
        self._carry_out(effects)
        self._is_flushing = False
        if self._flush_is_due:
            self._flush_soon()

    def _carry_out(self, effects: Effects) -> None:
        for switch, requests in effects.sends:
            self.switches.send(switch, requests)
        for switch in effects.closes:
            self.switches.close(switch)
        for ticket, outcome in effects.answers:
            future = self._waiting.get(ticket)
            if future is not None and not future.done():
                future.set_result(outcome)
        for happening in effects.happenings:
            level = logging.WARNING if happening.warning else logging.DEBUG
            if happening.kind == "switch" and not happening.warning:
                level = logging.INFO
            _LOG.log(level, "%s %s: %s", happening.kind, happening.name, happening.text)
            self._tell(happening)
