"""The tutorials, word for word: what is to be saved is saved, and what is typed prints what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from disposable_root import ROOT

TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))
BLOCK = re.compile(r"(?<=\n\n)(?:    .*\n|\n(?=\n*    ))+")
SAVED = re.compile(r"\bsave (?:this|it) as `([\w.-]+)`", re.I)
LEFT_OUT = "…"


class Step(NamedTuple):
    """A file to save, or a command to type, with the text below it."""

    file: str
    command: str
    text: str


def steps_of(page: str) -> list[Step]:
    """Return the steps of a page in their order."""
    steps = []
    end = 0
    for block in BLOCK.finditer(page):
        text = textwrap.dedent(block.group())
        if text.startswith("$ "):
            for typed in re.split(r"^\$ ", text, flags=re.M)[1:]:
                command, _, shown = typed.partition("\n")
                steps.append(Step("", command, shown))
        else:
            (name,) = SAVED.findall(page[end : block.start()])
            steps.append(Step(name, "", text))
        end = block.end()
    return steps


def agrees(printed: str, shown: str) -> bool:
    """Return whether a command printed what the page shows; `…` stands for any text."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = re.escape("\n".join(lines)).replace(re.escape(f"{LEFT_OUT}\n"), "(?:.*\n)*?")
    pattern = pattern.replace(re.escape(LEFT_OUT), "(?s:.*)")
    text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


@pytest.mark.waits
@pytest.mark.timeout(600)  # one of them starts pytest a dozen times
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_goes_as_it_is_written(page: Path, tmp_path: Path) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
        # Other plugins of this environment would take longer to load than the tests take.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "loko_testbed.live.emulation.pytest_plugin",
    }
    steps = steps_of(page.read_text(encoding="utf-8"))
    assert sum(bool(step.command) for step in steps) >= 3
    for step in steps:
        if step.file:
            (tmp_path / step.file).write_text(step.text, encoding="utf-8")
            continue
        done = subprocess.run(
            step.command, shell=True, cwd=tmp_path, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert agrees(done.stdout, step.text), f"$ {step.command}\n{done.stdout}"


def test_output_that_differs_is_seen() -> None:
    shown = "one\n…\nfour in …\n"
    assert agrees("one\ntwo\nthree\nfour in 4 s\n", shown)
    assert agrees("one\nfour in 4 s\n", shown)
    assert not agrees("one\ntwo\nfive in 4 s\n", shown)
    assert not agrees("zero\none\nfour in 4 s\n", shown)


def test_files_and_commands_are_found() -> None:
    page = "# T\n\nSave this as `a.txt`:\n\n    one\n\n      two\n\nThen:\n\n"
    page += "    $ cat a.txt\n    one\n    $ ls\n    …\n"
    assert steps_of(page) == [
        Step("a.txt", "", "one\n\n  two\n"),
        Step("", "cat a.txt", "one\n"),
        Step("", "ls", "…\n"),
    ]
