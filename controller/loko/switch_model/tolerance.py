"""Tolerances of guarantees beyond a device's own numbers (docs/model.md, section 14).

A rate is promised in the clock of its sender and served in the clock of the board. `Tolerance.stretch`
converts between the two, and every admission scheme uses it.
"""

from __future__ import annotations

from typing import Final, Self

from loko.document import StrictModel
from loko.switch_model.quantity import Count

_PER_PPM: Final = 1e-6


class Tolerance(StrictModel):
    """How far clocks may be off, and how long cables may be."""

    board_clock_ppm: Count
    """How far the device's clocks may be off, slow or fast, in millionths."""
    sender_clock_ppm: Count
    """How far the clock of a host that sends to the device may be off, slow or fast, in millionths."""
    cable_ns: Count
    """How long a signal may take through a cable."""

    @property
    def stretch(self) -> float:
        """How much time the fastest sender's clock counts while the slowest clock counts 1: at least 1.

        A rate is promised in the clock of its sender. So a time of the device is longer by this factor, and
        its rate is lower by it.
        """
        fastest = 1 + _PER_PPM * self.sender_clock_ppm.value
        slowest = 1 - _PER_PPM * max(self.board_clock_ppm.value, self.sender_clock_ppm.value)
        return fastest / slowest

    @property
    def shrink(self) -> float:
        """How much time the fastest sender's clock counts at least while the device's counts 1: at most 1."""
        fastest_device = 1 + _PER_PPM * self.board_clock_ppm.value
        return min(1.0, (1 + _PER_PPM * self.sender_clock_ppm.value) / fastest_device)


def _assumed(value: int, note: str) -> Count:
    return Count(value=value, source="assumption", note=note)


UNSTATED: Final = Tolerance(
    board_clock_ppm=_assumed(100, "as of the Zodiac FX"),
    sender_clock_ppm=_assumed(100, "as of the Zodiac FX"),
    cable_ns=_assumed(556, "100 m"),
)
"""The tolerance of a device whose profile states none."""
EXACT: Final = Tolerance(
    board_clock_ppm=_assumed(0, "exact"), sender_clock_ppm=_assumed(0, "exact"), cable_ns=_assumed(0, "none")
)
"""No tolerance, as in the papers: one clock for all, and cables that take no time."""


class Tolerant(StrictModel):
    """The part that every profile has: how far off clocks and cables may be."""

    tolerance: Tolerance = UNSTATED

    def __repr__(self) -> str:
        """Show the name only; the whole profile has two hundred lines."""
        return f"{type(self).__name__}({getattr(self, 'name', '')!r})"

    __str__ = __repr__

    def with_exact_clocks(self) -> Self:
        """Return the profile with the clocks of the papers: one for all, and cables that take no time."""
        return self.model_copy(update={"tolerance": EXACT})
