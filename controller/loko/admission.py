"""Admission control (section 5): which flows fit, with which guarantee, and why the others do not.

A switch accepts as long as the sums of rates and bursts of its flows stay within its allocation. So the delay
bound D of a switch, and with it every guarantee once given, holds whatever is admitted later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from loko.allocation import Allocation
from loko.calculus import NOTHING, TokenBucket, aggregate
from loko.document import InputError
from loko.flow import FiveTuple, Flow
from loko.lab import Lab
from loko.network import Hop, shortest_path
from loko.scenario import Unknown

ROUNDING: Final = 1e-9
"""Relative slack of comparisons, so that shares which add up to the whole fit in binary floating point."""


@dataclass(frozen=True, kw_only=True)
class HopTerm:
    """What a flow takes of one switch on its path, and what the switch adds to its delay."""

    switch: str
    output_port: int
    arrival: TokenBucket
    """The flow where it enters the switch: its burst has grown by r D at every switch before."""
    delay_ns: float
    """D of the switch."""


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """An accepted flow."""

    flow: Flow
    hops: tuple[HopTerm, ...]

    @property
    def guarantee_ns(self) -> float:
        """The end-to-end bound: the sum of D along the path."""
        return sum(hop.delay_ns for hop in self.hops)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a flow does not fit: the first limit along its path that it would exceed."""

    flow: Flow
    switch: str
    quantity: Literal["rate", "burst", "entries"]
    used: float
    requested: float
    allowed: float
    unit: Literal["bit/s", "bytes", "entries"]

    def __str__(self) -> str:
        return (
            f"{self.flow.id}: {self.quantity} at {self.switch}: {self.used:.0f} used + {self.requested:.0f}"
            f" requested > {self.allowed:.0f} {self.unit} allowed"
        )


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What the admitted flows, and the control traffic, use of one switch."""

    traffic: TokenBucket
    entries: int


class AdmissionControl:
    """The admitted flows of a network. A request is granted at every switch of its path, or nowhere."""

    def __init__(
        self, lab: Lab, allocations: Mapping[str, Allocation], control: TokenBucket = NOTHING
    ) -> None:
        """Start empty. `allocations` has one for each switch; `control` is reserved at each (r_CP, b_CP)."""
        self._lab = lab
        self._allocations = allocations
        self._control = control
        self._admitted: dict[str, Admitted] = {}

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._admitted

    def request(self, flow: Flow) -> Admitted | Refusal:
        """Admit a flow, or say why not.

        Raises `InputError` for unknown hosts, an id or ports in use, or frames that the model does not cover.
        """
        self._refuse_doubles(flow)
        hops = tuple(self._terms(flow, shortest_path(self._lab, flow.source, flow.destination)))
        for hop in hops:
            self._refuse_size(flow, hop.switch)
            for refusal in self._limits(flow, hop):
                if refusal.used + refusal.requested > refusal.allowed * (1 + ROUNDING):
                    return refusal
        admitted = Admitted(flow=flow, hops=hops)
        self._admitted[flow.id] = admitted
        return admitted

    def release(self, flow_id: str) -> None:
        """Give back what a flow uses. Raises `InputError` if it was not admitted."""
        if self._admitted.pop(flow_id, None) is None:
            raise InputError(f"flow '{flow_id}' is not admitted")

    def usage(self, switch: str) -> Usage:
        """What is used of a switch now. It depends on the set of flows only, not on their history."""
        here = [hop.arrival for flow in self._admitted.values() for hop in flow.hops if hop.switch == switch]
        return Usage(traffic=aggregate([self._control, *here]), entries=len(here))

    def _terms(self, flow: Flow, path: tuple[Hop, ...]) -> Iterator[HopTerm]:
        arrival = flow.arrival
        for hop in path:
            delay_ns = self._allocations[hop.switch].delay_ns
            yield HopTerm(switch=hop.switch, output_port=hop.output_port, arrival=arrival, delay_ns=delay_ns)
            arrival = arrival.delayed(delay_ns)

    def _limits(self, flow: Flow, hop: HopTerm) -> Iterator[Refusal]:
        """Each limit of a switch as the refusal that it would be, if exceeded."""
        allocation, usage = self._allocations[hop.switch], self.usage(hop.switch)
        scenario = allocation.service.scenario
        yield Refusal(
            flow=flow,
            switch=hop.switch,
            quantity="rate",
            used=usage.traffic.rate_bps,
            requested=hop.arrival.rate_bps,
            allowed=allocation.max_rate_bps,
            unit="bit/s",
        )
        yield Refusal(
            flow=flow,
            switch=hop.switch,
            quantity="burst",
            used=usage.traffic.burst_bytes,
            requested=hop.arrival.burst_bytes,
            allowed=allocation.max_burst_bytes,
            unit="bytes",
        )
        table = allocation.service.profile.table.entries.value
        yield Refusal(
            flow=flow,
            switch=hop.switch,
            quantity="entries",
            used=usage.entries,
            requested=1,
            allowed=table if isinstance(scenario.entries, Unknown) else scenario.entries,
            unit="entries",
        )

    def _refuse_size(self, flow: Flow, switch: str) -> None:
        """Refuse frames for which the service curve was not made: no guarantee would hold."""
        scenario = self._allocations[switch].service.scenario
        sizes = scenario.frame_bytes
        if isinstance(scenario.packet_sizes_bytes, Unknown):
            covered = min(sizes) <= flow.frame_bytes <= max(sizes)
        else:
            covered = flow.frame_bytes in sizes
        if not covered:
            known = ", ".join(str(size) for size in sizes)
            raise InputError(
                f"frame_bytes {flow.frame_bytes} is not a size that {switch} was planned for ({known})"
            )

    def _refuse_doubles(self, flow: Flow) -> None:
        if flow.id in self._admitted:
            raise InputError(f"flow id '{flow.id}' is admitted already; choose another or release it")
        for other in self._admitted.values():
            if FiveTuple.of(other.flow) == FiveTuple.of(flow):
                raise InputError(
                    f"flows '{other.flow.id}' and '{flow.id}' have the same hosts and ports; change a port"
                )
