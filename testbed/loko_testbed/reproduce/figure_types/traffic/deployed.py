"""Compute what a system admits on a lab and what the hosts then send, without any replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loko.admission import Admission, Admitted
from loko.admission.baselines import Epsilon, QJump, SiloAdmission
from loko.admission.planning import plan, scenario_of
from loko.admission.schemes import admission_of, variant_named
from loko.document import InputError
from loko.switch_model.calculus import TokenBucket
from loko.switch_model.control_traffic import AS_PRINTED
from loko.switch_model.scenario import loko_scenario
from loko.switch_model.split import split
from loko.topology.lab import Lab
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.traffic.document import (
    DeployedSystem,
    Deployment,
    LokoSystem,
    SiloSystem,
)
from loko_testbed.reproduce.figure_types.traffic.setting import flows_of, share_of
from loko_testbed.reproduce.flow_figure import FlowEnds
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender, number_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A system on a lab that has admitted all flows."""

    system: DeployedSystem
    lab: Lab
    flows: tuple[Admitted, ...]
    """The admitted flows with their paths."""
    guarantee_ns: float
    """End-to-end bound, the same for all flows."""
    senders: tuple[Sender, ...]
    shown: frozenset[int]
    """Numbers of the flows whose delays are shown, as in the paper; losses are counted for all flows."""
    queues_ns: Mapping[str, float]
    """Silo's queue capacity and queue bounds by the kind of port (appendix A); empty for other systems."""


def deploy(figure: Deployment, system: DeployedSystem, how: SenderSettings | None = None) -> Deployed:
    """Request the flows from the system's admission control. Raises `InputError` if it refuses one.

    `how` overrides the figure's description of the senders, which is the same for all systems.
    """
    lab = lab_of(figure)
    flows = tuple(flows_of(figure.flows, _buckets(figure, system, lab), figure.frame_bytes))
    scenario = scenario_of(flows, entries=figure.entries)
    admission = admission_of(lab, variant_named(system.scheme), scenario, traffic=AS_PRINTED)
    result = plan(lab, flows, admission)
    if result.refused:
        raise InputError(f"{figure.name}: {system.label} refuses {result.refused[0]}")
    guarantees = {admitted.guarantee_ns for admitted in result.accepted}
    if len(guarantees) != 1:
        raise InputError(
            f"{figure.name}: {system.label} guarantees its flows different delays; split the figure"
        )
    return Deployed(
        system=system,
        lab=lab,
        flows=result.accepted,
        guarantee_ns=guarantees.pop(),
        senders=tuple(
            (figure.senders if how is None else how).conforming(number_of(flow), flow) for flow in flows
        ),
        shown=frozenset(
            number_of(flow) for flow in flows if f"{flow.source}->{flow.destination}" in figure.observed
        ),
        queues_ns=_queues_ns(admission, result.accepted),
    )


def _queues_ns(admission: Admission, flows: Sequence[Admitted]) -> dict[str, float]:
    """Return c_i, and the largest p_i of ports between switches and to hosts (equations 13 to 20)."""
    if not isinstance(admission, SiloAdmission):
        return {}
    between = {hop for admitted in flows for hop in admitted.path[:-1]}
    last = {admitted.path[-1] for admitted in flows}
    return {
        "queue_capacity": max(admission.queue_capacity_ns(hop.switch) for hop in between | last),
        "queue_bound_between_switches": max(
            (admission.queue_bound_ns(hop.switch, hop.output_port) for hop in between), default=0.0
        ),
        "queue_bound_to_hosts": max(admission.queue_bound_ns(hop.switch, hop.output_port) for hop in last),
    }


def _buckets(figure: Deployment, system: DeployedSystem, lab: Lab) -> Callable[[FlowEnds], TokenBucket]:
    """Return a function that returns the token bucket that a flow requests."""
    if isinstance(system, SiloSystem):
        requested = TokenBucket(rate_bps=system.rate_bps, burst_bytes=system.burst_bytes)
        return lambda _: requested
    if isinstance(system, LokoSystem):
        shares = split(allocation_of(figure, lab, system.allocation), ratio=system.split)
        if not shares.feasible:
            raise InputError(f"{figure.name}: {system.label}: not feasible: {shares.reason}")
        return lambda ends: share_of(shares, ends)
    scenario = loko_scenario(entries=figure.entries, packet_sizes_bytes=(figure.frame_bytes,))
    parameters = QJump.of(lab, scenario, frame_bytes=figure.frame_bytes, epsilon=Epsilon(system.epsilon))
    epoch = TokenBucket(rate_bps=parameters.host_rate_bps, burst_bytes=parameters.packet_bytes)
    return lambda _: epoch
