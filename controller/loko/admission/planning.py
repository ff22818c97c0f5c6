"""Step 3 offline: which of a list of flows fit a lab, with which guarantee, and why the others do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Final

from loko.admission import Admission, Admitted, LokoAdmission, Refusal
from loko.admission.routing import admit
from loko.document import InputError
from loko.notebook_display import arrow_stream, html_table
from loko.switch_model.allocation import Allocation
from loko.switch_model.flow import Flow, refuse_duplicates
from loko.switch_model.mix import Mix
from loko.switch_model.scenario import MatchType, OpenFlow, Scenario, Unknown, loko_scenario
from loko.topology.frame_sizes import CrossableSwitches, sizes_by_switch
from loko.topology.lab import Lab
from loko.topology.network import Hop
from loko.units import in_ms

COLUMNS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "flow": str,
        "accepted": bool,
        "path": str,
        "traffic_class": int,
        "guarantee_ns": float,
        "deadline_ns": float,
        "slack_ns": float,
        "switch": str,
        "quantity": str,
        "used": float,
        "requested": float,
        "allowed": float,
        "unit": str,
        "would_fit": str,
    }
)
"""Columns of `Plan.rows`, with the types of their values; those from `switch` on say why a flow is
refused."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The result of requesting flows one after another."""

    lab: Lab
    scheme: str
    """Name of the admission scheme."""
    allocations: Mapping[str, Allocation]
    """By switch, for Loko's scheme; empty for baselines, which do not give away a switch's service."""
    accepted: tuple[Admitted, ...]
    refused: tuple[Refusal, ...]
    deadlines_ns: Mapping[str, float] = field(default_factory=dict)
    """By flow id, for the flows that have one."""
    target_ns: float | None = None
    """The delay target of each switch or port, if the scheme had one."""
    baseline: str = ""
    """Of a baseline, that its guarantees do not hold here, and why (`SchemeConditions.baseline`)."""

    def __repr__(self) -> str:
        return f"Plan({self.lab.name!r}, {self.scheme}: {self.fit} fit)"

    @property
    def fit(self) -> str:
        """How many of the flows fit, as text such as `3 of 5`."""
        return f"{len(self.accepted):,} of {len(self.accepted) + len(self.refused):,}"

    @property
    def guarantees_ns(self) -> dict[str, float]:
        """By id of an accepted flow, its guarantee."""
        return {admitted.flow.id: admitted.guarantee_ns for admitted in self.accepted}

    @property
    def has_classes(self) -> bool:
        """Whether a flow is accepted in a lower traffic class than the highest."""
        return any(admitted.flow.traffic_class > 1 for admitted in self.accepted)

    def slack_ns(self, admitted: Admitted) -> float | None:
        """Return by how much a flow's guarantee is below its deadline; None without a deadline."""
        deadline_ns = self.deadlines_ns.get(admitted.flow.id)
        return None if deadline_ns is None else deadline_ns - admitted.guarantee_ns

    def rows(self) -> list[dict[str, object]]:
        """Return a row of `COLUMNS` for each flow, accepted ones first; what it lacks does not apply."""
        return [
            *(self._accepted_row(admitted) for admitted in self.accepted),
            *(self._refused_row(refusal) for refusal in self.refused),
        ]

    def _accepted_row(self, admitted: Admitted) -> dict[str, object]:
        return {
            "flow": admitted.flow.id,
            "accepted": True,
            "path": " ".join(hop.switch for hop in admitted.path),
            "traffic_class": admitted.flow.traffic_class,
            "guarantee_ns": admitted.guarantee_ns,
            "deadline_ns": self.deadlines_ns.get(admitted.flow.id),
            "slack_ns": self.slack_ns(admitted),
        }

    def _refused_row(self, refusal: Refusal) -> dict[str, object]:
        return {
            "flow": refusal.flow.id,
            "accepted": False,
            "traffic_class": refusal.flow.traffic_class,
            "deadline_ns": self.deadlines_ns.get(refusal.flow.id),
            "switch": refusal.switch,
            "quantity": refusal.quantity,
            "used": refusal.used,
            "requested": refusal.requested,
            "allowed": refusal.allowed,
            "unit": refusal.unit,
            "would_fit": refusal.suggestion_text or refusal.hint,
        }

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export `rows` to any library of data frames: `polars.DataFrame(plan)`, `pyarrow.table(plan)`."""
        return arrow_stream(COLUMNS, self.rows(), requested_schema)

    def _repr_html_(self) -> str:
        """Return a table of the flows for a notebook."""
        rows = [
            [
                admitted.flow.id,
                " ".join(hop.switch for hop in admitted.path),
                in_ms(admitted.guarantee_ns, math.ceil),
                in_ms(self.deadlines_ns.get(admitted.flow.id), math.floor),
                "",
            ]
            for admitted in self.accepted
        ]
        rows += [
            [refusal.flow.id, "", "", in_ms(self.deadlines_ns.get(refusal.flow.id), math.floor), str(refusal)]
            for refusal in self.refused
        ]
        columns = ("flow", "path", "guarantee ms", "deadline ms", "why it is refused")
        return html_table(f"{self.lab.name}: {self.fit} flows fit by {self.scheme}", columns, rows)

    def as_values(self) -> dict[str, object]:
        """The plan as plain values, for JSON."""
        return {
            "lab": self.lab.name,
            "scheme": self.scheme,
            **({"baseline": self.baseline} if self.baseline else {}),
            **({} if self.target_ns is None else {"target_ns": self.target_ns}),
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
            "accepted": [self._admitted_values(flow) for flow in self.accepted],
            "refused": [{**refusal.as_values(), "flow": refusal.flow.id} for refusal in self.refused],
        }

    def _admitted_values(self, admitted: Admitted) -> dict[str, object]:
        return {
            "flow": admitted.flow.id,
            **({} if admitted.flow.traffic_class == 1 else {"traffic_class": admitted.flow.traffic_class}),
            **({} if admitted.vlan is None else {"vlan": admitted.vlan}),
            "guarantee_ns": admitted.guarantee_ns,
            "deadline_ns": self.deadlines_ns.get(admitted.flow.id),
            "slack_ns": self.slack_ns(admitted),
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


def scenario_of(
    flows: Sequence[Flow],
    *,
    entries: int | Unknown,
    mix: Mix | None = None,
    openflow: OpenFlow = OpenFlow.V1_0,
    match: MatchType = MatchType.FIVE_TUPLE,
    lab: Lab | None = None,
    paths: Mapping[str, Sequence[Hop]] = MappingProxyType({}),
    anywhere_bytes: Sequence[int] = (),
) -> Scenario:
    """Return the scenario of Loko's own tables, for the frame sizes of the flows and of an expected mix.

    `match` is what their entries compare (`loko.control.entries.match_of`). With a lab, each switch is
    planned for the sizes that can reach it: of flows whose ids are in `paths` on these, of others on any path
    without a loop; those of `anywhere_bytes` reach every switch. Without a lab, each is planned for all.
    Raises `InputError` if there is no flow.
    """
    if not flows:
        raise InputError("no flows to plan for; list at least one")
    expected = () if mix is None else mix.frame_bytes
    sizes = tuple(sorted({*(flow.frame_bytes for flow in flows), *expected, *anywhere_bytes}))
    reaching: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    if lab is not None and len(sizes) > 1:
        anywhere = [(size, frozenset(lab.switches)) for size in anywhere_bytes]
        reaching = sizes_by_switch(lab, chain(_crossings(lab, flows, paths, mix), anywhere))
    return loko_scenario(
        entries=entries, packet_sizes_bytes=sizes, openflow=openflow, match=match, sizes_at=reaching
    )


def _crossings(
    lab: Lab, flows: Sequence[Flow], paths: Mapping[str, Sequence[Hop]], mix: Mix | None
) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield frame sizes, each with switches that its frames can cross, for `sizes_by_switch`."""
    crossable = CrossableSwitches(lab)
    for flow in flows:
        path = paths.get(flow.id)
        if path is None:
            yield flow.frame_bytes, crossable.between(flow.source, flow.destination)
        else:
            yield flow.frame_bytes, frozenset(hop.switch for hop in path)
    for kind in () if mix is None else mix.kinds:
        if kind.between is None:
            yield kind.frame_bytes, frozenset(lab.switches)
        for pair in kind.between or ():
            yield kind.frame_bytes, crossable.between(pair.source, pair.destination)


def plan(
    lab: Lab,
    flows: Sequence[Flow],
    admission: Admission,
    paths: Mapping[str, Sequence[Hop]] = MappingProxyType({}),
    deadlines_ns: Mapping[str, float] = MappingProxyType({}),
) -> Plan:
    """Request the flows in their order from any scheme, each on the best path that has room.

    A flow whose id is in `paths` is requested on that path, and on no other.
    A guarantee must not exceed the deadline of the flow, if it has one.
    Raises `InputError` if a flow names unknown hosts or repeats another, or if a path belongs to no flow or
    does not lead from its source to its destination.
    """
    refuse_duplicates(flows)
    if stray := paths.keys() - {flow.id for flow in flows}:
        raise InputError(f"paths: there is no flow '{min(stray)}'; leave its path out, or list the flow")
    accepted: list[Admitted] = []
    refused: list[Refusal] = []
    for flow in flows:
        try:
            answer = admit(lab, admission, flow, deadlines_ns.get(flow.id), path=paths.get(flow.id))
        except InputError as error:
            raise InputError(f"flow '{flow.id}': {error}") from None
        if isinstance(answer, Admitted):
            accepted.append(answer)
        else:
            refused.append(answer)
    return Plan(
        lab=lab,
        scheme=admission.scheme,
        allocations=admission.allocations if isinstance(admission, LokoAdmission) else {},
        accepted=tuple(accepted),
        refused=tuple(refused),
        deadlines_ns=deadlines_ns,
        baseline=admission.conditions.baseline,
    )
