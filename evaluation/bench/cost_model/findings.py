"""What the samples of a campaign say about a switch: the numbers of its profile, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluation.bench import acknowledgement
from evaluation.bench.backlog import SIZE, Busy, busy, timers
from evaluation.bench.buffer import SLOWEST
from evaluation.bench.buffer_rule import rules
from evaluation.bench.campaign import (
    IDLE_PART,
    INTEGRATED_SWITCH_PART,
    TABLE_PART,
    UNITS_PART,
    throughput_tables,
)
from evaluation.bench.cases import Table, table_name
from evaluation.bench.control_parts import NO_LENGTH
from evaluation.bench.cost_model.cost_terms import link_ps
from evaluation.bench.cost_model.estimate import Observation, Solution, solve
from evaluation.bench.cost_model.observations import Reader
from evaluation.bench.equations import Wire, throughput_bps
from evaluation.bench.housekeeping import jobs
from evaluation.bench.idle import idle_pass, rough_ns
from evaluation.bench.lateness import is_hidden
from evaluation.bench.number import Number
from evaluation.bench.overload_numbers import overload_numbers
from evaluation.bench.store import Samples
from loko.document import InputError

_PS_PER_NS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a campaign found."""

    numbers: Mapping[str, Number]
    """Numbers by their names in a profile."""
    costs: Solution
    """The least squares that most of them come from."""
    loop_ns: float
    """An idle pass of the main loop."""
    interrupted: float
    """Share of lone frames that met an interruption."""
    capacity_frames: Mapping[int, int]
    """Frames that the switch holds, by length."""
    equation_6_error: Mapping[tuple[Table, int], float]
    """Measured throughput over equation 6, less 1."""
    throughput_bps: Mapping[tuple[Table, int], float]
    """As measured."""


def find(samples: Samples, wire: Wire, form: Mapping[str, Any]) -> Findings:
    """Evaluate a campaign. `form` is a profile as values: it lends what the samples do not tell.

    Raises `InputError` if samples are missing that this needs.
    """
    numbers = _transit(samples)
    loop = _loop(samples)
    numbers["cpu.loop_ps"] = loop
    reader = Reader(
        samples=samples,
        wire=wire,
        offsets={name: cost["offset_bytes"] for name, cost in form["cpu"]["action"].items()},
        loop_ns=loop.value / _PS_PER_NS,
    ).seen()
    if not any(reader.cases()):
        raise InputError("no samples of dp-time: measure them first")
    numbers |= _interruptions(samples)
    numbers |= _capacity_factor(reader)
    numbers |= _buffer(samples)
    numbers |= _table(samples)
    numbers |= overload_numbers(samples, wire, lambda name: _known(name, numbers, form))
    costs = solve(list(_observations(reader, numbers, form)))
    numbers |= {
        name: Number(one.value_ps, one.error_ps, one.procedures, one.samples)
        for name, one in costs.estimates.items()
    }
    numbers |= _acknowledgement(reader, numbers, form)
    centres = {(table, size): reader.centre(times) for table, size, times in reader.cases()}
    return Findings(
        numbers=numbers,
        costs=costs,
        loop_ns=reader.loop_ns,
        interrupted=sum(one.interrupted for one in centres.values())
        / sum(one.samples + one.interrupted for one in centres.values()),
        capacity_frames=_capacity_frames(samples),
        equation_6_error=_equation_6(samples, {case: one.value_ns for case, one in centres.items()}, wire),
        throughput_bps=dict(_throughput(samples)),
    )


def _observations(
    reader: Reader, numbers: Mapping[str, Number], form: Mapping[str, Any]
) -> Iterator[Observation]:
    yield from reader.of_cases()
    yield from reader.of_leaders(_known("cpu.capacity_factor", numbers, form))
    yield from reader.of_questions(
        _known("integrated_switch.transit_ps", numbers, form),
        _known("cpu.control.interrupt_ps", numbers, form),
    )


def _known(name: str, numbers: Mapping[str, Number], form: Mapping[str, Any]) -> float:
    """A number as found, or as the form has it."""
    return numbers[name].value if name in numbers else number_of(form, name)


def number_of(form: Mapping[str, Any], name: str) -> float:
    """The value of a number by its dotted name."""
    value: Any = form
    for key in name.split("."):
        value = value[key]
    return float(value["value"])


def _transit(samples: Samples) -> dict[str, Number]:
    measured = samples.get(INTEGRATED_SWITCH_PART, {})
    times = [one for size, one in measured.items() if size > NO_LENGTH]
    if not times:
        return {}
    every = np.concatenate(times)
    if is_hidden(float(np.median(every)), samples):
        return {}
    error_ps = float(every.std()) / float(np.sqrt(len(every))) * _PS_PER_NS
    return {
        "integrated_switch.transit_ps": Number(
            float(np.median(every)) * _PS_PER_NS, error_ps, ("is-time",), len(every)
        )
    }


def _loop(samples: Samples) -> Number:
    if IDLE_PART in samples:
        (times,) = samples[IDLE_PART].values()
        one = idle_pass(times)
        return Number(one.length_ns * _PS_PER_NS, one.error_ns * _PS_PER_NS, ("idle",), one.gaps)
    widths = [
        rough_ns(times.astype(np.float64))
        for part in samples
        if part.startswith("dp-time/")
        for times in samples[part].values()
    ]
    if not widths:
        raise InputError("no samples of dp-time: measure them first")
    value_ps = float(np.median(widths)) * _PS_PER_NS
    return Number(value_ps, 0.005 * value_ps, ("dp-time",), len(widths))


def _trains(samples: Samples, procedure: str) -> list[Busy]:
    """What the trains of a procedure say, in their order."""
    found = [
        busy(times)
        for part in sorted(samples)
        if part.startswith(f"{procedure}/")
        for times in samples[part].values()
        if len(times)
    ]
    return [one for one in found if one is not None]


def _interruptions(samples: Samples) -> dict[str, Number]:
    found = timers(_trains(samples, "backlog"))
    numbers = jobs(_trains(samples, "housekeeping"), found)
    if found is not None:
        source = (("backlog",), found.runs)
        numbers["cpu.timers.period_ns"] = Number(found.period_ns, found.period_error_ns, *source)
        numbers["cpu.timers.cost_ps"] = Number(
            found.cost_ns * _PS_PER_NS, found.cost_error_ns * _PS_PER_NS, *source
        )
    return numbers


def _capacity_factor(reader: Reader) -> dict[str, Number]:
    """p_CPU of lone frames over the period of frames that wait."""
    trains = _trains(reader.samples, "backlog")
    times = reader.samples.get(f"dp-time/{table_name(SLOWEST)}", {}).get(SIZE)
    if not trains or times is None:
        return {}
    lone = reader.centre(times)
    p_cpu_ns = lone.value_ns - link_ps(SLOWEST, SIZE, reader.wire) / _PS_PER_NS
    period_ns = float(np.mean([one.period_ns for one in trains]))
    return {
        "cpu.capacity_factor": Number(
            p_cpu_ns / period_ns,
            lone.error_ns / period_ns,
            ("backlog", "dp-time"),
            sum(one.gaps for one in trains) + lone.samples,
        )
    }


def _acknowledgement(
    reader: Reader, numbers: Mapping[str, Number], form: Mapping[str, Any]
) -> dict[str, Number]:
    """Beside the interrupt, which comes with it as with a segment."""
    times = reader.samples.get(acknowledgement.PART, {}).get(NO_LENGTH, np.array([]))
    control = [f"cpu.control.{name}_ps" for name in ("interrupt", "segment", "echo")]
    if not len(times) or not numbers.keys() >= set(control[1:]):
        return {}
    interrupt_ps, *rest_ps = (_known(name, numbers, form) for name in control)
    found_ns = acknowledgement.cost_ns(
        float(np.median(times)),
        echo_ns=(interrupt_ps + sum(rest_ps)) / _PS_PER_NS,
        loop_ns=reader.loop_ns,
        transit_ns=_known("integrated_switch.transit_ps", numbers, form) / _PS_PER_NS,
        wire=reader.wire,
    )
    error_ps = max(numbers[name].error for name in control[1:])
    return {
        "cpu.control.acknowledgement_ps": Number(
            found_ns * _PS_PER_NS - interrupt_ps, error_ps, ("cp-time",), len(times)
        )
    }


def _buffer(samples: Samples) -> dict[str, Number]:
    frames = {size: int(held[0]) for size, held in samples.get(UNITS_PART, {}).items() if len(held)}
    if not frames:
        return {}
    found = rules(frames)
    every = (("packets", found.packets), ("units", found.units), ("unit_bytes", found.unit_bytes))
    return {
        f"buffer.{name}": Number(float(values[0]), 0.0, ("buffer",), len(frames))
        for name, values in every
        if len(np.unique(values)) == 1
    }


def _table(samples: Samples) -> dict[str, Number]:
    found = [int(held[0]) for held in samples.get(TABLE_PART, {}).values() if len(held)]
    return {"table.entries": Number(found[0], 0.0, ("table",), 1)} if found else {}


def _capacity_frames(samples: Samples) -> dict[int, int]:
    return {
        size: int(frames[0])
        for part in samples
        if part.startswith("buffer/") and part != UNITS_PART
        for size, frames in samples[part].items()
        if len(frames)
    }


def _equation_6(
    samples: Samples, p_fx_ns: Mapping[tuple[Table, int], float], wire: Wire
) -> dict[tuple[Table, int], float]:
    return {
        (table, size): measured_bps / throughput_bps(size, p_fx_ns[table, size], wire) - 1
        for (table, size), measured_bps in _throughput(samples)
        if (table, size) in p_fx_ns
    }


def _throughput(samples: Samples) -> Iterator[tuple[tuple[Table, int], float]]:
    for table in throughput_tables():
        for size, measured in samples.get(f"throughput/{table_name(table)}", {}).items():
            yield (table, size), float(measured[0])
