"""Step 3 offline: which of a list of flows fit a lab, with which guarantee, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loko.admission import Admission, Admitted, LokoAdmission, Refusal
from loko.allocation import Allocation, Scheme, allocate, scheme_named
from loko.calculus import NOTHING, TokenBucket
from loko.control_traffic import ControlTraffic, interference, ring_units
from loko.device import deterministic, with_less_buffer
from loko.document import InputError
from loko.flow import Flow, refuse_doubles
from loko.lab import Lab
from loko.rivals import rival_admission, rival_named
from loko.routing import admit
from loko.scenario import Scenario, of_lokos_tables
from loko.service import service_curve


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The result of requesting flows one after another."""

    lab: Lab
    scheme: str
    """Name of the admission scheme."""
    allocations: Mapping[str, Allocation]
    """Of each switch, if the scheme is Loko's; rivals give away something else than a switch's service."""
    accepted: tuple[Admitted, ...]
    refused: tuple[Refusal, ...]

    def as_values(self) -> dict[str, object]:
        """The plan as plain values, for JSON."""
        return {
            "lab": self.lab.name,
            "scheme": self.scheme,
            "switches": {
                name: {
                    "allocation": allocation.scheme.name,
                    "max_rate_bps": allocation.max_rate_bps,
                    "max_burst_bytes": allocation.max_burst_bytes,
                    "delay_ns": allocation.delay_ns,
                    "control_rate_bps": allocation.control.rate_bps,
                    "control_burst_bytes": allocation.control.burst_bytes,
                    "feasible": allocation.feasible,
                    "reason": allocation.reason,
                }
                for name, allocation in self.allocations.items()
            },
            "accepted": [_admitted_values(flow) for flow in self.accepted],
            "refused": [{**refusal.as_values(), "flow": refusal.flow.id} for refusal in self.refused],
        }


def scenario_of(flows: Sequence[Flow], *, entries: int) -> Scenario:
    """The scenario of Loko's own tables, for the frame sizes that the flows send.

    Raises `InputError` without any flow.
    """
    if not flows:
        raise InputError("no flows to plan for; list at least one")
    sizes = tuple(sorted({flow.frame_bytes for flow in flows}))
    return of_lokos_tables(entries=entries, packet_sizes_bytes=sizes)


def allocations_of(
    lab: Lab, scheme: Scheme, scenario: Scenario, traffic: ControlTraffic | None = None
) -> dict[str, Allocation]:
    """The allocation of every switch of a lab, by name.

    With `traffic`, what the controller may send to each switch and the boards' interruptions are taken out.
    Raises `InputError` if a switch gives no worst case.
    """
    found = {}
    for name, switch in lab.switches.items():
        profile = deterministic(switch.profile)
        service = service_curve(profile, scenario)
        if traffic is None:
            found[name] = allocate(service, scheme)
            continue
        taken = interference(profile, traffic, scenario.entries)
        found[name] = allocate(service, scheme, taken)
        if lab.controller is not None and found[name].feasible:
            # Its frames share the receive buffer. With less of it no frame waits longer than with all.
            units = ring_units(profile, traffic, scenario.entries, delay_ns=found[name].delay_ns)
            found[name] = allocate(service_curve(with_less_buffer(profile, units), scenario), scheme, taken)
    return found


def plan(
    lab: Lab,
    flows: Sequence[Flow],
    *,
    scheme: Scheme,
    scenario: Scenario,
    control: TokenBucket = NOTHING,
    traffic: ControlTraffic | None = None,
) -> Plan:
    """Request the flows in their order from Loko.

    `control` is the paper's reservation, a token bucket of bytes, `traffic` that in CPU time.
    Raises `InputError` if a flow names unknown hosts or repeats another.
    """
    allocations = allocations_of(lab, scheme, scenario, traffic)
    return request_all(lab, flows, LokoAdmission(lab, allocations, control), allocations)


def plan_by_name(lab: Lab, flows: Sequence[Flow], name: str, *, entries: int) -> Plan:
    """Request the flows from the scheme of that name: an allocation of Loko's, or a rival (`rival_named`).

    Raises `InputError` as `plan`, and for an unknown name.
    """
    scenario = scenario_of(flows, entries=entries)
    rival = rival_named(name)
    if rival is None:
        return plan(lab, flows, scheme=scheme_named(name), scenario=scenario)
    kind, epsilon = rival
    return request_all(lab, flows, rival_admission(kind, lab, scenario, epsilon=epsilon))


def request_all(
    lab: Lab, flows: Sequence[Flow], admission: Admission, allocations: Mapping[str, Allocation] | None = None
) -> Plan:
    """Request the flows in their order from any scheme, each on the best path that has room.

    Raises `InputError` as `plan`.
    """
    refuse_doubles(flows)
    accepted: list[Admitted] = []
    refused: list[Refusal] = []
    for flow in flows:
        try:
            answer = admit(lab, admission, flow)
        except InputError as error:
            raise InputError(f"flow '{flow.id}': {error}") from None
        if isinstance(answer, Admitted):
            accepted.append(answer)
        else:
            refused.append(answer)
    return Plan(
        lab=lab,
        scheme=admission.scheme,
        allocations=allocations or {},
        accepted=tuple(accepted),
        refused=tuple(refused),
    )


def _admitted_values(admitted: Admitted) -> dict[str, object]:
    return {
        "flow": admitted.flow.id,
        "guarantee_ns": admitted.guarantee_ns,
        "hops": [
            {
                "switch": hop.switch,
                "output_port": hop.output_port,
                "rate_bps": hop.arrival.rate_bps,
                "burst_bytes": hop.arrival.burst_bytes,
                "delay_ns": hop.delay_ns,
            }
            for hop in admitted.hops
        ],
    }
