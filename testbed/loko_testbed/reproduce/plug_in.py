"""Find code by its place: a module of ours defines a constant, or another package has an entry point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar

from loko.document import InputError

FIGURE_TYPES: Final = "loko_testbed.figure_types"
"""Group of the entry points of other packages' figure types (docs/plug-ins.md)."""

_Plugged = TypeVar("_Plugged")


def defined_in(module: str, constant: str, kind: type[_Plugged]) -> _Plugged:
    """Import a module and return its constant. Raises `TypeError` if it defines none of this type."""
    value = getattr(import_module(module), constant, None)
    if not isinstance(value, kind):
        raise TypeError(f"{module}: defines no {constant} that is a {kind.__name__}")
    return value


@cache
def plug_ins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of other packages by name. Raises `InputError` if two have the same name."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group)):
        if point.name in found:
            packages = f"{package_of(found[point.name])} and {package_of(point)}"
            raise InputError(f"plug-in '{point.name}' is of both {packages}; uninstall one")
        found[point.name] = point
    return found


def package_of(point: EntryPoint) -> str:
    """Return the name and version of the package that an entry point is of, such as ``loko-jitter 1.0``."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def loaded(point: EntryPoint, kind: type[_Plugged]) -> _Plugged:
    """Import what an entry point names. Raises `InputError` if that fails, or has another type."""
    try:
        value = point.load()
    except Exception as error:
        raise _unusable(point, f"cannot be loaded: {error}") from error
    if not isinstance(value, kind):
        raise _unusable(point, f"{point.value} is no {kind.__name__}")
    return value


def folder_of(point: EntryPoint) -> Path:
    """Return the folder of an entry point's module, which is not imported. Raises `InputError`."""
    try:
        found = find_spec(point.module)
    except ImportError:
        found = None
    if found is None or found.origin is None:
        raise _unusable(point, f"there is no module {point.module}")
    return Path(found.origin).parent


def _unusable(point: EntryPoint, why: str) -> InputError:
    return InputError(f"plug-in '{point.name}' of {package_of(point)}: {why}; mend or uninstall it")
