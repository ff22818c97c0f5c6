"""Numbers with a unit, as people read and write them: 2.3 Mbit/s, 5 ms, 2 frames; factors between units."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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

_WRITTEN: Final = re.compile(
    r"\s*([0-9.,'’ \u00a0\u2009\u202f]*[0-9][.,]?(?:[eE][-+]?[0-9]{1,2})?)\s*([A-Za-zµμ/]*)\s*"
)
_GROUPED: Final = re.compile(
    r"[0-9]{1,3}(?:(?P<by>['’ \u00a0\u2009\u202f])[0-9]{3})(?:(?P=by)[0-9]{3})*(?![0-9])"
)
_PREFIXES: Final = (("", 1), ("k", 10**3), ("m", 10**6), ("g", 10**9))
_RATES_BPS: Final = {
    f"{prefix}{unit}": Decimal(factor)
    for prefix, factor in _PREFIXES
    for unit in ("bit/s", "bit/sec", "bits/s", "bits/sec", "bit", "bps", "b/s")
} | {prefix: Decimal(factor) for prefix, factor in _PREFIXES if prefix}
"""By the unit in small letters; a prefix alone is a rate as iperf takes it."""
_TIMES_NS: Final = {
    unit: Decimal(factor)
    for prefix, factor in (("n", 1), ("u", 10**3), ("µ", 10**3), ("μ", 10**3), ("m", 10**6), ("", 10**9))
    for unit in (f"{prefix}s", f"{prefix}sec")
}
_BYTES: Final = {unit: Decimal(1) for unit in ("byte", "bytes", "b")} | {
    "kb": Decimal(10**3),
    "kib": Decimal(2**10),
}
_FRAMES: Final = {unit: Decimal(1) for unit in ("frame", "frames", "packet", "packets")}


class DataSize(NamedTuple):
    """An amount of data, in bytes or in frames of the flow that it belongs to."""

    bytes: float = 0.0
    frames: float = 0.0

    def of(self, frame_bytes: int) -> float:
        """Return the amount in bytes, for a flow with frames of this size."""
        return self.bytes + self.frames * frame_bytes


def rate_bps(written: object) -> float:
    """Read a rate such as "2.3 Mbit/s". Raises `ValueError` in one line."""
    return float(_read(written, _RATE).value)


def time_ns(written: object) -> float:
    """Read a time such as "5 ms". Raises `ValueError` in one line."""
    return float(_read(written, _TIME).value)


def frame_bytes(written: object) -> int:
    """Read a size in whole bytes, such as "306 bytes" or "306". Raises `ValueError` in one line."""
    value = _read(written, _FRAME_SIZE).value
    if value != int(value):
        raise ValueError(f"'{written}' is no whole number of bytes")
    return int(value)


def size(written: object) -> DataSize:
    """Read an amount of data such as "2 frames" or "612 bytes". Raises `ValueError` in one line."""
    read = _read(written, _SIZE)
    amount = float(read.value)
    return DataSize(frames=amount) if read.unit in _FRAMES else DataSize(bytes=amount)


def number(written: str) -> Decimal:
    """Read a number as people write it: 0.3, 0,3, 1 400, 1,400.5. Raises `ValueError` in one line.

    A comma before exactly three digits may be either: that is an error, unless the number begins with 0.
    """
    text = _GROUPED.sub(lambda found: found[0].replace(found["by"], ""), written.strip(), count=1)
    if text.count(",") == 1 and "." not in text:
        whole, _, rest = text.partition(",")
        if re.fullmatch(r"[1-9][0-9]{0,2}", whole) and re.fullmatch(r"[0-9]{3}", rest):
            raise ValueError(f"'{written}' may be {whole}{rest} or {whole}.{rest}; write one of them")
        text = f"{whole}.{rest}"
    elif re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", text):
        text = text.replace(",", "")
    elif re.fullmatch(r"[0-9]{1,3}(\.[0-9]{3})+,[0-9]*", text):
        text = text.replace(".", "").replace(",", ".")
    if not re.fullmatch(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?", text):
        raise ValueError(f"'{written}' is no number")
    return Decimal(text)


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


def rate_text(rate_bps: int) -> str:
    """Write a rate as `rate_bps` reads it, such as 100 Mbit/s."""
    (value,), unit = readable([rate_bps], "bit/s")
    return f"{value} {unit}"


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
Burst = Annotated[DataSize, BeforeValidator(size), _written("2 frames")]


class _UnitTable(NamedTuple):
    """The units that a quantity may have, in small letters, and how it is usually written."""

    units: Mapping[str, Decimal]
    usual: str
    """An example."""
    named: str
    """The units to name in a message."""


_RATE: Final = _UnitTable(_RATES_BPS, "a rate such as 2.3 Mbit/s", "bit/s, kbit/s, Mbit/s, Gbit/s")
_TIME: Final = _UnitTable(_TIMES_NS, "a time such as 5 ms", "ns, us, ms, s")
_FRAME_SIZE: Final = _UnitTable({**_BYTES, "": Decimal(1)}, "a size such as 306 bytes", "bytes, kB, KiB")
_SIZE: Final = _UnitTable(
    {**_BYTES, **_FRAMES}, "a size such as 2 frames or 612 bytes", "bytes, kB, KiB, frames"
)


class _ParsedQuantity(NamedTuple):
    value: Decimal
    """In the base unit."""
    unit: str
    """In small letters."""


def _read(written: object, quantity: _UnitTable) -> _ParsedQuantity:
    if isinstance(written, int | float):
        if "" in quantity.units:
            written = f"{written}"
        else:
            raise ValueError(f"{written} has no unit; give {quantity.usual}")
    match = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    unit = match.group(2).lower() if match else ""
    if match is None or unit not in quantity.units:
        raise ValueError(f"'{written}' is not {quantity.usual} (units: {quantity.named})")
    value = number(match.group(1))
    if value <= 0:
        raise ValueError(f"'{written}' must be more than nothing")
    _refuse_ambiguous(value, match.group(2), quantity)
    value *= quantity.units[unit]
    if value > EXACT:
        raise ValueError(f"'{written}' is beyond any network; give {quantity.usual}")
    return _ParsedQuantity(value, unit)


def _refuse_ambiguous(value: Decimal, unit: str, quantity: _UnitTable) -> None:
    """Raise `ValueError` for units that some take for bits and some for bytes, or for 1,000 or 1,024."""
    if quantity is _RATE and re.fullmatch(r"[kKmMgG]?B(/s|/S|/sec|ps|PS)", unit):
        prefix = {"k": "k", "m": "M", "g": "G"}.get(unit[0].lower(), "")
        either = f"{value:f} {prefix}bit/s or {8 * value:f} {prefix}bit/s"
        raise ValueError(f"'{value:f} {unit}' may be bits or bytes; write {either}")
    if quantity is not _RATE and unit in {"b", "kb", "Kb"}:
        raise ValueError(f"'{value:f} {unit}' may be bits or bytes; write bytes or kB")
    if unit == "KB":
        raise ValueError(
            f"'{value:f} {unit}' may be {1000 * value:f} or {1024 * value:f} bytes; write kB or KiB"
        )


def in_ms(value_ns: float | None, rounded: Callable[[float], int]) -> str:
    """Format a time in ms to whole microseconds. `rounded` rounds so that no promise is too good."""
    return "" if value_ns is None else f"{rounded(value_ns / NS_PER_US) / US_PER_MS:.3f}"
