"""The guarantee sheet of a plan: what is guaranteed to which flow, on which conditions, on paper."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

import typer

from loko.admission import Admitted, StatedCondition
from loko.admission.planning import Plan
from loko.admission.schemes import SchemeVariant
from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.conditions import ONLY_THESE_FLOWS
from loko.topology.lab import Lab
from loko.topology.requests import STDIN
from loko.units import in_ms

_TEMPLATE: Final = "guarantee_sheet.html.j2"
_PDF: Final = ".pdf"
_SUFFIXES: Final = (".html", ".htm", _PDF)


class _InputFile(NamedTuple):
    """A file that the plan was made from."""

    what: str
    name: str
    sha256: str


class _FlowRow(NamedTuple):
    """A flow with its guarantee, in words."""

    flow: Flow
    path: str
    """With class and VLAN, where it has them."""
    guarantee_ms: str
    deadline_ms: str
    slack_ms: str


def refuse_sheet(out: Path, choices: Sequence[SchemeVariant]) -> None:
    """Raise `InputError` if no sheet can be written there, or none for these schemes."""
    if out.suffix.lower() not in _SUFFIXES:
        raise InputError(
            f"--sheet {out}: is written as PDF or HTML; give a name such as {out.with_suffix(_PDF).name}"
            f" or {out.with_suffix('.html').name}"
        )
    if len(choices) > 1:
        raise InputError("--sheet: a sheet is for one scheme; give one --scheme")
    if choices[0].is_baseline:
        baseline = choices[0].scheme
        raise InputError(
            f"--sheet: switches with one CPU for all ports do not keep what {baseline} promises;"
            " give --scheme loko or packets"
        )


def write_sheet(
    out: Path,
    result: Plan,
    conditions: Sequence[StatedCondition],
    files: Sequence[tuple[str, str]],
    tool: str,
) -> None:
    """Write the sheet. `files` has the kind and path of each input; `tool` names the program.

    The same plan gives the same bytes. Raises `InputError` if it cannot be written.
    """
    text = sheet_text(result, conditions, [_input(what, name) for what, name in files], tool)
    try:
        out.write_bytes(_as_pdf(text, result.lab) if out.suffix.lower() == _PDF else text.encode())
    except OSError as error:
        raise InputError(f"--sheet {out}: cannot be written: {error.strerror}") from None


def _as_pdf(text: str, lab: Lab) -> bytes:
    from loko_testbed.cli.sheet_pdf import as_pdf  # noqa: PLC0415 - slow to import, and few want it

    return as_pdf(text, f"Guarantee sheet: {lab.title}")


def sheet_text(
    result: Plan, conditions: Sequence[StatedCondition], inputs: Sequence[_InputFile], tool: str
) -> str:
    """Return the sheet as HTML."""
    from loko.html_templates import html_templates  # noqa: PLC0415 - few want a sheet

    environment = html_templates("loko_testbed.cli")
    environment.filters.update(number=_number)
    return environment.get_template(_TEMPLATE).render(
        lab=result.lab,
        scheme=result.scheme,
        fit=result.fit,
        lines=[_line(result, accepted) for accepted in result.accepted],
        refused=result.refused,
        deadlines=bool(result.deadlines_ns),
        conditions=conditions,
        is_exclusive=ONLY_THESE_FLOWS.id in {condition.id for condition in conditions},
        inputs=[*inputs, *_profiles(result.lab)],
        tool=tool,
    )


def tool_of(context: typer.Context) -> str:
    """Return in one line which program computes: as it says itself, else just the package."""
    told = context.find_root().obj
    if callable(told):
        return str(told())
    try:
        return f"loko {version('loko-testbed')}"
    except PackageNotFoundError:
        return "loko"


def _line(result: Plan, admitted: Admitted) -> _FlowRow:
    flow = admitted.flow
    nodes = [flow.source, *(hop.switch for hop in admitted.path), flow.destination]
    marks = [f"class {admitted.flow.traffic_class}"] if admitted.flow.traffic_class > 1 else []
    if admitted.vlan is not None:
        marks.append(f"VLAN {admitted.vlan}")
    return _FlowRow(
        flow=flow,
        path=" → ".join(nodes) + (f" ({', '.join(marks)})" if marks else ""),
        guarantee_ms=in_ms(admitted.guarantee_ns, math.ceil),
        deadline_ms=in_ms(result.deadlines_ns.get(flow.id), math.floor),
        slack_ms=in_ms(result.slack_ns(admitted), math.floor),
    )


def _profiles(lab: Lab) -> list[_InputFile]:
    files = dict.fromkeys(switch.profile_file for switch in lab.switches.values() if switch.profile_file)
    return [_input("profile", str(file)) for file in files]


def _input(what: str, name: str) -> _InputFile:
    if name == STDIN:
        return _InputFile(what, "standard input", "not kept; the flows are those of this sheet")
    path = Path(name)
    try:
        return _InputFile(what, path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None


def _number(value: float) -> str:
    """Format a number with thousands separators, without rounding digits away that somebody wrote."""
    return f"{value:,.12g}"
