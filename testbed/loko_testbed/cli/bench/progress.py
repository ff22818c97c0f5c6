"""The progress of a campaign on the terminal: how long it will take, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Final

import typer

from loko_testbed.measure.bench.part import Key, MeasurementPart
from loko_testbed.tasks.progress import terminal_bar

_SECONDS_BETWEEN_LINES: Final = 30.0


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

    Without a terminal it prints a line now and then; in virtual time it then prints nothing, since nobody
    waits long.
    """
    left = [part for part in todo if part.key not in kept]
    expected_s = {part.key: part.expected_s if real_time else 1.0 for part in left}
    begin = told = time.monotonic()
    done_s, done = 0.0, 0
    with terminal_bar() as bar:
        unit = "s" if real_time else "parts"
        task = bar.add_task("measuring", total=round(sum(expected_s.values())), unit=unit)
        if real_time:
            typer.echo(announcement(todo, kept, real_time=True), err=True)

        def tell(part: MeasurementPart) -> None:
            nonlocal told, done_s, done
            if part.key not in expected_s:
                return
            done_s, done = done_s + expected_s[part.key], done + 1
            bar.update(task, completed=round(done_s), description=str(part.key))
            now = time.monotonic()
            if real_time and bar.disable and now - told > _SECONDS_BETWEEN_LINES:
                told = now
                left_s = (now - begin) / done_s * (sum(expected_s.values()) - done_s)
                typer.echo(f"{done} of {len(left)} parts; about {format_duration(left_s)} left", err=True)

        yield tell


def format_duration(seconds: float) -> str:
    """Format a duration for people: 40 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
