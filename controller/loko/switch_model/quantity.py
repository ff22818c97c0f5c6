"""A number of a profile, `{ value, source, range, note }`: nobody has to guess where it comes from."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BeforeValidator, Field

from loko.document import StrictModel


def _as_tuple(pair: object) -> object:
    return tuple(pair) if isinstance(pair, list) else pair


Source = Literal["paper", "fit", "count", "datasheet", "assumption", "measured"]
"""Where a number comes from; the profile's head says what each word means."""


_Number = TypeVar("_Number", int, float)


class Quantity(StrictModel, Generic[_Number]):
    """A number with its source. The unit is in the name of the field that holds it."""

    value: _Number
    source: Source
    range: Annotated[tuple[_Number, _Number] | None, BeforeValidator(_as_tuple)] = None
    """Lowest and highest value that the source allows."""
    note: str = ""
    standard_error: Annotated[float, Field(ge=0)] | None = None
    """Standard error of a measured number."""
    samples: Annotated[int, Field(ge=1)] | None = None
    """How many samples a measured number rests on."""
    procedure: str = ""
    """The procedures of `loko bench` that gave a measured number."""

    @property
    def is_outside_range(self) -> bool:
        """Whether the value lies outside its range, as when somebody tries another one."""
        return self.range is not None and not self.range[0] <= self.value <= self.range[1]


Count = Quantity[int]
Factor = Quantity[float]
