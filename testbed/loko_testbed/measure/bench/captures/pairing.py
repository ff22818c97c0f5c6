"""Pairs what the taps at entrance and exit saw, in one pass, to find what became of each frame."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from loko_testbed.measure.bench.device import MISSING

TIMEOUT_NS: Final = 1_000_000_000
"""A frame that has not come out after this long, by the capture's own time, counts as lost."""

_MOST_TENTATIVE: Final = 1_000_000
"""Frames of one content whose fates are kept until they are certain; with more, they stay undecided."""


class Sighting(NamedTuple):
    """A frame as a tap saw it."""

    at_ns: int
    """The start of its start of frame delimiter."""
    at_exit: bool
    length_bytes: int
    """Length on the wire, with FCS."""
    fingerprint: bytes


class FrameFate(NamedTuple):
    """The fate of a frame that entered."""

    number: int
    """Its place among the frames that entered, from 0."""
    entered_ns: int
    left_ns: int
    """When it left; `MISSING` if it did not come out."""
    length_bytes: int
    backlog_frames: int
    """Other frames that were in the switch when this one had arrived, as far as the taps tell."""


@dataclass(slots=True)
class _SameContent:
    """The frames of one content that have not come out."""

    waiting: deque[int] = field(default_factory=deque)
    tentative: list[FrameFate] = field(default_factory=list)
    """Fates that are right only if none of these frames is lost: several of them were in the switch."""


@dataclass(slots=True)
class _Waiting:
    number: int
    entered_ns: int
    length_bytes: int
    fingerprint: bytes
    backlog_frames: int = 0


class Pairing:
    """Turns sightings in the order of their instants into fates. Holds the frames of one second in memory.

    Frames of equal content are paired in order, since a switch keeps the order. If several of them are in
    the switch and one is lost, nobody knows which: their fates are `undecided`, and are not told.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()
        self._by_content: dict[bytes, _SameContent] = {}
        self._arriving: deque[tuple[int, _Waiting]] = deque()
        self._entered = 0
        self._gone = 0
        self._latest_left = -1
        self.unknown = 0
        """Frames at the exit that were not seen at the entrance."""
        self.undecided = 0
        """Frames that came out, of which nobody knows which of several they are."""

    def enter(self, seen: Sighting, arrived_ns: int) -> Iterator[FrameFate]:
        """Take a frame that starts at the entrance and has arrived at `arrived_ns`. Yields known fates."""
        self._arrive(seen.at_ns)
        frame = _Waiting(self._entered, seen.at_ns, seen.length_bytes, seen.fingerprint)
        self._entered += 1
        self._waiting[frame.number] = frame
        self._by_content.setdefault(seen.fingerprint, _SameContent()).waiting.append(frame.number)
        self._arriving.append((arrived_ns, frame))
        yield from self._give_up(seen.at_ns - TIMEOUT_NS)

    def leave(self, seen: Sighting) -> Iterator[FrameFate]:
        """Take a frame that starts at the exit. Yields the fate of the one that entered with this content."""
        self._arrive(seen.at_ns)
        alike = self._by_content.get(seen.fingerprint)
        if alike is None:
            self.unknown += 1
            return
        is_only = len(alike.waiting) == 1
        frame = self._waiting.pop(alike.waiting.popleft())
        self._gone += 1
        self._latest_left = max(self._latest_left, frame.number)
        fate = FrameFate(frame.number, frame.entered_ns, seen.at_ns, frame.length_bytes, frame.backlog_frames)
        if not is_only:
            alike.tentative.append(fate)
            if len(alike.tentative) >= _MOST_TENTATIVE:
                self._leave_undecided(alike)
            return
        del self._by_content[seen.fingerprint]
        yield from alike.tentative
        yield fate

    def end(self) -> tuple[list[FrameFate], int]:
        """End the capture. Return frames that were lost, and how many may still have been under way.

        A switch keeps the order of frames, so a frame that a later one has overtaken is lost.
        """
        self._arrive(None)
        for alike in self._by_content.values():
            self._leave_undecided(alike)
        lost = [frame for frame in self._waiting.values() if frame.number < self._latest_left]
        return [_lost(frame) for frame in lost], len(self._waiting) - len(lost)

    def _leave_undecided(self, alike: _SameContent) -> None:
        self.undecided += len(alike.tentative)
        alike.tentative.clear()

    def _arrive(self, until_ns: int | None) -> None:
        """Note the backlog for frames whose last bit arrives before an instant."""
        while self._arriving and (until_ns is None or self._arriving[0][0] < until_ns):
            _, frame = self._arriving.popleft()
            frame.backlog_frames = frame.number - self._gone

    def _give_up(self, before_ns: int) -> Iterator[FrameFate]:
        while self._waiting:
            number, frame = next(iter(self._waiting.items()))
            if frame.entered_ns >= before_ns:
                return
            del self._waiting[number]
            alike = self._by_content[frame.fingerprint]
            alike.waiting.remove(number)
            self._leave_undecided(alike)
            if not alike.waiting:
                del self._by_content[frame.fingerprint]
            self._gone += 1
            yield _lost(frame)


def _lost(frame: _Waiting) -> FrameFate:
    return FrameFate(frame.number, frame.entered_ns, MISSING, frame.length_bytes, frame.backlog_frames)
