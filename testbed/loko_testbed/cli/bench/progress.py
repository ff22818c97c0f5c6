"""The progress of a campaign on the terminal: how long it will take, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager

from loko_testbed.measure.bench.campaign import counting
from loko_testbed.measure.bench.part import Key, MeasurementPart
from loko_testbed.tasks.progress import ProgressBar, format_duration


def announcement(todo: Sequence[MeasurementPart], kept: Set[Key], *, real_time: bool) -> str:
    """Return a line that says how many parts are to be measured and, in real time, how long they take."""
    left = [part for part in todo if part.key not in kept]
    line = f"{len(left)} parts to measure"
    if len(left) < len(todo):
        line += f", {len(todo) - len(left)} are there already"
    if real_time and left:
        line += f"; about {format_duration(sum(part.expected_s for part in left))}"
    return line


@contextmanager
def measuring(
    todo: Sequence[MeasurementPart], kept: Set[Key], *, real_time: bool
) -> Iterator[Callable[[MeasurementPart], None]]:
    """Show progress on standard error. Yields the function to call after each part.

    In real time it prints a line now and then if there is no terminal.
    """
    with ProgressBar(lines=real_time) as bar:
        if real_time:
            bar.say(announcement(todo, kept, real_time=True))
        yield counting(todo, kept, bar, real_time=real_time)
