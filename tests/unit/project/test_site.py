"""The documentation as a site: its navigation lists every page, its reference every command."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site() -> dict[str, ModuleType]:
    """The site's extensions by name, imported with their folder on the path as Sphinx does."""
    sys.path.insert(0, str(DOCS / "site"))
    try:
        return {name: importlib.import_module(name) for name in ("navigation", "command_reference")}
    finally:
        sys.path.remove(str(DOCS / "site"))


def test_the_navigation_leads_to_every_page(site):
    listed = site["navigation"].sections((DOCS / "README.md").read_text(encoding="utf-8"))
    pages = [page for section in listed.values() for page in section]
    assert sorted(pages) == sorted(
        [
            "../ARTIFACT",
            "../CONTRIBUTING",
            "../SECURITY",
            *(page.stem for page in DOCS.glob("*.md") if page.stem != "README"),
        ]
    )


def test_the_reference_has_groups_and_their_commands(site):
    commands = [" ".join(words) for words in site["command_reference"].every_command()]
    assert {"", "plan", "lab", "lab up", "bench dp-time", "evaluate"} <= set(commands)
    assert len(commands) == len(set(commands))


def test_the_help_is_what_users_see_at_80_columns(site):
    text = site["command_reference"].help_of(["lab", "up"])
    assert text.splitlines()[0].strip().startswith("Usage: loko lab up")
    assert max(map(len, text.splitlines())) <= 80


def test_a_command_that_is_not_there_fails_the_build(site):
    with pytest.raises(RuntimeError, match="loko nothing --help: status 2"):
        site["command_reference"].help_of(["nothing"])
