"""The commands `loko model slice` and `order`: what will come out of the queues of a port, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table

from loko.document import InputError
from loko.slicing.description import describe_slices
from loko.slicing.document import load_slices
from loko.slicing.order import MOST_BYTES, SliceMessage, TransferPlan, transfer_plans
from loko_testbed.cli.for_programs import print_csv, print_json

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
    table = Table("frame with FCS, bytes", "UDP payload, Mbit/s", "TCP payload, Mbit/s")
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
        lossy = queue["lossy_because"]
        end = "and none is lost" if lossy is None else f"but some may be lost: {lossy}"
        typer.echo(f"bound: no frame of its flow is later than {latency['bound']:.1f} us, {end}")


_SHOWN: Final = 12
"""Rows of the table; --json and --csv have all."""


def print_order(
    file: str | None,
    texts: Sequence[str],
    queue_name: str | None,
    *,
    as_json: bool,
    as_csv: bool,
    others: bool,
) -> None:
    """Print in which packets and in which order messages arrive first. Raises `InputError`."""
    if file is None:
        raise InputError("model order: name the file that describes the port, such as 'loko model order htb'")
    if others:
        raise InputError("model order: takes no options but --message, --queue, --json and --csv")
    if not texts:
        raise InputError(
            "model order: what is sent? Give a --message NAME=BYTES for each, such as data=21000"
        )
    port = load_slices(file)
    names = [queue.name for queue in port.queues]
    if queue_name is not None and queue_name not in names:
        raise InputError(f"model order: '{file}' has no queue '{queue_name}'; it has {', '.join(names)}")
    queue = port.queues[0 if queue_name is None else names.index(queue_name)]
    best_first = transfer_plans(port, queue, [_message(text) for text in texts])
    if as_json:
        print_json([_described(way) for way in best_first])
        return
    if as_csv:
        columns = ("frame_bytes", "order", "mean_us", *(f"{name}_us" for name in best_first[0].arrived_us))
        print_csv(columns, map(_row_of, best_first))
        return
    table = Table(
        "frame with FCS, bytes", "order", *(f"{name}, us" for name in best_first[0].arrived_us), "mean, us"
    )
    for way in best_first[:_SHOWN]:
        cells = ("dropped" if time is None else f"{time:.1f}" for time in way.arrived_us.values())
        mean = _described(way)["mean_us"]
        table.add_row(str(way.frame_bytes), way.order, *cells, "-" if mean is None else f"{mean:.1f}")
    Console().print(table)
    if len(best_first) > _SHOWN:
        typer.echo(f"the best {_SHOWN} of {len(best_first)} ways; --json and --csv print all")


def _message(text: str) -> SliceMessage:
    written = re.fullmatch(r"([a-zA-Z0-9][a-zA-Z0-9_.-]*)=([0-9]{1,9})(?::([a-zA-Z0-9_.-]+))?", text)
    if written is None or not 0 < int(written[2]) <= MOST_BYTES:
        raise InputError(
            f"--message '{text}' is not NAME=BYTES or NAME=BYTES:NEEDED, such as data=21000, with 1 to"
            f" {MOST_BYTES} bytes"
        )
    return SliceMessage(name=written[1], size_bytes=int(written[2]), needs=written[3])


def _row_of(way: TransferPlan) -> dict[str, Any]:
    """Return a way as a line of CSV; a message that is dropped has no time."""
    described = _described(way)
    return {**described, **{f"{name}_us": time for name, time in described.pop("arrived_us").items()}}


def _described(way: TransferPlan) -> dict[str, Any]:
    arrived = {name: None if time is None else round(time, 3) for name, time in way.arrived_us.items()}
    return {
        "frame_bytes": way.frame_bytes,
        "order": way.order,
        "arrived_us": arrived,
        "mean_us": round(way.mean_us, 3) if None not in arrived.values() else None,
    }
