"""Request flows of several path lengths and compute which are admitted, without any replay."""

from __future__ import annotations

import random
from dataclasses import dataclass

from loko.admission import Admitted
from loko.admission.planning import plan, scenario_of
from loko.admission.schemes import admission_of, variant_named
from loko.document import InputError
from loko.switch_model.control_traffic import HEARTBEAT
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import shortest_path
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types.traffic.document import PathsFigure
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender, flow_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedPaths:
    """The admitted flows with their guarantees."""

    lab: Lab
    requested: int
    flows: tuple[Admitted, ...]
    """The admitted flows with their paths."""
    senders: tuple[Sender, ...]

    @property
    def hops(self) -> tuple[int, ...]:
        """Number of links between switches on the path of each flow."""
        return tuple(len(flow.path) - 1 for flow in self.flows)

    def guarantee_ns(self, hops: int) -> float:
        """Return the largest guarantee of the flows with this number of hops."""
        return max(flow.guarantee_ns for flow in self.flows if len(flow.path) - 1 == hops)


def admit_paths(figure: PathsFigure, seed: int, how: SenderSettings | None = None) -> AdmittedPaths:
    """Request a flow of every host, with the figure's path lengths in turn.

    `how` overrides the figure's description of the senders. Raises `InputError` if a host has no path of the
    length required, or no flow is admitted.
    """
    lab = lab_of(figure)
    requested = _requests(figure, lab, random.Random(f"{seed} {figure.name}"))
    choice = variant_named(figure.scheme)
    scenario = scenario_of(requested, entries=figure.entries)
    result = plan(lab, requested, admission_of(lab, choice, scenario, traffic=HEARTBEAT))
    if not result.accepted:
        raise InputError(f"{figure.name}: {figure.scheme} admits none of the flows; lower rate_bps")
    return AdmittedPaths(
        lab=lab,
        requested=len(requested),
        flows=result.accepted,
        senders=tuple(
            (figure.senders if how is None else how).conforming(number, admitted.flow)
            for number, admitted in enumerate(result.accepted)
        ),
    )


def _requests(figure: PathsFigure, lab: Lab, chance: random.Random) -> list[Flow]:
    """Return one flow of each host, in random order."""
    ends: dict[tuple[str, int], list[str]] = {}
    for source in lab.hosts:
        for destination in lab.hosts:
            if source != destination:
                crossed = len(shortest_path(lab, source, destination)) - 1
                ends.setdefault((source, crossed), []).append(destination)
    sources = chance.sample(sorted(lab.hosts), len(lab.hosts))
    flows = []
    for number, source in enumerate(sources):
        hops = figure.hops[number % len(figure.hops)]
        if (source, hops) not in ends:
            raise InputError(f"{figure.name}: hops: no path of {hops} links leads from {source}; mend it")
        flows.append(
            flow_of(
                number,
                source,
                chance.choice(ends[source, hops]),
                rate_bps=figure.rate_bps,
                burst_bytes=float(figure.burst_frames * figure.frame_bytes),
                frame_bytes=figure.frame_bytes,
            )
        )
    return flows
