"""The document of a figure of flows by path length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from loko_testbed.reproduce.figure import SIMULATED
from loko_testbed.reproduce.finding_checks import FindingClaim
from loko_testbed.reproduce.flow_figure import SendingFigure


class PathsFigure(SendingFigure):
    """Every host requests one flow; the admitted flows send as much as they may."""

    supported_options = SIMULATED
    kind: Literal["paths"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    scheme: Literal["full-rate", "fifth-rate", "packet-granular"]
    """The admission scheme."""
    hops: list[int] = Field(min_length=1)
    """Links between switches that flows cross: the numbers apply to successive flows in turn."""
    rate_bps: float = Field(gt=0)
    burst_frames: int = Field(default=1, ge=1)
