"""Values that are made on first use: in a large network, most are never needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class LazyMapping(dict[_Key, _Value]):
    """Values by key, each made by `make(key)` on first use. Iteration covers those made so far."""

    def __init__(self, make: Callable[[_Key], _Value]) -> None:
        self._make = make

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._make(key)
        return value
