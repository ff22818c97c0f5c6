"""The course of a fleet test: connect, ask one by one, ask all at once, restart half of the boards."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loko_testbed.live.emulation.boards import free_of_control_cost
from loko_testbed.measure.controllers.board import FleetBoard, UnmatchedFrame
from loko_testbed.measure.controllers.results import FleetResult, rate_per_s, times
from loko_testbed.simulation.runner import RunError

_STEP_S: Final = 0.0005
MOST_REQUESTS: Final = 100
"""A board's table holds 128 entries; a full one refuses what the controller sends, and measures no more."""
_MOST_OF_A_PAUSE_S: Final = 0.05
"""The most that a pause of this program counts towards a timeout: it cannot see an answer meanwhile."""
_TEACH_AGAIN_S: Final = 0.02
_LEARNS_ADDRESSES: Final = "start an application that learns addresses"
_MOST_LOST: Final = 5
"""After this many unanswered frames in a row, the controller is taken to answer no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """The extent of a measurement: how many boards, rounds and frames, and how long to wait."""

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


async def measure(exercise: Exercise, result: FleetResult) -> None:
    """Measure into `result`, round by round: if this is cancelled, what has been measured remains there.

    Raises `RunError` if the controller cannot be reached, or sets up no session in time.
    """
    await _reachable(exercise)
    setups: list[int] = []
    processing: list[int] = []
    provisioning: list[int] = []
    loaded: list[int] = []
    recoveries: list[int] = []
    rates: list[float] = []
    setup_rates: list[float] = []
    for _ in range(exercise.rounds):
        async with _fleet(exercise, result) as boards:
            began_ns = time.monotonic_ns()
            for board in boards:
                board.connect()
            await _until(
                lambda: all(board.is_ready for board in boards), exercise.timeout_s + exercise.boards * 0.1
            )
            ready = [board for board in boards if board.is_ready]
            if not ready:
                raise RunError(
                    f"{_text(exercise.controller)}: the controller has set up no session;"
                    " does it speak OpenFlow?"
                )
            result.sessions = max(result.sessions, len(ready))
            instants = [board.ready_ns for board in ready if board.ready_ns is not None]
            setups += [at - (board.began_ns or at) for board, at in zip(ready, instants, strict=True)]
            if (rate := rate_per_s(instants, began_ns)) is not None:
                setup_rates.append(rate)
            result.setup, result.setups_per_s = times(setups), _mean(setup_rates)
            taught = await _teach(ready, exercise)
            result.left_out += len(ready) - len(taught)
            if not taught:
                raise RunError(
                    f"{_text(exercise.controller)}: no PACKET_OUT for a broadcast of any board;"
                    f" {_LEARNS_ADDRESSES}"
                )
            ready = taught
            single = await _one_by_one(ready, exercise)
            _count(result, single)
            processing += _from_told(single)
            provisioning += [
                frame.answered_ns - frame.offered_ns for frame in single if frame.answered_ns is not None
            ]
            result.processing, result.provisioning = times(processing), times(provisioning)
            since_ns = time.monotonic_ns()
            load = await _all_at_once(ready, exercise)
            _count(result, load)
            loaded += _from_told(load)
            answered = [frame.answered_ns for frame in load if frame.answered_ns is not None]
            if (rate := rate_per_s(answered, since_ns)) is not None:
                rates.append(rate)
            result.loaded, result.processed_per_s = times(loaded), _mean(rates)
            recovered, missing = await _restarts(ready[: max(1, len(ready) // 2)], exercise)
            recoveries += recovered
            result.recovery, result.not_recovered = times(recoveries), result.not_recovered + missing
        result.rounds += 1
    result.is_complete = True


async def _reachable(exercise: Exercise) -> None:
    try:
        async with asyncio.timeout(exercise.timeout_s):
            _, writer = await asyncio.open_connection(*exercise.controller)
    except (OSError, TimeoutError) as error:
        why = os.strerror(error.errno) if error.errno else "no answer"
        raise RunError(f"--connect {_text(exercise.controller)}: {why}; start the controller first") from None
    writer.close()


@asynccontextmanager
async def _fleet(exercise: Exercise, result: FleetResult) -> AsyncIterator[list[FleetBoard]]:
    with tempfile.TemporaryDirectory() as folder:  # a board that restarts reads its profile again
        profile = (
            exercise.profile
            if exercise.control_cost
            else free_of_control_cost(exercise.profile, Path(folder))
        )
        boards = [FleetBoard(number, profile, exercise.controller) for number in range(exercise.boards)]
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
    """Wait until `holds` returns true. Return whether it did within the timeout."""
    waited_s = 0.0
    now_s = time.monotonic()
    while not holds():
        if waited_s > timeout_s:
            return False
        await asyncio.sleep(_STEP_S)
        before_s, now_s = now_s, time.monotonic()
        waited_s += min(now_s - before_s, _MOST_OF_A_PAUSE_S)
    return True


async def _teach(boards: list[FleetBoard], exercise: Exercise) -> list[FleetBoard]:
    """Let the controller learn each board's known host. Return the boards for which it did so in time.

    The host repeats its frame, as hosts do: in OpenFlow 1.3 a board drops it until the controller has sent
    the table-miss entry.
    """
    for _ in range(math.ceil(exercise.timeout_s / _TEACH_AGAIN_S)):
        for board in boards:
            if not board.is_taught:
                board.teach()
        if await _until(lambda: all(board.is_taught for board in boards), _TEACH_AGAIN_S):
            break
    return [board for board in boards if board.is_taught]


async def _answer(asked: UnmatchedFrame, timeout_s: float) -> None:
    asked.is_lost = not await _until(lambda: asked.answered_ns is not None, timeout_s)


async def _one_by_one(boards: list[FleetBoard], exercise: Exercise) -> list[UnmatchedFrame]:
    done = []
    for _ in range(exercise.one_by_one):
        for board in boards:
            asked = board.send_unmatched()
            await _answer(asked, exercise.timeout_s)
            done.append(asked)
            if _answers_no_more(done):
                raise RunError(
                    f"{_text(exercise.controller)}: no FLOW_MOD for {_MOST_LOST} frames in a row from unknown"
                    f" hosts to a known one; {_LEARNS_ADDRESSES}"
                )
    return done


async def _all_at_once(boards: list[FleetBoard], exercise: Exercise) -> list[UnmatchedFrame]:
    async def stream(board: FleetBoard, number: int) -> list[UnmatchedFrame]:
        done = []
        for _ in range(number):
            asked = board.send_unmatched()
            await _answer(asked, exercise.timeout_s)
            done.append(asked)
            if _answers_no_more(done):
                break
        return done

    shares = [
        exercise.at_once // exercise.outstanding + (n < exercise.at_once % exercise.outstanding)
        for n in range(exercise.outstanding)
    ]
    streams = [stream(board, share) for board in boards for share in shares if share]
    return [asked for done in await asyncio.gather(*streams) for asked in done]


async def _restarts(boards: list[FleetBoard], exercise: Exercise) -> tuple[list[int], int]:
    async def recover(board: FleetBoard) -> int | None:
        began_ns = time.monotonic_ns()
        board.restart()
        if not await _until(lambda: board.is_ready, exercise.timeout_s):
            return None
        if not await _teach([board], exercise):
            return None
        asked = board.send_unmatched()
        await _answer(asked, exercise.timeout_s)
        return None if asked.answered_ns is None else asked.answered_ns - began_ns

    recovered = await asyncio.gather(*(recover(board) for board in boards))
    times_ns = [time_ns for time_ns in recovered if time_ns is not None]
    return times_ns, len(recovered) - len(times_ns)


def _answers_no_more(done: list[UnmatchedFrame]) -> bool:
    return len(done) >= _MOST_LOST and all(frame.is_lost for frame in done[-_MOST_LOST:])


def _count(result: FleetResult, asked: list[UnmatchedFrame]) -> None:
    result.requests += len(asked)
    result.lost += sum(frame.is_lost for frame in asked)


def _from_told(asked: list[UnmatchedFrame]) -> list[int]:
    return [
        frame.answered_ns - frame.reported_ns
        for frame in asked
        if frame.answered_ns is not None and frame.reported_ns is not None
    ]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _text(controller: tuple[str, int]) -> str:
    return f"tcp:{controller[0]}:{controller[1]}"
