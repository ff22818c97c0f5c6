"""Admission of flows in a lab whose switches forward by stacks of VLAN tags."""

from __future__ import annotations

from collections.abc import Sequence

from loko.admission.schemes import SchemeName, SchemeVariant, schemes_of
from loko.control.unsafe_entries import refuse_unsafe_entries
from loko.control.vlan_stack import ForwardingMode, StackAdmission, stack_entries, stack_scenario
from loko.document import InputError
from loko.switch_model.control_traffic import ControlTraffic
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.switch_model.split import echo_traffic
from loko.topology.lab import Lab
from loko.topology.lab_allocation import allocations_of, splits_for


def refuse_stacks(choice: SchemeVariant, **chosen: object) -> None:
    """Raise `InputError` for options that do not go with stacks of tags."""
    said = f"--forwarding {ForwardingMode.VLAN_STACK.value}"
    if choice.scheme != SchemeName.LOKO:
        raise InputError(f"{said}: scheme {choice.scheme} does not know of tags; use loko")
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
