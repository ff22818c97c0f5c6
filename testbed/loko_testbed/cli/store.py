"""The commands `loko store`: look at the promises of a service, save them, and bring them back."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import ValidationError

from loko.document import InputError, document_errors, read_text
from loko.service.salvage import salvage
from loko.service.store_document import StoredFlowDocument, StoreDocument
from loko.service.store_file import copy, create_store, one_line, reading
from loko.service.store_reading import OlderError
from loko.terminal import tell
from loko.units import in_ms
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both

store_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show, save and restore the promises that 'loko serve' keeps on disk.",
)
StoreArgument = Annotated[
    Path, typer.Argument(metavar="STORE", help="Database of 'loko serve', such as results/serve/LAB.sqlite.")
]


@store_app.command("list")
def list_flows(
    store: StoreArgument,
    *,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each flow.")] = False,
) -> None:
    """List the flows in a store: state, guarantee, deadline and path. The service may be running.

    Example: loko store list results/serve/two-switch.sqlite
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    with reading(store) as (_, document):
        flows = document.flows
    if as_json:
        print_json(document.model_dump(mode="json")["flows"])
    elif as_csv:
        print_csv(_COLUMNS, map(_row, flows))
    else:
        for flow in flows:
            tell(_line(flow))
        named = ", ".join(f"{name} {value}" for name, value in sorted(document.circumstances.items()))
        tell(f"{len(flows)} flows, granted with {named or 'nothing yet'}")


_COLUMNS: Final = ("flow", "state", "path", "traffic_class", "guarantee_ns", "deadline_ns", "broken")


def _row(flow: StoredFlowDocument) -> dict[str, object]:
    promise = flow.promise
    return {
        "flow": flow.flow.id,
        "state": flow.state,
        "path": " ".join(hop.switch for hop in flow.path),
        "traffic_class": flow.flow.traffic_class,
        "guarantee_ns": None if promise is None else promise.guarantee_ns,
        "deadline_ns": None if promise is None else promise.deadline_ns,
        "broken": None if flow.broken is None else flow.broken.text,
    }


def _line(flow: StoredFlowDocument) -> str:
    traffic_class = flow.flow.traffic_class
    path = "-".join(hop.switch for hop in flow.path) + (
        f", class {traffic_class}" if traffic_class > 1 else ""
    )
    broken = "" if flow.broken is None else f"; broken at {flow.broken.place}: {flow.broken.text}"
    if flow.promise is None:
        return f"{flow.flow.id}: {flow.state}, {path}, guarantee not stored{broken}"
    guarantee, deadline_ns = in_ms(flow.promise.guarantee_ns, math.ceil), flow.promise.deadline_ns
    within = "" if deadline_ns is None else f", deadline {in_ms(deadline_ns, math.floor)} ms"
    return f"{flow.flow.id}: {flow.state}, {path}, guarantee {guarantee} ms{within}{broken}"


@store_app.command("export")
def export(
    store: StoreArgument,
    *,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: print it.")] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Of a damaged store: whatever can be read and has its right checksum."),
    ] = False,
) -> None:
    """Write all that a store holds as JSON, for 'loko store import'. The service may be running.

    Example: loko store export results/serve/two-switch.sqlite --out flows.json
    """
    with one_line(store):
        if out is not None and out.exists():
            raise InputError(f"--out {out}: is there already; give another file, or remove it first")
        document = _repaired(store) if repair else _whole(store)
        values = document.model_dump(mode="json")
        if out is None:
            print_json(values)
        else:
            out.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            tell(f"{out}: {len(document.flows)} flows", err=True)


def _whole(store: Path) -> StoreDocument:
    with reading(store) as (_, document):
        return document


def _repaired(store: Path) -> StoreDocument:
    log = store.resolve().with_name(f"{store.resolve().name}-wal")
    found = salvage(store.read_bytes(), log.read_bytes() if log.exists() else b"")
    try:
        document = StoreDocument.model_validate(found.values())
    except ValidationError:  # the checksums are right, so it was written like this
        raise OlderError from None
    tell(
        f"{store}: {len(document.flows)} flows and {len(document.circumstances)} circumstances are whole;"
        f" {found.damaged_rows} damaged rows are left out; {found.unread_pages} pages are empty or"
        " unreadable",
        err=True,
    )
    return document


@store_app.command("import")
def import_(
    document: Annotated[Path, typer.Argument(metavar="FILE", help="What 'loko store export' has written.")],
    store: Annotated[Path, typer.Argument(metavar="STORE", help="New database, which must not exist.")],
) -> None:
    """Make a new store from an export.

    Example: loko store import flows.json results/serve/two-switch.sqlite
    """
    with one_line(store):
        try:
            values = StoreDocument.model_validate_json(read_text(document))
        except ValidationError as error:
            problem = document_errors(error)[0]
            raise InputError(f"{document}: {problem.name}: {problem.message}") from None
        create_store(store, values)
        tell(f"{store}: {len(values.flows)} flows")


@store_app.command("backup")
def backup(
    store: StoreArgument,
    to: Annotated[Path, typer.Argument(metavar="FILE", help="File to write, which must not exist.")],
) -> None:
    """Copy a store as it is at this moment into a new file, also while the service runs.

    The copy is a store: serve it, or put it in the place of the other one.

    Example: loko store backup results/serve/two-switch.sqlite monday.sqlite
    """
    with reading(store) as (database, document):
        try:
            copy(database, to)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{to}: {error}") from None
        tell(f"{to}: {len(document.flows)} flows")
