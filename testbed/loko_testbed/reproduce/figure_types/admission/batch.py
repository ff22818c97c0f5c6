"""Compute admission figures: request random flows, run by run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from loko.admission import Admission, Refusal
from loko.document import InputError
from loko.switch_model.allocation import OPTIMISED
from loko.switch_model.flow import Flow
from loko.switch_model.mix import FlowKind, Mix, PathLength
from loko.switch_model.scenario import Scenario, loko_scenario
from loko.topology.lab import Lab, load_lab
from loko_testbed.reproduce.figure_types.admission.ceilings import LINEAR, FractionalCeiling
from loko_testbed.reproduce.figure_types.admission.document import ROBUST, AdmissionFigure, SchemeSeries
from loko_testbed.reproduce.figure_types.admission.reservations import RESERVATIONS
from loko_testbed.reproduce.figure_types.admission.schemes import empty_admission

_MAIN_LIMITS: Final = ("burst", "delay")
"""Names that the schemes give to the quantity of a switch that fills up beside its rate."""
_KINDS: Final = 5
"""Number of rates that represent the range of rates in an expected mix."""
_EXPECTED: Final = 400
"""Most requests in an expected mix; of more requests, most would be refused."""
_new: Final = tuple.__new__
"""Creates a named tuple from its values in order, in half the time of calling its class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBatch:
    """A batch of runs of one scheme at one path length. Its result depends on nothing else."""

    lab: str
    as_printed: bool
    series: SchemeSeries
    hops: int
    first_run: int
    runs: int
    requests: int
    rate_kbps: tuple[float, float]
    burst_bytes: float
    frame_bytes: int
    entries: int
    buffer_factor: int
    each_switch: bool
    """Whether the rate use of each single switch is recorded."""
    seed: int


class RunRow(NamedTuple):
    """The result of a run. Uses are in per cent of the allocation."""

    scheme: str
    reservation: str
    hops: int
    run: int
    accepted: float
    """Number of flows; for a linear program including fractions of flows."""
    rejection_percent: float
    rate_use_percent: float
    """Mean of all switches."""
    largest_rate_use_percent: float
    """Maximum of all switches."""
    bottleneck_burst_percent: float
    """Use of burst or delay at the switch with the largest use of any quantity."""
    bottleneck_rate_percent: float
    refused_for_rate: int
    refused_for_burst: int
    guarantee_ns: float
    """Largest guarantee of any flow; 0 without flows."""
    rate_uses_percent: tuple[float, ...]
    """Rate use of each switch in the lab's order. Empty in figures that do not draw it."""


def batch_of(figure: AdmissionFigure, *, series: SchemeSeries, hops: int, runs: range, seed: int) -> RunBatch:
    """Make a batch of a figure's runs."""
    return RunBatch(
        lab=figure.lab,
        as_printed=figure.as_printed,
        series=series,
        hops=hops,
        first_run=runs.start,
        runs=len(runs),
        requests=figure.requests,
        rate_kbps=figure.rate_kbps,
        burst_bytes=figure.burst_bytes,
        frame_bytes=figure.frame_bytes,
        entries=figure.entries,
        buffer_factor=figure.buffer_factor,
        each_switch=figure.shows == "use",
        seed=seed,
    )


def run_batch(batch: RunBatch) -> list[RunRow]:
    """Carry out a batch. Raises `InputError` unless the lab is a ring with two hosts at each switch."""
    lab = _lab(batch.lab)
    if batch.series.scheme == LINEAR:
        return _most(batch, lab)
    admission = _empty(batch)
    rows = []
    for run in range(batch.first_run, batch.first_run + batch.runs):
        answers = map(admission.request, requests(batch, len(lab.switches), run))
        refused = Counter([answer.quantity for answer in answers if isinstance(answer, Refusal)])
        rows.append(_row(batch, run, lab, admission, refused))
        admission.release_all()
    return rows


def _most(batch: RunBatch, lab: Lab) -> list[RunRow]:
    """Return rows with what the linear program accepts of all requests at once; other values are 0."""
    program = FractionalCeiling(lab, _scenario(batch), RESERVATIONS[batch.series.reservation])
    rows = []
    for run in range(batch.first_run, batch.first_run + batch.runs):
        accepted = program.accepted(requests(batch, len(lab.switches), run))
        rejected = 100 * (1 - accepted / batch.requests)
        rows.append(RunRow(*batch.series, batch.hops, run, accepted, rejected, 0, 0, 0, 0, 0, 0, 0, ()))
    return rows


def expected(batch: RunBatch) -> Mix:
    """Return the mix that a batch expects: flows of its path length, with rates spread evenly."""
    low, high = batch.rate_kbps
    length = PathLength(hops=batch.hops)
    return Mix(
        kinds=[
            FlowKind(
                rate_bps=1e3 * (low + (high - low) * (part + 0.5) / _KINDS),
                burst_bytes=batch.burst_bytes,
                frame_bytes=batch.frame_bytes,
                path_lengths=[length],
            )
            for part in range(_KINDS)
        ],
        requests=min(batch.requests, _EXPECTED),
    )


def requests(batch: RunBatch, switches: int, run: int) -> list[Flow]:
    """Return the requests of a run, which are the same for every scheme."""
    chance = np.random.default_rng([batch.seed, batch.hops, run])
    sources = chance.integers(switches, size=batch.requests).tolist()
    low, high = batch.rate_kbps
    rates = chance.uniform(low * 1e3, high * 1e3, batch.requests).tolist()
    ends = map(_ends(switches, batch.hops).__getitem__, sources)
    burst_bytes, frame_bytes = batch.burst_bytes, batch.frame_bytes
    return [
        _new(Flow, (number, source, destination, port, port, rate_bps, burst_bytes, frame_bytes, 1))
        for (number, port), (source, destination), rate_bps in zip(
            _names(batch.requests), ends, rates, strict=True
        )
    ]


@lru_cache(maxsize=2)
def _names(requests: int) -> tuple[tuple[str, int], ...]:
    """Return ID and port of each flow of a run."""
    return tuple((str(number), 1024 + number) for number in range(requests))


@lru_cache(maxsize=64)
def _ends(switches: int, hops: int) -> tuple[tuple[str, str], ...]:
    """Return source and destination of flows, by the switch at which they begin."""
    return tuple((f"h{at + 1}a", f"h{(at + hops) % switches + 1}b") for at in range(switches))


def _row(batch: RunBatch, run: int, lab: Lab, admission: Admission, refused: Counter[str]) -> RunRow:
    usages = [admission.usage(name).shares for name in lab.switches]
    quantities = [share.quantity for share in usages[0]]
    rate = quantities.index("rate")
    main = next(place for place, quantity in enumerate(quantities) if quantity in _MAIN_LIMITS)
    rates = [shares[rate].fraction for shares in usages]
    mains = [shares[main].fraction for shares in usages]
    larger = list(map(max, rates, mains))
    bottleneck = larger.index(max(larger))
    admitted = admission.admitted
    return RunRow(
        scheme=batch.series.scheme,
        reservation=batch.series.reservation,
        hops=batch.hops,
        run=run,
        accepted=len(admitted),
        rejection_percent=100 * (1 - len(admitted) / batch.requests),
        rate_use_percent=100 * sum(rates) / len(rates),
        largest_rate_use_percent=100 * max(rates),
        bottleneck_burst_percent=100 * mains[bottleneck],
        bottleneck_rate_percent=100 * rates[bottleneck],
        refused_for_rate=refused["rate"],
        refused_for_burst=refused.total() - refused["rate"],
        guarantee_ns=max((flow.guarantee_ns for flow in admitted.values()), default=0.0),
        rate_uses_percent=tuple(100 * rate for rate in rates) if batch.each_switch else (),
    )


@lru_cache(maxsize=4)
def _lab(name: str) -> Lab:
    lab = load_lab(name)
    for number in range(1, len(lab.switches) + 1):
        if f"s{number}" not in lab.switches or not {f"h{number}a", f"h{number}b"} <= lab.hosts.keys():
            raise InputError(f"{lab.path}: the figure needs a ring with hosts_per_switch: 2")
    return lab


def _empty(batch: RunBatch) -> Admission:
    """Return an empty admission. It is cached between batches of a process, as each run empties it again."""
    made_for = batch.hops if batch.series.scheme.removesuffix(ROBUST).endswith(OPTIMISED) else 0
    return _made(replace(batch, hops=made_for, first_run=0, runs=0, seed=0))


@lru_cache(maxsize=8)
def _made(batch: RunBatch) -> Admission:
    lab = _lab(batch.lab)
    return empty_admission(
        batch.series,
        lab.as_printed() if batch.as_printed else lab,
        _scenario(batch),
        expected(batch),
        batch.buffer_factor,
    )


def _scenario(batch: RunBatch) -> Scenario:
    return loko_scenario(entries=batch.entries, packet_sizes_bytes=(batch.frame_bytes,))
