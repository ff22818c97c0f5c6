"""Measure how many live boards one process can run on one core, and the memory of a board.

``python -m benchmarks.scale`` prints JSON. Rings of boards carry what Loko admits to them (section 6.2);
one pinned thread runs all boards, while senders and everything else use the other cores.
"""

from __future__ import annotations

import json
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import psutil

from benchmarks.live_accuracy import Errors, errors
from benchmarks.measure import BenchmarkError
from benchmarks.one_board import (
    SEQUENCE_OFFSET,
    BenchmarkBoards,
    BenchmarkController,
    BenchmarkTap,
    Namespace,
    PacedFlow,
    board_table,
    send_paced,
    sequence_of,
    udp_frame,
)
from benchmarks.ring import HOST_PORT, NEXT_PORT, PREVIOUS_PORT, admitted, ring, ring_links
from loko.control.entries import EVALUATION_ENTRIES, FlowEntry, switch_entries
from loko.control.messages import add_entry
from loko.switch_model.flow import Flow
from loko.topology.lab import Endpoint, Lab
from loko.topology.network import on_shortest_paths
from loko_testbed.instruments.programs import require_emulator

GOAL_BOARDS: Final = 31
GOAL_P99_NS: Final = 20_000
GOAL_BOARD_BYTES: Final = 1 << 20

HOPS: Final = 2
"""Links between boards on a flow's path, which crosses three boards."""
BOARDS: Final = (3, 15, 31, 47, 63, 95, 127)
SECONDS: Final = 5.0
_DRAIN_S: Final = 0.1
"""Longer than a frame needs to cross all of its boards."""
_SEED: Final = 1


class Links(StrEnum):
    """How the boards of a ring are connected."""

    INTERNAL = "internal"
    """Inside the process, exactly timed."""
    VETH = "veth"
    """By pairs of interfaces, as if boards were on different machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingRun:
    """The result for one ring."""

    boards: int
    links: Links
    hops: int
    requested_flows: int
    admitted_flows: int
    sent_pps: float
    """Frames per second of all senders together."""
    boards_pps: float
    """Frames per second received by all boards together."""
    sent: int
    received: int
    dropped_by_boards: int
    """Frames dropped at full buffers, which Loko excludes: this machine delivered frames in bursts."""
    error_ns: Errors
    """Departures towards hosts, as stamped there by the kernel, minus intended ones; outside stalls."""
    error_in_stalls_ns: Errors
    stalls: int
    worst_stall_ns: int
    loop_p99_ns: int
    memory_at_rest_bytes: int
    """Proportional set size of the process, which is locked in memory, once every board has its table."""
    memory_bytes: int
    """Proportional set size after the traffic."""
    scheduling: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleResult:
    """The results for all rings."""

    rings: tuple[RingRun, ...]
    most_boards: int
    """Largest ring with internal links whose p99 was within the goal; 0 if there is none."""
    board_bytes: int
    """Memory of one more board after traffic, from the smallest and the largest ring."""


def measure(
    boards: Sequence[int] = BOARDS,
    *,
    hops: int = HOPS,
    seconds: float = SECONDS,
    tell: Callable[[str], None] = lambda _: None,
) -> ScaleResult:
    """Measure ever larger rings until one misses the goal, then the paper's ring connected by veths.

    `tell` is called with lines on the progress. Raises `BenchmarkError` without root.
    """
    if os.geteuid() != 0:
        raise BenchmarkError("the live emulator needs root; run as root, or leave the part `scale` out")
    program = require_emulator()
    rings: list[RingRun] = []
    for count in boards:
        tell(f"ring of {count} boards")
        rings.append(_ring_run(program, count, Links.INTERNAL, hops, seconds))
        if rings[-1].error_ns.p99 > GOAL_P99_NS:
            break
    within = [run.boards for run in rings if run.error_ns.p99 <= GOAL_P99_NS]
    small, large = rings[0], rings[-1]
    more = max(large.boards - small.boards, 1)
    tell(f"ring of {GOAL_BOARDS} boards, joined by veths")
    rings.append(_ring_run(program, GOAL_BOARDS, Links.VETH, hops, seconds))
    return ScaleResult(
        rings=tuple(rings),
        most_boards=max(within, default=0),
        board_bytes=(large.memory_bytes - small.memory_bytes) // more,
    )


def _ring_run(program: Path, boards: int, links: Links, hops: int, seconds: float) -> RingRun:
    lab = ring(boards)
    plan, requested = admitted(lab, hops=hops, seed=_SEED)
    flows = [accepted.flow for accepted in plan.accepted]
    paced = _paced(flows, seconds)
    core = max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="loko-scale-") as name:
        folder = Path(name)
        trace = folder / "trace.csv"
        process = f'cpu = {core}\ntrace = "{trace}"\ntrace_sequence_offset = {SEQUENCE_OFFSET}\n'
        with _running(program, folder, lab, flows, links=links, process=process) as (
            namespace,
            emulator,
            taps,
        ):
            memory = psutil.Process(emulator.process.pid)
            at_rest = memory.memory_full_info().pss
            send_paced(program, namespace, folder, paced, elsewhere=core)
            time.sleep(_DRAIN_S)
            after = memory.memory_full_info().pss
            report = emulator.end()
            seen = [frame for tap in taps for frame in tap.waiting(outgoing=False)]
        observed = {sequence_of(frame.data): frame.at_ns for frame in seen}
        outside, inside = errors(trace, observed)
    sent = sum(flow.count for flow in paced)
    counters = [board["counters"] for board in report["boards"].values()]
    return RingRun(
        boards=boards,
        links=links,
        hops=hops,
        requested_flows=requested,
        admitted_flows=len(flows),
        sent_pps=sent / seconds,
        boards_pps=sum(board["received"] for board in counters) / seconds,
        sent=sent,
        received=len(observed),
        dropped_by_boards=sum(board["dropped_buffer"] for board in counters),
        error_ns=Errors.of(outside),
        error_in_stalls_ns=Errors.of(inside),
        stalls=report["stalls"]["count"],
        worst_stall_ns=report["stalls"]["worst_ns"],
        loop_p99_ns=report["loop_ns"]["p99"],
        memory_at_rest_bytes=at_rest,
        memory_bytes=after,
        scheduling=report["scheduling"],
    )


@contextmanager
def _running(
    program: Path, folder: Path, lab: Lab, flows: Sequence[Flow], *, links: Links, process: str
) -> Iterator[tuple[Namespace, BenchmarkBoards, list[BenchmarkTap]]]:
    """Run a ring whose boards have the controller's tables, with a tap at each host."""
    pairs = [(f"h{number}", f"s{number}-eth{HOST_PORT}") for number in range(1, len(lab.hosts) + 1)]
    between = ring_links(len(lab.switches))
    if links is Links.VETH:
        pairs += [(_interface(near), _interface(far)) for near, far in between]
    else:
        ends = ", ".join(f'["{near}", "{far}"]' for near, far in between)
        process += f"internal_links = [{ends}]\n"
    with ExitStack() as stack:
        namespace = stack.enter_context(Namespace(pairs))
        controllers = {name: stack.enter_context(BenchmarkController(namespace)) for name in lab.switches}
        boards = "".join(
            _board(name, controller, links, seed)
            for seed, (name, controller) in enumerate(controllers.items(), 1)
        )
        emulator = stack.enter_context(BenchmarkBoards(program, namespace, folder, boards, process=process))
        for controller in controllers.values():
            controller.handshake()
        for name, entries in switch_entries(
            lab, on_shortest_paths(lab, flows), entries=EVALUATION_ENTRIES
        ).items():
            _install(controllers[name], entries)
        yield namespace, emulator, [stack.enter_context(BenchmarkTap(namespace, host)) for host in lab.hosts]


def _board(name: str, controller: BenchmarkController, links: Links, seed: int) -> str:
    ports = (HOST_PORT, NEXT_PORT, PREVIOUS_PORT) if links is Links.VETH else (HOST_PORT,)
    wiring = {port: _interface(Endpoint(node=name, port=port)) for port in ports}
    return board_table(name, f"127.0.0.1:{controller.port}", wiring, seed=seed, settings="ofchecks = false\n")


def _interface(end: Endpoint) -> str:
    return f"{end.node}-eth{end.port}"


def _install(controller: BenchmarkController, entries: Sequence[FlowEntry]) -> None:
    """Install a board's table one entry at a time, as the board reads one message per segment."""
    for number, entry in enumerate(entries, 10):
        controller.write(add_entry(entry, number))
        controller.confirm()


def _paced(flows: Sequence[Flow], seconds: float) -> list[PacedFlow]:
    """Return senders with random phases and the even intervals that bursts of one frame imply."""
    chance = random.Random(_SEED)
    paced = []
    for flow in flows:
        interval_ns = math.ceil(flow.frame_bytes * 8e9 / flow.rate_bps)
        source, destination = (int(host.removeprefix("h")) for host in (flow.source, flow.destination))
        frame = udp_frame(
            0,
            frame_bytes=flow.frame_bytes,
            udp_port=flow.udp_source,
            source=source,
            destination=destination,
        )
        paced.append(
            PacedFlow(
                interface=flow.source,
                frame=frame,
                count=int(seconds * 1e9) // interval_ns,
                interval_ns=interval_ns,
                first_ns=chance.randrange(interval_ns),
            )
        )
    return paced


if __name__ == "__main__":
    print(json.dumps(asdict(measure()), indent=1))
