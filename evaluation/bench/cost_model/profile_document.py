"""The profile that a campaign leads to: the form of another one, with every number that was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from evaluation.bench.choice import Values
from evaluation.bench.cost_model.findings import Findings
from evaluation.bench.cost_model.unmeasured import reason
from evaluation.bench.number import Number

_SIGMAS: Final = 3
_DIGITS: Final = 6
_HEAD: Final = """\
# Measured by `loko bench all`: docs/bench.md.
#
# A number with source = "measured" is what the campaign found: range is three standard errors to each side,
# samples are those that the number occurs in, procedure says how they were taken. All others are those of the
# profile "{form}", which lends the form. Why the campaign did not find them:
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What was measured, when, and with which program; `loko.device.Measurement` reads it."""

    device: str
    date: str
    commit: str
    samples: int
    seed: int


@dataclass(frozen=True, slots=True)
class MeasuredProfile:
    """A profile as text, and which of its numbers the campaign did not measure."""

    text: str
    measured: tuple[str, ...]
    kept: Mapping[str, str]
    """Numbers that are those of the form, and why."""


def quantities(values: Values, prefix: str = "") -> Iterator[tuple[str, Values]]:
    """Every number with a source, by its dotted name."""
    for key, value in values.items():
        if isinstance(value, dict):
            if "value" in value:
                yield prefix + key, value
            else:
                yield from quantities(value, f"{prefix}{key}.")


def measured_profile(
    form: Values, findings: Findings, *, name: str, title: str, origin: Origin
) -> MeasuredProfile:
    """Put what was found into the form."""
    there = dict(quantities(form))
    numbers = {
        key: _number(findings.numbers[key], whole=isinstance(number["value"], int))
        for key, number in there.items()
        if key in findings.numbers
    }
    kept = {key: reason(key) for key in there if key not in numbers}
    head = {"format": form["format"], "name": name, "title": title, "measurement": asdict(origin)}
    body = {
        key: value for key, value in form.items() if key not in {"format", "name", "title", "measurement"}
    }
    text = "".join([*_comment(form["name"], kept), *_tables({**head, **body}, numbers)])
    return MeasuredProfile(text, tuple(numbers), kept)


def profile_text(values: Values) -> str:
    """A profile as a file has it."""
    return "".join(_tables(values, {}))


def _comment(form: str, kept: Mapping[str, str]) -> Iterator[str]:
    yield _HEAD.format(form=form)
    for why in dict.fromkeys(kept.values()):
        names = ", ".join(key for key, one in kept.items() if one == why)
        yield f"#   {names}:\n#     {why}\n"
    yield "\n"


def _number(found: Number, *, whole: bool) -> Values:
    def rounded(value: float) -> float:
        return round(value) if whole else round(value, _DIGITS)

    reach = _SIGMAS * found.error
    values = {
        "value": rounded(found.value),
        "source": "measured",
        "range": [rounded(found.value - reach), rounded(found.value + reach)],
        "standard_error": float(f"{found.error:.3g}"),
        "samples": found.samples,
        "procedure": ", ".join(found.procedures),
    }
    return {**values, "note": found.note} if found.note else values


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
