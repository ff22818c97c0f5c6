"""Produce figures of the control plane, each by its own measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.control_plane.document import ControlPlane, What
from evaluation.kinds.control_plane.echo import compute_echo
from evaluation.kinds.control_plane.estimate import estimate_s
from evaluation.kinds.control_plane.flow_adds import compute_adds
from evaluation.kinds.control_plane.flow_searches import compute_searches
from evaluation.kinds.control_plane.messages import compute_messages
from evaluation.kinds.measured import MEASURED
from evaluation.options import Options, Progress
from evaluation.outcome import OneByOne, Outcome

_COMPUTE: Final[dict[What, Callable[[ControlPlane, Options, Progress], tuple[Outcome, pa.Table]]]] = {
    "echo-over-time": compute_echo,
    "messages": compute_messages,
    "flow-add": compute_adds,
    "flow-search": compute_searches,
}


def compute(figure: ControlPlane, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Measure missing samples and evaluate them. Raises `InputError` or `RunError`."""
    return _COMPUTE[figure.what](figure, options, progress)


KIND: Final = Kind(
    document=ControlPlane, produce=OneByOne(compute, MEASURED), estimate_s=estimate_s, honours=IN_TASKS
)
