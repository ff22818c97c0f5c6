"""The program `loko` loads a command when it is called, and tells of the others without them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from evaluation.cli import COMMANDS, app, load
from loko.document import LABS


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_help_tells_of_a_command_is_how_its_own_help_begins(name: str) -> None:
    assert (load(name).help or "").splitlines()[0].startswith(COMMANDS[name].told)
    assert COMMANDS[name].told.endswith(".")


def test_the_help_names_every_command_and_loads_none() -> None:
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from evaluation.cli import COMMANDS, app\n"
        "print(CliRunner().invoke(app, ['--help']).output)\n"
        "slow = {one.module for one in COMMANDS.values()} | {'numpy', 'pydantic', 'yaml'}\n"
        "print(slow & set(sys.modules))\n"
    )
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert output.splitlines()[-1] == "set()"
    assert all(f" {name} " in output for name in COMMANDS)


def test_a_plan_by_the_papers_scheme_loads_only_what_it_needs() -> None:
    script = (
        "import sys\n"
        "from evaluation.cli import main\n"
        f"sys.argv = ['loko', 'plan', 'two-switch', {str(LABS / 'two-switch' / 'flows.yml')!r}]\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, {'numpy', 'jinja2', 'scipy'} & set(sys.modules))\n"
    )
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert output.splitlines()[-1] == "0 set()"


def test_a_command_that_does_not_exist_is_refused_with_what_was_meant() -> None:
    result = CliRunner().invoke(app, ["evalute"])
    assert result.exit_code == 2
    assert "evaluate" in result.output
