"""The numbers of a profile, `{ value, source, range, note }`: nobody has to guess where one comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from loko.document import StrictModel


def _as_tuple(pair: object) -> object:
    return tuple(pair) if isinstance(pair, list) else pair


_Number = TypeVar("_Number", int, float)


class Quantity(StrictModel, Generic[_Number]):
    """A number with its source. The unit is in the name of the field that holds it."""

    value: _Number
    source: str
    """Where it comes from; the profile's head says what each word means."""
    range: Annotated[tuple[_Number, _Number] | None, BeforeValidator(_as_tuple)] = None
    """Lowest and highest value that the source allows."""
    note: str = ""
    standard_error: float | None = None
    """Standard error of a measured number."""
    samples: int | None = None
    """How many samples a measured number rests on."""
    procedure: str = ""
    """The procedures of `loko bench` that gave a measured number."""

    @property
    def is_outside_range(self) -> bool:
        """Whether the value lies outside its range, as when somebody tries another one."""
        return self.range is not None and not self.range[0] <= self.value <= self.range[1]


Count = Quantity[int]
Factor = Quantity[float]


class Section(BaseModel):
    """A section of a profile: its numbers are attributes. The emulator's schema (`profile.json`) lists them.

    A subclass declares what is no such number, or may be absent.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")
    __pydantic_extra__: dict[str, Count] = Field(init=False)

    def __hash__(self) -> int:
        return hash(tuple(str(part) if isinstance(part, list) else part for _, part in self))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Count: ...


def numbers(part: object, key: str = "") -> Iterator[tuple[str, Count | Factor]]:
    """Yield the numbers of a profile, each with its key, such as `pipeline.latency[0].latency_ns`."""
    if isinstance(part, Quantity):
        yield key, part
    elif isinstance(part, BaseModel):
        for name, below in part:
            yield from numbers(below, f"{key}.{name}".lstrip("."))
    elif isinstance(part, list):
        for index, member in enumerate(part):
            yield from numbers(member, f"{key}[{index}]")
