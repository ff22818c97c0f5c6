"""Main loop of a sidecar of `loko serve`: it listens to the service, and ends when that does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from loko.service.delays import DelayObservation, encode_observations
from loko.service.faults import Fault
from loko.switch_model.flow import Flow
from loko_testbed.live.sidecars.senders import FlowsInPlace, SendSlots

_LINE_BYTES: Final = 2**24


async def run_sidecar(
    work: Coroutine[Any, Any, None],
    on_flows: Callable[[FlowsInPlace], None] | None = None,
    on_fault: Callable[[Fault], None] | None = None,
) -> None:
    """Work until the parent process ends, which closes the standard input.

    `on_flows` is called whenever the service says which flows are in place, `on_fault` when it has a fault
    caused.
    """
    tasks = [asyncio.create_task(work), asyncio.create_task(_listen(on_flows, on_fault))]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in done:
        task.result()


async def _listen(
    on_flows: Callable[[FlowsInPlace], None] | None, on_fault: Callable[[Fault], None] | None
) -> None:
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        values = json.loads(line)
        if "fault" in values:
            if on_fault is not None:
                on_fault(Fault.of(values["fault"]))
        elif on_flows is not None:
            send_slots = {
                name: SendSlots(**send_slot)
                for name, send_slot in values["send_slots"].items()
                if send_slot is not None
            }
            flows = [Flow(**flow) for flow in values["flows"]]
            on_flows(FlowsInPlace(flows, send_slots, values["copies"]))


def report(observations: Sequence[DelayObservation]) -> None:
    """Write observations to the standard output, from which the service reads them."""
    if observations:
        sys.stdout.buffer.write(encode_observations(observations))
        sys.stdout.buffer.flush()
