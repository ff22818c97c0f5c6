"""The document of a comparison of versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from evaluation.figure import FixedScheme
from evaluation.finding_checks import FindingClaim
from evaluation.flow_figure import FlowEnds, SendingFigure
from loko.scenario import TABLE_1_ENTRIES


class Versions(SendingFigure):
    """What flows are guaranteed with Loko's tables in either version, and what becomes of it.

    The guarantee is computed for every size of the tables; with `entries` of them the flows are sent.
    """

    kind: Literal["versions"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    allocation: FixedScheme
    split: float = Field(ge=0)
    """N of equation 8."""
    flows: list[FlowEnds] = Field(min_length=1)
    tables: list[int] = Field(default=list(TABLE_1_ENTRIES), min_length=2)
    """Entries in each switch's table."""
