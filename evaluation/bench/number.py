"""A number of a profile as a campaign finds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A value in the unit of its name, and where it comes from."""

    value: float
    error: float
    """Standard error; 0 for what is counted."""
    procedures: tuple[str, ...]
    """The procedures of `loko bench` that tell it."""
    samples: int
    note: str = ""
