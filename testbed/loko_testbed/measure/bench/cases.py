"""The cases of Table 1, as flow tables and frames."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from loko.control.os_ken_messages import flow_mod
from loko.switch_model.scenario import (
    TABLE_1_FRAME_BYTES,
    ActionType,
    Case,
    MatchType,
    PriorityOrder,
    Scenario,
    UsedEntry,
)
from loko_testbed.instruments.numbered_frame import FIELDS, TAG_BYTES
from loko_testbed.instruments.numbered_table import IN_PORT, REWRITING, entries_of, match, output

_BARRIER_S: Final = 0.02
_ENTRY_S: Final = 0.3e-3

_USED: Final[Mapping[str, Any]] = {"in_port": IN_PORT, "dl_vlan": 0xFFFF, **FIELDS}
"""Match fields of the frames that the bench sends, and so of the entry that they hit."""

_STEPS: Final = {PriorityOrder.INCREASING: 1, PriorityOrder.DECREASING: -1}


@dataclass(frozen=True, slots=True)
class SingleFieldMatch:
    """A match on one field only, or on nothing: not in Table 1, but it tells what each field costs."""

    field: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """See `Match.fields`."""
        return () if self.field is None else (self.field,)

    @property
    def value(self) -> str:
        """The name of the match."""
        return f"only-{self.field}" if self.field else "anything"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCase:
    """The dimensions of Table 1 that define a flow table."""

    entries: int
    match: MatchType | SingleFieldMatch
    action: ActionType
    used_entry: UsedEntry = UsedEntry.LAST
    priorities: PriorityOrder = PriorityOrder.INCREASING
    rewrites: int = 1
    """How often each entry repeats its action, if that is not OUTPUT. A Zodiac FX obeys four actions."""
    tagged: bool = False
    """Whether the bench's frames come with a VLAN tag; those of Table 1 have none."""

    def __str__(self) -> str:
        action = f"{self.rewrites} {self.action.value}" if self.rewrites > 1 else self.action.value
        words = (self.match.value, action, self.priorities.value, self.used_entry.value)
        return "/".join((str(self.entries), *words, *(("tagged",) if self.tagged else ())))

    @property
    def grown_bytes(self) -> int:
        """By how many bytes a frame is longer when it leaves than when it came; negative if shorter."""
        if self.action in {ActionType.SET_VLAN_ID, ActionType.SET_VLAN_PCP}:
            return TAG_BYTES * self.rewrites
        return -TAG_BYTES if self.tagged and self.action is ActionType.STRIP_VLAN else 0

    @property
    def skipped_entries(self) -> int:
        """See `Case.skipped_entries`."""
        return self._as_case().skipped_entries

    @property
    def examined_after_hit(self) -> int:
        """See `Case.examined_after_hit`."""
        return self._as_case().examined_after_hit

    def _as_case(self) -> Case:
        return Case(
            entries=self.entries,
            match=self.match if isinstance(self.match, MatchType) else MatchType.ALL,
            action=self.action,
            used_entry=self.used_entry,
            priorities=self.priorities,
            frame_bytes=TABLE_1_FRAME_BYTES[0],
        )


def table_of(case: Case) -> TableCase:
    """Return the flow table of a case."""
    return TableCase(
        entries=case.entries,
        match=case.match,
        action=case.action,
        used_entry=case.used_entry,
        priorities=case.priorities,
    )


def tables(scenario: Scenario | None = None) -> Iterator[tuple[TableCase, tuple[int, ...]]]:
    """Yield the tables of Table 1, or of a part of it, each with the frame lengths to measure it with."""
    yield from _tables(scenario or Scenario())


@lru_cache(maxsize=16)  # the list of figures asks for all of Table 1 nineteen times
def _tables(scenario: Scenario) -> tuple[tuple[TableCase, tuple[int, ...]], ...]:
    return tuple(
        (table, tuple(case.frame_bytes for case in cases))
        for table, cases in itertools.groupby(scenario.cases(), table_of)
    )


def loading_s(entries: int) -> float:
    """Estimate how long it takes to load a table in real time."""
    return _BARRIER_S + entries * _ENTRY_S


def flow_mods(table: TableCase) -> list[bytes]:
    """Return the FLOW_MODs of a table, in table order. Exactly one entry matches the bench's frames."""
    return entries_of(
        table.entries,
        lambda other, priority: flow_mod(
            _match(table.match, other),
            _actions(table.action, table.rewrites),
            priority=priority,
            xid=priority,
        ),
        used_is_first=table.used_entry is UsedEntry.FIRST,
        step=_STEPS[table.priorities],
    )


@lru_cache(maxsize=4096)
def _match(kind: MatchType | SingleFieldMatch, other: int | None) -> Any:
    return match(kind.fields, _USED, other=other, masked=kind is MatchType.MASKED_NW_DST)


@lru_cache
def _actions(action: ActionType, rewrites: int) -> tuple[Any, ...]:
    rewriting = REWRITING.get(action.value)
    return (output(),) if rewriting is None else (*(rewriting() for _ in range(rewrites)), output())
