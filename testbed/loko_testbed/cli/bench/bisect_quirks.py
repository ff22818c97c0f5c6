"""`loko bench controller --bisect-quirks`: which deviations of the firmware break a controller's check."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict

import switch_emulator
import typer

from loko.document import InputError
from loko_testbed.cli.for_programs import print_csv, print_json
from loko_testbed.measure.controllers.bisection import Bisection, bisect
from loko_testbed.measure.controllers.check import ControllerCheck, describe_quirks
from loko_testbed.simulation.quirks import VARIABLE, Quirks
from loko_testbed.tasks.progress import waiting_console

_COLUMNS = ("quirk", "breaks")


def bisect_check(check: ControllerCheck, *, as_json: bool, as_csv: bool) -> int:
    """Print which deviations break a check, and each run on standard error. Return the exit status.

    Raises `InputError` if there is no check, or if it also fails without deviations.
    """
    if not check.command:
        raise InputError("--bisect-quirks: give your check, as in: --bisect-quirks -- pytest test_mine.py")
    names = switch_emulator.quirk_names(check.openflow_version)
    console, runs = waiting_console(), 0

    def passes(quirks: Quirks) -> bool:
        nonlocal runs
        runs, began_s = runs + 1, time.monotonic()
        passed = asyncio.run(check.passes(quirks))
        verdict = f"{'passes' if passed else 'fails'} ({time.monotonic() - began_s:.1f} s)"
        console.print(f"{runs}: {describe_quirks(quirks, names)}: {verdict}", highlight=False, soft_wrap=True)
        return passed

    found = Bisection()
    try:
        bisect(names, passes, found)
    except KeyboardInterrupt:
        typer.echo(f"interrupted after {runs} runs", err=True)
    if found.passes_with_none is False:
        raise InputError(
            "the check also fails without quirks, so they are not the cause; to see why it does, run:"
            f" {VARIABLE}='\"spec\"' {' '.join(check.command)}"
        )
    if as_json:
        print_json(asdict(found))
    elif as_csv:
        print_csv(_COLUMNS, rows(found))
    else:
        typer.echo("\n".join(lines(found)))
    return 1 if found.is_broken or not found.is_complete else 0


def rows(found: Bisection) -> list[dict[str, object]]:
    """Return a row for each deviation: whether it breaks the check alone, or together with others."""
    sets = {name: number for number, names in enumerate(found.together, start=1) for name in names}
    return [
        {
            "quirk": name,
            "breaks": "alone" if name in found.alone else f"set {sets[name]}" if name in sets else "",
        }
        for name in found.tried
    ]


def lines(found: Bisection) -> list[str]:
    """Return the result as text."""
    if found.passes_with_all:
        return ["the check passes with all quirks: none breaks it"]
    if not found.is_broken:
        return ["nothing is known of any quirk"]
    result = [f"{name} breaks the check: it passes without" for name in found.alone]
    result += [
        f"{' and '.join(names)} break the check together: it passes if all of them are absent"
        for names in found.together
    ]
    result = result or [f"none of {len(found.tried)} quirks breaks the check alone"]
    return [*result, "docs/quirks.md says what each of them does"]
