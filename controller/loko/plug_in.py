"""Find code by its place: a module of ours defines a constant, or another package has an entry point."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from loko.document import InputError


class PlugInGroup(NamedTuple):
    """A group of other packages' entry points (docs/plug-ins.md)."""

    name: str
    adds: str
    """Name, in words, of the things that its entry points add."""


SCHEMES: Final = PlugInGroup("loko.schemes", "admission schemes")
DEVICES: Final = PlugInGroup("loko.devices", "device profiles")

_Plugged = TypeVar("_Plugged")


def defined_in(module: str, constant: str, kind: type[_Plugged]) -> _Plugged:
    """Import a module and return its constant. Raises `TypeError` if it defines none of this type."""
    value = getattr(import_module(module), constant, None)
    if not isinstance(value, kind):
        raise TypeError(f"{module}: defines no {constant} that is a {kind.__name__}")
    return value


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """The entry points of all packages. Cached: to find them takes 20 ms."""
    found = entry_points()
    return tuple(point for group in found.groups for point in found.select(group=group))


@cache
def plug_ins(group: PlugInGroup) -> Mapping[str, EntryPoint]:
    """Return the entry points of other packages by name. Raises `InputError` if two have the same name."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(point for point in _installed() if point.group == group.name):
        if point.name in found:
            raise InputError(told_of_both(f"plug-in '{point.name}'", found[point.name], point))
        found[point.name] = point
    return found


def names_with(ours: Collection[str], group: PlugInGroup) -> tuple[str, ...]:
    """Return our names, and those of other packages after them.

    Raises `InputError` if another package has a name of ours.
    """
    others = plug_ins(group)
    for name, point in others.items():
        refuse_ours(name, ours, point, group)
    return (*ours, *others)


def refuse_ours(name: str, ours: Collection[str], point: EntryPoint, group: PlugInGroup) -> None:
    """Raise `InputError` if the name of something in a plug-in is one of ours."""
    if name in ours:
        raise InputError(
            f"{_said(point)}: '{name}' is the name of one of our {group.adds}; rename or uninstall it"
        )


def told_of_both(what: str, one: EntryPoint, other: EntryPoint) -> str:
    """Return the error that two packages have something of the same name."""
    return f"{what} is of both {package_of(one)} and {package_of(other)}; uninstall one"


def package_of(point: EntryPoint) -> str:
    """Return the name and version of the package that an entry point is of, such as ``loko-jitter 1.0``."""
    return " ".join(version_of(point).popitem()) if point.dist else point.value


def version_of(point: EntryPoint) -> dict[str, str]:
    """Return the version of the package that an entry point is of by its name; empty if it is of none."""
    return {point.dist.name: point.dist.version} if point.dist else {}


def loaded(point: EntryPoint, kind: type[_Plugged]) -> _Plugged:
    """Import what an entry point names. Raises `InputError` if that fails, or has another type."""
    try:
        value = point.load()
    except Exception as error:
        raise unusable(point, f"cannot be loaded: {error}") from error
    if not isinstance(value, kind):
        raise unusable(point, f"{point.value} is no {kind.__name__}")
    return value


def folder_of(point: EntryPoint) -> Path:
    """Return the folder of an entry point's module, which is not imported. Raises `InputError`."""
    try:
        found = find_spec(point.module)
    except ImportError:
        found = None
    if found is None or found.origin is None:
        raise unusable(point, f"there is no module {point.module}")
    return Path(found.origin).parent


def unusable(point: EntryPoint, why: str) -> InputError:
    """Return the error that a plug-in does not work."""
    return InputError(f"{_said(point)}: {why}; mend or uninstall it")


def _said(point: EntryPoint) -> str:
    return f"plug-in '{point.name}' of {package_of(point)}"
