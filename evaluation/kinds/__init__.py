"""The kinds of figures: one package each, which says what its document is and how it is produced.

A kind is found by its folder: `evaluation/kinds/NAME/production.py` has a `KIND`. Nothing else lists them,
so a new kind is a new folder (docs/architecture.md, "A new kind of figure").
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
"""Options that some kinds cannot follow, and what those do instead."""
IN_TASKS: Final = frozenset({"executor"})
"""`Kind.honours` of figures whose work is in tasks that depend on nothing else."""
SIMULATED: Final = IN_TASKS | {"capacity_factor"}
"""`Kind.honours` of figures whose packets go through boards of the lab."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of figure. What it is given are figures of its own document."""

    document: type[Figure]
    """The schema of its experiments; ``kind`` is the name of its folder."""
    produce: Callable[[Sequence[Any], Options, Progress], list[FigureResult]]
    """Produce figures with their raw rows in ``options.out``, not yet judged nor drawn; a result for each."""
    estimate_s: Callable[[Any], dict[str, float]]
    """Estimated time in seconds at the paper's scale, by mode."""
    honours: frozenset[str] = frozenset()
    """Which of `NOT_FOR_ALL` its figures follow."""


@cache
def kind_names() -> tuple[str, ...]:
    """The kinds that there are."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/production.py")))


def kind_named(name: str) -> Kind:
    """The kind with this name, one of `kind_names`."""
    kind = import_module(f"{__name__}.{name}.production").KIND
    if not isinstance(kind, Kind):
        raise TypeError(f"evaluation.kinds.{name}.production: KIND is no Kind")
    return kind


def refuse_unless_honoured(figures: Sequence[Figure], chosen: Sequence[str]) -> None:
    """Raise `InputError` if one of the figures cannot follow an option of `NOT_FOR_ALL` that was chosen."""
    for name in chosen:
        able = [one.name for one in figures if name in kind_named(one.kind).honours]
        for figure in figures:
            if figure.name not in able:
                raise InputError(
                    f"{option_of(name)}: {figure.name} {NOT_FOR_ALL[name]}; leave it out"
                    + (f" and name those that do: {' '.join(able)}" if able else "")
                )
