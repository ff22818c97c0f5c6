"""The kind ``control_plane``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.control_plane.document import ControlPlane
from evaluation.kinds.control_plane.estimate import estimate_s
from evaluation.kinds.control_plane.production import compute
from evaluation.kinds.measured import MEASURED
from evaluation.outcome import OneByOne

KIND: Final = Kind(
    document=ControlPlane, produce=OneByOne(compute, MEASURED), estimate_s=estimate_s, honours=IN_TASKS
)
