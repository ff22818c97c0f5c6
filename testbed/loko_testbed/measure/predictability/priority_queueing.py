"""PQ: how much later a frame of high priority is than network calculus allows (section II-B).

Equation 2 bounds its time by the processing time and one frame of lower priority on the wire. The excess is
the epsilon of the switch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.units import NS_PER_US
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.instruments.virtual_session import RefusedError
from loko_testbed.measure.predictability.marks import DimensionVerdict, Mark, Thresholds
from loko_testbed.measure.predictability.subject import (
    FrameStream,
    StreamTimes,
    SwitchUnderTest,
    evenly,
    transmit,
)
from loko_testbed.measure.predictability.table_iii import OTHER_PORT, enqueue_message, frame
from loko_testbed.simulation.runner import LOST

HIGH_BYTES: Final = 100
"""Section II-B.1."""
LOW_BYTES: Final = (1000, 500, 100)
"""Lengths of the frames of low priority, one after the other, as in figure 5."""
BURST_FRAMES: Final = 5
_PAUSES_NS: Final = (75_000, 750_000)
"""Range of the pauses between bursts: longer than a scheduler's pauses, and of varying length.

With equal pauses, frames of low priority would always be equally far on the wire when the scheduler looks
again.
"""
_LOW_UDP: Final = 6001
_HIGH_UDP: Final = 6000
_BETWEEN: Final = (0.1, 0.9)
"""Which part of the way from the time without other traffic to the largest one counts as between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityDelays:
    """Times of the frames of high priority, part by part."""

    refused: bool
    """Whether the switch has no action enqueue."""
    lost: int = 0
    sent_ns: NDArray[np.int64]
    processing_ns: NDArray[np.int64]
    """-1 if the frame never came."""
    part: NDArray[np.int64]
    """Part of each frame: 0 without other traffic, then 1, 2, ... for `LOW_BYTES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferingTraffic:
    """Traffic of low priority beside the bursts of high priority."""

    high_bytes: int = HIGH_BYTES
    low_bytes: int = LOW_BYTES[0]
    low_flows: int = 1
    """Flows of low priority, each from a port of its own; 0 for none. Together they send at one rate."""
    low_percent: float = 100
    """Their rate, as a share of line rate."""

    def alone(self) -> InterferingTraffic:
        """Return the same bursts without other traffic."""
        return replace(self, low_flows=0)


def measure(subject: SwitchUnderTest, *, bursts: int, seed: int) -> PriorityDelays:
    """Send bursts of high priority, alone and beside each length of low priority. Raises `RunError`."""
    subject = subject.at_card_rate()
    parts: list[StreamTimes] = []
    beside = [InterferingTraffic(low_bytes=low_bytes) for low_bytes in LOW_BYTES]
    for place, interference in enumerate([InterferingTraffic().alone(), *beside]):
        try:
            parts.append(_part(subject, interference, bursts, seed=seed + place))
        except RefusedError:
            nothing = np.array([], dtype=np.int64)
            return PriorityDelays(refused=True, sent_ns=nothing, processing_ns=nothing, part=nothing)
    processing_ns = [_processing_ns(subject, stream, HIGH_BYTES) for stream in parts]
    part_ns = max(int(stream.sent_ns[-1]) for stream in parts) + _PAUSES_NS[1]
    return PriorityDelays(
        refused=False,
        lost=sum(stream.lost for stream in parts),
        sent_ns=np.concatenate([place * part_ns + stream.sent_ns for place, stream in enumerate(parts)]),
        processing_ns=np.concatenate(processing_ns),
        part=np.repeat(np.arange(len(parts)), bursts * BURST_FRAMES),
    )


def _processing_ns(subject: SwitchUnderTest, stream: StreamTimes, high_bytes: int) -> NDArray[np.int64]:
    """Return the processing time of every frame of a stream; -1 if it never came."""
    times_ns: NDArray[np.int64] = np.where(
        (stream.received_ns == LOST) | ~stream.kept,
        -1,
        stream.received_ns - stream.sent_ns - subject.wire_ns(high_bytes),
    )
    return times_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceDelays:
    """Processing times of the high-priority frames that came, in us."""

    alone_us: NDArray[np.float64]
    beside_us: NDArray[np.float64]

    @property
    def most_us(self) -> float:
        """The largest processing time beside other traffic."""
        return float(self.beside_us.max())

    def excess_us(self, slot_ns: float) -> float:
        """Return the excess over equation 2, with one frame of low priority that takes `slot_ns`."""
        return self.most_us - float(self.alone_us.max()) - slot_ns / NS_PER_US

    @property
    def between_percent(self) -> float:
        """Share of frames that take longer than any without other traffic, and less than the longest.

        Section II-B.3 sees none beside traffic at line rate, and all of them at lower rates.
        """
        return between_percent(self.alone_us, self.beside_us)


def between_percent(alone: NDArray[np.number], beside: NDArray[np.number]) -> float:
    """Return the percentage of times beside other traffic that lie between both extremes (`_BETWEEN`)."""
    low, high = float(alone.max()), float(beside.max())
    part = (beside - low) / (high - low)
    return 100 * float(((part > _BETWEEN[0]) & (part < _BETWEEN[1])).mean())


def measure_beside(
    subject: SwitchUnderTest, interference: InterferingTraffic, *, bursts: int, seed: int
) -> InterferenceDelays:
    """Send bursts of high priority alone and beside this traffic. Raises `RunError`, `RefusedError`."""
    subject = subject.at_card_rate()
    alone, beside = (
        _processing_ns(subject, _part(subject, part, bursts, seed=seed + place), part.high_bytes)
        for place, part in enumerate((interference.alone(), interference))
    )
    return InterferenceDelays(
        alone_us=alone[alone >= 0] / NS_PER_US, beside_us=beside[beside >= 0] / NS_PER_US
    )


def _part(
    subject: SwitchUnderTest, interference: InterferingTraffic, bursts: int, *, seed: int
) -> StreamTimes:
    """Send bursts beside frames of low priority.

    The switch is a fresh one, so that no frames of another length are waiting.
    """
    high_bytes, flows = interference.high_bytes, interference.low_flows
    begins_ns = np.cumsum(np.random.default_rng(seed).integers(*_PAUSES_NS, bursts)) * subject.pace.pauses
    longest_ns = _PAUSES_NS[1] * subject.pace.pauses
    slots_ns = np.floor(np.arange(BURST_FRAMES) * subject.slot_ns(high_bytes)).astype(np.int64)
    streams = [
        FrameStream(
            enters=OTHER_PORT,
            leaves=OUT_PORT,
            frame=frame(high_bytes, udp_out=_HIGH_UDP),
            instants_ns=(begins_ns[:, None] + slots_ns).ravel().astype(np.int64),
        )
    ]
    for number in range(flows):
        turn_ns = subject.slot_ns(interference.low_bytes) * 100 / interference.low_percent
        gap_ns = flows * turn_ns
        low = FrameStream(
            enters=IN_PORT if number == 0 else OTHER_PORT + number,
            leaves=OUT_PORT,
            frame=frame(interference.low_bytes, udp_out=_LOW_UDP + number),
            instants_ns=evenly(
                int((begins_ns[-1] + longest_ns) / gap_ns), gap_ns, begin_ns=round(number * turn_ns)
            ),
        )
        streams.append(low)
    entries = [
        *(enqueue_message(_LOW_UDP + number, OUT_PORT, 0) for number in range(max(flows, 1))),
        enqueue_message(_HIGH_UDP, OUT_PORT, subject.queues - 1),
    ]
    return transmit(subject, entries, streams, seed=seed)[0]


def excesses_us(subject: SwitchUnderTest, delays: PriorityDelays) -> list[float]:
    """Return, by length of low priority, the largest excess over equation 2; nan if all frames were lost."""
    alone_ns, card = _most_ns(delays, 0), subject.at_card_rate()
    return [
        (_most_ns(delays, place) - alone_ns - card.slot_ns(length)) / NS_PER_US
        for place, length in enumerate(LOW_BYTES, start=1)
    ]


def _most_ns(delays: PriorityDelays, part: int) -> float:
    times_ns = delays.processing_ns[(delays.part == part) & (delays.processing_ns >= 0)]
    return float(times_ns.max()) if len(times_ns) else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excesses:
    """Numbers on which the mark depends."""

    refused: bool
    forwards: bool
    """Whether any frame came without other traffic."""
    lost: int
    by_length_us: dict[str, float]
    """The largest excess over equation 2 by the length of low priority; without those of which none came."""


def summary(subject: SwitchUnderTest, delays: PriorityDelays) -> Excesses:
    """Summarise the result of `measure`."""
    if delays.refused or math.isnan(_most_ns(delays, 0)):
        return Excesses(refused=delays.refused, forwards=False, lost=delays.lost, by_length_us={})
    excesses = zip(LOW_BYTES, excesses_us(subject, delays), strict=True)
    by_length_us = {str(length): excess for length, excess in excesses if not math.isnan(excess)}
    return Excesses(refused=False, forwards=True, lost=delays.lost, by_length_us=by_length_us)


def measure_excesses(subject: SwitchUnderTest, *, bursts: int, seed: int) -> Excesses:
    """Measure and summarise. Raises `RunError`."""
    return summary(subject, measure(subject, bursts=bursts, seed=seed))


def judge(excesses: Excesses, limits: Thresholds) -> DimensionVerdict:
    """Give the mark: no excess is fit, one that is always the same is partly fit."""
    if excesses.refused:
        return DimensionVerdict(
            mark=Mark.UNFIT, reasons=("it refuses the action enqueue: no priority queueing",)
        )
    if not excesses.forwards:
        reason = "it takes the action enqueue, but forwards nothing by it: no priority queueing"
        return DimensionVerdict(
            mark=Mark.UNFIT, reasons=(reason,), numbers={"lost_frames": float(excesses.lost)}
        )
    numbers = {f"excess_{length}_us": excess for length, excess in excesses.by_length_us.items()}
    numbers["lost_frames"] = float(excesses.lost)
    if excesses.lost > limits.lost_frames.value or len(excesses.by_length_us) < len(LOW_BYTES):
        reason = f"{excesses.lost} frames of high priority are lost behind low priority"
        return DimensionVerdict(mark=Mark.UNFIT, reasons=(reason,), numbers=numbers)
    least_us, epsilon_us = min(excesses.by_length_us.values()), max(excesses.by_length_us.values())
    numbers["epsilon_us"] = epsilon_us
    if epsilon_us <= limits.excess_us.value:
        return DimensionVerdict(
            mark=Mark.FIT, reasons=("no frame is later than equation 2 says",), numbers=numbers
        )
    if epsilon_us - least_us <= limits.excess_differs_us.value:
        reason = f"later than equation 2 by a constant of {epsilon_us:.1f} us, whatever interferes"
        return DimensionVerdict(mark=Mark.PARTLY, reasons=(reason,), numbers=numbers)
    reason = f"later than equation 2 by {least_us:.1f} to {epsilon_us:.1f} us, by what interferes"
    return DimensionVerdict(mark=Mark.UNFIT, reasons=(reason,), numbers=numbers)
