"""The documents of figures of traffic; `shows` tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.switch_model.scenario import TABLE_1_ENTRIES
from loko_testbed.reproduce.facts import Fact, fact
from loko_testbed.reproduce.figure import AllocationName, Claim, FixedScheme
from loko_testbed.reproduce.figure_types.traffic.checks import SweepCheck
from loko_testbed.reproduce.finding_checks import ComparisonCheck, FindingCheck, FindingClaim, NearCheck
from loko_testbed.reproduce.flow_figure import FlowEnds, FlowFigure, QuickRuns, SendingFigure
from loko_testbed.reproduce.result import Printed

SMALLEST_BOX: Final = "smallest_box_packets"
"""The finding for the fewest packets of a sweep's points, of all observed flows together."""


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

    shows: Literal["sweep"]
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

    def for_replication(self) -> Self | None:
        """See `Figure.for_replication`: the values of x that decide the claims."""
        part = super().for_replication()
        if part is None:
            return None
        needed = {x for claim in part.claims for x in self._needed(claim)}
        values = [x for x in self.x.values if x in needed]
        return part.model_copy(update={"x": self.x.model_copy(update={"values": values})})

    def _needed(self, claim: SweepClaim) -> Sequence[float]:
        """Return the values of x that decide a claim. With the lowest rates the box is the smallest."""
        if claim.check.reads == [SMALLEST_BOX] and self.x.multiplier == "rate":
            return self.x.values[:1]
        return claim.check.needed(fact(self.paper, claim.fact), self.x.values)

    def printed(self) -> list[Printed]:
        """See `Figure.printed`. A fact of several claims is marked once, as in the first."""
        printed: dict[str, Printed] = {}
        for mark in self._marks():
            printed.setdefault(mark.fact, mark)
        return list(printed.values())

    def multipliers(self, x: float) -> tuple[float, float]:
        """Return rate and burst multiplier (m_r, m_b) at x."""
        if self.x.multiplier == "rate":
            return x, self.burst_multiplier
        return self.rate_multiplier, x if self.x.multiplier == "burst" else self.burst_multiplier

    def echoes_per_s(self, x: float) -> float:
        """Return the rate of EchoRequests to each switch at x (c_pps)."""
        return x if self.x.multiplier == "echoes" else 0.0


class PathsFigure(SendingFigure):
    """Every host requests one flow; the admitted flows send as much as they may."""

    shows: Literal["paths"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    scheme: Literal["full-rate", "fifth-rate", "packet-granular"]
    """The admission scheme."""
    hops: list[int] = Field(min_length=1)
    """Links between switches that flows cross: the numbers apply to successive flows in turn."""
    rate_bps: float = Field(gt=0)
    burst_frames: int = Field(default=1, ge=1)


SHARES: Final = {"lost": "lost", "late": "late", "in time": "in_time"}
"""Shares of a system's packets by name, with the part of the findings' names that follows the system's
key."""


def share_finding(key: str, name: str) -> str:
    """Return the name of the finding for one of a system's `SHARES`."""
    return f"{key}_{SHARES[name]}_percent"


def sent_finding(key: str) -> str:
    """Return the name of the finding for the number of a system's packets."""
    return f"{key}_sent_packets"


class _System(StrictModel):
    label: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9 ]*$")

    @property
    def key(self) -> str:
        """The label in the form that begins names of findings."""
        return self.label.lower().replace(" ", "_")

    @property
    def sent(self) -> str:
        """Name of the finding for the packets that the observed flows sent."""
        return sent_finding(self.key)

    def share(self, name: str) -> str:
        """Return the name of the finding for one of the `SHARES`."""
        return share_finding(self.key, name)


class SiloSystem(_System):
    """Silo: every flow requests the same rate and burst (appendix A)."""

    system: Literal["silo"]
    rate_bps: float = Field(gt=0)
    burst_bytes: float = Field(gt=0)

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return "silo"


class QJumpSystem(_System):
    """QJump: every host sends as much as it may, one packet per epoch (section 2.3)."""

    system: Literal["qjump"]
    epsilon: Literal["paper", "consistent"] = "paper"

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return f"qjump-{self.epsilon}"


class LokoSystem(_System):
    """Loko: the flows share the allocation by equation 8."""

    system: Literal["loko"]
    allocation: AllocationName
    split: float = Field(ge=0)
    """N of equation 8: flow 1 of each host pair gets N times the share of flow 2."""

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return self.allocation


DeployedSystem = Annotated[SiloSystem | QJumpSystem | LokoSystem, Field(discriminator="system")]


class Deployment(FlowFigure):
    """The delays of the observed flows under each system, compared with its guarantee."""

    shows: Literal["deployment"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    systems: list[DeployedSystem] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({system.key for system in self.systems}) < len(self.systems):
            raise ValueError("systems: two of them have the same label")
        return self

    def printed(self) -> list[Printed]:
        """See `Figure.printed`. Most values are shares of a system's packets.

        A claim on a share gives its printed value. The claim's fact may be another share of the same system,
        which is then marked as well: figure 3a prints 7.6 % late, and the claim is that none is in time.
        """
        shares = {system.share(name) for system in self.systems for name in SHARES}
        printed_by_name = {mark.finding: mark for mark in self._marks() if mark.finding not in shares}
        for claim in [] if self.ours else self.claims:
            stated = fact(self.paper, claim.fact)
            finding = getattr(claim.check, "finding", "")
            system = next((system for system in self.systems if finding in map(system.share, SHARES)), None)
            if system is None or stated.recomputed:
                continue
            of_fact = _share_of(stated)
            if of_fact is not None and system.share(of_fact) != finding:
                printed_by_name[system.share(of_fact)] = _number(system.share(of_fact), stated.number, stated)
            check = claim.check
            if isinstance(check, NearCheck | ComparisonCheck) and check.kind in {"near", "at_most"}:
                printed_by_name[finding] = _number(finding, check.expected(stated), stated)
            else:
                printed_by_name[finding] = Printed(finding=finding, text=claim.paper, fact=stated.reference)
        return list(printed_by_name.values())


def _share_of(stated: Fact) -> str | None:
    """Return which of the `SHARES` a fact states; None if it states none."""
    outcome = stated.reference.rpartition("/")[2].replace("-", " ")
    return outcome if outcome in SHARES and stated.unit == "%" else None


def _number(finding: str, percent: float, stated: Fact) -> Printed:
    return Printed(finding=finding, value=percent, text=f"{percent:g} %", fact=stated.reference)


class Versions(SendingFigure):
    """The guarantees of flows with Loko's tables in both versions of OpenFlow, tested by a replay.

    Guarantees are computed for all table sizes; flows are sent with tables of `entries` entries.
    """

    shows: Literal["versions"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    allocation: FixedScheme
    split: float = Field(ge=0)
    """N of equation 8."""
    flows: list[FlowEnds] = Field(min_length=1)
    tables: list[int] = Field(default=list(TABLE_1_ENTRIES), min_length=2)
    """Table sizes in entries for which guarantees are computed."""
