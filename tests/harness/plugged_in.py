"""Packages with plug-ins, installed in a folder of their own, and the program that finds them there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import preloaded
from disposable_root import ROOT

EXAMPLES = ROOT / "examples"


def install(site: Path, name: str, version: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """Write what an installer writes of a package's entry points, which are given by group."""
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = (
        line
        for group, named in points.items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in named.items()))
    )
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def install_template(site: Path, template: Path) -> str:
    """Put a template where `pip install` would, and return the name of its package."""
    document = tomllib.loads((template / "pyproject.toml").read_text())
    for folder in document["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]:
        shutil.copytree(template / folder, site / folder, ignore=shutil.ignore_patterns("__pycache__"))
    project = document["project"]
    install(site, project["name"], project["version"], project["entry-points"])
    return str(project["name"])


def forget(site: Path, name: str) -> None:
    """Remove what an installer wrote of a package; its code stays."""
    (about,) = site.glob(f"{name.replace('-', '_')}-*.dist-info")
    shutil.rmtree(about)


def loko(site: Path, *words: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the program in an environment that also has these packages."""
    environment = os.environ | {"PYTHONPATH": str(site), "COLUMNS": "200"} | settings
    return preloaded.loko(*words, environment=environment)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of an error of the user, without its beginning."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("error: ").strip()
