"""The profile that a campaign produces: the form of another one, with every number that was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from loko_testbed.measure.bench.cost_model.fitted import Fitted
from loko_testbed.measure.bench.device_choice import Values
from loko_testbed.measure.bench.part import ProfileNumber

_SIGMAS: Final = 3
_DIGITS: Final = 6
_REASONS: Final = {
    "ports.count": "counted on the housing; the agent shows only the ports that are its own",
    "ports.tail_tag_bytes": "no frame came out later than the link at the entrance brought it",
    "ports.": "of the standard: the bench's own links have the same",
    "integrated_switch.transit_ps": (
        "each way through the CPU passes it twice: equation 7 counts both as the CPU's, and of the costs of"
        " replies only the sum with both shows; only frames that it forwards by itself tell it (is-time),"
        " if the host of an emulated switch is quick enough for them"
    ),
    "integrated_switch.bridging_jitter_ps": (
        "the longest of all times tells it, and on a real switch that is one that the bench's host prolonged"
    ),
    "integrated_switch.buffer_bytes": (
        "one port fills it by no more than the tag of each frame, a byte, so within 8 s at line rate;"
        " the bench has no second sender"
    ),
    "flow_control.front_ports": "only pause frames into the port of exit tell it; the bench sends none there",
    "flow_control.pause_quanta": "pauses end before it runs out, when the CPU has emptied its ring enough",
    "flow_control.discard_permille": (
        "no burst that was too long showed it, or the host of an emulated switch passes frames on too late:"
        " a pause ends between two frames of the integrated switch"
    ),
    "flow_control.resume_units": "a paused switch that keeps frames does not show the end of the pause",
    "flow_control.": "no burst that was too long showed it",
    "buffer.": "several rules give the same number of frames of every length",
    "tolerance.": "what promises allow for; no clock of the bench is surer than those that it would judge",
    "table.entries": "the switch took every entry that the bench tried",
    "cpu.action.output.": "contained in cpu.base and cpu.per_byte: every frame that comes out has it once",
    "cpu.control.interrupt_ps": "comes with every segment: only its sum with cpu.control.segment_ps shows",
    "cpu.control.acknowledgement_ps": "needs to know when the bench's controller acknowledges",
    "cpu.control.native_": "needs frames on the native port, with a board that keeps its connection itself",
    "cpu.housekeeping.": "the bench cannot switch the unmodified firmware's jobs on",
    "cpu.openflow13.": "measured in sessions of OpenFlow 1.3: --openflow 1.3",
    "cpu.openflow13.unsupported.passes_ps": "a field that the firmware does not know never holds",
    "cpu.console.": "needs typing at the console while frames pass",
}
_OTHERWISE: Final = "its procedure has not been measured, or its samples do not tell it from others"
_HEAD: Final = """\
# Measured by `loko bench all`: docs/bench.md.
#
# A number with source = "measured" is what the campaign found: range is three standard errors to each side,
# samples are those that the number occurs in, procedure says how they were taken. All others are those of the
# profile "{form}", which lends the form. Why the campaign did not find them:
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Origin of a measured profile, which `loko.switch_model.device.Measurement` reads."""

    device: str
    date: str
    commit: str
    samples: int
    seed: int


@dataclass(frozen=True, slots=True)
class MeasuredProfile:
    """A profile as text, and the numbers in it that the campaign did not measure."""

    text: str
    measured: tuple[str, ...]
    kept: Mapping[str, str]
    """Numbers taken over from the form, and why."""


def quantities(values: Values, prefix: str = "") -> Iterator[tuple[str, Values]]:
    """Yield every number that has a source, by its dotted name."""
    for key, value in values.items():
        if isinstance(value, dict):
            if "value" in value:
                yield prefix + key, value
            else:
                yield from quantities(value, f"{prefix}{key}.")


def measured_profile(
    form: Values, fitted: Fitted, *, name: str, title: str, origin: Origin
) -> MeasuredProfile:
    """Put the numbers that were found into the form."""
    there = dict(quantities(form))
    numbers = {
        key: _number(fitted.numbers[key], whole=isinstance(number["value"], int))
        for key, number in there.items()
        if key in fitted.numbers
    }
    kept = {key: reason(key) for key in there if key not in numbers}
    head = {"format": form["format"], "name": name, "title": title, "measurement": asdict(origin)}
    body = {
        key: value for key, value in form.items() if key not in {"format", "name", "title", "measurement"}
    }
    text = "".join([*_comment(form["name"], kept), *_tables({**head, **body}, numbers)])
    return MeasuredProfile(text, tuple(numbers), kept)


def reason(name: str) -> str:
    """Return why the number with this dotted name was not found."""
    keys = [key for key in _REASONS if name == key or (key.endswith((".", "_")) and name.startswith(key))]
    return _REASONS[max(keys, key=len)] if keys else _OTHERWISE


def text_of(values: Values) -> str:
    """Return a profile as the text of its file."""
    return "".join(_tables(values, {}))


def _comment(form: str, kept: Mapping[str, str]) -> Iterator[str]:
    yield _HEAD.format(form=form)
    for why in dict.fromkeys(kept.values()):
        names = ", ".join(key for key, reason in kept.items() if reason == why)
        yield f"#   {names}:\n#     {why}\n"
    yield "\n"


def _number(number: ProfileNumber, *, whole: bool) -> Values:
    def rounded(value: float) -> float:
        return round(value) if whole else round(value, _DIGITS)

    reach = _SIGMAS * number.error
    values = {
        "value": rounded(number.value),
        "source": "measured",
        "range": [rounded(number.value - reach), rounded(number.value + reach)],
        "standard_error": float(f"{number.error:.3g}"),
        "samples": number.samples,
        "procedure": ", ".join(number.procedures),
    }
    return {**values, "note": number.note} if number.note else values


def _tables(values: Values, numbers: Mapping[str, Values], prefix: str = "") -> Iterator[str]:
    """Yield the lines of TOML: plain values and numbers first, then the subtables."""
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
    """Format a value in TOML. Strings and numbers are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
