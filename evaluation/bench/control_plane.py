"""Processing time of the control plane (section 3.2): messages with reply, and without one by the barrier method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from evaluation.bench.control_questions import Question
from evaluation.bench.device import ControlFrame, Device
from evaluation.bench.equations import barrier_was_in_time, control_time_ns, silent_control_time_ns
from evaluation.runner import RunError
from loko.controller.messages import PROTOCOL, barrier_request, echo_request, features_request, serialized

_SPACING_NS: Final = 6_000_000
"""Longer than a board works on any message of the control plane."""
_JITTER_NS: Final = 100_000
_BARRIER_REPLY: Final = 19
_BARRIER: Final = barrier_request(0xBA)


@dataclass(frozen=True, slots=True)
class Samples:
    """Processing times of one message; `late_barriers` are samples that equation 3 does not allow."""

    times_ns: NDArray[np.int64]
    late_barriers: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """A message with a reply."""

    name: str
    make: Callable[[], bytes]


def _stats(kind: str, **fields: Any) -> bytes:
    request = getattr(parser, f"OFP{kind}StatsRequest")(PROTOCOL, 0, *fields.values())
    return serialized(request, 7)


MESSAGES: Final = (
    Message("EchoRequest", lambda: echo_request(7)),
    Message("FeaturesRequest", lambda: features_request(7)),
    Message("GetConfigRequest", lambda: serialized(parser.OFPGetConfigRequest(PROTOCOL), 7)),
    Message("BarrierRequest", lambda: _BARRIER),
    Message("DescStatsRequest", lambda: _stats("Desc")),
    Message("TableStatsRequest", lambda: _stats("Table")),
    Message("PortStatsRequest", lambda: _stats("Port", port_no=of.OFPP_NONE)),
)
"""Messages of Fig. 6b whose time depends on nothing."""


def flow_stats() -> Message:
    """The request whose time depends on the table."""
    everything = parser.OFPMatch(wildcards=of.OFPFW_ALL)
    return Message(
        "FlowStatsRequest",
        lambda: _stats("Flow", match=everything, table=0xFF, out_port=of.OFPP_NONE),
    )


def with_reply(device: Device, message: Message, *, samples: int, seed: int) -> Samples:
    """Equation 1, `samples` times. Raises `RunError` if a reply does not come."""
    request = message.make()
    seen = device.control(_gaps(samples, seed), [request] * samples)
    times = []
    for asked, answer in _pairs(seen, message.name, device.name):
        times.append(control_time_ns(answer.at_ns - asked.at_ns, asked.length_bytes, device.wire))
    return Samples(np.array(times, dtype=np.int64))


def without_reply(
    device: Device,
    prepare: Callable[[], Sequence[bytes]],
    subject: bytes,
    *,
    barrier_ns: int,
    samples: int,
) -> Samples:
    """Equations 2 and 3: the table is made anew for each sample, then the subject and a barrier follow."""
    times, late = [], 0
    table = prepare()
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


def ask(device: Device, question: Question, *, samples: int, seed: int) -> NDArray[np.int64]:
    """From the first request's complete arrival to the reply's departure, less their way on the inner link.

    Raises `RunError` if the reply does not come.
    """
    wire, times = device.wire, []
    for sample, gap in enumerate(_gaps(samples, seed)):
        if sample == 0 or not question.repeatable:
            device.load(question.table)
        seen = device.control([gap] + [0] * (len(question.segments) - 1), question.segments)
        first = next(one for one in seen if not one.from_switch)
        reply = next((one for one in seen if one.from_switch), None)
        if reply is None:
            raise RunError(f"{device.name}: no reply to '{question.name}'")
        inner_ns = sum(
            wire.time_ns(wire.preamble_bytes + one.length_bytes + wire.tag_bytes) for one in (first, reply)
        )
        times.append(control_time_ns(reply.at_ns - first.at_ns, first.length_bytes, wire) - inner_ns)
    return np.array(times, dtype=np.int64)


def _gaps(samples: int, seed: int) -> list[int]:
    random = np.random.default_rng(seed)
    gaps: list[int] = (_SPACING_NS + random.integers(0, _JITTER_NS, samples)).tolist()
    return gaps


def _pairs(
    seen: Sequence[ControlFrame], name: str, device: str
) -> list[tuple[ControlFrame, ControlFrame]]:
    """Each request with the first frame of its answer."""
    pairs = []
    for one, two in zip(seen, seen[1:], strict=False):
        if not one.from_switch:
            if not two.from_switch:
                raise RunError(f"{device}: no reply to {name}")
            pairs.append((one, two))
    if seen and not seen[-1].from_switch:
        raise RunError(f"{device}: no reply to {name}")
    return pairs
