"""The option `loko plan --configuration`: settings and commands for switches without OpenFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from loko.admission.planning import Plan
from loko.control.managed_switches import fastpath_commands, in_words, linux_commands, network_settings
from loko.document import InputError
from loko.terminal import tell
from loko.topology.requests import STDIN
from loko_testbed.cli.choices import refuse_together


def is_printed(out: Path | None) -> bool:
    """Return whether settings are printed, not written to a folder."""
    return str(out) == STDIN


def refuse_configuration(out: Path | None, others: Mapping[str, bool], *, by_dscp: bool) -> None:
    """Raise `InputError` for options that do not go with it; `others` are those that are given."""
    if out is None and by_dscp:
        raise InputError("--by-dscp: goes with --configuration; add it, or leave it out")
    if is_printed(out):
        refuse_together({"--configuration -": True, **others})


def write_configuration(plans: Sequence[Plan], out: Path | None, *, by_dscp: bool, quiet: bool) -> None:
    """Write settings in words, and commands of each switch, to a folder; or print the words. None: neither.

    Unless `quiet`, tell on standard error what was written: a plan for programs may be on standard output.
    Raises `InputError` for several plans, if all switches have OpenFlow, or if nothing can be written there.
    """
    if out is None:
        return
    if len(plans) > 1:
        raise InputError("--configuration: is for one scheme; give one --scheme")
    (plan,) = plans
    settings = network_settings(plan)
    words = in_words(settings)
    if is_printed(out):
        typer.echo(words, nl=False)
        return
    files = {"settings.txt": words}
    for switch in settings.switches:
        files[f"{switch.name}.linux.sh"] = linux_commands(switch, by_dscp=by_dscp)
        files[f"{switch.name}.fastpath.txt"] = fastpath_commands(switch, by_dscp=by_dscp)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--configuration {out}: cannot be written: {error.strerror}") from None
    if not quiet:
        tell(f"written to {out}: {len(files)} files, of which settings.txt has all in words", err=True)
