"""The command `loko model`: the service curve of a switch."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from loko.document import InputError
from loko.switch_model.control_traffic import parse_control
from loko.switch_model.description import describe_model
from loko.switch_model.device import bounded, load_device, profile_names
from loko.switch_model.scenario import (
    UNKNOWN,
    ActionType,
    MatchType,
    OpenFlow,
    PriorityOrder,
    Scenario,
    Unknown,
    UsedEntry,
)
from loko.switch_model.service_curve import Rounding
from loko.terminal import tell
from loko.units import NS_PER_MS, NS_PER_US
from loko_testbed.cli.choices import ControlOption
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.cli.slices import print_order, print_slices

_SLICE = "slice"
"""Given instead of a profile: show a sliced port."""
_ORDER = "order"
"""Given instead of a profile: say in which order messages arrive first through a sliced port."""
_COLUMNS = (
    *("profile", "rate_bps", "latency_ns", "capacity_bytes"),
    *("scheme", "feasible", "max_rate_bps", "max_burst_bytes", "delay_ns", "reason"),
)


def model(
    profile: Annotated[
        str,
        typer.Argument(
            help="Name or path of a device profile, or `slice`, `order`. Profiles:"
            f" {', '.join(profile_names())}.",
            autocompletion=profile_names,
        ),
    ],
    file: Annotated[
        str | None, typer.Argument(help="With `slice` or `order`: a sliced port, by name or path.")
    ] = None,
    *,
    packet_size: Annotated[
        list[int] | None, typer.Option(help="Size in bytes, with FCS; repeat it if several may pass.")
    ] = None,
    entries: Annotated[int | None, typer.Option(help="Entries in the flow table.")] = None,
    match: Annotated[MatchType | None, typer.Option(help="What the entries match on.")] = None,
    action: Annotated[ActionType | None, typer.Option(help="Action of the used entry.")] = None,
    priorities: Annotated[PriorityOrder | None, typer.Option(help="Order of priorities.")] = None,
    used_entry: Annotated[UsedEntry | None, typer.Option(help="Which entry matches.")] = None,
    openflow: Annotated[
        OpenFlow | None, typer.Option(help="OpenFlow version of the board's session. Default: 1.0.")
    ] = None,
    control: ControlOption = None,
    buffer_rounding: Annotated[
        Rounding, typer.Option(help="Rounding of the buffer formula.")
    ] = Rounding.FLOOR,
    message: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=BYTES[:NEEDED]",
            help="With `order`: a message, and which other it needs; repeat it.",
        ),
    ] = None,
    queue: Annotated[str | None, typer.Option(help="With `order`: the queue. Default: the first.")] = None,
    as_json: JsonOption = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, a line for each scheme's allocation.")
    ] = False,
) -> None:
    """Show the service curve of a switch, and what may be allocated of it.

    An option that you leave out is unknown: the curve holds for its worst case.

    With --control, the allocations leave room for what the controller may send at run time.

    `loko model slice FILE` shows instead goodput and latency of the queues of a software switch's port, and
    `loko model order FILE` in which packets and in which order messages arrive first through one of them.

    Example: loko model zodiac-fx --packet-size 306 --entries 17 --match five-tuple --control flow-add=5

    Example: loko model zodiac-fx --packet-size 306 --entries 17 --match five-tuple --openflow 1.3

    Example: loko model slice htb

    Example: loko model order htb --message data=22080 --message command=7360:data
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    told = (packet_size, entries, match, action, priorities, used_entry, openflow, control)
    others = any(option is not None for option in told)
    if profile == _ORDER:
        print_order(file, message or (), queue, as_json=as_json, as_csv=as_csv, others=others)
        return
    if message or queue is not None:
        raise InputError("model: --message and --queue go with 'loko model order FILE'")
    if profile == _SLICE:
        print_slices(file, as_json=as_json, as_csv=as_csv, others=others)
        return
    if file is not None:
        raise InputError(f"model: '{file}' is one word too many; only 'slice' and 'order' take a file")
    scenario = Scenario(
        entries=_known(entries),
        match=_known(match),
        action=_known(action),
        packet_sizes_bytes=tuple(packet_size) if packet_size else UNKNOWN,
        priorities=_known(priorities),
        used_entry=_known(used_entry),
        openflow=openflow or OpenFlow.V1_0,
    )
    traffic = None if control is None else parse_control(control)
    values: dict[str, Any] = describe_model(bounded(load_device(profile)), scenario, buffer_rounding, traffic)
    if as_json:
        print_json(values)
    elif as_csv:
        rows = (
            {**values, **allocation, "scheme": name} for name, allocation in values["allocations"].items()
        )
        print_csv(_COLUMNS, rows)
    else:
        _print_model(values)


_Value = TypeVar("_Value")


def _known(value: _Value | None) -> _Value | Unknown:
    return UNKNOWN if value is None else value


def _print_model(values: dict[str, Any]) -> None:
    console = Console()
    terms = Table(title=f"{values['profile']}: latency T", title_justify="left")
    terms.add_column("term")
    terms.add_column("us", justify="right")
    for term in values["terms"]:
        terms.add_row(term["name"], f"{term['value_ns'] / NS_PER_US:.2f}")
    terms.add_section()
    terms.add_row("T", f"{values['latency_ns'] / NS_PER_US:.2f}")
    console.print(terms)
    console.print(
        f"rate R = {values['rate_bps'] / 1e6:.3f} Mbit/s, buffer B = {values['capacity_bytes']} bytes"
    )
    for message in values["control"]["messages"]:
        console.print(
            f"control: {message['kind']} {message['per_s']:g}/s, {message['burst']} at once,"
            f" {message['cost_ns'] / NS_PER_US:.1f} us each"
        )
    if values["control"]["rate_bps"]:
        console.print(
            f"control traffic r_CP = {values['control']['rate_bps'] / 1e6:.3f} Mbit/s,"
            f" b_CP = {values['control']['burst_bytes']:.1f} bytes at R"
        )
    tolerance = values["tolerance"]
    if not values["control"]["reserved"]:
        tell(
            "reserved: nothing, as the papers print it; 'loko plan' reserves what boards do by themselves,"
            " here --control does"
        )
    tell(
        f"allocations: senders' clocks may be off by {tolerance['sender_clock_ppm']} ppm, the board's by"
        f" {tolerance['board_clock_ppm']} ppm"
    )
    table = Table(title="allocations", title_justify="left")
    for column in ("scheme", "max. rate Mbit/s", "max. burst bytes", "max. delay ms"):
        table.add_column(column, justify="left" if column == "scheme" else "right")
    for name, allocation in values["allocations"].items():
        numbers = (
            f"{allocation['max_rate_bps'] / 1e6:.3f}",
            f"{allocation['max_burst_bytes']:.1f}",
            f"{allocation['delay_ns'] / NS_PER_MS:.3f}",
        )
        table.add_row(name, *(numbers if allocation["feasible"] else ("-", "-", "-")))
    console.print(table)
    for name, allocation in values["allocations"].items():
        if not allocation["feasible"]:
            tell(f"{name}: nothing can be admitted: {allocation['reason']}")
