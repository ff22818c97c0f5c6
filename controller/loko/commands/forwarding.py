"""Plans for forwarding by stacks of tags, compared with an entry for each flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console

from loko.commands.plan_tables import print_comparison, print_plan
from loko.control_traffic import ControlTraffic
from loko.controller.unsafe_entries import refuse_unsafe_entries
from loko.device import Profile
from loko.document import InputError
from loko.flow import Flow
from loko.lab import Lab
from loko.lab_allocation import allocations_of, splits_for
from loko.planning import Plan
from loko.scenario import OpenFlow, Unknown
from loko.schemes import SchemeName, SchemeVariant, schemes_of
from loko.split import echo_traffic
from loko.vlan_stack import ForwardingMode, StackAdmission, stack_entries, stack_scenario


def refuse_stacks(choice: SchemeVariant, **chosen: object) -> None:
    """Raise `InputError` for options that do not go with stacks of tags."""
    said = f"--forwarding {ForwardingMode.VLAN_STACK.value}"
    if choice.scheme is not SchemeName.LOKO:
        raise InputError(f"{said}: scheme {choice.scheme.value} does not know of tags; use loko")
    if choice.is_optimised:
        raise InputError(f"{said}: allocation optimised expects frames without tags; choose another")
    for name, value in chosen.items():
        if value is not None:
            raise InputError(f"{said}: says nothing with --{name}; leave one of them out")


def stack_admission(
    lab: Lab,
    choice: SchemeVariant,
    flows: Sequence[Flow],
    *,
    openflow: OpenFlow,
    traffic: ControlTraffic | None,
    echoes_per_s: float = 0.0,
) -> StackAdmission:
    """Return an empty admission control for a lab whose switches forward by tags.

    Raises `InputError`, also for a switch that cannot.
    """
    tables = stack_entries(lab)
    for name, switch in lab.switches.items():
        refuse_unsafe_entries(switch, openflow, tables[name])
    scenario, control = stack_scenario(lab, flows, openflow), echo_traffic(echoes_per_s)
    allocation = choice.allocation or "fifth-rate"
    schemes = schemes_of(lab, allocation, scenario, traffic=traffic, control=control)
    return StackAdmission(
        lab,
        allocations_of(lab, schemes, scenario, traffic),
        control,
        splits_of=splits_for(scenario, traffic),
    )


def entries_of_plan(result: Plan) -> dict[str, int]:
    """Return by switch how many entries its accepted flows need if each has its own: one for each visit."""
    count = dict.fromkeys(result.lab.switches, 0)
    for admitted in result.accepted:
        for hop in admitted.path:
            count[hop.switch] += 1
    return count


def forwarding_values(by_stacks: Plan, by_flows: Plan) -> dict[str, Any]:
    """Return, for JSON, the entries of each switch both ways, and the plan with an entry for each flow."""
    return {
        "forwarding": ForwardingMode.VLAN_STACK.value,
        "entries": _stack_counts(by_stacks.lab),
        "assumptions": assumptions_of(by_stacks.lab),
        "per_flow": {**by_flows.as_values(), "entries": entries_of_plan(by_flows)},
    }


def print_forwarding(
    console: Console, flow_ids: Sequence[str], by_stacks: Plan, by_flows: Plan, planned: int | Unknown
) -> None:
    """Print the plan by stacks, and what differs with an entry for each flow."""
    print_plan(console, by_stacks)
    print_comparison(console, flow_ids, [by_stacks, by_flows])
    typer.echo(
        f"entries of a switch: {_span(_stack_counts(by_stacks.lab))}, whatever the flows; with one for each"
        f" flow {_span(entries_of_plan(by_flows))}"
        + ("" if isinstance(planned, Unknown) else f", filled up to {planned}")
    )
    for line in assumptions_of(by_stacks.lab):
        typer.echo(line)


def assumptions_of(lab: Lab) -> list[str]:
    """Return what a plan by stacks rests on without a measurement, one line for each profile of a board."""
    profiles = {
        switch.profile.name
        for switch in lab.switches.values()
        if switch.backend.is_board and isinstance(switch.profile, Profile)
    }
    return [
        f'rests on: frames reach the CPU of {name} with VLAN tags (cpu_port_tags = "kept" in its profile);'
        " not known of real boards: try one first (docs/planning.md)"
        for name in sorted(profiles)
    ]


def _stack_counts(lab: Lab) -> dict[str, int]:
    return {name: len(table) for name, table in stack_entries(lab).items()}


def _span(counts: Mapping[str, int]) -> str:
    least, most = min(counts.values()), max(counts.values())
    return str(most) if least == most else f"{least} to {most}"
