"""Sums of floating-point numbers without rounding, so that taking away restores what was there."""

from __future__ import annotations

from typing import Final

_BITS: Final = 96
"""Enough for the usual numbers; more are taken as needed."""


class ExactSum:
    """A sum kept as an integer multiple of 2^-k: exact, and so independent of any order."""

    __slots__ = ("_bits", "_total", "_unit", "value")

    def __init__(self, start: float = 0.0) -> None:
        self._bits = _BITS
        self._unit = 1 << _BITS
        self._total = 0
        self.value = 0.0
        """The sum, rounded once to the nearest double; what `math.fsum` gives."""
        self.add(start)

    def add(self, term: float) -> None:
        """Add a finite number. Raises `OverflowError` or `ValueError` for others."""
        multiple = self._multiple(term)  # first: it may rescale the total
        self._total += multiple
        self.value = self._total / self._unit

    def remove(self, term: float) -> None:
        """Take away a number that was added."""
        multiple = self._multiple(term)
        self._total -= multiple
        self.value = self._total / self._unit

    def _multiple(self, term: float) -> int:
        numerator, denominator = float(term).as_integer_ratio()
        shift = self._bits + 1 - denominator.bit_length()
        if shift < 0:
            self._bits -= shift
            self._unit <<= -shift
            self._total <<= -shift
            shift = 0
        return numerator << shift
