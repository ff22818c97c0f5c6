"""The commands in CONTRIBUTING.md, executed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def commands_of(heading: str) -> list[str]:
    """Return the indented commands below a heading, without comments, with continued lines joined."""
    _, _, rest = TEXT.partition(f"## {heading}\n")
    section, _, _ = rest.partition("\n## ")
    assert section, heading
    lines = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    return [re.sub(r"\s+#.*", "", line) for line in lines.replace("\\\n", " ").splitlines()]


def test_the_first_change_makes_a_figure(tmp_path: Path) -> None:
    """Run in a copy of the folders that matter. Set-up has run already, and `make quick` is left out."""
    made, *change = (line for line in commands_of("A first change, in ten minutes") if line != "make quick")
    assert made == "make setup"
    clone = tmp_path / "a clone"
    for folder in ("labs", "controller", "testbed", "switch-emulator/profiles"):
        shutil.copytree(ROOT / folder, clone / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (clone / ".venv").symlink_to(sys.prefix)
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(clone / folder) for folder in ("controller", "testbed")),
    }
    for line in change:
        done = subprocess.run(
            ["bash", "-c", line], cwd=clone, env=surroundings, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    result = json.loads((clone / "results/mine/mine.json").read_text())
    assert result["figure"] == "mine"
    assert result["series"][0]["points"][0]["packets"] > 0
    assert 'id="mine"' in (clone / "results/mine/report.html").read_text()


def test_every_target_that_is_named_is_there() -> None:
    named = set(re.findall(r"`make ([a-z-]+)", TEXT)) | set(
        re.findall(r"^    make ([a-z-]+)", TEXT, re.MULTILINE)
    )
    assert {"setup", "quick", "test"} <= named <= TARGETS


def test_every_place_that_is_named_is_there() -> None:
    """Capital letters in a path are placeholders."""
    places = set(re.findall(r"`((?:labs|testbed|controller|switch-emulator|tests)/[^`]*)`", TEXT))
    assert len(places) > 10
    for place in places:
        pattern = re.sub(r"[A-Z]{2,}", "*", place)
        assert list(ROOT.glob(pattern.rstrip("/"))), place
