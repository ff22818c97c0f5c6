"""Which deviations of the firmware break a controller's check: single ones by halves, then the smallest sets.

Pure: whoever calls runs the check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from loko_testbed.simulation.quirks import Quirks, without

_HALVES: Final = 2
_FEW: Final = 3
"""Of so many deviations, each is tried alone: halves would save no run."""


@dataclass(slots=True)
class Bisection:
    """Deviations that break a check, as far as they are known."""

    passes_with_all: bool | None = None
    """Whether the check passes with the firmware's behaviour; None if it was not run."""
    passes_with_none: bool | None = None
    """Whether it passes with the specification's."""
    alone: list[str] = field(default_factory=list)
    """Deviations without each of which the check passes."""
    together: list[list[str]] = field(default_factory=list)
    """If there are none: smallest sets, of which no two share a name, without which it passes.

    Without a part of a set it fails.
    """
    tried: list[str] = field(default_factory=list)
    """Deviations of which is known whether the check passes without each of them."""
    is_complete: bool = False

    @property
    def is_broken(self) -> bool:
        """Whether the check needs deviations to be absent."""
        return self.passes_with_all is False and self.passes_with_none is True


def bisect(names: Sequence[str], passes: Callable[[Quirks], bool], found: Bisection) -> None:
    """Find out which of the deviations break the check, into `found`: if this is stopped, the results stay.

    `passes` runs the check against boards with this setting.
    """
    found.passes_with_all = passes("firmware")
    if not found.passes_with_all:
        found.passes_with_none = passes("spec")
    if found.is_broken:
        known = {frozenset(names): True}

        def passes_without(off: Sequence[str]) -> bool:
            key = frozenset(off)
            if key not in known:
                known[key] = passes(without(off))
            return known[key]

        _find_alone(names, passes_without, found)
        if not found.alone:
            _find_sets(names, passes_without, found)
    found.is_complete = True


def _find_alone(
    names: Sequence[str], passes_without: Callable[[Sequence[str]], bool], found: Bisection
) -> None:
    """Find the deviations without each of which the check passes, as it does without all these `names`.

    If it fails without a half, no single one of that half is taken to break it. If it fails without either,
    each is tried alone: deviations may break it together, or their absence may break it, too.
    """
    middle = ceil(len(names) / _HALVES)
    halves = names[:middle], names[middle:]
    if len(names) > _FEW and any(passes_without(half) for half in halves):
        for half in halves:
            if passes_without(half):
                _find_alone(half, passes_without, found)
            else:
                found.tried += half
        return
    for name in names:
        if passes_without([name]):
            found.alone.append(name)
        found.tried.append(name)


def _find_sets(
    names: Sequence[str], passes_without: Callable[[Sequence[str]], bool], found: Bisection
) -> None:
    rest = list(names)
    while rest and passes_without(rest):
        smallest = _smallest(rest, passes_without)
        found.together.append(smallest)
        rest = [name for name in rest if name not in smallest]


def _smallest(names: Sequence[str], passes_without: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return a set without which the check passes, and without no part of which that leaves out one name.

    Delta debugging (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002, fig. 3).
    """
    current, parts = list(names), _HALVES
    while len(current) >= _HALVES:
        size = ceil(len(current) / parts)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        rests = [[name for name in current if name not in chunk] for chunk in chunks]
        if (chunk := next(filter(passes_without, chunks), None)) is not None:
            current, parts = chunk, _HALVES
        elif (rest := next(filter(passes_without, rests), None)) is not None:
            current, parts = rest, max(parts - 1, _HALVES)
        elif size == 1:
            break
        else:
            parts = min(_HALVES * parts, len(current))
    return current
