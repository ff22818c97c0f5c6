"""The service in operation: the flow manager, its store, the OpenFlow application, and waiting requests."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from loko.admission.protection import Protection
from loko.control.access import AccessList
from loko.control.lab_access import access_list
from loko.control.relay import Listening
from loko.control.restarts import Restarts
from loko.control.switchboard import Switchboard
from loko.control.wire import WireReply
from loko.service.admitter import Decide
from loko.service.counters import LoopStalls
from loko.service.delays import DelayObservation, DelaysChanged, DelayStatistics
from loko.service.disk import WriteQueue
from loko.service.flow_manager import FlowManager
from loko.service.history import EventLog
from loko.service.journal import fields
from loko.service.outcome import (
    Disposition,
    DryRun,
    Effects,
    Event,
    Interrupted,
    LoggedEvent,
    NotStored,
    Refused,
    RequestOutcome,
)
from loko.service.store import Store, StoreUnavailableError
from loko.switch_model.flow import Flow

TICK_S: Final = 0.05
STALL_S: Final = 0.25
"""A tick that is this late was held up, by a long computation or by other work on the machine."""


class ShuttingDown:
    """The last news: the service ends."""


ServiceEvent = LoggedEvent | DelaysChanged | ShuttingDown
_MEASURED_S: Final = 0.5
"""Least time between two reports of measured delays to those who watch."""
_ANSWERS_S: Final = 5.0
"""Time within which waiting requests are answered when the service ends."""
_LOG: Final = logging.getLogger("loko.service")


class ServiceLoop:
    """Runs a flow manager in an event loop. All its calls are made in that loop's thread.

    All that happens while the disk is busy shares the next transaction, however many requests that is.
    """

    def __init__(
        self,
        manager: FlowManager,
        store: Store,
        *,
        fatal: Callable[[str], None],
        history: EventLog | None = None,
        access: AccessList | None = None,
    ) -> None:
        """`fatal` is called with one line when the service cannot go on. `history` is of former runs.

        `access` says from where switches may connect; by default, it is that of the lab on loopback.
        """
        self.manager = manager
        self.switches = Switchboard(
            access or access_list(manager.lab, listen="127.0.0.1"), self, manager.openflow
        )
        self._store = store
        self._fatal = fatal
        self._waiting: dict[int, tuple[str, asyncio.Future[RequestOutcome]]] = {}
        """By ticket, the flow of a request and the future of its answer."""
        self._ending: str | None = None
        self.stalls = LoopStalls()
        self.delays = DelayStatistics()
        self.history = EventLog() if history is None else history
        self._writes = WriteQueue()
        self._writing: asyncio.Future[None] | None = None
        self._watchers: set[asyncio.Queue[ServiceEvent]] = set()
        self._is_measured = False
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="disk")
        self._flush_is_due = self._is_waking = self._is_halted = False
        self._loop = asyncio.get_running_loop()
        # Work for many requests belongs to none of them, not even to the one that triggered it.
        self._context = contextvars.copy_context()
        self._ticking = self._loop.create_task(self._tick_forever())
        self._ticking.add_done_callback(self._check_ticking)
        self._flush_soon()

    async def start(self, listening: Listening, framework: str, python: str) -> None:
        """Start the OpenFlow application on bound sockets; restart it when it ends. Raises `InputError`."""
        self.application = Restarts(
            "the OpenFlow application", lambda: self.switches.start(listening, framework, python)
        )
        await self.application.begin()

    async def request(
        self,
        flow: Flow,
        decide: Decide,
        deadline_ns: float | None = None,
        protection: Protection | None = None,
    ) -> RequestOutcome:
        """Install a flow if it is granted. Return once that is decided."""
        if (refusal := self._refusal(flow.id)) is not None:
            return refusal
        ticket = self.manager.request(time.monotonic_ns(), flow, decide, deadline_ns, protection)
        outcome = await self._outcome(ticket, flow.id)
        if isinstance(outcome, Refused):
            text = str(outcome.refusal).removeprefix(f"{flow.id}: ")
            self._note(Event(kind="refusal", name=flow.id, text=text, warning=True))
        return outcome

    def dry_run(self, flow: Flow, decide: Decide) -> DryRun | RequestOutcome:
        """Say what would become of a request now."""
        return self.manager.dry_run(time.monotonic_ns(), flow, decide)

    async def release(self, flow_id: str) -> RequestOutcome:
        """Remove a flow. Return once it is gone."""
        if (refusal := self._refusal(flow_id)) is not None:
            return refusal
        return await self._outcome(self.manager.release(time.monotonic_ns(), flow_id), flow_id)

    def return_flows(self) -> tuple[str, ...]:
        """Let flows return to their working paths. Return the ids of those that do."""
        returning = self.manager.return_flows(time.monotonic_ns())
        self._flush_soon()
        return returning

    @property
    def storage_failure(self) -> str | None:
        """Why nothing may change, as the disk takes nothing; None while it does."""
        return self._writes.failure

    def _refusal(self, flow_id: str) -> RequestOutcome | None:
        """Return why nothing may change now, if so."""
        if self._ending is not None:
            return Interrupted(flow_id, self._ending, Disposition.NOTHING)
        if self.storage_failure is not None:
            return NotStored(flow_id, self.storage_failure, Disposition.NOTHING)
        return None

    def interrupt(self, reason: str) -> None:
        """Tell all who wait what becomes of their requests, as the service ends. Begin nothing more."""
        if self._ending is None:
            self._ending = reason
            self.manager.interrupt(time.monotonic_ns(), reason)
            self._flush_soon()
            self._tell(ShuttingDown())
            self._loop.call_later(_ANSWERS_S, self._answer_rest)

    def _answer_rest(self) -> None:
        """Answer the requests that still wait for the disk, as it has not answered in time."""
        for flow_id, future in self._waiting.values():
            if not future.done():
                future.set_result(Interrupted(flow_id, str(self._ending), Disposition.UNKNOWN))

    async def _outcome(self, ticket: int, flow_id: str) -> RequestOutcome:
        future: asyncio.Future[RequestOutcome] = self._loop.create_future()
        self._waiting[ticket] = flow_id, future
        self._flush_soon()
        try:
            return await future
        finally:
            self._waiting.pop(ticket, None)

    @contextmanager
    def subscribe(self) -> Iterator[asyncio.Queue[ServiceEvent]]:
        """Give a queue that gets all that happens meanwhile. A full queue misses news.

        If the service is already ending, the queue says so at once.
        """
        queue: asyncio.Queue[ServiceEvent] = asyncio.Queue(maxsize=1000)
        if self._ending is not None:
            queue.put_nowait(ShuttingDown())
        self._watchers.add(queue)
        try:
            yield queue
        finally:
            self._watchers.discard(queue)

    def record_delays(self, observation: DelayObservation) -> None:
        """Record measured delays."""
        self.delays.add(observation, now_ns=time.monotonic_ns())
        if not self._is_measured:
            self._is_measured = True
            self._loop.call_later(_MEASURED_S, self._tell_measured)

    def _note(self, event: Event) -> None:
        """Keep what has happened, and tell those who watch."""
        noted = self.history.add(event, at_ms=time.time_ns() // 1_000_000)
        self._writes.note(noted)
        self._tell(noted)

    def _tell_measured(self) -> None:
        self._is_measured = False
        self._tell(DelaysChanged())

    def _tell(self, news: ServiceEvent) -> None:
        for queue in self._watchers:
            if queue.full() and isinstance(news, ShuttingDown):
                queue.get_nowait()
            if not queue.full():
                queue.put_nowait(news)

    async def end(self) -> None:
        """End the OpenFlow application, and let the disk finish."""
        self._ticking.cancel()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=_ANSWERS_S)
        if not self._is_halted:
            self._flush()
            self._write(notes_at_once=True)
        self.application.end()
        await self.switches.end()
        self._disk.shutdown()

    # Called by the switchboard.

    def switch_connected(self, name: str) -> None:
        """Called when a switch has introduced itself."""
        self.manager.connected(time.monotonic_ns(), name)
        self._flush_soon()

    def switch_replied(self, name: str, reply: WireReply) -> None:
        """Called when a switch has answered."""
        self.manager.reply(time.monotonic_ns(), name, reply)
        self._flush_soon()

    def switch_disconnected(self, name: str) -> None:
        """Called when a connection is gone."""
        self.manager.disconnected(time.monotonic_ns(), name)
        self._flush_soon()

    def connection_refused(self, text: str) -> None:
        """Called with a line, which is logged already, when a connection was refused."""
        self._note(Event(kind="note", name="control network", text=text, warning=True))

    def application_ended(self, status: int) -> None:
        """Called when the OpenFlow application has ended. Switches connect again when it is back."""
        self.application.ended(status)
        text = "has ended; it is started again"
        self._note(Event(kind="note", name="OpenFlow application", text=text, warning=True))

    # Effects.

    def is_responsive(self) -> bool:
        """Return whether the flow manager ticks and the disk answers; else, restart the service."""
        return not (self._writes.is_stuck(self._loop.time()) or self._ticking.done())

    def _check_ticking(self, ticking: asyncio.Task[None]) -> None:
        if not ticking.cancelled() and (problem := ticking.exception()) is not None:
            _LOG.error("the keeper of flows has failed", exc_info=problem)
            self._fatal(f"the keeper of flows has failed: {problem!r}")

    async def _tick_forever(self) -> None:
        while True:
            due_s = self._loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self._note_stall(self._loop.time() - due_s)
            self.manager.tick(time.monotonic_ns())
            self._flush_soon()

    def _write(self, *, notes_at_once: bool = False) -> None:
        """Hand the next transaction to the disk, if one is due."""
        writes = self._writes.take(self._loop.time(), notes_at_once=notes_at_once)
        if writes:
            self._writing = self._loop.run_in_executor(self._disk, self._store.write, writes)
            self._writing.add_done_callback(self._written)

    def _written(self, done: asyncio.Future[None]) -> None:
        """Go on with what depends on a transaction, now that it is on disk or known to be not."""
        problem = done.exception()
        if problem is not None and not isinstance(problem, StoreUnavailableError):
            self._halt(f"{problem}: nothing more can be promised")
            return
        was_failing = self.storage_failure is not None
        with self._effects_or_halt():
            if problem is None:
                self.manager.stored(time.monotonic_ns(), self._writes.written())
            else:
                writes = self._writes.failed(self._loop.time(), str(problem))
                self._writes.put_back(self.manager.failed(time.monotonic_ns(), writes, str(problem)))
        if problem is not None and not was_failing:
            self._note_storage(f"{problem}; nothing can change until this is mended", warning=True)
        elif problem is None and was_failing:
            self._note_storage("it takes changes again")
        self._flush_soon()

    def _halt(self, text: str) -> None:
        """Carry out nothing more, and end the service."""
        self._is_halted = True
        self._fatal(text)

    @contextmanager
    def _effects_or_halt(self) -> Iterator[None]:
        """Halt if half of some effects are lost: nothing may follow then."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - whatever it is, nothing may follow
            _LOG.exception("effects were not carried out")
            self._halt(f"effects were not carried out: {problem!r}")

    def _note_storage(self, text: str, *, warning: bool = False) -> None:
        _LOG.log(logging.WARNING if warning else logging.INFO, "store: %s", text)
        self._note(Event(kind="note", name="store", text=text, warning=warning))

    def _note_stall(self, late_s: float) -> None:
        if late_s >= STALL_S:
            self.stalls.count += 1
            self.stalls.total_s += late_s
            _LOG.debug("the service was kept from its work for %.2f s", late_s)

    def _wake_when_due(self) -> None:
        """Wake the flow manager when it is due: a removal need not wait for the next tick."""
        due_ns = self.manager.due_ns
        if due_ns is not None and not self._is_waking:
            self._is_waking = True
            wait_s = max(0, due_ns - time.monotonic_ns()) / 1e9
            self._loop.call_later(wait_s, self._wake, context=self._context)

    def _wake(self) -> None:
        self._is_waking = False
        self.manager.tick(time.monotonic_ns())
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not (self._flush_is_due or self._is_halted):
            self._flush_is_due = True
            self._loop.call_soon(self._flush, context=self._context)

    def _flush(self) -> None:
        """Carry out the effects. What is to be written waits for the transaction that is on its way."""
        self._flush_is_due = False
        effects = self.manager.effects()
        self._wake_when_due()
        self._writes.add(effects.writes)
        with self._effects_or_halt():
            self._carry_out(effects)
        if not self._is_halted:
            self._write()

    def _carry_out(self, effects: Effects) -> None:
        for switch, requests in effects.sends:
            self.switches.send(switch, requests)
        for switch in effects.closes:
            self.switches.close(switch)
        for ticket, outcome in effects.answers:
            _, future = self._waiting.get(ticket, ("", None))
            if future is not None and not future.done():
                future.set_result(outcome)
        for event in effects.events:
            level = logging.WARNING if event.warning else logging.DEBUG
            if event.kind == "switch" and not event.warning:
                level = logging.INFO
            values = fields(kind=event.kind, name=event.name, warning=event.warning)
            _LOG.log(level, "%s %s: %s", event.kind, event.name, event.text, extra=values)
            self._note(event)
