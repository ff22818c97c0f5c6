"""The command `loko schedule-gates`: tsnkit's streams and network in, gates for them out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from loko.schedule.gates.tsnkit import (
    TsnkitSchedule,
    load_problem,
    result_files,
    schedule_streams,
)
from loko.solvers import Solver, solver_named
from loko.solvers.program import TimeBudget
from loko.terminal import tell
from loko.units import NS_PER_S
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.cli.gate_export import write_files
from loko_testbed.reproduce.schedule_check.gates import gate_refutations, load_gates


def schedule_gates(
    task: Annotated[Path, typer.Argument(help="Streams, as tsnkit's task file.")],
    topology: Annotated[Path, typer.Argument(help="The network, as tsnkit's topology file.")],
    folder: Annotated[Path, typer.Argument(help="Folder for tsnkit's four files of results.")],
    *,
    solver: Annotated[Solver, typer.Option(help="Solver of the integer programs.")] = Solver.HIGHS,
    time_limit: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Seconds after which the best schedule is taken.")
    ] = 60.0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are in the folder.")] = False,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each stream.")] = False,
) -> None:
    """Schedule tsnkit's streams in slots and write gates for them (802.1Qbv). Status 1 if one gets no slot.

    Each stream has the links of a shortest path to itself in its slot. 'loko check-gates' then tries to
    refute the files.

    Example: loko schedule-gates task.csv topo.csv gates
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    begin_ns = time.monotonic_ns()
    clock = TimeBudget(now_ns=time.monotonic_ns, end_ns=begin_ns + round(time_limit * NS_PER_S))
    schedule = schedule_streams(load_problem(task, topology), solver_named(solver), clock)
    seconds = (time.monotonic_ns() - begin_ns) / NS_PER_S
    missing = [stream.number for stream in schedule.unscheduled]
    if not missing:
        write_files(result_files(schedule), folder, force=force)
        if refutations := gate_refutations(load_gates(task, topology, folder)):
            for line in refutations:
                tell(f"refuted: {line}", err=True)
            tell("error: the checker refutes these gates; please report it", err=True)
            raise typer.Exit(1)
    if as_json:
        print_json(
            {
                "slots": schedule.slots,
                "slot_ns": schedule.timing.slot_ns,
                "base_period_ns": schedule.timing.base_period_ns,
                "scheduled": _rows(schedule),
                "unscheduled": missing,
                "optimal": schedule.solution.is_optimal,
                "bound": schedule.solution.bound,
                "seconds": round(seconds, 3),
            }
        )
    elif as_csv:
        print_csv(("stream", "slot", "offset_ns", "path"), _rows(schedule))
    else:
        _print(schedule)
    if missing:
        raise typer.Exit(1)


def _rows(schedule: TsnkitSchedule) -> list[dict[str, Any]]:
    return [
        {
            "stream": stream.number,
            "slot": slot,
            "offset_ns": schedule.timing.offset_ns(slot),
            "path": " ".join([stream.source, *(schedule.problem.links[link].head for link in path)]),
        }
        for stream, (slot, path) in schedule.scheduled
    ]


def _print(schedule: TsnkitSchedule) -> None:
    timing, solution = schedule.timing, schedule.solution
    tell(f"{schedule.slots} slots of {timing.slot_ns} ns in a base period of {timing.base_period_ns} ns")
    for stream in schedule.unscheduled:
        tell(f"no slot: stream {stream.number}")
    most = "no schedule has more" if solution.is_optimal else f"no schedule has more than {solution.bound}"
    tell(f"{len(schedule.scheduled)} streams of {len(schedule.problem.streams)}, and {most}")
    if schedule.unscheduled:
        tell("no files are written, since tsnkit's have all streams")
    else:
        tell("checked: not refuted by a replay")
