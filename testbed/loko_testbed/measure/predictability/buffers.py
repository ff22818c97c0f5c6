"""BM: how many frames a queue holds, depending on congestion of other queues and ports (section III-B).

Network calculus gives each queue a memory of its own. Where queues share one, a burst elsewhere takes room
away. The set-up is that of figure 11: ports send to each other at line rate, into the highest queues, and one
more port sends the surplus that fills these queues and, unserved, those below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko_testbed.instruments.virtual_session import RefusedError
from loko_testbed.measure.predictability.marks import DimensionVerdict, Mark, Thresholds
from loko_testbed.measure.predictability.subject import (
    FrameStream,
    StreamTimes,
    SwitchUnderTest,
    evenly,
    transmit,
)
from loko_testbed.measure.predictability.table_iii import enqueue_message, frame
from loko_testbed.simulation.runner import LOST

FRAME_BYTES: Final = 1516
MOST_PORTS: Final = 6
PORTS: Final = (1, 2, 4, MOST_PORTS)
"""Numbers of congested ports; the study has all up to six."""
QUEUES: Final = (1, 2, 4, 8)
"""Numbers of congested queues at each port, as far as it has so many."""
ALL_CASES: Final = tuple((ports, queues) for ports in PORTS for queues in QUEUES)
NEEDED_PORTS: Final = MOST_PORTS + 2
"""Each congested port receives from its neighbour, and one more port sends the surplus."""
_FIRST_UDP: Final = 6000
_QUEUES_OF_A_PORT: Final = 16
_ON_THE_LINE: Final = 1.5
"""Frames by which a wait may exceed those ahead: one on the line, and half of one for the stamps."""
_RESTS: Final = 0.02
"""Share of a wait for which a line in real time may rest: its timers are late by some microseconds each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCapacity:
    """Capacity of the highest queue of one port, in frames; -1 if no loss revealed it."""

    frames: float
    """The median. Each loss gives one value: the frames before the lost one, plus 1 (equation 5)."""
    least_frames: float
    most_frames: float
    held_up: bool = False
    """Whether it is unknown as this machine held up the line before every loss; else nothing was lost."""


def cases(subject: SwitchUnderTest, *, most_ports: int, most_queues: int) -> list[tuple[int, int]]:
    """Return the cases (congested ports, congested queues of each); none if the switch has too few ports."""
    if subject.ports < NEEDED_PORTS:
        return []
    most_queues = min(most_queues, subject.queues)
    return [(ports, queues) for ports, queues in ALL_CASES if ports <= most_ports and queues <= most_queues]


def measure(
    subject: SwitchUnderTest, ports: int, queues: int, *, seed: int, frame_bytes: int = FRAME_BYTES
) -> QueueCapacity | None:
    """Measure how much the highest queue of port 1 holds beside such congestion.

    None if the switch has no action enqueue. Raises `RunError`.
    """
    slots, held_up = subject.pace.shortest_slots, False
    while True:
        try:
            through = _through_queue(subject, (ports, queues), frame_bytes, slots=slots, seed=seed)
        except RefusedError:
            return None
        after_ns = round(slots * subject.slot_ns(frame_bytes) / 2)
        told = capacities(subject, through, after_ns=after_ns, frame_bytes=frame_bytes)
        if told.size:
            return QueueCapacity(
                frames=float(np.median(told)),
                least_frames=float(told.min()),
                most_frames=float(told.max()),
            )
        held_up |= any((stream.received_ns == LOST).any() for stream in through)
        if slots >= subject.pace.longest_slots:
            return QueueCapacity(frames=-1, least_frames=-1, most_frames=-1, held_up=held_up)
        slots *= 4


def _through_queue(
    subject: SwitchUnderTest, case: tuple[int, int], frame_bytes: int, *, slots: int, seed: int
) -> list[StreamTimes]:
    """Congest queues, and return what was sent through the one that is watched."""
    (ports, queues), slot_ns, top = case, subject.slot_ns(frame_bytes), subject.queues - 1
    congested = [(port, top - below) for port in range(1, ports + 1) for below in range(queues)]
    line = evenly(slots, slot_ns)
    streams = [_stream(port + 1, (port, top), line, frame_bytes) for port in range(1, ports + 1)]
    for place, queue in enumerate(congested):
        turns = evenly(slots // len(congested), len(congested) * slot_ns, begin_ns=round(place * slot_ns))
        streams.append(_stream(NEEDED_PORTS, queue, turns, frame_bytes))
    entries = [enqueue_message(_udp_of(queue), *queue) for queue in congested]
    sent = transmit(subject, entries, streams, seed=seed, drain_ns=round(subject.pace.drain_slots * slot_ns))
    return [sent[0], sent[ports]]


def _stream(
    enters: int, queue: tuple[int, int], instants_ns: NDArray[np.int64], frame_bytes: int
) -> FrameStream:
    packet = frame(frame_bytes, udp_out=_udp_of(queue))
    return FrameStream(enters=enters, leaves=queue[0], frame=packet, instants_ns=instants_ns)


def capacities(
    subject: SwitchUnderTest, through: list[StreamTimes], *, after_ns: int, frame_bytes: int = FRAME_BYTES
) -> NDArray[np.float64]:
    """Return a queue's capacity at each loss after `after_ns`, from the delays of all its streams.

    A frame's wait beyond the shortest time of any frame, counted in frames, is what was before it (equations
    3 to 5). That supposes that the line never rests meanwhile. In real time a machine may let it, and then
    fewer frames depart than the wait has room for: such a loss tells nothing.
    """
    sent_ns = np.concatenate([stream.sent_ns for stream in through])
    received_ns = np.concatenate([stream.received_ns for stream in through])
    order = np.argsort(sent_ns, kind="stable")
    sent_ns, received_ns = sent_ns[order], received_ns[order]
    came = np.flatnonzero(received_ns != LOST)
    lost = np.flatnonzero((received_ns == LOST) & (sent_ns >= after_ns))
    passed = np.searchsorted(came, lost)  # how many came before each lost one
    before = came[passed[passed > 0] - 1]
    times_ns = received_ns - sent_ns
    waited_ns = times_ns[before] - times_ns[came].min(initial=np.iinfo(np.int64).max)
    waited = waited_ns / subject.slot_ns(frame_bytes)
    if any(stream.disturbed is not None for stream in through):
        departed_ns = np.sort(received_ns[came])
        ahead = np.searchsorted(departed_ns, received_ns[before])
        ahead -= np.searchsorted(departed_ns, received_ns[before] - waited_ns)
        waited = waited[waited - ahead <= _ON_THE_LINE + _RESTS * waited]
    frames: NDArray[np.float64] = np.rint(waited) + 1
    return frames


def judge(capacities: dict[tuple[int, int], QueueCapacity | None], limits: Thresholds) -> DimensionVerdict:
    """Give the mark: a queue that always holds the same is fit."""
    if not capacities:
        return DimensionVerdict(
            mark=Mark.NOT_JUDGED, reasons=(f"that needs a switch with {NEEDED_PORTS} ports",)
        )
    told = {case: capacity for case, capacity in capacities.items() if capacity is not None}
    if not told:
        reason = "it refuses the action enqueue: there are no queues to compare"
        return DimensionVerdict(mark=Mark.NOT_JUDGED, reasons=(reason,))
    numbers = {
        f"frames_{ports}_ports_{queues}_queues": capacity.frames for (ports, queues), capacity in told.items()
    }
    if any(capacity.held_up for capacity in told.values()):
        reason = "this machine held up the line before every frame that was lost in some of the runs"
        return DimensionVerdict(mark=Mark.NOT_JUDGED, reasons=(reason,), numbers=numbers)
    if any(capacity.frames < 0 for capacity in told.values()):
        reason = "no frame was lost in some of the runs: its buffer is larger than they can tell"
        return DimensionVerdict(mark=Mark.NOT_JUDGED, reasons=(reason,), numbers=numbers)
    least, most = (
        min(capacity.frames for capacity in told.values()),
        max(capacity.frames for capacity in told.values()),
    )
    if most - least <= max(1.0, limits.buffer_differs_percent.value / 100 * most):
        reason = f"a queue holds {most:.0f} frames, whatever is congested elsewhere"
        return DimensionVerdict(mark=Mark.FIT, reasons=(reason,), numbers=numbers)
    reason = f"a queue holds {most:.0f} frames, or {least:.0f} beside other congested ports and queues"
    return DimensionVerdict(mark=Mark.UNFIT, reasons=(reason,), numbers=numbers)


def judge_with(
    capacities: dict[tuple[int, int], QueueCapacity | None],
    otherwise: dict[tuple[int, int], QueueCapacity | None],
    limits: Thresholds,
) -> DimensionVerdict:
    """Give the mark of a switch that has another setting: partly, if it is fit with the first one only."""
    verdict = judge(capacities, limits)
    if not otherwise:
        return verdict
    other = judge(otherwise, limits)
    numbers = verdict.numbers | {f"otherwise_{name}": number for name, number in other.numbers.items()}
    reasons = (*verdict.reasons, *(f"with another setting: {reason}" for reason in other.reasons))
    partly = verdict.mark is Mark.FIT and other.mark is Mark.UNFIT
    return DimensionVerdict(mark=Mark.PARTLY if partly else verdict.mark, reasons=reasons, numbers=numbers)


def _udp_of(queue: tuple[int, int]) -> int:
    port, number = queue
    return _FIRST_UDP + _QUEUES_OF_A_PORT * port + number
