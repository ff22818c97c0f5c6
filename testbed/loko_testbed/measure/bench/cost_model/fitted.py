"""Fits a profile to a campaign's samples: the numbers of the switch, and how certain they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loko.document import InputError
from loko.units import PS_PER_NS
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.cost_model.cost_terms import link_ps
from loko_testbed.measure.bench.cost_model.estimate import CostObservation, FitResult, solve
from loko_testbed.measure.bench.cost_model.observations import ObservationReader
from loko_testbed.measure.bench.equations import LinkTiming, throughput_bps
from loko_testbed.measure.bench.part import NoFrameLength, ProfileNumber, Samples
from loko_testbed.measure.bench.procedures import (
    backlog,
    buffer,
    cp_time,
    dp_time,
    housekeeping,
    idle,
    is_time,
    overload,
    table,
    throughput,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The result of evaluating a campaign."""

    numbers: Mapping[str, ProfileNumber]
    """Numbers by their names in a profile."""
    costs: FitResult
    """The least squares from which most numbers come."""
    loop_ns: float
    """Duration of an idle pass of the main loop."""
    interrupted: float
    """Share of lone frames that met an interruption."""
    capacity_frames: Mapping[int, int]
    """Number of frames that the switch holds, by frame length."""
    equation_6_error: Mapping[tuple[TableCase, int], float]
    """Measured throughput over that of equation 6, minus 1."""
    throughput_bps: Mapping[tuple[TableCase, int], float]
    """Measured throughput."""


def fit(samples: Samples, wire: LinkTiming, form: Mapping[str, Any]) -> Fitted:
    """Evaluate a campaign. `form` is a profile as values, which provides what the samples do not tell.

    Raises `InputError` if necessary samples are missing.
    """
    numbers = is_time.numbers(samples)
    loop = _loop(samples)
    numbers["cpu.loop_ps"] = loop
    reader = ObservationReader(
        samples=samples,
        wire=wire,
        offsets={name: cost["offset_bytes"] for name, cost in form["cpu"]["action"].items()},
        loop_ns=loop.value / PS_PER_NS,
    ).seen()
    if not any(reader.cases()):
        raise InputError("no samples of dp-time: measure them first")
    numbers |= _interruptions(samples)
    numbers |= _capacity_factor(reader)
    numbers |= buffer.numbers(samples)
    numbers |= table.numbers(samples)
    numbers |= overload.numbers(samples, wire, lambda name: _known(name, numbers, form))
    costs = solve(list(_observations(reader, numbers, form)))
    numbers |= {
        name: ProfileNumber(estimate.value_ps, estimate.error_ps, estimate.procedures, estimate.samples)
        for name, estimate in costs.estimates.items()
    }
    numbers |= _acknowledgement(reader, numbers, form)
    centres = {(case, size): reader.centre(times) for case, size, times in reader.cases()}
    return Fitted(
        numbers=numbers,
        costs=costs,
        loop_ns=reader.loop_ns,
        interrupted=sum(centre.interrupted for centre in centres.values())
        / sum(centre.samples + centre.interrupted for centre in centres.values()),
        capacity_frames=buffer.capacity_frames(samples),
        equation_6_error=_equation_6(
            samples, {case: centre.value_ns for case, centre in centres.items()}, wire
        ),
        throughput_bps=dict(_throughput(samples)),
    )


def _observations(
    reader: ObservationReader, numbers: Mapping[str, ProfileNumber], form: Mapping[str, Any]
) -> Iterator[CostObservation]:
    yield from reader.of_cases()
    yield from reader.of_trials()
    yield from reader.of_leaders(_known("cpu.capacity_factor", numbers, form))
    yield from reader.of_questions(
        _known("integrated_switch.transit_ps", numbers, form),
        _known("cpu.control.interrupt_ps", numbers, form),
    )


def _known(name: str, numbers: Mapping[str, ProfileNumber], form: Mapping[str, Any]) -> float:
    """Return a number as found or, if it was not found, from the form."""
    return numbers[name].value if name in numbers else number_of(form, name)


def number_of(form: Mapping[str, Any], name: str) -> float:
    """Return the value of a number by its dotted name."""
    value: Any = form
    for key in name.split("."):
        value = value[key]
    return float(value["value"])


def _loop(samples: Samples) -> ProfileNumber:
    for number in idle.numbers(samples).values():
        return number
    of_tables = [by_size.values() for by_size in dp_time.PROCEDURE.among(samples).values()]
    widths = [idle.rough_ns(times.astype(np.float64)) for every in of_tables for times in every]
    if not widths:
        raise InputError("no samples of dp-time: measure them first")
    value_ps = float(np.median(widths)) * PS_PER_NS
    return ProfileNumber(value_ps, 0.005 * value_ps, (dp_time.PROCEDURE.name,), len(widths))


def _interruptions(samples: Samples) -> dict[str, ProfileNumber]:
    timers = backlog.timers(backlog.trains(samples, backlog.PROCEDURE))
    jobs = housekeeping.numbers(backlog.trains(samples, housekeeping.PROCEDURE), timers)
    return jobs | backlog.numbers(timers)


def _capacity_factor(reader: ObservationReader) -> dict[str, ProfileNumber]:
    """Return p_CPU of lone frames over the period of frames that wait."""
    trains = backlog.trains(reader.samples, backlog.PROCEDURE)
    times = reader.samples.get(dp_time.PROCEDURE.key(buffer.SLOWEST), {}).get(backlog.SIZE)
    if not trains or times is None:
        return {}
    lone = reader.centre(times)
    p_cpu_ns = lone.value_ns - link_ps(buffer.SLOWEST, backlog.SIZE, reader.wire) / PS_PER_NS
    period_ns = float(np.mean([train.period_ns for train in trains]))
    return {
        "cpu.capacity_factor": ProfileNumber(
            p_cpu_ns / period_ns,
            lone.error_ns / period_ns,
            (backlog.PROCEDURE.name, dp_time.PROCEDURE.name),
            sum(train.gaps for train in trains) + lone.samples,
        )
    }


def _acknowledgement(
    reader: ObservationReader, numbers: Mapping[str, ProfileNumber], form: Mapping[str, Any]
) -> dict[str, ProfileNumber]:
    """Return the acknowledgement's own cost, without the interrupt that comes with it as with a segment."""
    times = reader.samples.get(cp_time.ACKNOWLEDGEMENT, {}).get(NoFrameLength.VALUES, np.array([]))
    control = [f"cpu.control.{name}_ps" for name in ("interrupt", "segment", "echo")]
    if not len(times) or not numbers.keys() >= set(control[1:]):
        return {}
    interrupt_ps, *rest_ps = (_known(name, numbers, form) for name in control)
    found_ns = cp_time.acknowledgement_ns(
        float(np.median(times)),
        echo_ns=(interrupt_ps + sum(rest_ps)) / PS_PER_NS,
        loop_ns=reader.loop_ns,
        transit_ns=_known("integrated_switch.transit_ps", numbers, form) / PS_PER_NS,
        wire=reader.wire,
    )
    error_ps = max(numbers[name].error for name in control[1:])
    return {
        "cpu.control.acknowledgement_ps": ProfileNumber(
            found_ns * PS_PER_NS - interrupt_ps, error_ps, (cp_time.PROCEDURE.name,), len(times)
        )
    }


def _equation_6(
    samples: Samples, p_fx_ns: Mapping[tuple[TableCase, int], float], wire: LinkTiming
) -> dict[tuple[TableCase, int], float]:
    return {
        case: measured_bps / throughput_bps(case[1], p_fx_ns[case], wire) - 1
        for case, measured_bps in _throughput(samples)
        if case in p_fx_ns
    }


def _throughput(samples: Samples) -> Iterator[tuple[tuple[TableCase, int], float]]:
    for finest in throughput.throughput_tables():
        for size, measured in samples.get(throughput.PROCEDURE.key(finest), {}).items():
            yield (finest, size), float(measured[0])
