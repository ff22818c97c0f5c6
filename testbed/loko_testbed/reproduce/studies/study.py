"""The interface of a study: independent tasks that yield rows, and what is shown of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loko.document import InputError, StrictModel
from loko.plug_in import defined_in
from loko_testbed.reproduce.outcome import Outcome

Rows = list[dict[str, Any]]
"""Records with values that JSON can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study. In real time its tasks take turns, as they would disturb each other."""

    size: type[StrictModel]
    """The schema of its document's `full` and `quick`: how much is measured."""
    tasks: Callable[[Any, int], Sequence[Any]]
    """Returns the tasks of a size and a seed, each with a text for the display of progress as `str`."""
    measure: Callable[[Any], Rows]
    """Carries out a task: a function of a module, as another process may call it. Raises `RunError`."""
    show: Callable[[Rows], Outcome]
    """Returns chart, table and findings of the rows of all tasks in order."""
    estimate_s: Mapping[str, float]
    """The time in seconds that it takes at full size, by mode."""
    needs_root: bool = False


def study_named(name: str) -> Study:
    """Return the study of the module with this name. Raises `InputError`."""
    if name not in {path.stem for path in Path(__file__).parent.glob("*.py")}:
        raise InputError(f"study '{name}': there is no module loko_testbed.reproduce.studies.{name}")
    try:
        return defined_in(f"{__package__}.{name}", "STUDY", Study)
    except TypeError as error:
        raise InputError(f"study '{name}': {error}") from None
