"""The document of a table, and the check of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

from pydantic import Field

from loko_testbed.reproduce.facts import Fact
from loko_testbed.reproduce.figure import (
    NOTHING_MEASURED,
    Claim,
    Evidence,
    FixedScheme,
    Judgement,
    LabFigure,
    NotTestable,
    NumberCheck,
)
from loko_testbed.reproduce.result import Printed
from loko_testbed.simulation.options import Options

Column = Literal["R_mbps", "T_ms", "max_rate_mbps", "max_burst_kB", "max_delay_ms"]
COLUMNS: Final[tuple[Column, ...]] = get_args(Column)


def cell_name(row: str, column: str) -> str:
    """Return the name of a cell, by which its printed number is found."""
    return f"{row}/{column}"


class Rounds(NumberCheck):
    """A cell of the table rounds to the printed value."""

    kind: Literal["rounds"]
    row: FixedScheme
    column: Column
    decimals: int = Field(ge=0)

    def tolerance(self, fact: Fact) -> str:
        """See `Check.tolerance`."""
        return f"rounds to {fact.number:.{self.decimals}f}"

    def printed(self, fact: Fact, _paper: str) -> Printed:
        """See `Check.printed`."""
        text = f"{fact.number:.{self.decimals}f}"
        return Printed(
            finding=cell_name(self.row, self.column), value=fact.number, text=text, fact=fact.reference
        )

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        table = evidence.table
        if table is None:
            return NotTestable(why="there is no table")
        row = next((row for row in table.rows if row[0] == self.row), None)
        value = row[table.columns.index(self.column)] if row is not None else None
        if value is None or isinstance(value, str):
            return NOTHING_MEASURED
        tolerance = 0.5 * 10**-self.decimals
        return f"{value:.{self.decimals + 2}f}", abs(value - evidence.fact.number) <= tolerance


class TableClaim(Claim):
    """A claim on a cell of the table."""

    check: Rounds


class TableFigure(LabFigure):
    """A table of values that the controller computes. Nothing is sent."""

    kind: Literal["table"]
    claims: Sequence[TableClaim] = Field(min_length=1)
    schemes: list[FixedScheme] = Field(min_length=1)

    def shorter(self, _options: Options) -> str:
        """See `Figure.shorter`. The table is always computed in full."""
        return ""
