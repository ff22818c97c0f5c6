"""The option `--export` of `loko schedule`: gate control lists, a file for each node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from loko.document import InputError
from loko.schedule.gates.gate_list import GateLists, gate_lists
from loko.schedule.gates.listing import listings
from loko.schedule.gates.options import GateFormat, GateOptions
from loko.schedule.gates.taprio import taprio_scripts
from loko.schedule.gates.yang import instance_data
from loko.schedule.lab_schedule import LabSchedule
from loko.terminal import tell
from loko.topology.new_lab.lab_files import refuse_existing

_WRITERS: Final[Mapping[GateFormat, Callable[[GateLists], Mapping[str, str]]]] = {
    GateFormat.LISTING: listings,
    GateFormat.TAPRIO: taprio_scripts,
    GateFormat.YANG: instance_data,
}


def export_gates(
    schedule: LabSchedule, to: GateFormat, options: GateOptions, folder: Path, *, force: bool
) -> None:
    """Write the gate control lists of a schedule. Raises `InputError` if that is not possible."""
    write_files(_WRITERS[to](gate_lists(schedule, options)), folder, force=force)


def write_files(texts: Mapping[str, str], folder: Path, *, force: bool) -> None:
    """Write texts to a folder by the names of their files, and name them on standard error.

    Raises `InputError`; before it writes anything, for a file that is there, unless `force`.
    """
    refuse_existing([folder / name for name in texts], force=force)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
    tell(f"written to {folder}: {', '.join(sorted(texts))}", err=True)
