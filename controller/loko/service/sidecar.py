"""A program that runs beside the service: emulated boards, or what measures the flows' delays.

It is told which flows are in place, and which faults the emulated lab suffers, in one line at a time, and
answers with lines of observations (`loko.service.delays`). It ends when its standard input ends, so it never
outlives the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Final

from loko.control.restarts import Restarts
from loko.document import InputError
from loko.service.delays import decode_observation
from loko.service.faults import Fault, FaultKind
from loko.service.flow_manager import ManagedFlow
from loko.service.outcome import FlowState, LoggedEvent
from loko.service.run import ServiceEvent, ServiceLoop
from loko.switch_model.flow import Flow, dump_flows

_LOG: Final = logging.getLogger("loko.service")
_LIMIT_BYTES: Final = 1 << 20


class Sidecar:
    """One such program. If it ends before the service does, it is restarted, and told all flows again."""

    def __init__(self, operation: ServiceLoop, *, measures: bool) -> None:
        """`measures`: whether the program is told of flows and gives observations."""
        self._operation = operation
        self._measures = measures
        self._process: Process | None = None
        self._restarts: Restarts | None = None
        self._is_ending = False
        self._tasks: list[asyncio.Task[None]] = []
        self.pulled: set[str] = set()
        """The cables that are pulled out. If the program is restarted, it is told them again."""

    async def start(self, command: Sequence[str]) -> None:
        """Start the program. Raises `InputError`."""
        self._restarts = Restarts("the program beside the service", lambda: self._start(command))
        await self._restarts.begin()

    async def _start(self, command: Sequence[str]) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE if self._measures else None,
                limit=_LIMIT_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"{command[0]}: {error.strerror}") from None
        self._process = process
        for cable in sorted(self.pulled):
            self._write(Fault(FaultKind.PULL, cable))
        self._tasks = [asyncio.create_task(self._watch(process))]
        if self._measures:
            self._tasks += [
                asyncio.create_task(self._tell(process)),
                asyncio.create_task(self._listen(process)),
            ]

    def cause(self, fault: Fault) -> None:
        """Have the emulated lab suffer a fault, or recover from it."""
        if fault.kind is FaultKind.PULL:
            self.pulled.add(fault.place)
        elif fault.kind is FaultKind.PLUG:
            self.pulled.discard(fault.place)
        self._write(fault)

    def _write(self, fault: Fault) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"fault": fault._asdict()}).encode() + b"\n")

    async def _watch(self, process: Process) -> None:
        """Wait until the program ends, and have it restarted."""
        status = await process.wait()
        if self._is_ending or self._restarts is None:
            return
        if self._measures:
            _LOG.warning("measurement: has ended; no delays are measured until it is back")
            self._operation.delays.set_flows({})  # old ones would look like new ones
        for task in self._tasks[1:]:
            task.cancel()
        self._restarts.ended(status)

    async def end(self) -> None:
        """End the program, and wait until it has ended."""
        self._is_ending = True
        if self._restarts is not None:
            self._restarts.end()
        for task in self._tasks:
            task.cancel()
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.wait()

    async def _tell(self, process: Process) -> None:
        """Write which flows are in place whenever that changes: installed, with no switch of their path away.

        For flows with slots it also writes when they send, which stay the same as long as a flow is in place;
        for duplicated flows, the source ports of the copies that they send.
        """
        assert process.stdin is not None
        told: tuple[list[Flow], dict[str, list[int]]] | None = None
        with self._operation.subscribe() as news, contextlib.suppress(ConnectionError):
            while True:
                installed = [
                    managed
                    for managed in self._operation.manager.flows.values()
                    if managed.state is FlowState.INSTALLED
                ]
                self._operation.delays.set_flows(
                    {managed.flow.id: _measured_against(managed) for managed in installed}
                )
                may_send = self._operation.manager.may_send
                in_place = [managed for managed in installed if may_send(managed)]
                flows = [managed.flow for managed in in_place]
                copies = {
                    managed.flow.id: list(managed.sent_ports)
                    for managed in in_place
                    if managed.second_copies is not None
                }
                if (flows, copies) != told:
                    told = flows, copies
                    timing = self._operation.manager.admitter.timing
                    send_slots = {managed.flow.id: timing(managed.grant) for managed in in_place}
                    values = {"flows": dump_flows(flows), "send_slots": send_slots, "copies": copies}
                    process.stdin.write(json.dumps(values).encode() + b"\n")
                    await process.stdin.drain()
                await self._happened(news)

    @staticmethod
    async def _happened(news: asyncio.Queue[ServiceEvent]) -> None:
        while not isinstance(await news.get(), LoggedEvent):
            pass

    async def _listen(self, process: Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            try:
                self._operation.record_delays(decode_observation(line))
            except ValueError:
                _LOG.warning("measurement: said something else than an observation: %.80r", line)


def _measured_against(managed: ManagedFlow) -> float:
    """Return the bound that holds also for frames that are under way on another path of the flow."""
    return max(managed.grant.guarantee_ns, managed.promised.guarantee_ns)
