"""The document of an admission figure."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from evaluation.figure import LabFigure
from evaluation.finding_checks import FindingFigure
from evaluation.kinds.admission.ceilings import CEILINGS
from evaluation.kinds.admission.reservations import PRINTED, RESERVATIONS
from evaluation.options import Options
from loko.document import Strict
from loko.schemes import SchemeName as Scheme
from loko.schemes import choice_named

SAME_DELAY: Final = "full-rate-same-delay"
"""Full-rate with D as it is without `buffer_factor`; then D is no bound of the larger buffer."""


def _known(name: str) -> str:
    if name != SAME_DELAY and name not in CEILINGS:
        choice_named(name)
    return name


def _reservation(name: str) -> str:
    if name not in RESERVATIONS:
        raise ValueError(f"reservation '{name}' is unknown (allowed: {', '.join(RESERVATIONS)})")
    return name


SchemeName = Annotated[str, AfterValidator(_known)]
"""As `loko.schemes` has them, `SAME_DELAY`, or a ceiling. `optimised` means: for the figure's requests."""
ReservationName = Annotated[str, AfterValidator(_reservation)]
"""One of `RESERVATIONS`."""

Hops = list[Annotated[int, Field(ge=0)]]
"""Path lengths in links between switches: 0 has both ends at one switch."""


class Series(NamedTuple):
    """What one line of the picture shows: a scheme under a reservation."""

    scheme: str
    reservation: str


class Quick(Strict):
    """A small run of the same code."""

    runs: int = Field(ge=1)
    hops: Hops = Field(min_length=1)


class AdmissionFigure(FindingFigure, LabFigure):
    """Requests from random switches of a ring to the one so many hops on, as section 6.2 has them."""

    kind: Literal["admission"]
    requests: int = Field(ge=1, le=50_000)
    """Of each run, one after the other."""
    runs: int = Field(ge=1)
    """For each path length."""
    hops: Hops = Field(min_length=1)
    rate_kbps: tuple[float, float] = Field(strict=False)
    """Rates are uniform between these."""
    burst_bytes: float = Field(gt=0)
    buffer_factor: int = Field(default=1, ge=1)
    """The switch is given this many times its buffer."""
    schemes: list[SchemeName] = Field(min_length=1)
    """Under each reservation; the first is what the others are compared with."""
    reservations: list[ReservationName] = Field(default=[PRINTED], min_length=1)
    """What is reserved for beside the flows."""
    further_schemes: list[SchemeName] = Field(default=[])
    """Only under the first reservation."""
    runs_of_others: int | None = Field(default=None, ge=1)
    """Runs of each scheme but the first. Default: as many."""
    shows: Literal["use", "accepted"]
    """What is drawn: the use of the switches by the first scheme, or the flows that each scheme accepts."""
    printed_rate_use: str | None = None
    """The fact that says how much of its rate any switch gives away at most: drawn beside what is found."""
    quick: Quick

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 0 < self.rate_kbps[0] <= self.rate_kbps[1]:
            raise ValueError("rate_kbps: give the lower rate, above 0, then the higher one")
        for series in self.series:
            counts_frames = series.scheme in CEILINGS or (
                series.scheme != SAME_DELAY and choice_named(series.scheme).scheme is Scheme.PACKETS
            )
            if counts_frames and series.reservation == PRINTED:
                raise ValueError(
                    f"reservations: {series.scheme} is not in the paper, so nothing of it can be"
                    f" {PRINTED}; name another"
                )
        return self

    def shorter(self, options: Options) -> str:
        """As `Figure.shorter`."""
        if options.runs is not None and options.runs < self.runs:
            return f"this replay has {options.runs} runs of each path length, the paper's {self.runs}"
        return super().shorter(options)

    @property
    def series(self) -> tuple[Series, ...]:
        """All that is computed, the first reservation first."""
        first, *_ = self.reservations
        return (
            *(Series(scheme, first) for scheme in (*self.schemes, *self.further_schemes)),
            *(Series(scheme, other) for other in self.reservations[1:] for scheme in self.schemes),
        )

    def label(self, series: Series) -> str:
        """Its name, unique in the figure: a scheme under the first reservation needs no more."""
        if series.reservation == self.reservations[0]:
            return series.scheme
        return f"{series.scheme} {series.reservation}"
