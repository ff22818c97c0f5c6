"""The command `loko lab`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.console import Console
from rich.table import Table

from evaluation.live.background import BackgroundLab, ProcessLine, state_folder, up
from evaluation.live.building import remove
from evaluation.live.containerlab.topology import topology, topology_file
from evaluation.live.cores import CorePlan
from evaluation.live.messages import LabStatus
from evaluation.options import Builder
from evaluation.runner import RunError
from loko.document import InputError
from loko.entries import EVALUATION_ENTRIES
from loko.flow import Flow, load_flows
from loko.lab import Backend, Lab, load_lab

lab_app = typer.Typer(no_args_is_help=True, help="Start, show and end a lab that stays up.")


@contextmanager
def _errors_end() -> Iterator[None]:
    """End the program with status 2 and one line if the input or the machine is not as needed."""
    try:
        yield
    except (InputError, RunError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


LabArgument = Annotated[str, typer.Argument(help="Name of a lab, such as two-switch, or path of its folder.")]
BackendOption = Annotated[
    Backend | None, typer.Option(help="What every switch is. Default: as the lab says.")
]
BuilderOption = Annotated[Builder, typer.Option(help="What builds the network.")]
CablingOption = Annotated[
    Path | None, typer.Option(help="Which switches are real boards, and how they are cabled.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@lab_app.command("up")
def lab_up(
    lab: LabArgument,
    *,
    builder: BuilderOption = Builder.MININET,
    flows: Annotated[
        str | None, typer.Option(help="Flows to admit. Default: flows.yml beside lab.yml, if it is there.")
    ] = None,
    allocation: Annotated[str, typer.Option(help="full-rate or fifth-rate.")] = "fifth-rate",
    entries: Annotated[int, typer.Option(help="Entries in each table.")] = EVALUATION_ENTRIES,
    backend: BackendOption = None,
    cabling: CablingOption = None,
) -> None:
    """Start a lab and leave it running: hosts, boards, and the controller with its tables. Needs root.

    Example: sudo loko lab up two-switch
    """
    with _errors_end():
        the_lab = load_lab(lab, cabling)
        if warning := CorePlan.here().warning:
            typer.echo(f"warning: {warning}", err=True)
        running = up(
            the_lab,
            _flows(the_lab, flows),
            allocation=allocation,
            entries=entries,
            backend=backend,
            builder=builder,
        )
    typer.echo(f"lab {running.name} is up; see it with 'loko lab status {running.name}'")


@lab_app.command("down")
def lab_down(lab: LabArgument, *, builder: BuilderOption = Builder.MININET) -> None:
    """End a lab, also if its lab.yml is gone. Nothing of it is left.

    Example: sudo loko lab down two-switch
    """
    with _errors_end():
        name = _name(lab)
        running = BackgroundLab.find(name)
        if running is not None:
            running.down()
        stale = remove(load_lab(lab), builder) if builder is Builder.CONTAINERLAB else []
        if stale:
            typer.echo(f"removed: {', '.join(stale)}")
        if running is None:
            typer.echo(f"lab {name} is not up")
            return
    typer.echo(f"lab {name} is down")


@lab_app.command("status")
def lab_status(
    lab: Annotated[str | None, typer.Argument(help="Name of a lab. Default: all that are up.")] = None,
    *,
    builder: BuilderOption = Builder.MININET,  # noqa: ARG001 (labs of either are shown alike)
    as_json: JsonOption = False,
) -> None:
    """Show the labs that are up: their processes, connected switches, counters.

    Example: sudo loko lab status two-switch --json
    """
    with _errors_end():
        found = [BackgroundLab.find(_name(lab))] if lab else list(BackgroundLab.all())
        shown = [_View.of(running) for running in found if running]
    if as_json:
        typer.echo(json.dumps([asdict(view) for view in shown], indent=2))
    elif not shown:
        typer.echo(f"lab {_name(lab)} is not up" if lab else f"no lab is up (looked in {state_folder()})")
    else:
        for view in shown:
            view.print()


@lab_app.command("draw")
def lab_draw(
    lab: LabArgument,
    *,
    out: Annotated[Path, typer.Option(help="Where to; an SVG, and a PNG beside it.")],
    cabling: CablingOption = None,
) -> None:
    """Draw a lab: its cables with their ports and, of real boards, the network cards of this machine.

    Example: loko lab draw two-switch --cabling cabling.yml --out two-switch.svg
    """
    from evaluation.pictures.cabling import draw  # noqa: PLC0415 - `loko lab up` need not load it

    with _errors_end():
        draw(load_lab(lab, cabling), out)
    typer.echo(f"{out.with_suffix('.svg')}")


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
    typer.echo(f"written: {file}")


def _flows(lab: Lab, file: str | None) -> tuple[Flow, ...]:
    beside = lab.path.with_name("flows.yml")
    if file is None and not beside.is_file():
        return ()
    return load_flows(file or beside)


def _name(lab: str) -> str:
    """The lab's name: what its file says, else what the path ends in, so that the file may be gone."""
    try:
        return load_lab(lab).name
    except InputError:
        path = Path(lab)
        return path.parent.name if path.name == "lab.yml" else path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What is shown of a running lab."""

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
        console.print("A command in a host: sudo mnexec -a PID COMMAND, with the pid of the host's shell.")
