"""A display of progress that remembers what it was told."""

from __future__ import annotations


class RecordedProgress:
    """See `loko_testbed.tasks.progress.Progress`."""

    def __init__(self) -> None:
        self.begun: list[tuple[float, int, str]] = []
        """Steps, kept results and unit of each beginning."""
        self.done: list[str] = []

    def begin(self, steps: float, kept: int, unit: str = "runs") -> None:
        """See `Progress.begin`."""
        self.begun.append((steps, kept, unit))

    def advance(self, doing: str, steps: float = 1) -> None:
        """See `Progress.advance`."""
        self.done.append(doing)

    def writing(self, figure: str) -> None:
        """See `Progress.writing`."""
