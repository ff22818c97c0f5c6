"""How many live boards one process can run on one core, and the memory of a board.

Rings of boards carry what Loko admits to them (section 6.2, figure 20); one pinned thread runs all boards,
while senders and everything else use the other cores.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from loko.admission.planning import Plan, plan
from loko.admission.schemes import admission_of, variant_named
from loko.control.entries import EVALUATION_ENTRIES, FlowEntry, switch_entries
from loko.control.messages import add_entry
from loko.document import StrictModel
from loko.switch_model.allocation import FULL_RATE
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import Endpoint, Lab, ring_lab
from loko.topology.network import on_shortest_paths
from loko.topology.ring import Ring
from loko_testbed.instruments.programs import require_emulator
from loko_testbed.live.one_board import (
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
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Reference
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.live_accuracy import Errors, errors, time_text
from loko_testbed.reproduce.studies.study import Rows, Study

_P99_NS: Final = 20_000
"""A ring of boards is carried if the error of 99 % of the frames is not above this."""
_DRAIN_S: Final = 0.1
"""Longer than a frame needs to cross all of its boards."""
_MIB: Final = 1 << 20
PAPER_BOARDS: Final = 31
PAPER_REQUESTS: Final = 100
RATES_BPS: Final = (750_000, 1_000_000)
BURST_BYTES: Final = 306
"""One frame, so that conforming senders send at even intervals."""

HOST_PORT, NEXT_PORT, PREVIOUS_PORT = 1, 2, 3


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


class ScaleSize(StrictModel):
    """How much is measured."""

    boards: list[int]
    """Sizes of the rings whose boards are connected inside the process."""
    veth_boards: list[int]
    """Sizes of those that are connected by pairs of interfaces."""
    hops: int
    """Links between boards on a flow's path, which crosses one board more."""
    seconds: float


class ScaleTask(NamedTuple):
    """A ring."""

    boards: int
    links: Links
    hops: int
    seconds: float
    seed: int

    def __str__(self) -> str:
        return f"ring of {self.boards} boards, links: {self.links}"


def tasks(size: ScaleSize, seed: int) -> list[ScaleTask]:
    """Return all rings."""
    rings = [(Links.INTERNAL, size.boards), (Links.VETH, size.veth_boards)]
    return [
        ScaleTask(boards, links, size.hops, size.seconds, seed) for links, sizes in rings for boards in sizes
    ]


def measure(task: ScaleTask) -> Rows:
    """Run a ring. Raises `RunError`."""
    return [asdict(_ring_run(require_emulator(), task))]


def ring(boards: int) -> Lab:
    """Return a bidirectional ring of at least three boards, with h1 at s1 and so on."""
    return ring_lab(Ring(switches=boards, one_way=False))


def ring_links(boards: int) -> list[tuple[Endpoint, Endpoint]]:
    """Return the links between the boards."""
    return [
        (
            Endpoint(node=f"s{number}", port=NEXT_PORT),
            Endpoint(node=f"s{number % boards + 1}", port=PREVIOUS_PORT),
        )
        for number in range(1, boards + 1)
    ]


def admitted(lab: Lab, *, hops: int, seed: int) -> tuple[Plan, int]:
    """Request flows as in the paper, with its number per board; return the plan and the number of requests.

    Each flow goes from a random host to the one `hops` boards further; the allocation is full-rate, D = 1.86
    ms.
    """
    boards = len(lab.hosts)
    chance = random.Random(seed)
    requests = round(PAPER_REQUESTS * boards / PAPER_BOARDS)
    flows = []
    for number in range(requests):
        source = chance.randrange(boards)
        flows.append(
            Flow(
                id=f"f{number}",
                source=f"h{source + 1}",
                destination=f"h{(source + hops) % boards + 1}",
                udp_source=5000 + number,
                udp_destination=5000 + number,
                rate_bps=chance.choice(RATES_BPS),
                burst_bytes=BURST_BYTES,
                frame_bytes=EVALUATION.frame_bytes[0],
            )
        )
    return plan(lab, flows, admission_of(lab, variant_named(FULL_RATE.name), EVALUATION)), requests


def _ring_run(program: Path, task: ScaleTask) -> RingRun:
    boards, links, seconds = task.boards, task.links, task.seconds
    lab = ring(boards)
    planned, requested = admitted(lab, hops=task.hops, seed=task.seed)
    flows = [accepted.flow for accepted in planned.accepted]
    paced = _paced(flows, seconds, task.seed)
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
        hops=task.hops,
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


def _paced(flows: Sequence[Flow], seconds: float, seed: int) -> list[PacedFlow]:
    """Return senders with random phases and the even intervals that bursts of one frame imply."""
    chance = random.Random(seed)
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


def show(rows: Rows) -> Outcome:
    """Show the errors by the number of boards, and the memory of a board."""
    internal = [row for row in rows if row["links"] == Links.INTERNAL]
    within = [row["boards"] for row in internal if row["error_ns"]["p99"] <= _P99_NS]
    small, large = internal[0], internal[-1]
    return Outcome(
        chart=Chart(
            panels=[
                LinePanel(
                    title="departures towards hosts",
                    x=ChartAxis(label="boards on one core", low=0),
                    y=ChartAxis(label="p99 of the error [us]", log=True),
                    curves=[
                        ChartCurve(
                            label=f"links: {links.value}",
                            x=[row["boards"] for row in own],
                            y=[row["error_ns"]["p99"] / 1e3 for row in own],
                        )
                        for links in Links
                        if (own := [row for row in rows if row["links"] == links])
                    ],
                    references=[Reference(label="goal", value=_P99_NS / 1e3)],
                )
            ]
        ),
        findings={
            **{f"{row['links']}_{row['boards']}_p99_us": row["error_ns"]["p99"] / 1e3 for row in rows},
            "most_boards": float(max(within, default=0)),
            "one_more_board_bytes": float(
                (large["memory_bytes"] - small["memory_bytes"]) // max(large["boards"] - small["boards"], 1)
            ),
        },
        x=AxisLabel(name="boards on one core", unit=""),
        profile="zodiac-fx",
        table=TableResult(
            columns=[
                *("boards", "links", "flows", "frames/s sent", "frames/s through boards"),
                *("p50", "p99", "p99.9", "max", "stalls", "within stalls", "lost in buffers", "memory"),
            ],
            rows=[
                [
                    str(row["boards"]),
                    str(row["links"]),
                    f"{row['admitted_flows']} of {row['requested_flows']}",
                    f"{row['sent_pps']:,.0f}",
                    f"{row['boards_pps']:,.0f}",
                    *(time_text(row["error_ns"][key]) for key in ("p50", "p99", "p999", "max")),
                    str(row["stalls"]),
                    str(row["error_in_stalls_ns"]["count"]),
                    str(row["dropped_by_boards"]),
                    f"{row['memory_bytes'] / _MIB:.1f} MiB",
                ]
                for row in rows
            ],
        ),
    )


STUDY: Final = Study(
    size=ScaleSize, tasks=tasks, measure=measure, show=show, estimate_s={"live": 120.0}, needs_root=True
)
