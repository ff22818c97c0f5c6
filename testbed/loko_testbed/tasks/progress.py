"""The progress bar of a replay, shown on standard error if that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_HIDDEN: Final[ContextVar[bool]] = ContextVar("hidden", default=False)


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


def terminal_bar() -> Progress:
    """Return a bar that counts steps in a task's `unit`, with the time left; silent without a terminal."""
    console = waiting_console()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(),
        console=console,
        disable=_HIDDEN.get() or not console.is_terminal,
        transient=True,
    )


class ProgressBar:
    """Shows how many runs are done and how long the rest may take."""

    def __init__(self) -> None:
        self._bar = terminal_bar()
        self._task = self._bar.add_task("starting", total=None, unit="runs")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, steps: int, kept: int, unit: str = "runs") -> None:
        """Set the number of steps."""
        text = f"replaying ({kept} points are there already)" if kept else "replaying"
        self._bar.reset(self._task, total=steps, description=text, unit=unit)

    def advance(self, doing: str) -> None:
        """Count a step."""
        self._bar.update(self._task, advance=1, description=doing)

    def writing(self, figure: str) -> None:
        """Show that a figure is being written."""
        self._bar.update(self._task, description=f"writing {figure}")
