"""Options of campaigns that say where parts are measured: how many at a time, here or on a cluster."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from loko.document import InputError
from loko_testbed.tasks.executor import Executor, Workers

JobsOption = Annotated[
    int | None,
    typer.Option(min=1, max=256, help="Parts measured at a time (virtual). Default: one per processor."),
]
ExecutorOption = Annotated[
    Executor, typer.Option(help="Where parts are measured in virtual time: here, or on a Dask cluster.")
]
SchedulerOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's, such as tcp://10.0.0.1:8786.")
]


def workers_of(jobs: int | None, executor: Executor, scheduler: str | None, *, real_time: bool) -> Workers:
    """Return the choice. Raises `InputError` if it contradicts itself or if, in real time, there is none."""
    workers = Workers(jobs=jobs or len(os.sched_getaffinity(0)), executor=executor, scheduler=scheduler)
    workers.refuse_contradiction()
    if not real_time:
        return workers
    if jobs is not None:
        raise InputError(f"--jobs {jobs}: for virtual time only; leave it out")
    if executor is not Executor.PROCESSES:
        raise InputError(f"--executor {executor}: for virtual time only; leave it out")
    return Workers()
