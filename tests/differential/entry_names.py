"""Match and priority of the entries of a trial, such that no two entries of the same priority overlap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

CHECK_OVERLAP: Final = 2
"""The flag of a FLOW_MOD, in both versions."""
_CHECKED_PRIORITIES: Final = (1, 5, 10, 0xFFFF)
"""Of entries with CHECK_OVERLAP: none of the same priority overlaps another."""
_FIRST_PRIORITY: Final = 100
"""Of other entries: each match has a priority of its own."""


@dataclass(slots=True)
class NamedEntries:
    """The entries that a trial has named so far."""

    meaning: Callable[[bytes], str]
    """Returns what a match means: equal for matches of the same frames."""
    own: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Match and priority of the entries that were drawn without CHECK_OVERLAP, by what the match means."""
    checked: dict[tuple[str, int], tuple[bytes, int]] = field(default_factory=dict)
    """Match and priority of the entries drawn with CHECK_OVERLAP, by the meaning and priority."""

    def draw(self, random: Random, match: bytes, flags: int, *, is_deleted: bool) -> tuple[bytes, int, int]:
        """Return match, priority and flags of an entry: a known one, or one with this match."""
        priority = random.choice(_CHECKED_PRIORITIES)
        if is_deleted and self.checked and random.random() < 0.5:
            return *random.choice(list(self.checked.values())), flags
        key = self.meaning(match), priority
        if flags & CHECK_OVERLAP and key not in self.checked:
            self.checked[key] = (match, priority)
            return match, priority, flags
        if self.own and random.random() < 0.3:
            match = random.choice(list(self.own.values()))[0]
        own = (match, _FIRST_PRIORITY + len(self.own))
        return *self.own.setdefault(self.meaning(match), own), flags & ~CHECK_OVERLAP
