"""The numbers of `flow_control` and of the link to the CPU, from what bursts have shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from evaluation.bench.backlog import SIZE
from evaluation.bench.campaign import INNER_PART, PAUSE_PART
from evaluation.bench.control_parts import NO_LENGTH
from evaluation.bench.equations import Wire
from evaluation.bench.lateness import is_hidden
from evaluation.bench.number import Number
from evaluation.bench.overload import LINE_SIZE, lost_between
from evaluation.bench.store import Samples

_PS_PER_NS: Final = 1000
_PERMILLE: Final = 1000
_SOURCE: Final = ("overload",)


def overload_numbers(samples: Samples, wire: Wire, known: Callable[[str], float]) -> dict[str, Number]:
    """`known` gives numbers that were found before, or those of the form."""
    return _tag(samples, wire) | _pause(samples, wire, known)


def _tag(samples: Samples, wire: Wire) -> dict[str, Number]:
    gaps = samples.get(INNER_PART, {}).get(LINE_SIZE, np.array([]))
    if len(gaps) < 2:
        return {}
    byte_ns = wire.time_ns(1)
    bytes_apart = float(gaps.mean()) / byte_ns
    tag = bytes_apart - (wire.preamble_bytes + LINE_SIZE + wire.gap_bytes)
    # The first frame and the last one meet the main loop at any phase; between them all count.
    error = float(gaps.std()) / byte_ns / len(gaps)
    if tag < 1 / 2:
        return {}
    return {"ports.tail_tag_bytes": Number(tag, error, _SOURCE, len(gaps))}


def _pause(samples: Samples, wire: Wire, known: Callable[[str], float]) -> dict[str, Number]:
    parts = samples.get(PAUSE_PART, {})
    if NO_LENGTH not in parts:
        return {}
    frames, held, taken = map(int, parts[NO_LENGTH])
    numbers = {}
    if held >= 0:
        numbers["flow_control.held_frames"] = Number(held, 0.0, _SOURCE, 1)
    if taken >= 0:
        units_of_frame = -(-SIZE // int(known("buffer.unit_bytes")))
        waiting = frames - int(known("buffer.packets")) - taken
        numbers["flow_control.resume_units"] = Number(waiting * units_of_frame, 0.0, _SOURCE, 1)
    looked = parts[SIZE]
    if len(looked):
        frame_ns = wire.time_ns(wire.preamble_bytes + SIZE)
        frame_ns += round(known("integrated_switch.transit_ps") / _PS_PER_NS)
        room_ns, error_ns = _room_ns(looked)
        if room_ns is not None and not is_hidden(frame_ns, samples):
            numbers["flow_control.discard_permille"] = Number(
                room_ns / frame_ns * _PERMILLE, error_ns / frame_ns * _PERMILLE, _SOURCE, len(looked) // 2
            )
    return numbers


def _room_ns(looked: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[float | None, float]:
    """For how long a probe has kept frames from passing, and the standard error."""
    leads, lost = looked.reshape(2, -1)
    if not lost.any():
        return 0.0, float(leads.max() - leads.min()) / len(leads)
    edges = lost_between(looked)
    return (None, 0.0) if edges is None else (edges[1] - edges[0], edges[2] * float(np.sqrt(2)))
