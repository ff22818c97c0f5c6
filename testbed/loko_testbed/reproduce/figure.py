"""Common base of all figure types: document, claims and notes of a figure or table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from loko.document import StrictModel
from loko.plug_in import PlugInGroup
from loko.switch_model.allocation import allocation_name
from loko.topology.lab import Lab, load_lab
from loko_testbed.reproduce.facts import Fact, fact
from loko_testbed.reproduce.result import (
    ClaimKind,
    EvidenceLevel,
    NoteResult,
    Printed,
    Series,
    TableResult,
)
from loko_testbed.simulation.options import Choice, Options

Mode = Literal["virtual", "live", "hardware"]
FixedScheme = Literal["full-rate", "fifth-rate"]
AllocationName = Annotated[str, AfterValidator(allocation_name)]
"""Name of one of Loko's allocations; `optimised` is optimised for the traffic mix of the figure's lab."""

ClaimOutcome = tuple[str, bool]
"""The replay's result, in the terms of the claim, and whether the claim holds."""


IN_TASKS: Final = frozenset({"executor"})
"""`Figure.supported_options` of figures that are computed in independent tasks."""
SIMULATED: Final = IN_TASKS | {"capacity_factor"}
"""`Figure.supported_options` of figures whose packets pass through boards of a lab."""
CAPTURED: Final = SIMULATED | {"pcap"}
"""`Figure.supported_options` of figures whose runs are those of points in a lab."""

FIGURE_TYPES: Final = PlugInGroup("loko_testbed.figure_types", "figure types")
"""Other packages' figure types."""

NOT_MEASURED: Final = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTestable:
    """The judgement that a replay cannot tell whether the claim holds."""

    why: str
    """The reason, phrased to follow "not testable here:"."""
    here: str = NOT_MEASURED


Judgement = ClaimOutcome | NotTestable

NOTHING_MEASURED: Final[ClaimOutcome] = (NOT_MEASURED, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that a claim may be judged by: the paper's statement and the results of a replay."""

    fact: Fact
    series: Sequence[Series] = ()
    table: TableResult | None = None
    findings: Mapping[str, float] = field(default_factory=dict)
    planned: Sequence[float] = ()
    """Every x of the figure's document; a claim about all x can be confirmed only if all were replayed."""
    others: Mapping[str, Sequence[Series]] = field(default_factory=dict)
    """Series of the folder's other figures that were replayed on the same scale, by full name."""
    shorter: str = ""
    """How the replay is smaller than the paper's, as text; empty at the paper's scale."""


class Check(StrictModel):
    """How a claim is checked. Subclasses have a `kind`, which tells them apart in a document."""

    holds_if: ClassVar[str] = ""
    """When a claim holds, in words: a format with the fields ``check`` and ``fact``."""
    ordinal: ClassVar[bool] = False
    """Whether it checks a bound on one side, an order or a trend, rather than a number."""

    @property
    def needs_number(self) -> bool:
        """Whether the claim's fact must have a number."""
        return False

    @property
    def denied_by_one_case(self) -> bool:
        """Whether a single counterexample denies the claim, so that a replay of any length can test it.

        Other claims depend on rare events or on all the data: only a replay at the paper's scale tests them.
        """
        return False

    @property
    def level(self) -> EvidenceLevel:
        """The level of evidence of its claims, unless their document states another."""
        return "ordinal" if self.ordinal else "quantitative"

    @property
    def compared_with(self) -> str:
        """The full name of the other figure of the folder that it compares with; empty if there is none."""
        return ""

    @property
    def reads(self) -> Sequence[str]:
        """The names of the findings that decide the claim; empty if none does."""
        return ()

    def tolerance(self, fact: Fact) -> str:
        """Return in words when a claim on this fact holds."""
        return self.holds_if.format(check=self, fact=fact)

    def needed(self, _fact: Fact, planned: Sequence[float]) -> Sequence[float]:
        """Return those of a figure's x that decide the claim."""
        return planned

    @abstractmethod
    def find(self, evidence: Evidence) -> Judgement:
        """Judge the claim by this evidence."""

    def deviation(self, _evidence: Evidence) -> float | None:
        """Return by which share of the paper's number the replay's differs; None without such numbers."""
        return None

    def printed(self, _fact: Fact, _paper: str) -> Printed | None:
        """Return what a picture can mark for a claim with this fact and paper's wording; None if nothing."""
        return None


class NumberCheck(Check):
    """A check that compares with the number of the claim's fact."""

    @property
    def needs_number(self) -> bool:
        """See `Check.needs_number`."""
        return True


class Experiment(StrictModel):
    """An alternative set-up that tests the reason why a claim fails: the claim is judged with it as well.

    `loko_testbed.reproduce.reasons` replays it, in virtual time; tests hold its outcome.
    """

    using: str
    """The set-up in words that follow "with"."""
    replaces: dict[str, JsonValue] = Field(default={})
    """Values of the figure's document by their path, such as ``hosts.mean_us`` or ``ports.0.slices``."""
    profile: dict[str, int] = Field(default={})
    """Numbers of the profile of the figure's switches by their path, such as ``cpu.timers.cost_ps``."""
    options: dict[str, Choice] = Field(default={})
    """Options of the command line by name; default: seed 1 at the paper's scale."""
    finding: str = ""
    """The figure's own finding for the set-up, if it has one; judged in place of the check's."""
    holds: bool
    """Whether the claim holds with it: the reason is confirmed if so, and refuted if not."""

    @model_validator(mode="after")
    def _differs(self) -> Self:
        if not (self.replaces or self.profile or self.options or self.finding):
            raise ValueError("it has to change something; give replaces, profile, options or finding")
        return self


NOT_KNOWN: Final = "not known"
"""How the reason of a claim begins that fails for no reason that was found."""


class Claim(StrictModel):
    """A statement of the paper about the figure, and how to check it. Subclasses define which checks."""

    claim: str
    fact: str
    """Reference to the fact that says what the paper prints and where."""
    paper: str
    """The statement of the paper (or the figure's `reference`), in words that compare with the replay's."""
    check: Check
    if_not: str = ""
    """For the report: why the claim may fail here."""
    tested_by: list[Experiment] = Field(default=[])
    """Experiments that test `if_not`."""
    contradicts: str = ""
    """Reference of the fact, of the same paper, that the claim's own fact contradicts."""
    if_missing: str = ""
    """For the report: why what it needs may be missing here."""
    kind: ClaimKind | None = None
    """Default: by the role of its fact (`loko_testbed.reproduce.claims.kind_of`). A document may only lower
    it."""
    kind_because: str = ""
    """For the report: why the claim is of this kind, such as what the number was used for."""
    level: EvidenceLevel | None = None
    """Default: that of the figure, or else of the check."""
    circular: bool = False
    """Whether it was an input or follows from one (`kind_because` says which), so that holding says nothing.
    So is every claim of level ``profile``."""
    full_scale: bool = False
    """Whether the claim is about all of the paper's cases, so that a smaller replay cannot confirm it."""
    seeds: int = Field(default=1, ge=1, le=1000)
    """Seeds at which the claim is judged in virtual time: the figure's and those that follow. More than one
    where the verdict depends on chance (`loko_testbed.reproduce.seed_share`)."""


class FigureNote(StrictModel):
    """A point that the paper leaves open or contradicts itself on, and how this project deals with it."""

    fact: str
    text: str


class Figure(StrictModel):
    """The document of a figure or table. Each figure type (`figure_types`) has its subclasses."""

    supported_options: ClassVar[frozenset[str]] = frozenset()
    """The options among `loko_testbed.reproduce.figure_types.OPTIONAL_OPTIONS` that it supports."""
    kind: str
    figure: str = Field(pattern=r"^[a-z0-9]+$")
    paper: str = Field(pattern=r"^[a-z][a-z0-9]*$")
    title: str
    modes: list[Mode] = Field(min_length=1)
    as_printed: bool = False
    """Whether guarantees are computed as in the paper: one clock for all, cables without delay, and nothing
    reserved for what boards do by themselves, unless the figure says otherwise. If false, guarantees allow
    for the profile's `tolerance` (docs/model.md, section 14)."""
    ours: bool = False
    """Whether the figure is this project's own: none of its claims is the paper's."""
    reference: str = "paper"
    """The reference of the claims, in a word, if it is not the paper."""
    level: EvidenceLevel | None = None
    """The level of evidence of those claims that do not state theirs."""
    by_name_only: str = ""
    """Why the figure is replayed only if it is named, such as "a search of ten minutes"; empty if it is among
    those that are replayed by default."""
    notes: list[FigureNote] = Field(default=[])
    claims: Sequence[Claim] = Field(min_length=1)

    @property
    def name(self) -> str:
        """``PAPER/ID``."""
        return f"{self.paper}/{self.figure}"

    @property
    def needs_root(self) -> bool:
        """Whether it needs root in real time: its frames pass namespaces or raw sockets."""
        return True

    @property
    def planned(self) -> Sequence[float]:
        """Every x at which the figure has points; empty for figures without points."""
        return ()

    def for_replication(self) -> Self | None:
        """Return the part of the figure that its claims on several seeds need; None if there are none."""
        claims = [claim for claim in self.claims if claim.seeds > 1]
        return self.model_copy(update={"claims": claims}) if claims else None

    def printed(self) -> list[Printed]:
        """Return the paper's numbers, taken from the facts of the claims, that pictures mark."""
        return list({(mark.finding, mark.value): mark for mark in self._marks()}.values())

    def _marks(self) -> Iterator[Printed]:
        """Yield what pictures can mark for each claim, except for numbers that the paper does not print."""
        for claim in [] if self.ours else self.claims:
            stated = fact(self.paper, claim.fact)
            mark = claim.check.printed(stated, claim.paper)
            if mark is not None and not stated.recomputed:
                yield mark

    def shorter(self, options: Options) -> str:
        """Return in words how a replay under these options is smaller than the paper's; empty if not."""
        return "--quick replays a part of it only" if options.quick else ""


class LabFigure(Figure):
    """A figure of a lab with frames of one length and the same number of entries in every flow table."""

    lab: str
    frame_bytes: int = Field(ge=64, le=1518)
    entries: int = Field(ge=1)


def lab_of(figure: LabFigure) -> Lab:
    """Load the figure's lab, as the paper prints it if the figure is `as_printed`. Raises `InputError`."""
    lab = load_lab(figure.lab)
    return lab.as_printed() if figure.as_printed else lab


def notes_of(figure: Figure) -> list[NoteResult]:
    """Return the notes of the figure's document with the places in the paper that they refer to."""
    return [NoteResult(where=fact(figure.paper, note.fact).where, text=note.text) for note in figure.notes]
