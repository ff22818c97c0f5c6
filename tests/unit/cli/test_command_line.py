"""The program `loko` loads only the command that is called, and lists the others without loading them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko.document import LABS
from loko.terminal import wrap
from loko_testbed.cli.main import COMMANDS, app, load


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_help_tells_of_a_command_is_how_its_own_help_begins(name: str) -> None:
    assert (load(name).help or "").splitlines()[0].startswith(COMMANDS[name].help)
    assert COMMANDS[name].help.endswith(".")


def test_the_help_names_every_command_and_loads_none() -> None:
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from loko_testbed.cli.main import COMMANDS, app\n"
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
        "slow = {'numpy', 'jinja2', 'scipy', 'os_ken', 'loko.admission.largest', 'loko.control.wire',\n"
        "        'loko.admission.packets', 'loko.solvers.highs', 'loko_testbed.tasks.executor'}\n"
        "from loko_testbed.cli.main import main\n"
        f"sys.argv = ['loko', 'plan', 'two-switch', {str(LABS / 'two-switch' / 'flows.yml')!r}]\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, slow & set(sys.modules))\n"
    )
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert output.splitlines()[-1] == "0 set()"


def test_a_command_that_does_not_exist_is_refused_with_what_was_meant() -> None:
    result = CliRunner().invoke(app, ["evalute"])
    assert result.exit_code == 2
    assert "evaluate" in result.output


REFUSED = """
- {id: wide, source: H1, destination: H3, udp_source: 1, udp_destination: 2, rate: 9 Mbit/s, burst: 1 frame,
   frame: 306 bytes, deadline: 9 ms}
"""


def seen_at_80_columns(arguments: list[str], folder: Path) -> list[str]:
    """Return the lines that a terminal of 80 columns shows."""
    reader, terminal = pty.openpty()
    words = [sys.executable, "-c", "from loko_testbed.cli.main import main; main()", *arguments]
    done = subprocess.Popen(
        words,
        cwd=folder,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )
    os.close(terminal)
    said = b""
    while chunk := _read(reader):
        said += chunk
    os.close(reader)
    done.wait()
    return said.decode().splitlines()


def _read(reader: int) -> bytes:
    try:
        return os.read(reader, 65536)
    except OSError:  # the program has closed its end
        return b""


def test_a_refusal_is_broken_at_words_on_a_terminal_and_one_line_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "flows.yml").write_text(REFUSED)
    lines = seen_at_80_columns(["plan", "two-switch", "flows.yml"], tmp_path)
    assert lines[:2] == [
        "refused: wide: rate at s1: 0 used + 9 requested > 2.368126 Mbit/s allowed; would",
        "    fit: a rate of at most 2.368126 Mbit/s",
    ]
    assert all(len(line) <= 80 for line in lines)
    piped = CliRunner().invoke(app, ["plan", "two-switch", str(tmp_path / "flows.yml")]).output
    assert piped.splitlines()[0] == " ".join(line.strip() for line in lines[:2])


def test_an_error_is_broken_at_words_on_a_terminal(tmp_path: Path) -> None:
    lines = seen_at_80_columns(["model", "zodiac"], tmp_path)
    assert lines[0].startswith("error: profile 'zodiac': no such name and no such file (names: banana-pi-r1,")
    assert len(lines) > 1
    assert all(len(line) <= 80 for line in lines)


def test_a_word_longer_than_a_line_stays_whole() -> None:
    path = "/a/very" * 20
    assert wrap(f"error: {path}: no such file", 80).split() == ["error:", f"{path}:", "no", "such", "file"]


def test_quiet_leaves_only_errors_of_any_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--quiet", "model", "zodiac-fx"])
    assert (done.exit_code, done.output) == (0, "")
    done = CliRunner().invoke(app, ["-q", "model", "zodiac"])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: profile 'zodiac'")


@pytest.mark.parametrize("group", ["lab", "flows", "bench"])
def test_a_group_has_no_completion_of_its_own(group: str) -> None:
    assert "--install-completion" not in CliRunner().invoke(app, [group, "--help"]).output
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize("words", ["plan", "lab up", "bench predictability", "evaluate"])
def test_a_help_fills_the_lines_of_the_terminal(words: str) -> None:
    """Help is wrapped at the terminal's width, not where the docstring breaks its lines."""
    output = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*words.split(), "--help"]).output
    prose = output.partition("Usage:")[2].partition("╭")[0]
    for paragraph in prose.split("\n" + 80 * " " + "\n")[1:]:
        lines = [line.strip() for line in paragraph.splitlines()]
        for line, after in pairwise(filter(None, lines)):
            assert len(line) + 1 + len(after.split()[0]) > 78, paragraph
