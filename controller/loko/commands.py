"""The commands `loko model` and `loko plan`: parameters in, tables or JSON out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from loko.control_traffic import HEARTBEAT, NO_MESSAGES, described, parse_control
from loko.description import describe_model
from loko.device import load_profile
from loko.document import InputError
from loko.entries import EVALUATION_ENTRIES
from loko.flow import load_flows
from loko.lab import Lab, load_lab
from loko.mix import Mix, load_mix
from loko.plan import Plan, scenario_of
from loko.plan import plan as make_plan
from loko.rivals import Epsilon
from loko.scenario import UNKNOWN, Action, Match, Priorities, Scenario, Unknown, UsedEntry
from loko.schemes import Choice, SchemeName, admission_of, expected_mix
from loko.service import Rounding
from loko.split import echo_traffic

_NS_PER_US = 1e3
_NS_PER_MS = 1e6
_RESERVING = frozenset({SchemeName.LOKO, SchemeName.PACKETS})
"""The schemes that know what a controller sends, and what boards do by themselves."""


ControlOption = Annotated[
    list[str] | None,
    typer.Option(
        help="What the controller may send to each switch: KIND=PER_SECOND, or KIND=PER_SECONDxBURST, such as"
        " flow-add=10x4; repeat it for several kinds. The kind `unknown` stands for any message, `none` alone"
        " for a silent controller."
    ),
]


AllocationOption = Annotated[
    str | None,
    typer.Option(
        help="How a switch is given away: full-rate, fifth-rate, or optimised for an expected traffic mix"
        " (packets: the delay targets); packets also know joint, which bounds flows from one switch together."
        " Default: as the lab says, else fifth-rate."
    ),
]
MixOption = Annotated[
    str | None,
    typer.Option(help="YAML or JSON of the expected traffic mix, for `optimised`. Default: the lab's."),
]


def choice_of(
    lab: Lab, scheme: SchemeName, allocation: str | None, epsilon: Epsilon = Epsilon.PAPER
) -> Choice:
    """The scheme that a command was asked for; Loko allocates as the lab says if the command does not."""
    if scheme is SchemeName.LOKO:
        allocation = allocation or lab.allocation
    return Choice(scheme=scheme, allocation=allocation, epsilon=epsilon)


def mix_of(lab: Lab, choice: Choice, path: str | None) -> Mix | None:
    """The mix that the scheme is made for, if it is made for any: of a file, or the lab's."""
    if choice.is_optimised:
        return expected_mix(lab, None if path is None else load_mix(path))
    if path is not None:
        raise InputError("--mix: is for --allocation optimised; give that too, or leave --mix out")
    return None


@contextmanager
def wrong_input_ends() -> Iterator[None]:
    """End the program with status 2 and one line on `InputError`."""
    try:
        yield
    except InputError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def model(
    profile: Annotated[str, typer.Argument(help="Name or path of a device profile, such as zodiac-fx.")],
    *,
    packet_size: Annotated[
        list[int] | None, typer.Option(help="Size in bytes, with FCS; repeat it if several may pass.")
    ] = None,
    entries: Annotated[int | None, typer.Option(help="Entries in the flow table.")] = None,
    match: Annotated[Match | None, typer.Option(help="What the entries match on.")] = None,
    action: Annotated[Action | None, typer.Option(help="Action of the used entry.")] = None,
    priorities: Annotated[Priorities | None, typer.Option(help="Order of priorities.")] = None,
    used_entry: Annotated[UsedEntry | None, typer.Option(help="Which entry matches.")] = None,
    control: ControlOption = None,
    buffer_rounding: Annotated[
        Rounding, typer.Option(help="Rounding of the buffer formula.")
    ] = Rounding.FLOOR,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the service curve of a switch, and what may be allocated of it. What is left out is unknown.

    With --control, what the controller may send at run time is taken out of the allocations.

    Example: loko model zodiac-fx --packet-size 306 --entries 17 --match five-tuple --control flow-add=5
    """
    with wrong_input_ends():
        scenario = Scenario(
            entries=_known(entries),
            match=_known(match),
            action=_known(action),
            packet_sizes_bytes=tuple(packet_size) if packet_size else UNKNOWN,
            priorities=_known(priorities),
            used_entry=_known(used_entry),
        )
        traffic = None if control is None else parse_control(control)
        values = describe_model(load_profile(profile), scenario, buffer_rounding, traffic)
    if as_json:
        typer.echo(json.dumps(values, indent=2))
    else:
        _print_model(values)


def plan(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    flows: Annotated[str, typer.Argument(help="YAML or JSON list of flows.")],
    *,
    allocation: AllocationOption = None,
    mix: MixOption = None,
    entries: Annotated[
        int, typer.Option(help="Entries in each flow table, dummies included.")
    ] = EVALUATION_ENTRIES,
    scheme: Annotated[
        SchemeName, typer.Option(help="Admission scheme: of the paper, of whole packets, or of a rival.")
    ] = SchemeName.LOKO,
    epsilon: Annotated[
        Epsilon, typer.Option(help="QJump's cumulated processing time: one p_FX, or one for each switch.")
    ] = Epsilon.PAPER,
    fillers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Plan as for 'loko serve --fillers': so many entries of no flow stay in tables that are not"
            " filled up otherwise. Default: tables are filled up with dummies.",
        ),
    ] = None,
    control: ControlOption = None,
    echoes_per_s: Annotated[
        float | None,
        typer.Option(
            help="Reserve as the paper does, for so many EchoRequests a second of 66 bytes each. What the"
            " boards do by themselves is reserved in any case."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which flows fit a lab, with which guarantee, and why the others do not. Status 1 if one does not.

    Without --control it reserves what our own controller sends to tables that stay as they are.

    Example: loko plan two-switch flows.yml --allocation optimised --mix mix.yml
    """
    with wrong_input_ends():
        requested, network = load_flows(flows), load_lab(lab)
        choice = choice_of(network, scheme, allocation, epsilon)
        expected = mix_of(network, choice, mix)
        if echoes_per_s is not None and control is not None:
            raise InputError("--echoes-per-s reserves as the paper does; leave --control out, or the other")
        knows = scheme in _RESERVING and (scheme is SchemeName.LOKO or echoes_per_s is None)
        if not knows and (echoes_per_s is not None or control is not None):
            raise InputError(f"--scheme {scheme.value}: does not know this control traffic; leave it out")
        silent = NO_MESSAGES if echoes_per_s is not None else HEARTBEAT
        traffic = silent if control is None else parse_control(control)
        admission = admission_of(
            network,
            choice,
            scenario_of(requested, entries=entries, mix=expected),
            mix=expected,
            traffic=traffic,
            control=echo_traffic(echoes_per_s or 0.0),
            fillers=fillers,
        )
        result = make_plan(network, requested, admission)
    reserved = described(traffic) if scheme in _RESERVING else "nothing: the scheme knows no control traffic"
    if as_json:
        typer.echo(json.dumps({**result.as_values(), "reserved": reserved}, indent=2))
    else:
        _print_plan(result)
        typer.echo(f"reserved of each switch: {reserved}")
    if result.refused:
        raise typer.Exit(1)


_Value = TypeVar("_Value")


def _known(value: _Value | None) -> _Value | Unknown:
    return UNKNOWN if value is None else value


def _print_model(values: dict[str, Any]) -> None:
    console = Console()
    terms = Table(title=f"{values['profile']}: latency T", title_justify="left")
    terms.add_column("term")
    terms.add_column("us", justify="right")
    for term in values["terms"]:
        terms.add_row(term["name"], f"{term['value_ns'] / _NS_PER_US:.2f}")
    terms.add_section()
    terms.add_row("T", f"{values['latency_ns'] / _NS_PER_US:.2f}")
    console.print(terms)
    console.print(
        f"rate R = {values['rate_bps'] / 1e6:.3f} Mbit/s, buffer B = {values['capacity_bytes']} bytes"
    )
    for message in values["control"]["messages"]:
        console.print(
            f"control: {message['kind']} {message['per_s']:g}/s, {message['burst']} at once,"
            f" {message['cost_ns'] / _NS_PER_US:.1f} us each"
        )
    if values["control"]["rate_bps"]:
        console.print(
            f"control traffic r_CP = {values['control']['rate_bps'] / 1e6:.3f} Mbit/s,"
            f" b_CP = {values['control']['burst_bytes']:.1f} bytes at R"
        )
    tolerance = values["tolerance"]
    if not values["control"]["reserved"]:
        console.print(
            "reserved: nothing, as the papers print it; 'loko plan' reserves what boards do by themselves,"
            " here --control does",
            soft_wrap=True,
        )
    console.print(
        f"allocations: senders' clocks may be off by {tolerance['sender_clock_ppm']} ppm, the board's by"
        f" {tolerance['board_clock_ppm']} ppm",
        soft_wrap=True,
    )
    table = Table(title="allocations", title_justify="left")
    for column in ("scheme", "max. rate Mbit/s", "max. burst bytes", "max. delay ms", ""):
        table.add_column(column, justify="left" if column in {"scheme", ""} else "right")
    for name, allocation in values["allocations"].items():
        numbers = (
            f"{allocation['max_rate_bps'] / 1e6:.3f}",
            f"{allocation['max_burst_bytes']:.1f}",
            f"{allocation['delay_ns'] / _NS_PER_MS:.3f}",
        )
        row = numbers if allocation["feasible"] else ("-", "-", "-")
        table.add_row(name, *row, allocation["reason"])
    console.print(table)


def _print_plan(result: Plan) -> None:
    console = Console()
    table = Table(title=f"{result.lab.name}: flows accepted by {result.scheme}", title_justify="left")
    for column in ("flow", "path", "terms ms", "guarantee ms"):
        table.add_column(column, justify="right" if column.endswith("ms") else "left")
    for admitted in result.accepted:
        table.add_row(
            admitted.flow.id,
            " ".join(
                [admitted.flow.source, *(hop.switch for hop in admitted.hops), admitted.flow.destination]
            ),
            " + ".join(f"{hop.delay_ns / _NS_PER_MS:.3f}" for hop in admitted.hops),
            f"{admitted.guarantee_ns / _NS_PER_MS:.3f}",
        )
    console.print(table)
    for refusal in result.refused:
        remedy = refusal.remedy or "no smaller rate or burst beside the flows that are there"
        console.print(f"refused: {refusal}; would fit: {remedy}", highlight=False, soft_wrap=True)
    for name, allocation in result.allocations.items():
        if not allocation.feasible:
            console.print(f"{name}: nothing can be admitted: {allocation.reason}", soft_wrap=True)
