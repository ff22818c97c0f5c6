"""Functions that `from loko import …` offers to programs and notebooks: `model` and `plan`.

They do what the commands of the same names do, with the same defaults, so they give the same guarantees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from loko.admission import planning
from loko.admission.plan_options import PlanOptions
from loko.admission.planning import Plan
from loko.admission.protection import NetworkFailure, ProtectedPlan, Protection, Survival
from loko.admission.schemes import (
    SchemeVariant,
    conditions_of,
    default_scheme,
    expected_mix,
    scheme_name,
    variant_of,
)
from loko.control.entries import default_entries, match_of
from loko.document import InputError
from loko.switch_model.control_traffic import CHANGES_PER_S, HEARTBEAT, ControlTraffic, served_traffic
from loko.switch_model.device import Profile, load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.mix import Mix
from loko.switch_model.scenario import UNKNOWN, ActionType, MatchType, OpenFlow, Scenario, Unknown
from loko.switch_model.service_curve import SwitchService, service_curve
from loko.topology.lab import Lab, load_lab
from loko.topology.requests import Request, deadlines_of, load_requests

_Value = TypeVar("_Value")


def model(
    profile: Profile | str | Path,
    *,
    packet_sizes_bytes: Sequence[int] | None = None,
    entries: int | None = None,
    match: MatchType | str | None = None,
    action: ActionType | str | None = None,
    openflow: OpenFlow | str = OpenFlow.V1_0,
) -> SwitchService:
    """Return the service curve of a switch: rate, latency and buffer (`loko model`).

    A profile may also be given by name or path. Whatever is left out is unknown: the result holds for its
    worst case. `match` and `action` are the words of the command line, such as ``five-tuple`` and ``output``;
    sizes count the FCS. Raises `InputError` if the scenario does not fit the device, `ValueError` for any
    other word.
    """
    scenario = Scenario(
        packet_sizes_bytes=_known(None if packet_sizes_bytes is None else tuple(packet_sizes_bytes)),
        entries=_known(entries),
        match=_known(None if match is None else MatchType(match)),
        action=_known(None if action is None else ActionType(action)),
        openflow=OpenFlow(openflow),
    )
    return service_curve(profile if isinstance(profile, Profile) else load_profile(profile), scenario)


def plan(
    lab: Lab | str | Path,
    flows: Sequence[Flow | Request] | str | Path,
    *,
    scheme: str | None = None,
    allocation: str | None = None,
    classes: int | None = None,
    mix: Mix | None = None,
    entries: int | None = None,
    target_ns: float | None = None,
) -> Plan:
    """Which flows fit a lab, with which guarantee, and why the others do not (`loko plan`).

    A lab may also be given by name or path, and flows as the path of a file. They are requested in order.
    `scheme`, `allocation`, `classes` and `entries` are the options of the command, `mix` what the allocation
    ``optimised`` is made for, by default the lab's. `target_ns` is the delay target of each port or switch,
    by default as the command chooses it. Raises `InputError` if a flow names unknown hosts or repeats
    another, for an unknown scheme, and if the scheme has no such allocation.
    """
    lab = lab if isinstance(lab, Lab) else load_lab(lab)
    listed = load_requests(flows, lab) if isinstance(flows, str | Path) else flows
    requests = [flow if isinstance(flow, Request) else Request(flow) for flow in listed]
    choice = variant_of(lab, default_scheme(lab) if scheme is None else scheme_name(scheme), allocation)
    options = _options(lab, choice, mix=mix, entries=entries, traffic=HEARTBEAT, target_ns=target_ns)
    requests = requests if classes is None else options.in_classes(requests, classes)
    target_ns = options.delay_target_ns(requests)
    asked = [request.flow for request in requests]
    admission = options.admission(requests, target_ns)
    planned_flows = planning.plan(lab, asked, admission, deadlines_ns=deadlines_of(requests))
    return replace(planned_flows, target_ns=target_ns)


def plan_for_failures(
    lab: Lab,
    requests: Sequence[Request],
    failures: Sequence[NetworkFailure],
    *,
    protection: Protection,
    duplicated: Sequence[str] = (),
    scheme: str | None = None,
    allocation: str | None = None,
    classes: int | None = None,
    target_ns: float | None = None,
) -> ProtectedPlan:
    """Which flows survive each of the failures, with which guarantee and further paths.

    This is the plan of `loko plan --survive` with the same options. Raises `InputError` as `plan` and
    `loko.admission.protection.protect` do, and for schemes that cannot move flows.
    """
    choice = variant_of(lab, default_scheme(lab) if scheme is None else scheme_name(scheme), allocation)
    refuse_unprotectable(choice)
    traffic = served_traffic(CHANGES_PER_S, {}, compare_s=0)
    options = _options(lab, choice, mix=None, entries=None, traffic=traffic, target_ns=target_ns)
    survival = Survival(failures=failures, protection=protection, duplicated=duplicated)
    requests = requests if classes is None else options.in_classes(requests, classes, survival)
    target_ns = options.delay_target_ns(requests)
    return survival.plan(
        lab,
        [request.flow for request in requests],
        lambda: options.admission(requests, target_ns, survival),
        deadlines_of(requests),
    )


def refuse_unprotectable(choice: SchemeVariant) -> None:
    """Raise `InputError` if a scheme guarantees nothing, or its flows cannot move after a failure."""
    if conditions_of(choice).baseline:
        raise InputError(f"--survive: {choice.scheme} is a baseline, which guarantees nothing; leave it out")
    if not choice.is_monotone:
        raise InputError(f"--survive: {choice.option} is for flows that stay on their paths; leave it out")


def _options(
    lab: Lab,
    choice: SchemeVariant,
    *,
    mix: Mix | None,
    entries: int | None,
    traffic: ControlTraffic,
    target_ns: float | None,
) -> PlanOptions:
    return PlanOptions(
        lab=lab,
        choice=choice,
        entries=default_entries(lab) if entries is None else entries,
        match=match_of(lab),
        traffic=traffic,
        mix=expected_mix(lab, mix) if choice.is_optimised else None,
        target_ns=target_ns,
    )


def _known(value: _Value | None) -> _Value | Unknown:
    return UNKNOWN if value is None else value
