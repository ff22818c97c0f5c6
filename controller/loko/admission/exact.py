"""Sums of floating-point numbers without rounding, so that taking away restores what was there."""

from __future__ import annotations

from typing import Final

_BITS: Final = 1074
"""Every finite double is a multiple of 2^-1074."""
_UNIT: Final = 1 << _BITS


class ExactSum:
    """A sum kept as an integer multiple of the least double: exact, and so independent of any order."""

    __slots__ = ("_total", "value")

    def __init__(self, start: float = 0.0) -> None:
        self._total = _multiple(start)
        self.value = start
        """The sum, rounded once to the nearest double; what `math.fsum` gives."""

    def add(self, term: float) -> None:
        """Add a finite number. Raises `OverflowError` or `ValueError` for others."""
        self._total += _multiple(term)
        self.value = self._total / _UNIT

    def remove(self, term: float) -> None:
        """Take away a number that was added."""
        self._total -= _multiple(term)
        self.value = self._total / _UNIT


def _multiple(term: float) -> int:
    numerator, denominator = float(term).as_integer_ratio()
    return numerator << (_BITS + 1 - denominator.bit_length())
