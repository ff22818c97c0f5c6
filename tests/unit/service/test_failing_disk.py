"""A disk that takes nothing, or never answers: the service goes on, and promises only what is on it."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from served_boards import FULL, LAB, ServedBoards, flow

from loko.service import disk, run
from loko.service.outcome import (
    Disposition,
    Event,
    FlowState,
    Granted,
    Interrupted,
    LoggedEvent,
    NotStored,
    Released,
    RequestOutcome,
    UnknownFlow,
)
from loko.service.run import ServiceLoop
from loko.service.store import Store, StoreError, StoreUnavailableError

PROBLEM = "flows.sqlite: disk I/O error"


class ScriptedStore:
    """A store in which `write` does what the test says; it gets the kinds of writes."""

    def __init__(self, write: Callable[[set[str]], None]) -> None:
        self._write = write

    def write(self, writes: list[object]) -> None:
        self._write({type(write).__name__ for write in writes})


class Application:
    """Stands in for the OpenFlow application."""

    def end(self) -> None:
        pass


def operation_of(served: ServedBoards, store: object, failures: list[str]) -> ServiceLoop:
    operation = ServiceLoop(served.manager, store, fatal=failures.append)  # type: ignore[arg-type]
    operation.application = Application()  # type: ignore[assignment]
    return operation


@pytest.fixture
def served(tmp_path: Path) -> ServedBoards:
    boards = ServedBoards(tmp_path / "flows.sqlite")
    boards.settle()
    return boards


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


# The flow manager.


def test_what_is_not_stored_is_not_begun(served: ServedBoards) -> None:
    assert served.request(flow(1)) == Granted("f1", is_new=True)
    tables = served.tables()
    served.full = True
    assert served.request(flow(2)) == NotStored("f2", FULL, Disposition.NOTHING)
    assert served.release("f1") == NotStored("f1", FULL, Disposition.NOTHING)
    assert set(served.manager.flows) == set(served.admission.admitted) == {"f1"}
    served.run(8_000)  # its sessions live on: longer than a switch that is not heard is kept
    assert served.tables() == tables == served.promised()
    assert served.manager.flows["f1"].is_in_place
    served.full = False
    assert served.request(flow(2)) == Granted("f2", is_new=True)
    assert served.release("f1") == Released("f1")


def test_a_flow_whose_installation_cannot_be_stored_is_taken_back(served: ServedBoards) -> None:
    ticket = served.begin(flow(1))
    served.carry()
    served.full = True
    assert served.ask(ticket) == NotStored("f1", FULL, Disposition.TAKEN_BACK)
    served.run(500)
    assert served.tables() == {"s1": [], "s2": []}
    assert served.manager.flows == {}
    served.kill()  # the disk knows it as accepted, so it is taken back again
    served.full = False
    served.start()
    served.settle()
    assert served.manager.flows == {}
    assert served.tables() == served.promised()


def test_a_removal_that_has_begun_goes_on_without_the_disk(served: ServedBoards) -> None:
    served.request(flow(1))
    ticket = served.manager.release(served.now_ns, "f1")
    served.carry()
    served.full = True
    assert served.ask(ticket) == Released("f1")
    served.full = False
    assert served.request(flow(1)) == Granted("f1", is_new=True)
    assert [stored.number for stored in served.store.load()] == [2]  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(12))
def test_a_disk_that_comes_and_goes_breaks_no_promise(tmp_path: Path, seed: int) -> None:
    """Requests and releases at random, with restarts; also of boards."""
    choice = random.Random(seed)
    served = ServedBoards(tmp_path / "flows.sqlite", entries=20)
    served.settle()
    granted: set[str] = set()
    unsure: set[str] = set()
    pending: dict[int, tuple[str, bool]] = {}
    count = 0
    for _ in range(6):
        for _ in range(250):
            if choice.random() < 0.05:
                served.full = not served.full
            if choice.random() < 0.004:
                served.reboot(choice.choice(sorted(served.boards)))
            if choice.random() < 0.2:
                if granted and choice.random() < 0.5:
                    name = choice.choice(sorted(granted))
                    granted.discard(name)
                    unsure.add(name)
                    pending[served.manager.release(served.now_ns, name)] = (name, False)
                else:
                    count += 1
                    unsure.add(f"f{count}")
                    pending[served.begin(flow(count))] = (f"f{count}", True)
            served.carry()
            served.step()
            for ticket in [ticket for ticket in pending if ticket in served.answers]:
                name, is_request = pending.pop(ticket)
                _learn(served.answers[ticket], name, granted, unsure, is_request=is_request)
        if choice.random() < 0.5:
            served.kill()
            served.full = False
            served.start()
            unsure |= {name for name, _ in pending.values()}
            pending.clear()
        served.full = False
        served.settle()
        installed = {
            name for name, promise in served.manager.flows.items() if promise.state is FlowState.INSTALLED
        }
        assert granted <= installed <= granted | unsure
        assert served.tables() == served.promised()
        assert set(served.admission.admitted) == installed == set(served.manager.flows)
        granted, unsure = installed, set()
        pending.clear()


def _learn(
    outcome: RequestOutcome, name: str, granted: set[str], unsure: set[str], *, is_request: bool
) -> None:
    """Record what an answer says of a flow; a flow stays unsure if it says nothing."""
    match outcome:
        case Granted():
            unsure.discard(name)
            granted.add(name)
        case NotStored(disposition=Disposition.NOTHING) if not is_request:
            unsure.discard(name)
            granted.add(name)
        case NotStored(disposition=Disposition.UNKNOWN):
            pass
        case Released() as gone if gone.waiting_for:
            pass
        case Released() | UnknownFlow():
            unsure.discard(name)
        case _ if is_request:
            unsure.discard(name)


# The service.


def test_changes_are_refused_until_the_disk_takes_them(
    served: ServedBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "RETRY_S", 0.05)
    failures: list[str] = []
    is_full = True

    def write(_kinds: set[str]) -> None:
        if is_full:
            raise StoreUnavailableError(PROBLEM)

    async def scene() -> None:
        nonlocal is_full
        operation = operation_of(served, ScriptedStore(write), failures)
        first = await operation.request(flow(1), served.decision(flow(1)))
        assert first == NotStored("f1", PROBLEM, Disposition.NOTHING)
        assert operation.storage_failure == PROBLEM
        assert await operation.release("f1") == NotStored("f1", PROBLEM, Disposition.NOTHING)
        assert operation.is_responsive(), "it must not be restarted: its tables are kept"
        is_full = False
        await until(lambda: operation.storage_failure is None)
        assert await operation.release("f1") == UnknownFlow("f1")
        texts = [note["text"] for note in operation.history.values() if note["name"] == "store"]
        assert texts == [f"{PROBLEM}; nothing can change until this is mended", "it takes changes again"]
        await operation.end()

    asyncio.run(scene())
    assert failures == []


def test_a_store_that_will_never_take_anything_ends_the_service(
    served: ServedBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_ANSWERS_S", 0.05)
    failures: list[str] = []
    damage = "flows.sqlite: database disk image is malformed"

    def write(_kinds: set[str]) -> None:
        raise StoreError(damage)

    async def scene() -> None:
        operation = operation_of(served, ScriptedStore(write), failures)
        asked = asyncio.create_task(operation.request(flow(1), served.decision(flow(1))))
        await until(lambda: bool(failures))
        assert not asked.done(), "what is not on disk is not promised"
        operation.interrupt(failures[0])
        assert await asked == Interrupted("f1", failures[0], Disposition.UNKNOWN)
        later = await operation.request(flow(2), served.decision(flow(2)))
        assert later == Interrupted("f2", failures[0], Disposition.NOTHING)
        await operation.end()

    asyncio.run(scene())
    assert failures == [f"{damage}: nothing more can be promised"]


def test_a_write_that_never_returns_is_noticed_behind_any_other(
    served: ServedBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow is requested while notes are being written; the disk takes the notes, and then hangs."""
    monkeypatch.setattr(disk, "STALL_TIMEOUT_S", 0.3)
    monkeypatch.setattr(run, "DISK_PATIENCE_S", 0.3, raising=False)
    notes_begin, notes_may_end, hung = threading.Event(), threading.Event(), threading.Event()

    def write(kinds: set[str]) -> None:
        if kinds == {LoggedEvent.__name__}:
            notes_begin.set()
            notes_may_end.wait(60)
        else:
            hung.wait(60)

    async def scene() -> None:
        operation = operation_of(served, ScriptedStore(write), [])
        served.manager.disconnected(served.now_ns, "s2")  # something to note
        await until(notes_begin.is_set)
        asked = asyncio.create_task(operation.release("f1"))
        await asyncio.sleep(0.1)
        notes_may_end.set()
        await until(lambda: not operation.is_responsive())
        assert not asked.done()
        hung.set()
        await operation.end()

    served.request(flow(1))
    asyncio.run(scene())


def test_a_keeper_that_fails_ends_the_service(served: ServedBoards, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[str] = []

    def fail(_now_ns: int) -> None:
        raise RuntimeError("a mistake")

    async def scene() -> None:
        monkeypatch.setattr(served.manager, "tick", fail)
        operation = operation_of(served, served.store, failures)
        assert operation.is_responsive()
        await until(lambda: bool(failures))
        assert not operation.is_responsive()
        await operation.end()

    asyncio.run(scene())
    assert failures == ["the keeper of flows has failed: RuntimeError('a mistake')"]


# The store.


def test_a_transaction_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "flows.sqlite", lab=LAB.name, options={}) as store:
        database = store._database
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
        text = "x" * 2000
        notes = [LoggedEvent(number, 0, Event(kind="note", name="x", text=text)) for number in range(1, 20)]
        with pytest.raises(StoreUnavailableError, match="disk is full"):
            store.write(notes)
        assert store.notes() == []
        database.execute("PRAGMA max_page_count = 1000000")
        store.write(notes)
        assert store.notes() == notes


def test_damage_is_no_fault_of_the_environment(tmp_path: Path) -> None:
    with Store(tmp_path / "flows.sqlite", lab=LAB.name, options={}) as store:
        store._database.execute("DROP TABLE notes")
        with pytest.raises(StoreError) as caught:
            store.write([LoggedEvent(1, 0, Event(kind="note", name="x", text="x"))])
    assert not isinstance(caught.value, StoreUnavailableError)
