"""The document of a figure of the integrated switch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loko.document import StrictModel
from loko_testbed.reproduce.figure_types.measured import MeasuredFigure


class QuickIntegratedSwitch(StrictModel):
    """The scale of a replay with ``--quick``."""

    samples: int = Field(ge=3)


class IntegratedSwitchFigure(MeasuredFigure):
    """Boxes of p_IS, the processing time of the integrated switch, by frame length."""

    kind: Literal["integrated_switch"]
    samples: int = Field(ge=3)
    """Frames of each length."""
    quick: QuickIntegratedSwitch
