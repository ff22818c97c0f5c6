"""The command `loko flows`: flows to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer
import yaml

from loko.document import InputError
from loko.topology.lab import Lab, load_lab
from loko.topology.network import ShortestPaths
from loko.topology.new_lab.lab_files import refuse_existing
from loko.topology.schemas import SCHEMA_FOLDER, schema_line

_FIRST_PORT: Final = 5000
_USUAL: Final = 4

flows_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write flows to begin with.")


@flows_app.callback()
def _only_subcommands() -> None:
    """Do nothing: with a callback, `example` stays a subcommand although it is the only one."""


@flows_app.command("example")
def example(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    *,
    count: Annotated[int, typer.Option(min=1, help="How many flows, if the lab has as many hosts.")] = _USUAL,
    rate: Annotated[str, typer.Option(help="Of each flow.")] = "100 kbit/s",
    burst: Annotated[str, typer.Option(help="Of each flow.")] = "1 frame",
    frame: Annotated[str, typer.Option(help="Size of every frame, with FCS.")] = "306 bytes",
    out: Annotated[Path | None, typer.Option(help="File to write. Default: print them.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write flows between the hosts of a lab, to be changed into those that you need.

    Example: loko flows example two-switch --out flows.yml
    """
    if out is not None:
        refuse_existing([out], force=force)
    the_lab = load_lab(lab)
    asked = {"rate": rate, "burst": burst, "frame": frame}
    flows = [{**flow, **asked} for flow in islice(_between(the_lab), count)]
    if not flows:
        raise InputError(f"lab '{the_lab.name}': no two hosts can reach each other; it has no flows")
    text = _text(flows)
    if out is None:
        typer.echo(text, nl=False)
        return
    known = (out.parent / SCHEMA_FOLDER / "flows.json").is_file()
    out.write_text(f"{schema_line('flows')}\n{text}" if known else text, encoding="utf-8")
    typer.echo(f"{out}: {len(flows)} flows")


def _between(lab: Lab) -> Iterator[dict[str, object]]:
    """Yield a flow from each host to the next one in the file that it can reach."""
    hosts, paths = list(lab.hosts), ShortestPaths(lab)
    for number, source in enumerate(hosts):
        for destination in (*hosts[number + 1 :], *hosts[:number]):
            try:
                paths.between(source, destination)
            except InputError:
                continue
            yield {
                "id": f"{source}-{destination}",
                "source": source,
                "destination": destination,
                "udp_source": _FIRST_PORT + number % 1000,
                "udp_destination": 1000 + _FIRST_PORT + number % 1000,
            }
            break


def _text(flows: list[dict[str, object]]) -> str:
    return yaml.safe_dump(flows, sort_keys=False, default_flow_style=None, width=110)
