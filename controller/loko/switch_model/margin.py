"""How much slower switches may be before a promise falls (docs/model.md, section 16)."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

_MOST_PPM: Final = 9_000_000
"""Ten times as slow: no more is tried."""
_FIRST_PPM: Final = 1_000
_RESOLUTION_PPM: Final = 100
_PPM_PER_PERCENT: Final = 10_000


class GuaranteeKind(StrEnum):
    """The two promises about the frames of a flow, named by what happens if they fall."""

    LOSS = "loss"
    LATENESS = "lateness"


_SAID: Final = {GuaranteeKind.LOSS: "frames may be lost", GuaranteeKind.LATENESS: "frames may be late"}


class MarginLimit(NamedTuple):
    """A promise that need not hold, and the first switch where it does not."""

    switch: str
    promise: GuaranteeKind

    def __str__(self) -> str:
        return f"{_SAID[self.promise]}, first at {self.switch}"


LimitTest = Callable[[int], MarginLimit | None]
"""Returns what falls for a set of flows if switches take longer by up to so many millionths, if anything.

Some switches may be slower than others. It has a copy of all that changes, so any thread may call it.
"""


class Margin(NamedTuple):
    """How much longer every switch may take for everything, with all promises of a set of flows kept."""

    slower_ppm: int
    """In millionths of the profile's times, rounded down. 0: nothing at all."""
    beyond: MarginLimit | None
    """First failure beyond that; None if nothing does, up to ten times the profile's times."""

    def describe(self, *, is_robust: bool) -> str:
        """Return it in words. If `is_robust`, the times are those at the slow ends of the ranges."""
        said = "the slow ends of its profile's ranges say" if is_robust else "its profile says"
        if self.beyond is None:
            return f"every switch may take {1 + self.slower_ppm // 1_000_000} times as long as {said}"
        if not self.slower_ppm:
            return f"no slack: if a switch takes longer than {said}, {self.beyond}"
        return (
            f"every switch may take up to {in_percent(self.slower_ppm)} % longer than {said};"
            f" beyond that, {self.beyond}"
        )

    def as_values(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        switch, promise = self.beyond or (None, None)
        return {
            "slower_ppm": self.slower_ppm,
            "limited_by": None if promise is None else {"switch": switch, "promise": promise.value},
        }


def in_percent(slower_ppm: int) -> str:
    """Format millionths as a percentage, rounded down."""
    return f"{slower_ppm // _RESOLUTION_PPM * _RESOLUTION_PPM / _PPM_PER_PERCENT:.2f}"


def margin(falls: LimitTest) -> Margin:
    """Return the largest margin with which nothing falls, by bisection.

    What is returned has itself been checked, so it holds whether or not what falls rises with the time.
    """
    held_ppm, tried_ppm = 0, 0
    while (beyond := falls(tried_ppm)) is None:
        held_ppm = tried_ppm
        if held_ppm == _MOST_PPM:
            return Margin(held_ppm, None)
        tried_ppm = min(max(4 * held_ppm, _FIRST_PPM), _MOST_PPM)
    while tried_ppm - held_ppm > _RESOLUTION_PPM:
        middle_ppm = (held_ppm + tried_ppm) // 2
        if (fall := falls(middle_ppm)) is None:
            held_ppm = middle_ppm
        else:
            tried_ppm, beyond = middle_ppm, fall
    return Margin(held_ppm, beyond)
