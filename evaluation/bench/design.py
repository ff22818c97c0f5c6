"""Which combinations of Table 1 are measured: all, or a fraction that still tells every parameter apart.

In virtual time the whole factorial design takes a minute. In real time it takes hours, and least squares find
the same numbers in far fewer tables: one factor at a time is varied, each where it shows best.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from evaluation.bench.cases import Table, tables
from loko.scenario import TABLE_1_ENTRIES, TABLE_1_FRAME_BYTES, Action, Match, Priorities, UsedEntry

_SIZES: Final = (64, 306, 790, 1516)
"""Costs are straight lines over the length from 64 bytes on: both ends, and two between as a check."""
_ENDS: Final = (TABLE_1_FRAME_BYTES[0], TABLE_1_FRAME_BYTES[-1])
_SHORT, _MIDDLE, _LONG = TABLE_1_ENTRIES[0], TABLE_1_ENTRIES[len(TABLE_1_ENTRIES) // 2], TABLE_1_ENTRIES[-1]

Chosen = tuple[Table, tuple[int, ...]]
"""A table, and the lengths of frames that it is measured with."""


class Design(StrEnum):
    """How much of Table 1 is measured."""

    FULL = "full"
    """Every combination."""
    REDUCED = "reduced"
    """One factor at a time."""


def chosen_tables(design: Design) -> list[Chosen]:
    """The tables of Table 1 that a design measures."""
    return list(tables()) if design is Design.FULL else list(_one_factor_at_a_time())


def throughput_sizes(design: Design, table: Table) -> tuple[int, ...]:
    """Lengths of frames whose throughput on this table of section 3.4.2 a design measures; perhaps none."""
    if design is Design.FULL:
        return TABLE_1_FRAME_BYTES
    usual = table.match is Match.FIVE_TUPLE and table.used_entry is UsedEntry.LAST
    return (_SIZES[0], _SIZES[1], _SIZES[-1]) if usual and table.entries in (_SHORT, _LONG) else ()


def _one_factor_at_a_time() -> Iterator[Chosen]:
    five = Match.FIVE_TUPLE
    # What an action costs shows best where little else takes time.
    yield from ((Table(entries=_SHORT, match=five, action=action), _SIZES) for action in Action)
    for entries in (_MIDDLE, _LONG):
        yield Table(entries=entries, match=five, action=Action.OUTPUT), _SIZES
    for match in Match:
        if match is not five:
            yield Table(entries=_LONG, match=match, action=Action.OUTPUT), _ENDS
    for used in UsedEntry:
        for priorities in Priorities:
            if (used, priorities) != (UsedEntry.LAST, Priorities.INCREASING):
                yield (
                    Table(
                        entries=_LONG,
                        match=five,
                        action=Action.OUTPUT,
                        used_entry=used,
                        priorities=priorities,
                    ),
                    _ENDS,
                )
