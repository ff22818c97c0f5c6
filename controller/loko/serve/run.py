"""The service in operation: the keeper, its store, the OpenFlow application, and waiting requests."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from loko.controller.restarts import Restarts
from loko.controller.switchboard import Switchboard
from loko.controller.wire import Reply
from loko.flow import Flow
from loko.serve.delays import DelayBook, DelaysChanged, Observation
from loko.serve.granting import Decide
from loko.serve.history import History
from loko.serve.journal import fields
from loko.serve.keeper import FlowKeeper
from loko.serve.outcome import (
    Became,
    Denied,
    Effects,
    Happening,
    Interrupted,
    Noted,
    Outcome,
    Would,
    Write,
)
from loko.serve.store import Store
from loko.serve.tallies import Tallies

TICK_S: Final = 0.05
STALL_S: Final = 0.25
"""A tick that is this late was held up, by a long computation or by other work on the machine."""


class Over:
    """The last news: the service ends."""


News = Noted | DelaysChanged | Over
DISK_PATIENCE_S: Final = 20.0
"""A disk that takes longer than this for a transaction will not recover by itself."""
_NOTES_S: Final = 1.0
"""Time after which what has happened is on disk; a kill loses no more of it."""
_MEASURED_S: Final = 0.5
"""Least time between two reports of measured delays to those who watch."""
_ANSWERS_S: Final = 5.0
"""Time within which waiting requests are answered when the service ends."""
_LOG: Final = logging.getLogger("loko.serve")


class Operation:
    """Runs a keeper in an event loop. All its calls are made in that loop's thread.

    All that happens while the disk is busy shares the next transaction, however many requests that is.
    """

    def __init__(
        self,
        keeper: FlowKeeper,
        store: Store,
        *,
        fatal: Callable[[str], None],
        history: History | None = None,
    ) -> None:
        """`fatal` is called with one line when the service cannot go on. `history` is of former runs."""
        self.keeper = keeper
        self.switches = Switchboard(keeper.lab, self, keeper.openflow)
        self._store = store
        self._fatal = fatal
        self._waiting: dict[int, tuple[str, asyncio.Future[Outcome]]] = {}
        """By ticket, the flow of a request and the future of its answer."""
        self._ending: str | None = None
        self.tallies = Tallies()
        self.delays = DelayBook()
        self.history = History() if history is None else history
        self._unwritten: list[Noted] = []
        """Noted, but not yet in any transaction. What has happened alone waits for others, or a while."""
        self._write_notes_s = 0.0
        self._watchers: set[asyncio.Queue[News]] = set()
        self._is_measured = False
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="disk")
        self._flush_is_due = self._is_flushing = self._is_waking = False
        self._loop = asyncio.get_running_loop()
        # What is carried out for many belongs to no request, not even to the one that triggered it.
        self._context = contextvars.copy_context()
        self._ticking = self._loop.create_task(self._tick_forever())
        self._ticking.add_done_callback(self._check_ticking)
        self._waits_for_disk_s: float | None = None
        """Since when a transaction has been waiting for the disk; None if none is."""
        self._flush_soon()

    async def start(self, listening: socket.socket, framework: str, python: str) -> None:
        """Start the OpenFlow application on a bound socket; restart it when it ends. Raises `InputError`."""
        self.application = Restarts(
            "the OpenFlow application", lambda: self.switches.start(listening, framework, python)
        )
        await self.application.begin()

    async def request(self, flow: Flow, decide: Decide) -> Outcome:
        """Install a flow if it is granted. Return once that is decided."""
        if self._ending is not None:
            return Interrupted(flow.id, self._ending, Became.NOTHING)
        ticket = self.keeper.request(time.monotonic_ns(), flow, decide)
        outcome = await self._outcome(ticket, flow.id)
        if isinstance(outcome, Denied):
            text = str(outcome.refusal).removeprefix(f"{flow.id}: ")
            self._note(Happening(kind="refusal", name=flow.id, text=text, warning=True))
        return outcome

    def what_if(self, flow: Flow, decide: Decide) -> Would | Outcome:
        """Say what would become of a request now."""
        return self.keeper.what_if(time.monotonic_ns(), flow, decide)

    async def release(self, flow_id: str) -> Outcome:
        """Remove a flow. Return once it is gone."""
        if self._ending is not None:
            return Interrupted(flow_id, self._ending, Became.NOTHING)
        return await self._outcome(self.keeper.release(time.monotonic_ns(), flow_id), flow_id)

    def interrupt(self, reason: str) -> None:
        """Tell all who wait what becomes of their requests, as the service ends. Begin nothing more."""
        if self._ending is None:
            self._ending = reason
            self.keeper.interrupt(time.monotonic_ns(), reason)
            self._flush_soon()
            self._tell(Over())
            self._loop.call_later(_ANSWERS_S, self._answer_rest)

    def _answer_rest(self) -> None:
        """Answer the requests that still wait for the disk, as it has not answered in time."""
        for flow_id, future in self._waiting.values():
            if not future.done():
                future.set_result(Interrupted(flow_id, str(self._ending), Became.UNKNOWN))

    async def _outcome(self, ticket: int, flow_id: str) -> Outcome:
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._waiting[ticket] = flow_id, future
        self._flush_soon()
        try:
            return await future
        finally:
            self._waiting.pop(ticket, None)

    @contextmanager
    def watching(self) -> Iterator[asyncio.Queue[News]]:
        """Give a queue that gets all that happens meanwhile. A full queue misses news.

        If the service is already ending, the queue says so at once.
        """
        queue: asyncio.Queue[News] = asyncio.Queue(maxsize=1000)
        if self._ending is not None:
            queue.put_nowait(Over())
        self._watchers.add(queue)
        try:
            yield queue
        finally:
            self._watchers.discard(queue)

    def observed(self, observation: Observation) -> None:
        """Record measured delays."""
        self.delays.add(observation, now_ns=time.monotonic_ns())
        if not self._is_measured:
            self._is_measured = True
            self._loop.call_later(_MEASURED_S, self._tell_measured)

    def _note(self, happening: Happening) -> None:
        """Keep what has happened, and tell those who watch."""
        noted = self.history.add(happening, at_ms=time.time_ns() // 1_000_000)
        self._unwritten.append(noted)
        self._tell(noted)

    def _tell_measured(self) -> None:
        self._is_measured = False
        self._tell(DelaysChanged())

    def _tell(self, news: News) -> None:
        for queue in self._watchers:
            if queue.full() and isinstance(news, Over):
                queue.get_nowait()
            if not queue.full():
                queue.put_nowait(news)

    async def end(self) -> None:
        """End the OpenFlow application, and let the disk finish."""
        self._ticking.cancel()
        self._write_notes()
        self.application.end()
        await self.switches.end()
        self._disk.shutdown()

    # Called by the switchboard.

    def switch_connected(self, name: str) -> None:
        """Called when a switch has introduced itself."""
        self.keeper.connected(time.monotonic_ns(), name)
        self._flush_soon()

    def switch_replied(self, name: str, reply: Reply) -> None:
        """Called when a switch has answered."""
        self.keeper.reply(time.monotonic_ns(), name, reply)
        self._flush_soon()

    def switch_disconnected(self, name: str) -> None:
        """Called when a connection is gone."""
        self.keeper.disconnected(time.monotonic_ns(), name)
        self._flush_soon()

    def application_ended(self, status: int) -> None:
        """Called when the OpenFlow application has ended. Switches connect again when it is back."""
        self.application.ended(status)
        text = "has ended; it is started again"
        self._note(Happening(kind="note", name="OpenFlow application", text=text, warning=True))

    # Effects.

    def works(self) -> bool:
        """Return whether the keeper ticks and the disk answers; if not, the service had better restart."""
        since_s = self._waits_for_disk_s
        stuck = since_s is not None and self._loop.time() - since_s > DISK_PATIENCE_S
        return not (stuck or self._ticking.done())

    def _check_ticking(self, ticking: asyncio.Task[None]) -> None:
        if not ticking.cancelled() and (problem := ticking.exception()) is not None:
            _LOG.error("the keeper of flows has failed", exc_info=problem)
            self._fatal(f"the keeper of flows has failed: {problem!r}")

    async def _tick_forever(self) -> None:
        while True:
            due_s = self._loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self._note_stall(self._loop.time() - due_s)
            self.keeper.tick(time.monotonic_ns())
            if self._loop.time() >= self._write_notes_s:
                self._write_notes()
            self._flush_soon()

    def _write_notes(self) -> None:
        """Write down what has happened since the last transaction, once a second."""
        self._write_notes_s = self._loop.time() + _NOTES_S
        if self._unwritten and self._waits_for_disk_s is None:
            self._write(self._taken_notes())

    def _taken_notes(self) -> list[Write]:
        taken: list[Write] = [*self._unwritten]
        self._unwritten.clear()
        return taken

    def _write(self, writes: Sequence[Write]) -> asyncio.Future[None]:
        """Hand a transaction to the disk."""
        if self._waits_for_disk_s is None:
            self._waits_for_disk_s = self._loop.time()
        written = self._loop.run_in_executor(self._disk, self._store.write, writes)
        written.add_done_callback(self._check_disk)
        return written

    def _note_stall(self, late_s: float) -> None:
        if late_s >= STALL_S:
            self.tallies.stalls += 1
            self.tallies.stalled_s += late_s
            _LOG.debug("the service was kept from its work for %.2f s", late_s)

    def _wake_when_due(self) -> None:
        """Wake the keeper when it is due: a removal need not wait for the next tick."""
        due_ns = self.keeper.due_ns
        if due_ns is not None and not self._is_waking:
            self._is_waking = True
            wait_s = max(0, due_ns - time.monotonic_ns()) / 1e9
            self._loop.call_later(wait_s, self._wake, context=self._context)

    def _wake(self) -> None:
        self._is_waking = False
        self.keeper.tick(time.monotonic_ns())
        self._flush_soon()

    def _flush_soon(self) -> None:
        self._flush_is_due = True
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush, context=self._context)

    def _flush(self) -> None:
        """Carry out the effects. While the disk is busy with some, further ones gather for the next time."""
        self._flush_is_due = False
        effects = self.keeper.effects()
        self._wake_when_due()
        if effects.writes:
            written = self._write([*effects.writes, *self._taken_notes()])
            if effects.must_wait:
                written.add_done_callback(lambda done: self._written(effects, done))
                return
        self._flushed(effects)

    def _written(self, effects: Effects, done: asyncio.Future[None]) -> None:
        if done.exception() is None:
            self._flushed(effects)

    def _check_disk(self, done: asyncio.Future[None]) -> None:
        self._waits_for_disk_s = None
        if (problem := done.exception()) is not None:
            self._fatal(f"{problem}: nothing more can be promised")

    def _flushed(self, effects: Effects) -> None:
        """Carry out the rest: the disk has what must be there first."""
        try:
            self._carry_out(effects)
        except Exception as problem:  # noqa: BLE001 - half of them are lost, so nothing may follow
            _LOG.exception("effects were not carried out")
            self._fatal(f"effects were not carried out: {problem!r}")
            return
        self._is_flushing = False
        if self._flush_is_due:
            self._flush_soon()

    def _carry_out(self, effects: Effects) -> None:
        for switch, requests in effects.sends:
            self.switches.send(switch, requests)
        for switch in effects.closes:
            self.switches.close(switch)
        for ticket, outcome in effects.answers:
            _, future = self._waiting.get(ticket, ("", None))
            if future is not None and not future.done():
                future.set_result(outcome)
        for happening in effects.happenings:
            level = logging.WARNING if happening.warning else logging.DEBUG
            if happening.kind == "switch" and not happening.warning:
                level = logging.INFO
            values = fields(kind=happening.kind, name=happening.name, warning=happening.warning)
            _LOG.log(level, "%s %s: %s", happening.kind, happening.name, happening.text, extra=values)
            self._note(happening)
