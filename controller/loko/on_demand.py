"""Values that are made when somebody first asks for them: of a large network, most are never asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class OnDemand(dict[_Key, _Value]):
    """Values by key; what it iterates over is what has been made so far. `make` gets the key."""

    def __init__(self, make: Callable[[_Key], _Value]) -> None:
        self._make = make

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._make(key)
        return value
