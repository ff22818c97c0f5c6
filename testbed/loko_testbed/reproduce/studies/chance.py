"""Which verdicts depend on chance: figures replayed at several seeds, and their claims judged at each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from loko.document import StrictModel
from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.figure import Figure
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments_named, select
from loko_testbed.reproduce.folder import full_name
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult, TrafficResult
from loko_testbed.reproduce.seed_share import verdict_of
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress
from loko_testbed.tasks.store import digest_of

_JUDGED: Final[Mapping[bool | None, str]] = {True: "holds", False: "does not hold", None: "undecided"}


class ChanceSize(StrictModel):
    """Which figures are replayed, and at how many seeds."""

    seeds: dict[int, tuple[str, ...]]
    """By the number of seeds at which figures are replayed, from the study's on: their names."""


class ChanceTask(NamedTuple):
    """A figure at a seed."""

    figure: str
    """``PAPER/FIGURE``."""
    seed: int

    def __str__(self) -> str:
        return f"{self.figure}, seed {self.seed}"


def tasks(size: ChanceSize, seed: int) -> list[ChanceTask]:
    """Return the figures at their seeds. Raises `InputError` for an unknown one."""
    return [
        ChanceTask(figure.name, seed + further)
        for seeds, names in size.seeds.items()
        for figure in select(names, experiments_named(names))
        for further in range(seeds)
    ]


def measure(task: ChanceTask) -> Rows:
    """Judge the claims of a figure at a seed; return a row for each claim that can be tested.

    Figures that its claims compare with are replayed at the same seed. Raises `InputError` or `RunError`.
    """
    figure = experiments_named([task.figure])[task.figure]
    compared = {name for claim in figure.claims if (name := claim.check.compared_with)}
    known = experiments_named(sorted(compared)) if compared else {}
    with TemporaryDirectory(prefix="loko-chance-") as folder:
        options = Options(mode="virtual", seed=task.seed, out=Path(folder))
        (result,) = figure_type_named(figure.kind).compute([figure], options, NoProgress())
        others = {name: _series(known[full_name(name)], options) for name in compared}
    series = result.series if isinstance(result, TrafficResult) else []
    numbers = digest_of([result.findings, series])
    return [
        {
            "figure": figure.name,
            "seed": task.seed,
            "numbers": numbers,
            "place": place,
            "claim": claim.claim,
            "here": claim.here,
            "holds": claim.holds,
        }
        for place, claim in enumerate(
            judge(figure, series=series, table=result.table, findings=result.findings, others=others)
        )
        if claim.holds is not None
    ]


def _series(figure: Figure, options: Options) -> list[Any]:
    (result,) = figure_type_named(figure.kind).compute([figure], options, NoProgress())
    return result.series if isinstance(result, TrafficResult) else []


def show(rows: Rows) -> Outcome:
    """Show for each figure whether its numbers differ between seeds, and which claims turn with the seed."""
    figures = _by(rows, "figure")
    claims = {name: _by(of_figure, "place") for name, of_figure in figures.items()}
    turning = {name: [*_turning(of_figure)] for name, of_figure in claims.items()}
    equal = {name for name, of_figure in figures.items() if len(_by(of_figure, "numbers")) == 1}
    judged, turned = (sum(map(len, each.values())) for each in (claims, turning))
    return Outcome(
        chart=None,
        findings={
            "figures": float(len(figures)),
            "figures_without_chance": float(len(equal)),
            "claims": float(judged),
            "turning_claims": float(turned),
            "turning_claims_percent": 100 * turned / judged,
        },
        x=AxisLabel(name="figure", unit=""),
        table=TableResult(
            columns=["figure", "seeds", "numbers", "claims", "claims that turn with the seed"],
            rows=[
                [
                    name,
                    float(len(_by(of_figure, "seed"))),
                    "equal" if name in equal else "differ",
                    float(len(claims[name])),
                    "; ".join(turning[name]),
                ]
                for name, of_figure in figures.items()
            ],
        ),
    )


def _by(rows: Rows, key: str) -> dict[Any, Rows]:
    """Group rows by their value of a key, in order of the first of each."""
    groups: dict[Any, Rows] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def _turning(claims: Mapping[int, Rows]) -> Iterator[str]:
    """Yield the claims that hold at some seeds only, with the verdict of all seeds."""
    for rows in claims.values():
        held = sum(row["holds"] for row in rows)
        if 0 < held < len(rows):
            verdict = _JUDGED[verdict_of(held, len(rows)).holds]
            yield f"{rows[0]['claim']}: {verdict} (at {held} of {len(rows)} seeds)"


STUDY: Final = Study(size=ChanceSize, tasks=tasks, measure=measure, show=show, estimate_s={"virtual": 1800.0})
