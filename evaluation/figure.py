"""What every figure and table of a paper has, of whatever kind: its document, its claims, its notes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from evaluation.facts import Fact, fact
from evaluation.options import Options
from evaluation.result import ClaimKind, NoteResult, Printed, Series, TableResult
from loko.allocation import allocation_name
from loko.document import Strict
from loko.lab import Lab, load_lab

Mode = Literal["virtual", "live", "hardware"]
FixedScheme = Literal["full-rate", "fifth-rate"]
AllocationName = Annotated[str, AfterValidator(allocation_name)]
"""Any allocation of Loko's; `optimised` is for the mix of the figure's lab."""

Answer = tuple[str, bool]
"""What was found here, in the words of the claim, and whether the claim holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTestable:
    """What this run found cannot tell whether the claim holds."""

    why: str
    """In the words of a sentence after "not testable here:"."""
    here: str = "not measured"


Judgement = Answer | NotTestable

NOTHING_MEASURED: Answer = ("not measured", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a claim can be judged by: what the paper states, and what a replay found, whatever its kind."""

    fact: Fact
    series: Sequence[Series] = ()
    table: TableResult | None = None
    findings: Mapping[str, float] = field(default_factory=dict)
    planned: Sequence[float] = ()
    """Every x of the figure's document; a claim about all of them needs all of them."""
    others: Mapping[str, Sequence[Series]] = field(default_factory=dict)
    """Packets of the other figures of the same folder that were replayed on the same scale, by full name."""
    shorter: str = ""
    """In what the replay is smaller than the paper's; empty at the paper's scale."""


class Check(Strict):
    """How a claim is checked. Subclasses have a `kind`, which tells them apart in a document."""

    @property
    def needs_number(self) -> bool:
        """Whether the claim's fact must have a number."""
        return False

    @property
    def denied_by_one_case(self) -> bool:
        """Whether a single case denies the claim, so that a replay of any length may deny it.

        Other claims need what is rare, or all there is: only a replay at the paper's scale denies them.
        """
        return False

    @abstractmethod
    def tolerance(self, fact: Fact) -> str:
        """When the claim holds, in words; `fact` is the claim's."""

    @abstractmethod
    def find(self, evidence: Evidence) -> Judgement:
        """Judge."""

    def printed(self, _fact: Fact, _paper: str) -> Printed | None:
        """What a picture can mark of a claim with this check: by its fact, and what the paper says."""
        return None


class NumberCheck(Check):
    """A check against the number of the claim's fact."""

    @property
    def needs_number(self) -> bool:
        """As `Check.needs_number`."""
        return True


class Claim(Strict):
    """What the paper states about the figure, and how to check it here. Subclasses say by which checks."""

    claim: str
    fact: str
    """Reference into the paper's facts; they say what is printed and where."""
    paper: str
    """What the paper says, in the same terms as what is found here."""
    check: Check
    if_not: str = ""
    """Why it may fail to hold here, for the report."""
    kind: ClaimKind | None = None
    """Default: by the role of its fact (`evaluation.claims.kind_of`). It may only be lowered."""
    kind_because: str = ""
    """Why it is of this kind, for the report: such as where the number went."""
    full_scale: bool = False
    """It is about all of the paper's cases: a smaller replay can neither confirm nor deny it."""


class Note(Strict):
    """Where the paper leaves something open or contradicts itself, and what is done about it."""

    fact: str
    text: str


class Figure(Strict):
    """What every figure and table has. A subclass is the document of one kind (`evaluation.kinds`)."""

    kind: str
    figure: str = Field(pattern=r"^[a-z0-9]+$")
    paper: str = Field(pattern=r"^[a-z][a-z0-9]*$")
    title: str
    modes: list[Mode] = Field(min_length=1)
    as_printed: bool = False
    """Whether promises are made as in the paper: one clock for all, cables that take no time, and nothing
    reserved for what boards do by themselves, unless the figure names what is. Else they allow for what the
    profile's `tolerance` says (docs/model.md, section 14)."""
    ours: bool = False
    """The paper has no such figure: none of its claims is the paper's."""
    by_name_only: bool = False
    """Whether it is replayed only if it is named: a study of its own, which takes long."""
    notes: list[Note] = Field(default=[])
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
        """Every x at which the figure has points, if it has such."""
        return ()

    def printed(self) -> list[Printed]:
        """What the paper prints of it that its picture marks, by the facts of its claims."""
        return []

    def shorter(self, options: Options) -> str:
        """In what a replay under these options is smaller than the paper's; empty if in nothing."""
        return "--quick replays a part of it only" if options.quick else ""


class LabFigure(Figure):
    """A figure of a lab that carries frames of one length and has so many entries in each table."""

    lab: str
    frame_bytes: int = Field(ge=64, le=1518)
    entries: int = Field(ge=1)


def lab_of(figure: LabFigure) -> Lab:
    """The figure's lab, as printed if the figure is. Raises `InputError`."""
    lab = load_lab(figure.lab)
    return lab.as_printed() if figure.as_printed else lab


def notes_of(figure: Figure) -> list[NoteResult]:
    """The notes of the document with the places in the paper."""
    return [NoteResult(where=fact(figure.paper, note.fact).where, text=note.text) for note in figure.notes]
