"""Step 3 offline: which of a list of flows fit a lab, with which guarantee, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loko.admission import Admission, Admitted, LokoAdmission, Refusal
from loko.allocation import Allocation, Scheme, allocate
from loko.calculus import NOTHING, TokenBucket
from loko.device import deterministic
from loko.document import InputError
from loko.flow import Flow, refuse_doubles
from loko.lab import Lab
from loko.scenario import Scenario, of_lokos_tables
from loko.service import service_curve


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The result of requesting flows one after another."""

    lab: Lab
    allocations: Mapping[str, Allocation]
    accepted: tuple[Admitted, ...]
    refused: tuple[Refusal, ...]

    def as_values(self) -> dict[str, object]:
        """The plan as plain values, for JSON."""
        return {
            "lab": self.lab.name,
            "switches": {
                name: {
                    "allocation": allocation.scheme.name,
                    "max_rate_bps": allocation.max_rate_bps,
                    "max_burst_bytes": allocation.max_burst_bytes,
                    "delay_ns": allocation.delay_ns,
                    "feasible": allocation.feasible,
                    "reason": allocation.reason,
                }
                for name, allocation in self.allocations.items()
            },
            "accepted": [_admitted_values(flow) for flow in self.accepted],
            "refused": [_refusal_values(refusal) for refusal in self.refused],
        }


def scenario_of(flows: Sequence[Flow], *, entries: int) -> Scenario:
    """The scenario of Loko's own tables, for the frame sizes that the flows send.

    Raises `InputError` without any flow.
    """
    if not flows:
        raise InputError("no flows to plan for; list at least one")
    sizes = tuple(sorted({flow.frame_bytes for flow in flows}))
    return of_lokos_tables(entries=entries, packet_sizes_bytes=sizes)


def allocations_of(lab: Lab, scheme: Scheme, scenario: Scenario) -> dict[str, Allocation]:
    """The allocation of every switch of a lab, by name. Raises `InputError` if one gives no worst case."""
    return {
        name: allocate(service_curve(deterministic(switch.profile), scenario), scheme)
        for name, switch in lab.switches.items()
    }


def plan(
    lab: Lab, flows: Sequence[Flow], *, scheme: Scheme, scenario: Scenario, control: TokenBucket = NOTHING
) -> Plan:
    """Request the flows in their order. Raises `InputError` if one names unknown hosts or repeats another."""
    refuse_doubles(flows)
    allocations = allocations_of(lab, scheme, scenario)
    admission: Admission = LokoAdmission(lab, allocations, control)
    accepted: list[Admitted] = []
    refused: list[Refusal] = []
    for flow in flows:
        try:
            answer = admission.request(flow)
        except InputError as error:
            raise InputError(f"flow '{flow.id}': {error}") from None
        if isinstance(answer, Admitted):
            accepted.append(answer)
        else:
            refused.append(answer)
    return Plan(lab=lab, allocations=allocations, accepted=tuple(accepted), refused=tuple(refused))


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


def _refusal_values(refusal: Refusal) -> dict[str, object]:
    return {**{key: value for key, value in vars(refusal).items() if key != "flow"}, "flow": refusal.flow.id}
