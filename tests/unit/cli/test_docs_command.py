"""`loko docs` prints the file of a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko.document import DATA
from loko_testbed.cli import docs
from loko_testbed.cli.main import app


def test_it_prints_the_path_of_the_index_or_of_a_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(docs, "_SITE", tmp_path)
    assert CliRunner().invoke(app, ["docs"]).stdout == f"{DATA / 'docs/README.md'}\n"
    assert CliRunner().invoke(app, ["docs", "planning"]).stdout == f"{DATA / 'docs/planning.md'}\n"
    (tmp_path / "planning.html").touch()
    assert CliRunner().invoke(app, ["docs", "planning"]).stdout == f"{tmp_path / 'planning.html'}\n"


def test_a_page_that_does_not_exist_is_refused_with_those_that_do() -> None:
    result = CliRunner().invoke(app, ["docs", "planing"])
    assert result.exit_code == 2
    assert "page 'planing': no such name and no such file (names: README, architecture" in result.output


def test_the_help_names_it() -> None:
    assert "loko docs" in CliRunner().invoke(app, ["--help"]).output
