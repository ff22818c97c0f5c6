"""The command `loko bench controller`."""

from __future__ import annotations

import asyncio
import re
from dataclasses import fields
from typing import Annotated

import typer

from loko.document import InputError
from loko.switch_model.scenario import OpenFlow
from loko_testbed.cli.bench.bisect_quirks import bisect_check
from loko_testbed.cli.for_programs import print_csv, print_json, refuse_both
from loko_testbed.measure.controllers.check import ControllerCheck
from loko_testbed.measure.controllers.exercise import MOST_REQUESTS, Exercise, measure
from loko_testbed.measure.controllers.results import FleetResult, LatencyStats

_TIMES = ("setup", "processing", "provisioning", "loaded", "recovery")
_TEXTS = "complaints"
_OF_MEASURING = ("free_control", "rounds", "one_by_one", "at_once", "outstanding", "timeout_s")
_OF_BISECTING = ("command", "openflow", "check_timeout_s")
_WIRE_VERSIONS = {None: 0, OpenFlow.V1_0: 1, OpenFlow.V1_3: 4}


def bench_controller(
    context: typer.Context,
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="With --bisect-quirks: your check; status 0 passes."),
    ] = None,
    connect: Annotated[
        str | None, typer.Option(help="Where the controller listens: tcp:ADDRESS:PORT.")
    ] = None,
    boards: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="Emulated boards that connect to it. Default: 32; with --bisect-quirks 1."
        ),
    ] = None,
    free_control: Annotated[
        bool, typer.Option("--free-control", help="Let control messages cost the boards no time.")
    ] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Repeat all with fresh boards so often.")] = 3,
    one_by_one: Annotated[int, typer.Option(min=1, help="Frames of each board, one at a time.")] = 5,
    at_once: Annotated[int, typer.Option(min=1, help="Frames of each board under load.")] = 60,
    outstanding: Annotated[int, typer.Option(min=1, help="Unanswered frames of a board under load.")] = 4,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="Without an answer so long it is lost.")] = 5.0,
    bisect_quirks: Annotated[
        bool,
        typer.Option(
            "--bisect-quirks",
            help="Run COMMAND against boards with one quirk less each time, and name those that break it.",
        ),
    ] = False,
    openflow: Annotated[
        OpenFlow | None,
        typer.Option(help="With --bisect-quirks: only quirks of this version. Default: all."),
    ] = None,
    check_timeout_s: Annotated[
        float, typer.Option(min=0.1, help="With --bisect-quirks: a check that takes so long fails.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, times in ns.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the result as CSV in one line, times in ns.")
    ] = False,
) -> None:
    """Measure somebody else's OpenFlow controller with a fleet of emulated boards (RFC 8456).

    The controller must run an application that learns addresses. Ctrl-C prints what was measured so far.

    With --bisect-quirks, COMMAND is run with the boards' behaviour in LOKO_QUIRKS, which the fixtures for
    pytest follow. With --connect as well, boards connect there while it runs. The status is 0 if it passes
    with all quirks, 1 if quirks break it, and 2 if they are not the cause.

    Example: loko bench controller --connect tcp:127.0.0.1:6633 --boards 32
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    _refuse_idle_options(context, bisect_quirks=bisect_quirks, connects=connect is not None)
    if bisect_quirks:
        check = ControllerCheck(
            command=tuple(command or ()),
            timeout_s=check_timeout_s,
            controller=None if connect is None else _address(connect),
            boards=boards or 1,
            openflow_version=_WIRE_VERSIONS[openflow],
        )
        raise typer.Exit(bisect_check(check, as_json=as_json, as_csv=as_csv))
    if connect is None:
        raise InputError("--connect: say where the controller listens, such as tcp:127.0.0.1:6633")
    boards = boards or 32
    if one_by_one + at_once > MOST_REQUESTS:
        raise InputError(
            f"--one-by-one {one_by_one} and --at-once {at_once}: together more than the {MOST_REQUESTS}"
            " entries that a board's table takes in a round; ask for fewer, and more --rounds"
        )
    exercise = Exercise(
        controller=_address(connect),
        boards=boards,
        control_cost=not free_control,
        rounds=rounds,
        one_by_one=one_by_one,
        at_once=at_once,
        outstanding=outstanding,
        timeout_s=timeout_s,
    )
    result = FleetResult(boards=boards, control_cost=not free_control)
    try:
        asyncio.run(measure(exercise, result))
    except KeyboardInterrupt:
        typer.echo(f"interrupted after {result.rounds} of {rounds} rounds", err=True)
    if as_json:
        print_json(result.as_values())
    elif as_csv:
        row = flat(result)
        print_csv(list(row), [row])
    else:
        typer.echo("\n".join(table(result)))
    if not result.is_complete:
        raise typer.Exit(1)


def _refuse_idle_options(context: typer.Context, *, bisect_quirks: bool, connects: bool) -> None:
    """Refuse what is given for the other of the command's two tasks. Raises `InputError`."""
    if bisect_quirks:
        uses = dict.fromkeys(_OF_MEASURING, "without --bisect-quirks")
        if not connects:
            uses["boards"] = "without --bisect-quirks, or with --connect"
    else:
        uses = dict.fromkeys(_OF_BISECTING, "with --bisect-quirks")
    for name, use in uses.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "COMMAND" if name == "command" else f"--{name.replace('_', '-')}"
            raise InputError(f"{option}: is only used {use}; leave it out")


def _address(text: str) -> tuple[str, int]:
    parts = re.fullmatch(r"tcp:(\[[0-9a-fA-F:.]+\]|[^:\[\]]+):(\d{1,5})", text)
    if parts is None or not 0 < int(parts[2]) < 65536:
        raise InputError(f"--connect '{text}' is not an address such as tcp:127.0.0.1:6633")
    return parts[1].strip("[]"), int(parts[2])


def flat(result: FleetResult) -> dict[str, object]:
    """Return the result as one row of columns; each statistic of times has its own, empty if not reached."""
    row: dict[str, object] = {}
    for name in (column.name for column in fields(FleetResult)):
        value = getattr(result, name)
        if name in _TIMES:
            row |= {
                f"{name}_{part.name}": value and getattr(value, part.name) for part in fields(LatencyStats)
            }
        else:
            row[name] = (
                "; ".join(f"{count} x {text}" for text, count in value.items()) if name == _TEXTS else value
            )
    return row


def table(result: FleetResult) -> list[str]:
    """Return the result as text, in lines of at most 80 characters."""
    cost = "with" if result.control_cost else "without"
    lines = [
        f"{result.boards} boards {cost} the cost of control messages; {result.rounds} rounds complete",
        "",
        f"{'':42}{'median':>11}{'p99':>11}{'most':>11}",
    ]
    for name, measured in (
        ("session setup", result.setup),
        ("message processing time, one by one", result.processing),
        ("reactive provisioning, one by one", result.provisioning),
        ("message processing time under load", result.loaded),
        ("restart until the first entry", result.recovery),
    ):
        lines.append(f"{name:42}{_times(measured)}")
    lost = 100 * result.lost / result.requests if result.requests else 0.0
    lines += [
        "",
        f"control sessions up together              {result.sessions} of {result.boards}",
        f"left out, no answer to a broadcast        {result.left_out}",
        f"session setups                            {_rate(result.setups_per_s)}",
        f"message processing rate                   {_rate(result.processed_per_s)}",
        f"lost                                      {result.lost} of {result.requests} ({lost:.2f} %)",
        f"not back after a restart                  {result.not_recovered}",
        f"sessions ended by the controller          {result.closed_by_controller}",
    ]
    lines += [f"boards say, {count} times: {text}"[:80] for text, count in result.complaints.items()]
    return lines


def _times(measured: LatencyStats | None) -> str:
    if measured is None:
        return f"{'-':>11}" * 3
    return "".join(f"{ns / 1e6:8.2f} ms" for ns in (measured.p50_ns, measured.p99_ns, measured.max_ns))


def _rate(per_s: float | None) -> str:
    return "-" if per_s is None else f"{per_s:.0f}/s"
