"""The computation itself: requests of random flows, run by run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from evaluation.kinds.admission.ceilings import LINEAR, LinearProgram
from evaluation.kinds.admission.document import AdmissionFigure, Series
from evaluation.kinds.admission.reservations import RESERVATIONS
from evaluation.kinds.admission.schemes import empty_admission
from loko.admission import Admission, Refusal
from loko.allocation import OPTIMISED
from loko.document import InputError
from loko.flow import Flow
from loko.lab import Lab, load_lab
from loko.mix import FlowKind, Mix, PathLength
from loko.scenario import Scenario, of_lokos_tables

_MAIN_LIMITS: Final = ("burst", "delay")
"""What fills up in a switch beside its rate, by the words of the schemes."""
_KINDS: Final = 5
"""Rates that stand for the range in an expected mix."""
_EXPECTED: Final = 400
"""Requests that are looked at to choose for; of more, most are refused."""
_new: Final = tuple.__new__
"""Makes a named tuple of all its values in their order: in half the time of its own call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Some runs of one scheme at one path length. Its result depends on nothing else."""

    lab: str
    as_printed: bool
    series: Series
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
    """Whether the use of each switch is kept."""
    seed: int


class RunRow(NamedTuple):
    """What a run found. Percentages are of the allocation."""

    scheme: str
    reservation: str
    hops: int
    run: int
    accepted: float
    """Flows; of a linear program also parts of flows."""
    rejection_percent: float
    rate_use_percent: float
    """Mean over all switches."""
    largest_rate_use_percent: float
    """Of any switch."""
    bottleneck_burst_percent: float
    """Burst, or delay, at the switch that is used most of all."""
    bottleneck_rate_percent: float
    refused_for_rate: int
    refused_for_burst: int
    guarantee_ns: float
    """The largest that was given; 0 without any flow."""
    rate_uses_percent: tuple[float, ...]
    """Of each switch, in the lab's order. Empty in figures that do not draw it."""


def trial_of(figure: AdmissionFigure, *, series: Series, hops: int, runs: range, seed: int) -> Trial:
    """Some runs of a figure."""
    return Trial(
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


def carry_out(trial: Trial) -> list[RunRow]:
    """All runs of the trial. Raises `InputError` if the lab is no ring with two hosts at each switch."""
    lab = _lab(trial.lab)
    if trial.series.scheme == LINEAR:
        return _most(trial, lab)
    admission = _empty(trial)
    rows = []
    for run in range(trial.first_run, trial.first_run + trial.runs):
        answers = map(admission.request, requests(trial, len(lab.switches), run))
        refused = Counter([answer.quantity for answer in answers if isinstance(answer, Refusal)])
        rows.append(_row(trial, run, lab, admission, refused))
        admission.release_all()
    return rows


def _most(trial: Trial, lab: Lab) -> list[RunRow]:
    """What is accepted if all requests are known at once; the rest says nothing of that."""
    program = LinearProgram(lab, _scenario(trial), RESERVATIONS[trial.series.reservation])
    rows = []
    for run in range(trial.first_run, trial.first_run + trial.runs):
        accepted = program.accepted(requests(trial, len(lab.switches), run))
        rejected = 100 * (1 - accepted / trial.requests)
        rows.append(RunRow(*trial.series, trial.hops, run, accepted, rejected, 0, 0, 0, 0, 0, 0, 0, ()))
    return rows


def expected(trial: Trial) -> Mix:
    """What a trial may expect: as many flows as far, with rates spread evenly over the range."""
    low, high = trial.rate_kbps
    length = PathLength(hops=trial.hops)
    return Mix(
        kinds=[
            FlowKind(
                rate_bps=1e3 * (low + (high - low) * (part + 0.5) / _KINDS),
                burst_bytes=trial.burst_bytes,
                frame_bytes=trial.frame_bytes,
                path_lengths=[length],
            )
            for part in range(_KINDS)
        ],
        requests=min(trial.requests, _EXPECTED),
    )


def requests(trial: Trial, switches: int, run: int) -> list[Flow]:
    """The requests of a run: the same for every scheme."""
    chance = np.random.default_rng([trial.seed, trial.hops, run])
    sources = chance.integers(switches, size=trial.requests).tolist()
    low, high = trial.rate_kbps
    rates = chance.uniform(low * 1e3, high * 1e3, trial.requests).tolist()
    ends = map(_ends(switches, trial.hops).__getitem__, sources)
    burst_bytes, frame_bytes = trial.burst_bytes, trial.frame_bytes
    return [
        _new(Flow, (number, source, destination, port, port, rate_bps, burst_bytes, frame_bytes))
        for (number, port), (source, destination), rate_bps in zip(
            _names(trial.requests), ends, rates, strict=True
        )
    ]


@lru_cache(maxsize=2)
def _names(requests: int) -> tuple[tuple[str, int], ...]:
    """Id and ports of a run's flows."""
    return tuple((str(number), 1024 + number) for number in range(requests))


@lru_cache(maxsize=64)
def _ends(switches: int, hops: int) -> tuple[tuple[str, str], ...]:
    """Source and destination of the flows from each switch."""
    return tuple((f"h{at + 1}a", f"h{(at + hops) % switches + 1}b") for at in range(switches))


def _row(trial: Trial, run: int, lab: Lab, admission: Admission, refused: Counter[str]) -> RunRow:
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
        scheme=trial.series.scheme,
        reservation=trial.series.reservation,
        hops=trial.hops,
        run=run,
        accepted=len(admitted),
        rejection_percent=100 * (1 - len(admitted) / trial.requests),
        rate_use_percent=100 * sum(rates) / len(rates),
        largest_rate_use_percent=100 * max(rates),
        bottleneck_burst_percent=100 * mains[bottleneck],
        bottleneck_rate_percent=100 * rates[bottleneck],
        refused_for_rate=refused["rate"],
        refused_for_burst=refused.total() - refused["rate"],
        guarantee_ns=max((one.guarantee_ns for one in admitted.values()), default=0.0),
        rate_uses_percent=tuple(100 * rate for rate in rates) if trial.each_switch else (),
    )


@lru_cache(maxsize=4)
def _lab(name: str) -> Lab:
    lab = load_lab(name)
    for number in range(1, len(lab.switches) + 1):
        if f"s{number}" not in lab.switches or not {f"h{number}a", f"h{number}b"} <= lab.hosts.keys():
            raise InputError(f"{lab.path}: the figure needs a ring with hosts_per_switch: 2")
    return lab


def _empty(trial: Trial) -> Admission:
    """Kept for the next trial of the process: it is empty again after each run."""
    made_for = trial.hops if trial.series.scheme.endswith(OPTIMISED) else 0
    return _made(replace(trial, hops=made_for, first_run=0, runs=0, seed=0))


@lru_cache(maxsize=8)
def _made(trial: Trial) -> Admission:
    lab = _lab(trial.lab)
    return empty_admission(
        trial.series,
        lab.as_printed() if trial.as_printed else lab,
        _scenario(trial),
        expected(trial),
        trial.buffer_factor,
    )


def _scenario(trial: Trial) -> Scenario:
    return of_lokos_tables(entries=trial.entries, packet_sizes_bytes=(trial.frame_bytes,))
