"""The document of a duel: which systems, on which labs, and what is done to the flows that they accept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluation.figure import Figure
from evaluation.finding_checks import FindingClaim
from loko.document import Strict


class _Contender(Strict):
    label: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9, -]*$")

    @property
    def key(self) -> str:
        """The label as names of findings have it."""
        return self.label.lower().replace(",", "").replace("-", "_").replace(" ", "_")


class ByAdmission(_Contender):
    """An admission control: flows keep to token buckets, and send when they like."""

    system: Literal["admission"]
    scheme: str = Field(pattern=r"^[a-z-]+$")
    """As `loko.schemes.CHOICES` names it."""

    @property
    def ours(self) -> bool:
        """Whether it is one of this project's schemes, which must keep what they promise."""
        return not self.scheme.startswith(("silo", "qjump"))


class BySlots(_Contender):
    """TSSDN: each flow sends one frame a base period, in its slot."""

    system: Literal["slots"]
    exclusive: Literal["links", "switches"]
    """As `loko.schedule.timing.Exclusive` has them."""

    @property
    def ours(self) -> bool:
        """Whether its slots are this project's: they are computed from its model of the switch."""
        return True


Contender = Annotated[ByAdmission | BySlots, Field(discriminator="system")]


class Pair(Strict):
    """Who sends to whom."""

    source: str
    destination: str


class Arena(Strict):
    """A lab, and what is asked of it: equal flows, in turns for each pair."""

    lab: str
    label: str = Field(pattern=r"^[a-z][a-z-]*$")
    pairs: list[Pair] = Field(default=[])
    onward: int = Field(default=0, ge=0)
    """In the place of pairs: each host sends to the host so many places on in the lab's list of hosts."""
    requests: int = Field(ge=1)
    best_effort: Pair
    """Between whom the traffic passes for which nobody asked."""

    @property
    def key(self) -> str:
        """The label as names of findings begin with."""
        return self.label.replace("-", "_")

    @model_validator(mode="after")
    def _one_way_to_say_who_sends(self) -> Self:
        if bool(self.pairs) == bool(self.onward):
            raise ValueError("give one of pairs and onward")
        return self


class Effort(Strict):
    """How long, and how often, everything is replayed."""

    seconds: float = Field(gt=0)
    drift_seconds: float = Field(gt=0)
    """Of a clock that drifts, and of the same without, for comparison: 100 ppm are 1 ms after 10 s."""
    rates_kbps: list[float] = Field(min_length=1)
    """Of the flows, where it is only counted how many are accepted."""
    rogue_times: list[float] = Field(min_length=1)
    """How many times what it may does the sender send that breaks its contract, whenever it likes."""
    best_effort_kbps: list[float] = Field(min_length=1)

    def seconds_of(self, deed: str) -> float:
        """How long a scenario of this deed is replayed."""
        return self.drift_seconds if deed in {"none", "drift"} else self.seconds


class DuelFigure(Figure):
    """What each system accepts and promises, and what becomes of it."""

    kind: Literal["duel"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    contenders: list[Contender] = Field(min_length=1)
    arenas: list[Arena] = Field(min_length=1)
    frame_bytes: int = Field(ge=64, le=1518)
    entries: int = Field(ge=1)
    """Of every table, whoever uses them: fillers are among them."""
    rate_kbps: float = Field(gt=0)
    """Of each flow whose frames are replayed; its bucket holds one frame."""
    guard_us: float = Field(ge=0)
    """How far hosts that keep slots are off them, early or late."""
    drift_ppm: float = Field(gt=0)
    scale: Effort
    quick: Effort

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        for what, names in (
            ("contenders", [one.key for one in self.contenders]),
            ("arenas", [one.key for one in self.arenas]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{what}: two of them have the same label")
        return self
