"""What the documents of figures have in common whose flows are replayed in runs."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from evaluation.figure import LabFigure
from evaluation.options import Options
from evaluation.result import runs_of
from loko.document import Strict


class FlowEnds(Strict):
    """A flow of the experiment. `share` 1 gets r_1 and b_1 of equation 8, share 2 gets r_2 and b_2."""

    source: str
    destination: str
    share: Literal[1, 2]

    @property
    def label(self) -> str:
        """The direction, as the figures name it."""
        return f"{self.source}->{self.destination}"


class Quick(Strict):
    """The small run of ``--quick``."""

    runs: int = Field(ge=1)
    seconds: float = Field(gt=0)


class ReplayedFigure(LabFigure):
    """A figure of what became of packets in so many runs of so many seconds."""

    runs: int = Field(ge=1)
    seconds: float = Field(gt=0)
    quick: Quick

    def scale(self, options: Options) -> tuple[int, float]:
        """Runs and their seconds under these options."""
        default = self.quick if options.quick else self
        runs = options.runs if options.runs is not None else default.runs
        return runs, options.seconds if options.seconds is not None else default.seconds

    def shorter(self, options: Options) -> str:
        """As `Figure.shorter`."""
        runs, seconds = self.scale(options)
        if runs * seconds < self.runs * self.seconds:
            return f"this replay has {runs_of(runs, seconds)}, the paper's {runs_of(self.runs, self.seconds)}"
        return super().shorter(options)


class FlowFigure(ReplayedFigure):
    """A figure of what became of flows' packets in runs of some seconds."""

    flows: list[FlowEnds] = Field(min_length=1)
    observed: list[str] = Field(min_length=1)
    """Labels of the flows whose packets are recorded."""
    sender_queue_frames: int = Field(default=160, ge=1)
    """Frames that wait before a shaper. An assumption: a Linux UDP socket's default send buffer."""

    @model_validator(mode="after")
    def _observed_are_flows(self) -> Self:
        labels = [flow.label for flow in self.flows]
        for label in self.observed:
            if label not in labels:
                raise ValueError(f"observed: there is no flow {label} (flows: {', '.join(labels)})")
        return self
