"""Figure types: one package for each, with the schema of its documents and the code that computes results.

Types are found by their folders: `testbed/loko_testbed/reproduce/figure_types/NAME/compute.py` defines a
`FIGURE_TYPE`. There is no other list, so a new type is just a new folder (docs/architecture.md, "A new figure
type"). Other packages add types by entry points (docs/plug-ins.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from loko.document import InputError
from loko.plug_in import defined_in, loaded, names_with, plug_ins
from loko_testbed.reproduce.figure import FIGURE_TYPES, Figure
from loko_testbed.reproduce.result import FigureResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import option_of
from loko_testbed.tasks.progress import Progress

_HERE = Path(__file__).parent

OPTIONAL_OPTIONS: Final = {
    "capacity_factor": "does not depend on it",
    "executor": "is computed on this machine only",
    "pcap": "has no runs in a lab that can be captured",
}
"""Options that some figure types do not support, with the reason as a predicate for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureType:
    """A figure type. Its functions take figures of its own document class."""

    documents: tuple[type[Figure], ...]
    """The schemas of its experiments: ``kind`` is the name of its folder, ``shows`` tells several apart."""
    compute: Callable[[Sequence[Any], Options, Progress], Iterable[FigureResult]]
    """Computes the figures' results in their order, neither judged nor drawn yet, each when its raw rows are
    written to ``options.out``."""
    estimate_s: Callable[[Any], dict[str, float]]
    """Estimates the time in seconds at the paper's scale, by mode."""

    def by_shows(self) -> dict[str, type[Figure]]:
        """Return the schemas by the values of ``shows`` that choose them."""
        return {
            name: document
            for document in self.documents
            for name in get_args(document.model_fields["shows"].annotation)
        }


@cache
def figure_type_names() -> tuple[str, ...]:
    """Return the names of all figure types. Raises `InputError` if a plug-in has the name of one of ours."""
    ours = {path.parent.name for path in _HERE.glob("*/compute.py")}
    return tuple(sorted(names_with(ours, FIGURE_TYPES)))


def figure_type_named(name: str) -> FigureType:
    """Return the figure type with this name, one of `figure_type_names`.

    Raises `InputError` if it is a plug-in that cannot be loaded.
    """
    if point := plug_ins(FIGURE_TYPES).get(name):
        return loaded(point, FigureType)
    return defined_in(f"{__name__}.{name}.compute", "FIGURE_TYPE", FigureType)


def refuse_unsupported(figures: Sequence[Figure], chosen: Sequence[str]) -> None:
    """Raise `InputError` if a figure does not support a chosen option among `OPTIONAL_OPTIONS`."""
    for name in chosen:
        able = [figure.name for figure in figures if name in figure.supported_options]
        for figure in figures:
            if figure.name not in able:
                raise InputError(
                    f"{option_of(name)}: {figure.name} {OPTIONAL_OPTIONS[name]}; leave it out"
                    + (f" and name those that do: {' '.join(able)}" if able else "")
                )
