"""The command `loko plug-ins`: what other packages add to the testbed."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Annotated, Any, Final

import typer

from loko.admission.schemes import plugged_in_scheme, scheme_names
from loko.plug_in import DEVICES, SCHEMES, PlugInGroup, folder_of, package_of, plug_ins
from loko.switch_model.device import profile_names, profiles_in
from loko.terminal import tell
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.reproduce.figure import FIGURE_TYPES

_GROUPS: Final = (SCHEMES, DEVICES, FIGURE_TYPES)
_COLUMNS: Final = ("group", "name", "package", "adds")


def list_plug_ins(
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each plug-in.")] = False,
) -> None:
    """List the schemes, devices and figure types that other packages add.

    Example: loko plug-ins
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    scheme_names()
    profile_names()
    rows: list[dict[str, Any]] = [
        {"group": group.name, "name": point.name, "package": package_of(point), "adds": _added(group, point)}
        for group in _GROUPS
        for point in plug_ins(group).values()
    ]
    if as_json:
        print_json(rows)
    elif as_csv:
        print_csv(_COLUMNS, ({**row, "adds": " ".join(row["adds"])} for row in rows))
    else:
        adds = dict(_GROUPS)
        for row in rows:
            tell(f"{row['package']}: {adds[row['group']]}: {', '.join(row['adds'])}")
        if not rows:
            tell("no package adds any (docs/plug-ins.md)")


def _added(group: PlugInGroup, point: EntryPoint) -> list[str]:
    """Return the names of the schemes, profiles or figures. Raises `InputError`."""
    if group == SCHEMES:
        plugged_in_scheme(point.name)
        return [point.name]
    if group == DEVICES:
        return list(profiles_in(point))
    return sorted(file.stem for file in folder_of(point).glob("experiments/*.yml"))
