"""Find code by its place: a module defines a constant of a known type."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

_Plugged = TypeVar("_Plugged")


def defined_in(module: str, constant: str, kind: type[_Plugged]) -> _Plugged:
    """Import a module and return its constant. Raises `TypeError` if it defines none of this type."""
    value = getattr(import_module(module), constant, None)
    if not isinstance(value, kind):
        raise TypeError(f"{module}: defines no {constant} that is a {kind.__name__}")
    return value
