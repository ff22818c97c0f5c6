"""Which deviations of the firmware emulated boards have: as settings, options and environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import switch_emulator

from loko.document import InputError
from loko.switch_model.device import Profile
from loko.topology.lab import Backend, Lab

Quirks = str | dict[str, list[str]]
"""A board's setting `quirks`: "firmware", "spec", {"without": names} or {"only": names}."""
VARIABLE: Final = "LOKO_QUIRKS"
"""Environment variable with such a setting in JSON, for boards of tests that name none."""
_KEY: Final = "quirks"


def without(names: Iterable[str], quirks: object = "firmware") -> Quirks:
    """Return the setting `quirks` with these deviations switched off as well."""
    off = list(dict.fromkeys(names))
    match quirks:
        case "firmware":
            return {"without": off}
        case {"without": list(before)}:
            return {"without": list(dict.fromkeys([*before, *off]))}
        case {"only": list(before)}:
            return {"only": [name for name in before if name not in off]}
    return "spec"


def has_quirk(quirks: object, name: str) -> bool:
    """Return whether a board with this setting has the deviation of this name."""
    match quirks:
        case {"without": off}:
            return name not in off
        case {"only": on}:
            return name in on
    return quirks == "firmware"


def check_quirks(quirks: object, where: str, *, config: Mapping[str, object] | None = None) -> None:
    """Raise `InputError` in one line that begins with `where`, unless a board can have these deviations.

    `config` holds the board's other settings.
    """
    try:
        switch_emulator.Board(config={**(config or {}), _KEY: quirks})
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {error}") from None


def with_quirks(lab: Lab, quirks: Quirks, where: str = _KEY) -> Lab:
    """Return the lab with this setting in all its boards.

    Raises `InputError`, which begins with `where`, if a switch is no emulated board or cannot have it.
    """
    return _changed(lab, lambda _: quirks, where)


def without_quirks(lab: Lab, names: Sequence[str], where: str) -> Lab:
    """Return the lab with these deviations switched off in all its boards, beside those that it switches off.

    Raises `InputError`, which begins with `where`, if a name is unknown or a switch is no emulated board.
    """
    return _changed(lab, lambda before: without(names, before), where)


def _changed(lab: Lab, change: Callable[[object], Quirks], where: str) -> Lab:
    switches = {}
    for name, switch in lab.switches.items():
        if switch.backend is not Backend.FIRMWARE or not isinstance(switch.profile, Profile):
            raise InputError(f"{where}: {name} is no emulated Zodiac FX, so its behaviour cannot be chosen")
        quirks = change(switch.config.get(_KEY, "firmware"))
        check_quirks(quirks, f"{where}, {name}", config=switch.config)
        switches[name] = replace(switch, config={**switch.config, _KEY: quirks})
    return replace(lab, switches=switches)


def from_environment() -> Quirks | None:
    """Return the setting that the environment names; None if it names none. Raises `InputError`."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return None
    try:
        quirks: Quirks = json.loads(text)
    except ValueError:
        raise InputError(f"{VARIABLE}: {text} is no JSON; write '\"spec\"' with the inner quotes") from None
    check_quirks(quirks, VARIABLE)
    return quirks
