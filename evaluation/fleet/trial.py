"""What a fleet does: it connects, asks one by one, asks all at once, and restarts half of its boards."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluation.emulation.boards import free_of_control_cost
from evaluation.fleet.board import Asked, FleetBoard
from evaluation.fleet.results import Result, rate_per_s, times
from evaluation.runner import RunError

_STEP_S: Final = 0.0005
MOST_ASKED: Final = 100
"""A board's table holds 128 entries; a full one refuses what the controller sends, and measures no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured."""

    controller: tuple[str, int]
    boards: int
    control_cost: bool
    rounds: int
    one_by_one: int
    """Frames of each board, one at a time in the whole fleet."""
    at_once: int
    """Frames of each board under load."""
    outstanding: int
    """Frames of a board that wait for an answer at any time, under load."""
    timeout_s: float
    profile: str = "zodiac-fx"


async def measure(plan: Plan, result: Result) -> None:
    """Measure into `result`, round by round, so that what is done stays if this is cancelled.

    Raises `RunError` if the controller cannot be reached, or sets up no session in time.
    """
    await _reachable(plan)
    setups: list[int] = []
    processing: list[int] = []
    provisioning: list[int] = []
    loaded: list[int] = []
    recoveries: list[int] = []
    rates: list[float] = []
    setup_rates: list[float] = []
    for _ in range(plan.rounds):
        async with _fleet(plan, result) as boards:
            began_ns = time.monotonic_ns()
            for board in boards:
                board.connect()
            await _until(lambda: all(one.is_ready for one in boards), plan.timeout_s + plan.boards * 0.1)
            ready = [one for one in boards if one.is_ready]
            if not ready:
                raise RunError(
                    f"{_text(plan.controller)}: the controller has set up no session; does it speak OpenFlow?"
                )
            result.sessions = max(result.sessions, len(ready))
            instants = [one.ready_ns for one in ready if one.ready_ns is not None]
            setups += [at - (one.began_ns or at) for one, at in zip(ready, instants, strict=True)]
            if (rate := rate_per_s(instants, began_ns)) is not None:
                setup_rates.append(rate)
            result.setup, result.setups_per_s = times(setups), _mean(setup_rates)
            await _teach(ready, plan)
            single = await _one_by_one(ready, plan)
            _count(result, single)
            processing += _from_told(single)
            provisioning += [
                one.answered_ns - one.offered_ns for one in single if one.answered_ns is not None
            ]
            result.processing, result.provisioning = times(processing), times(provisioning)
            since_ns = time.monotonic_ns()
            load = await _all_at_once(ready, plan)
            _count(result, load)
            loaded += _from_told(load)
            answered = [one.answered_ns for one in load if one.answered_ns is not None]
            if (rate := rate_per_s(answered, since_ns)) is not None:
                rates.append(rate)
            result.loaded, result.processed_per_s = times(loaded), _mean(rates)
            recovered, missing = await _restarts(ready[: max(1, len(ready) // 2)], plan)
            recoveries += recovered
            result.recovery, result.not_recovered = times(recoveries), result.not_recovered + missing
        result.rounds += 1
    result.is_complete = True


async def _reachable(plan: Plan) -> None:
    try:
        async with asyncio.timeout(plan.timeout_s):
            _, writer = await asyncio.open_connection(*plan.controller)
    except (OSError, TimeoutError) as error:
        why = os.strerror(error.errno) if error.errno else "no answer"
        raise RunError(f"--connect {_text(plan.controller)}: {why}; start the controller first") from None
    writer.close()


@asynccontextmanager
async def _fleet(plan: Plan, result: Result) -> AsyncIterator[list[FleetBoard]]:
    with tempfile.TemporaryDirectory() as folder:  # a board that restarts reads its profile again
        profile = plan.profile if plan.control_cost else free_of_control_cost(plan.profile, Path(folder))
        boards = [FleetBoard(number, profile, plan.controller) for number in range(plan.boards)]
        pacing = asyncio.create_task(_pace(boards))
        try:
            yield boards
        finally:
            pacing.cancel()
            complaints: Counter[str] = Counter(result.complaints)
            for board in boards:
                complaints.update(text.partition(";")[0] for text in board.complaints)
                result.closed_by_controller += board.closed_by_controller
            result.complaints = dict(complaints.most_common(10))
            ended = [task for board in boards for task in board.switch_off()]
            await asyncio.gather(pacing, *ended, return_exceptions=True)


async def _pace(boards: list[FleetBoard]) -> None:
    while True:
        for board in boards:
            board.advance()
        await asyncio.sleep(_STEP_S)


async def _until(holds: Callable[[], bool], timeout_s: float) -> bool:
    end_s = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end_s:
            return False
        await asyncio.sleep(_STEP_S)
    return True


async def _teach(boards: list[FleetBoard], plan: Plan) -> None:
    for board in boards:
        board.teach()
    await _until(lambda: all(board.is_taught for board in boards), plan.timeout_s)


async def _answer(asked: Asked, timeout_s: float) -> None:
    asked.is_lost = not await _until(lambda: asked.answered_ns is not None, timeout_s)


async def _one_by_one(boards: list[FleetBoard], plan: Plan) -> list[Asked]:
    done = []
    for _ in range(plan.one_by_one):
        for board in boards:
            asked = board.ask()
            await _answer(asked, plan.timeout_s)
            done.append(asked)
            if len(done) >= 5 and all(one.is_lost for one in done):
                raise RunError(
                    f"{_text(plan.controller)}: no FLOW_MOD for {len(done)} PACKET_INs of unknown hosts to a"
                    " known one; start an application that learns addresses"
                )
    return done


async def _all_at_once(boards: list[FleetBoard], plan: Plan) -> list[Asked]:
    async def stream(board: FleetBoard, number: int) -> list[Asked]:
        done = []
        for _ in range(number):
            asked = board.ask()
            await _answer(asked, plan.timeout_s)
            done.append(asked)
        return done

    shares = [
        plan.at_once // plan.outstanding + (n < plan.at_once % plan.outstanding)
        for n in range(plan.outstanding)
    ]
    streams = [stream(board, share) for board in boards for share in shares if share]
    return [asked for done in await asyncio.gather(*streams) for asked in done]


async def _restarts(boards: list[FleetBoard], plan: Plan) -> tuple[list[int], int]:
    async def recover(board: FleetBoard) -> int | None:
        began_ns = time.monotonic_ns()
        board.restart()
        if not await _until(lambda: board.is_ready, plan.timeout_s):
            return None
        await _teach([board], plan)
        asked = board.ask()
        await _answer(asked, plan.timeout_s)
        return None if asked.answered_ns is None else asked.answered_ns - began_ns

    found = await asyncio.gather(*(recover(board) for board in boards))
    times_ns = [time_ns for time_ns in found if time_ns is not None]
    return times_ns, len(found) - len(times_ns)


def _count(result: Result, asked: list[Asked]) -> None:
    result.asked += len(asked)
    result.lost += sum(one.is_lost for one in asked)


def _from_told(asked: list[Asked]) -> list[int]:
    return [
        one.answered_ns - one.told_ns
        for one in asked
        if one.answered_ns is not None and one.told_ns is not None
    ]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _text(controller: tuple[str, int]) -> str:
    return f"tcp:{controller[0]}:{controller[1]}"
