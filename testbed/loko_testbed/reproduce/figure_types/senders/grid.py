"""Replay the senders of a grid.

Each sender is a point (`loko_testbed.reproduce.replay.point`), whose runs are one task. Only counts of
packets are kept, as the records of a thousand runs would take gigabytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from loko.document import InputError
from loko_testbed.reproduce.figure_types.experiments import experiments_named
from loko_testbed.reproduce.figure_types.traffic.deployed import deploy
from loko_testbed.reproduce.figure_types.traffic.distribution import Distribution
from loko_testbed.reproduce.figure_types.traffic.document import DeployedSystem, Deployment, Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import prepare, traffic
from loko_testbed.reproduce.replay.campaign import run_once, virtual_runner
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.simulation.runner import LOST
from loko_testbed.simulation.senders import SenderSettings

READINGS: Final = ("sent", "accepted", "arrived")
"""Meanings of a count of packets: those that left their hosts within the run, those that found room before a
shaper, whether they left or still waited at the run's end, or those that arrived."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCell:
    """One sender of the grid, at one x of a sweep."""

    figure: str
    """``PAPER/ID`` of a sweep."""
    x: float
    senders: SenderSettings
    runs: int
    seconds: float
    seed: int
    capacity_factor: float | None


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
        seeds=_seeds(trial),
        guarantees_ns=dict.fromkeys(deployed.shown, deployed.guarantee_ns),
    )
    counts = []
    with virtual_runner(point, trial.capacity_factor) as runner:
        for run in range(trial.runs):
            distribution = Distribution(deployed.guarantee_ns, deployed.shown)
            distribution.add(run_once(point, run, runner))
            counts.append([distribution.packets, distribution.lost, distribution.late])
    return counts


def sweep_of(figure: str) -> Sweep:
    """Return the sweep of this name. Raises `InputError`."""
    sweep = experiments_named([figure]).get(figure)
    if isinstance(sweep, Sweep):
        return sweep
    raise InputError(f"{figure}: is no sweep; mend counts")


def run_box(trial: BoxCell) -> list[list[int]]:
    """Return for each run the packets of all observed flows, counted in each of the `READINGS`."""
    sweep = sweep_of(trial.figure)
    setting = prepare(sweep)
    senders = traffic(setting, trial.x, trial.senders)
    point = Point(
        figure=trial.figure,
        x=trial.x,
        label=trial.figure,
        lab=setting.lab,
        routed=setting.admitted(),
        scheme=sweep.allocation,
        entries=sweep.entries,
        senders=senders,
        seconds=trial.seconds,
        seeds=_seeds(trial),
        guarantees_ns={},
    )
    observed = [sender.flow for sender in senders if sender.observed]
    counts = []
    with virtual_runner(point, trial.capacity_factor) as runner:
        for run in range(trial.runs):
            records = run_once(point, run, runner)
            waiting = sum(records.flows[flow]["unsent"] for flow in observed)
            arrived = int(np.count_nonzero(records.received_ns != LOST))
            counts.append([len(records), len(records) + waiting, arrived])
    return counts


def _seeds(trial: GridCell | BoxCell) -> list[int]:
    return [
        int(np.random.default_rng([trial.seed, run, hash_of(trial.senders)]).integers(2**62))
        for run in range(trial.runs)
    ]


def hash_of(senders: SenderSettings) -> int:
    """Return a number unique to the description, the same on every machine."""
    return int.from_bytes(senders.model_dump_json().encode(), "big")
