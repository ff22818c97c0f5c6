"""Find and load experiments: `labs/LAB/experiments/FIGURE.yml`, one figure or table of a paper each.

A plug-in has those of its figure type in the folder `experiments` beside its module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel

from loko.document import LABS, InputError, ParsedDocument, check, error_at, parse_file, read
from loko.plug_in import folder_of, plug_ins
from loko_testbed.reproduce.claims import check_reference
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure import FIGURE_TYPES, Figure, Mode
from loko_testbed.reproduce.figure_types import figure_type_named, figure_type_names
from loko_testbed.reproduce.folder import full_name, short_name
from loko_testbed.reproduce.result import in_order

_PLACE: Final = "*/experiments/{}.yml"
_HINTS: Final = 3
FORMER_TYPES: Final = {
    "duel": "'comparison'",
    "control_plane": "'bench', with 'shows' in place of 'what', and flow-adds, flow-searches in the plural",
    "integrated_switch": "'bench', with 'shows: integrated-switch'",
    "maximum_throughput": "'bench', with 'shows: maximum-throughput'",
    "overload": "'bench', with 'shows: overload'",
    "run_times": "'schedules', with 'shows: run-times'",
    "live_transfers": "'transfers', with 'shows: iperf3-throughput', iperf3-window or iperf3-cpu",
    "slice_transfers": "'transfers'",
    **{name: f"'traffic', with 'shows: {name}'" for name in ("sweep", "paths", "deployment", "versions")},
    "allocation_map": "'model', with 'shows: allocation-map'",
    "service_curve": "'model', with 'shows: service-curve'",
    "processing_time": "'bench', with 'shows: processing-times'",
}
"""Names of figure types in documents of earlier versions, and what to write instead."""
_RENAMED_FIGURES: Final = {"tssdn/duel": "tssdn/comparison"}
"""Former names of figures, and the names to use."""
_Held = TypeVar("_Held")


class _TypeOfDocument(BaseModel):
    kind: str
    shows: str | None = None


class _NameOfDocument(BaseModel):
    paper: str = ""


class MissingFigure(BaseModel):
    """A figure that a folder has no result of, as far as its document says without the code of its type."""

    figure: str
    paper: str
    title: str
    modes: list[Mode]
    by_name_only: str = ""

    @property
    def name(self) -> str:
        """``PAPER/ID``."""
        return f"{self.paper}/{self.figure}"

    @property
    def why(self) -> str:
        """The reason why the default replay in virtual time leaves it out; empty if it does not."""
        real_time = "" if "virtual" in self.modes else "in real time only"
        return "; ".join(filter(None, (real_time, self.by_name_only)))

    @property
    def command(self) -> str:
        """The command that replays it."""
        mode = "" if "virtual" in self.modes else f" --mode {self.modes[0]}"
        return f"loko evaluate {short_name(self.name)}{mode}"


def load_experiment(path: Path) -> Figure:
    """Read and check an experiment's file. Raises `InputError`."""
    parsed = parse_file(path)
    experiment: Figure = check(path, _document(path, parsed), parsed.data, parsed.tree)
    if experiment.figure != path.stem:
        raise error_at(path, ("figure",), f"'{experiment.figure}' is not the file's name; call both the same")
    try:
        for claim in experiment.claims:
            check_reference(experiment, claim)
        for note in experiment.notes:
            fact(experiment.paper, note.fact)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return experiment


def _document(path: Path, parsed: ParsedDocument) -> type[Figure]:
    """Return the schema of an experiment's file. Raises `InputError`."""
    told = check(path, _TypeOfDocument, parsed.data, parsed.tree)
    if told.kind in FORMER_TYPES:
        raise error_at(path, ("kind",), f"'{told.kind}' is called {FORMER_TYPES[told.kind]}")
    _refuse_unknown(path, "kind", told.kind, figure_type_names())
    figure_type = figure_type_named(told.kind)
    if len(figure_type.documents) == 1:
        return figure_type.documents[0]
    known = figure_type.by_shows()
    _refuse_unknown(path, "shows", told.shows, known)
    return known[told.shows or ""]


def _refuse_unknown(path: Path, key: str, value: str | None, known: Collection[str]) -> None:
    if value not in known:
        said = "is missing" if value is None else f"'{value}' is unknown"
        raise error_at(path, (key,), f"{said} (known: {', '.join(known)})")


def experiments(labs: Path = LABS) -> dict[str, Figure]:
    """Return the experiments of all labs by full name, tables first, then by name. Raises `InputError`."""
    return _by_name(_documents_in(labs), labs)


def _documents_in(labs: Path, stem: str = "*") -> Iterator[Path]:
    """Yield the documents of the labs' figures, and of those of plug-ins; if a name is given, its own."""
    yield from labs.glob(_PLACE.format(stem))
    for point in plug_ins(FIGURE_TYPES).values() if labs == LABS else ():
        yield from folder_of(point).glob(f"experiments/{stem}.yml")


def experiments_named(names: Sequence[str], labs: Path = LABS) -> dict[str, Figure]:
    """Return the experiments with these names, or all experiments if a name is unknown or none is given.

    Only the files needed are read in full, because that imports the code of their types. Raises `InputError`.
    """
    wanted = set(map(full_name, names))
    files = {name.partition("/")[2] for name in wanted}
    alike = (path for stem in files for path in _documents_in(labs, escape(stem)))
    figures = _by_name((path for path in alike if f"{_paper_of(path)}/{path.stem}" in wanted), labs)
    return figures if wanted and wanted <= figures.keys() else experiments(labs)


def _by_name(paths: Iterable[Path], labs: Path) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    loaded = map(_experiment_in, sorted(paths))
    for experiment in sorted(
        loaded, key=lambda figure: (figure.kind != "table", in_order(figure.paper, figure.figure))
    ):
        if experiment.name in figures:
            raise InputError(f"{labs}: two experiments are named {experiment.name}; rename one")
        figures[experiment.name] = experiment
    return figures


def _until_changed(load: Callable[[Path], _Held]) -> Callable[[Path], _Held]:
    """Return a function that loads a file, and again only after the file has changed."""
    cached = lru_cache(maxsize=1024)(lambda path, _changed_ns, _bytes: load(path))

    def loaded(path: Path) -> _Held:
        state = path.stat()
        return cached(path, state.st_mtime_ns, state.st_size)

    return loaded


_experiment_in: Final = _until_changed(load_experiment)
_paper_of: Final = _until_changed(lambda path: read(path, _NameOfDocument).paper)
_missing_in: Final = _until_changed(lambda path: read(path, MissingFigure))


def _unknown(name: str, known: Mapping[str, Figure]) -> str:
    """Return the rest of an error message on an unknown name: similar names, or where to look."""
    if name in _RENAMED_FIGURES:
        return f"is called {_RENAMED_FIGURES[name]}"
    figure = name.partition("/")[2]
    elsewhere = [experiment for experiment in known if experiment.partition("/")[2] == figure]
    near = elsewhere or get_close_matches(short_name(name), map(short_name, known), n=_HINTS)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"unknown; {hint}'loko figures' lists all {len(known)}"


def not_replayed(replayed: Collection[str], labs: Path = LABS) -> list[MissingFigure]:
    """Return the figures of the labs other than those with these full names. Raises `InputError`."""
    known = map(_missing_in, labs.glob(_PLACE.format("*")))
    return [figure for figure in known if figure.name not in replayed]


def select(names: Sequence[str], known: Mapping[str, Figure], mode: str = "virtual") -> list[Figure]:
    """Return the experiments with these names; bare names mean ``loko/``. Raises `InputError`.

    Without names, returns all that can be replayed in this mode, except those `by_name_only`.
    """
    chosen: list[Figure] = []
    unnamed = (
        name for name, experiment in known.items() if mode in experiment.modes and not experiment.by_name_only
    )
    for name in names or unnamed:
        full = full_name(name)
        if full not in known:
            raise InputError(f"figure '{name}': {_unknown(full, known)}")
        if known[full] not in chosen:
            chosen.append(known[full])
    return chosen
