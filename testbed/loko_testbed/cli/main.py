"""The program `loko`: its commands, each imported only when it is called, and its exit status."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from loko.extras import missing_package
from loko.terminal import tell, user_errors_end
from loko.user_error import ENVIRONMENT_FAULT, NOT_NOW, WRONG_INPUT, UserError, validator_message

if TYPE_CHECKING:
    from typer._click import Command, Context

INTERRUPTED: Final = 130
_PACKAGE: Final = "loko-testbed"
_PYTHONS_WARNING: Final = warnings.showwarning
_RENAMED_OPTIONS: Final[Mapping[str, str]] = {
    "--delete-strangers": "--delete-foreign-entries",
    "--fillers": "--padding",
    "--straight": "--time-indexed",
}
"""Former names of options, each with the present one, which the error states."""


class LazyCommand(NamedTuple):
    """Where to find a command, or a group of commands, whose module is slow to import."""

    module: str
    name: str
    help: str
    """Its line in `loko --help`, which is also the first line of its own help."""
    extra: str = ""
    """The extra that brings all that the command needs, if the base does not (`loko.extras`)."""


COMMANDS: Final[Mapping[str, LazyCommand]] = {
    "model": LazyCommand(
        "loko_testbed.cli.model",
        "model",
        "Show the service curve of a switch, and what may be allocated of it.",
    ),
    "plan": LazyCommand(
        "loko_testbed.cli.plan",
        "plan",
        "Show which flows fit a lab, with which guarantee, and why the others do not.",
    ),
    "schedule": LazyCommand(
        "loko_testbed.cli.schedule",
        "schedule",
        "Give each flow a time slot in which no other flow uses its links (TSSDN).",
    ),
    "check-schedule": LazyCommand(
        "loko_testbed.cli.check",
        "check_schedule",
        "Try to refute a schedule, by arithmetic and by a replay in the simulator.",
    ),
    "schedule-gates": LazyCommand(
        "loko_testbed.cli.schedule_gates",
        "schedule_gates",
        "Schedule tsnkit's streams in slots and write gates for them (802.1Qbv).",
    ),
    "check-gates": LazyCommand(
        "loko_testbed.cli.check",
        "check_gates",
        "Try to refute a gate schedule (802.1Qbv) from tsnkit or others.",
    ),
    "serve": LazyCommand(
        "loko_testbed.cli.serve",
        "serve",
        "Serve a lab: admit flows over REST and keep them in its switches.",
        extra="service",
    ),
    "store": LazyCommand(
        "loko_testbed.cli.store",
        "store_app",
        "Show, save and restore the promises that 'loko serve' keeps on disk.",
    ),
    "evaluate": LazyCommand(
        "loko_testbed.cli.evaluate",
        "evaluate",
        "Replay figures of the papers and compare them with what the papers say.",
        extra="figures",
    ),
    "figures": LazyCommand(
        "loko_testbed.cli.evaluate",
        "figures",
        "List the figures that can be replayed, their papers, and how long they take at the paper's scale.",
        extra="figures",
    ),
    "report": LazyCommand(
        "loko_testbed.cli.evaluate",
        "report",
        "Write DIR/report.html again from the results in DIR.",
        extra="figures",
    ),
    "bundle": LazyCommand(
        "loko_testbed.cli.bundle",
        "bundle",
        "Pack results, report and the source that made them into one archive that others can verify.",
        extra="figures",
    ),
    "verify": LazyCommand(
        "loko_testbed.cli.bundle",
        "verify",
        "Check an archive: make its files again from what they follow from, and compare the bytes.",
        extra="figures",
    ),
    "lab": LazyCommand(
        "loko_testbed.cli.lab",
        "lab_app",
        "Write a lab of your own; start, show and stop a lab that keeps running.",
    ),
    "mininet": LazyCommand(
        "loko_testbed.cli.mininet",
        "mininet_app",
        "Print the file that adds emulated boards to 'mn', or run a script that has them in its network.",
    ),
    "flows": LazyCommand("loko_testbed.cli.flows", "flows_app", "Write flows to begin with."),
    "replay": LazyCommand(
        "loko_testbed.cli.replay",
        "replay",
        "Replay the flows that fit a lab in virtual time, and compare every packet with its guarantee.",
    ),
    "schema": LazyCommand(
        "loko_testbed.cli.schema", "schema", "Print the JSON Schema of a file that people write, for editors."
    ),
    "bench": LazyCommand(
        "loko_testbed.cli.bench",
        "BENCH",
        "Measure a switch and derive its profile (step 1 of Loko).",
        extra="figures",
    ),
    "plug-ins": LazyCommand(
        "loko_testbed.cli.plug_ins",
        "list_plug_ins",
        "List the schemes, devices and figure types that other packages add.",
    ),
    "docs": LazyCommand(
        "loko_testbed.cli.docs", "docs", "Print the path of the documentation, or of one of its pages."
    ),
    "doctor": LazyCommand(
        "loko_testbed.cli.doctor",
        "doctor",
        "Find out whether live results from this machine can be trusted, and what would make them better.",
    ),
}


class _Commands(TyperGroup):
    """Looks up commands by name. One that has not been called yet has only its name and its help line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, there in COMMANDS.items():
            self.add_command(TyperCommand(name=name, help=there.help), name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Import the command that is called, then resolve it as usual."""
        if args[0] in COMMANDS:
            ctx.invoked_subcommand = args[0]  # known before its import, which may lack an extra
            self.add_command(load(args[0]), args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Context) -> Any:
        """Run the command that is called; it ends with one line on an error of the user."""
        with user_errors_end():
            try:
                return super().invoke(ctx)
            except ModuleNotFoundError as error:
                name = ctx.invoked_subcommand or ""
                missing = missing_package(error.name, COMMANDS[name].extra if name in COMMANDS else "")
                if missing is None:
                    raise
                raise UserError(f"loko {name}: {missing}") from None


def load(name: str) -> Command:
    """Import the command of that name and return it in full."""
    there = COMMANDS[name]
    command = getattr(import_module(there.module), there.name)
    if not isinstance(command, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(command)
        command = alone
    return _wrapped_by_the_terminal(get_command(command))


def _wrapped_by_the_terminal(command: Command) -> Command:
    """Let the terminal break the lines of a command's help, not the docstring that it comes from."""
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for subcommand in getattr(command, "commands", {}).values():
        _wrapped_by_the_terminal(subcommand)
    return command


app = typer.Typer(
    name="loko",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Predictable latency on low-cost switches, replayable. Exit status: 0 done, 1 a claim or guarantee"
    " did not hold, 2 wrong input. Documentation: loko docs --open",
)


def _tell_versions(is_asked: bool) -> None:
    if not is_asked:
        return
    from loko_testbed.tasks.provenance import versions  # noqa: PLC0415 - slow to import, so only where needed

    typer.echo(_this_program())
    for package, version in versions().items():
        if package != _PACKAGE:
            typer.echo(f"{package} {version}")
    raise typer.Exit


def _this_program() -> str:
    """Return this program's version and commit, for files that commands write for use elsewhere."""
    from loko_testbed.tasks.provenance import commit, versions  # noqa: PLC0415 - as above

    return f"loko {versions().get(_PACKAGE, 'unknown')} ({commit()})"


def _be_quiet(context: typer.Context) -> None:
    """Print nothing but errors from now on."""
    from loko_testbed.tasks import progress  # noqa: PLC0415 - slow to import, so only where needed

    said = context.with_resource(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - the context
    context.with_resource(contextlib.redirect_stdout(said))
    context.with_resource(progress.hidden())


@app.callback()
def _options(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback ends the program
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_versions, help="Show the version and exit."),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print nothing but errors, whatever the command: files and exit status are the answer.",
        ),
    ] = False,
) -> None:
    """Handle the options of the program itself."""
    if quiet:
        _be_quiet(context)


def main() -> None:
    """Run the command line. Wrong input ends with one line and status 2, never with a traceback."""
    signal.signal(signal.SIGTERM, _interrupt)
    warnings.showwarning = _warn
    # There are none for this program, and pydantic would look into every installed package for them.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        status = app(standalone_mode=False, obj=_this_program, prog_name="loko")
    except TyperException as error:
        present = _RENAMED_OPTIONS.get(getattr(error, "option_name", ""))
        text = f"{error.message}; did you mean {present}?" if present else error.format_message()
        _end(f"{validator_message(text) or 'no command given'} (see '{_command_of(error)} --help')")
    except OSError as error:
        status = NOT_NOW if error.errno in ENVIRONMENT_FAULT else WRONG_INPUT
        _end(f"{error.filename or 'system'}: {error.strerror or error}", status)
    except MemoryError:
        _end("out of memory; ask for less, or give the program more")
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    if status == INTERRUPTED:  # typer returns it for a KeyboardInterrupt in a command
        typer.echo("interrupted; repeat the command to go on from what is complete", err=True)
    sys.exit(status if isinstance(status, int) else 0)


def _warn(message: Warning | str, category: type[Warning], *others: Any, **named: Any) -> None:
    """Print a warning of ours in one line, and those of libraries as Python does."""
    if issubclass(category, UserWarning) and category.__module__.startswith("loko."):
        tell(f"warning: {message}", err=True)
    else:
        _PYTHONS_WARNING(message, category, *others, **named)


def _command_of(error: TyperException) -> str:
    """Return the command whose help explains the error."""
    context = getattr(error, "ctx", None)
    return "loko" if context is None else str(context.command_path)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _end(message: str, status: int = WRONG_INPUT) -> None:
    tell(f"error: {' '.join(message.split())}", err=True)
    sys.exit(status)
