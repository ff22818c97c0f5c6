"""The profile that a campaign leads to: the form of another one, with every number that was measured."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.bench.findings import Findings
from loko.document import PROFILES, find

_SIGMAS: Final = 3
_LOOP: Final = "cpu.loop_ps"
_SEGMENT: Final = "cpu.control.segment_ps"
_INTERRUPT: Final = "cpu.control.interrupt_ps"
_PS_PER_NS: Final = 1000

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MeasuredProfile:
    """A profile as text, and which of its numbers the campaign did not measure."""

    text: str
    measured: tuple[str, ...]
    kept: tuple[str, ...]
    """Numbers that are those of the form: nothing in the campaign depends on them."""


def form_of(name_or_path: str) -> Values:
    """The values of a profile as they stand in its file. Raises `InputError`."""
    path = find(name_or_path, PROFILES, ".toml", "profile")
    return tomllib.loads(Path(path).read_text(encoding="utf-8"))


def action_offsets(form: Values) -> dict[str, int]:
    """`offset_bytes` of each action: part of the form of the cost model, not of what is measured."""
    return {name: cost["offset_bytes"] for name, cost in form["cpu"]["action"].items()}


def quantities(values: Values, prefix: str = "") -> Iterator[tuple[str, Values]]:
    """Every number with a source, by its dotted name."""
    for key, value in values.items():
        if isinstance(value, dict):
            if "value" in value:
                yield prefix + key, value
            else:
                yield from quantities(value, f"{prefix}{key}.")


def measured_profile(form: Values, findings: Findings, *, name: str, title: str) -> MeasuredProfile:
    """Put what was found into the form."""
    numbers = _measured(findings)
    values = {**form, "name": name, "title": title}
    names = [key for key, _ in quantities(form)]
    return MeasuredProfile(
        "".join(_tables(values, numbers)),
        measured=tuple(key for key in names if key in numbers),
        kept=tuple(key for key in names if key not in numbers),
    )


def _measured(findings: Findings) -> Mapping[str, Values]:
    numbers = {
        key: _number(one.value_ps, one.error_ps, "least squares over all samples")
        for key, one in findings.costs.estimates.items()
    }
    loop_ps = findings.loop_ns * _PS_PER_NS
    numbers[_LOOP] = _number(loop_ps, 0.005 * loop_ps, "width of the samples of each case")
    if _SEGMENT in numbers:
        numbers[_INTERRUPT] = _number(0, 0, "contained in segment_ps: only their sum shows")
    return numbers


def _number(value: float, error: float, note: str) -> Values:
    return {
        "value": round(value),
        "source": "measured",
        "range": [round(value - _SIGMAS * error), round(value + _SIGMAS * error)],
        "note": note,
    }


def _tables(values: Values, numbers: Mapping[str, Values], prefix: str = "") -> Iterator[str]:
    """TOML: plain values and numbers first, then the tables below."""
    below = {}
    for key, value in values.items():
        if isinstance(value, dict) and "value" not in value:
            below[key] = value
        else:
            yield f"{key} = {_toml(numbers.get(prefix + key, value))}\n"
    for key, value in below.items():
        yield f"\n[{prefix}{key}]\n"
        yield from _tables(value, numbers, f"{prefix}{key}.")


def _toml(value: Any) -> str:
    """A value in TOML; strings and numbers are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
