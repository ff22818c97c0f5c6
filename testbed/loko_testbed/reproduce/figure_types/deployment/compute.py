"""Replay deployments: each system on the lab in turn, run after run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

import pyarrow as pa

from loko.topology.lab import cabled
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.deployment.admission import Deployed, deploy
from loko_testbed.reproduce.figure_types.deployment.distribution import Distribution, panels
from loko_testbed.reproduce.figure_types.deployment.document import DeployedSystem, Deployment, LokoSystem
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.campaign import PointAccumulator, purge_runs, replay_in_order
from loko_testbed.reproduce.replay.duration import live_s, virtual_s
from loko_testbed.reproduce.replay.point import Point, seed_of, transmission_options
from loko_testbed.reproduce.result import AxisLabel, HostResult, NoteResult, Series, merge_counters, runs_of
from loko_testbed.simulation.options import Options, Progress
from loko_testbed.simulation.records import rows_of

_KEPT_PACKETS: Final = 4_000_000
"""Approximate limit on a system's packets that are kept as rows; all packets are counted."""


def compute(figure: Deployment, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Deploy and replay every system. Raises `InputError` or `RunError`."""
    runs, seconds = figure.scale(options)
    senders = options.senders.of(figure.senders)
    systems = [
        replace(deployed, lab=cabled(deployed.lab, options.cabling))
        for deployed in (deploy(figure, system, senders) for system in _chosen(figure, options))
    ]
    points = [
        Point(
            figure=figure.name,
            x=float(number),
            label=f"{figure.name}, {deployed.system.label}",
            lab=deployed.lab,
            routed=deployed.flows,
            scheme=deployed.system.scheme,
            entries=figure.entries,
            senders=deployed.senders,
            seconds=seconds,
            seeds=[seed_of(options.seed, figure.name, deployed.system.label, run) for run in range(runs)],
            guarantees_ns=dict.fromkeys(deployed.shown, deployed.guarantee_ns),
        )
        for number, deployed in enumerate(systems)
    ]
    rows: list[pa.Table] = []
    distributions = [Distribution(deployed.guarantee_ns, deployed.shown) for deployed in systems]
    metrics = [PointAccumulator(point.guarantees_ns) for point in points]
    kept = [0] * len(points)
    left_out = 0
    with closing(replay_in_order(points, options, progress)) as replayed:
        for number, run, records in replayed:
            distributions[number].add(records)
            metrics[number].add(records)
            if kept[number] < _KEPT_PACKETS:
                rows.append(rows_of(records, run=run, point=number).slice(0, _KEPT_PACKETS))
                kept[number] += len(records)
            else:
                left_out += 1
    purge_runs(figure.name, options)
    series = _series(figure, systems, metrics)
    findings = [
        distribution.findings(deployed.system.key)
        for distribution, deployed in zip(distributions, systems, strict=True)
    ]
    packets = sum(distribution.packets for distribution in distributions)
    outcome = Outcome(
        chart=Chart(
            panels=panels(dict(zip((system.system for system in systems), distributions, strict=True))),
            caption=f"{packets} packets shown, {runs_of(runs, seconds)}",
        ),
        findings={
            **{name: value for each in findings for name, value in each.items()},
            **{
                f"{deployed.system.key}_rate_mbps": deployed.senders[0].bucket.rate_bps / 1e6
                for deployed in systems
            },
            **{
                f"{deployed.system.key}_{name}_us": value / 1e3
                for deployed in systems
                for name, value in deployed.queues_ns.items()
            },
        },
        x=AxisLabel(
            name=", ".join(f"{x}: {system.system.label}" for x, system in enumerate(systems)), unit=""
        ),
        series=series,
        guarantees=[
            guarantee(
                deployed.system.label,
                {line.label: [line.points[place]] for line in series},
                ours=isinstance(deployed.system, LokoSystem),
            )
            for place, deployed in enumerate(systems)
        ],
        guarantee_ms=round(systems[0].guarantee_ns / 1e6, 6) if len(systems) == 1 else None,
        profile=next(iter(systems[0].lab.switches.values())).profile.name,
        notes=_notes(figure, runs, seconds, left_out),
        assumptions=senders.described(),
        runs=runs,
        seconds=seconds,
        boards=merge_counters([accumulator.boards for accumulator in metrics]),
        host=HostResult.worst([accumulator.host for accumulator in metrics]),
        backend=options.switched_by(systems[0].lab),
        real_boards={
            name: board for accumulator in metrics for name, board in accumulator.real_boards.items()
        },
    )
    return outcome, pa.concat_tables(rows)


def _chosen(figure: Deployment, options: Options) -> Sequence[DeployedSystem]:
    """Return the systems to run: with ``--points admitted`` only Loko, if the figure has it."""
    admitted = [system for system in figure.systems if isinstance(system, LokoSystem)]
    return admitted if admitted and options.points == "admitted" else figure.systems


def _series(
    figure: Deployment, systems: Sequence[Deployed], metrics: Sequence[PointAccumulator]
) -> list[Series]:
    """Return the observed flows with a box for each system. Only Loko's guarantee is ours to keep."""
    return [
        Series(
            label=ends.label,
            flow=flow,
            points=[
                accumulator.boxes[flow].point(
                    float(place), guaranteed=isinstance(deployed.system, LokoSystem)
                )
                for place, (deployed, accumulator) in enumerate(zip(systems, metrics, strict=True))
            ],
        )
        for flow, ends in enumerate(figure.flows)
        if ends.label in figure.observed and all(flow in accumulator.boxes for accumulator in metrics)
    ]


def _notes(figure: Deployment, runs: int, seconds: float, left_out: int) -> list[NoteResult]:
    notes = []
    if runs * seconds < figure.runs * figure.seconds:
        text = f"This replay has {runs_of(runs, seconds)}, the paper {runs_of(figure.runs, figure.seconds)}."
        notes.append(NoteResult(where="sec 2.3", text=text))
    if left_out:
        text = f"{figure.figure}.parquet leaves out {left_out} runs, whose packets are counted all the same."
        notes.append(NoteResult(where="this replay", text=text))
    return notes


def _estimate_s(figure: Deployment) -> dict[str, float]:
    systems = [deploy(figure, system) for system in figure.systems]
    bits_per_s = sum(sender.bucket.rate_bps for system in systems for sender in system.senders)
    packets = bits_per_s * figure.runs * figure.seconds / (8 * figure.frame_bytes)
    live = len(systems) * live_s(figure.runs, figure.seconds)
    estimates = {"virtual": virtual_s(packets), "live": live, "hardware": live}
    return {mode: estimates[mode] for mode in figure.modes if mode in estimates}


FIGURE_TYPE: Final = FigureType(
    documents=(Deployment,),
    compute=OneByOne(
        compute, lambda figure, options: {**transmission_options(figure, options), "points": options.points}
    ),
    estimate_s=_estimate_s,
)
