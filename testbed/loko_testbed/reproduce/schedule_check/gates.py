"""Tries to refute gate schedules (IEEE 802.1Qbv) made by other programs, in the files of tsnkit.

Streams and links are tsnkit's inputs; gates, offsets, routes and queues are its outputs (comma-separated,
times in ns). A frame is released at the beginning of its period plus its offset. It waits in its queue until
the gate is open for as long as the frame needs, occupies the link for size * 8 / rate, and is in the next
queue after the link's propagation and processing. Two whole hyper-periods are replayed.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from loko.document import InputError

LinkEnds = tuple[int, int]
"""A directional link, by its nodes."""

_HYPER_PERIODS: Final = 2
_LONGEST_NS: Final = 10**12
"""A longer hyper-period is refused: nobody would wait for its replay."""


class GateStream(NamedTuple):
    """A requested stream. Sizes in bytes, times in ns."""

    source: int
    destinations: tuple[int, ...]
    size_bytes: int
    period_ns: int
    deadline_ns: int
    jitter_ns: int


class GateLink(NamedTuple):
    """A directional link of the network."""

    queues: int
    rate: float
    """In bit/ns."""
    processing_ns: int
    propagation_ns: int


class GateWindow(NamedTuple):
    """When the gate of a queue is open, within a cycle."""

    start_ns: int
    end_ns: int
    queue: int


@dataclass(kw_only=True)
class Gates:
    """A gate schedule, with the streams and the network for which it was made."""

    streams: dict[int, GateStream] = field(default_factory=dict)
    cables: dict[LinkEnds, GateLink] = field(default_factory=dict)
    windows: dict[LinkEnds, list[GateWindow]] = field(default_factory=dict)
    cycles_ns: dict[LinkEnds, int] = field(default_factory=dict)
    offsets_ns: dict[tuple[int, int], int] = field(default_factory=dict)
    """The offset of each frame in its period, by stream and frame."""
    routes: dict[int, list[LinkEnds]] = field(default_factory=dict)
    queues: dict[tuple[int, int, LinkEnds], int] = field(default_factory=dict)
    """The queue of each frame at each link, by stream, frame and link."""

    @property
    def hyper_period_ns(self) -> int:
        """The hyper-period: the least common multiple of all periods."""
        return math.lcm(*(stream.period_ns for stream in self.streams.values()))

    def frames(self, stream: int) -> int:
        """Return how many frames of a stream have offsets of their own; after them, the offsets repeat."""
        return sum(1 for name, _ in self.offsets_ns if name == stream)


def load_gates(task: Path, topology: Path, folder: Path) -> Gates:
    """Read the streams, the network and the schedule's four files. Raises `InputError` in one line."""
    gates = Gates()

    def stream(row: CsvRow) -> None:
        ends = tuple(int(node) for node in json.loads(row["dst"]))
        size, period, deadline, jitter = (int(row[name]) for name in ("size", "period", "deadline", "jitter"))
        if period < 1 or size < 1:
            raise ValueError("a period and a size are above 0")
        gates.streams[int(row["stream"])] = GateStream(int(row["src"]), ends, size, period, deadline, jitter)

    def cable(row: CsvRow) -> None:
        rate = float(row["rate"])
        if not rate > 0:
            raise ValueError("a rate is above 0")
        numbers = int(row["q_num"]), rate, int(row["t_proc"]), int(row["t_prop"])
        gates.cables[_ends(row["link"])] = GateLink(*numbers)

    def gate(row: CsvRow) -> None:
        link = _ends(row["link"])
        window = GateWindow(int(row["start"]), int(row["end"]), int(row["queue"]))
        gates.windows.setdefault(link, []).append(window)
        gates.cycles_ns[link] = int(row["cycle"])
        if gates.cycles_ns[link] < 1:
            raise ValueError("a cycle is above 0")

    def offset(row: CsvRow) -> None:
        gates.offsets_ns[int(row["stream"]), int(row["frame"])] = int(row["offset"])

    def route(row: CsvRow) -> None:
        gates.routes.setdefault(int(row["stream"]), []).append(_ends(row["link"]))

    def queue(row: CsvRow) -> None:
        gates.queues[int(row["stream"]), int(row["frame"]), _ends(row["link"])] = int(row["queue"])

    _each(task, "stream,src,dst,size,period,deadline,jitter", stream)
    _each(topology, "link,q_num,rate,t_proc,t_prop", cable)
    _each(_output(folder, "GCL"), "link,queue,start,end,cycle", gate)
    _each(_output(folder, "OFFSET"), "stream,frame,offset", offset)
    _each(_output(folder, "ROUTE"), "stream,link", route)
    _each(_output(folder, "QUEUE"), "stream,frame,link,queue", queue)
    if not gates.streams:
        raise InputError(f"{task}: no streams; list at least one")
    if gates.hyper_period_ns > _LONGEST_NS:
        raise InputError(
            f"{task}: the periods meet every {gates.hyper_period_ns / 1e9:g} s only; choose others"
        )
    return gates


CsvRow = dict[str, str]


def _each(path: Path, columns: str, take: Callable[[CsvRow], None]) -> None:
    """Call `take` with every row of a file. Raises `InputError`."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if missing := set(columns.split(",")) - set(reader.fieldnames or ()):
                raise InputError(f"{path}: has no column '{min(missing)}' (columns: {columns})")
            for row in reader:
                try:
                    take(row)
                except (TypeError, ValueError) as error:
                    raise InputError(f"{path}:{reader.line_num}: not as in tsnkit's files: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a text file in UTF-8") from None


def _output(folder: Path, name: str) -> Path:
    files = sorted(folder.glob(f"*{name}.csv"))
    if len(files) != 1:
        raise InputError(f"{folder}: {len(files)} files are named *{name}.csv; there has to be one")
    return files[0]


def _ends(text: str) -> LinkEnds:
    match = re.fullmatch(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)", text.strip())
    if match is None:
        raise ValueError(f"'{text}' is no link such as (0, 1)")
    return int(match[1]), int(match[2])


def gate_refutations(gates: Gates) -> list[str]:
    """Return everything that is wrong with a gate schedule, one line each; empty if nothing is.

    The replay is left out if the files already contradict each other.
    """
    refutations = [*_lists(gates), *_routes(gates)]
    return refutations or _replayed(gates)


def _lists(gates: Gates) -> Iterator[str]:
    for link, windows in gates.windows.items():
        if link not in gates.cables:
            yield f"gates of {link}: there is no such link"
            continue
        if gates.hyper_period_ns % gates.cycles_ns[link]:
            yield f"gates of {link}: a cycle of {gates.cycles_ns[link]} ns does not fit the hyper-period"
        windows.sort()
        for window in windows:
            if not 0 <= window.start_ns < window.end_ns <= gates.cycles_ns[link]:
                yield f"gates of {link}: {window.start_ns} to {window.end_ns} ns is no window of its cycle"
            if not 0 <= window.queue < gates.cables[link].queues:
                yield f"gates of {link}: there is no queue {window.queue}"
        for earlier, other in pairwise(windows):
            if earlier.end_ns > other.start_ns and earlier.queue != other.queue:
                yield f"gates of {link}: two are open at {other.start_ns} ns"
    for number, stream in gates.streams.items():
        if not gates.frames(number):
            yield f"stream {number}: has no offset"
        for frame in range(gates.frames(number)):
            if not 0 <= gates.offsets_ns.get((number, frame), -1) < stream.period_ns:
                yield f"stream {number}: the offset of frame {frame} is not within its period"


def _routes(gates: Gates) -> Iterator[str]:
    for number, stream in gates.streams.items():
        route = gates.routes.get(number, [])
        heads = [head for _, head in route]
        if len(set(heads)) != len(heads) or stream.source in heads:
            yield f"stream {number}: its route has a loop"
            continue
        reached, waiting = {stream.source}, [stream.source]
        while waiting:
            node = waiting.pop()
            further = [head for tail, head in route if tail == node]
            reached |= set(further)
            waiting += further
        for destination in stream.destinations:
            if destination not in reached:
                yield f"stream {number}: its route does not lead from {stream.source} to {destination}"
        for link in route:
            if link not in gates.cables:
                yield f"stream {number}: there is no link {link}"
            elif link not in gates.windows:
                yield f"stream {number}: no gate of {link} ever opens"
            for frame in range(gates.frames(number)):
                if gates.queues.get((number, frame, link)) is None:
                    yield f"stream {number}: frame {frame} has no queue at {link}"


class _FrameInstance(NamedTuple):
    """A frame of one period."""

    stream: int
    period: int
    released_ns: int


def _replayed(gates: Gates) -> list[str]:
    delays = _delays_ns(gates)
    refutations = []
    for number, stream in gates.streams.items():
        due = _HYPER_PERIODS * gates.hyper_period_ns // stream.period_ns
        for destination in stream.destinations:
            own = delays.get((number, destination), [])
            if len(own) < due:
                refutations.append(
                    f"stream {number}: {due - len(own)} of {due} frames did not reach {destination}"
                )
                continue
            late = [delay for delay in own if delay > stream.deadline_ns]
            if late:
                refutations.append(
                    f"stream {number}: {len(late)} of {due} frames reached {destination} after its deadline"
                    f" of {stream.deadline_ns} ns, after up to {max(late)} ns"
                )
            if max(own) - min(own) > stream.jitter_ns:
                refutations.append(
                    f"stream {number}: its delays to {destination} differ by {max(own) - min(own)} ns,"
                    f" allowed are {stream.jitter_ns}"
                )
    return refutations


def _delays_ns(gates: Gates) -> dict[tuple[int, int], list[int]]:
    """Return the delays by stream and destination, of frames that arrive within one more hyper-period."""
    end_ns = (_HYPER_PERIODS + 1) * gates.hyper_period_ns
    events: list[tuple[int, int, int, LinkEnds, _FrameInstance | None]] = []
    order = count()

    def at(when_ns: int, link: LinkEnds, instance: _FrameInstance | None) -> None:
        heappush(events, (when_ns, 0 if instance else 1, next(order), link, instance))

    for instance, link in _released(gates):
        at(instance.released_ns, link, instance)
    waiting: dict[tuple[LinkEnds, int], deque[_FrameInstance]] = defaultdict(deque)
    busy_ns: dict[LinkEnds, int] = defaultdict(int)
    delays: dict[tuple[int, int], list[int]] = defaultdict(list)
    while events:
        now_ns, _, _, link, arrived = heappop(events)
        if now_ns > end_ns:
            break
        if arrived is not None:
            frame = arrived.period % gates.frames(arrived.stream)
            waiting[link, gates.queues[arrived.stream, frame, link]].append(arrived)
            at(now_ns, link, None)
            continue
        if now_ns < busy_ns[link]:
            continue
        sent, again_ns = _choice(gates, link, waiting, now_ns)
        if sent is None:
            if again_ns is not None:
                at(again_ns, link, None)
            continue
        stream, cable = gates.streams[sent.stream], gates.cables[link]
        gone_ns = now_ns + _on_link_ns(gates, sent, link)
        busy_ns[link] = gone_ns
        at(gone_ns, link, None)
        there_ns = gone_ns + cable.propagation_ns
        if link[1] in stream.destinations:
            delays[sent.stream, link[1]].append(there_ns - sent.released_ns)
        for onward in gates.routes[sent.stream]:
            if onward[0] == link[1]:
                at(there_ns + cable.processing_ns, onward, sent)
    return delays


def _released(gates: Gates) -> Iterator[tuple[_FrameInstance, LinkEnds]]:
    """Yield every frame of the replay with each link on which it leaves its source."""
    for number, stream in gates.streams.items():
        for period in range(_HYPER_PERIODS * gates.hyper_period_ns // stream.period_ns):
            offset_ns = gates.offsets_ns[number, period % gates.frames(number)]
            instance = _FrameInstance(number, period, period * stream.period_ns + offset_ns)
            yield from ((instance, link) for link in gates.routes[number] if link[0] == stream.source)


def _on_link_ns(gates: Gates, instance: _FrameInstance, link: LinkEnds) -> int:
    return math.ceil(gates.streams[instance.stream].size_bytes * 8 / gates.cables[link].rate)


def _choice(
    gates: Gates, link: LinkEnds, waiting: Mapping[tuple[LinkEnds, int], deque[_FrameInstance]], now_ns: int
) -> tuple[_FrameInstance | None, int | None]:
    """Return the frame of the highest queue that may be sent now; if none may, when the next gate opens.

    Only gates of queues with a waiting frame count. Both are None if no frame waits.
    """
    cycle_ns = gates.cycles_ns[link]
    phase_ns = now_ns % cycle_ns
    next_ns: int | None = None
    for window in sorted(gates.windows[link], key=lambda window: -window.queue):
        queue = waiting.get((link, window.queue))
        if not queue:
            continue
        if window.start_ns <= phase_ns and phase_ns + _on_link_ns(gates, queue[0], link) <= window.end_ns:
            return queue.popleft(), None
        opens_ns = now_ns + (window.start_ns - phase_ns) % cycle_ns
        if opens_ns == now_ns:
            opens_ns += cycle_ns
        next_ns = opens_ns if next_ns is None else min(next_ns, opens_ns)
    return None, next_ns
