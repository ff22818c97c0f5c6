"""Processing time of the control plane (section 3.2): messages with reply, others by the barrier method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.control_questions import Question
from evaluation.bench.device import ControlFrame, Device
from evaluation.bench.equations import barrier_was_in_time, control_time_ns, silent_control_time_ns
from evaluation.runner import RunError
from loko.controller.messages import SEGMENT_BYTES, barrier_request

_SPACING_NS: Final = 6_000_000
"""Longer than a board works on any message of the control plane."""
_JITTER_NS: Final = 100_000
_BARRIER_REPLY: Final = 19
_XID: Final = 7
_BARRIER: Final = barrier_request(_XID)


@dataclass(frozen=True, slots=True)
class Samples:
    """Processing times of one message; `late_barriers` are samples that equation 3 does not allow."""

    times_ns: NDArray[np.int64]
    late_barriers: int = 0


def with_reply(device: Device, question: Question, *, samples: int, seed: int) -> Samples:
    """Equation 1, for a question of one segment. Raises `RunError` if a reply does not come."""
    times = [
        control_time_ns(reply.at_ns - first.at_ns, first.length_bytes, device.wire)
        for first, reply in _answers(device, question, samples, seed)
    ]
    return Samples(np.array(times, dtype=np.int64))


def ask(device: Device, question: Question, *, samples: int, seed: int) -> NDArray[np.int64]:
    """From the first request's complete arrival to the reply's departure, less their way on the inner link.

    Raises `RunError` if a reply does not come.
    """
    wire, times = device.wire, []
    for first, reply in _answers(device, question, samples, seed):
        inner_ns = sum(
            wire.time_ns(wire.preamble_bytes + one.length_bytes + wire.tag_bytes) for one in (first, reply)
        )
        # A reply counts from its last segment; the full ones ahead of it take the link before.
        ahead = (int.from_bytes(reply.payload[2:4], "big") - 1) // SEGMENT_BYTES
        inner_ns += ahead * wire.time_ns(wire.preamble_bytes + reply.length_bytes + wire.gap_bytes)
        times.append(control_time_ns(reply.at_ns - first.at_ns, first.length_bytes, wire) - inner_ns)
    return np.array(times, dtype=np.int64)


def _answers(
    device: Device, question: Question, samples: int, seed: int
) -> Iterator[tuple[ControlFrame, ControlFrame]]:
    """The first frame of the question and of its answer, so many times."""
    for sample, gap in enumerate(_gaps(samples, seed)):
        if sample == 0 or not question.repeatable:
            device.load(question.table)
        seen = device.control([gap] + [0] * (len(question.segments) - 1), question.segments)
        first = next((one for one in seen if not one.from_switch), None)
        reply = next((one for one in seen if one.from_switch), None)
        if first is None or reply is None:
            raise RunError(f"{device.name}: no reply to '{question.name}'")
        yield first, reply


def without_reply(
    device: Device, table: Sequence[bytes], subject: bytes, *, barrier_ns: int, samples: int
) -> Samples:
    """Equations 2 and 3: the table is made anew for each sample, then the subject and a barrier follow."""
    times, late = [], 0
    for _ in range(samples):
        device.load(table)
        seen = device.control([_SPACING_NS, 0], [subject, _BARRIER])
        requests = [one for one in seen if not one.from_switch]
        replies = [one for one in seen if one.from_switch and one.payload[1] == _BARRIER_REPLY]
        if len(replies) != 1:
            raise RunError(f"{device.name}: no reply to the barrier behind {subject[:8].hex()}")
        first, second = requests
        to_reply_ns = replies[0].at_ns - first.at_ns
        in_time = barrier_was_in_time(
            second.at_ns - first.at_ns, to_reply_ns, second.length_bytes, barrier_ns, device.wire
        )
        if in_time:
            times.append(silent_control_time_ns(to_reply_ns, first.length_bytes, barrier_ns, device.wire))
        else:
            late += 1
    return Samples(np.array(times, dtype=np.int64), late)


def _gaps(samples: int, seed: int) -> list[int]:
    random = np.random.default_rng(seed)
    gaps: list[int] = (_SPACING_NS + random.integers(0, _JITTER_NS, samples)).tolist()
    return gaps
