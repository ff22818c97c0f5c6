"""Estimate how long figures of the control plane take."""

from __future__ import annotations

from typing import Final

from evaluation.bench.procedures.messages import (
    ECHO_MODIFIED,
    ECHO_UNMODIFIED,
    Subject,
    flow_adds,
    flow_searches,
    messages,
)
from evaluation.kinds.control_plane.document import ControlPlane
from evaluation.kinds.control_plane.parts import parts_of

_SAMPLE_S: Final = 0.0005
_LOADED_ENTRY_S: Final = 0.00004
_FRESH_BOARD_S: Final = 0.001
"""Times of a sample, a loaded entry and a fresh board in virtual time, measured on an x86-64 VM."""
_ECHOES_S: Final = 2.0
_OTHERS_S: Final = 3.0


def estimate_s(figure: ControlPlane) -> dict[str, float]:
    """Estimate the time in seconds by mode, if no samples are kept yet."""
    if figure.what == "echo-over-time":
        virtual, keys = _ECHOES_S, [ECHO_UNMODIFIED, ECHO_MODIFIED]
    else:
        subjects = list(
            {"messages": messages, "flow-add": flow_adds, "flow-search": flow_searches}[figure.what]()
        )
        virtual = sum(_virtual_s(subject, figure.samples) for subject in subjects)
        keys = [subject.key for subject in subjects]
    live = sum(part.expected_s for part in parts_of(keys, figure.samples))
    times = {"virtual": _OTHERS_S + virtual, "live": _OTHERS_S + live}
    return {mode: times[mode] for mode in figure.modes if mode in times}


def _virtual_s(subject: Subject, samples: int) -> float:
    loads = samples if subject.changes else 1
    return samples * _SAMPLE_S + loads * (_FRESH_BOARD_S + len(subject.table) * _LOADED_ENTRY_S)
