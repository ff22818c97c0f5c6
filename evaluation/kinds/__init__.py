"""The kinds of figures: one package for each, which defines its document and how it is produced.

Kinds are found by their folders: `evaluation/kinds/NAME/production.py` defines a `KIND`. There is no other
list, so a new kind is just a new folder (docs/architecture.md, "A new kind of figure").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from evaluation.figure import Figure
from evaluation.options import Options, Progress
from evaluation.result import FigureResult
from evaluation.senders import option_of
from loko.document import InputError

_HERE = Path(__file__).parent

NOT_FOR_ALL: Final = {
    "capacity_factor": "does not depend on it",
    "executor": "is computed on this machine only",
}
"""Options that some kinds cannot honour, with the reason as a predicate for messages."""
IN_TASKS: Final = frozenset({"executor"})
"""`Kind.honours` of figures that are computed in independent tasks."""
SIMULATED: Final = IN_TASKS | {"capacity_factor"}
"""`Kind.honours` of figures whose packets pass through boards of a lab."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of figure. Its functions take figures of its own document class."""

    document: type[Figure]
    """The schema of its experiments; ``kind`` is the name of its folder."""
    produce: Callable[[Sequence[Any], Options, Progress], list[FigureResult]]
    """Produces a result for each figure, neither judged nor drawn yet; writes raw rows to ``options.out``."""
    estimate_s: Callable[[Any], dict[str, float]]
    """Estimates the time in seconds at the paper's scale, by mode."""
    honours: frozenset[str] = frozenset()
    """The options among `NOT_FOR_ALL` that its figures honour."""


@cache
def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/production.py")))


def kind_named(name: str) -> Kind:
    """Return the kind with this name, one of `kind_names`."""
    kind = import_module(f"{__name__}.{name}.production").KIND
    if not isinstance(kind, Kind):
        raise TypeError(f"evaluation.kinds.{name}.production: KIND is no Kind")
    return kind


def refuse_unless_honoured(figures: Sequence[Figure], chosen: Sequence[str]) -> None:
    """Raise `InputError` if a figure cannot honour a chosen option among `NOT_FOR_ALL`."""
    for name in chosen:
        able = [figure.name for figure in figures if name in kind_named(figure.kind).honours]
        for figure in figures:
            if figure.name not in able:
                raise InputError(
                    f"{option_of(name)}: {figure.name} {NOT_FOR_ALL[name]}; leave it out"
                    + (f" and name those that do: {' '.join(able)}" if able else "")
                )
