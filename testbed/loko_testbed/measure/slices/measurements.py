"""Measurements of each slice: each is carried out in one go and kept, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loko.slicing.document import HtbQueue, Port, SliceFlow, TrtcmQueue
from loko.slicing.lengths import MAX_FRAME_BYTES, MIN_FRAME_BYTES, on_wire
from loko.units import NS_PER_S
from loko_testbed.measure.bench.part import Key
from loko_testbed.measure.slices.devices import SliceDevice, attacker, first_sender
from loko_testbed.measure.slices.document import CountedBytes
from loko_testbed.measure.slices.release import PacketTimes, Release
from loko_testbed.simulation.runner import LOST

FRAMES_BYTES: Final = (64, 256, 768, MAX_FRAME_BYTES)
"""Lengths of frames, with FCS, for which the rate is measured."""
_STEADY: Final = 2_000
"""Frames that should pass after the bucket is empty, for one rate."""
_MORE_THAN_RATE: Final = 1.5
_LATENCY_FRAMES: Final = 400
_LONGEST_NS: Final = 50_000_000
"""Longest time for which a conforming flow sends after its burst."""
_BURST_FRAMES: Final = 100
"""The bucket is measured with frames whose length is about the bucket over this number."""
_BUCKETS: Final = 5
"""How many are sent at once: some real switches forward hardly faster than a slice earns its tokens."""
_MOST_BURST: Final = 900
_GROUPS: Final = 6
_SETTLE_NS: Final = 1_000_000
_TCP_FRAMES: Final = 3_000
_LEAST_NS: Final = 200_000_000
"""How long a rate is measured in real time, so that what a host delayed and then caught up weighs little."""
_SLOWER: Final = 0.05
"""The share by which a sender in real time may be slower than it should."""
TURNS: Final = 5
"""How often a part is measured in real time."""

Numbers = NDArray[np.int64]


class SliceMeasurement(NamedTuple):
    """One measurement of one slice."""

    key: Key
    measure: Callable[[SliceDevice, int], Iterator[tuple[int, Numbers]]]
    """Yields pairs of a frame length and its numbers."""


RATE, BURST, GROUP = "rate", "burst", "group"
LATENCY, CROWDED, ATTACKED, TCP = "latency", "crowded", "attacked", "tcp"


def key(queue: str, what: str, by: str = "", turn: int = 0) -> Key:
    """Return the key of a part: the measured slice, what is measured, and the disturbing slice, if any."""
    return Key("slice", (queue, what, by) if by else (queue, what), turn)


def rate_of(queue: HtbQueue | TrtcmQueue) -> int:
    """Return the assured rate of a slice, in bit/s."""
    return queue.rate_bps if isinstance(queue, HtbQueue) else queue.cir_bps


def most_of(queue: HtbQueue | TrtcmQueue) -> int:
    """Return the highest rate that a slice may have, in bit/s."""
    return queue.ceiling_bps if isinstance(queue, HtbQueue) else queue.cir_bps + queue.eir_bps


def burst_of(queue: HtbQueue | TrtcmQueue) -> int:
    """Return the bytes that pass at once if a slice is alone: its ceiling's bucket, or a policer's both."""
    if isinstance(queue, TrtcmQueue):
        return queue.cbs_bytes + queue.ebs_bytes
    if queue.ceiling_bps > queue.rate_bps:
        return queue.ceiling_burst_bytes
    return min(queue.burst_bytes, queue.ceiling_burst_bytes)


def flow_of_slice(queue: HtbQueue | TrtcmQueue) -> SliceFlow:
    """Return the flow that the file gives, or else one of single full frames at half the assured rate."""
    if queue.flow is not None:
        return queue.flow
    rate = max(rate_of(queue) // 2, 1)
    return SliceFlow(rate_bps=rate, burst_bytes=MAX_FRAME_BYTES, frame_bytes=MAX_FRAME_BYTES)


def _burst_frame_bytes(queue: HtbQueue | TrtcmQueue, counts: CountedBytes) -> int:
    """Return the frame length to measure the bucket with: short beside it, but not too many frames."""
    wanted = burst_of(queue) // _BURST_FRAMES - counts.more_bytes
    return min(max(wanted, MIN_FRAME_BYTES), MAX_FRAME_BYTES)


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice of the configured port, and how it is measured."""

    port: Port
    number: int
    counts: CountedBytes
    """Bytes that the configured rates are meant to count."""

    def _takes(self, frame_bytes: int) -> int:
        return frame_bytes + self.counts.more_bytes

    @property
    def queue(self) -> HtbQueue | TrtcmQueue:
        """The configured queue of the slice."""
        return self.port.queues[self.number]

    def _release(self, frame_bytes: int, instants_ns: NDArray[np.int64]) -> Release:
        return Release(
            queue=self.number, host=first_sender(), frame_bytes=frame_bytes, instants_ns=instants_ns
        )

    def _slot_ns(self, frame_bytes: int) -> float:
        return on_wire(frame_bytes) * 8 * NS_PER_S / self.port.link_rate_bps

    def _saturating(self, frame_bytes: int, most_bps: float, least_ns: int = 0) -> NDArray[np.int64]:
        """Return instants at more than this rate: until the bucket is empty, and then as long again."""
        takes = self._takes(frame_bytes)
        gap_ns = max(takes * 8 * NS_PER_S / most_bps / _MORE_THAN_RATE, self._slot_ns(frame_bytes))
        offered_bps = takes * 8 * NS_PER_S / gap_ns
        drain = burst_of(self.queue) / takes / max(1 - most_bps / offered_bps, 0.1)
        count = int(2 * max(drain, _STEADY * offered_bps / most_bps / 2, least_ns / gap_ns / 2)) + 1
        return (_SETTLE_NS + np.arange(count) * gap_ns).astype(np.int64)

    def rate(self, device: SliceDevice, seed: int) -> Iterator[tuple[int, Numbers]]:
        """Send more than the slice may have, alone; yield what passes, and is offered, in the second half."""
        most_bps = min(most_of(self.queue), self.port.link_rate_bps)
        least_ns = _LEAST_NS if device.real_time else 0
        for frame in FRAMES_BYTES:
            release = self._release(frame, self._saturating(frame, most_bps, least_ns))
            yield frame, steady(device.send({0: release}, seed)[0])

    def crowded(self, other: int) -> Callable[[SliceDevice, int], Iterator[tuple[int, Numbers]]]:
        """Send more than the assured rate while another queue gets all that its sender's link carries."""

        def measure(device: SliceDevice, seed: int) -> Iterator[tuple[int, Numbers]]:
            frame = MAX_FRAME_BYTES
            least_ns = _LEAST_NS if device.real_time else 0
            own = self._saturating(frame, min(rate_of(self.queue), self.port.link_rate_bps), least_ns)
            flood = self._flood(device, other, frame, int(own[-1]))
            sent = device.send({0: self._release(frame, own), 1: flood}, seed)
            if _kept_up(flood, sent[1]):
                yield frame, steady(sent[0])

        return measure

    def _flood(self, device: SliceDevice, other: int, frame_bytes: int, until_ns: int) -> Release:
        """Return frames at the rate of a sender's link, or at most what the sender can send."""
        gap_ns = max(self._slot_ns(frame_bytes), NS_PER_S / device.most_pps)
        instants_ns = (np.arange(int(until_ns / gap_ns) + 1) * gap_ns).astype(np.int64)
        return Release(queue=other, host=attacker(), frame_bytes=frame_bytes, instants_ns=instants_ns)

    def burst(self, device: SliceDevice, seed: int) -> Iterator[tuple[int, Numbers]]:
        """Send more than the bucket holds, at once; yield when each came, since the first one was sent."""
        frame = _burst_frame_bytes(self.queue, self.counts)
        takes = self._takes(frame)
        count = min(_BUCKETS * burst_of(self.queue) // takes + 20, _MOST_BURST)
        yield frame, self._at_once(device, frame, count, seed)

    def group(self, device: SliceDevice, seed: int) -> Iterator[tuple[int, Numbers]]:
        """Send full frames at once, enough for several groups; yield when each came."""
        takes = self._takes(MAX_FRAME_BYTES)
        groups = _GROUPS * max(self.port.dequeue.group_frames, 8)
        holds = burst_of(self.queue) // takes
        count = min(holds, groups) if self.port.scheduler == "trtcm" else holds + groups
        yield (
            MAX_FRAME_BYTES,
            self._at_once(device, MAX_FRAME_BYTES, min(max(count, 2), _MOST_BURST), seed),
        )

    def _at_once(self, device: SliceDevice, frame_bytes: int, count: int, seed: int) -> Numbers:
        instants_ns = np.full(count, _SETTLE_NS, dtype=np.int64)
        sent = device.send({0: self._release(frame_bytes, instants_ns)}, seed)[0]
        return np.where(sent.received_ns == LOST, LOST, sent.received_ns - sent.sent_ns[0])

    def _conforming(self) -> tuple[int, NDArray[np.int64]]:
        """Return frame length and instants: the flow's burst at once, then frames as its bucket allows."""
        flow = flow_of_slice(self.queue)
        gap_ns = flow.frame_bytes * 8 * NS_PER_S / flow.rate_bps
        burst = flow.burst_bytes // flow.frame_bytes
        count = min(max(int(_LONGEST_NS / gap_ns), 20), _LATENCY_FRAMES)
        later = _SETTLE_NS + np.ceil(np.arange(1, count + 1) * gap_ns)
        return flow.frame_bytes, np.concatenate([np.full(burst, _SETTLE_NS), later]).astype(np.int64)

    def latency(self, device: SliceDevice, seed: int) -> Iterator[tuple[int, Numbers]]:
        """Yield the latencies of a flow that conforms to its bucket, alone."""
        frame, instants_ns = self._conforming()
        sent = device.send({0: self._release(frame, instants_ns)}, seed)[0]
        yield frame, self._latencies(device, sent, frame)

    def attacked(self, other: int) -> Callable[[SliceDevice, int], Iterator[tuple[int, Numbers]]]:
        """Measure the same latencies while another slice gets all that its sender's link carries.

        This is done with long and with short frames of the attacker; yields the latencies by their length.
        """

        def measure(device: SliceDevice, seed: int) -> Iterator[tuple[int, Numbers]]:
            frame, instants_ns = self._conforming()
            for length in (MIN_FRAME_BYTES, MAX_FRAME_BYTES):
                flood = self._flood(device, other, length, int(instants_ns[-1]))
                sent = device.send({0: self._release(frame, instants_ns), 1: flood}, seed)
                if _kept_up(flood, sent[1]):
                    yield length, self._latencies(device, sent[0], frame)

        return measure

    def _latencies(self, device: SliceDevice, sent: PacketTimes, frame_bytes: int) -> Numbers:
        """Return latencies from last bit in to first bit out.

        The sender's stamp is at the first bit in virtual time; in real time a pair of veths hands on the
        frame as a whole.
        """
        wire_ns = 0 if device.real_time else round((8 + frame_bytes) * 8 * NS_PER_S / self.port.link_rate_bps)
        return np.where(sent.received_ns == LOST, LOST, sent.received_ns - sent.sent_ns - wire_ns)

    def tcp(self, device: SliceDevice, seed: int) -> Iterator[tuple[int, Numbers]]:
        """Send one TCP transfer; yield the bytes delivered and the time in ns."""
        seconds = min(max(_TCP_FRAMES * MAX_FRAME_BYTES * 8 / rate_of(self.queue), 0.5), 5.0)
        duration_ns = round(seconds * NS_PER_S)
        delivered = device.tcp(self.number, MAX_FRAME_BYTES, duration_ns, seed)
        if delivered is not None:
            yield MAX_FRAME_BYTES, np.array([delivered, duration_ns], dtype=np.int64)


def _kept_up(release: Release, sent: PacketTimes) -> bool:
    """Return whether a sender was as fast as it should be."""
    wanted_ns, took_ns = np.ptp(release.instants_ns), np.ptp(sent.sent_ns)
    return bool(took_ns <= (1 + _SLOWER) * wanted_ns + _SETTLE_NS)


def steady(sent: PacketTimes) -> Numbers:
    """Return what passed, and what was offered, in the second half of the sending.

    The numbers are frames and the time in ns that they took, first of what passed, then of what was offered.
    """
    middle_ns = (int(sent.sent_ns[0]) + int(sent.sent_ns[-1])) // 2
    offered = sent.sent_ns[sent.sent_ns >= middle_ns]
    came = np.sort(sent.received_ns[(sent.received_ns >= middle_ns) & (sent.received_ns <= sent.sent_ns[-1])])
    return np.array([*_frames_in(came), *_frames_in(offered)], dtype=np.int64)


def _frames_in(instants_ns: NDArray[np.int64]) -> tuple[int, int]:
    """Return frames and a time in ns whose quotient is the rate; groups at both ends weigh little."""
    count = len(instants_ns)
    if count < 3:
        return count, 0
    slope_ns = np.polyfit(np.arange(count), instants_ns - instants_ns[0], 1)[0]
    return count, round(slope_ns * count)


def parts(port: Port, counts: CountedBytes, device: SliceDevice) -> list[SliceMeasurement]:
    """Return all parts, for all slices, that this bench can measure on the device."""
    todo = []
    turns = range(TURNS if device.real_time else 1)
    for number, queue in enumerate(port.queues):
        its_slice = Slice(port, number, counts)
        for turn in turns:
            todo += [
                SliceMeasurement(key(queue.name, RATE, turn=turn), its_slice.rate),
                SliceMeasurement(key(queue.name, BURST, turn=turn), its_slice.burst),
                SliceMeasurement(key(queue.name, GROUP, turn=turn), its_slice.group),
                SliceMeasurement(key(queue.name, LATENCY, turn=turn), its_slice.latency),
            ]
        todo.append(SliceMeasurement(key(queue.name, TCP), its_slice.tcp))
        for other, its in enumerate(port.queues):
            if not device.several or other == number:
                continue
            for turn in turns:
                todo += [
                    SliceMeasurement(key(queue.name, CROWDED, its.name, turn), its_slice.crowded(other)),
                    SliceMeasurement(key(queue.name, ATTACKED, its.name, turn), its_slice.attacked(other)),
                ]
    return todo


def least_disturbed(what: str, turns: Sequence[Numbers]) -> Numbers:
    """Return the turn that the host disturbed least.

    A host delays and loses frames, and lets them catch up afterwards. So the least disturbed turn is the one
    with the median rate, or with the fewest losses and then the shortest times.
    """
    if what in {RATE, CROWDED}:
        return sorted(turns, key=lambda numbers: numbers[0] / max(numbers[1], 1))[len(turns) // 2]
    times = max if what == LATENCY else sum
    return min(turns, key=lambda numbers: (int((numbers == LOST).sum()), times(numbers.tolist())))
