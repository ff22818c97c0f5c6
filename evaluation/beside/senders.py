"""A host's worst conforming traffic: each burst that the bucket of an admitted flow allows, at line rate."""

from __future__ import annotations

import random
from typing import Final

from loko.flow import Flow

_BIT_NS_PER_BYTE: Final = 8_000_000_000
_MEAN_PAUSE: Final = 0.1
"""Mean of the random pause after the bucket is full, as a part of the time it takes to fill.

Without it, flows with one period would keep for ever the offset at which they began.
"""
_TOGETHER: Final = 0.25
"""Probability that a burst waits for an instant at which others begin theirs too."""
_TOGETHER_NS: Final = 100_000_000


class Bucket:
    """A token bucket in integers: levels count bytes x 8e9, so that a rate in bit/s fills one unit each ns.

    It never lets through more than rate x time + burst; fractions of a bit/s or byte are not used.
    """

    def __init__(self, rate_bps: float, burst_bytes: float, now_ns: int) -> None:
        """A full bucket."""
        self._rate = max(int(rate_bps), 1)
        self._capacity = int(burst_bytes) * _BIT_NS_PER_BYTE
        self._level = self._capacity
        self._at_ns = now_ns

    def ready_ns(self, frame_bytes: int) -> int:
        """When there are tokens for such a frame."""
        return self._at_ns + max(0, -(-(frame_bytes * _BIT_NS_PER_BYTE - self._level) // self._rate))

    def full_ns(self) -> int:
        """When nothing more fits."""
        return self._at_ns + -(-(self._capacity - self._level) // self._rate)

    def take(self, frame_bytes: int, now_ns: int) -> None:
        """A frame begins. `now_ns` is not before `ready_ns`."""
        self._level = min(self._capacity, self._level + (now_ns - self._at_ns) * self._rate)
        self._level -= frame_bytes * _BIT_NS_PER_BYTE
        assert self._level >= 0, "a frame began before its bucket allowed it"
        self._at_ns = now_ns

    @property
    def fill_ns(self) -> int:
        """How long the empty bucket takes to fill."""
        return self._capacity // self._rate


class ConformingSender:
    """One flow's source: whole bursts, separated by the time to fill the bucket and a random pause.

    Some bursts of all flows begin together: no random offsets would find the critical instant soon.
    """

    def __init__(self, flow: Flow, frame: bytes, *, number: int, sequence_offset: int, now_ns: int) -> None:
        """`frame` is without FCS; the flow's number and the frame's are written into it, as mgen does.

        What is random follows from the flow's id alone.
        """
        self.flow = flow
        self.number = number
        self._frame = bytearray(frame)
        self._frame[sequence_offset - 4 : sequence_offset] = number.to_bytes(4, "big")
        self._offset = sequence_offset
        self._bucket = Bucket(flow.rate_bps, flow.burst_bytes, now_ns)
        self._random = random.Random(flow.id)
        self._sequence = 0
        self.next_ns = now_ns + int(self._random.random() * self._bucket.fill_ns)
        """When its next frame may begin."""

    def begin(self, now_ns: int) -> tuple[int, bytes]:
        """The frame that begins now, with its number. `now_ns` is not before `next_ns`."""
        sequence, self._sequence = self._sequence, self._sequence + 1
        self._frame[self._offset : self._offset + 4] = (sequence & 0xFFFF_FFFF).to_bytes(4, "big")
        self._bucket.take(self.flow.frame_bytes, now_ns)
        self.next_ns = self._bucket.ready_ns(self.flow.frame_bytes)
        if self.next_ns > now_ns:  # the burst is over
            pause_ns = self._random.expovariate(1 / (_MEAN_PAUSE * max(self._bucket.fill_ns, 1)))
            self.next_ns = self._bucket.full_ns() + int(pause_ns)
            if self._random.random() < _TOGETHER:
                self.next_ns = -(-self.next_ns // _TOGETHER_NS) * _TOGETHER_NS
        return sequence, bytes(self._frame)
