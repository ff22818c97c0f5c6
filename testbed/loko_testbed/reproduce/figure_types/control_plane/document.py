"""The document of a figure of the control plane."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loko.document import StrictModel
from loko_testbed.reproduce.figure_types.measured import MeasuredFigure

What = Literal["echo-over-time", "messages", "flow-add", "flow-search"]


class QuickSamples(StrictModel):
    """The scale of a replay with ``--quick``."""

    samples: int = Field(ge=3)


class ControlPlane(MeasuredFigure):
    """Processing times of messages."""

    kind: Literal["control_plane"]
    what: What
    """``echo-over-time``: figure 6a; ``messages``: 6b; ``flow-add``: 7a; ``flow-search``: 7b."""
    samples: int = Field(ge=3)
    """Samples of each message and table."""
    quick: QuickSamples

    def count(self, *, quick: bool) -> int:
        """Return the number of samples to take."""
        return self.quick.samples if quick else self.samples
