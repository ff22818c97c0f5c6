"""The command `loko bench` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = [sys.executable, "-c", "from evaluation.cli import main; main()", "bench"]


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*RUN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def test_the_buffer_of_the_board(tmp_path: Path) -> None:
    done = bench("buffer", "--out", tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    assert {row["frame_bytes"]: row["p50"] for row in rows}[64] == 25
    assert (tmp_path / "samples.sqlite").exists()
    again = bench("buffer", "--out", tmp_path, "--json")
    assert again.stdout == done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("buffer", "--device", "nothing"), "profile 'nothing'"),
        (("buffer", "--device", "labs/bench/nothing.yml"), "nothing.yml"),
        (("buffer", "--samples", "1"), "--samples"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    done = bench(*arguments, "--out", tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
