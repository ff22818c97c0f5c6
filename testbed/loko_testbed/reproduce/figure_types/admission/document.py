"""The document of an admission figure."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from loko.admission.schemes import SchemeName as Scheme
from loko.admission.schemes import SchemeVariant, variant_named
from loko.document import StrictModel
from loko_testbed.reproduce.figure import IN_TASKS, LabFigure
from loko_testbed.reproduce.figure_types.admission.ceilings import CEILINGS
from loko_testbed.reproduce.figure_types.admission.reservations import (
    PRINTED,
    RENAMED_RESERVATIONS,
    RESERVATIONS,
)
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.simulation.options import Options

SAME_DELAY: Final = "full-rate-same-delay"
"""Full-rate with the D of a switch without `buffer_factor`, which is no bound for the larger buffer."""


ROBUST: Final = "-robust"
"""Suffix of a scheme that plans for the ends of every range of the switches' profiles."""


def _known(name: str) -> str:
    if name != SAME_DELAY and name not in CEILINGS:
        variant_named(name.removesuffix(ROBUST))
    return name


def _reservation(name: str) -> str:
    if name in RENAMED_RESERVATIONS:
        raise ValueError(f"reservation '{name}' is called '{RENAMED_RESERVATIONS[name]}'")
    if name not in RESERVATIONS:
        raise ValueError(f"reservation '{name}' is unknown (allowed: {', '.join(RESERVATIONS)})")
    return name


FigureSchemeName = Annotated[str, AfterValidator(_known)]
"""A name from `loko.admission.schemes`, also with `ROBUST`; `SAME_DELAY`; or a ceiling.

`optimised` refers to the figure's requests.
"""
ReservationName = Annotated[str, AfterValidator(_reservation)]
"""One of `RESERVATIONS`."""

Hops = list[Annotated[int, Field(ge=0)]]
"""Path lengths in links between switches; 0: both ends are at the same switch."""


class SchemeSeries(NamedTuple):
    """A scheme under a reservation: one line of the picture."""

    scheme: str
    reservation: str

    @property
    def is_robust(self) -> bool:
        """Whether the scheme plans for the ends of every range."""
        return self.scheme.endswith(ROBUST)

    @property
    def choice(self) -> SchemeVariant:
        """The scheme without any suffix. Raises `InputError` for what is none of `loko.admission.schemes`."""
        return variant_named(self.scheme.removesuffix(ROBUST))


class QuickAdmission(StrictModel):
    """A small run of the same code."""

    runs: int = Field(ge=1)
    hops: Hops = Field(min_length=1)


class AdmissionFigure(FindingFigure, LabFigure):
    """Requests from random switches of a ring to the switch a number of hops further (section 6.2)."""

    supported_options = IN_TASKS
    kind: Literal["admission"]
    requests: int = Field(ge=1, le=50_000)
    """Requests of each run, made one after the other."""
    runs: int = Field(ge=1)
    """Runs of each path length."""
    hops: Hops = Field(min_length=1)
    rate_kbps: tuple[float, float] = Field(strict=False)
    """Lower and upper end of the uniform distribution of rates."""
    burst_bytes: float = Field(gt=0)
    buffer_factor: int = Field(default=1, ge=1)
    """Factor by which the switches' buffers are enlarged."""
    schemes: list[FigureSchemeName] = Field(min_length=1)
    """Schemes that are tried under each reservation; the others are compared with the first."""
    reservations: list[ReservationName] = Field(default=[PRINTED], min_length=1)
    """Reservations of time beside the flows."""
    further_schemes: list[FigureSchemeName] = Field(default=[])
    """Schemes that are tried under the first reservation only."""
    runs_of_others: int | None = Field(default=None, ge=1)
    """Runs of each scheme other than the first. Default: the same number."""
    shows: Literal["use", "accepted"]
    """The picture: how the first scheme uses the switches, or how many flows each scheme accepts."""
    printed_rate_use: str | None = None
    """Fact with the largest rate use of any switch, to be drawn beside the results."""
    quick: QuickAdmission

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 0 < self.rate_kbps[0] <= self.rate_kbps[1]:
            raise ValueError("rate_kbps: give the lower rate, above 0, then the higher one")
        for series in self.series:
            counts_frames = series.scheme in CEILINGS or (
                series.scheme != SAME_DELAY and series.choice.scheme == Scheme.PACKETS
            )
            if counts_frames and series.reservation == PRINTED:
                raise ValueError(
                    f"reservations: {series.scheme} is not in the paper, so nothing of it can be"
                    f" {PRINTED}; name another"
                )
        return self

    def shorter(self, options: Options) -> str:
        """See `Figure.shorter`."""
        if options.runs is not None and options.runs < self.runs:
            return f"this replay has {options.runs} runs of each path length, the paper's {self.runs}"
        return super().shorter(options)

    @property
    def series(self) -> tuple[SchemeSeries, ...]:
        """All series to compute, those under the first reservation first."""
        first, *_ = self.reservations
        return (
            *(SchemeSeries(scheme, first) for scheme in (*self.schemes, *self.further_schemes)),
            *(SchemeSeries(scheme, other) for other in self.reservations[1:] for scheme in self.schemes),
        )

    def label(self, series: SchemeSeries) -> str:
        """Return a series' name, unique in the figure: the scheme, and any reservation but the first."""
        if series.reservation == self.reservations[0]:
            return series.scheme
        return f"{series.scheme} {series.reservation}"
