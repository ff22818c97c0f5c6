"""The document of a map of allocations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loko.switch_model.scenario import TABLE_1_ENTRIES, TABLE_1_FRAME_BYTES
from loko_testbed.reproduce.figure import FixedScheme
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.simulation.options import Options


class AllocationMap(FindingFigure):
    """Delay, maximum burst and rate of a switch with Loko's tables, for each frame size and table size."""

    kind: Literal["allocation_map"]
    profile: str
    """Name of a device profile."""
    allocation: FixedScheme
    compared_with: FixedScheme | None = None
    """A second scheme; findings tell how the two differ."""
    split: float | None = Field(default=None, ge=0)
    """N of equation 8; findings tell which cells leave each flow of section 6.1 a burst of one frame."""
    packet_sizes_bytes: list[int] = Field(default=list(TABLE_1_FRAME_BYTES), min_length=2)
    entries: list[int] = Field(default=list(TABLE_1_ENTRIES), min_length=2)

    def shorter(self, _options: Options) -> str:
        """See `Figure.shorter`. The figure is always computed in full."""
        return ""
