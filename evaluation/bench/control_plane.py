"""Processing time of the control plane (section 3.2): messages with reply, others by the barrier method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.control_messages import TABLE_STATISTICS, Subject
from evaluation.bench.control_questions import Question
from evaluation.bench.device import ControlFrame, Device
from evaluation.bench.equations import barrier_was_in_time, control_time_ns, silent_control_time_ns
from evaluation.runner import RunError
from loko.controller.framing import whole_messages
from loko.controller.messages import barrier_request, echo_request

_SPACING_NS: Final = 6_000_000
"""Longer than a board works on any message of the control plane."""
_JITTER_NS: Final = 100_000
_BARRIER_REPLY: Final = 19
_ECHO_REPLY: Final = 3
_STATISTICS_REPLY: Final = 17
_ACTIVE_AT: Final = 56
"""Place of the count of entries in table statistics of OpenFlow 1.0."""
_XID: Final = 7
_BARRIER: Final = Subject(name="BarrierRequest", message=barrier_request(_XID), replies=True)
INTERRUPTED_NS: Final = 20_000
"""Over the least time of a message: the IP stack's timers came between, not only the main loop's phase."""
_TRIES: Final = 3
"""So often a sample is taken again whose barrier came too late, on average."""

ECHO_SPACING_NS: Final = 1_252_100
"""Between the requests of a series: those that come while the CPU reads port counters fit into its ring, and
the firmware's 501 ms are no multiple of it."""
ECHO_SERIES_NS: Final = 30_000_000_000
"""Twenty rounds of the three jobs: a request meets one of 0.1 ms in every sixth round."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Processing times of one message."""

    times_ns: NDArray[np.int64]
    late_barriers: int = 0
    """Samples that equation 3 does not allow. They are not among the times."""
    disturbed: int = 0
    """Samples during which the bench's own host lost time. They are not among the times."""


@dataclass(frozen=True, slots=True)
class Series:
    """Processing times of echo requests over time."""

    at_ns: NDArray[np.int64]
    """When each request was sent, from the first one on."""
    times_ns: NDArray[np.int64]
    missing: int
    """Requests without a reply."""


def with_reply(device: Device, subject: Subject, *, samples: int, seed: int) -> Samples:
    """Equation 1. Of a reply of several frames the first one counts. Raises `RunError` if none comes."""
    device.load(subject.table)
    times: list[int] = []
    disturbed = 0
    for gap in _gaps(_TRIES * samples, seed):
        if len(times) == samples:
            break
        first, reply = _exchange(device, [gap], (subject.message,), subject.name)
        if reply.disturbed:
            disturbed += 1
        else:
            times.append(control_time_ns(reply.at_ns - first.at_ns, first.length_bytes, device.wire))
    _require(device, times, disturbed, subject.name)
    return Samples(np.array(times, dtype=np.int64), disturbed=disturbed)


@dataclass(frozen=True, slots=True)
class Barrier:
    """What a barrier alone takes."""

    usual_ns: int
    """p_BR of equation 2: the median."""
    longest_ns: int
    """p_BR of equation 3, without interruptions. With the median, every other late barrier would pass."""


def barrier(device: Device, *, samples: int, seed: int) -> Barrier:
    """Measure p_BR. Raises `RunError`."""
    times = with_reply(device, _BARRIER, samples=samples, seed=seed).times_ns
    return Barrier(int(np.median(times)), int(times[times < times.min() + INTERRUPTED_NS].max()))


def without_reply(device: Device, subject: Subject, *, barrier: Barrier, samples: int, seed: int) -> Samples:
    """Equations 2 and 3: a barrier follows the subject as closely as it can.

    A sample whose barrier arrived after the subject was finished says nothing of the subject: it is counted
    and taken again. Raises `RunError` if too many are so, or no reply comes.
    """
    times: list[int] = []
    late = disturbed = 0
    shortest_ns = 0
    fresh = False
    for gap in _gaps(_TRIES * samples, seed):
        if len(times) == samples:
            break
        if not fresh or subject.changes:
            device.load(subject.table)
            fresh = True
        first, second, reply = _with_barrier(device, gap, subject)
        to_reply_ns = reply.at_ns - first.at_ns
        apart_ns = second.at_ns - first.at_ns
        if reply.disturbed:
            disturbed += 1
        elif barrier_was_in_time(apart_ns, to_reply_ns, second.length_bytes, barrier.longest_ns, device.wire):
            times.append(
                silent_control_time_ns(to_reply_ns, first.length_bytes, barrier.usual_ns, device.wire)
            )
        else:
            late += 1
            shortest_ns = min(apart_ns, shortest_ns or apart_ns)
        if subject.undo is not None:
            # The barrier's reply acknowledges it; the next subject would be charged for that otherwise.
            device.control([_SPACING_NS, 0], [subject.undo, _BARRIER.message])
    if late > _TRIES * samples // 2:
        raise RunError(
            f"{device.name}: {late} of {len(times) + late} barriers behind '{subject.name}' came too late"
            f" (equation 3), the earliest {shortest_ns / 1000:.0f} us behind it: use a quieter machine"
        )
    _require(device, times, disturbed, subject.name)
    return Samples(np.array(times, dtype=np.int64), late, disturbed)


def echo_over_time(
    device: Device, *, spacing_ns: int = ECHO_SPACING_NS, duration_ns: int = ECHO_SERIES_NS
) -> Series:
    """Echo requests at fixed distances (figure 6a), with the firmware as the device has it."""
    count = duration_ns // spacing_ns
    device.load([])
    seen = device.control([spacing_ns] * count, [echo_request(number) for number in range(count)])
    sent: dict[int, ControlFrame] = {}
    replied: dict[int, int] = {}
    for frame in seen:
        for message in whole_messages(frame.payload)[0]:
            number = int.from_bytes(message[4:8], "big")
            if not frame.from_switch:
                sent.setdefault(number, frame)
            elif message[1] == _ECHO_REPLY:
                replied.setdefault(number, frame.at_ns)
    if len(replied) < count // 2:
        raise RunError(f"{device.name}: only {len(replied)} of {count} echo requests were answered")
    numbers = sorted(set(sent) & set(replied))
    begin_ns = sent[numbers[0]].at_ns
    return Series(
        np.array([sent[number].at_ns - begin_ns for number in numbers], dtype=np.int64),
        np.array(
            [
                control_time_ns(replied[number] - sent[number].at_ns, sent[number].length_bytes, device.wire)
                for number in numbers
            ],
            dtype=np.int64,
        ),
        count - len(numbers),
    )


def entries_added(device: Device, subject: Subject) -> int:
    """How many more entries the switch has afterwards, as its table statistics tell. Raises `RunError`."""
    device.load(subject.table)
    seen = device.control([_SPACING_NS, _SPACING_NS], [subject.message, TABLE_STATISTICS])
    for one in seen:
        if one.from_switch and one.payload[1] == _STATISTICS_REPLY:
            return int.from_bytes(one.payload[_ACTIVE_AT : _ACTIVE_AT + 4], "big") - len(subject.table)
    raise RunError(f"{device.name}: no table statistics behind '{subject.name}'")


def ask(device: Device, question: Question, *, samples: int, seed: int) -> Samples:
    """From the first request's complete arrival to the departure of the reply's first frame.

    Less the way of both on the inner link. Raises `RunError` if a reply does not come.
    """
    wire = device.wire
    times: list[int] = []
    disturbed = 0
    ready = False
    for gap in _gaps(_TRIES * samples, seed):
        if len(times) == samples:
            break
        if not ready:
            device.load(question.table)
            ready = question.repeatable
        gaps = [gap] + [0] * (len(question.segments) - 1)
        first, reply = _exchange(device, gaps, question.segments, question.name)
        if reply.disturbed:
            disturbed += 1
            continue
        inner_ns = sum(
            wire.time_ns(wire.preamble_bytes + one.length_bytes + wire.tag_bytes) for one in (first, reply)
        )
        times.append(control_time_ns(reply.at_ns - first.at_ns, first.length_bytes, wire) - inner_ns)
    _require(device, times, disturbed, question.name)
    return Samples(np.array(times, dtype=np.int64), disturbed=disturbed)


def _require(device: Device, times: list[int], disturbed: int, name: str) -> None:
    """Raise `RunError` if there is no sample at all."""
    if not times:
        raise RunError(
            f"{device.name}: this machine stalled during all {disturbed} samples of '{name}';"
            " end other programs and run again"
        )


def _exchange(
    device: Device, gaps_ns: list[int], segments: tuple[bytes, ...], name: str
) -> tuple[ControlFrame, ControlFrame]:
    """Send segments; the first one's frame, and the first frame of the answer."""
    for _ in range(_TRIES):
        seen = device.control(gaps_ns, segments)
        first = next((one for one in seen if not one.from_switch), None)
        reply = next((one for one in seen if one.from_switch), None)
        if first is not None and reply is not None:
            return first, reply
    raise RunError(f"{device.name}: no reply to '{name}'")


def _with_barrier(
    device: Device, gap_ns: int, subject: Subject
) -> tuple[ControlFrame, ControlFrame, ControlFrame]:
    """Send the subject and a barrier behind it; their frames, and that of the barrier's reply."""
    seen = device.control([gap_ns, 0], [subject.message, _BARRIER.message])
    requests = [one for one in seen if not one.from_switch]
    replies = [one for one in seen if one.from_switch and one.payload[1] == _BARRIER_REPLY]
    if len(replies) != 1 or len(requests) != 2:
        raise RunError(f"{device.name}: no reply to the barrier behind '{subject.name}'")
    first, second = requests
    return first, second, replies[0]


def _gaps(samples: int, seed: int) -> list[int]:
    random = np.random.default_rng(seed)
    gaps: list[int] = (_SPACING_NS + random.integers(0, _JITTER_NS, samples)).tolist()
    return gaps
