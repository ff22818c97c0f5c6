"""A host's worst conforming traffic: the bursts that a bucket allows, at line rate; or frames in slots."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from loko.switch_model.flow import Flow
from loko.topology.frame import HEADERS_BYTES
from loko.units import BITS_NS_PER_BYTE_S

_MEAN_PAUSE: Final = 0.1
"""Mean of the random pause after the bucket is full, as a part of the time it takes to fill.

Without it, flows with one period would keep for ever the offset at which they began.
"""
_TOGETHER: Final = 0.25
"""Probability that a burst waits for an instant at which others begin theirs too."""
_TOGETHER_NS: Final = 100_000_000


UDP_SOURCE_OFFSET: Final = HEADERS_BYTES - 8
"""Where the source port is in a frame."""


class IntegerBucket:
    """A token bucket in integers: levels count bytes x 8e9, so that a rate in bit/s fills one unit each ns.

    It never lets through more than rate x time + burst; fractions of a bit/s or byte are not used.
    """

    def __init__(self, rate_bps: float, burst_bytes: float, now_ns: int) -> None:
        """Start with a full bucket."""
        self._rate = max(int(rate_bps), 1)
        self._capacity = int(burst_bytes) * BITS_NS_PER_BYTE_S
        self._level = self._capacity
        self._at_ns = now_ns

    def ready_ns(self, frame_bytes: int) -> int:
        """Return when the bucket has enough tokens for a frame of this length."""
        return self._at_ns + max(0, -(-(frame_bytes * BITS_NS_PER_BYTE_S - self._level) // self._rate))

    def full_ns(self) -> int:
        """Return when the bucket is full."""
        return self._at_ns + -(-(self._capacity - self._level) // self._rate)

    def take(self, frame_bytes: int, now_ns: int) -> None:
        """Take the tokens of a frame that begins at `now_ns`, which is not before `ready_ns`."""
        self._level = min(self._capacity, self._level + (now_ns - self._at_ns) * self._rate)
        self._level -= frame_bytes * BITS_NS_PER_BYTE_S
        assert self._level >= 0, "a frame began before its bucket allowed it"
        self._at_ns = now_ns

    @property
    def fill_ns(self) -> int:
        """The time in which the empty bucket fills."""
        return self._capacity // self._rate


class SendSlots(NamedTuple):
    """When a flow that has a slot sends."""

    offset_ns: int
    """From the beginning of each period, by the clock that all hosts share."""
    period_ns: int
    guard_ns: int
    """How early or late the flow's host may be."""


class FlowsInPlace(NamedTuple):
    """The flows whose hosts send, as the service tells a sidecar."""

    flows: Sequence[Flow]
    send_slots: Mapping[str, SendSlots] = MappingProxyType({})
    """By id of a flow that has a slot."""
    copies: Mapping[str, Sequence[int]] = MappingProxyType({})
    """By id of a duplicated flow, the source ports of the copies that are sent of each frame."""

    def source_ports(self, flow: Flow) -> Sequence[int]:
        """Return the source ports of the copies of each of a flow's frames."""
        return self.copies.get(flow.id, (flow.udp_source,))


def with_source_port(frame: bytes, udp_source: int) -> bytes:
    """Return a flow's frame with another source port: so the copies of a frame differ."""
    return frame[:UDP_SOURCE_OFFSET] + udp_source.to_bytes(2, "big") + frame[UDP_SOURCE_OFFSET + 2 :]


class FlowSender(Protocol):
    """The sender of one flow."""

    flow: Flow
    number: int
    next_ns: int
    """When its next frame may begin."""

    def begin(self, now_ns: int) -> tuple[int, bytes]:
        """The frame that begins now, with its number. `now_ns` is not before `next_ns`."""


class _FlowFrames:
    """The frames of a flow; the flow's number and their own are written into them, as mgen does."""

    def __init__(self, frame: bytes, *, number: int, sequence_offset: int) -> None:
        self._frame = bytearray(frame)
        self._frame[sequence_offset - 4 : sequence_offset] = number.to_bytes(4, "big")
        self._offset = sequence_offset
        self._sequence = 0

    def next(self) -> tuple[int, bytes]:
        sequence, self._sequence = self._sequence, self._sequence + 1
        self._frame[self._offset : self._offset + 4] = (sequence & 0xFFFF_FFFF).to_bytes(4, "big")
        return sequence, bytes(self._frame)


class SlottedSender:
    """Sends one frame per slot: on time, or early or late by the guard, at random."""

    def __init__(
        self,
        flow: Flow,
        frame: bytes,
        *,
        number: int,
        sequence_offset: int,
        send_slot: SendSlots,
        now_ns: int,
    ) -> None:
        """`frame` is without FCS. The random choices depend on the flow's id alone."""
        self.flow = flow
        self.number = number
        self._frames = _FlowFrames(frame, number=number, sequence_offset=sequence_offset)
        self._send_slot = send_slot
        self._random = random.Random(flow.id)
        earliest_ns = now_ns + send_slot.guard_ns
        periods = -(-(earliest_ns - send_slot.offset_ns) // send_slot.period_ns)
        self._due_ns = send_slot.offset_ns + max(0, periods) * send_slot.period_ns
        self.next_ns = self._off()
        """When its next frame begins."""

    def begin(self, now_ns: int) -> tuple[int, bytes]:  # noqa: ARG002 - the slot decides
        """Return the frame of this slot, with its number."""
        self._due_ns += self._send_slot.period_ns
        self.next_ns = self._off()
        return self._frames.next()

    def _off(self) -> int:
        return self._due_ns + self._random.choice((-1, 0, 1)) * self._send_slot.guard_ns


class ConformingSender:
    """Sends whole bursts, separated by the time in which the bucket fills and a random pause.

    Some bursts of all flows begin together: with random offsets alone it would take long until they meet at
    the critical instant.
    """

    def __init__(self, flow: Flow, frame: bytes, *, number: int, sequence_offset: int, now_ns: int) -> None:
        """`frame` is without FCS; the flow's number and the frame's are written into it, as mgen does.

        The random choices depend on the flow's id alone.
        """
        self.flow = flow
        self.number = number
        self._frames = _FlowFrames(frame, number=number, sequence_offset=sequence_offset)
        self._bucket = IntegerBucket(flow.rate_bps, flow.burst_bytes, now_ns)
        self._random = random.Random(flow.id)
        self.next_ns = now_ns + int(self._random.random() * self._bucket.fill_ns)
        """When its next frame may begin."""

    def begin(self, now_ns: int) -> tuple[int, bytes]:
        """The frame that begins now, with its number. `now_ns` is not before `next_ns`."""
        self._bucket.take(self.flow.frame_bytes, now_ns)
        self.next_ns = self._bucket.ready_ns(self.flow.frame_bytes)
        if self.next_ns > now_ns:  # the burst is over
            pause_ns = self._random.expovariate(1 / (_MEAN_PAUSE * max(self._bucket.fill_ns, 1)))
            self.next_ns = self._bucket.full_ns() + int(pause_ns)
            if self._random.random() < _TOGETHER:
                self.next_ns = -(-self.next_ns // _TOGETHER_NS) * _TOGETHER_NS
        return self._frames.next()
