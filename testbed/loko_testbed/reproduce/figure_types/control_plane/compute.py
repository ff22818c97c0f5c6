"""Produce figures of the control plane, each by its own measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from loko_testbed.measure.bench.procedures.messages import (
    ECHO_MODIFIED,
    ECHO_UNMODIFIED,
    MeasuredMessage,
    flow_adds,
    flow_searches,
    messages,
)
from loko_testbed.reproduce.figure_types import IN_TASKS, FigureType
from loko_testbed.reproduce.figure_types.control_plane.document import ControlPlane, What
from loko_testbed.reproduce.figure_types.control_plane.echo import compute_echo
from loko_testbed.reproduce.figure_types.control_plane.flow_adds import compute_adds
from loko_testbed.reproduce.figure_types.control_plane.flow_searches import compute_searches
from loko_testbed.reproduce.figure_types.control_plane.messages import compute_messages
from loko_testbed.reproduce.figure_types.control_plane.parts import parts_of
from loko_testbed.reproduce.figure_types.measured import MEASURED
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.simulation.options import Options, Progress

_COMPUTE: Final[dict[What, Callable[[ControlPlane, Options, Progress], tuple[Outcome, pa.Table]]]] = {
    "echo-over-time": compute_echo,
    "messages": compute_messages,
    "flow-add": compute_adds,
    "flow-search": compute_searches,
}
_SAMPLE_S: Final = 0.0005
_LOADED_ENTRY_S: Final = 0.00004
_FRESH_BOARD_S: Final = 0.001
"""Times of a sample, a loaded entry and a fresh board in virtual time, measured on an x86-64 VM."""
_ECHOES_S: Final = 2.0
_OTHERS_S: Final = 3.0


def compute(figure: ControlPlane, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Measure missing samples and evaluate them. Raises `InputError` or `RunError`."""
    return _COMPUTE[figure.what](figure, options, progress)


def _estimate_s(figure: ControlPlane) -> dict[str, float]:
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


def _virtual_s(subject: MeasuredMessage, samples: int) -> float:
    loads = samples if subject.changes else 1
    return samples * _SAMPLE_S + loads * (_FRESH_BOARD_S + len(subject.table) * _LOADED_ENTRY_S)


FIGURE_TYPE: Final = FigureType(
    document=ControlPlane,
    compute=OneByOne(compute, MEASURED),
    estimate_s=_estimate_s,
    supported_options=IN_TASKS,
)
