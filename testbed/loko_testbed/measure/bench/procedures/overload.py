"""The switch in overload: when a pause ends, and what a frame too many costs.

Not in the paper, which only sees the throughput fall (section 3.4.2, fig. 12a); docs/overload.md says what
the numbers mean. A burst that is one frame too long makes the CPU ask for a pause. What becomes of probes
behind it, and of the frames that come back meanwhile, shows how long the pause lasts and what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.units import PS_PER_NS
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.measure.bench.cases import flow_mods
from loko_testbed.measure.bench.device import MISSING, BenchDevice, TrainTimes
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.part import (
    NOTHING,
    Combinations,
    MeasurementPart,
    MeasurementSize,
    NoFrameLength,
    Procedure,
    ProfileNumber,
    Samples,
    SampleSet,
    counts,
)
from loko_testbed.measure.bench.procedures.backlog import SIZE, period_ns
from loko_testbed.measure.bench.procedures.buffer import SLOWEST, capacity
from loko_testbed.measure.bench.procedures.idle import FASTEST
from loko_testbed.measure.bench.procedures.is_time import is_hidden

_HELD_PROBES: Final = 60
_SETTLED_NS: Final = 60_000
"""Longer than a pause frame takes."""
_LOOK_NS: Final = (-10_000, 40_000)
"""How long before a returning frame the probes arrive that show whether they take up its room."""
_COARSE: Final = 80
_FINE: Final = 200
_AROUND_NS: Final = 4_000
LINE_SIZE: Final = 1516
"""So long that the link to the CPU is slower than the CPU."""
_LINE_FRAMES: Final = 4_000
_SAME_NS: Final = 1_000
_ROUGHLY_NS: Final = 2_000
"""Rough time of the integrated switch. It only shifts the instants at which probes arrive."""
_PAUSE: Final = "pause"
_INNER: Final = "link to the CPU"
_UNKNOWN: Final = -1
"""Stored in place of a count that the probes did not show."""
_PERMILLE: Final = 1000


@dataclass(frozen=True, slots=True)
class Situation:
    """Numbers on which the timing of the probes depends."""

    frames: int
    """How many frames the switch holds; with one more it asks for a pause."""
    period_ns: int
    way_ns: int
    """Time from a lone frame's entrance until it leaves."""


def situation(device: BenchDevice) -> Situation:
    """Load the slowest table and measure how much the switch holds. Raises `RunError`."""
    frames = capacity(device, SIZE).frames
    device.load(flow_mods(SLOWEST))
    period = period_ns(device)
    lone = device.send([0], [frame(SIZE, 0)])
    return Situation(frames, period, int(lone.left_ns[0] - lone.entered_ns[0]))


def taken_before_end(device: BenchDevice, there: Situation) -> int | None:
    """Return how many waiting frames the CPU takes until the pause ends and the first probe passes.

    None if probes pass at once, since they are then held and show nothing, or if none passes.
    """
    burst = there.frames + 1
    line_ns = _line_ns(device)
    first_ns = 3 * there.period_ns // 2 - burst * line_ns
    passage = _send(device, [0] * burst + [first_ns] + [there.period_ns] * there.frames)
    seen = np.flatnonzero(passage.left_ns[burst:] != MISSING)
    if not len(seen):
        return None
    begun_ns = passage.left_ns[1:burst] - (there.way_ns - _arrival_ns(device))
    probe_ns = passage.entered_ns[burst + seen[0]] + _arrival_ns(device)
    return int(np.count_nonzero((passage.left_ns[1:burst] != MISSING) & (begun_ns <= probe_ns)))


def held(device: BenchDevice, there: Situation) -> int | None:
    """Return how many frames are kept for the paused CPU; None if more than the bench sends."""
    burst = there.frames + 1
    passage = _send(device, [0] * burst + [_SETTLED_NS] + [0] * (_HELD_PROBES - 1))
    seen = np.flatnonzero(passage.left_ns[burst:] != MISSING)
    if not len(seen):
        return 0
    return int(seen[-1]) + 1 if seen[-1] + 1 < _HELD_PROBES else None


def room(device: BenchDevice, there: Situation, taken: int, *, seed: int) -> SampleSet:
    """Return how long before each returning frame a probe came, then whether that frame was lost, 1 or 0."""
    random = np.random.default_rng(seed)
    coarse = [random.uniform(*_LOOK_NS, taken) for _ in range(_COARSE)]
    looks = [_looks(device, there, taken, leads) for leads in coarse]
    edges = lost_between(np.concatenate(looks, axis=1).ravel())
    if edges is not None:
        shift_ns = _way_back_ns(device)
        for turn in range(_FINE):
            centre = edges[turn % 2] - shift_ns
            leads = centre + random.uniform(-_AROUND_NS, _AROUND_NS, taken)
            looks.append(_looks(device, there, taken, leads))
    return SampleSet(np.concatenate(looks, axis=1).ravel())


def lost_between(samples: NDArray[np.int64]) -> tuple[float, float, float] | None:
    """Return the leads between which frames are lost, and the standard error of both; None without loss."""
    leads, lost = samples.reshape(2, -1)
    gone = np.sort(leads[lost == 1])
    there = np.sort(leads[lost == 0])
    if not len(gone) or not len(there) or there[0] > gone[0] or there[-1] < gone[-1]:
        return None
    below = there[there < np.median(gone)].max()
    above = there[there > np.median(gone)].min()
    grain_ns = max(gone[0] - below, above - gone[-1], 1)
    return (below + gone[0]) / 2, (gone[-1] + above) / 2, float(grain_ns) / np.sqrt(12)


def inner_gaps(device: BenchDevice) -> SampleSet:
    """Measure the gaps between long frames that come as fast as the link allows.

    They go on over a link that adds a tag. A CPU that is faster than both links leaves them as far apart as
    the link to it brings them.
    """
    device.load(flow_mods(FASTEST))
    passage = device.send([0] * _LINE_FRAMES, [frame(LINE_SIZE, number) for number in range(_LINE_FRAMES)])
    left = np.where(passage.disturbed, MISSING, passage.left_ns)
    there = (left[:-1] != MISSING) & (left[1:] != MISSING)
    return SampleSet(np.asarray(np.diff(left)[there]))


def _looks(
    device: BenchDevice, there: Situation, taken: int, leads_ns: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Send one burst, with a probe before every other frame that comes back during the pause.

    Returns two rows: the probes' leads over these frames, and whether each frame was lost.
    """
    burst = there.frames + 1
    chosen = np.arange(1, taken - 2, 2)
    left_ns = there.way_ns + chosen * there.period_ns
    begin_ns = left_ns - leads_ns[: len(chosen)].astype(np.int64) - _way_back_ns(device)
    begin_ns -= device.wire.time_ns(SIZE)
    gaps = np.diff(begin_ns, prepend=(burst - 1) * _line_ns(device))
    passage = _send(device, [0] * burst + gaps.tolist())
    came = passage.left_ns
    leads, lost = [], []
    for probe, place in enumerate(chosen):
        around = came[[place - 1, place + 1]]
        even = abs(int(around[1] - around[0]) - 2 * there.period_ns) <= _SAME_NS
        if (around == MISSING).any() or not even:
            continue
        expected_ns = came[place] if came[place] != MISSING else int(around.sum()) // 2
        arrived_ns = passage.entered_ns[burst + probe] + device.wire.time_ns(SIZE)
        leads.append(expected_ns - arrived_ns)
        lost.append(int(came[place] == MISSING))
    return np.array([leads, lost], dtype=np.int64)


def _send(device: BenchDevice, gaps_ns: list[int]) -> TrainTimes:
    return device.send(gaps_ns, [frame(SIZE, number) for number in range(len(gaps_ns))])


def _line_ns(device: BenchDevice) -> int:
    wire = device.wire
    return wire.time_ns(wire.preamble_bytes + SIZE + wire.gap_bytes)


def _inner_ns(device: BenchDevice) -> int:
    wire = device.wire
    return wire.time_ns(wire.preamble_bytes + SIZE + wire.tag_bytes)


def _arrival_ns(device: BenchDevice) -> int:
    """Estimate the time from a frame's entrance until it is in the ring."""
    return device.wire.time_ns(SIZE) + _ROUGHLY_NS + _inner_ns(device)


def _way_back_ns(device: BenchDevice) -> int:
    """Estimate the time from the CPU until a frame's stamp."""
    return _inner_ns(device) + _ROUGHLY_NS + device.wire.preamble_ns


def _parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    yield MeasurementPart(PROCEDURE.key(_PAUSE), _measured_pause)
    yield MeasurementPart(PROCEDURE.key(_INNER), lambda device, _: {LINE_SIZE: inner_gaps(device)})


def _measured_pause(device: BenchDevice, seed: int) -> Combinations:
    there = situation(device)
    kept = held(device, there)
    taken = None if kept != 0 else taken_before_end(device, there)
    looked = NOTHING if taken is None else room(device, there, taken, seed=seed)
    pauses = (_UNKNOWN if pause is None else pause for pause in (kept, taken))
    return {NoFrameLength.VALUES: counts(there.frames, *pauses), SIZE: looked}


def numbers(samples: Samples, wire: LinkTiming, known: Callable[[str], float]) -> dict[str, ProfileNumber]:
    """Return the numbers. `known` gives those found before, or those of the form."""
    return _tag(samples, wire) | _pause(samples, wire, known)


def _tag(samples: Samples, wire: LinkTiming) -> dict[str, ProfileNumber]:
    gaps = samples.get(PROCEDURE.key(_INNER), {}).get(LINE_SIZE, np.array([]))
    if len(gaps) < 2:
        return {}
    byte_ns = wire.time_ns(1)
    bytes_apart = float(gaps.mean()) / byte_ns
    tag = bytes_apart - (wire.preamble_bytes + LINE_SIZE + wire.gap_bytes)
    # Only the first and the last frame's phase in the main loop matter: the gaps between add up.
    error = float(gaps.std()) / byte_ns / len(gaps)
    if tag < 1 / 2:
        return {}
    return {"ports.tail_tag_bytes": ProfileNumber(tag, error, (PROCEDURE.name,), len(gaps))}


def _pause(samples: Samples, wire: LinkTiming, known: Callable[[str], float]) -> dict[str, ProfileNumber]:
    parts = samples.get(PROCEDURE.key(_PAUSE), {})
    if NoFrameLength.VALUES not in parts:
        return {}
    frames, held, taken = map(int, parts[NoFrameLength.VALUES])
    pauses = {}
    if held >= 0:
        pauses["flow_control.held_frames"] = ProfileNumber(held, 0.0, (PROCEDURE.name,), 1)
    if taken >= 0:
        units_of_frame = -(-SIZE // int(known("buffer.unit_bytes")))
        waiting = frames - int(known("buffer.packets")) - taken
        pauses["flow_control.resume_units"] = ProfileNumber(
            waiting * units_of_frame, 0.0, (PROCEDURE.name,), 1
        )
    looked = parts[SIZE]
    if len(looked):
        frame_ns = wire.time_ns(wire.preamble_bytes + SIZE)
        frame_ns += round(known("integrated_switch.transit_ps") / PS_PER_NS)
        room_ns, error_ns = _room_ns(looked)
        if room_ns is not None and not is_hidden(frame_ns, samples):
            pauses["flow_control.discard_permille"] = ProfileNumber(
                room_ns / frame_ns * _PERMILLE,
                error_ns / frame_ns * _PERMILLE,
                (PROCEDURE.name,),
                len(looked) // 2,
            )
    return pauses


def _room_ns(looked: NDArray[np.int64]) -> tuple[float | None, float]:
    """Return for how long a probe has kept frames from passing, and the standard error."""
    leads, lost = looked.reshape(2, -1)
    if not lost.any():
        return 0.0, float(leads.max() - leads.min()) / len(leads)
    edges = lost_between(looked)
    return (None, 0.0) if edges is None else (edges[1] - edges[0], edges[2] * float(np.sqrt(2)))


def _leads(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """Select the leads of the probes over their frames. Samples of the other parts stay as they are."""
    return samples[: len(samples) // 2] if len(samples) % 2 == 0 else samples


PROCEDURE: Final = Procedure(
    name="overload",
    text="Pauses of a full switch, and the cost of one frame too many (docs/overload.md).",
    parts=_parts,
    shown=_leads,
)
