"""The document of a comparison: systems, labs, and the disturbances that the accepted flows meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from loko.admission.schemes import variant_named
from loko.document import StrictModel
from loko_testbed.reproduce.figure import IN_TASKS, Figure
from loko_testbed.reproduce.finding_checks import FindingClaim
from loko_testbed.reproduce.flow_figure import HostPair
from loko_testbed.simulation.worst_case.schemes import PRINTED


class _ComparedSystem(StrictModel):
    label: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9, -]*$")

    @property
    def key(self) -> str:
        """The label in the form used in names of findings."""
        return self.label.lower().replace(",", "").replace("-", "_").replace(" ", "_")


class AdmissionSystem(_ComparedSystem):
    """An admission control: flows conform to token buckets, and otherwise send at any time."""

    system: Literal["admission"]
    scheme: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    """Its name in `loko_testbed.simulation.worst_case.schemes`."""

    @property
    def ours(self) -> bool:
        """Whether it must keep its guarantees, as every scheme but the baselines."""
        return not variant_named(self.scheme.removesuffix(PRINTED)).is_baseline


class SlotSystem(_ComparedSystem):
    """TSSDN: each flow sends one frame per base period, in its slot."""

    system: Literal["slots"]
    exclusive: Literal["links", "switches"]
    """Resources that a slot occupies exclusively (`loko.schedule.timing.Exclusive`)."""

    @property
    def ours(self) -> bool:
        """Always true: this project computes the slots from its model of the switch."""
        return True


ComparedSystem = Annotated[AdmissionSystem | SlotSystem, Field(discriminator="system")]


class ComparisonLab(StrictModel):
    """A lab and the equal flows requested on it, for each pair of hosts in turn."""

    lab: str
    label: str = Field(pattern=r"^[a-z][a-z-]*$")
    pairs: list[HostPair] = Field(default=[])
    onward: int = Field(default=0, ge=0)
    """Instead of pairs: each host sends to the host this many places further in the lab's list."""
    requests: int = Field(ge=1)
    best_effort: HostPair
    """The hosts between which best-effort traffic flows, which was not requested."""

    @property
    def key(self) -> str:
        """The label in the form that begins names of findings."""
        return self.label.replace("-", "_")

    @model_validator(mode="after")
    def _one_way_to_say_who_sends(self) -> Self:
        if bool(self.pairs) == bool(self.onward):
            raise ValueError("give one of pairs and onward")
        return self


class ComparisonBudget(StrictModel):
    """The scale of the replays."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"rogue_times": "excess_factors"}

    seconds: float = Field(gt=0)
    drift_seconds: float = Field(gt=0)
    """Length of the replays with a drifting clock, and without for comparison: 100 ppm is 1 ms after 10 s."""
    rates_kbps: list[float] = Field(min_length=1)
    """Rates of flows for which accepted flows are counted only."""
    excess_factors: list[float] = Field(min_length=1)
    """Factors by which a misbehaving sender exceeds its rate, at random instants."""
    best_effort_kbps: list[float] = Field(min_length=1)

    def seconds_of(self, kind: str) -> float:
        """Return the length of replays with this kind of disturbance."""
        return self.drift_seconds if kind in {"none", "drift"} else self.seconds


class ComparisonFigure(Figure):
    """A comparison of what systems accept and promise, and whether they keep it."""

    supported_options = IN_TASKS
    renamed_keys: ClassVar[Mapping[str, str]] = {"contenders": "systems", "arenas": "labs"}

    kind: Literal["comparison"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    systems: list[ComparedSystem] = Field(min_length=1)
    labs: list[ComparisonLab] = Field(min_length=1)
    frame_bytes: int = Field(ge=64, le=1518)
    entries: int = Field(ge=1)
    """Entries of every flow table, including padding entries."""
    rate_kbps: float = Field(gt=0)
    """Rate of each flow that is replayed; its bucket holds one frame."""
    guard_us: float = Field(ge=0)
    """How early or late hosts may be for their slots."""
    drift_ppm: float = Field(gt=0)
    scale: ComparisonBudget
    quick: ComparisonBudget

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        for what, names in (
            ("systems", [compared.key for compared in self.systems]),
            ("labs", [comparison_lab.key for comparison_lab in self.labs]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{what}: two of them have the same label")
        return self
