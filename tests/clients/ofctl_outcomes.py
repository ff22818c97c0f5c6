"""The outcomes of `ovs-ofctl` commands, as recorded in `ofctl.yml`, and their table for the documentation.

python tests/clients/ofctl_outcomes.py      writes the table into docs/clients.md
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import outcomes
import yaml
from outcomes import DOCUMENT, HERE, WORKS

BEGIN, END = "<!-- ofctl: begin -->\n", "<!-- ofctl: end -->\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command, and a pattern that its reply must match."""

    command: str
    firmware: str
    shows: str = ""
    quirks: tuple[int, ...] = ()
    why: str = ""

    def works(self, mode: str) -> bool:
        """Return whether the reply is expected to match."""
        return mode == "spec" or self.firmware == WORKS

    def shown_in(self, text: str) -> bool:
        """Return whether a reply matches."""
        return re.search(self.shows, text) is not None


def load() -> list[Command]:
    """Return all commands in their order."""
    data = yaml.safe_load((HERE / "ofctl.yml").read_text())
    return [Command(**(fields | {"quirks": tuple(fields.get("quirks", ()))})) for fields in data]


def render(commands: list[Command]) -> str:
    """Return the outcomes as a Markdown table."""
    lines = ["| command | firmware | spec | quirks | why |", "|---|---|---|---|---|"]
    for outcome in commands:
        firmware = outcome.firmware if outcome.firmware == WORKS else f"**{outcome.firmware}**"
        quirks = ", ".join(str(number) for number in outcome.quirks)
        lines.append(f"| `{outcome.command}` | {firmware} | {WORKS} | {quirks} | {outcome.why} |")
    return "\n".join(lines) + "\n"


def written(document: str) -> str:
    """Return the document with the current table."""
    return outcomes.written(document, render(load()), BEGIN, END)


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
