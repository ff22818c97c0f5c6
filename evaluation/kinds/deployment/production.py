"""The replay of deployments: each system on the lab in turn, run after run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

import pyarrow as pa

from evaluation.analysis import Box, host_of
from evaluation.chart import Chart
from evaluation.guarantees import guarantee
from evaluation.kinds.deployment.admission import Deployed, deploy
from evaluation.kinds.deployment.distribution import Distribution, panels
from evaluation.kinds.deployment.document import Deployment, LokoSystem, System
from evaluation.options import Options, Progress
from evaluation.outcome import Outcome
from evaluation.records import rows_of
from evaluation.result import (
    AxisLabel,
    Counters,
    HostResult,
    NoteResult,
    Series,
    merge_counters,
    runs_of,
)
from evaluation.runner import Runner, RunRecords
from evaluation.virtual import VirtualRunner

_KEPT_PACKETS: Final = 4_000_000
"""About so many packets of a system at most are kept as rows; all are counted."""


def compute(figure: Deployment, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Deploy every system. Raises `InputError` or `RunError` in one line."""
    runs, seconds = figure.scale(options)
    senders = options.senders.of(figure.senders)
    systems = [
        replace(deployed, lab=deployed.lab.cabled(options.cabling))
        for deployed in (deploy(figure, system, senders) for system in _chosen(figure, options))
    ]
    progress.begin(runs * len(systems), 0)
    rows: list[pa.Table] = []
    found: list[Distribution] = []
    boards: list[Counters] = []
    hosts: list[HostResult] = []
    real_boards: dict[str, dict[str, str]] = {}
    boxes: list[dict[int, Box]] = []
    left_out = 0
    for number, deployed in enumerate(systems):
        gathered, kept = Distribution(deployed.guarantee_ns, deployed.shown), 0
        boxes.append({flow: Box(flow=flow, guarantee_ns=deployed.guarantee_ns) for flow in deployed.shown})
        for run, records in enumerate(_runs(figure, deployed, options, runs, seconds)):
            gathered.add(records)
            for box in boxes[-1].values():
                box.add(records)
            boards.append(records.boards)
            hosts.append(host_of(records.host))
            real_boards |= records.real_boards
            if kept < _KEPT_PACKETS:
                rows.append(rows_of(records, run=run, point=number).slice(0, _KEPT_PACKETS))
                kept += len(records)
            else:
                left_out += 1
            progress.advance(f"{figure.name}, {deployed.system.label}")
        found.append(gathered)
    series = _series(figure, systems, boxes)
    findings = [one.findings(deployed.system.key) for one, deployed in zip(found, systems, strict=True)]
    outcome = Outcome(
        chart=Chart(
            panels=panels(dict(zip((one.system for one in systems), found, strict=True))),
            caption=f"{sum(one.packets for one in found)} packets shown, {runs_of(runs, seconds)}",
        ),
        findings={
            **{name: value for each in findings for name, value in each.items()},
            **{
                f"{deployed.system.key}_rate_mbps": deployed.senders[0].shaper_rate_bps / 1e6
                for deployed in systems
            },
            **{
                f"{deployed.system.key}_{name}_us": value / 1e3
                for deployed in systems
                for name, value in deployed.queues_ns.items()
            },
        },
        x=AxisLabel(name=", ".join(f"{x}: {one.system.label}" for x, one in enumerate(systems)), unit=""),
        series=series,
        guarantees=[
            guarantee(
                deployed.system.label,
                {one.label: [one.points[place]] for one in series},
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
        boards=merge_counters(boards),
        host=HostResult.worst(hosts),
        backend=options.switched_by(systems[0].lab),
        real_boards=real_boards,
    )
    return outcome, pa.concat_tables(rows)


def _chosen(figure: Deployment, options: Options) -> Sequence[System]:
    """The systems that are run; with ``--points admitted`` only Loko, if the figure has it."""
    admitted = [system for system in figure.systems if isinstance(system, LokoSystem)]
    return admitted if admitted and options.points == "admitted" else figure.systems


def _series(
    figure: Deployment, systems: Sequence[Deployed], boxes: Sequence[Mapping[int, Box]]
) -> list[Series]:
    """The observed flows, a box for each system by its place. Only Loko's guarantee is ours to keep."""
    return [
        Series(
            label=ends.label,
            flow=flow,
            points=[
                found[flow].point(float(place), guaranteed=isinstance(deployed.system, LokoSystem))
                for place, (deployed, found) in enumerate(zip(systems, boxes, strict=True))
            ],
        )
        for flow, ends in enumerate(figure.flows)
        if ends.label in figure.observed and all(flow in found for found in boxes)
    ]


def _runs(
    figure: Deployment, deployed: Deployed, options: Options, runs: int, seconds: float
) -> Iterator[RunRecords]:
    """The records of every run, in order; in virtual time several runs are under way at once."""
    seeds = [_seed(figure, deployed, options.seed, run) for run in range(runs)]
    with _runner(figure, deployed, options) as runner:
        if options.real_time or options.jobs == 1:
            for seed in seeds:
                yield runner.run(deployed.senders, seconds=seconds, seed=seed)
            return
        with ThreadPoolExecutor(max_workers=options.jobs) as pool:
            for begin in range(0, runs, options.jobs):
                # No more than can be under way, so that finished ones do not pile up.
                futures = [
                    pool.submit(runner.run, deployed.senders, seconds=seconds, seed=seed)
                    for seed in seeds[begin : begin + options.jobs]
                ]
                for future in futures:
                    yield future.result()


def _seed(figure: Deployment, deployed: Deployed, seed: int, run: int) -> int:
    """The seed of one run: every run of every system of every figure has its own."""
    text = f"{seed} {figure.name} {deployed.system.label} {run}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _runner(figure: Deployment, deployed: Deployed, options: Options) -> AbstractContextManager[Runner]:
    if options.real_time:
        from evaluation.live.runner import LiveRunner  # noqa: PLC0415 - Linux only, needs root

        return LiveRunner.of(
            deployed.lab,
            deployed.flows,
            options,
            allocation=deployed.system.scheme,
            entries=figure.entries,
        )
    return VirtualRunner(
        deployed.lab.with_backend(options.backend),
        deployed.flows,
        entries=figure.entries,
        capacity_factor=options.capacity_factor,
    )


def _notes(figure: Deployment, runs: int, seconds: float, left_out: int) -> list[NoteResult]:
    notes = []
    if runs * seconds < figure.runs * figure.seconds:
        text = f"This replay has {runs_of(runs, seconds)}, the paper {runs_of(figure.runs, figure.seconds)}."
        notes.append(NoteResult(where="sec 2.3", text=text))
    if left_out:
        text = f"{figure.figure}.parquet leaves out {left_out} runs, whose packets are counted all the same."
        notes.append(NoteResult(where="this replay", text=text))
    return notes
