"""Replay the senders of a grid. Results are kept, so that an interrupted replay continues.

Each sender is a point (`loko_testbed.reproduce.replay.point`) and is carried out like all points. Only the
counts of packets, lost and late ones are kept, as the records of a thousand runs would take gigabytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loko.document import InputError
from loko_testbed.reproduce.figure_types.experiments import experiments_named
from loko_testbed.reproduce.figure_types.senders.likelihood import SenderTrial
from loko_testbed.reproduce.figure_types.traffic.deployed import deploy
from loko_testbed.reproduce.figure_types.traffic.distribution import Distribution
from loko_testbed.reproduce.figure_types.traffic.document import DeployedSystem, Deployment
from loko_testbed.reproduce.replay.campaign import run_once, virtual_runner
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.tasks.provenance import commit


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """One sender of the grid, with one system."""

    figure: str
    """``PAPER/ID`` of a deployment."""
    scheme: str
    """Admission scheme of the deployment's system that is used."""
    senders: SenderSettings
    runs: int
    seconds: float
    seed: int
    capacity_factor: float | None

    def key(self) -> str:
        """Return a key of everything that the result depends on."""
        values = [self.figure, self.scheme, self.runs, self.seconds, self.seed, self.capacity_factor]
        return json.dumps([commit(), self.senders.model_dump(), *values], sort_keys=True)


def source_of(figure: str, scheme: str) -> tuple[Deployment, DeployedSystem]:
    """Return the deployment and its system with this admission scheme. Raises `InputError`."""
    source = experiments_named([figure]).get(figure)
    if isinstance(source, Deployment):
        for system in source.systems:
            if system.scheme == scheme:
                return source, system
    raise InputError(f"{figure}: is no deployment with a system of the scheme '{scheme}'; mend inferred_from")


def run_cell(trial: GridCell) -> list[list[int]]:
    """Return the numbers of packets, lost and late ones of each run."""
    figure, system = source_of(trial.figure, trial.scheme)
    deployed = deploy(figure, system, trial.senders)
    point = Point(
        figure=trial.figure,
        x=0.0,
        label=trial.figure,
        lab=deployed.lab,
        routed=deployed.flows,
        scheme=trial.scheme,
        entries=figure.entries,
        senders=deployed.senders,
        seconds=trial.seconds,
        seeds=[
            int(np.random.default_rng([trial.seed, run, hash_of(trial.senders)]).integers(2**62))
            for run in range(trial.runs)
        ],
        guarantees_ns=dict.fromkeys(deployed.shown, deployed.guarantee_ns),
    )
    counts = []
    with virtual_runner(point, trial.capacity_factor) as runner:
        for run in range(trial.runs):
            distribution = Distribution(deployed.guarantee_ns, deployed.shown)
            distribution.add(run_once(point, run, runner))
            counts.append([distribution.packets, distribution.lost, distribution.late])
    return counts


def hash_of(senders: SenderSettings) -> int:
    """Return a number unique to the description, the same on every machine."""
    return int.from_bytes(senders.model_dump_json().encode(), "big")


def run_trials(trials: Sequence[GridCell], options: Options, kept: Path) -> Iterator[tuple[int, SenderTrial]]:
    """Yield (index, result) of each trial: first those that the file `kept` has, then the others."""
    done: dict[str, list[list[int]]] = {}
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            key, counts = _kept_line(line, kept)
            done[key] = counts
    missing = []
    for place, trial in enumerate(trials):
        if trial.key() in done:
            yield place, _trial_of(trial, done[trial.key()])
        else:
            missing.append(place)
    carried = options.workers.each_done(run_cell, [trials[place] for place in missing])
    with kept.open("a", encoding="utf-8") as file, closing(carried):
        for place, counts in carried:
            trial = trials[missing[place]]
            file.write(json.dumps([trial.key(), counts]) + "\n")
            file.flush()
            yield missing[place], _trial_of(trial, counts)


def _trial_of(trial: GridCell, counts: list[list[int]]) -> SenderTrial:
    return SenderTrial(senders=trial.senders, seconds=trial.seconds, counts=np.array(counts))


def _kept_line(line: str, path: Path) -> tuple[str, list[list[int]]]:
    try:
        key, counts = json.loads(line)
    except ValueError:
        raise InputError(f"{path}: damaged records; delete the file and run again") from None
    return key, counts
