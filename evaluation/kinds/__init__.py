"""The kinds of figures: one package each, which says what its document is and how it is produced.

A kind is found by its folder: `evaluation/kinds/NAME/kind.py` has a `KIND`. Nothing else lists them, so a new
kind is a new folder (docs/architecture.md, "A new kind of figure").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from evaluation.figure import Figure
from evaluation.options import Options, Progress
from evaluation.result import FigureResult

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of figure. What it is given are figures of its own document."""

    document: type[Figure]
    """The schema of its experiments; ``kind`` is the name of its folder."""
    produce: Callable[[Sequence[Any], Options, Progress], list[FigureResult]]
    """Produce figures with their raw rows in ``options.out``, not yet judged nor drawn; a result for each."""
    estimate_s: Callable[[Any], dict[str, float]]
    """Estimated time in seconds at the paper's scale, by mode."""


@cache
def kind_names() -> tuple[str, ...]:
    """The kinds that there are."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/kind.py")))


def kind_named(name: str) -> Kind:
    """The kind with this name, one of `kind_names`."""
    kind = import_module(f"{__name__}.{name}.kind").KIND
    if not isinstance(kind, Kind):
        raise TypeError(f"evaluation.kinds.{name}.kind: KIND is no Kind")
    return kind
