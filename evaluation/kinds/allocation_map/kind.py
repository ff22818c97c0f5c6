"""The kind ``allocation_map``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import Kind
from evaluation.kinds.allocation_map.document import AllocationMap
from evaluation.kinds.allocation_map.production import compute
from evaluation.outcome import OneByOne

KIND: Final = Kind(
    document=AllocationMap, produce=OneByOne(compute), estimate_s=lambda _: {"virtual": 1.0, "live": 1.0}
)
