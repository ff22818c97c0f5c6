"""The command `loko model slice`: what will come out of the queues of a software switch's port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from loko.commands.for_programs import print_csv, print_json
from loko.document import InputError
from loko.slices.description import describe_slices
from loko.slices.document import load_slices

_COLUMNS = (
    *("queue", "scheduler", "configured_bps", "frame_bytes", "goodput_udp_bps", "goodput_tcp_bps"),
    *("mean_latency_us", "bound_us"),
)


def print_slices(file: str | None, *, as_json: bool, as_csv: bool, others: bool) -> None:
    """Print the model of a port's slices. `others`: whether options were given that it does not take.

    Raises `InputError`.
    """
    if file is None:
        raise InputError("model slice: name the file that describes the port, such as 'loko model slice htb'")
    if others:
        raise InputError("model slice: takes no option but --json and --csv; say the rest in the file")
    queues = describe_slices(load_slices(file))
    if as_json:
        print_json(queues)
        return
    if as_csv:
        print_csv(_COLUMNS, (row for queue in queues for row in _rows(queue)))
        return
    for queue in queues:
        _print_slice(queue)


def _rows(queue: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each size of frame, with FCS; a latency that does not exist is empty."""
    for frame, udp_bps in queue["goodput_bps"].items():
        yield {
            "queue": queue["name"],
            "scheduler": queue["scheduler"],
            "configured_bps": queue["configured_bps"],
            "frame_bytes": frame,
            "goodput_udp_bps": udp_bps,
            "goodput_tcp_bps": queue["goodput_tcp_bps"][frame],
            "mean_latency_us": queue["latency_us"]["mean"],
            "bound_us": queue["latency_us"]["bound"],
        }


def _print_slice(queue: dict[str, Any]) -> None:
    latency = queue["latency_us"]
    console = Console()
    console.print(
        f"queue {queue['name']}, {queue['scheduler']}: {queue['configured_bps'] / 1e6:g} Mbit/s configured,"
        f" which count the {queue['counts']}",
        highlight=False,
    )
    table = Table("frame with FCS [bytes]", "UDP payload [Mbit/s]", "TCP payload [Mbit/s]")
    for frame, udp_bps in queue["goodput_bps"].items():
        table.add_row(frame, f"{udp_bps / 1e6:.3f}", f"{queue['goodput_tcp_bps'][frame] / 1e6:.3f}")
    console.print(table)
    if latency["mean"] is None:
        typer.echo(f"mean latency: none: {queue['no_mean_because']}")
    else:
        more = latency["mean_at_half_percent_more"]
        typer.echo(
            f"mean latency by equation 1: {latency['mean']:.1f} us at {100 * queue['utilisation']:.2f} %"
            f" utilisation of {queue['groups_per_s']:g} groups/s;"
            f" half a per cent more: {'without end' if more is None else f'{more:.1f} us'}"
        )
    if latency["bound"] is None:
        typer.echo(f"bound: none: {queue['no_bound_because']}")
    else:
        typer.echo(f"bound: no frame of its flow is later than {latency['bound']:.1f} us, and none is lost")
