"""The kind ``sweep``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import Kind
from evaluation.kinds.sweep.document import Sweep
from evaluation.kinds.sweep.estimate import estimate_s
from evaluation.kinds.sweep.production import produce

KIND: Final = Kind(document=Sweep, produce=produce, estimate_s=estimate_s)
