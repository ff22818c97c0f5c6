"""The command `loko doctor`."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, fields
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from loko.terminal import tell
from loko_testbed.cli.choices import refuse_together
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json
from loko_testbed.live.doctor.judgement import Diagnosis, Level, judge, trusted
from loko_testbed.live.doctor.probes import gather
from loko_testbed.tasks.progress import waiting_console
from loko_testbed.tasks.provenance import commit, versions

_SECONDS: Final = 10
_QUICK_SECONDS: Final = 1

_SIGNS: Final = {
    Level.OK: "[green]ok",
    Level.NOTE: "[yellow]note",
    Level.DOUBTFUL: "[red]doubtful",
    Level.MISSING: "[red]missing",
}
_SIGN_WIDTH: Final = len("doubtful")


def doctor(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure CPU noise for 1 s instead of 10 s.")
    ] = False,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each finding.")] = False,
    as_report: Annotated[
        bool,
        typer.Option("--report", help="Print versions and findings as Markdown, to paste into an issue."),
    ] = False,
) -> None:
    """Find out whether live results from this machine can be trusted, and what would make them better.

    It changes nothing. Status 0 if live runs are possible and their delays are the switches', else 1.

    Example: sudo loko doctor
    """
    refuse_together({"--json": as_json, "--csv": as_csv, "--report": as_report})
    waiting = waiting_console()
    with waiting.status("") as status:
        facts = gather(_QUICK_SECONDS if quick else _SECONDS, status.update)
    diagnoses = judge(facts)
    if as_json:
        told = {
            "trusted": trusted(diagnoses),
            "findings": list(map(asdict, diagnoses)),
            "facts": asdict(facts),
        }
        print_json(told)
    elif as_csv:
        print_csv([field.name for field in fields(Diagnosis)], map(asdict, diagnoses))
    elif as_report:
        typer.echo(_report(diagnoses))
    else:
        _print(diagnoses, quick=quick)
    if not trusted(diagnoses):
        raise typer.Exit(1)


def _report(diagnoses: list[Diagnosis]) -> str:
    """Return versions, system and findings as Markdown."""
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        system = platform.system()
    lines = [
        f"- commit {commit()}",
        *(f"- {package} {version}" for package, version in versions().items()),
        f"- {system}, kernel {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        "",
        "| level | what | found |",
        "|---|---|---|",
    ]
    lines += [
        f"| {diagnosis.level.value} | {diagnosis.what} | {diagnosis.found.replace('|', '/')} |"
        for diagnosis in diagnoses
    ]
    return "\n".join(lines)


def _print(diagnoses: list[Diagnosis], *, quick: bool) -> None:
    console = Console()
    width = max((len(diagnosis.what) for diagnosis in diagnoses), default=0)
    for diagnosis in diagnoses:
        sign = Text.from_markup(_SIGNS[diagnosis.level])
        sign.align("left", _SIGN_WIDTH)
        # Neither cut nor broken: findings may be paths, and changes commands to copy.
        console.print(sign, f"{diagnosis.what:<{width}}", diagnosis.found, soft_wrap=True, highlight=False)
        if diagnosis.means:
            tell(f"{'':<{_SIGN_WIDTH}} means: {diagnosis.means}")
        if diagnosis.change:
            typer.echo(f"{'':<{_SIGN_WIDTH}} change: {diagnosis.change}")
    if trusted(diagnoses):
        console.print("Live results from this machine can be trusted; each run still tells its stalls.")
        if quick:
            console.print(
                "CPU noise was measured for 1 s only: repeat without --quick before you rely on live results."
            )
    elif any(diagnosis.level is Level.MISSING for diagnosis in diagnoses):
        console.print("Live runs are not possible on this machine: see 'missing'.")
    else:
        console.print("Live runs work here, but their delays say too little of the switches: see 'doubtful'.")
