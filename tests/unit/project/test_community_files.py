"""The issue forms can be filled in, and what they ask for can be typed in."""

from __future__ import annotations

import platform
import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from loko_testbed.cli.main import app
from loko_testbed.tasks.provenance import commit

ROOT = Path(__file__).resolve().parents[3]
FORMS = sorted(
    set((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")) - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"}
)


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_has_the_keys_that_github_demands_and_asks_for_the_report(form: Path) -> None:
    document = yaml.safe_load(form.read_text())
    assert set(document) == {"name", "description", "labels", "body"}
    names = [part["id"] for part in document["body"]]
    assert len(set(names)) == len(names)
    for part in document["body"]:
        assert set(part) <= {"type", "id", "attributes", "validations"}
        assert part["type"] in {"textarea", "dropdown"}
        assert ("options" in part["attributes"]) == (part["type"] == "dropdown")
    assert document["body"][-1]["attributes"]["label"] == "Output of `loko doctor --quick --report`"


def test_what_the_forms_ask_for_names_versions_and_findings() -> None:
    [command] = {words for form in FORMS for words in re.findall(r"`(loko doctor[^`]*)`", form.read_text())}
    told = CliRunner().invoke(app, shlex.split(command)[1:])
    assert told.exit_code in {0, 1}, told.output
    assert f"- commit {commit()}\n- python {platform.python_version()}\n" in told.stdout
    assert "| level | what | found |\n|---|---|---|\n| " in told.stdout
