"""Clients that wait for an answer when the disk fails get one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from served_boards import ServedBoards, flow

from loko.serve import run
from loko.serve.outcome import Became, Interrupted
from loko.serve.run import Operation
from loko.serve.store import StoreError

PROBLEM = "flows.sqlite: disk I/O error"


class FailingStore:
    def write(self, _writes: object) -> None:
        raise StoreError(PROBLEM)


class Application:
    """Stands in for the OpenFlow application."""

    def end(self) -> None:
        pass


def test_nobody_waits_for_a_disk_that_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_ANSWERS_S", 0.05)
    served = ServedBoards(tmp_path / "flows.sqlite")
    served.settle()
    failures: list[str] = []

    async def scene() -> None:
        operation = Operation(served.keeper, FailingStore(), fatal=failures.append)  # type: ignore[arg-type]
        operation.application = Application()  # type: ignore[assignment]
        asked = asyncio.create_task(operation.request(flow(1), served.decision(flow(1))))
        while not failures:
            await asyncio.sleep(0.01)
        assert not asked.done(), "what is not on disk is not promised"
        operation.interrupt(failures[0])
        assert await asked == Interrupted("f1", failures[0], Became.UNKNOWN)
        later = await operation.request(flow(2), served.decision(flow(2)))
        assert later == Interrupted("f2", failures[0], Became.NOTHING)
        await operation.end()

    asyncio.run(scene())
    assert failures == [f"{PROBLEM}: nothing more can be promised"]


def test_a_keeper_that_fails_ends_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite")
    failures: list[str] = []

    def fail(_now_ns: int) -> None:
        raise RuntimeError("a mistake")

    async def scene() -> None:
        monkeypatch.setattr(served.keeper, "tick", fail)
        operation = Operation(served.keeper, served.store, fatal=failures.append)  # type: ignore[arg-type]
        operation.application = Application()  # type: ignore[assignment]
        assert operation.works()
        while not failures:
            await asyncio.sleep(0.01)
        assert not operation.works()
        await operation.end()

    asyncio.run(scene())
    assert failures == ["the keeper of flows has failed: RuntimeError('a mistake')"]
