"""An experiment: one figure or table of a paper, `labs/LAB/experiments/FIGURE.yml`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from evaluation.facts import Fact, fact
from loko.document import LABS, InputError, Strict, read

Mode = Literal["virtual", "live", "hardware"]
Scheme = Literal["full-rate", "fifth-rate"]
Statistic = Literal["min", "p1", "p25", "p50", "p75", "p99", "max"]
Column = Literal["R_mbps", "T_ms", "max_rate_mbps", "max_burst_kB", "max_delay_ms"]


class NoLoss(Strict):
    """No packet is lost at these x."""

    kind: Literal["no_loss"]
    at: list[float] = Field(min_length=1)


class NoLate(Strict):
    """No packet needs longer than guaranteed: at these x, or anywhere."""

    kind: Literal["no_late"]
    at: list[float] | None = None


class LossAt(Strict):
    """Packets are lost at this x."""

    kind: Literal["loss_at"]
    at: float


class LateAt(Strict):
    """Packets need longer than guaranteed at the fact's value of x."""

    kind: Literal["late_at"]


class LossStarts(Strict):
    """Packets are lost at the fact's value of x, and none at a smaller x."""

    kind: Literal["loss_starts"]


class LateStarts(Strict):
    """Packets are late at the fact's value of x, and none at a smaller x."""

    kind: Literal["late_starts"]


class LossNear(Strict):
    """The loss at this x is the fact's value in per cent, give or take some percentage points."""

    kind: Literal["loss_near"]
    at: float
    within_points: float = Field(gt=0)


class LossBelow(Strict):
    """The largest loss here is below the largest loss of another figure of the same run."""

    kind: Literal["loss_below"]
    figure: str


class DelayGrows(Strict):
    """From this x on the delay lies above all smaller x by more than the factor."""

    kind: Literal["delay_grows"]
    start: float
    statistic: Statistic
    factor: float = Field(gt=1)


class DelayRises(Strict):
    """The delay never falls by more than the slack from one x to the next, and is larger at the last."""

    kind: Literal["delay_rises"]
    statistic: Statistic
    slack: float = Field(ge=0, lt=1)


class Rounds(Strict):
    """A cell of the table rounds to what is printed."""

    kind: Literal["rounds"]
    row: Scheme
    column: Column
    decimals: int = Field(ge=0)


Check = Annotated[
    NoLoss
    | NoLate
    | LossAt
    | LateAt
    | LossStarts
    | LateStarts
    | LossNear
    | LossBelow
    | DelayGrows
    | DelayRises
    | Rounds,
    Field(discriminator="kind"),
]


class Claim(Strict):
    """What the paper states about the figure, and how to check it here."""

    claim: str
    fact: str
    """Reference into the paper's facts; they say what is printed and where."""
    paper: str
    """What the paper says, in the same terms as what is found here."""
    check: Check
    if_not: str = ""
    """Why it may fail to hold here, for the report."""


class Note(Strict):
    """Where the paper leaves something open or contradicts itself, and what is done about it."""

    fact: str
    text: str


class Axis(Strict):
    """What is varied."""

    name: str
    unit: str = ""
    multiplier: Literal["rate", "burst"]
    values: list[float] = Field(min_length=1)

    @model_validator(mode="after")
    def _rising(self) -> Axis:
        if self.values != sorted(set(self.values)) or self.values[0] <= 0:
            raise ValueError("values must be positive and rising")
        return self


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
    values: list[float] | None = None


class Figure(Strict):
    """What every figure and table has."""

    figure: str = Field(pattern=r"^[a-z0-9]+$")
    paper: str
    title: str
    lab: str
    modes: list[Mode] = Field(min_length=1)
    frame_bytes: int = Field(ge=64, le=1518)
    entries: int = Field(ge=1)
    notes: list[Note] = Field(default=[])
    claims: list[Claim] = Field(min_length=1)

    @property
    def name(self) -> str:
        """``PAPER/ID``."""
        return f"{self.paper}/{self.figure}"


class Table(Figure):
    """A table of what the controller computes. Nothing is sent."""

    kind: Literal["table"]
    schemes: list[Scheme] = Field(min_length=1)


class Sweep(Figure):
    """Delay and loss over one multiplier."""

    kind: Literal["sweep"]
    allocation: Scheme
    split: float = Field(ge=0)
    """N of equation 8: r_1 = N r_2, b_1 = N b_2."""
    x: Axis
    rate_multiplier: float = Field(default=1.0, gt=0)
    burst_multiplier: float = Field(default=1.0, gt=0)
    flows: list[FlowEnds] = Field(min_length=1)
    observed: list[str] = Field(min_length=1)
    """Labels of the flows whose packets are recorded."""
    guaranteed: list[float]
    """Values of x at which the paper's guarantee holds."""
    offered_load: float = Field(default=1.0, gt=0)
    """Mean rate of the generator over the shaper's. An assumption: the paper does not print it."""
    sender_queue_frames: int = Field(default=160, ge=1)
    """Frames that wait before a shaper. An assumption: a Linux UDP socket's default send buffer."""
    runs: int = Field(ge=1)
    seconds: float = Field(gt=0)
    quick: Quick

    @model_validator(mode="after")
    def _consistent(self) -> Sweep:
        labels = [flow.label for flow in self.flows]
        for label in self.observed:
            if label not in labels:
                raise ValueError(f"observed: there is no flow {label} (flows: {', '.join(labels)})")
        if len(set(labels)) != len(labels):
            raise ValueError("flows: two of them have the same ends")
        for values, where in ((self.guaranteed, "guaranteed"), (self.quick.values or [], "quick.values")):
            for value in values:
                if value not in self.x.values:
                    raise ValueError(f"{where}: {value} is not one of x.values")
        return self

    def multipliers(self, x: float) -> tuple[float, float]:
        """Rate and burst multiplier (m_r, m_b) of a point."""
        if self.x.multiplier == "rate":
            return x, self.burst_multiplier
        return self.rate_multiplier, x


Experiment = Table | Sweep


class _Kind(BaseModel):
    kind: Literal["table", "sweep"]


def load_experiment(path: Path) -> Experiment:
    """Read and check an experiment's file. Raises `InputError`, one line."""
    experiment: Experiment = read(path, Table) if read(path, _Kind).kind == "table" else read(path, Sweep)
    try:
        for claim in experiment.claims:
            check_reference(experiment, claim)
        for note in experiment.notes:
            fact(experiment.paper, note.fact)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return experiment


def check_reference(experiment: Experiment, claim: Claim) -> Fact:
    """The fact behind a claim. Raises `InputError` if it is missing or lacks the number its check needs."""
    found = fact(experiment.paper, claim.fact)
    if isinstance(claim.check, LossStarts | LateStarts | LateAt | LossNear | Rounds):
        _ = found.number
    if isinstance(claim.check, Rounds) != isinstance(experiment, Table):
        raise InputError(
            f"claim '{claim.claim}': check {claim.check.kind} does not fit kind {experiment.kind}"
        )
    return found


def experiments(labs: Path = LABS) -> dict[str, Experiment]:
    """Every experiment of every lab by its full name, tables first, then by name. Raises `InputError`."""
    found: dict[str, Experiment] = {}
    loaded = [load_experiment(path) for path in sorted(labs.glob("*/experiments/*.yml"))]
    for experiment in sorted(loaded, key=lambda one: (one.kind != "table", one.name)):
        if experiment.name in found:
            raise InputError(f"{labs}: two experiments are named {experiment.name}; rename one")
        found[experiment.name] = experiment
    return found


def select(names: Sequence[str], known: dict[str, Experiment]) -> list[Experiment]:
    """The experiments with these names (bare ones mean ``loko/``), all without any. Raises `InputError`."""
    chosen: list[Experiment] = []
    for name in names or known:
        full = name if "/" in name else f"loko/{name}"
        if full not in known:
            raise InputError(f"figure '{name}': unknown (known: {', '.join(known)})")
        if known[full] not in chosen:
            chosen.append(known[full])
    return chosen
