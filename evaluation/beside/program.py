"""What programs that run beside `loko serve` share: they listen to it, and end when it does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from loko.flow import Flow
from loko.serve.delays import Observation, encode_observations

_LINE_BYTES: Final = 2**24


async def run_beside(
    work: Coroutine[Any, Any, None], told: Callable[[Sequence[Flow]], None] | None = None
) -> None:
    """Work until who started this has ended, which closes the standard input.

    `told` is called with the flows that are in place, whenever the service says so.
    """
    tasks = [asyncio.create_task(work), asyncio.create_task(_listen(told))]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in done:
        task.result()


async def _listen(told: Callable[[Sequence[Flow]], None] | None) -> None:
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        if told is not None:
            told([Flow(**values) for values in json.loads(line)["flows"]])


def report(observations: Sequence[Observation]) -> None:
    """Tell the service what was observed."""
    if observations:
        sys.stdout.buffer.write(encode_observations(observations))
        sys.stdout.buffer.flush()
