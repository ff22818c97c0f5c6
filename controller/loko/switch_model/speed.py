"""How slow and how fast a device may be: the ends of its profile's ranges, or a factor on all its times.

A bound from above is computed from the slowest device, a bound from below from the fastest. Which end of a
range is the slow one follows from what the number is (docs/model.md, section 16).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from loko.switch_model.device import Device
from loko.switch_model.quantity import Count, Factor, Quantity

MILLION: Final = 1_000_000
_TIMES: Final = ("_ps", "_ns")
"""How the names of times end: the longer, the slower."""
_NO_COSTS: Final = frozenset({"cpu.timers.period_ns", "tolerance.cable_ns"})
"""Times that the device does not work for."""
_LESS_IS_SLOWER: Final = frozenset(
    {
        "cpu.timers.period_ns",
        "cpu.capacity_factor",
        "buffer.packets",
        "buffer.units",
        "buffer.unit_bytes",
        "buffer.pool_bytes",
        "buffer.factor_percent",
        "buffer.reserved_bytes",
        "table.entries",
        "priorities.limit_frames",
        "server.rate_bps",
        "server.buffer_bytes",
        "server.buffer_frames",
    }
)
"""Numbers whose lower end is the slow one. `port_device` takes both ends of those of `buffer`."""
_RATES: Final = frozenset({"server.rate_bps"})
_TOLERANCE: Final = "tolerance."
"""Begins the names of what is allowed for: its upper end is the worse one for every bound."""

_Number = Count | Factor
_Change = Callable[[str, _Number], float]
_AnyDevice = TypeVar("_AnyDevice", bound=Device)


def slowest(device: _AnyDevice) -> _AnyDevice:
    """Return a device with every number at the slow end of its range, or as it is where that is slower."""
    return _changed(device, lambda name, number: _end(number, upper=name not in _LESS_IS_SLOWER, of=name))


def fastest(device: _AnyDevice) -> _AnyDevice:
    """Return a device with every number at the fast end of its range, or as it is where that is faster."""
    return _changed(device, lambda name, number: _end(number, upper=name in _LESS_IS_SLOWER, of=name))


def slowed(device: _AnyDevice, slower_ppm: int) -> _AnyDevice:
    """Return a device that takes longer for everything, by this many millionths, rounded up.

    Links, clocks, cables, the period of its timers and the size of its buffers stay as they are.
    """
    factor = MILLION + slower_ppm

    def longer(name: str, number: _Number) -> float:
        if name in _RATES:
            return int(number.value) * MILLION // factor
        # A cost below 0 is what an action saves: that does not grow.
        if name.endswith(_TIMES) and name not in _NO_COSTS and number.value > 0:
            return -(-int(number.value) * factor // MILLION)
        return number.value

    return _changed(device, longer)


def _end(number: _Number, *, upper: bool, of: str) -> float:
    is_known = of.endswith(_TIMES) or of in _LESS_IS_SLOWER or of.startswith(_TOLERANCE)
    if number.range is None or not is_known:
        return number.value
    if upper or of.startswith(_TOLERANCE):
        return max(number.value, number.range[1])
    return min(number.value, number.range[0])


def _changed(device: _AnyDevice, change: _Change) -> _AnyDevice:
    changed = _rebuilt(device, "", change)
    assert isinstance(changed, type(device))
    return changed


def _rebuilt(part: Any, name: str, change: _Change) -> Any:
    """Return a part of a profile with changed numbers; it is the same object if none changes."""
    if isinstance(part, Quantity):
        value = change(name, part)
        return part if value == part.value else part.model_copy(update={"value": value})
    if isinstance(part, list):
        return [_rebuilt(member, name, change) for member in part]
    if not isinstance(part, BaseModel):
        return part
    update = {}
    for key, old in part:
        new = _rebuilt(old, f"{name}.{key}" if name else key, change)
        if new is not old and new != old:
            update[key] = new
    return part.model_copy(update=update) if update else part
