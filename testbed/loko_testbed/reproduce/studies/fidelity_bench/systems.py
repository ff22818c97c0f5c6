"""The kinds of switches that are compared. Port 1 leads to the sender, port 2 to the receiver.

The firmware emulator's profile has no wait for the main loop (`cpu.loop_ps` has its smallest value) and
timers without cost, so that each frame has a single expected departure; p_CPU still contains the mean wait.
"""

from __future__ import annotations

import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import switch_emulator

from loko.control.messages import barrier_request, features_request, hello
from loko.document import PROFILES
from loko.switch_model.device import Profile, load_profile
from loko.switch_model.scenario import Case
from loko_testbed.live import mininet_link, stand_in, timed_stand_in
from loko_testbed.live.one_board import (
    SEQUENCE_OFFSET,
    BenchmarkController,
    BenchmarkTap,
    EmulatorProcess,
    Namespace,
    PacedFlow,
    read_trace,
    send_paced,
    sequence_of,
)
from loko_testbed.live.openvswitch import OpenVSwitch, hurry
from loko_testbed.reproduce.studies.fidelity_bench.corners import (
    INPUT_PORT,
    OUTPUT_PORT,
    frame,
    scenario,
    table,
)
from loko_testbed.simulation.runner import RunError

PROFILE: Final = "zodiac-fx"
_SWITCH: Final = "s1"
_PORTS: Final = {INPUT_PORT: "s1-eth1", OUTPUT_PORT: "s1-eth2"}
_HOSTS: Final = {INPUT_PORT: "h1", OUTPUT_PORT: "h2"}
_SETTLE_S: Final = 0.05
_REST_NS: Final = 200_000_000
"""Longer than the board needs to finish all its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """Frames to send, with their relative times."""

    count: int
    interval_ns: int
    spread_ns: int = 0
    bursts: int = 1
    """Number of repetitions of the train."""
    burst_interval_ns: int = 0
    """Time from the start of one repetition to the next."""

    @property
    def frames(self) -> int:
        """Total number of frames."""
        return self.count * self.bursts

    @property
    def span_s(self) -> float:
        """Time that sending takes."""
        return (self.count * self.interval_ns + (self.bursts - 1) * self.burst_interval_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityResult:
    """Times of a train's frames by their numbers, which count from 0 in the order of sending."""

    arrivals_ns: dict[int, int]
    """When the first bit arrived at the switch's input port."""
    departures_ns: dict[int, int]
    """When the first bit left the switch's output port."""
    stalled: frozenset[int] = frozenset()
    """Frames that a stall of the host delayed, as far as the switch knows."""


class FidelityBench(ABC):
    """A switch that has the table of a corner."""

    @abstractmethod
    def transmit(self, train: Train) -> FidelityResult:
        """Send a train and record its arrivals and departures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelitySystem:
    """A kind of switch."""

    name: str
    title: str
    live: bool
    at: Callable[[Case, Path], Any]
    """Returns a context manager of a bench with a corner's table; its files go to an existing folder."""


def still_profile(folder: Path) -> Path:
    """Write a profile without wait for the main loop, cost of timers, and pause frames; return its path."""
    text = (PROFILES / f"{PROFILE}.toml").read_text(encoding="utf-8")
    for key, value in (("loop_ps", 1000), ("cost_ps", 0), ("pause_quanta", 0)):
        text, replaced = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        if replaced != 1:
            raise RunError(f"profile {PROFILE}: {key} stands {replaced} times in it, not once")
    path = folder / "still.toml"
    path.write_text(text, encoding="utf-8")
    return path


class _VirtualBench(FidelityBench):
    """The firmware in virtual time."""

    def __init__(self, corner: Case, folder: Path) -> None:
        self._frame = frame(corner)
        self._wire_ns = (8 + corner.frame_bytes) * 80
        self._slot_ns = self._wire_ns + 12 * 80
        self._board = switch_emulator.Board(
            profile=str(still_profile(folder)), config={"ofchecks": False}, seed=1
        )
        self._now_ns = _REST_NS
        self._board.connected(self._now_ns)
        for segment in (hello(1), features_request(2), *table(corner), barrier_request(3)):
            self._now_ns += 10_000_000
            self._board.segment(self._now_ns, segment)
        self._now_ns += _REST_NS
        self._board.advance(self._now_ns)
        self._board.outputs()

    def transmit(self, train: Train) -> FidelityResult:
        """See `FidelityBench.transmit`. Times count from the board's power-up."""
        self._board.segment(self._now_ns, barrier_request(4))
        begins = list(instants(train, self._now_ns + _REST_NS))
        free_ns = 0
        for number, begin in enumerate(begins):
            arrived = max(begin, free_ns) + self._wire_ns
            free_ns = arrived + self._slot_ns - self._wire_ns
            data = bytearray(self._frame)
            data[SEQUENCE_OFFSET : SEQUENCE_OFFSET + 4] = number.to_bytes(4, "big")
            self._board.frame(arrived, INPUT_PORT, bytes(data))
        self._now_ns = begins[-1] + _REST_NS
        self._board.advance(self._now_ns)
        frames = [output for output in self._board.outputs() if output.kind == "frame"]
        return FidelityResult(
            arrivals_ns=dict(enumerate(begins)),
            departures_ns={sequence_of(output.data): output.at_ns for output in frames},
        )


def instants(train: Train, start_ns: int) -> Iterator[int]:
    """Yield when the frames of a train are due."""
    golden = 0x9E3779B97F4A7C15
    for burst in range(train.bursts):
        at_ns = start_ns + burst * train.burst_interval_ns
        for number in range(train.count):
            yield at_ns
            fraction = (number + 1) * golden % 2**64
            at_ns += train.interval_ns - train.spread_ns // 2 + (fraction * train.spread_ns >> 64)


class _LiveBench(FidelityBench):
    """A switch between veths, with taps at its input port and at the receiver."""

    def __init__(
        self, program: Path, namespace: Namespace, folder: Path, controller: BenchmarkController, corner: Case
    ) -> None:
        self._program, self._namespace, self._folder = program, namespace, folder
        self._controller = controller
        self._frame = frame(corner)
        self._before = BenchmarkTap(namespace, _PORTS[INPUT_PORT])
        self._behind = BenchmarkTap(namespace, _HOSTS[OUTPUT_PORT])
        self._sent = 0

    def transmit(self, train: Train) -> FidelityResult:
        # A board that is idle for seconds sends an echo request, which would delay a frame.
        self._controller.confirm()
        time.sleep(_SETTLE_S)
        first = self._sent
        self._sent += train.frames
        flows = [
            PacedFlow(
                interface=_HOSTS[INPUT_PORT],
                frame=self._frame,
                count=train.count,
                interval_ns=train.interval_ns,
                spread_ns=train.spread_ns,
                first_ns=burst * train.burst_interval_ns,
            )
            for burst in range(train.bursts)
        ]
        send_paced(self._program, self._namespace, self._folder, flows, elsewhere=core(), first_number=first)
        return self._collect(first)

    def _collect(self, first: int) -> FidelityResult:
        # Frames that wait for limited links arrive late.
        departures = _by_number(self._behind, first)
        while True:
            time.sleep(_SETTLE_S)
            more = _by_number(self._behind, first)
            if not more:
                break
            departures = {**more, **departures}
        return FidelityResult(arrivals_ns=_by_number(self._before, first), departures_ns=departures)

    def close(self) -> None:
        """Close the taps."""
        self._before.close()
        self._behind.close()


class _TracedBench(_LiveBench):
    """A switch of the program `zodiac-fx`: its trace tells which frames a stall of the host delayed."""

    trace: Path

    def _collect(self, first: int) -> FidelityResult:
        carried = super()._collect(first)
        numbers = {first + number for number in carried.departures_ns}
        deadline = time.monotonic() + 2
        departures = read_trace(self.trace)
        while not numbers <= departures.keys() and time.monotonic() < deadline:
            time.sleep(_SETTLE_S)
            departures = read_trace(self.trace)
        stalled = frozenset(
            number - first for number in numbers & departures.keys() if departures[number].in_stall
        )
        return FidelityResult(
            arrivals_ns=carried.arrivals_ns, departures_ns=carried.departures_ns, stalled=stalled
        )


def _by_number(tap: BenchmarkTap, first: int) -> dict[int, int]:
    """Return timestamps by number from `first` on; the earliest if a tap sees a frame twice (stand-in)."""
    stamps: dict[int, int] = {}
    for seen in tap.waiting(outgoing=False):
        if len(seen.data) >= SEQUENCE_OFFSET + 4:
            stamps.setdefault(sequence_of(seen.data) - first, seen.at_ns)
    return stamps


def core() -> int:
    """Return the core for the switch; everything else runs on the others."""
    return max(os.sched_getaffinity(0))


def systems(program: Path) -> tuple[FidelitySystem, ...]:
    """Return all kinds of switches; `program` is the built `zodiac-fx`."""

    @contextmanager
    def virtual(corner: Case, folder: Path) -> Iterator[FidelityBench]:
        yield _VirtualBench(corner, folder)

    @contextmanager
    def firmware(corner: Case, folder: Path) -> Iterator[FidelityBench]:
        trace, tracing = _trace(folder)
        process = f"cpu = {core()}\n{tracing}"
        with ExitStack() as stack:
            namespace = stack.enter_context(_namespace())
            controller = stack.enter_context(BenchmarkController(namespace))
            stack.enter_context(
                EmulatorProcess(
                    program,
                    namespace,
                    folder,
                    controller.port,
                    process=process,
                    profile=str(still_profile(folder)),
                )
            )
            _install(controller, table(corner), one_by_one=True)
            bench = _TracedBench(program, namespace, folder, controller, corner)
            bench.trace = trace
            stack.callback(bench.close)
            yield bench

    @contextmanager
    def timed(corner: Case, folder: Path) -> Iterator[FidelityBench]:
        trace, tracing = _trace(folder)
        with ExitStack() as stack:
            namespace = stack.enter_context(_namespace())
            controller = stack.enter_context(BenchmarkController(namespace))
            switch = timed_stand_in.HeldSwitch(
                name=_SWITCH,
                ports=_PORTS,
                device=timed_stand_in.DelayTerms.of(load_profile(PROFILE), scenario(corner)),
            )
            with namespace.entered():
                holder = timed_stand_in.HoldProgram([switch], folder / "holder", cpu=core(), process=tracing)
                stack.callback(holder.close)
                ovs = OpenVSwitch(folder / "ovs", cpus=os.sched_getaffinity(0) - {core()} or {core()})
                stack.callback(ovs.close)
                address = f"127.0.0.1:{controller.port}"
                ports = timed_stand_in.inner(switch)
                ovs.add_switch(_SWITCH, datapath_id=1, ports=ports, controller=address)
                hurry(ovs.pid)
            _install(controller, table(corner), one_by_one=False)
            bench = _TracedBench(program, namespace, folder, controller, corner)
            bench.trace = trace
            stack.callback(bench.close)
            yield bench

    def openvswitch(build: Callable[[OpenVSwitch, Profile, Case, str], None]) -> Callable[..., Any]:
        @contextmanager
        def at(corner: Case, folder: Path) -> Iterator[FidelityBench]:
            with ExitStack() as stack:
                namespace = stack.enter_context(_namespace())
                controller = stack.enter_context(BenchmarkController(namespace))
                with namespace.entered():
                    ovs = OpenVSwitch(folder / "ovs", cpus={core()})
                    stack.callback(ovs.close)
                    build(ovs, load_profile(PROFILE), corner, f"127.0.0.1:{controller.port}")
                _install(controller, table(corner), one_by_one=False)
                bench = _LiveBench(program, namespace, folder, controller, corner)
                stack.callback(bench.close)
                yield bench

        return at

    return (
        FidelitySystem(name="virtual", title="firmware, virtual", live=False, at=virtual),
        FidelitySystem(name="live", title="firmware, live", live=True, at=firmware),
        FidelitySystem(
            name="stand-in", title="OVS and tc stand-in", live=True, at=openvswitch(_build_stand_in)
        ),
        FidelitySystem(name="timed", title="OVS, timed stand-in", live=True, at=timed),
        FidelitySystem(name="mininet", title="plain Mininet", live=True, at=openvswitch(_build_mininet)),
    )


def _trace(folder: Path) -> tuple[Path, str]:
    """Return the file of a trace, and the lines of [process] that ask for it."""
    trace = folder / "trace.csv"
    return trace, f'trace = "{trace}"\ntrace_sequence_offset = {SEQUENCE_OFFSET}\n'


def _build_stand_in(ovs: OpenVSwitch, profile: Profile, corner: Case, controller: str) -> None:
    inner = stand_in.build(_SWITCH, _PORTS, stand_in.SharedQueue.of(profile, scenario(corner)))
    ovs.add_switch(_SWITCH, datapath_id=1, ports=inner, controller=controller)


def _build_mininet(ovs: OpenVSwitch, profile: Profile, corner: Case, controller: str) -> None:
    ovs.add_switch(_SWITCH, datapath_id=1, ports=_PORTS, controller=controller)
    wanted = mininet_link.LinkLimit.of(profile, scenario(corner))
    for interface in _PORTS.values():
        mininet_link.limit(interface, wanted)


def _namespace() -> Namespace:
    return Namespace([(_HOSTS[port], _PORTS[port]) for port in _PORTS])


def _install(controller: BenchmarkController, entries: Sequence[bytes], *, one_by_one: bool) -> None:
    """Set up session and table. A board reads one message per segment, so it needs them `one_by_one`."""
    controller.handshake()
    for entry in entries:
        controller.write(entry)
        if one_by_one:
            controller.confirm()
    controller.confirm()
