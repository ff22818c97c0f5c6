"""The command `loko schedule`: a lab and flows in, slots and paths out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from loko.document import InputError
from loko.schedule.gates.options import CLOCK_NS, TRAFFIC_CLASSES, GateFormat, GateOptions
from loko.schedule.problem import SchedulingScheme
from loko.schedule.timing import GUARD_NS, Exclusive
from loko.solvers import Solver, solver_named
from loko.switch_model.scenario import OpenFlow
from loko.terminal import tell
from loko.units import NS_PER_US
from loko_testbed.cli.choices import ColumnsOption
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both

if TYPE_CHECKING:
    from loko.schedule.lab_schedule import LabSchedule
    from loko.schedule.saved_schedule import ExtendedSchedule
    from loko_testbed.reproduce.schedule_check.verdict import ScheduleVerdict

_COLUMNS = (
    *("flow", "scheduled", "source", "destination", "udp_source", "udp_destination", "frame_bytes"),
    *("slot", "path", "offset_us", "period_us", "guarantee_us"),
)


def schedule(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    flows: Annotated[
        str, typer.Argument(help="List of flows, each with a period_us, or as for 'loko plan'.")
    ],
    *,
    columns: ColumnsOption = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="A schedule from --json: its flows keep their slots and paths, flows that are no longer"
            " listed leave, and new ones get free slots. The slots are those of that schedule."
        ),
    ] = None,
    scheme: Annotated[
        SchedulingScheme | None,
        typer.Option(
            help="Allowed paths: any (s-ur, default), the shortest (s-pr), or one of these drawn at random"
            " (s-fr)."
        ),
    ] = None,
    slots: Annotated[
        int | None, typer.Option(min=1, help="Slots of a base period. Default: as many as it holds.")
    ] = None,
    base_period_us: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e9,
            help="Time after which slots repeat. Default: a flow's shortest period, else what --slots need.",
        ),
    ] = None,
    exclusive: Annotated[
        Exclusive | None,
        typer.Option(
            help="What a flow has to itself in its slot: its links, as in the paper, or also its switches."
            " Default: links, where the switches hold all frames that may then meet in them."
        ),
    ] = None,
    guard_us: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1e6,
            help=f"How far hosts may be off their slots, early or late. Default: {GUARD_NS / NS_PER_US:g}.",
        ),
    ] = None,
    entries: Annotated[
        int | None,
        typer.Option(min=1, help="Entries that a flow table may have. Default: 17, or one per flow."),
    ] = None,
    changes_per_s: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1e6,
            help="Changes per second of each table while flows send, as 'loko serve' makes them. Default: 0.",
        ),
    ] = None,
    openflow: Annotated[
        OpenFlow | None,
        typer.Option(
            help="OpenFlow version of the switches: it decides what tables and messages cost. Default: 1.0."
        ),
    ] = None,
    solver: Annotated[Solver, typer.Option(help="Solver of the integer programs.")] = Solver.HIGHS,
    time_indexed: Annotated[
        bool,
        typer.Option(
            "--time-indexed", help="Solve the paper's time-indexed program instead of the quicker method."
        ),
    ] = False,
    time_limit: Annotated[
        float,
        typer.Option(min=0.1, max=86_400, help="Seconds after which the best schedule so far is returned."),
    ] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the paths that s-fr draws.")] = 1,
    sources: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a file of each host that sends, for 'zodiac-fx slots'. Files of hosts that send"
            " no more are deleted."
        ),
    ] = None,
    export: Annotated[
        GateFormat | None,
        typer.Option(
            help="Also write gate control lists (802.1Qbv) to --out, a file for each node: listing (text),"
            " taprio (commands of Linux' tc), or yang (instance data of IEEE's modules, switches only)."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of --export.")] = Path("gates"),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are in --out.")] = False,
    gate_class: Annotated[
        int,
        typer.Option(
            min=0,
            max=TRAFFIC_CLASSES - 1,
            help="Traffic class of the scheduled flows in --export, which no other frame may have.",
        ),
    ] = TRAFFIC_CLASSES - 1,
    gate_clock_us: Annotated[
        float,
        typer.Option(
            min=0, max=1e6, help="How far clocks of gates may be off that of the slots, early or late."
        ),
    ] = CLOCK_NS / NS_PER_US,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each flow.")] = False,
) -> None:
    """Give each flow a time slot in which no other flow uses its links (TSSDN). Status 1 if one gets none.

    Prints slots and paths, the entries of the controller, and when each host sends.

    Example: loko schedule two-switch flows.yml --scheme s-pr --slots 5
    """
    from loko.control.dialect import refuse_version  # noqa: PLC0415 - so that others need not load it
    from loko.schedule import lab_schedule  # noqa: PLC0415
    from loko.schedule.saved_schedule import extend, load_schedule  # noqa: PLC0415
    from loko.schedule.sources import write_sources  # noqa: PLC0415
    from loko.schedule.timed_flow import timed_flows_of  # noqa: PLC0415
    from loko.schedule.values import values_of  # noqa: PLC0415
    from loko.solvers.program import TimeBudget  # noqa: PLC0415
    from loko.topology.lab import load_lab  # noqa: PLC0415
    from loko.topology.requests import load_documents  # noqa: PLC0415
    from loko_testbed.cli.gate_export import export_gates  # noqa: PLC0415
    from loko_testbed.reproduce.schedule_check.document import ScheduleDocument, wanted_of  # noqa: PLC0415
    from loko_testbed.reproduce.schedule_check.verdict import check  # noqa: PLC0415

    refuse_both(as_json=as_json, as_csv=as_csv)
    begin_ns = time.monotonic_ns()
    clock = TimeBudget(now_ns=time.monotonic_ns, end_ns=begin_ns + round(time_limit * 1e9))
    network, documents, solve = load_lab(lab), load_documents(flows, columns=columns), solver_named(solver)
    timed = timed_flows_of(documents, flows)
    extended: ExtendedSchedule | None = None
    if keep is None:
        options = lab_schedule.SchedulingOptions(
            scheme=scheme or SchedulingScheme.UNCONSTRAINED,
            slots=slots,
            base_period_ns=None if base_period_us is None else round(base_period_us * NS_PER_US),
            exclusive=exclusive,
            guard_ns=GUARD_NS if guard_us is None else round(guard_us * NS_PER_US),
            entries=entries,
            changes_per_s=changes_per_s or 0.0,
            is_time_indexed=time_indexed,
            seed=seed,
            openflow=openflow or OpenFlow.V1_0,
        )
        result = _in_memory(lambda: lab_schedule.schedule(network, timed, options, solve, clock), len(timed))
    else:
        _refuse_beside_keep(
            scheme=scheme,
            slots=slots,
            base_period_us=base_period_us,
            exclusive=exclusive,
            guard_us=guard_us,
            entries=entries,
            changes_per_s=changes_per_s,
            time_indexed=time_indexed or None,
            openflow=openflow,
        )
        kept = load_schedule(keep)
        extended = _in_memory(lambda: extend(network, timed, kept, solve, clock, seed=seed), len(timed))
        result = extended.schedule
    for switch in network.switches.values():
        refuse_version(switch, result.openflow)
    values = values_of(result, (time.monotonic_ns() - begin_ns) / 1e9)
    if extended is not None:
        values |= _changes(extended)
    verdict = check(network, wanted_of(documents), ScheduleDocument.model_validate(values))
    if verdict.refutations:
        for line in verdict.refutations:
            tell(f"refuted: {line}", err=True)
        tell("error: the checker refutes this schedule, so it is not printed; please report it", err=True)
        raise typer.Exit(1)
    if sources is not None:
        write_sources(result, sources)
    if export is not None:
        export_gates(
            result,
            export,
            GateOptions(traffic_class=gate_class, clock_ns=round(gate_clock_us * NS_PER_US)),
            out,
            force=force,
        )
    if as_json:
        print_json(values | {"checked": verdict.values()})
    elif as_csv:
        print_csv(_COLUMNS, _rows(result, values["scheduled"]))
    else:
        _print(result, extended, verdict)
    if result.unscheduled or result.rate_limited_flows:
        raise typer.Exit(1)


_Made = TypeVar("_Made")


def _in_memory(make: Callable[[], _Made], flows: int) -> _Made:
    """Make a schedule. Raises `InputError` if there is not enough memory."""
    try:
        return make()
    except MemoryError:
        raise InputError(
            f"out of memory for {flows} flows; schedule fewer flows or slots, or leave --time-indexed out"
        ) from None


def _refuse_beside_keep(**chosen: object) -> None:
    """Raise `InputError` for options that the kept schedule has already decided."""
    for name, value in chosen.items():
        if value is not None:
            raise InputError(
                f"--{name.replace('_', '-')}: the kept schedule decides this; leave it or --keep out"
            )


def _changes(extended: ExtendedSchedule) -> dict[str, Any]:
    return {
        "kept": list(extended.kept),
        "added": list(extended.added),
        "removed": list(extended.removed),
        "optimality_gap": extended.optimality_gap,
    }


def _rows(result: LabSchedule, scheduled: list[dict[str, Any]]) -> Iterator[dict[str, object]]:
    for values in scheduled:
        told = {"flow": values["id"], "scheduled": "yes", "path": " ".join(values["path"])}
        yield {**values, **values["send"], **told}
    for timed in result.unscheduled:
        asked = {name: getattr(timed, name) for name in _COLUMNS[2:7]}
        yield {**asked, "flow": timed.id, "scheduled": "no"}


def _print(result: LabSchedule, extended: ExtendedSchedule | None, verdict: ScheduleVerdict) -> None:
    from rich.console import Console  # noqa: PLC0415 - so that other commands need not load it
    from rich.table import Table  # noqa: PLC0415

    timing, solution, console = result.timing, result.solution, Console()
    table = Table(title=f"{result.lab.name}: slots by {result.scheme.value}", title_justify="left")
    for column in ("flow", "slot", "path", "sends at us", "every us", "guarantee us"):
        table.add_column(column, justify="left" if column in {"flow", "path"} else "right")
    for scheduled in result.scheduled:
        table.add_row(
            scheduled.timed.id,
            str(scheduled.slot),
            " ".join(
                [scheduled.timed.source, *(hop.switch for hop in scheduled.path), scheduled.timed.destination]
            ),
            f"{scheduled.offset_ns / NS_PER_US:.3f}",
            f"{scheduled.every_ns / NS_PER_US:.3f}",
            f"{scheduled.bound_ns / NS_PER_US:.3f}",
        )
    console.print(table)
    table = Table(title="entries of the controller", title_justify="left")
    for column in ("switch", "from", "to", "port"):
        table.add_column(column, justify="right" if column == "port" else "left")
    for name, entries in result.entries.items():
        for entry in entries:
            match = entry.match
            table.add_row(
                name,
                f"{match.nw_src}:{match.tp_src}",
                f"{match.nw_dst}:{match.tp_dst}",
                str(entry.output_port),
            )
    console.print(table)
    lines = [
        f"{result.slots} slots of {timing.slot_ns / NS_PER_US:.3f} us in a base period of"
        f" {timing.base_period_ns / NS_PER_US:.3f} us; hosts may be off by"
        f" {timing.guard_ns / NS_PER_US:g} us",
        f"a flow has its {result.exclusive.value} for itself in its slot",
    ]
    lines += [
        f"no slot: {flow.id} ({flow.source} to {flow.destination}); it may not send"
        for flow in result.unscheduled
    ]
    lines += [
        f"slower than asked: {slow.timed.id} wants a frame every"
        f" {(slow.timed.requested_ns or 0) / NS_PER_US:.3f} us, and has one"
        f" every {slow.every_ns / NS_PER_US:.3f} us"
        for slow in result.rate_limited_flows
    ]
    count = len(result.scheduled)
    lines.append(
        f"{count} flows, and no schedule has more: {solution.why}"
        if solution.is_optimal
        else f"{count} flows; no schedule has more than {solution.bound}: {solution.why}; gap"
        f" {solution.gap_percent:.2f} %"
    )
    if extended is not None:
        lines += [f"left: {flow}" for flow in extended.removed]
        lines.append(
            f"{len(extended.kept)} flows were not moved, {len(extended.added)} were added; that nobody was"
            f" moved costs {_flows(extended.optimality_gap)}"
        )
    lines.append(
        f"checked: not refuted by arithmetic, nor by a replay of {verdict.replay.packets} frames in"
        f" {verdict.cycles} base periods"
    )
    for line in lines:
        tell(line)


def _flows(most: int) -> str:
    return "no flow" if not most else f"at most {most} flow{'s' if most > 1 else ''}"
