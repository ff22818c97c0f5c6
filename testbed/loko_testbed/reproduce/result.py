"""A figure's result, written as stable JSON beside the records and read back from it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    computed_field,
    model_validator,
)

from loko.document import InputError
from loko.topology.lab import Backend
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.facts import papers
from loko_testbed.reproduce.folder import figure_file, result_files, short_name
from loko_testbed.simulation.options import OS_KEN, Builder, arguments_of
from loko_testbed.tasks.files import write_atomically

ClaimKind = Literal["predicted", "calibrated", "ours"]
"""``predicted``: nothing here was fitted to it. ``calibrated``: the paper measured it on a device alone, so
that profile or model may derive from it. ``ours``: recomputed, or our own requirement; not the paper's."""

EvidenceLevel = Literal["arithmetic", "profile", "invariant", "ordinal", "quantitative"]
"""How much it says of the testbed that a claim holds, the least first. ``arithmetic``: computed from printed
or fitted numbers. ``profile``: the calibrated profile contains it. ``invariant``: admission enforces it
whatever the traffic. ``ordinal``: a bound on one side, an order or a trend. ``quantitative``: a number or an
onset within a tolerance."""

Verdict = Literal["kept", "broken", "not promised", "not tested"]
"""Verdict on a guarantee. ``not promised``: it does not cover what was sent. ``not tested``: nothing was
sent."""


class _ResultModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DelayQuantiles(_ResultModel):
    """Exact quantiles of the delays of all received packets in ms; None if no packet was received."""

    min: float | None
    p1: float | None
    p25: float | None
    p50: float | None
    p75: float | None
    p99: float | None
    max: float | None


class PointResult(_ResultModel):
    """One box of a figure: all runs of one flow at one x."""

    x: float
    packets: int
    """Packets sent, counted at the sender's tap."""
    lost: int
    loss: float
    """lost / packets, 0 without packets."""
    late: int
    """Packets received later than guaranteed."""
    explained: int
    """Lost and late packets that were under way during a stall of the host."""
    guaranteed: bool
    """Whether the paper's guarantee holds at this x."""
    delay_ms: DelayQuantiles

    @property
    def violations(self) -> int:
        """Packets that break the guarantee and that no stall of the host explains."""
        return self.lost + self.late - self.explained if self.guaranteed else 0


class Series(_ResultModel):
    """The points of one flow, in order of x."""

    label: str
    flow: int
    """The flow's number in the records."""
    points: list[PointResult]


class Replication(_ResultModel):
    """The numbers of a figure at another seed, by which claims that depend on chance are judged as well."""

    seed: int
    findings: dict[str, float] = {}
    """See `FigureResult.findings`."""
    series: list[Series] = []
    """See `TrafficResult.series`; only the points that these claims need."""


class AxisLabel(_ResultModel):
    """Meaning of the x of points."""

    name: str
    unit: str


class TableResult(_ResultModel):
    """The rows of a table as computed here."""

    columns: list[str]
    rows: list[list[str | float]]
    findings: list[list[str]] = []
    """Names of the findings in the cells, for the picture to show the paper's numbers there; empty without.

    A cell without a finding has an empty name.
    """


class SeedVerdict(_ResultModel):
    """The verdict on a claim that depends on chance, by the share of seeds at which it holds."""

    seeds: int
    """Seeds at which it was judged."""
    held: int
    """Those at which it holds."""
    low: float
    """Lower end of the interval of the share (`loko_testbed.reproduce.seed_share.share_interval`)."""
    high: float
    """Upper end of the interval."""

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds at more than half of all seeds; None if the interval contains one half."""
        return None if self.low <= 0.5 <= self.high else self.low > 0.5

    def __str__(self) -> str:
        """Return a text such as "holds at 11 of 20 seeds (0.32 to 0.77)"."""
        return f"holds at {self.held} of {self.seeds} seeds ({self.low:.2f} to {self.high:.2f})"


class ClaimResult(_ResultModel):
    """A statement of the paper compared with what was found here."""

    claim: str
    paper: str
    here: str
    holds: bool | None
    """None: not testable in this run, or undecided (`by_seed`)."""
    where: str
    """Section or figure of the paper."""
    because: str = ""
    """Why it does not hold, as far as is known, or why it is not testable here."""
    tested: str = ""
    """How the reason was tested, or which places of the paper contradict each other; empty: untested."""
    kind: ClaimKind = "ours"
    kind_because: str = ""
    """Why it is of this kind, where that is not obvious."""
    level: EvidenceLevel = "arithmetic"
    circular: bool = False
    """Whether it was an input or follows from one, so that holding says nothing: see `kind_because`."""
    tolerance: str = ""
    """When it holds, in words."""
    fact: str = ""
    """Reference of the fact behind the claim (`loko_testbed.reproduce.facts.Fact.reference`)."""
    deviation: float | None = None
    """Share of the paper's number by which the replay's differs; None where no two numbers are compared."""
    sentence: str = ""
    """Reference of the fact that stands for the sentence (`loko_testbed.reproduce.facts.Fact.sentence`)."""
    by_seed: SeedVerdict | None = None
    """How it was judged if its verdict depends on chance; None: at the figure's seed alone."""

    @property
    def is_undecided(self) -> bool:
        """Whether it was tested, but chance left open whether it holds."""
        return self.holds is None and self.by_seed is not None

    @property
    def judgement(self) -> str:
        """`holds` in words."""
        if self.is_undecided:
            return "undecided"
        return {True: "holds", False: "does not hold", None: "not testable here"}[self.holds]


class GuaranteeResult(_ResultModel):
    """Whether one system kept its guarantee to its flows."""

    system: str
    flows: list[str]
    packets: int
    lost: int
    late: int
    explained: int
    """See `PointResult.explained`."""
    verdict: Verdict
    ours: bool
    """Whether this project's admission gives the guarantee; the paper says that other systems' break."""

    @property
    def broken_by(self) -> int:
        """Packets that were lost or late without a stall of the host."""
        return self.lost + self.late - self.explained


class Printed(_ResultModel):
    """A value printed in the paper that the figure's picture marks."""

    finding: str
    """Name of the quantity: a finding of the figure, or for a sweep ``loss_percent``, ``loss_starts``, ..."""
    x: float | None = None
    """Position on the x axis of a sweep."""
    value: float | None = None
    """In the finding's unit. None: the paper states it in words only, or `x` is the information."""
    high: float | None = None
    """Upper end of a printed range, whose lower end is `value`."""
    text: str
    """Text in the picture, such as ``loss starts at 5`` or ``92.4 %``."""
    fact: str
    """See `ClaimResult.fact`."""


LOSS_PERCENT: Final = "loss_percent"
"""Quantity of a sweep at each x: the loss of all observed flows together."""
MEDIAN_MS: Final = "median_ms"
"""Quantity of a sweep at each x: the median delay of each observed flow."""


GUARANTEE_MS: Final = "guarantee_ms"
"""Finding: the guarantee of all flows of a figure, where they have the same."""
LEAST_DELAY_MS: Final = "least_delay_ms"
"""Finding: the delay through idle switches."""


class Band(_ResultModel):
    """The range of a number over everything that the papers leave open, as another figure predicts it."""

    figure: str
    """The figure that the number belongs to: ``PAPER/FIGURE``."""
    finding: str
    """A finding of that figure; for a sweep `LOSS_PERCENT` or `MEDIAN_MS`."""
    x: list[float] = []
    """Positions on the x axis of a sweep; else empty."""
    least: list[float] = Field(min_length=1)
    """Lower end at each x, or the only one, in the finding's unit; `most` has the upper ends."""
    most: list[float] = Field(min_length=1)
    covers: str
    """The varied quantities, and how long each case was replayed."""


class NoteResult(_ResultModel):
    """A point that the paper leaves open about the figure, and how this project deals with it."""

    where: str
    text: str


class HostResult(_ResultModel):
    """How well the machine kept time. All zero in virtual time."""

    stalls: int = 0
    worst_stall_us: float = 0
    lateness_us: dict[str, float] = {}
    """The emulator's lateness by ``p50``, ``p99``, ``p999`` and ``max``: for each, the worst of all runs."""

    @classmethod
    def worst(cls, parts: Sequence[HostResult]) -> HostResult:
        """Combine several runs: the sum of the stalls, and the worst of everything else."""
        lateness: dict[str, float] = {}
        for part in parts:
            for name, value in part.lateness_us.items():
                lateness[name] = max(lateness.get(name, value), value)
        return cls(
            stalls=sum(part.stalls for part in parts),
            worst_stall_us=max((part.worst_stall_us for part in parts), default=0),
            lateness_us=lateness,
        )


Counters = Mapping[str, Mapping[str, int]]
"""Counters by name, for each switch."""


def merge_counters(parts: Sequence[Counters]) -> dict[str, dict[str, int]]:
    """Combine several runs: sum the counters; take the maximum of those whose names end with ``_peak``."""
    merged: dict[str, dict[str, int]] = {}
    for part in parts:
        for board, counters in part.items():
            mine = merged.setdefault(board, {})
            for name, count in counters.items():
                before = mine.get(name, 0)
                mine[name] = max(before, count) if name.endswith("_peak") else before + count
    return merged


class Provenance(_ResultModel):
    """Everything needed to repeat a replay."""

    commit: str
    profile: str
    backend: str = ""
    """Backends that forwarded the frames of a live run: values of `loko.topology.lab.Backend`, separated by
    commas."""
    builder: str = ""
    """Builder of the lab of a live run (`loko_testbed.simulation.options.Builder`)."""
    framework: str = ""
    """The OpenFlow framework of the controller in a live run."""
    host: HostResult
    runs: int
    seconds: float
    versions: dict[str, str]
    assumptions: dict[str, float]
    """Values that the paper does not print, by name."""
    options: dict[str, bool | int | float | str] = {}
    """Options chosen on the command line (`loko_testbed.simulation.options.Options.chosen`)."""
    machine: str = ""
    """Where the run took place; empty in virtual time, where it has no influence."""
    real_boards: dict[str, dict[str, str]] = {}
    """Self-description of each real board (`loko_testbed.simulation.runner.RunRecords.real_boards`)."""


class FigureResult(_ResultModel):
    """Everything known about a figure after a replay."""

    figure: str
    paper: str
    title: str
    reference: str = "paper"
    """The reference of the claims, in a word."""
    mode: str
    seed: int
    x: AxisLabel
    table: TableResult | None = None
    chart: Chart | None = None
    """The picture, unless it is drawn from `TrafficResult.series` or `table`."""
    findings: dict[str, float] = {}
    """Named numbers that claims are judged by, unless by `TrafficResult.series` or `table`; names end with
    the units."""
    guarantees: list[GuaranteeResult] = []
    """For each system that gives a guarantee, whether it was kept (`loko_testbed.reproduce.guarantees`)."""
    claims: list[ClaimResult]
    replications: list[Replication] = []
    """The figure at the seeds that follow `seed`, as far as its claims need them (`Claim.seeds`)."""
    printed: list[Printed] = []
    """Values printed in the paper, for the picture to mark beside those found here."""
    bands: list[Band] = []
    """Bands for this figure that others of the folder predict, and bands that this one predicts for
    others."""
    notes: list[NoteResult]
    provenance: Provenance

    @property
    def counted(self) -> list[PointResult]:
        """The boxes of all flows whose packets are counted: those of a figure of traffic."""
        return []

    @property
    def name(self) -> str:
        """``PAPER/FIGURE``, which identifies the result within a folder."""
        return f"{self.paper}/{self.figure}"

    @property
    def command(self) -> str:
        """The command that repeats the replay; approximate for a result that does not record its options."""
        made = self.provenance
        chosen = dict(made.options)
        if not chosen:
            chosen = {"mode": self.mode, "seed": self.seed}
            if self.switched_by_open_vswitch and "," not in made.backend:
                chosen["backend"] = made.backend
            if self.counted:
                chosen |= {"runs": made.runs, "seconds": made.seconds}
        return shlex.join(["loko", "evaluate", self.name, *arguments_of(chosen)])

    @property
    def switched_by_open_vswitch(self) -> bool:
        """Whether Open vSwitch forwarded frames in place of a board."""
        switched = {Backend.OVS, Backend.OVS_TIMED, Backend.MININET_LINK}
        return not switched.isdisjoint(self.provenance.backend.split(", "))

    @property
    def setting(self) -> str:
        """The mode, and all that differs from emulated boards under Mininet, such as ``live, ovs``."""
        backend = self.provenance.backend if self.switched_by_open_vswitch else ""
        builder = self.provenance.builder if self.provenance.builder != Builder.MININET else ""
        framework = self.provenance.framework if self.provenance.framework != OS_KEN else ""
        return ", ".join(filter(None, (self.mode, backend, builder, framework)))

    @property
    def violations(self) -> int:
        """Packets that broke a guarantee where the paper's holds, and that no stall of the host explains.

        0 where Open vSwitch forwards: nobody guarantees anything about that switch, so lost and late packets
        count as the coarse emulator's error (`coarse_errors`).
        """
        return 0 if self.switched_by_open_vswitch else self._unexplained

    @property
    def coarse_errors(self) -> int:
        """Packets within admission that were lost or late because Open vSwitch forwarded, not a board."""
        return self._unexplained if self.switched_by_open_vswitch else 0

    @property
    def _unexplained(self) -> int:
        return sum(point.violations for point in self.counted)

    @property
    def breaks_ours(self) -> bool:
        """Whether a guarantee that this project's admission gives was broken."""
        return self.violations > 0 or any(
            guarantee.ours and guarantee.verdict == "broken" for guarantee in self.guarantees
        )

    @property
    def broken_claims(self) -> list[ClaimResult]:
        """Claims that do not hold here."""
        return [claim for claim in self.claims if claim.holds is False]


class TrafficResult(FigureResult):
    """The result of a figure of traffic, whose packets were counted."""

    series: list[Series]
    """Boxes of counted packets."""
    boards: dict[str, dict[str, int]]
    """Counters of each switch over all runs (`merge_counters`)."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        """Leave out what is written only for other readers, and follows from `findings`."""
        if not isinstance(values, dict):
            return values
        return {key: value for key, value in values.items() if key not in {"guarantee_ms", "floor_ms"}}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def guarantee_ms(self) -> float | None:
        """The guarantee of all flows; None for figures without one, or with several."""
        return self._rounded_ms(GUARANTEE_MS)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def floor_ms(self) -> float | None:
        """The delay through idle switches; None for figures that have no such number."""
        return self._rounded_ms(LEAST_DELAY_MS)

    def _rounded_ms(self, finding: str) -> float | None:
        """Return a finding in ms, rounded to nanoseconds; None if there is none."""
        return round(self.findings[finding], 6) if finding in self.findings else None

    @property
    def counted(self) -> list[PointResult]:
        """See `FigureResult.counted`."""
        return [point for series in self.series for point in series.points]


def _type_of(values: Any) -> str:
    """Return which kind of result this is: that of traffic has series."""
    has_series = isinstance(values, TrafficResult) or (isinstance(values, dict) and "series" in values)
    return "traffic" if has_series else "other"


_RESULT: Final[TypeAdapter[FigureResult]] = TypeAdapter(
    Annotated[
        Annotated[TrafficResult, Tag("traffic")] | Annotated[FigureResult, Tag("other")],
        Discriminator(_type_of),
    ]
)


def runs_of(runs: int, seconds: float) -> str:
    """Return a text such as "30 runs of 10 s"."""
    return f"{runs} {'run' if runs == 1 else 'runs'} of {seconds:g} s"


def in_order(paper: str, figure: str) -> list[tuple[str, int]]:
    """Return a key that sorts numbers in names by value: fig9a before fig10a."""
    parts = re.findall(r"([^\d]*)(\d*)", f"{paper}/{figure}")
    return [(text, int(digits or 0)) for text, digits in parts]


_LEFT_OUT_IF_EMPTY: Final = ("table", "chart", "findings", "printed", "replications", "bands")
"""Keys that a result's JSON has only if there is something below them."""


def write_result(result: FigureResult, directory: Path) -> Path:
    """Write the figure's `.json` (`loko_testbed.reproduce.folder`); the same result gives the same bytes."""
    path = figure_file(directory, result.name, ".json")
    without = {name for name in _LEFT_OUT_IF_EMPTY if not getattr(result, name, None)}
    write_atomically(path, result.model_dump_json(indent=1, exclude=without).encode() + b"\n")
    return path


def read_result(path: Path) -> FigureResult:
    """Read a result back. Raises `InputError`, one line, if it is missing or damaged."""
    try:
        return _RESULT.validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise InputError(
            f"{path}: damaged result ({where + ': ' if where else ''}{first['msg']}); delete it and run again"
        ) from None


def read_results(directory: Path) -> list[FigureResult]:
    """Read the results of all figures of all papers in a directory, tables first.

    Raises `InputError` if one is damaged, or is not in the place that its name requires.
    """
    results = []
    for path in result_files(directory, papers()):
        result = read_result(path)
        place = directory / f"{short_name(result.name)}.json"
        if path != place:
            raise InputError(f"{path}: is a result of {result.name}: move it to {place}, or delete it")
        results.append(result)
    return sorted(
        results,
        key=lambda result: (
            result.table is None or result.chart is not None,
            in_order(result.paper, result.figure),
        ),
    )
