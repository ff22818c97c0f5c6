"""The outcomes of OFTest's tests, as recorded in `oftest.yml`, and their table for the documentation.

python tests/clients/oftest_outcomes.py      writes the table into docs/clients.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from board_network import HOSTS

HERE = Path(__file__).parent
OUTCOMES = HERE / "oftest.yml"
DOCUMENT = HERE.parent.parent / "docs" / "clients.md"
BEGIN, END = "<!-- oftest: begin -->\n", "<!-- oftest: end -->\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason why some tests fail on the board."""

    asks: str
    """The requirement of these tests."""
    board: str
    """The board's behaviour instead."""
    tests: Mapping[str, str]
    """Each test with OFTest's failure message."""
    quirks: tuple[int, ...]
    """The quirks without which all of these tests pass; empty if the board is not the cause."""
    specification: str
    """Why they also fail with `quirks = "spec"`; empty if they pass."""
    also: tuple[str, ...]
    """Other messages that OFTest may give for any of these tests, depending on microseconds."""

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Create a reason from an entry of the file."""
        optional = {"specification": ""}
        several = {key: tuple(data.get(key, ())) for key in ("quirks", "also")}
        reason = cls(**(optional | dict(data) | several))
        if not (reason.quirks or reason.specification):
            raise ValueError(f"neither a quirk nor another reason: {sorted(reason.tests)}")
        return reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """OFTest's standard tests of one version of OpenFlow."""

    passes: tuple[str, ...]
    four_ports: frozenset[str]
    """Tests that assume a fourth port: they also get the board's native port."""
    reasons: tuple[Reason, ...]
    fails_with_specification: Mapping[str, str]
    """Tests that fail only with `quirks = "spec"`, and why."""

    @property
    def fails(self) -> dict[str, Reason]:
        """The tests that fail, with their reasons."""
        return {test: reason for reason in self.reasons for test in reason.tests}

    @property
    def tests(self) -> list[str]:
        """The names of all tests, sorted."""
        return sorted([*self.passes, *(test for reason in self.reasons for test in reason.tests)])

    def hosts(self, test: str) -> tuple[int, ...]:
        """Return the ports at which a test gets an interface."""
        return (*HOSTS, len(HOSTS) + 1) if test in self.four_ports else HOSTS


def load() -> dict[str, Suite]:
    """Return the suites by version of OpenFlow."""
    return {
        version: Suite(
            passes=tuple(data["passes"]),
            four_ports=frozenset(data["four_ports"]),
            fails_with_specification=data["fails_with_specification"],
            reasons=tuple(Reason.parse(reason) for reason in data["fails"]),
        )
        for version, data in yaml.load(OUTCOMES.read_text(), Loader=yaml.CSafeLoader).items()
    }


def render(suites: Mapping[str, Suite]) -> str:
    """Return the outcomes as Markdown tables."""
    parts = []
    for version, suite in suites.items():
        fails = suite.fails
        also = sum(bool(reason.specification) for reason in fails.values())
        lost = "; ".join(f"`{test}`: {why}" for test, why in suite.fails_with_specification.items())
        lines = [
            f"### OpenFlow {version}: {len(suite.passes)} of {len(suite.tests)} pass, {len(fails)} fail",
            "",
            f'With `quirks = "spec"` {len(fails) - also} of those {len(fails)} pass, {also} fail.'
            f" One more fails, which passes with the firmware's behaviour: {lost}.",
            "",
            "| quirks | what the tests require | what the board does | tests that fail |",
            "|---|---|---|---|",
        ]
        lines += [_row(reason) for reason in suite.reasons]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _row(reason: Reason) -> str:
    quirks = ", ".join(str(number) for number in reason.quirks) or "none"
    board = reason.board
    if reason.specification:
        board += f' With `quirks = "spec"`: {reason.specification}'
    tests = f"{len(reason.tests)}: " + ", ".join(f"`{test}`" for test in sorted(reason.tests))
    return f"| {quirks} | {reason.asks} | {board} | {tests} |"


def written(document: str, tables: str) -> str:
    """Return the document with these tables."""
    before, rest = document.split(BEGIN)
    return before + BEGIN + "\n" + tables + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(), render(load())))
