"""Marks of table I, and the thresholds that decide them: data, with the sentence of the paper behind each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Final

from pydantic import Field

from loko.document import LABS, StrictModel, read

THRESHOLDS: Final = LABS / "predictability" / "thresholds.yml"


class Mark(StrEnum):
    """A mark, as table I prints it."""

    FIT = "+"
    PARTLY = "~"
    UNFIT = "-"
    NOT_JUDGED = "?"


WORDS: Final = {
    Mark.FIT: "fit",
    Mark.PARTLY: "partly",
    Mark.UNFIT: "unfit",
    Mark.NOT_JUDGED: "not judged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionVerdict:
    """The mark of one dimension, why, and the numbers behind it; names of numbers end with their units."""

    mark: Mark
    reasons: tuple[str, ...]
    numbers: dict[str, float] = field(default_factory=dict)


class Threshold(StrictModel):
    """A number that decides a mark, and why."""

    value: float = Field(ge=0)
    where: str
    sentence: str
    """The paper's statement about it, in our words."""


class Thresholds(StrictModel):
    """All thresholds; the names end with their units."""

    software_us: Threshold
    """A median above it is that of a CPU."""
    spread_us: Threshold
    partly_spread_us: Threshold
    cpu_spread_percent: Threshold
    """On a CPU: how much longer than the median of a scenario its longest time may be."""
    influence_us: Threshold
    excess_us: Threshold
    excess_differs_us: Threshold
    buffer_differs_percent: Threshold
    lost_frames: Threshold
    only_listed_entries: Threshold
    """Entries that the switch reports but does not forward."""
    ignored_entries: Threshold
    """Entries that it neither reports nor refuses."""
    unreported_entries: Threshold
    """Entries by which it forwards, although it does not report them."""
    shrinks_percent: Threshold
    """How much a table shrinks from run to run."""
    entry_s: Threshold
    """Time that one entry takes."""
    enough_entries: Threshold


@cache
def thresholds() -> Thresholds:
    """Return the thresholds of the project. Raises `InputError`."""
    return read(THRESHOLDS, Thresholds)
