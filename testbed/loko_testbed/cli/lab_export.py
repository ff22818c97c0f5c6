"""The command `loko lab export`: a lab in the format of another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from loko.document import InputError
from loko.terminal import tell
from loko.topology.lab import Lab, load_lab
from loko.topology.lab_export.graph import dot, graphml, netjson
from loko.topology.lab_export.mininet_script import mininet_script
from loko.topology.new_lab.lab_files import refuse_existing
from loko_testbed.live.containerlab.topology import topology
from loko_testbed.simulation.runner import RunError


class ExportFormat(StrEnum):
    """Formats of other programs."""

    GRAPHML = "graphml"
    NETJSON = "netjson"
    CONTAINERLAB = "containerlab"
    MININET = "mininet"
    DOT = "dot"


_WRITERS: Final[Mapping[ExportFormat, Callable[[Lab], str]]] = {
    ExportFormat.GRAPHML: graphml,
    ExportFormat.NETJSON: netjson,
    ExportFormat.CONTAINERLAB: topology,
    ExportFormat.MININET: mininet_script,
    ExportFormat.DOT: dot,
}


def lab_export(
    lab: Annotated[str, typer.Argument(help="Name of a lab, such as two-switch, or path of its folder.")],
    to: Annotated[ExportFormat, typer.Argument(help="The format.")],
    *,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a lab as GraphML, NetJSON, containerlab's topology file, a Mininet script or DOT.

    Example: loko lab export two-switch mininet --out two_switch.py
    """
    try:
        text = _WRITERS[to](load_lab(lab))
    except RunError as error:
        raise InputError(str(error)) from None
    if out is None:
        typer.echo(text, nl=False)
        return
    refuse_existing([out], force=force)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written: {error.strerror}") from None
    tell(f"written: {out}")
