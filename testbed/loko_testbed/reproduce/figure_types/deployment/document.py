"""The document of a deployment: systems, flows and runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko_testbed.reproduce.facts import Fact, fact
from loko_testbed.reproduce.figure import SIMULATED, AllocationName
from loko_testbed.reproduce.finding_checks import AtMostCheck, FindingClaim, NearCheck
from loko_testbed.reproduce.flow_figure import FlowFigure
from loko_testbed.reproduce.result import Printed

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

    supported_options = SIMULATED
    kind: Literal["deployment"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    systems: list[DeployedSystem] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({system.key for system in self.systems}) < len(self.systems):
            raise ValueError("systems: two of them have the same label")
        return self

    def printed(self) -> list[Printed]:
        """See `Figure.printed`. The values are shares of a system's packets.

        A claim on a share gives its printed value. The claim's fact may be another share of the same system,
        which is then marked as well: figure 3a prints 7.6 % late, and the claim is that none is in time.
        """
        printed_by_name: dict[str, Printed] = {}
        for claim in [] if self.ours else self.claims:
            stated = fact(self.paper, claim.fact)
            finding = getattr(claim.check, "finding", "")
            system = next((system for system in self.systems if finding in map(system.share, SHARES)), None)
            if system is None or stated.recomputed:
                continue
            of_fact = _share_of(stated)
            if of_fact is not None and system.share(of_fact) != finding:
                printed_by_name[system.share(of_fact)] = _number(system.share(of_fact), stated.number, stated)
            if isinstance(claim.check, NearCheck | AtMostCheck):
                printed_by_name[finding] = _number(finding, claim.check.expected(stated), stated)
            else:
                printed_by_name[finding] = Printed(finding=finding, text=claim.paper, fact=stated.reference)
        return list(printed_by_name.values())


def _share_of(stated: Fact) -> str | None:
    """Return which of the `SHARES` a fact states; None if it states none."""
    outcome = stated.reference.rpartition("/")[2].replace("-", " ")
    return outcome if outcome in SHARES and stated.unit == "%" else None


def _number(finding: str, percent: float, stated: Fact) -> Printed:
    return Printed(finding=finding, value=percent, text=f"{percent:g} %", fact=stated.reference)
