"""Common parts of the documents of figures that replay flows in runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from loko.document import InputError, StrictModel
from loko_testbed.reproduce.figure import CAPTURED, Figure, LabFigure
from loko_testbed.reproduce.result import runs_of
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import IDENTIFIED, NamedSender, SenderChoice, option_of


class HostPair(StrictModel):
    """Who sends to whom."""

    source: str
    destination: str


class FlowEnds(StrictModel):
    """A flow of the experiment. Share 1 has rate r_1 and burst b_1 of equation 8, share 2 has r_2 and b_2."""

    source: str
    destination: str
    share: Literal[1, 2]

    @property
    def label(self) -> str:
        """The flow's direction, ``SOURCE->DESTINATION``."""
        return f"{self.source}->{self.destination}"


class QuickRuns(StrictModel):
    """The scale of a replay with ``--quick``."""

    runs: int = Field(ge=1)
    seconds: float = Field(gt=0)


class SendingFigure(LabFigure):
    """A figure of what became of packets in timed runs, sent as `simulation.senders` describes."""

    supported_options = CAPTURED
    kind: Literal["traffic"]
    shows: str
    runs: int = Field(ge=1)
    seconds: float = Field(gt=0)
    quick: QuickRuns
    senders: NamedSender = IDENTIFIED

    def scale(self, options: Options) -> tuple[int, float]:
        """Return the number of runs and the seconds of each under these options."""
        return options.scale(self.quick if options.quick else self)

    def shorter(self, options: Options) -> str:
        """See `Figure.shorter`."""
        runs, seconds = self.scale(options)
        if runs * seconds < self.runs * self.seconds:
            return f"this replay has {runs_of(runs, seconds)}, the paper's {runs_of(self.runs, self.seconds)}"
        return super().shorter(options)


class FlowFigure(SendingFigure):
    """A figure of what became of the packets of given flows in timed runs."""

    flows: list[FlowEnds] = Field(min_length=1)
    observed: list[str] = Field(min_length=1)
    """Labels of the flows whose packets are recorded."""

    @model_validator(mode="after")
    def _observed_are_flows(self) -> Self:
        labels = [flow.label for flow in self.flows]
        for label in self.observed:
            if label not in labels:
                raise ValueError(f"observed: there is no flow {label} (flows: {', '.join(labels)})")
        return self


def refuse_unsupported_senders(figures: Sequence[Figure], choice: SenderChoice, *, real_time: bool) -> None:
    """Raise `InputError` if a figure does not support the chosen sender options: none is silently ignored."""
    if not choice.chosen:
        return
    options = ", ".join(map(option_of, choice.chosen))
    for figure in figures:
        if not isinstance(figure, SendingFigure):
            others = " ".join(figure.figure for figure in figures if isinstance(figure, SendingFigure))
            raise InputError(
                f"{options}: {figure.name} does not send by this description; leave it out"
                + (f" and name those that do: {others}" if others else "")
            )
        choice.of(figure.senders)
    if real_time and choice.shaper_latency_ns is not None:
        raise InputError(f"{option_of('shaper_latency_ns')}: for --mode virtual only; leave it out")
