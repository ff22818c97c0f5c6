"""`make live` and `make waits` collect only modules that name their markers: no test is left out by that."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MARKER = re.compile(r"mark\.(live|namespaces|waits)\b")


@pytest.mark.parametrize("target", ["live", "waits"])
def test_the_modules_collected_are_those_that_name_a_marker(target: str) -> None:
    said = subprocess.run(
        ["make", "--no-print-directory", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    [command] = [line for line in said.splitlines() if " pytest " in line]
    [of_command] = re.findall(r"\$\((grep .*)\)", command)
    listed = subprocess.run(shlex.split(of_command), cwd=ROOT, capture_output=True, text=True, check=True)
    markers = {"waits"} if target == "waits" else {"live", "namespaces"}
    named = {
        str(path.relative_to(ROOT))
        for path in ROOT.glob("tests/**/test_*.py")
        if markers & set(MARKER.findall(path.read_text(encoding="utf-8")))
    }
    assert set(listed.stdout.split()) == named


def test_markers_are_named_only_by_the_modules_of_the_tests() -> None:
    """A marker that a test got from elsewhere would not be seen."""
    others = {path for path in ROOT.glob("tests/**/*.py") if not path.name.startswith("test_")}
    assert [str(path) for path in others if MARKER.search(path.read_text(encoding="utf-8"))] == []
