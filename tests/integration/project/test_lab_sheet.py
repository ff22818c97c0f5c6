"""The lab sheet: every command on both pages is executed and prints what the solutions say."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import preloaded
import pytest
from disposable_root import ROOT
from live_harness import needs_namespaces
from preloaded import PreloadedProgram
from typer.testing import CliRunner

from loko_testbed.cli.main import app
from loko_testbed.cli.main import main as loko_main

SHEET = (ROOT / "docs" / "lab-sheet.md").read_text(encoding="utf-8")
SOLUTIONS = (ROOT / "docs" / "lab-sheet-solutions.md").read_text(encoding="utf-8")
LIVE = "sudo loko "


def commands_of_sheet() -> list[str]:
    return [line.strip() for line in SHEET.splitlines() if re.match(r"    (sudo )?loko ", line)]


def solved() -> list[tuple[str, list[str]]]:
    """Return each command of the solutions with the lines of output below it."""
    commands: list[tuple[str, list[str]]] = []
    for line in SOLUTIONS.splitlines():
        text = line.strip()
        if line.startswith("    $ ") or re.match(r" +\$ ", line):
            commands.append((text.removeprefix("$ "), []))
        elif line.startswith("    ") and commands:
            commands[-1][1].append(text)
    return commands


def words_of(line: str) -> list[str]:
    return shlex.split(line.removeprefix("sudo ").removeprefix("loko "))


def typed(line: str) -> str:
    done = preloaded.loko(*words_of(line), environment={**os.environ, "COLUMNS": "80"})
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the student has saved."""
    flows = re.search(r"(?:^    (?:- \{id|   rate).*\n)+", SHEET, re.M)
    assert flows
    lines = flows.group().splitlines(keepends=True)
    (tmp_path / "sheet.yml").write_text("".join(line[4:] for line in lines))
    (tmp_path / "fit.yml").write_text("".join(line[4:] for line in lines[:2]))
    return tmp_path


def test_the_solutions_have_every_command_but_those_that_send_and_watch() -> None:
    answered = {command for command, _ in solved()}
    assert {line for line in commands_of_sheet() if line not in answered} == {
        line for line in commands_of_sheet() if " mgen " in line or line == "sudo loko lab watch"
    }


def test_virtual_parts_print_what_the_solutions_say(folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    ours = [(command, said) for command, said in solved() if not command.startswith(LIVE)]
    assert len(ours) == 8
    for command, said in ours:
        words = shlex.split(command.removeprefix("loko "))
        output = CliRunner(env={"COLUMNS": "80"}).invoke(app, words).output
        for line in said:
            assert line in output, f"{command}: {output}"


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
def test_live_part_prints_what_the_solutions_say(
    relaxed, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    live = [(command, said) for command, said in solved() if command.startswith(LIVE)]
    senders = [line for line in commands_of_sheet() if " mgen " in line]
    assert (len(live), len(senders)) == (8, 3)
    try:
        for command, said in live:
            output = typed(command)
            for line in said:
                assert line in output, f"{command}: {output}"
            if command.endswith("fit.yml") and senders:
                rows = [watched(folder, sender) for sender in senders]
                (_, _, missed, lost, walk), (_, forwarded, _, overflow, _), (_, none, strange, *_) = rows
                assert (missed, lost, walk) == (0, 0, 17)
                assert forwarded > 0
                assert overflow > 0
                assert none == 0
                assert strange > 0
                senders = []
    finally:
        typed("loko lab down two-switch")


def watched(folder: Path, sender: str) -> list[float]:
    """Return `s1`'s row in `loko lab watch` while a host sends: received, forwarded, missed, lost, walk."""
    sending = PreloadedProgram(loko_main, "loko", *words_of(sender), out=folder / "sender")
    seen = typed("loko lab watch --interval 2 --count 2")
    sending.wait(60)
    rows = re.findall(r"^ s1 +(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+) ", seen, re.M)
    return [float(cell) for cell in rows[-1]]
