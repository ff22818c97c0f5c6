"""Streams and networks of tsnkit (github.com/ChuanyuXue/tsnkit), scheduled in slots, and gates for them.

A file of streams and one of links go in; gate control lists, offsets, routes and queues come out, as tsnkit's
own methods write them. In tsnkit's model a frame takes size * 8 / rate on a link, and is in the next queue
after the link's propagation and processing. All times are exact, so slots need no guards. The checker of
gates reads the files by itself, so that an error here does not hide there.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path as File
from typing import Final, NamedTuple, TypeVar

from loko.document import InputError
from loko.schedule.graph import DirectedLink, Graph, Path
from loko.schedule.packing import pack
from loko.schedule.problem import (
    Assignment,
    ScheduleSolution,
    SchedulingProblem,
    SlotDemand,
    candidate_paths,
)
from loko.schedule.timing import CycleTiming
from loko.solvers.program import Solve, TimeBudget

GRID_NS: Final = 100
"""tsnkit's simulator advances in steps of so long, and sends a frame only at a whole step (`T_SLOT`)."""


class TsnkitStream(NamedTuple):
    """A stream with one destination: a frame each period."""

    number: int
    source: str
    destination: str
    size_bytes: int
    period_ns: int
    deadline_ns: int


class TsnkitLink(NamedTuple):
    """A directional link."""

    tail: str
    head: str
    queues: int
    bits_per_ns: Decimal
    processing_ns: int
    """At the node to which it leads, before the frame is in the next queue."""
    propagation_ns: int


@dataclass(frozen=True)
class TsnkitProblem:
    """Streams and the network that they cross."""

    streams: tuple[TsnkitStream, ...]
    links: tuple[TsnkitLink, ...]

    @cached_property
    def graph(self) -> Graph:
        """The network. Where streams begin or end, no frames are forwarded."""
        ends = (node for stream in self.streams for node in (stream.source, stream.destination))
        links = tuple(DirectedLink(link.tail, link.head) for link in self.links)
        return Graph(hosts=tuple(dict.fromkeys(ends)), links=links)

    @property
    def base_period_ns(self) -> int:
        """The longest time of which every period is a whole multiple."""
        return math.gcd(*(stream.period_ns for stream in self.streams))

    def delay_ns(self, stream: TsnkitStream, path: Path) -> int:
        """From the beginning of a frame at its source to its end at its destination, if it waits nowhere."""
        links = [self.links[number] for number in path]
        sent_ns = sum(math.ceil(stream.size_bytes * 8 / link.bits_per_ns) for link in links)
        return (
            sent_ns
            + sum(link.propagation_ns for link in links)
            + sum(link.processing_ns for link in links[:-1])
        )


def load_problem(task: File, topology: File) -> TsnkitProblem:
    """Read tsnkit's file of streams and its file of links. Raises `InputError` in one line."""
    streams = tuple(_rows(task, "stream,src,dst,size,period,deadline", _stream))
    links = tuple(_rows(topology, "link,q_num,rate,t_proc,t_prop", _link))
    if not streams:
        raise InputError(f"{task}: no streams; list at least one")
    return TsnkitProblem(streams, links)


_CsvRow = dict[str, str]


def _stream(row: _CsvRow) -> TsnkitStream:
    destinations = json.loads(row["dst"])
    if len(destinations) != 1:
        raise ValueError("a stream has several destinations; list one stream for each")
    stream = TsnkitStream(
        int(row["stream"]),
        str(int(row["src"])),
        str(int(destinations[0])),
        *(int(row[name]) for name in ("size", "period", "deadline")),
    )
    if min(stream[3:]) < 1:
        raise ValueError("a size, period or deadline is not above 0")
    return stream


def _link(row: _CsvRow) -> TsnkitLink:
    ends = re.fullmatch(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)", row["link"].strip())
    if ends is None:
        raise ValueError(f"'{row['link']}' is no link such as (0, 1)")
    rate = Decimal(row["rate"])
    times = int(row["t_proc"]), int(row["t_prop"])
    if not rate > 0 or min(times) < 0 or int(row["q_num"]) < 1:
        raise ValueError("a rate or number of queues is not above 0, or a time is below 0")
    return TsnkitLink(ends[1], ends[2], int(row["q_num"]), rate, *times)


_Parsed = TypeVar("_Parsed")


def _rows(path: File, columns: str, parsed: Callable[[_CsvRow], _Parsed]) -> Iterable[_Parsed]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if missing := set(columns.split(",")) - set(reader.fieldnames or ()):
                raise InputError(f"{path}: has no column '{min(missing)}' (columns: {columns})")
            for row in reader:
                try:
                    yield parsed(row)
                except (TypeError, ValueError, InvalidOperation) as error:
                    raise InputError(f"{path}:{reader.line_num}: not as in tsnkit's files: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a text file in UTF-8") from None


@dataclass(frozen=True, kw_only=True)
class TsnkitSchedule:
    """Which stream has which slot and path."""

    problem: TsnkitProblem
    timing: CycleTiming
    slots: int
    solution: ScheduleSolution

    @property
    def scheduled(self) -> tuple[tuple[TsnkitStream, Assignment], ...]:
        """Streams that have a slot, with their slots and paths, in the order of their numbers."""
        assignments = self.solution.assignments
        return tuple(
            (stream, assignments[str(stream.number)])
            for stream in sorted(self.problem.streams)
            if str(stream.number) in assignments
        )

    @property
    def unscheduled(self) -> tuple[TsnkitStream, ...]:
        """Streams that have no slot."""
        return tuple(s for s in self.problem.streams if str(s.number) not in self.solution.assignments)


def schedule_streams(problem: TsnkitProblem, solve: Solve, clock: TimeBudget) -> TsnkitSchedule:
    """Give each stream a slot in which it has the links of a shortest path to itself (TSSDN's S/PR).

    Raises `InputError` if no path leads to a destination within a stream's deadline, or if the base period
    holds no slot.
    """
    demands = tuple(SlotDemand(str(s.number), s.source, s.destination) for s in problem.streams)
    if len({demand.id for demand in demands}) < len(demands):
        raise InputError("a stream's number is used twice; number each stream once")
    paths = []
    longest_ns = 0
    shortest = candidate_paths(SchedulingProblem(problem.graph, demands, 1))
    for stream, own in zip(problem.streams, shortest, strict=True):
        delays_ns = {path: problem.delay_ns(stream, path) for path in own}
        paths.append([path for path in own if delays_ns[path] <= stream.deadline_ns])
        if not paths[-1]:
            raise InputError(
                f"stream {stream.number}: a frame takes {min(delays_ns.values())} ns to {stream.destination},"
                f" its deadline is {stream.deadline_ns} ns; lengthen it"
            )
        longest_ns = max(longest_ns, *(delays_ns[path] for path in paths[-1]))
    slot_ns = -(-longest_ns // GRID_NS) * GRID_NS
    slots = problem.base_period_ns // slot_ns
    if not slots:
        raise InputError(
            f"the periods are whole multiples of {problem.base_period_ns} ns, which holds no slot of"
            f" {slot_ns} ns; choose periods that have a longer common divisor, or smaller frames"
        )
    return TsnkitSchedule(
        problem=problem,
        timing=CycleTiming(base_period_ns=problem.base_period_ns, slot_ns=slot_ns, guard_ns=0),
        slots=slots,
        solution=pack(SchedulingProblem(problem.graph, demands, slots), paths, solve, clock),
    )


_Cells = list[int | str]


def result_files(schedule: TsnkitSchedule) -> Mapping[str, str]:
    """Return tsnkit's four files of results, by name, of the streams that have slots.

    A gate is open from the beginning of a slot for as long as the stream's frame may be under way in it; it
    is that of the link's highest queue.
    """
    problem, timing = schedule.problem, schedule.timing
    windows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    offsets: list[_Cells] = []
    routes: list[_Cells] = []
    queues: list[_Cells] = []
    for stream, (slot, path) in schedule.scheduled:
        start_ns = timing.offset_ns(slot)
        offsets.append([stream.number, 0, start_ns])
        for number in path:
            windows[number].append((start_ns, start_ns + problem.delay_ns(stream, path)))
            routes.append([stream.number, _text(problem.links[number])])
            queues.append([stream.number, 0, _text(problem.links[number]), _queue(problem.links[number])])
    gates: list[_Cells] = [
        [_text(link), _queue(link), start_ns, end_ns, timing.base_period_ns]
        for number, link in enumerate(problem.links)
        for start_ns, end_ns in sorted(windows[number])
    ]
    return {
        "loko-GCL.csv": _csv("link,queue,start,end,cycle", gates),
        "loko-OFFSET.csv": _csv("stream,frame,offset", offsets),
        "loko-ROUTE.csv": _csv("stream,link", routes),
        "loko-QUEUE.csv": _csv("stream,frame,link,queue", queues),
    }


def _text(link: TsnkitLink) -> str:
    return f"({link.tail}, {link.head})"


def _queue(link: TsnkitLink) -> int:
    return link.queues - 1


def _csv(columns: str, rows: Sequence[_Cells]) -> str:
    quoted = (",".join(f'"{cell}"' if isinstance(cell, str) else str(cell) for cell in row) for row in rows)
    return "\n".join([columns, *quoted, ""])
