"""The document of a figure of this type: what `experiments/*.yml` may contain."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loko_testbed.reproduce.finding_checks import FindingFigure


class TableWalk(FindingFigure):
    """The worst throughput of a device by the number of its flow entries, for each frame size."""

    kind: Literal["table_walk"]
    profile: str
    """Name of a device profile, or its path."""
    entries: list[int] = Field(min_length=2)
    packet_sizes_bytes: list[int] = Field(min_length=1)
