"""What became of each frame: pairs of what the taps at the entrance and at the exit saw, in one pass."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from evaluation.bench.device import MISSING

PATIENCE_NS: Final = 1_000_000_000
"""A frame that has not come out after so long, of the capture's own time, never does."""


class Sighting(NamedTuple):
    """A frame at a tap."""

    at_ns: int
    """When it began: its start of frame delimiter."""
    at_exit: bool
    length_bytes: int
    """On the wire, with FCS."""
    fingerprint: bytes


class Fate(NamedTuple):
    """A frame that entered."""

    number: int
    """Its place among those that entered, from 0."""
    entered_ns: int
    left_ns: int
    """`MISSING` if it did not come out."""
    length_bytes: int
    backlog_frames: int
    """Frames that were in the switch, as far as the taps tell, when this one had arrived; without itself."""


@dataclass(slots=True)
class _Waiting:
    number: int
    entered_ns: int
    length_bytes: int
    fingerprint: bytes
    backlog_frames: int = 0


class Pairing:
    """Sightings in the order of their instants go in, fates come out. Its memory is what one second holds.

    Frames of equal content are paired in their order. When a frame is lost, the one behind it with the same
    content would take its place: generators therefore number their frames.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()
        self._by_content: dict[bytes, deque[int]] = {}
        self._arriving: deque[tuple[int, _Waiting]] = deque()
        self._entered = 0
        self._gone = 0
        self._latest_left = -1
        self.unknown = 0
        """Frames at the exit that had not entered."""

    def enter(self, seen: Sighting, arrived_ns: int) -> Iterator[Fate]:
        """A frame that begins at the entrance and has arrived at `arrived_ns`; fates that this tells."""
        self._arrive(seen.at_ns)
        one = _Waiting(self._entered, seen.at_ns, seen.length_bytes, seen.fingerprint)
        self._entered += 1
        self._waiting[one.number] = one
        self._by_content.setdefault(seen.fingerprint, deque()).append(one.number)
        self._arriving.append((arrived_ns, one))
        yield from self._give_up(seen.at_ns - PATIENCE_NS)

    def leave(self, seen: Sighting) -> Iterator[Fate]:
        """A frame that begins at the exit; the fate of the one that entered with this content."""
        self._arrive(seen.at_ns)
        same = self._by_content.get(seen.fingerprint)
        if not same:
            self.unknown += 1
            return
        one = self._waiting.pop(same.popleft())
        if not same:
            del self._by_content[seen.fingerprint]
        self._gone += 1
        self._latest_left = max(self._latest_left, one.number)
        yield Fate(one.number, one.entered_ns, seen.at_ns, one.length_bytes, one.backlog_frames)

    def end(self) -> tuple[list[Fate], int]:
        """At the end of the capture: frames that were lost, and how many may still have been under way.

        A switch keeps the order of frames, so one that a later one has overtaken is lost.
        """
        self._arrive(None)
        lost = [one for one in self._waiting.values() if one.number < self._latest_left]
        return [_lost(one) for one in lost], len(self._waiting) - len(lost)

    def _arrive(self, until_ns: int | None) -> None:
        """Note the backlog of frames whose last bit arrives before an instant."""
        while self._arriving and (until_ns is None or self._arriving[0][0] < until_ns):
            _, one = self._arriving.popleft()
            one.backlog_frames = one.number - self._gone

    def _give_up(self, before_ns: int) -> Iterator[Fate]:
        while self._waiting:
            number, one = next(iter(self._waiting.items()))
            if one.entered_ns >= before_ns:
                return
            del self._waiting[number]
            same = self._by_content[one.fingerprint]
            same.remove(number)
            if not same:
                del self._by_content[one.fingerprint]
            self._gone += 1
            yield _lost(one)


def _lost(one: _Waiting) -> Fate:
    return Fate(one.number, one.entered_ns, MISSING, one.length_bytes, one.backlog_frames)
