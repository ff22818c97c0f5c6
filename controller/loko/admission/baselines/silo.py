"""Silo: queue bounds within queue capacities, port by port (appendix A; equations 9 to 20)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import ClassVar, Final

from loko.admission import (
    ROUNDING,
    Admitted,
    AdmittedFlows,
    BarePath,
    Refusal,
    ResourceDemand,
    ResourceShare,
    SchemeConditions,
    Usage,
    suggest_on_path,
)
from loko.admission.baselines.bucket import BucketAdmission, BucketUse, SharedBucket
from loko.admission.baselines.conditions import SILO_CONDITIONS
from loko.switch_model.calculus import TokenBucket, time_ns
from loko.switch_model.device import Profile, load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.service_curve import capacity_frames
from loko.topology.lab import Lab
from loko.topology.network import Hop

REFERENCE_DEVICE: Final = "zodiac-fx"
"""Device whose buffer stands in for an unknown one: "the same buffer size as for the Zodiac FX"."""


@dataclass(frozen=True, kw_only=True)
class SiloPort:
    """State of an output port in Silo."""

    rate_bps: float
    """R_i, the rate of its link, counted by the clock of the fastest sender."""
    buffer_bytes: float
    """B_i, its part of the switch's buffer."""

    @property
    def capacity_ns(self) -> float:
        """The queue capacity c_i = B_i / R_i, whatever the traffic is (equation 10)."""
        return time_ns(size_bytes=self.buffer_bytes, rate_bps=self.rate_bps)

    def bound_ns(self, traffic: TokenBucket) -> float:
        """Return the queue bound p_i of the traffic to the port: b_i / R_i, if r_i <= R_i (equation 9)."""
        if traffic.rate_bps > self.rate_bps * (1 + ROUNDING):
            return math.inf
        return time_ns(size_bytes=traffic.burst_bytes, rate_bps=self.rate_bps)


def port_of(lab: Lab, hop: Hop, frame_bytes: int) -> SiloPort:
    """Return a data port. The ports share evenly as many whole frames as section 3.5 counts (equation 13).

    The paper takes the Zodiac FX's buffer and number of ports for the Banana Pi too (equation 17).
    """
    device = lab.switches[hop.switch].profile
    reference = device if isinstance(device, Profile) else load_profile(REFERENCE_DEVICE)
    data_ports = reference.ports.count.value - 1  # the control port has no share
    frames = capacity_frames(reference, frame_bytes) // data_ports
    rate_bps = lab.port_rate_bps(hop.switch, hop.output_port) / device.tolerance.stretch
    return SiloPort(rate_bps=rate_bps, buffer_bytes=frames * frame_bytes)


def _shares(queue: SharedBucket) -> tuple[ResourceShare, ResourceShare]:
    """Return the two parts of p_i <= c_i, in the order in which they are checked (equations 9 and 11)."""
    rate_bps, burst_bytes = queue.used()
    return (
        ResourceShare(quantity="rate", used=rate_bps, allowed=queue.rate_bps, unit="bit/s"),
        ResourceShare(quantity="burst", used=burst_bytes, allowed=queue.burst_bytes, unit="bytes"),
    )


class SiloAdmission(BucketAdmission):
    """Silo's admission control. All frames of a lab have one size, in which the buffers are counted."""

    conditions: ClassVar[SchemeConditions] = SILO_CONDITIONS

    def __init__(self, lab: Lab, *, frame_bytes: int) -> None:
        """Start empty."""
        super().__init__(AdmittedFlows(lab, BarePath.prepare))
        self._ports = {
            hop: port_of(lab, hop, frame_bytes)
            for name in lab.switches
            for port, _ in lab.neighbours(name)
            for hop in [Hop(switch=name, output_port=port)]
        }
        self._queues: dict[Hop, SharedBucket] = {}

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return "silo"

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer: accepted if p_i <= c_i at every port passed (equation 11)."""
        path = self._register.route(flow, path).path
        bursts = self._bursts_bytes(flow, path)
        for hop, burst_bytes in zip(path, bursts, strict=True):
            requested = {"rate": flow.rate_bps, "burst": burst_bytes}
            for share in _shares(self._queue(hop)):
                if share.used + requested[share.quantity] > share.allowed * (1 + ROUNDING):
                    return Refusal(
                        flow=flow,
                        switch=hop.switch,
                        quantity=f"{share.quantity} of port {hop.output_port}",
                        used=share.used,
                        requested=requested[share.quantity],
                        allowed=share.allowed,
                        unit=share.unit,
                        advice=self._patience(flow, list(zip(map(self._queue, path), bursts, strict=True)))
                        or partial(suggest_on_path, self.check, path),
                    )
        delays_ns = tuple(self._ports[hop].capacity_ns for hop in path)
        return Admitted(flow, path, bursts, delays_ns)

    def servers(self, admitted: Admitted) -> tuple[str, ...]:
        """Return the ports on a flow's path, as `switch:port`."""
        return tuple(f"{hop.switch}:{hop.output_port}" for hop in admitted.path)

    def usage(self, switch: str) -> Usage:
        """Return what is used of the rate and the buffer of each output port that a flow leaves by."""
        used = sorted((hop.output_port, queue) for hop, queue in self._queues.items() if hop.switch == switch)
        shares = (
            ResourceShare(
                quantity=f"{share.quantity} of port {number}",
                used=share.used,
                allowed=share.allowed,
                unit=share.unit,
            )
            for number, queue in used
            for share in _shares(queue)
        )
        return Usage(shares=tuple(shares), delay_ns=self.queue_capacity_ns(switch))

    def demands(self, admitted: Admitted) -> Iterator[ResourceDemand]:
        """See `Admission.demands`. Flows that exceed no capacity fit."""
        for hop, burst_bytes in zip(admitted.path, admitted.bursts_bytes, strict=True):
            port, queue = hop.output_port, self._queue(hop)
            rate_bps = admitted.flow.rate_bps
            yield ResourceDemand(
                hop.switch, f"rate of port {port}", rate_bps, queue.rate_bps * (1 + ROUNDING)
            )
            yield ResourceDemand(
                hop.switch, f"burst of port {port}", burst_bytes, queue.burst_bytes * (1 + ROUNDING)
            )

    def queue_bound_ns(self, switch: str, output_port: int) -> float:
        """Return p_i of an output port at present (equation 9)."""
        hop = Hop(switch=switch, output_port=output_port)
        queue = self._queues.get(hop)
        if queue is None:
            return 0.0
        rate_bps, burst_bytes = queue.used()
        return self._ports[hop].bound_ns(TokenBucket(rate_bps=rate_bps, burst_bytes=burst_bytes))

    def queue_capacity_ns(self, switch: str) -> float:
        """Return the largest c_i of a switch's output ports, which differ by their rates (equation 10)."""
        return max(port.capacity_ns for hop, port in self._ports.items() if hop.switch == switch)

    def _bursts_bytes(self, flow: Flow, path: tuple[Hop, ...]) -> tuple[float, ...]:
        """Return the burst at each port: it grows by r c_i at every one, and the guarantee by c_i (12)."""
        bursts, arrival = [], flow.arrival
        for hop in path:
            bursts.append(arrival.burst_bytes)
            arrival = arrival.delayed(self._ports[hop].capacity_ns)
        return tuple(bursts)

    def _taken(self, admitted: Admitted) -> Iterator[BucketUse]:
        passed_ns = accumulate(admitted.delays_ns, initial=0.0)  # at each port when the last frame is there
        for hop, burst_bytes, there_ns in zip(admitted.path, admitted.bursts_bytes, passed_ns, strict=False):
            yield BucketUse(self._queue(hop), burst_bytes, there_ns)

    def _buckets(self) -> Iterable[SharedBucket]:
        return self._queues.values()

    def _named(self, server: str) -> SharedBucket:
        switch, _, port = server.rpartition(":")
        return self._queue(Hop(switch=switch, output_port=int(port)))

    def _queue(self, hop: Hop) -> SharedBucket:
        if hop not in self._queues:
            port = self._ports[hop]
            self._queues[hop] = SharedBucket(
                rate_bps=port.rate_bps, burst_bytes=port.buffer_bytes, clock=self._clock
            )
        return self._queues[hop]
