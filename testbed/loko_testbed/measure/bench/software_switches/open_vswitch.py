"""Open vSwitch, with any of its datapaths, as a subject of the campaign."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from os_ken.ofproto import ofproto_v1_0 as of

from loko.switch_model.scenario import OpenFlow
from loko.units import NS_PER_S
from loko_testbed.instruments.controller_endpoint import ASYNCHRONOUS, ControllerEndpoint
from loko_testbed.instruments.dialect import DIALECTS
from loko_testbed.live import datapaths
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.datapaths import Datapath
from loko_testbed.live.openvswitch import OpenVSwitch, prefer, raise_priority
from loko_testbed.measure.bench.live.bench import CONNECT_S, DATAPATH_ID
from loko_testbed.measure.bench.live.software_switch import SWITCH_PRIORITY
from loko_testbed.measure.bench.software_switches.ports import PortInstruments, SwitchPorts, near
from loko_testbed.measure.predictability.subject import (
    SWITCH,
    FrameStream,
    OpenSwitch,
    StreamTimes,
    SwitchUnderTest,
)
from loko_testbed.simulation.runner import RunError

_ADDRESS: Final = "127.0.0.1"
_PORT: Final = 6633
_FLAGS_AT, _MORE = 10, 1
"""Where a part of a statistics reply says whether another follows."""
_ANSWER_NS: Final = 10_000_000_000
"""A reply that takes longer will never come. The time allows for a stalled host."""


class OpenVSwitchUnderTest:
    """The running switch, between its ports and a controller's end of its session."""

    def __init__(
        self, subject: SwitchUnderTest, switch: OpenVSwitch, endpoint: ControllerEndpoint, ports: SwitchPorts
    ) -> None:
        self._device = subject.device
        self._switch = switch
        self._endpoint = endpoint
        self._ports = ports

    def fresh(self, cables: Mapping[int, int]) -> OpenSwitch:
        """See `HtbSwitch.fresh`."""
        try:
            self._endpoint.load([DIALECTS[OpenFlow.V1_0].delete_all])
            self._endpoint.messages()
        except RunError as error:
            raise self._stopped(error) from None
        self._ports.cabled(cables)
        return self

    def longest_pause_ns(self) -> int:
        """See `HtbSwitch.longest_pause_ns`."""
        return self._ports.longest_pause_ns()

    @property
    def remark(self) -> str:
        """See `HtbSwitch.remark`."""
        return f"it is version {self._switch.version}"

    def now_ns(self) -> int:
        """See `OpenSwitch.now_ns`."""
        return time.monotonic_ns()

    def control(
        self,
        board: str,
        segments: Sequence[bytes],
        *,
        spacing_ns: int = 10_000_000,
        await_reply: bool = False,
    ) -> list[bytes]:
        """See `OpenSwitch.control`."""
        del board
        try:
            return [
                message
                for segment in segments
                for message in self._exchanged(segment, spacing_ns, await_reply)
            ]
        except RunError as error:
            raise self._stopped(error) from None

    def _exchanged(self, segment: bytes, spacing_ns: int, await_reply: bool) -> list[bytes]:
        """Send a segment, and return what comes until its reply and for the spacing after it."""
        kind = segment[1] if segment else None
        if kind in (of.OFPT_HELLO, of.OFPT_FEATURES_REQUEST):
            return []  # the session is open already
        if segment:
            self._endpoint.write(segment)
        messages: list[bytes] = []
        if await_reply or kind == of.OFPT_STATS_REQUEST:
            until_ns = time.monotonic_ns() + _ANSWER_NS
            while not any(map(_is_reply, messages)) and (left_ns := until_ns - time.monotonic_ns()) > 0:
                messages += self._endpoint.messages(left_ns / NS_PER_S)
        until_ns = time.monotonic_ns() + spacing_ns
        while (left_ns := until_ns - time.monotonic_ns()) > 0:
            messages += self._endpoint.messages(left_ns / NS_PER_S)
        return [message for message in messages if message[1] not in ASYNCHRONOUS]

    def send(self, streams: Sequence[FrameStream], *, drain_ns: int) -> list[StreamTimes]:
        """See `OpenSwitch.send`."""
        try:
            sent = self._ports.send(streams, drain_ns=drain_ns)
            self._switch.check()
        except RunError as error:
            raise self._stopped(error) from None
        return sent

    def _stopped(self, error: RunError) -> RunError:
        """Return one line on a switch that does not answer. If a program has ended, that is the reason."""
        reason: Exception = error
        try:
            self._switch.check()
        except RunError as ended:
            reason = ended
        return RunError(
            f"{self._device}: stopped answering half-way ({reason});"
            " finished parts are kept: the same command goes on with the others"
        )


@contextmanager
def open_vswitch(subject: SwitchUnderTest, folder: Path) -> Iterator[OpenVSwitchUnderTest]:
    """Run the switch with its datapath in user space, in this thread's network. Raises `RunError`.

    Its files are in `folder`.
    """
    cores = CorePlan.here()
    with _running(subject, folder, cores, datapaths.USER_SPACE, [cores.emulator]) as running:
        waits = _Scheduling(running.switch.pid)
        running.stack.callback(waits.close)
        # Else any program of the machine holds it up. The sender's priority is higher.
        raise_priority(running.switch.pid, SWITCH_PRIORITY)
        yield running.measured(switch_core=cores.emulator, waited_ns=waits.waited_ns)


@contextmanager
def open_vswitch_dpdk(subject: SwitchUnderTest, folder: Path) -> Iterator[OpenVSwitchUnderTest]:
    """Run the switch with DPDK; its polling thread has a core of its own if the machine has two.

    Otherwise as `open_vswitch`.
    """
    cores = CorePlan.here()
    datapath = datapaths.dpdk(polling_core=cores.emulator, other_core=min(cores.others))
    with _running(subject, folder, cores, datapath, sorted({cores.emulator, *cores.others})) as running:
        thread = running.switch.forwarding_thread
        waits = _Scheduling(running.switch.pid, thread)
        running.stack.callback(waits.close)
        prefer(running.switch)
        yield running.measured(switch_core=cores.emulator, waited_ns=waits.waited_ns)


@contextmanager
def open_vswitch_kernel(subject: SwitchUnderTest, folder: Path) -> Iterator[OpenVSwitchUnderTest]:
    """Run the switch with the kernel's datapath, which forwards within the call that sends a frame.

    Otherwise as `open_vswitch`.
    """
    cores = CorePlan.here()
    core = min(cores.others)
    with _running(subject, folder, cores, datapaths.kernel(), [cores.emulator]) as running:
        yield running.measured(switch_core=core, waited_ns=int)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A switch that is connected, and what ends with it."""

    subject: SwitchUnderTest
    switch: OpenVSwitch
    endpoint: ControllerEndpoint
    core: int
    stack: ExitStack

    def measured(self, *, switch_core: int, waited_ns: Callable[[], int]) -> OpenVSwitchUnderTest:
        """Give the switch's ports lines and instruments, and return the switch under test."""
        instruments = PortInstruments(
            core=self.core,
            switch_core=switch_core,
            waited_ns=waited_ns,
            keeps_back=self.switch.datapath.polls,
        )
        ports = SwitchPorts(self.subject, instruments)
        self.stack.callback(ports.close)
        return OpenVSwitchUnderTest(self.subject, self.switch, self.endpoint, ports)


@contextmanager
def _running(
    subject: SwitchUnderTest, folder: Path, cores: CorePlan, datapath: Datapath, cpus: Collection[int]
) -> Iterator[_Running]:
    with ExitStack() as stack:
        endpoint = stack.enter_context(ControllerEndpoint(_ADDRESS, _PORT))
        switch = OpenVSwitch(folder, cpus=cpus, datapath=datapath)
        stack.callback(switch.close)
        numbers = range(1, subject.ports + 1)
        switch.add_switch(
            SWITCH,
            datapath_id=DATAPATH_ID,
            ports={port: near(port) for port in numbers},
            controller=f"{_ADDRESS}:{_PORT}",
        )
        if not datapath.polls:
            switch.leave_queues([near(port) for port in numbers])
        if endpoint.accept(CONNECT_S) is None:
            raise RunError(f"{subject.device}: does not connect to its controller within {CONNECT_S:g} s")
        switch.bear_silence(SWITCH)  # nobody answers while frames are sent
        core = min(cores.others)
        yield _Running(subject=subject, switch=switch, endpoint=endpoint, core=core, stack=stack)


class _Scheduling:
    """Reads how long the forwarding thread has waited for a core: the process's first thread, or another."""

    def __init__(self, pid: int, thread: int | None = None) -> None:
        self._file = os.open(f"/proc/{pid}/task/{thread or pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self._last_ns = 0

    def waited_ns(self) -> int:
        """Return the total wait since the thread began; the last known one if the thread has ended."""
        with contextlib.suppress(OSError, IndexError):
            self._last_ns = int(os.pread(self._file, 64, 0).split()[1])
        return self._last_ns

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _is_reply(message: bytes) -> bool:
    """Whether a message answers a request, and is the last of its parts."""
    if message[1] == of.OFPT_STATS_REPLY:
        return not message[_FLAGS_AT + 1] & _MORE
    return message[1] not in ASYNCHRONOUS and message[1] != of.OFPT_ERROR
