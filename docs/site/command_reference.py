"""The directive `commands`: the help of every command of `loko`, as its users see it at 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import Directive
from typer.testing import CliRunner

from loko_testbed.cli.main import COMMANDS, app, load

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Commands(Directive):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """Build the sections."""
        sections: list[nodes.Node] = []
        for words in every_command():
            name = " ".join(["loko", *words])
            section = nodes.section(ids=[nodes.make_id(name)])
            text = help_of(words)
            section += [nodes.title(text=name), nodes.literal_block(text, text, language="none")]
            sections.append(section)
        return sections


def every_command() -> Iterator[list[str]]:
    """Yield the words after `loko` of each command and of each group's commands, in their order."""
    yield []
    waiting = [([name], load(name)) for name in COMMANDS]
    while waiting:
        words, command = waiting.pop(0)
        yield words
        parts: dict[str, Any] = getattr(command, "commands", {})
        waiting[:0] = [([*words, name], part) for name, part in parts.items()]


def help_of(words: list[str]) -> str:
    """Return the output of `loko WORDS --help`. Raises `RuntimeError` if that fails."""
    runner = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"})
    done = runner.invoke(app, [*words, "--help"], prog_name="loko")
    if done.exit_code != 0:
        raise RuntimeError(f"loko {' '.join(words)} --help: status {done.exit_code}: {done.output}")
    lines = _STYLE.sub("", done.output).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
