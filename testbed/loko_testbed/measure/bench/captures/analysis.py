"""Processing times, losses and the backlog at the first loss, from captures on both sides of a switch."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import numpy as np

from loko.document import InputError
from loko.units import NS_PER_US
from loko_testbed.measure.bench.captures.files import read_capture
from loko_testbed.measure.bench.captures.fingerprint import fingerprint
from loko_testbed.measure.bench.captures.pairing import FrameFate, Pairing, Sighting
from loko_testbed.measure.bench.captures.record import CapturedFrame
from loko_testbed.measure.bench.device import MISSING
from loko_testbed.measure.bench.equations import LinkTiming, data_time_ns

_KEPT_SAMPLES: Final = 1_000_000
"""Samples kept of each frame length. If there are more, quantiles come from a random choice of them."""
_REORDERED: Final = 4096
"""By how many records a file may be out of order: each interface's records are written in blocks."""
_QUANTILES: Final = (5, 25, 50, 75, 95)
_FIRST_FRAMES: Final = 100_000
"""So many frames show which interfaces a file has."""
_LONGEST_BYTES: Final = 1530
"""A frame of 1,500 bytes of payload with its FCS and three tags; longer ones are jumbo frames."""
_REMEMBERED: Final = 256
"""Frames of a tap among which copies are looked for."""


class Stamp(StrEnum):
    """Which instant of a frame its stamp means."""

    START = "start"
    """The start of frame delimiter, as DAG cards stamp it, and network cards with a clock of their own."""
    END = "end"
    """The end, as a kernel stamps what it has received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTap:
    """The file, and the interface in it, with the frames of a tap."""

    path: Path
    interface: str | None = None
    """Number or name of the interface in the file; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardingTimes:
    """Processing times of frames of one length (equation 4), as in a boxplot, in nanoseconds."""

    frame_bytes: int
    samples: int
    min_ns: int
    max_ns: int
    mean_ns: float
    quantiles_ns: dict[int, float]
    """Quantiles by per cent: 5, 25, 50, 75, 95."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLoss:
    """The first frame that did not come out."""

    at_ns: int
    frame_bytes: int
    backlog_frames: int
    """Frames that the switch held when this one had arrived. This is its capacity, if bursts fill it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Analysis of a pair of captures, at the entrance and the exit of a switch."""

    entered: int
    left: int
    lost: int
    under_way: int
    """Frames whose fate was still unknown at the end of the capture."""
    unknown: int
    """Frames at the exit that were not seen at the entrance."""
    not_ip: int
    """Frames without IPv4, which cannot be told apart."""
    undecided: int
    """Frames that came out but are of equal content with a lost one: nobody knows which of them it was."""
    times: tuple[ForwardingTimes, ...]
    first_loss: FirstLoss | None
    """None also if frames are undecided."""

    def as_json(self) -> dict[str, Any]:
        """Return the analysis as values for ``--json``."""
        first = self.first_loss
        return {
            **{
                key: getattr(self, key)
                for key in ("entered", "left", "lost", "under_way", "unknown", "not_ip", "undecided")
            },
            "sizes": self.sizes(),
            "first_loss": None
            if first is None
            else {
                "at_ns": first.at_ns,
                "frame_bytes": first.frame_bytes,
                "backlog_frames": first.backlog_frames,
            },
        }

    def sizes(self) -> list[dict[str, float]]:
        """Return a mapping for each size of frames, with the keys `COLUMNS`."""
        return [
            {
                "frame_bytes": times.frame_bytes,
                "samples": times.samples,
                "min_ns": times.min_ns,
                **{f"p{percent}_ns": value for percent, value in times.quantiles_ns.items()},
                "max_ns": times.max_ns,
                "mean_ns": times.mean_ns,
            }
            for times in self.times
        ]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a table with the columns `HEADINGS`."""
        for times in self.times:
            values = (times.min_ns, *times.quantiles_ns.values(), times.max_ns, times.mean_ns)
            yield (
                str(times.frame_bytes),
                str(times.samples),
                *(f"{value / NS_PER_US:.2f}" for value in values),
            )


COLUMNS: Final = (
    *("frame_bytes", "samples", "min_ns"),
    *(f"p{percent}_ns" for percent in _QUANTILES),
    *("max_ns", "mean_ns"),
)
HEADINGS: Final = ("bytes", "frames", "min us", *(f"p{percent}" for percent in _QUANTILES), "max", "mean")


def taps_of(
    files: list[Path], *, in_interface: str | None = None, out_interface: str | None = None
) -> tuple[CapturedTap, CapturedTap]:
    """Return the taps at entrance and exit: two files, or two interfaces of one. Raises `InputError`.

    In one file these are by default the interfaces 0 and 1, or else the first two that have frames.
    """
    if len(files) == 2:
        return (
            CapturedTap(path=files[0], interface=in_interface),
            CapturedTap(path=files[1], interface=out_interface),
        )
    if len(files) != 1:
        raise InputError(f"{len(files)} capture files: give one with both taps, or two, the entrance's first")
    default = ("0", "1")
    if in_interface is None and out_interface is None:
        default = _first_interfaces(files[0]) or default
    entrance, way_out = in_interface or default[0], out_interface or default[1]
    if entrance == way_out:
        raise InputError(
            f"--in-interface and --out-interface are both {entrance}; name two, or give two files"
        )
    return (
        CapturedTap(path=files[0], interface=entrance),
        CapturedTap(path=files[0], interface=way_out),
    )


def _first_interfaces(path: Path) -> tuple[str, str] | None:
    """Return the interfaces 0 and 1, or the first two with frames; None if there are not two."""
    seen: dict[str, None] = {}
    for frame in itertools.islice(read_capture(path), _FIRST_FRAMES):
        seen.setdefault(frame.interface)
    if {"0", "1"} <= seen.keys():
        return "0", "1"
    first = [*seen][:2]
    return (first[0], first[1]) if len(first) == 2 else None


def analyse(
    entrance: CapturedTap,
    way_out: CapturedTap,
    wire: LinkTiming,
    *,
    stamps: Stamp = Stamp.START,
    at_sender: bool = False,
    jumbo: bool = False,
    tell: Callable[[FrameFate], None] | None = None,
) -> Analysis:
    """Pair the frames of two taps and evaluate them, in bounded memory. Raises `InputError`.

    `tell` is called for every frame whose fate is known.

    `at_sender`: frames at the entrance were captured at the sender, on their way to the line. The time of
    each then counts from when the line, busy with earlier ones, could start it. `jumbo`: frames of more than
    1,522 bytes are frames, not what a network card cuts later or has put together.
    """
    reading = _Reading(wire, stamps, at_sender=at_sender, jumbo=jumbo)
    # A file with both taps is read twice, so that each tap's frames are in order by themselves.
    seen = heapq.merge(
        reading.sightings(entrance, at_exit=False),
        reading.sightings(way_out, at_exit=True),
        key=lambda sighting: sighting.at_ns,
    )
    analysis, pairing = _Fates(wire, tell), Pairing()
    entered = left = 0
    for sighting in seen:
        if sighting.at_exit:
            left += 1
            fates = pairing.leave(sighting)
        else:
            entered += 1
            fates = pairing.enter(sighting, sighting.at_ns + wire.time_ns(sighting.length_bytes))
        for fate in fates:
            analysis.add(fate)
    lost, under_way = pairing.end()
    for fate in lost:
        analysis.add(fate)
    for tap, count in ((entrance, entered), (way_out, left)):
        if not count:
            raise InputError(f"{tap.path}: no frame with IPv4 {reading.where(tap)}")
    if pairing.unknown == left and entered:
        raise InputError(
            f"{way_out.path}: none of its {left} frames entered before: the taps are exchanged, or two"
            " clocks stamped them; capture both with one card"
        )
    return Analysis(
        entered=entered,
        left=left - pairing.unknown,
        lost=analysis.lost,
        under_way=under_way,
        unknown=pairing.unknown,
        not_ip=reading.not_ip,
        undecided=pairing.undecided,
        times=analysis.times(),
        first_loss=None if pairing.undecided else analysis.first_loss,
    )


class _Reading:
    """Reads the sightings of taps in the order of their instants."""

    def __init__(self, wire: LinkTiming, stamps: Stamp, *, at_sender: bool, jumbo: bool) -> None:
        self._wire = wire
        self._stamps = stamps
        self._at_sender = at_sender
        self._longest_bytes = math.inf if jumbo else _LONGEST_BYTES
        self._interfaces: dict[tuple[str, str | None], None] = {}
        self.not_ip = 0

    def sightings(self, tap: CapturedTap, *, at_exit: bool) -> Iterator[Sighting]:
        frames = (
            sighting
            for frame in read_capture(tap.path)
            if self._holds(tap, frame) and (sighting := self._sighting(tap, frame, at_exit=at_exit))
        )
        in_order = _in_order(tap.path, frames)
        if self._at_sender and not at_exit:
            return self._on_the_line(in_order)
        return self._once(tap.path, in_order)

    def _once(self, path: Path, seen: Iterable[Sighting]) -> Iterator[Sighting]:
        """Yield the sightings. Raises `InputError` if a frame is there twice, as mirror ports show it."""
        wire = self._wire
        latest: OrderedDict[bytes, int] = OrderedDict()
        for sighting in seen:
            line_ns = wire.time_ns(wire.preamble_bytes + sighting.length_bytes + wire.gap_bytes)
            before_ns = latest.pop(sighting.fingerprint, None)
            # Stamps of a tap are good to a few bit times; half a frame is far from that.
            if before_ns is not None and sighting.at_ns - before_ns < line_ns // 2:
                raise InputError(
                    f"{path}: a frame is there twice within {sighting.at_ns - before_ns} ns, as mirror ports"
                    " show it that mirror both directions; capture one direction, or remove the copies:"
                    " editcap -d"
                )
            latest[sighting.fingerprint] = sighting.at_ns
            if len(latest) > _REMEMBERED:
                latest.popitem(last=False)
            yield sighting

    def _on_the_line(self, seen: Iterable[Sighting]) -> Iterator[Sighting]:
        wire, free_ns = self._wire, 0
        for sighting in seen:
            begins_ns = max(sighting.at_ns, free_ns)
            free_ns = begins_ns + wire.time_ns(wire.preamble_bytes + sighting.length_bytes + wire.gap_bytes)
            yield sighting._replace(at_ns=begins_ns)

    def where(self, tap: CapturedTap) -> str:
        if tap.interface is None:
            return "is in it"
        names = (number if name is None else f"{number} ({name})" for number, name in self._interfaces)
        there = ", ".join(names) or "none"
        return f"of interface {tap.interface} is in it; it has the interfaces {there}"

    def _holds(self, tap: CapturedTap, frame: CapturedFrame) -> bool:
        """Return whether a frame belongs to a tap, and note the interfaces of the file."""
        place = frame.interface, frame.interface_name
        self._interfaces.setdefault(place)
        return tap.interface is None or tap.interface in place

    def _sighting(self, tap: CapturedTap, frame: CapturedFrame, *, at_exit: bool) -> Sighting | None:
        if frame.length_bytes > self._longest_bytes:
            raise InputError(
                f"{tap.path}: holds a frame of {frame.length_bytes} bytes, which a network card cuts later or"
                " has put together; capture with its offloads off (ethtool -K INTERFACE tso off gso off gro"
                " off lro off), or say --jumbo if the links carry such frames"
            )
        content = fingerprint(frame)
        if content is None:
            self.not_ip += 1
            return None
        stamp_ns = frame.stamp_ns
        if self._stamps is Stamp.END:
            stamp_ns -= self._wire.time_ns(frame.length_bytes)
        return Sighting(stamp_ns, at_exit, frame.length_bytes, content)


def _in_order(path: Path, seen: Iterable[Sighting]) -> Iterator[Sighting]:
    """Sort sightings that are slightly out of order. Raises `InputError` if they are more so."""
    waiting: list[tuple[int, int, Sighting]] = []
    last_ns = 0

    def next_one() -> Sighting:
        at_ns, _, sighting = heapq.heappop(waiting)
        if at_ns < last_ns:
            raise InputError(
                f"{path}: stamps go back by {last_ns - at_ns} ns; sort the file with 'reordercap'"
            )
        return sighting

    for number, sighting in enumerate(seen):
        heapq.heappush(waiting, (sighting.at_ns, number, sighting))
        if len(waiting) > _REORDERED:
            first = next_one()
            last_ns = first.at_ns
            yield first
    while waiting:
        yield next_one()


@dataclass(slots=True)
class _Sample:
    """Values of one kind: all of them, or a fair random choice if there are too many."""

    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0
    kept: array[int] = field(default_factory=lambda: array("q"))

    def add(self, value: int, choice: random.Random) -> None:
        self.least = min(self.least, value) if self.count else value
        self.most = max(self.most, value) if self.count else value
        self.count += 1
        self.total += value
        if len(self.kept) < _KEPT_SAMPLES:
            self.kept.append(value)
        elif (place := choice.randrange(self.count)) < _KEPT_SAMPLES:
            self.kept[place] = value


class _Fates:
    """Collects fates."""

    def __init__(self, wire: LinkTiming, tell: Callable[[FrameFate], None] | None) -> None:
        self._wire = wire
        self._tell = tell
        self._samples: dict[int, _Sample] = {}
        self._choice = random.Random(0)
        self.lost = 0
        self.first_loss: FirstLoss | None = None

    def add(self, fate: FrameFate) -> None:
        if self._tell:
            self._tell(fate)
        if fate.left_ns == MISSING:
            self.lost += 1
            if self.first_loss is None or fate.entered_ns < self.first_loss.at_ns:
                self.first_loss = FirstLoss(
                    at_ns=fate.entered_ns,
                    frame_bytes=fate.length_bytes,
                    backlog_frames=fate.backlog_frames,
                )
            return
        time_ns = data_time_ns(fate.left_ns - fate.entered_ns, fate.length_bytes, self._wire)
        self._samples.setdefault(fate.length_bytes, _Sample()).add(time_ns, self._choice)

    def times(self) -> tuple[ForwardingTimes, ...]:
        listed = []
        for size, sample in sorted(self._samples.items()):
            quantiles = np.percentile(np.frombuffer(sample.kept, dtype=np.int64), _QUANTILES)
            listed.append(
                ForwardingTimes(
                    frame_bytes=size,
                    samples=sample.count,
                    min_ns=sample.least,
                    max_ns=sample.most,
                    mean_ns=sample.total / sample.count,
                    quantiles_ns=dict(zip(_QUANTILES, map(float, quantiles), strict=True)),
                )
            )
        return tuple(listed)
