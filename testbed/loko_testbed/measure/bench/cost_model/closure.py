"""Closure check: the profile found for an emulated switch, beside the switch's own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from loko.switch_model.allocation import ALLOCATION_RULES, allocate
from loko.switch_model.device import Profile
from loko.switch_model.scenario import ActionType, MatchType, Scenario
from loko.switch_model.service_curve import service_curve
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.cases import tables
from loko_testbed.measure.bench.cost_model.fitted import Fitted, fit
from loko_testbed.measure.bench.cost_model.profile_document import (
    MeasuredProfile,
    Origin,
    measured_profile,
    quantities,
    reason,
)
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.device_choice import Values, form_of
from loko_testbed.measure.bench.part import MeasurementPart
from loko_testbed.measure.bench.procedures import EVERY_PROCEDURE, dp_time, throughput
from loko_testbed.measure.bench.procedures.buffer import SLOWEST
from loko_testbed.measure.bench.store import SampleStore

VIRTUAL_TOLERANCE: Final = 0.01
LIVE_TOLERANCE: Final = 0.03
MODEL_TOLERANCE: Final = 0.02

_REPLIES: Final = (
    "barrier",
    "description",
    "echo",
    "features",
    "flow_refused",
    "flow_statistics",
    "get_config",
    "port_statistics",
    "send",
    "table_statistics",
    "vendor",
)
_REPLIES_13: Final = (
    "description",
    "features",
    "multipart",
    "port_description",
    "port_statistics",
    "refused",
    "role",
    "table_features",
    "table_statistics",
)
_SUMS: Final[Mapping[str, Mapping[str, float]]] = {
    "cpu.control.segment_ps": {"cpu.control.interrupt_ps": 1.0},
    "cpu.control.acknowledgement_ps": {"cpu.control.interrupt_ps": 1.0},
    **{f"cpu.control.{reply}_ps": {"integrated_switch.transit_ps": 2.0} for reply in _REPLIES},
    **{f"cpu.openflow13.{reply}_ps": {"integrated_switch.transit_ps": 2.0} for reply in _REPLIES_13},
}
"""Numbers that only show in sums with others, as messages and replies also pass the integrated switch."""
_LIKE: Final = (
    ("per_byte_ps", "cpu.per_byte_ps"),
    ("cpu.entry.", "cpu.entry.base_ps"),
    ("cpu.housekeeping.", "cpu.housekeeping.link_status_ps"),
)
"""If a number's true value is 0, its error is a share of this number of the same kind."""


@dataclass(frozen=True, slots=True)
class ClosureRow:
    """A number, or the sum in which it shows."""

    name: str
    true: float
    found: float
    error: float
    """Error as a share of the true number."""


@dataclass(frozen=True, slots=True)
class Closure:
    """All numbers of a profile that were found, and the reasons why the others were not."""

    rows: tuple[ClosureRow, ...]
    kept: Mapping[str, str]

    def outside(self, tolerance: float) -> list[ClosureRow]:
        """Return the rows with an error above the tolerance."""
        return [row for row in self.rows if not abs(row.error) <= tolerance]


def closure(values: Values, true: Values) -> Closure:
    """Compare a profile that a campaign found with the true one of the switch that it measured."""
    numbers, truth = (
        dict(quantities(values)),
        {key: float(quantity["value"]) for key, quantity in quantities(true)},
    )
    values = {key: float(number["value"]) for key, number in numbers.items()}
    rows = []
    for key in truth:
        if numbers[key]["source"] != "measured":
            continue
        others = _SUMS.get(key, {}).items()
        terms = {key: 1.0} | {term: times for term, times in others if numbers[term]["source"] != "measured"}
        there = sum(times * truth[term] for term, times in terms.items())
        here = sum(times * values[term] for term, times in terms.items())
        rows.append(ClosureRow(_sum_name(terms), there, here, (here - there) / _scale(key, there, truth)))
    return Closure(tuple(rows), {key: reason(key) for key in truth if numbers[key]["source"] != "measured"})


def _sum_name(terms: Mapping[str, float]) -> str:
    first, *others = terms
    return " + ".join([first, *(f"{terms[term]:g} {term}".removeprefix("1 ") for term in others)])


def _scale(key: str, value: float, truth: Mapping[str, float]) -> float:
    if value:
        return abs(value)
    return next((abs(truth[like]) for kind, like in _LIKE if kind in key), abs(truth["cpu.base_ps"]))


def model_errors(profile: Profile, true: Profile) -> dict[str, float]:
    """Return by what share Table 2 differs when computed from the found profile instead of the true one."""
    here, there = (dict(_table_2(profile)) for profile in (profile, true))
    return {key: here[key] / value - 1 for key, value in there.items()}


def _table_2(profile: Profile) -> Iterator[tuple[str, float]]:
    scenario = Scenario(
        entries=17, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT, packet_sizes_bytes=(306,)
    )
    service = service_curve(profile, scenario)
    yield "R", service.rate_bps
    yield "T", service.curve.latency_ns
    for scheme in ALLOCATION_RULES.values():
        allocation = allocate(service, scheme)
        yield f"{scheme.name}, rate", allocation.max_rate_bps
        yield f"{scheme.name}, burst", allocation.max_burst_bytes
        yield f"{scheme.name}, delay", allocation.delay_ns


_SPREAD: Final = 0.3
_FACTORS: Final = (0.94, 1.06)
_UNITS: Final = (16, 48)
_ROOM_PERMILLE: Final = (500, 2000)
_UNIT_BYTES: Final = (100, 260)


def perturb(form: Mapping[str, Any], seed: int) -> Values:
    """Return a switch that nobody has seen: costs, loop and timer up to 30 % off, another buffer."""
    random = np.random.default_rng(seed)
    values: Values = copy.deepcopy(dict(form))
    for key, number in quantities(values):
        number.pop("range", None)
        number["source"] = "assumption"
        if key == "cpu.capacity_factor":
            number["value"] = round(float(random.uniform(*_FACTORS)), 4)
        elif key == "buffer.units":
            number["value"] = int(random.integers(*_UNITS))
        elif key == "flow_control.resume_units":
            number["value"] = int(random.integers(0, values["buffer"]["units"]["value"] // 2))
        elif key == "flow_control.discard_permille":
            number["value"] = int(random.integers(*_ROOM_PERMILLE))
        elif key == "buffer.unit_bytes":
            number["value"] = int(random.integers(*_UNIT_BYTES))
        elif key.endswith("_ps") or key == "cpu.timers.period_ns":
            number["value"] = round(number["value"] * float(random.uniform(1 - _SPREAD, 1 + _SPREAD)))
    return values


def parts(*, samples: int, every: int) -> list[MeasurementPart]:
    """Return the parts of a shorter campaign that finds every number.

    It measures one of `every` tables of Table 1, and leaves out the figures.
    """
    usual = {dp_time.PROCEDURE.key(table) for table, _ in tables()}
    every_part = campaign.parts(EVERY_PROCEDURE, samples=samples)
    of_table_1 = [part.key for part in every_part if part.key in usual]
    kept = {dp_time.PROCEDURE.key(SLOWEST), *of_table_1[::every]}
    left_out = set(of_table_1) - kept
    return [
        part
        for part in every_part
        if part.key.procedure != throughput.PROCEDURE.name and part.key not in left_out
    ]


def recover(
    device: BenchDevice,
    store: SampleStore,
    todo: Sequence[MeasurementPart],
    *,
    form: str,
    origin: Origin,
    on_part: Callable[[MeasurementPart], None] = lambda _: None,
) -> tuple[Fitted, MeasuredProfile]:
    """Measure a switch as a black box, as far as the store lacks samples. Return what was found.

    Raises `InputError` or `RunError`.
    """
    campaign.run(device, list(todo), store, seed=origin.seed, on_part=on_part)
    fitted = fit(store.samples(part.key for part in todo), device.wire, form_of(form))
    profile = measured_profile(form_of(form), fitted, name="found", title="Found", origin=origin)
    return fitted, profile


def worst(rows: Sequence[ClosureRow], count: int) -> list[ClosureRow]:
    """Return the rows with the largest errors."""
    return sorted(rows, key=lambda row: -abs(row.error))[:count]
