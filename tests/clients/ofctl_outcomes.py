"""What comes of the commands of `ovs-ofctl`, as `ofctl.yml` holds it, and its table for the documentation.

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
    """One command, and what its reply must hold."""

    command: str
    firmware: str
    shows: str = ""
    quirks: tuple[int, ...] = ()
    why: str = ""

    def works(self, mode: str) -> bool:
        """Whether the reply is expected to hold it."""
        return mode == "spec" or self.firmware == WORKS

    def shown_in(self, text: str) -> bool:
        """Whether a reply holds it."""
        return re.search(self.shows, text) is not None


def load() -> list[Command]:
    """All commands in their order."""
    data = yaml.safe_load((HERE / "ofctl.yml").read_text())
    return [Command(**(fields | {"quirks": tuple(fields.get("quirks", ()))})) for fields in data]


def render(commands: list[Command]) -> str:
    """The outcomes as a table in Markdown."""
    lines = ["| command | firmware | spec | quirks | why |", "|---|---|---|---|---|"]
    for outcome in commands:
        firmware = outcome.firmware if outcome.firmware == WORKS else f"**{outcome.firmware}**"
        quirks = ", ".join(str(number) for number in outcome.quirks)
        lines.append(f"| `{outcome.command}` | {firmware} | {WORKS} | {quirks} | {outcome.why} |")
    return "\n".join(lines) + "\n"


def written(document: str) -> str:
    """The document with the table."""
    return outcomes.written(document, render(load()), BEGIN, END)


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
