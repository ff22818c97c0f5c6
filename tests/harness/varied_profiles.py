"""Copies of profiles with other numbers, written independently of `loko.switch_model.speed`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from loko.document import PROFILES
from loko.switch_model.device import Device, load_device

Change = Callable[[str, Mapping[str, Any]], float]
"""Returns the new value of a number, by the names of the sections that lead to it and as it is written."""


def numbers_of(part: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers in a part of a profile's document, with the names that lead to them."""
    if isinstance(part, dict):
        if "value" in part:
            yield name, part
            return
        for key, below in part.items():
            yield from numbers_of(below, f"{name}.{key}" if name else key)
    elif isinstance(part, list):
        for place, below in enumerate(part):
            yield from numbers_of(below, f"{name}.{place}")


@cache
def _as_json(profile: str) -> str:
    """Return a profile's document in a form that is parsed much faster than TOML."""
    return json.dumps(tomllib.loads((PROFILES / f"{profile}.toml").read_text(encoding="utf-8")))


def written(part: Any) -> str:
    """Return a part of a profile's document as TOML in one line. Notes are lost."""
    if isinstance(part, dict):
        return "{" + ", ".join(f"{key} = {written(below)}" for key, below in part.items()) + "}"
    if isinstance(part, list):
        return "[" + ", ".join(map(written, part)) + "]"
    return json.dumps(part, ensure_ascii=False)


def varied(folder: Path, profile: str, change: Change) -> Path:
    """Write a copy of a profile with changed numbers. Profiles are cached by path, so each has its own."""
    document = json.loads(_as_json(profile))
    for name, number in numbers_of(document):
        number["value"] = value = change(name, number)
        if "range" in number and not number["range"][0] <= value <= number["range"][1]:
            del number["range"]  # no source supports this value
    path = folder / f"{profile}-{len(list(folder.glob('*.toml')))}.toml"
    lines = (f"{key} = {written(below)}\n" for key, below in document.items())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def loaded(folder: Path, profile: str, change: Change) -> Device:
    """Return the device of such a copy."""
    return load_device(varied(folder, profile, change))


def in_ranges(rng: Random, *, corners: bool) -> Change:
    """Return a change that draws each number from its range: any value, or one of its ends."""

    def drawn(_: str, number: Mapping[str, Any]) -> float:
        if "range" not in number:
            return number["value"]
        low, high = number["range"]
        if corners:
            return rng.choice((low, high))
        between = rng.uniform(low, high)
        return between if isinstance(number["value"], float) else round(between)

    return drawn
