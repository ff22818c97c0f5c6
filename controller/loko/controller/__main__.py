"""`python -m loko.controller`: admit the flows of a file and set up the lab's switches for them."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from loko.allocation import FIFTH_RATE
from loko.commands import wrong_input_ends
from loko.controller import app
from loko.controller.session import Listing
from loko.controller.supervisor import Table
from loko.document import InputError
from loko.entries import EVALUATION_ENTRIES, switch_entries
from loko.flow import load_flows
from loko.lab import Backend, Lab, Switch, load_lab
from loko.plan import plan, scenario_of
from loko.schemes import admission_of, choice_named


def main(
    *,
    lab: Annotated[str, typer.Option(help="Name or path of a lab.")],
    flows: Annotated[str, typer.Option(help="YAML or JSON list of flows.")],
    allocation: Annotated[
        str | None,
        typer.Option(
            help="full-rate, fifth-rate, optimised (for the lab's mix), packet-granular, or a rival: silo,"
            " qjump. Default: as the lab says, else fifth-rate."
        ),
    ] = None,
    entries: Annotated[int, typer.Option(help="Entries in each table.")] = EVALUATION_ENTRIES,
    backend: Annotated[
        Backend | None, typer.Option(help="What every switch is. Default: as the lab says.")
    ] = None,
    listen: Annotated[str, typer.Option(help="Address and TCP port.")] = "127.0.0.1:6633",
    ready: Annotated[Path | None, typer.Option(help="File that exists while every switch is set up.")] = None,
    echo_rate: Annotated[
        Path | None,
        typer.Option(help="File with the EchoRequests a second to send to each switch, as a load."),
    ] = None,
) -> None:
    """Admit flows, then set up every switch of the lab that connects. Ends on SIGTERM or Ctrl-C.

    Status 1 if a flow is refused, 2 for wrong input.

    Example: python -m loko.controller --lab two-switch --flows flows.yml --ready /run/loko.ready
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("os_ken").setLevel(logging.WARNING)
    with wrong_input_ends():
        the_lab = load_lab(lab).with_backend(backend)
        tables = _admitted_tables(the_lab, flows, allocation, entries)
        if ready is not None and not os.access(ready.parent, os.W_OK):
            raise InputError(f"--ready {ready}: its folder is missing or cannot be written to")
        host, port = _address(listen)
        try:
            listening = app.listen(host, port)
        except OSError as error:
            raise InputError(
                f"cannot listen on {listen}: {error.strerror}; end what uses it or choose another --listen"
            ) from None
        readiness = _readiness(the_lab, tables, listen, ready)
        readiness(False)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    # os-ken cannot end its threads; as children of a daemon thread they are daemons and end with the program.
    starter = threading.Thread(target=app.run, args=(listening, tables, readiness, echo_rate), daemon=True)
    starter.start()
    ended.wait()
    readiness(False)


def _admitted_tables(lab: Lab, flows: str, allocation: str | None, entries: int) -> dict[int, Table]:
    requested = load_flows(flows)
    choice = choice_named(allocation or lab.allocation or FIFTH_RATE.name)
    scenario = scenario_of(requested, entries=entries, mix=lab.mix if choice.is_optimised else None)
    result = plan(lab, requested, admission_of(lab, choice, scenario))
    if result.refused:
        for refusal in result.refused:
            typer.echo(f"refused: {refusal}", err=True)
        raise typer.Exit(1)
    tables = switch_entries(lab, requested, entries=entries)
    return {
        switch.datapath_id: Table(switch=name, entries=tables[name], listing=_listing(switch))
        for name, switch in lab.switches.items()
    }


def _listing(switch: Switch) -> Listing:
    return Listing.OF_THE_BOARD if switch.backend.is_board else Listing.COMPLETE


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise InputError(f"--listen '{text}' is not an address and a port such as 127.0.0.1:6633")
    return host, int(port)


def _readiness(lab: Lab, tables: dict[int, Table], listen: str, path: Path | None) -> Callable[[bool], None]:
    """What keeps the ready file: it is there, complete, exactly while every switch is set up."""

    def changed(is_ready: bool) -> None:
        if path is None:
            return
        if not is_ready:
            path.unlink(missing_ok=True)
            return
        switches = {
            table.switch: {"datapath_id": f"{datapath_id:016x}", "entries": len(table.entries)}
            for datapath_id, table in tables.items()
        }
        text = json.dumps({"lab": lab.name, "listen": listen, "switches": switches}, indent=2)
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)

    return changed


if __name__ == "__main__":
    typer.run(main)
