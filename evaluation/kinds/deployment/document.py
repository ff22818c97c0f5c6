"""The document of a deployment: which systems, which flows, how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from evaluation.facts import Fact, fact
from evaluation.figure import AllocationName
from evaluation.finding_checks import AtMost, FindingClaim, Near
from evaluation.flow_figure import FlowFigure
from evaluation.result import Printed
from loko.document import Strict

SHARES: Final = {"lost": "lost", "late": "late", "in time": "in_time"}
"""Shares of a system's packets: their names, and how their findings are called behind the system's key."""


def share_finding(key: str, name: str) -> str:
    """The finding with one of the `SHARES` of the system with this key."""
    return f"{key}_{SHARES[name]}_percent"


def sent_finding(key: str) -> str:
    """The finding with the packets of the system with this key."""
    return f"{key}_sent_packets"


class _System(Strict):
    label: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9 ]*$")

    @property
    def key(self) -> str:
        """The label as names of findings begin with."""
        return self.label.lower().replace(" ", "_")

    @property
    def sent(self) -> str:
        """The finding with the packets that its observed flows sent."""
        return sent_finding(self.key)

    def share(self, name: str) -> str:
        """The finding with one of the `SHARES`."""
        return share_finding(self.key, name)


class SiloSystem(_System):
    """Silo: every flow asks for the same rate and burst (appendix A)."""

    system: Literal["silo"]
    rate_bps: float = Field(gt=0)
    burst_bytes: float = Field(gt=0)

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return "silo"


class QJumpSystem(_System):
    """QJump: every host sends as much as it may, one packet an epoch (section 2.3)."""

    system: Literal["qjump"]
    epsilon: Literal["paper", "consistent"] = "paper"

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return f"qjump-{self.epsilon}"


class LokoSystem(_System):
    """Loko: the flows share what is allocated by equation 8."""

    system: Literal["loko"]
    allocation: AllocationName
    split: float = Field(ge=0)
    """N of equation 8: flow 1 of each host pair gets N times the share of flow 2."""

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return self.allocation


System = Annotated[SiloSystem | QJumpSystem | LokoSystem, Field(discriminator="system")]


class Deployment(FlowFigure):
    """The delays of the observed flows under each system, beside what it guarantees."""

    kind: Literal["deployment"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    systems: list[System] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({system.key for system in self.systems}) < len(self.systems):
            raise ValueError("systems: two of them have the same label")
        return self

    def printed(self) -> list[Printed]:
        """As `Figure.printed`: shares of a system's packets.

        A claim on a share says what is printed of it. Its fact may be another share of the same system:
        figure 3a prints 7.6 % late, and that none is in time is the claim.
        """
        found: dict[str, Printed] = {}
        for claim in [] if self.ours else self.claims:
            stated = fact(self.paper, claim.fact)
            finding = getattr(claim.check, "finding", "")
            system = next((one for one in self.systems if finding in map(one.share, SHARES)), None)
            if system is None or stated.recomputed:
                continue
            of_fact = _share_of(stated)
            if of_fact is not None and system.share(of_fact) != finding:
                found[system.share(of_fact)] = _number(system.share(of_fact), stated.number, stated)
            if isinstance(claim.check, Near | AtMost):
                found[finding] = _number(finding, claim.check.expected(stated), stated)
            else:
                found[finding] = Printed(finding=finding, text=claim.paper, fact=stated.reference)
        return list(found.values())


def _share_of(stated: Fact) -> str | None:
    """Which of the `SHARES` a fact is, if it is one."""
    outcome = stated.reference.rpartition("/")[2].replace("-", " ")
    return outcome if outcome in SHARES and stated.unit == "%" else None


def _number(finding: str, percent: float, stated: Fact) -> Printed:
    return Printed(finding=finding, value=percent, text=f"{percent:g} %", fact=stated.reference)
