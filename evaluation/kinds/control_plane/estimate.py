"""Estimate how long figures of the control plane take, from rates measured once."""

from __future__ import annotations

from typing import Final

from evaluation.bench.procedures.messages import (
    ECHO_SERIES_NS,
    ENTRIES,
    Subject,
    flow_adds,
    flow_searches,
    messages,
)
from evaluation.kinds.control_plane.document import ControlPlane

_SAMPLE_S: Final = 0.0005
_LOADED_ENTRY_S: Final = 0.00004
_FRESH_BOARD_S: Final = 0.001
"""Times of a sample, a loaded entry and a fresh board in virtual time, measured on an x86-64 VM."""
_LIVE_SAMPLE_S: Final = 0.12
_LIVE_RESTART_S: Final = 3.5
"""In real time: instruments wait for late messages; a board connects 2 s after its start."""
_OTHERS_S: Final = 3.0


def estimate_s(figure: ControlPlane) -> dict[str, float]:
    """Estimate the time in seconds by mode, if no samples are kept yet."""
    if figure.what == "echo-over-time":
        virtual, live = 2.0, 2 * (ECHO_SERIES_NS / 1e9 + _LIVE_RESTART_S)
    else:
        subjects = list(
            {"messages": messages, "flow-add": flow_adds, "flow-search": flow_searches}[figure.what]()
        )
        virtual = sum(_virtual_s(subject, figure.samples) for subject in subjects)
        live = sum(_live_s(subject, figure.samples) for subject in subjects)
    times = {"virtual": _OTHERS_S + virtual, "live": _OTHERS_S + live}
    return {mode: times[mode] for mode in figure.modes if mode in times}


def _virtual_s(subject: Subject, samples: int) -> float:
    loads = samples if subject.changes else 1
    return samples * _SAMPLE_S + loads * (_FRESH_BOARD_S + len(subject.table) * _LOADED_ENTRY_S)


def _live_s(subject: Subject, samples: int) -> float:
    loads = samples if subject.changes else 1
    return samples * _LIVE_SAMPLE_S + loads * (_LIVE_RESTART_S + len(subject.table) / ENTRIES[-1])
