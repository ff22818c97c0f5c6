"""The installation without extras: commands that work, and one line where an extra is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packages import imported_names

import loko
import loko_testbed
from loko.document import LABS
from loko.extras import missing_package

PROJECT = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text())["project"]
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name != "dev"]
FLOWS = str(LABS / "two-switch/flows.yml")
BY_NAME = {"distributed", "httptools", "ortools", "os_ken"}
"""Packages that are imported by their names, or by another package."""
NO_EXTRAS = """
import contextlib, io, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from loko_testbed.cli.main import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["loko", *words]
    error = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
        try:
            main()
        except SystemExit as end:
            status = end.code
    print(json.dumps([status, error.getvalue()]))
"""
"""Run several commands in one process, which cannot import these packages."""


@cache
def packages_by_extra() -> Mapping[str, set[str]]:
    """Return those packages of each extra that the product imports."""
    product = (path for package in (loko, loko_testbed) for path in Path(package.__path__[0]).rglob("*.py"))
    imported = {name.split(".")[0] for path in product for name in imported_names(path)} | BY_NAME
    packages: dict[str, set[str]] = {}
    for package, distributions in packages_distributions().items():
        for distribution in distributions:
            packages.setdefault(distribution.lower(), set()).add(package)

    def brought_by(requirements: list[str]) -> set[str]:
        names = [re.split(r"[<>=\[]", requirement)[0].lower() for requirement in requirements]
        return {package for name in names for package in packages.get(name, ()) if package in imported}

    return {name: brought_by(PROJECT["optional-dependencies"][name]) for name in EXTRAS}


def without_extras(commands: Sequence[Sequence[str]], folder: Path) -> list[tuple[int, str]]:
    """Return the exit status of each command, and what it wrote to the standard error."""
    script = NO_EXTRAS.format(packages=set().union(*packages_by_extra().values()))
    command = [sys.executable, "-c", script, json.dumps(commands)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return [(status, error) for status, error in map(json.loads, done.stdout.splitlines())]


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_package_of_an_extra_is_named_with_it(extra: str) -> None:
    """A package that is in several extras may be named with any."""
    for package in packages_by_extra()[extra]:
        told = missing_package(f"{package}.part")
        assert told is not None, f"loko.extras: does not name {package}"
        named = re.fullmatch(
            rf"the package '{package}' is missing: pip install 'loko-testbed\[(\w+)\]'", told
        )
        assert named, told
        assert package in packages_by_extra()[named[1]], told


def test_the_base_models_plans_schedules_and_replays(tmp_path: Path) -> None:
    commands = [
        ("model", "zodiac-fx"),
        ("plan", "two-switch", FLOWS),
        ("schedule", "two-switch", FLOWS, "--slots", "2"),
        ("replay", "two-switch", FLOWS, "--seconds", "0.1"),
        ("flows", "example", "two-switch"),
        ("lab", "new", "line", "--switches", "2", "--rate", "95 Mbit/s", "--out", "lab"),
        ("schema", "lab"),
    ]
    for words, (status, error) in zip(commands, without_extras(commands, tmp_path), strict=True):
        assert error == "", words
        assert status < 2, words  # 1: a flow has its slot less often than it asks


def test_a_command_names_the_extra_that_it_lacks(tmp_path: Path) -> None:
    extras = {
        ("serve", "two-switch", "--emulate"): "service",
        ("evaluate", "fig17a", "--quick", "--out", "out"): "figures",
        ("figures",): "figures",
        ("bench", "--help"): "figures",
        ("lab", "draw", "two-switch", "--out", "cables.svg"): "figures",
        ("plan", "two-switch", FLOWS, "--sheet", "sheet.pdf"): "figures",
    }
    ended = without_extras(list(extras), tmp_path)
    for (words, extra), (status, error) in zip(extras.items(), ended, strict=True):
        assert status == 2, words
        assert re.fullmatch(
            rf"error: loko {words[0]}: the package '\w+' is missing: pip install 'loko-testbed\[{extra}\]'\n",
            error,
        )
