"""The progress bar of everything that consists of tasks, shown on standard error if that is a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as TerminalBar

_HIDDEN: Final[ContextVar[bool]] = ContextVar("hidden", default=False)
_SECONDS_BETWEEN_LINES: Final = 30.0


@contextmanager
def hidden() -> Iterator[None]:
    """Show no progress meanwhile (`loko --quiet`)."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


def waiting_console() -> Console:
    """Return the console on standard error for what is shown only while somebody waits."""
    return Console(stderr=True, quiet=_HIDDEN.get())


class Progress(Protocol):
    """Receives the progress of tasks."""

    def begin(self, steps: float, kept: int, unit: str = "runs") -> None:
        """Begin: `steps` in `unit` are to be done, the results of `kept` tasks exist already."""

    def advance(self, doing: str, steps: float = 1) -> None:
        """Count what is finished. May be called from any thread."""

    def writing(self, figure: str) -> None:
        """Note that all points of a figure are complete."""


class NoProgress:
    """A `Progress` that shows nothing."""

    def begin(self, steps: float, kept: int, unit: str = "runs") -> None:
        """See `Progress.begin`."""

    def advance(self, doing: str, steps: float = 1) -> None:
        """See `Progress.advance`."""

    def writing(self, figure: str) -> None:
        """See `Progress.writing`."""


class ProgressBar:
    """Shows how many steps are done and how long the rest may take."""

    def __init__(self, *, lines: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """Set up the bar. With `lines`, it prints a line now and then if there is no terminal."""
        self._console = waiting_console()
        self._bar = TerminalBar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=_HIDDEN.get() or not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None, unit="runs")
        self._lines = lines and self._bar.disable
        self._clock = clock
        self._begin_s = self._told_s = clock()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, steps: float, kept: int, unit: str = "runs") -> None:
        """See `Progress.begin`."""
        self._begin_s = self._told_s = self._clock()
        text = f"{kept} are there already" if kept else "starting"
        self._bar.reset(self._task, total=steps, description=text, unit=unit)

    def advance(self, doing: str, steps: float = 1) -> None:
        """See `Progress.advance`."""
        self._bar.update(self._task, advance=steps, description=doing)
        now_s = self._clock()
        if self._lines and now_s - self._told_s > _SECONDS_BETWEEN_LINES:
            self._told_s = now_s
            (task,) = self._bar.tasks
            left = format_duration((now_s - self._begin_s) / task.completed * (task.remaining or 0))
            self.say(f"{task.completed:.0f} of {task.total:.0f} {task.fields['unit']}; about {left} left")

    def say(self, line: str) -> None:
        """Print a line above the bar, except with `loko --quiet`."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def writing(self, figure: str) -> None:
        """See `Progress.writing`."""
        self._bar.update(self._task, description=f"writing {figure}")


def format_duration(seconds: float) -> str:
    """Format a duration for people: 40 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
