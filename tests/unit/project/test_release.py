"""A tag can only be released with what the changelog says about its version."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
WORKFLOW = (ROOT / ".github/workflows/release.yml").read_text()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "setup").mkdir()
    shutil.copy(ROOT / "setup" / "release-notes.sh", tmp_path / "setup")
    (tmp_path / "CHANGELOG.md").write_text(
        f"# C\n\n## Unreleased\n\nnew\n\n## {VERSION}\n\nThis.\n\n## 0.0.1\n"
    )
    return tmp_path


def notes(folder: Path, version: str) -> subprocess.CompletedProcess[str]:
    script = folder / "setup" / "release-notes.sh"
    return subprocess.run([script, version], capture_output=True, text=True, check=False)


def test_the_notes_are_those_of_the_version(copy: Path) -> None:
    told = notes(copy, VERSION)
    assert (told.returncode, told.stdout.strip(), told.stderr) == (0, "This.", "")


def test_the_version_of_this_repository_has_notes() -> None:
    told = notes(ROOT, VERSION)
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.parametrize(
    ("version", "changelog", "says"),
    [
        ("0.0.1", None, "pyproject.toml: is of another version than 0.0.1"),
        (VERSION, "## Unreleased\n\nnew\n", f"CHANGELOG.md: has nothing below '## {VERSION}'"),
    ],
)
def test_what_does_not_fit_together_is_not_released(
    copy: Path, version: str, changelog: str | None, says: str
) -> None:
    if changelog is not None:
        (copy / "CHANGELOG.md").write_text(changelog)
    told = notes(copy, version)
    assert (told.returncode, told.stdout) == (2, "")
    assert says in told.stderr


def test_the_workflow_publishes_on_a_tag_only_and_what_it_has_checked() -> None:
    workflow = yaml.safe_load(WORKFLOW)
    assert workflow[True] == {"push": {"tags": ["v*"]}, "workflow_dispatch": None}
    assert workflow["permissions"] == {"contents": "read"}
    writers = [
        name for name, job in workflow["jobs"].items() if "permissions" in job or "gh release" in str(job)
    ]
    assert writers == ["release"]
    assert workflow["jobs"]["release"]["if"] == "github.ref_type == 'tag'"
    assert workflow["jobs"]["release"]["needs"] == ["build", "install"]


def test_the_wheel_is_tried_with_every_python_that_its_metadata_names() -> None:
    named = [
        words.removeprefix("Programming Language :: Python :: ")
        for words in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", words)
    ]
    assert yaml.safe_load(WORKFLOW)["jobs"]["install"]["strategy"]["matrix"]["python"] == named


def test_the_workflow_calls_what_is_there() -> None:
    assert set(re.findall(r"\b(setup/\S+)", WORKFLOW)) == {"setup/release-notes.sh"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    called = {
        word for line in re.findall(r"^ +(?:run: )?make ([a-z -]+)$", WORKFLOW, re.M) for word in line.split()
    }
    assert called == {"setup", "test-wheel", "site"}
    assert called <= targets
    for action in re.findall(r"uses: (.*)", WORKFLOW):
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
