"""The outcomes of all trials, as `outcomes.yml` holds them, and the table of them for the documentation.

python tests/clients/outcomes.py      writes the table into docs/clients.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

HERE = Path(__file__).parent
OUTCOMES = HERE / "outcomes.yml"
DOCUMENT = HERE.parent.parent / "docs" / "clients.md"
SHOWN = ("firmware", "network", "spec")
BEGIN, END = "<!-- outcomes: begin -->\n", "<!-- outcomes: end -->\n"

WORKS, FAILS, DEPENDS = "works", "fails", "depends"
MODES = ("firmware", "spec", "network")
"""`network` is the firmware's behaviour, with the connection carried by frames on the native port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one exercise, by mode. `spec` is None where nothing is to be told apart from the firmware,
    `network` where that changes nothing.
    """

    firmware: str
    spec: str | None = None
    network: str | None = None
    quirks: tuple[int, ...] = ()
    log: str = ""
    """What the emulator says of it."""
    why: str = ""
    instead: str = ""

    @classmethod
    def parse(cls, data: Any) -> Self:
        fields = {"firmware": data} if isinstance(data, str) else dict(data)
        outcome = cls(**(fields | {"quirks": tuple(fields.get("quirks", ()))}))
        assert {outcome.firmware, outcome.spec or WORKS} <= {WORKS, FAILS, DEPENDS}, data
        assert outcome.firmware == WORKS or (outcome.why and outcome.spec), f"why does it fail? {data}"
        return outcome

    def expected(self, mode: str) -> str | None:
        """`works`, `fails`, or None if the mode is not tried."""
        if mode == "spec":
            return self.spec
        return (self.network or self.firmware) if mode == "network" else self.firmware


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """One controller and what came of its trial."""

    name: str
    title: str
    trial: str
    exercises: dict[str, Outcome]
    board: dict[str, Any] = field(default_factory=dict)
    """Settings of the board that it needs."""
    note: str = ""
    modes: tuple[str, ...] = MODES

    def expected(self, mode: str, log: str = "") -> dict[str, bool]:
        """Which exercises are tried in a mode, and whether they work, given what the emulator has said."""
        if mode not in self.modes:
            return {}
        expected = {}
        for name, outcome in self.exercises.items():
            result = outcome.expected(mode)
            if result is not None:
                expected[name] = outcome.log not in log if result == DEPENDS else result == WORKS
        return expected


def load() -> list[Controller]:
    """All controllers."""
    data = yaml.safe_load(OUTCOMES.read_text())
    return [
        Controller(
            name=name,
            **(
                fields
                | {"exercises": {key: Outcome.parse(outcome) for key, outcome in fields["exercises"].items()}}
            ),
        )
        for name, fields in data.items()
    ]


def render(controllers: list[Controller]) -> str:
    """The outcomes as tables in Markdown."""
    parts = []
    for controller in controllers:
        settings = "".join(f", board with `{key} = {value}`" for key, value in controller.board.items())
        lines = [f"### {controller.title}{settings}", ""]
        if controller.note:
            lines += [controller.note.strip(), ""]
        head = ["exercise", *SHOWN, "quirks", "why, and what to do"]
        lines += [_row(head), "|" + "---|" * len(head)]
        for name, outcome in controller.exercises.items():
            quirks = ", ".join(str(number) for number in outcome.quirks)
            remark = " ".join(part.strip() for part in (outcome.why, outcome.instead) if part)
            if outcome.log:
                remark += f" The log: “{outcome.log}”"
            tried = [outcome.expected(mode) if mode in controller.modes else None for mode in SHOWN]
            lines.append(_row([name, *map(_shown, tried), quirks, remark]))
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _shown(result: str | None) -> str:
    if result is None:
        return "not tried"
    return result if result == WORKS else f"**{result}**"


def written(document: str, tables: str, begin: str = BEGIN, end: str = END) -> str:
    """The document with these tables between two marks."""
    before, rest = document.split(begin)
    return before + begin + "\n" + tables + "\n" + end + rest.split(end)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(), render(load())))
