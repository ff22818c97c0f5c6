"""The document of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure import SIMULATED, AllocationName, Claim
from loko_testbed.reproduce.figure_types.sweep.checks import SweepCheck
from loko_testbed.reproduce.finding_checks import FindingCheck
from loko_testbed.reproduce.flow_figure import FlowFigure, QuickRuns
from loko_testbed.reproduce.result import Printed


class SweepClaim(Claim):
    """A claim on the points of a sweep."""

    check: Annotated[SweepCheck | FindingCheck, Field(discriminator="kind")]


class Axis(StrictModel):
    """The quantity that is varied."""

    name: str
    unit: str = ""
    multiplier: Literal["rate", "burst", "echoes"]
    """The scaled quantity: m_r, m_b, or c_pps, the rate of EchoRequests to each switch (section 6.1.4)."""
    values: list[float] = Field(min_length=1)

    @model_validator(mode="after")
    def _rising(self) -> Axis:
        if self.values != sorted(set(self.values)) or self.values[0] < 0:
            raise ValueError("values must be positive and rising")
        if self.values[0] == 0 and self.multiplier != "echoes":
            raise ValueError("values: a multiplier of 0 sends nothing")
        return self


class SweepReservation(StrictModel):
    """Control traffic for which admission reserves capacity."""

    echoes_per_s: float = Field(gt=0)
    charge: Literal["paper", "measured"]
    """``paper``: 66 bytes per message at the switch's rate (section 6.1). ``measured``: the CPU time of the
    messages and of the board's own interruptions (docs/model.md, section 8)."""


class QuickSweep(QuickRuns):
    """The scale of a replay with ``--quick``, optionally with fewer values of x."""

    values: list[float] | None = None


class Sweep(FlowFigure):
    """Delay and loss by one multiplier."""

    supported_options = SIMULATED
    kind: Literal["sweep"]
    claims: Sequence[SweepClaim] = Field(min_length=1)
    allocation: AllocationName
    split: float = Field(ge=0)
    """N of equation 8: r_1 = N r_2, b_1 = N b_2."""
    x: Axis
    reserved: SweepReservation | None = None
    rate_multiplier: float = Field(default=1.0, gt=0)
    burst_multiplier: float = Field(default=1.0, gt=0)
    guaranteed: list[float]
    """Values of x at which the paper's guarantee holds."""
    quick: QuickSweep

    @model_validator(mode="after")
    def _consistent(self) -> Sweep:
        labels = [flow.label for flow in self.flows]
        if len(set(labels)) != len(labels):
            raise ValueError("flows: two of them have the same ends")
        for values, where in ((self.guaranteed, "guaranteed"), (self.quick.values or [], "quick.values")):
            for value in values:
                if value not in self.x.values:
                    raise ValueError(f"{where}: {value} is not one of x.values")
        return self

    @property
    def planned(self) -> Sequence[float]:
        """See `Figure.planned`."""
        return self.x.values

    def printed(self) -> list[Printed]:
        """See `Figure.printed`. A fact of several claims is marked once, as in the first."""
        printed: dict[str, Printed] = {}
        for claim in [] if self.ours else self.claims:
            stated = fact(self.paper, claim.fact)
            mark = claim.check.printed(stated, claim.paper)
            if mark is not None and not stated.recomputed:
                printed.setdefault(claim.fact, mark)
        return list(printed.values())

    def multipliers(self, x: float) -> tuple[float, float]:
        """Return rate and burst multiplier (m_r, m_b) at x."""
        if self.x.multiplier == "rate":
            return x, self.burst_multiplier
        return self.rate_multiplier, x if self.x.multiplier == "burst" else self.burst_multiplier

    def echoes_per_s(self, x: float) -> float:
        """Return the rate of EchoRequests to each switch at x (c_pps)."""
        return x if self.x.multiplier == "echoes" else 0.0
