"""The outcomes of all trials, as recorded in `outcomes.yml`, and their tables for the documentation.

python tests/clients/outcomes.py      writes the tables into docs/clients.md
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
"""`network` means the firmware's behaviour with the connection carried by frames on the native port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one exercise, by mode.

    `spec` is None if that mode is not tried; `network` is None if it gives the same outcome as `firmware`.
    """

    firmware: str
    spec: str | None = None
    network: str | None = None
    quirks: tuple[int, ...] = ()
    log: str = ""
    """The emulator's log lines about it."""
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
        """Return the expected outcome, `works` or `fails`, or None if the mode is not tried."""
        if mode == "spec":
            return self.spec
        return (self.network or self.firmware) if mode == "network" else self.firmware


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """One controller and the outcome of its trial."""

    name: str
    title: str
    trial: str
    exercises: dict[str, Outcome]
    board: dict[str, Any] = field(default_factory=dict)
    """Settings that the board needs for it."""
    note: str = ""
    modes: tuple[str, ...] = MODES

    def expected(self, mode: str, log: str = "") -> dict[str, bool]:
        """Return whether each exercise tried in a mode should work, given the emulator's log."""
        if mode not in self.modes:
            return {}
        expected = {}
        for name, outcome in self.exercises.items():
            result = outcome.expected(mode)
            if result is not None:
                expected[name] = outcome.log not in log if result == DEPENDS else result == WORKS
        return expected


def load() -> list[Controller]:
    """Return all controllers."""
    data = yaml.load(OUTCOMES.read_text(), Loader=yaml.CSafeLoader)
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
    """Return the outcomes as Markdown tables."""
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
    """Return the document with these tables between two markers."""
    before, rest = document.split(begin)
    return before + begin + "\n" + tables + "\n" + end + rest.split(end)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(), render(load())))
