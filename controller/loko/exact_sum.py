"""Sums of floating-point numbers without rounding, so that taking away restores what was there."""

from __future__ import annotations

import math
from typing import Final

_BITS: Final = 96
"""Fractional bits at the start: enough for usual numbers. More are taken as needed."""
_SCALE: Final = float(1 << _BITS)
_INVERSE: Final = 1 / _SCALE


class ExactSum:
    """A sum kept as an integer multiple of 2^-k: exact, and so independent of any order."""

    __slots__ = ("_bits", "_inverse", "_scale", "_total", "value")

    def __init__(self, start: float = 0.0) -> None:
        self._bits = _BITS
        self._scale = _SCALE
        self._inverse = _INVERSE
        self._total = 0
        self.value = 0.0
        """The sum, rounded once to the nearest double; what `math.fsum` gives."""
        if start:
            self.add(start)

    def add(self, term: float) -> None:
        """Add a finite number. Raises `OverflowError` or `ValueError` for others."""
        scaled = term * self._scale  # exact, as the scale is a power of two, unless it overflows
        multiple = int(scaled) if scaled.is_integer() else self._multiple(term)  # may rescale the total
        self._total += multiple
        try:
            # The product is exact; only the conversion of the integer rounds, once.
            self.value = self._total * self._inverse if self._inverse else self._divided()
        except OverflowError:
            self.value = self._divided()

    def remove(self, term: float) -> None:
        """Take away a number that was added."""
        self.add(-term)

    def _divided(self) -> float:
        return self._total / (1 << self._bits)

    def _multiple(self, term: float) -> int:
        """Return the term as a multiple of the unit, after making the unit as small as needed."""
        numerator, denominator = float(term).as_integer_ratio()
        shift = self._bits + 1 - denominator.bit_length()
        if shift < 0:
            self._bits -= shift
            self._total <<= -shift
            self._scale, self._inverse = math.inf, 0.0  # from now on divide: they may not fit a double
            shift = 0
        return numerator << shift
