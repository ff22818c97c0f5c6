"""The replay of deployments: each system on the lab in turn, run after run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Final

import numpy as np
import pyarrow as pa

from evaluation.analysis import host_of
from evaluation.chart import Chart
from evaluation.kinds.deployment.admission import Deployed, deploy
from evaluation.kinds.deployment.distribution import Distribution
from evaluation.kinds.deployment.document import Deployment
from evaluation.options import Options, Progress
from evaluation.outcome import Outcome
from evaluation.records import SCHEMA
from evaluation.result import AxisLabel, Counters, HostResult, NoteResult, merge_counters, runs_of
from evaluation.runner import LOST, Runner, RunRecords
from evaluation.virtual import VirtualRunner

_KEPT_PACKETS: Final = 4_000_000
"""So many packets of a system at most are kept as rows, whole runs; all are counted."""


def compute(figure: Deployment, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Deploy every system. Raises `InputError` or `RunError` in one line."""
    default = figure.quick if options.quick else figure
    runs = options.runs if options.runs is not None else default.runs
    seconds = options.seconds if options.seconds is not None else default.seconds
    systems = [deploy(figure, system) for system in figure.systems]
    progress.begin(runs * len(systems), 0)
    rows: list[pa.Table] = []
    found: list[Distribution] = []
    boards: list[Counters] = []
    hosts: list[HostResult] = []
    left_out = 0
    for number, deployed in enumerate(systems):
        gathered, kept = Distribution(deployed.guarantee_ns), 0
        for run, records in enumerate(_runs(figure, deployed, options, runs, seconds)):
            gathered.add(records)
            boards.append(records.boards)
            hosts.append(host_of(records.host))
            if kept + len(records) <= _KEPT_PACKETS or kept == 0:
                rows.append(_rows(records, run=run, system=number))
                kept += len(records)
            else:
                left_out += 1
            progress.advance(f"{figure.name}, {deployed.system.label}")
        found.append(gathered)
    findings = [one.findings(deployed.system.key) for one, deployed in zip(found, systems, strict=True)]
    outcome = Outcome(
        chart=Chart(
            panels=[
                one.panel(deployed.system.label if len(systems) > 1 else "")
                for one, deployed in zip(found, systems, strict=True)
            ],
            caption=f"{sum(one.packets for one in found)} packets, {runs_of(runs, seconds)}",
        ),
        findings={
            **{name: value for each in findings for name, value in each.items()},
            **{
                f"{deployed.system.key}_rate_mbps": deployed.senders[0].shaper_rate_bps / 1e6
                for deployed in systems
            },
        },
        x=AxisLabel(name="delay", unit="ms"),
        profile=next(iter(systems[0].lab.switches.values())).profile.name,
        notes=_notes(figure, runs, seconds, left_out),
        assumptions={
            **{f"offered_load_{one.key}": one.offered_load for one in figure.systems},
            "sender_queue_frames": float(figure.sender_queue_frames),
        },
        runs=runs,
        seconds=seconds,
        boards=merge_counters(boards),
        host=HostResult.worst(hosts),
        backend=_backend(systems[0], options),
    )
    return outcome, pa.concat_tables(rows)


def _backend(deployed: Deployed, options: Options) -> str:
    """What forwards the frames in a live run; empty in virtual time."""
    lab = deployed.lab.with_backend(options.backend)
    return ", ".join(lab.backends) if options.mode == "live" else ""


def _runs(
    figure: Deployment, deployed: Deployed, options: Options, runs: int, seconds: float
) -> Iterator[RunRecords]:
    """The records of every run, in order; in virtual time several runs are under way at once."""
    seeds = [_seed(figure, deployed, options.seed, run) for run in range(runs)]
    with _runner(figure, deployed, options) as runner:
        if options.mode == "live" or options.jobs == 1:
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
    if options.mode == "live":
        from evaluation.live.runner import LiveRunner  # noqa: PLC0415 - Linux only, needs root

        return LiveRunner(
            deployed.lab,
            deployed.flows,
            allocation=deployed.system.scheme,
            entries=figure.entries,
            seed=options.seed,
            backend=options.backend,
        )
    return VirtualRunner(
        deployed.lab.with_backend(options.backend),
        deployed.flows,
        entries=figure.entries,
        capacity_factor=options.capacity_factor,
    )


def _rows(records: RunRecords, *, run: int, system: int) -> pa.Table:
    count = len(records)
    columns = [
        pa.array(records.flow),
        pa.array(records.sequence),
        pa.array(records.sent_ns),
        pa.array(records.received_ns, mask=records.received_ns == LOST),
        pa.array(records.size),
        pa.array(np.full(count, run, dtype=np.int32)),
        pa.array(np.full(count, system, dtype=np.float64)),
    ]
    return pa.table(columns, schema=SCHEMA)


def _notes(figure: Deployment, runs: int, seconds: float, left_out: int) -> list[NoteResult]:
    notes = []
    if runs * seconds < figure.runs * figure.seconds:
        text = f"This replay has {runs_of(runs, seconds)}, the paper {runs_of(figure.runs, figure.seconds)}."
        notes.append(NoteResult(where="sec 2.3", text=text))
    if left_out:
        text = f"{figure.figure}.parquet leaves out the packets of {left_out} runs; they are counted all the same."
        notes.append(NoteResult(where="this replay", text=text))
    return notes
