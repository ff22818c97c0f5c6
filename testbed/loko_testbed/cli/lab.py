"""The command `loko lab`."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final, Self

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from loko.control.address import Address
from loko.control.dialect import refuse_version
from loko.control.entries import EVALUATION_ENTRIES
from loko.document import InputError
from loko.service.faults import Fault, FaultKind
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.terminal import tell, tell_error
from loko.topology.lab import Backend, Lab, load_lab
from loko.topology.requests import load_flows
from loko_testbed.cli.choices import (
    PCAP_LIMIT_MEGABYTES,
    ColumnsOption,
    OpenFlowOption,
    PcapLimitOption,
)
from loko_testbed.cli.for_programs import JsonOption, csv_lines, print_csv, print_json, refuse_both
from loko_testbed.cli.lab_export import lab_export
from loko_testbed.cli.new_lab import new_lab
from loko_testbed.instruments.programs import locate
from loko_testbed.live.background import BackgroundLab, ProcessLine, up
from loko_testbed.live.building import remove
from loko_testbed.live.containerlab.topology import topology, topology_file
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.lab_capture.capture_request import CaptureFolder
from loko_testbed.live.messages import LabStatus
from loko_testbed.live.permission import require_root
from loko_testbed.live.state import LABS
from loko_testbed.live.watch import SWITCH_COLUMNS, look, switch_rows, view
from loko_testbed.simulation.options import Builder
from loko_testbed.simulation.runner import RunError

_FEW_FLOWS: Final = 4
"""How many flows are named in an explanation of what passes."""

lab_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Write a lab of your own; start, show and stop a lab that keeps running.",
)
lab_app.command("new")(new_lab)
lab_app.command("export")(lab_export)


@contextmanager
def _errors_end() -> Iterator[None]:
    """End the program with status 2 and one line if the input or the machine is not as needed."""
    try:
        yield
    except (InputError, RunError) as error:
        tell_error(error)
        raise typer.Exit(2) from None


LabArgument = Annotated[str, typer.Argument(help="Name of a lab, such as two-switch, or path of its folder.")]
BackendOption = Annotated[
    Backend | None, typer.Option(help="Backend of every switch. Default: as the lab says.")
]
BuilderOption = Annotated[Builder, typer.Option(help="What builds the network.")]
RunningLabArgument = Annotated[str, typer.Argument(help="Name of a lab that is up.")]
CableArgument = Annotated[str, typer.Argument(help="One of its cables, as s1:3-s2:3.")]
CablingOption = Annotated[
    Path | None, typer.Option(help="Which switches are real boards, and how they are cabled.")
]


@lab_app.command("up")
def lab_up(
    lab: LabArgument,
    *,
    builder: BuilderOption = Builder.MININET,
    flows: Annotated[
        str | None, typer.Option(help="Flows to admit. Default: flows.yml beside lab.yml, if it exists.")
    ] = None,
    columns: ColumnsOption = None,
    allocation: Annotated[str, typer.Option(help="full-rate or fifth-rate.")] = "fifth-rate",
    entries: Annotated[int, typer.Option(help="Entries in each table.")] = EVALUATION_ENTRIES,
    openflow: OpenFlowOption = OpenFlow.V1_0,
    backend: BackendOption = None,
    cabling: CablingOption = None,
    relaxed: Annotated[
        bool,
        typer.Option(
            "--relaxed", help="Beside other labs put up so; its delays say nothing of the switches."
        ),
    ] = False,
    no_controller: Annotated[
        bool,
        typer.Option("--no-controller", help="Start none: run yours inside, by 'loko lab exec LAB SWITCH'."),
    ] = False,
    controller: Annotated[
        str | None,
        typer.Option(help="Connect the switches with yours on this machine, such as tcp:127.0.0.1:6633."),
    ] = None,
    without_quirk: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a quirk (docs/quirks.md) that the boards shall not have; may be repeated."
        ),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(help="Folder for captures: a pcapng file of each switch and host (docs/live-lab.md)."),
    ] = None,
    pcap_limit: PcapLimitOption = PCAP_LIMIT_MEGABYTES,
) -> None:
    """Start a lab and leave it running: hosts, boards, and the controller with its tables. Needs root.

    The controller is Loko's own and lets the admitted flows pass, unless you bring another. The lab has the
    machine for itself, so that its delays are the switches'; with --relaxed several labs of different names
    may be up.

    Example: sudo loko lab up two-switch
    """
    with _errors_end():
        elsewhere = Address.parse(controller, "--controller") if controller else None
        if flows and (no_controller or elsewhere):
            raise InputError("--flows: are for Loko's own controller, which is not started; leave them out")
        if no_controller and elsewhere:
            raise InputError("--no-controller and --controller: give one of them")
        if elsewhere and builder is Builder.CONTAINERLAB:
            raise InputError("--controller: boards in containers are in a network of their own; leave it out")
        the_lab = load_lab(lab, cabling)
        if without_quirk:
            from loko_testbed.simulation.quirks import without_quirks  # noqa: PLC0415 - loads the emulator

            the_lab = without_quirks(the_lab.with_backend(backend), without_quirk, "--without-quirk")
        for switch in the_lab.with_backend(backend).switches.values():
            refuse_version(switch, openflow)
        if warning := (CorePlan.relaxed_here() if relaxed else CorePlan.here()).warning:
            tell(f"warning: {warning}", err=True)
        running = up(
            the_lab,
            () if no_controller or elsewhere else _flows(the_lab, flows, columns),
            allocation=allocation,
            entries=entries,
            openflow=openflow,
            backend=backend,
            builder=builder,
            relaxed=relaxed,
            elsewhere=elsewhere,
            without_quirks=tuple(without_quirk or ()),
            captures=CaptureFolder(path=pcap.absolute(), limit_bytes=pcap_limit * 1_000_000)
            if pcap
            else None,
        )
        told = running.status()
    tell(f"controller: {told.controller}")
    if told.captures:
        tell(f"captures: {told.captures}")
    tell(f"lab {running.name} is up; see it with 'loko lab status {running.name}'")


@lab_app.command("down")
def lab_down(lab: LabArgument, *, builder: BuilderOption = Builder.MININET) -> None:
    """Stop a lab, even if its lab.yml is gone. Nothing of it is left.

    Example: sudo loko lab down two-switch
    """
    with _errors_end():
        name = _name(lab)
        running = BackgroundLab.find(name)
        if running is not None:
            running.down()
        stale = remove(load_lab(lab), builder) if builder is Builder.CONTAINERLAB else []
        if stale:
            tell(f"removed: {', '.join(stale)}")
        if running is None:
            tell(f"lab {name} is not up")
            return
    tell(f"lab {name} is down")


@lab_app.command("status")
def lab_status(
    lab: Annotated[str | None, typer.Argument(help="Name of a lab. Default: all that are up.")] = None,
    *,
    builder: BuilderOption = Builder.MININET,  # noqa: ARG001 (labs of either are shown alike)
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each counter.")] = False,
) -> None:
    """Show the labs that are up: their processes, connected switches, counters.

    Example: sudo loko lab status two-switch --json
    """
    with _errors_end():
        refuse_both(as_json=as_json, as_csv=as_csv)
        labs = [BackgroundLab.find(_name(lab))] if lab else list(BackgroundLab.all())
        shown = [_View.of(running) for running in labs if running]
    if as_json:
        print_json([asdict(view) for view in shown])
    elif as_csv:
        rows = (
            {"lab": view.status.lab, "switch": switch, "counter": name, "value": value}
            for view in shown
            for switch, counters in view.status.counters.items()
            for name, value in counters.items()
        )
        print_csv(["lab", "switch", "counter", "value"], rows)
    elif not shown:
        tell(f"lab {_name(lab)} is not up" if lab else f"no lab is up (looked in {LABS})")
    else:
        for view in shown:
            view.print()


@lab_app.command("watch")
def lab_watch(
    lab: Annotated[str | None, typer.Argument(help="Name of a lab. Default: the one that is up.")] = None,
    *,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 1.0,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many. Default: at Ctrl-C.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each look.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, a line for each switch at each look; not the ports.")
    ] = False,
) -> None:
    """Watch what passes a lab that is up: ports, table walk, queue, losses, stalls. Needs root.

    The table walk is how many entries a switch compares with a frame, on average. The queue is the most units
    of its receive ring in use at once since the lab is up.

    Example: sudo loko lab watch two-switch
    """
    with _errors_end(), contextlib.suppress(KeyboardInterrupt):
        refuse_both(as_json=as_json, as_csv=as_csv)
        require_root()
        running = _up(lab) if lab else _the_only_one()
        form = _as_json if as_json else _as_csv if as_csv else _for_people
        before = running.status()
        with form(interval) as tell_look:
            for _ in itertools.repeat(None) if count is None else range(count):
                time.sleep(interval)
                now = running.status()
                tell_look(before, now)
                before = now


_TellsLook = Callable[[LabStatus, LabStatus], None]
"""Prints what happened between two statuses."""


@contextmanager
def _for_people(seconds: float) -> Iterator[_TellsLook]:
    """Print views for people: on a terminal each replaces the one before, else they follow each other."""
    console = Console()
    if not console.is_terminal:
        yield lambda before, now: console.print(view(before, now, seconds))
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda before, now: live.update(view(before, now, seconds), refresh=True)


@contextmanager
def _as_json(seconds: float) -> Iterator[_TellsLook]:
    yield lambda before, now: typer.echo(json.dumps(look(before, now, seconds), ensure_ascii=False))


@contextmanager
def _as_csv(seconds: float) -> Iterator[_TellsLook]:
    numbers = itertools.count(1)

    def tell_look(before: LabStatus, now: LabStatus) -> None:
        number = next(numbers)
        rows = [{"look": number, "seconds": seconds, **asdict(row)} for row in switch_rows(before, now)]
        heading, _, lines = csv_lines(SWITCH_COLUMNS, rows).partition("\n")
        typer.echo(f"{heading}\n{lines}" if number == 1 else lines, nl=False)

    yield tell_look


@lab_app.command("pull")
def lab_pull(lab: RunningLabArgument, cable: CableArgument) -> None:
    """Pull a cable of a lab that is up. What is on it is lost, and switches at its ends see it. Needs root.

    Example: sudo loko lab pull two-switch s1:3-s2:3
    """
    _cause(lab, Fault(FaultKind.PULL, cable), "is pulled out")


@lab_app.command("plug")
def lab_plug(lab: RunningLabArgument, cable: CableArgument) -> None:
    """Plug a pulled cable of a lab that is up in again. Needs root.

    Example: sudo loko lab plug two-switch s1:3-s2:3
    """
    _cause(lab, Fault(FaultKind.PLUG, cable), "is plugged in again")


@lab_app.command("reboot")
def lab_reboot(
    lab: RunningLabArgument,
    switch: Annotated[str, typer.Argument(help="An emulated board of it.")],
) -> None:
    """Reboot a board of a lab that is up: it loses its table and its session. Needs root.

    Example: sudo loko lab reboot two-switch s1
    """
    _cause(lab, Fault(FaultKind.REBOOT, switch), "reboots")


def _cause(lab: str, fault: Fault, done: str) -> None:
    with _errors_end():
        _up(lab).cause(fault)
    tell(f"{fault.place} {done}")


@lab_app.command("exec", context_settings={"allow_interspersed_args": False})
def lab_exec(
    lab: Annotated[str, typer.Argument(help="Name of a lab that is up.")],
    node: Annotated[str, typer.Argument(help="One of its hosts.")],
    command: Annotated[list[str], typer.Argument(help="A program, with its own options.")],
) -> None:
    """Run a command in a host of a lab that is up. Its exit status is the command's. Needs root.

    Example: sudo loko lab exec two-switch H1 ip address
    """
    with _errors_end():
        into = _up(lab).way_into(node)
        program = locate(command[0])
        if program is None:
            raise InputError(f"{command[0]}: there is no such program on this machine")
    status = _run([*into, program, *command[1:]])
    if status and Path(command[0]).name.startswith("ping"):
        with _errors_end():
            tell(_why_no_ping(_up(lab).status()), err=True)
    raise typer.Exit(status)


@lab_app.command("shell")
def lab_shell(
    names: Annotated[
        list[str],
        typer.Argument(metavar="[LAB] NODE", help="One of the hosts; name the lab if several are up."),
    ],
) -> None:
    """Open a shell in a host of a lab that is up. Needs root.

    Example: sudo loko lab shell H1
    """
    with _errors_end():
        if len(names) > 2:
            raise InputError(f"{' '.join(names)}: give a host, or a lab and a host")
        require_root()
        running = _up(names[0]) if len(names) == 2 else _the_only_one()
        into = running.way_into(names[-1])
    raise typer.Exit(_run([*into, "bash", "--norc"], PS1=f"{names[-1]}:\\w\\$ "))


@lab_app.command("draw")
def lab_draw(
    lab: LabArgument,
    *,
    out: Annotated[Path, typer.Option(help="SVG file to write; a PNG goes beside it.")],
    cabling: CablingOption = None,
) -> None:
    """Draw a lab: its cables with their ports and, for real boards, this machine's network cards.

    Example: loko lab draw two-switch --cabling cabling.yml --out two-switch.svg
    """
    from loko_testbed.reproduce.plots.cabling import draw  # noqa: PLC0415 - `loko lab up` need not load it

    with _errors_end():
        draw(load_lab(lab, cabling), out)
    tell(f"{out.with_suffix('.svg')}")


@lab_app.command("clab")
def lab_clab(
    lab: LabArgument,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write it beside the lab instead.")] = False,
) -> None:
    """Print the lab as a topology file of containerlab. Nothing is started.

    Example: loko lab clab two-switch
    """
    with _errors_end():
        the_lab = load_lab(lab)
        text = topology(the_lab)
        if not write:
            typer.echo(text, nl=False)
            return
        file = topology_file(the_lab)
        file.write_text(text, encoding="utf-8")
    tell(f"written: {file}")


def _why_no_ping(status: LabStatus) -> str:
    """Return why a ping between hosts may get no answer, and what would pass."""
    if status.flows:
        few, more = status.flows[:_FEW_FLOWS], len(status.flows) - _FEW_FLOWS
        also = f"; and {more} more" if more > 0 else ""
        return (
            "note: the lab's controller lets only its admitted flows pass, and a ping is none of them:"
            f" {'; '.join(few)}{also} (docs/live-lab.md)"
        )
    if status.connected < status.switches:
        return (
            f"note: {status.connected} of {status.switches} switches have a controller, and without one they"
            f" forward nothing; controller: {status.controller} (docs/live-lab.md)"
        )
    return "note: all switches have a controller; what passes is up to its entries (docs/live-lab.md)"


def _up(lab: str) -> BackgroundLab:
    """Return the lab of that name, which must be up. Raises `InputError` or `RunError`."""
    require_root()
    name = _name(lab)
    running = BackgroundLab.find(name)
    if running is None:
        raise InputError(f"lab {name} is not up: start it with 'loko lab up {name}'")
    return running


def _the_only_one() -> BackgroundLab:
    running = list(BackgroundLab.all())
    if not running:
        raise InputError("no lab is up: start one with 'loko lab up'")
    if len(running) > 1:
        names = ", ".join(lab.name for lab in running)
        raise InputError(f"several labs are up ({names}): name one before the host")
    return running[0]


def _run(command: Sequence[str], **surroundings: str) -> int:
    """Run a command on this terminal and return its exit status as a shell would.

    Ctrl-C is left to the command.
    """
    process = subprocess.Popen(command, env={**os.environ, **surroundings})
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            continue
        return status if status >= 0 else 128 - status


def _flows(lab: Lab, file: str | None, columns: str | None) -> tuple[Flow, ...]:
    beside = lab.path.with_name("flows.yml")
    if file is None and not beside.is_file():
        return ()
    return load_flows(file or beside, columns=columns)


def _name(lab: str) -> str:
    """Return the lab's name: from its file or, if the file is gone, from the end of the path."""
    try:
        return load_lab(lab).name
    except InputError:
        path = Path(lab)
        return path.parent.name if path.name == "lab.yml" else path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The view of a running lab."""

    status: LabStatus
    pid: int
    processes: list[ProcessLine]

    @classmethod
    def of(cls, running: BackgroundLab) -> Self:
        return cls(status=running.status(), pid=running.pid, processes=running.processes())

    def print(self) -> None:
        console = Console()
        status = self.status
        console.print(f"[bold]{status.lab}[/bold] ({status.path})")
        console.print(f"{status.connected} of {status.switches} switches connected to the controller")
        tell(f"controller: {status.controller}")
        if status.captures:
            tell(f"captures: {status.captures}")
        console.print(f"forwarding: {status.scheduling}")
        processes = Table("pid", "process", box=None)
        for line in self.processes:
            processes.add_row(str(line.pid), line.what)
        console.print(processes)
        counters = Table("switch", "counter", "value", box=None)
        for switch, values in status.counters.items():
            for name, value in values.items():
                counters.add_row(switch, name, str(value))
        console.print(counters)
        consoles = Table("switch", "serial console", box=None)
        for switch, device in status.consoles.items():
            consoles.add_row(switch, device)
        console.print(consoles)
        for switch, said in status.real_boards.items():
            console.print(f"{switch} is a real board: {', '.join(map(' '.join, said.items()))}")
        tell(
            f"A command in a host: sudo loko lab exec {status.lab} HOST COMMAND; a shell there:"
            f" sudo loko lab shell {status.lab} HOST"
        )
