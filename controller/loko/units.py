"""Numbers with a unit, as people read and write them: 2.3 Mbit/s, 5 ms, 2 frames; factors between units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema

PS_PER_NS: Final = 1_000
"""Profiles state times of the processor in picoseconds."""
NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
US_PER_MS: Final = 1_000
US_PER_S: Final = 1_000_000
BITS_PER_BYTE: Final = 8
BITS_NS_PER_BYTE_S: Final = BITS_PER_BYTE * NS_PER_S
"""Bytes in a span are a rate in bit/s times its nanoseconds, divided by this."""
BPS_PER_MBPS: Final = 1_000_000

_WRITTEN: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,2})?)\s*([A-Za-zµμ/]+)\s*")
_RATES_BPS: Final = {
    f"{prefix}{unit}": Decimal(factor)
    for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9))
    for unit in ("bit/s", "bps")
}
_TIMES_NS: Final = {
    "ns": Decimal(1),
    "us": Decimal(10**3),
    "µs": Decimal(10**3),
    "μs": Decimal(10**3),
    "ms": Decimal(10**6),
    "s": Decimal(10**9),
}
_BYTES: Final = {unit: Decimal(1) for unit in ("byte", "bytes", "B")} | {
    "kB": Decimal(10**3),
    "KiB": Decimal(2**10),
}
_FRAMES: Final = {unit: Decimal(1) for unit in ("frame", "frames", "packet", "packets")}


class Size(NamedTuple):
    """An amount of data, in bytes or in frames of the flow that it belongs to."""

    bytes: float = 0.0
    frames: float = 0.0

    def of(self, frame_bytes: int) -> float:
        """Return the amount in bytes, for a flow with frames of this size."""
        return self.bytes + self.frames * frame_bytes


def rate_bps(written: object) -> float:
    """Read a rate such as "2.3 Mbit/s". Raises `ValueError` in one line."""
    return float(_read(written, _RATES_BPS, "a rate such as 2.3 Mbit/s").value)


def time_ns(written: object) -> float:
    """Read a time such as "5 ms". Raises `ValueError` in one line."""
    return float(_read(written, _TIMES_NS, "a time such as 5 ms").value)


def frame_bytes(written: object) -> int:
    """Read a size in whole bytes, such as "306 bytes". Raises `ValueError` in one line."""
    value = _read(written, _BYTES, "a size such as 306 bytes").value
    if value != int(value):
        raise ValueError(f"'{written}' is no whole number of bytes")
    return int(value)


def size(written: object) -> Size:
    """Read an amount of data such as "2 frames" or "612 bytes". Raises `ValueError` in one line."""
    read = _read(written, _BYTES | _FRAMES, "a size such as 2 frames or 612 bytes")
    amount = float(read.value)
    return Size(frames=amount) if read.unit in _FRAMES else Size(bytes=amount)


_LARGER: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "bit/s": (("Gbit/s", 9), ("Mbit/s", 6), ("kbit/s", 3)),
    "ns": (("s", 9), ("ms", 6), ("us", 3)),
    "us": (("s", 6), ("ms", 3)),
}
"""Larger units of a unit, largest first, each with its power of ten."""
EXACT: Final = 1e15
"""Below this, a double tells one whole number from the next, so all of its digits are significant."""


def readable(values: Sequence[float], unit: str) -> tuple[list[str], str]:
    """Write numbers in the largest common unit in which one of them is 1 or more; of whole ones, every digit.

    What is written can be typed into a list of flows.
    """
    highest = max(map(abs, values))
    larger = (known for known in _LARGER.get(unit, ()) if highest >= 10 ** known[1])
    name, power = next(larger, (unit, 0))
    return [_scaled(value, power) for value in values], name


def _scaled(value: float, power: int) -> str:
    if abs(value) >= EXACT:
        return f"{value / 10**power:g}"
    written = f"{Decimal(str(value)).scaleb(-power):f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def _written(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9].*[A-Za-z]\s*$", "examples": [example]})


Quantity = Annotated[float, Field(gt=0, le=EXACT, allow_inf_nan=False)]
"""A rate in bit/s, a size in bytes or a time in ns as somebody states it: so small that sums are exact."""
Rate = Annotated[float, BeforeValidator(rate_bps), _written("2.3 Mbit/s")]
"""In bit/s, of what is written with a unit."""
Time = Annotated[float, BeforeValidator(time_ns), _written("5 ms")]
"""In nanoseconds."""
FrameSize = Annotated[int, BeforeValidator(frame_bytes), _written("306 bytes")]
"""In bytes."""
Burst = Annotated[Size, BeforeValidator(size), _written("2 frames")]


class _Read(NamedTuple):
    value: Decimal
    """In the base unit."""
    unit: str
    """As written."""


def _read(written: object, units: Mapping[str, Decimal], wanted: str) -> _Read:
    if isinstance(written, int | float):
        raise ValueError(f"{written} has no unit; give {wanted}")
    match = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    if match is None or match.group(2) not in units:
        raise ValueError(f"'{written}' is not {wanted} (units: {', '.join(units)})")
    number, unit = Decimal(match.group(1)), match.group(2)
    if number <= 0:
        raise ValueError(f"'{written}' must be more than nothing")
    if (value := number * units[unit]) > EXACT:
        raise ValueError(f"'{written}' is beyond any network; give {wanted}")
    return _Read(value, unit)
