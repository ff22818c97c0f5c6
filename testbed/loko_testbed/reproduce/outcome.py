"""Compute figures that do not depend on each other, one by one.

Such a figure type only defines how to compute one figure. This module keeps the raw rows and what was
computed of them in one file, so that nothing is computed twice, and turns it into a result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from loko.admission.schemes import scheme_versions
from loko.document import InputError
from loko.plug_in import plug_ins, version_of
from loko.switch_model.device import device_versions
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.figure import FIGURE_TYPES, Figure, notes_of
from loko_testbed.reproduce.folder import campaign_of, figure_file
from loko_testbed.reproduce.replay.tasks import tasks_of
from loko_testbed.reproduce.result import (
    AxisLabel,
    Band,
    FigureResult,
    GuaranteeResult,
    HostResult,
    NoteResult,
    Provenance,
    TableResult,
)
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.records import META, summary
from loko_testbed.tasks.files import atomic_replacement
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.provenance import commit, machine, versions
from loko_testbed.tasks.store import forget

_Figure = TypeVar("_Figure", bound=Figure)
ONLY_WORDS: Final = {"title", "claims", "notes", "modes", "ours", "level", "by_name_only"}
"""Keys of a document that do not affect the computation."""


class Outcome(BaseModel):
    """Everything computed of one figure, apart from its raw rows."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    chart: Chart | None
    """The picture; None: the table serves as the picture."""
    findings: dict[str, float]
    """Named numbers that claims are judged by; the names end with the units."""
    x: AxisLabel
    """The quantity that is varied."""
    profile: str = ""
    table: TableResult | None = None
    """Numbers for a table in the report."""
    guarantees: list[GuaranteeResult] = []
    """For each system, whether it kept its guarantee."""
    bands: list[Band] = []
    """Bands that this figure predicts for others."""
    notes: list[NoteResult] = []
    """Further notes beside the document's: how this replay differs from the paper's experiment."""
    assumptions: dict[str, float] = {}
    runs: int = 1
    seconds: float = 0
    host: HostResult = HostResult()
    backend: str = ""
    real_boards: dict[str, dict[str, str]] = {}


_Outcome = TypeVar("_Outcome", bound=Outcome)
Compute = Callable[[_Figure, Options, Progress], tuple[Outcome, pa.Table]]
"""Computes one figure: returns its outcome and its raw rows. Raises `InputError` or `RunError`."""


@dataclass(frozen=True, slots=True)
class OneByOne:
    """A `FigureType.compute` for figures that do not depend on each other."""

    compute: Compute[Any]
    parameters: Callable[[Any, Options], Mapping[str, Any]] = lambda _figure, _options: {}
    """Returns what the result depends on apart from the document, mode, seed, ``--quick``, ``--runs``,
    ``--seconds`` and the commit."""

    def __call__(self, figures: Sequence[Figure], options: Options, progress: Progress) -> list[FigureResult]:
        """See `FigureType.compute`."""
        return [result_of(figure, self._outcome(figure, options, progress), options) for figure in figures]

    def unrecorded(self, figure: Figure, options: Options, progress: Progress) -> Outcome:
        """Return the outcome of a figure, and keep neither its rows nor the results of its tasks."""
        outcome, _ = self.compute(figure, options, progress)
        return outcome

    def _outcome(self, figure: Figure, options: Options, progress: Progress) -> Outcome:
        path = figure_file(options.out, figure.name, ".parquet")
        fingerprint = self._fingerprint(figure, options)
        kept = kept_outcome(path, fingerprint, Outcome)
        if kept is not None:
            return kept
        with tasks_of(figure.name, fingerprint):
            outcome, rows = self.compute(figure, options, progress)
        _write(path, rows, {"fingerprint": fingerprint, "outcome": outcome.model_dump(mode="json")})
        forget(options.out, campaign_of(figure.name))
        return outcome

    def _fingerprint(self, figure: Figure, options: Options) -> dict[str, Any]:
        return {
            "document": figure.model_dump(mode="json", exclude=ONLY_WORDS),
            "mode": options.mode,
            "seed": options.seed,
            "quick": options.quick,
            "runs": options.runs,
            "seconds": options.seconds,
            "commit": commit(),
            **plugged_in(figure),
            **self.parameters(figure, options),
        }


def plugged_in(figure: Figure) -> dict[str, str]:
    """Return the versions of other packages that the figure's type, schemes and devices come from."""
    texts = _texts(figure.model_dump(mode="json", exclude=ONLY_WORDS))
    names = {name for text in texts for name in _without_suffixes(text)}
    point = plug_ins(FIGURE_TYPES).get(figure.kind)
    of_type = {} if point is None else version_of(point)
    return of_type | scheme_versions(names) | device_versions(names)


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a document's values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below)


def _without_suffixes(text: str) -> Iterator[str]:
    """Yield a text, and it without suffixes: figures add some to a scheme's name, such as ``-robust``."""
    words = text.split("-")
    yield from ("-".join(words[:count]) for count in range(1, len(words) + 1))


def kept_outcome(path: Path, fingerprint: Mapping[str, Any], model: type[_Outcome]) -> _Outcome | None:
    """Return the outcome in a figure's records; None if they are missing, or have another fingerprint.

    Raises `InputError` if they are damaged.
    """
    if not path.exists():
        return None
    kept = summary(path)
    if kept.get("fingerprint") != json.loads(json.dumps(fingerprint)):
        return None
    try:
        return model.model_validate(kept.get("outcome"))
    except ValidationError:
        raise InputError(f"{path}: damaged records; delete the file and run again") from None


def _write(path: Path, rows: pa.Table, summary_values: Mapping[str, Any]) -> None:
    metadata = {META: json.dumps(summary_values).encode()}
    with atomic_replacement(path) as part:
        pq.write_table(rows.replace_schema_metadata(metadata), part, compression="zstd")


def result_of(figure: Figure, outcome: Outcome, options: Options) -> FigureResult:
    """Return the result of a figure, neither judged nor drawn yet."""
    return FigureResult(
        figure=figure.figure,
        paper=figure.paper,
        title=figure.title,
        reference=figure.reference,
        mode=options.mode,
        seed=options.seed,
        x=outcome.x,
        table=outcome.table,
        chart=outcome.chart,
        findings=outcome.findings,
        guarantees=outcome.guarantees,
        bands=outcome.bands,
        claims=[],
        notes=notes_of(figure) + outcome.notes,
        provenance=Provenance(
            commit=commit(),
            profile=outcome.profile,
            backend=outcome.backend,
            builder=options.builder if outcome.backend and options.real_time else "",
            framework=options.driven_by if outcome.backend else "",
            host=outcome.host,
            runs=outcome.runs,
            seconds=outcome.seconds,
            versions=versions() | plugged_in(figure),
            assumptions=outcome.assumptions,
            machine=machine() if options.real_time else "",
            real_boards=outcome.real_boards,
        ),
    )
