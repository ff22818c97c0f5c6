"""The document of a figure of the integrated switch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluation.kinds.measured import MeasuredFigure
from loko.document import Strict


class Quick(Strict):
    """The small run of ``--quick``."""

    samples: int = Field(ge=3)


class IntegratedSwitch(MeasuredFigure):
    """Boxes of p_IS over the length of frames."""

    kind: Literal["integrated_switch"]
    samples: int = Field(ge=3)
    """Frames of each length."""
    quick: Quick
