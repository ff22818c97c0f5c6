"""The one progress bar: what it says without a terminal, and that it is silent if asked to be."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_progress import RecordedProgress

from loko_testbed.tasks.progress import ProgressBar, hidden
from loko_testbed.tasks.store import StoredTasks


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def half_way(bar: ProgressBar, clock: Clock) -> None:
    with bar as progress:
        progress.begin(400, 3, "s")
        for _ in range(4):
            clock.now_s += 25
            progress.advance("a part", 50)


def test_without_a_terminal_it_prints_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    half_way(ProgressBar(lines=True, clock=clock), clock)
    assert capsys.readouterr().err.splitlines() == [
        "100 of 400 s; about 2 min left",
        "200 of 400 s; about 2 min left",
    ]
    half_way(ProgressBar(clock=clock), clock)
    assert capsys.readouterr().err == ""


def test_quiet_means_no_lines_either(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with hidden():
        bar = ProgressBar(lines=True, clock=clock)
        bar.say("12 parts to measure")
        half_way(bar, clock)
    assert capsys.readouterr().err == ""


def test_a_store_counts_only_the_tasks_that_it_lacks(tmp_path: Path) -> None:
    progress = RecordedProgress()
    stored = StoredTasks(
        folder=tmp_path, campaign="squares", function=square, on_kept=lambda task: progress.advance(str(task))
    )
    assert stored.all([1, 2], progress) == [1, 4]
    assert stored.all([3, 2, 1], progress, "squares") == [9, 4, 1]
    assert progress.begun == [(2, 0, "parts"), (1, 2, "squares")]
    assert progress.done == ["1", "2", "3"]


def square(number: int) -> int:
    return number**2
