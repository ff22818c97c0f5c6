"""Functions that `from loko_testbed import …` offers to programs and notebooks.

`evaluate` replays figures as the command does, in virtual time. `open_figure` opens one that was replayed
before. Either gives a `ReplayedFigure`, whose tables are Arrow's: `.to_pandas()` and `polars.from_arrow`
turn them into data frames.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from loko.document import InputError
from loko.notebook_display import html_table
from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.chart import Chart, Panel
from loko_testbed.reproduce.figure_types.experiments import experiments_named, select
from loko_testbed.reproduce.folder import full_name, short_name
from loko_testbed.reproduce.result import ClaimResult, FigureResult, TrafficResult, read_result
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.files import lock_folder, output_directory
from loko_testbed.tasks.progress import NoProgress

FOLDER: Final = Path("results/virtual")
"""Where the command writes results in virtual time, unless told otherwise."""


@dataclass(frozen=True)
class ReplayedFigure:
    """A figure that was replayed: its picture, its numbers, and the records that they come from."""

    result: FigureResult
    folder: Path

    def __repr__(self) -> str:
        return f"ReplayedFigure({self.result.name!r})"

    @cached_property
    def records(self) -> pa.Table:
        """Raw rows: of most figures a row for each packet (`loko_testbed.simulation.records.SCHEMA`).

        Raises `InputError` if the folder does not have them.
        """
        path = self.folder / f"{short_name(self.result.name)}.parquet"
        try:
            return pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"{path}: cannot be read: {error}; evaluate the figure again") from None

    @property
    def points(self) -> pa.Table:
        """A row for each box of a figure of traffic: its flow, x, counts, and quantiles in ms; else none."""
        return pa.Table.from_pylist(
            [
                {"flow": series.label, **point.model_dump(exclude={"delay_ms"})}
                | {f"{name}_ms": value for name, value in point.delay_ms.model_dump().items()}
                for series in (self.result.series if isinstance(self.result, TrafficResult) else ())
                for point in series.points
            ]
        )

    @property
    def claims(self) -> pa.Table:
        """A row for each claim: what the paper says, what came out here, and whether it holds."""
        return pa.Table.from_pylist([claim.model_dump(mode="json") for claim in self.result.claims])

    def derive(
        self,
        figure: str,
        title: str,
        panels: Sequence[Panel],
        *,
        findings: Mapping[str, float] | None = None,
        claims: Sequence[ClaimResult] = (),
    ) -> ReplayedFigure:
        """Return a figure of your own, made from the records of this one, to show in a notebook.

        It is written nowhere: reports and bundles have only figures that a document describes and a command
        repeats.
        """
        made_from = self.result
        result = FigureResult(
            figure=figure,
            paper=made_from.paper,
            title=title,
            mode=made_from.mode,
            seed=made_from.seed,
            x=made_from.x,
            chart=Chart(panels=list(panels)),
            findings=dict(findings or {}),
            claims=list(claims),
            notes=[],
            provenance=made_from.provenance,
        )
        derived = ReplayedFigure(result, self.folder)
        derived.__dict__["records"] = self.records
        return derived

    def _repr_html_(self) -> str:
        """Return the picture and the claims for a notebook."""
        picture = b64encode(pictures.svg(self.result, captioned=False)).decode()
        rows = [
            [claim.claim, claim.paper, claim.here, claim.judgement, claim.kind]
            for claim in self.result.claims
        ]
        columns = ("claim", "paper", "here", "verdict", "kind")
        shown = f'<img alt="" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'
        caption = f"{self.result.name}: {self.result.title}"
        return shown + (html_table(caption, columns, rows) if rows else f"<p>{escape(caption)}</p>")


def evaluate(
    *figures: str,
    out: Path | str = FOLDER,
    quick: bool = False,
    runs: int | None = None,
    seconds: float | None = None,
    seed: int = 1,
    jobs: int = 1,
) -> list[ReplayedFigure]:
    """Replay figures in virtual time, as `loko evaluate` does, and return them in the order of their names.

    What was replayed into `out` with the same parameters is not computed again. A script that asks for
    several `jobs` calls this below ``if __name__ == "__main__":``, as for every pool of processes in Python.
    Raises `InputError` if no figure is named or a name is unknown, `RunError` if a run fails.
    """
    if not figures:
        raise InputError("no figure is named; 'loko figures' lists them")
    from loko_testbed.reproduce.evaluate import evaluate as replay  # noqa: PLC0415 - slow, and not for reading

    chosen = select(figures, experiments_named(figures))
    options = Options(
        mode="virtual",
        seed=seed,
        out=output_directory(Path(out)),
        runs=runs,
        seconds=seconds,
        quick=quick,
        jobs=jobs,
    )
    with lock_folder(options.out):
        return [ReplayedFigure(result, options.out) for result in replay(chosen, options, NoProgress())]


def open_figure(name: str, out: Path | str = FOLDER) -> ReplayedFigure:
    """Open a figure that was replayed into the folder `out`. Raises `InputError` if it is not there."""
    folder = Path(out)
    return ReplayedFigure(read_result(folder / f"{short_name(full_name(name))}.json"), folder)
