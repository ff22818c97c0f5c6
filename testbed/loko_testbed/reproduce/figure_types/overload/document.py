"""The document of a figure of overload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from loko.document import StrictModel
from loko.switch_model.scenario import ActionType, MatchType, PriorityOrder, UsedEntry
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.reproduce.figure_types.measured import MeasuredFigure


class QuickOverload(StrictModel):
    """The scale of a replay with ``--quick``."""

    rates: int = Field(ge=8)


class OverloadFigure(MeasuredFigure):
    """Output rate by input rate, with a curve for each number of entries."""

    kind: Literal["overload"]
    entries: Sequence[int] = Field(min_length=1)
    frame_bytes: int = Field(ge=64, le=1518)
    match: Literal["port", "tp-dst", "dl-dst", "masked-nw-dst", "five-tuple", "all"]
    priorities: Literal["increasing", "decreasing"]
    used_entry: Literal["first", "last"]
    lowest_mbps: float = Field(gt=0)
    highest_mbps: float = Field(gt=0)
    """The paper prints no values of the x axis."""
    rates: int = Field(ge=8)
    """Number of equidistant input rates from lowest to highest."""
    quick: QuickOverload

    def table(self, entries: int) -> TableCase:
        """Return the flow table of one curve."""
        return TableCase(
            entries=entries,
            match=MatchType(self.match),
            action=ActionType.OUTPUT,
            used_entry=UsedEntry(self.used_entry),
            priorities=PriorityOrder(self.priorities),
        )
