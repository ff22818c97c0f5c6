"""Run emulated boards of a lab, in a process of their own.

python -m evaluation.emulation two-switch --controller 127.0.0.1:6633
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer
import uvloop

from evaluation.emulation.boards import run_alone
from evaluation.emulation.traffic import TrafficLab
from loko.commands import wrong_input_ends
from loko.lab import load_lab


async def _run(work: Coroutine[Any, Any, None], told: Callable[[bytes], None] | None) -> None:
    """Work until who started this has ended, which closes the standard input."""
    tasks = [asyncio.create_task(work), asyncio.create_task(_listen(told))]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _listen(told: Callable[[bytes], None] | None) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if told is not None:
            told(line)


async def _run_traffic(lab: TrafficLab) -> None:
    await _run(lab.run(), lab.told)


def main(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab.")],
    *,
    controller: Annotated[str, typer.Option(help="Address and TCP port.")] = "127.0.0.1:6633",
    free_control: Annotated[
        bool, typer.Option("--free-control", help="Let messages of the controller cost no time.")
    ] = False,
    traffic: Annotated[
        bool,
        typer.Option("--traffic", help="Cable the boards, and send the flows that the standard input names."),
    ] = False,
) -> None:
    """Run the boards of a lab until the standard input is closed."""
    host, _, port = controller.rpartition(":")
    address = (host, int(port))
    with wrong_input_ends(), contextlib.suppress(KeyboardInterrupt):
        network = load_lab(lab)
        if traffic:
            uvloop.run(_run_traffic(TrafficLab(network, address, free_control=free_control)))
        else:
            uvloop.run(_run(run_alone(network, address, free_control=free_control), None))


if __name__ == "__main__":
    typer.run(main)
