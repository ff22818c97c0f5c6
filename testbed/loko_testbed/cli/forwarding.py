"""Plans for forwarding by stacks of tags, compared with an entry for each flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console

from loko.admission.planning import Plan
from loko.control.vlan_stack import ForwardingMode, stack_entries
from loko.switch_model.device import Profile
from loko.switch_model.scenario import Unknown
from loko.topology.lab import Lab
from loko_testbed.cli.plan_tables import print_comparison, print_plan


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
