"""Silo: queue bounds within queue capacities, port by port (appendix A; equations 9 to 20)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from loko.admission import ROUNDING, Admitted, Refusal, Register, Share, Usage, what_fits_on
from loko.admission.exact import ExactSum
from loko.calculus import TokenBucket, time_ns
from loko.device import Profile, load_profile
from loko.flow import Flow
from loko.lab import Lab
from loko.network import Hop
from loko.service import capacity_frames

REFERENCE_DEVICE: Final = "zodiac-fx"
"""Its buffer is taken for devices whose own is not known: "the same buffer size as for the Zodiac FX"."""


@dataclass(frozen=True, kw_only=True)
class SiloPort:
    """What Silo knows of an output port."""

    rate_bps: float
    """R_i, the rate of its link, as the fastest sender counts it."""
    buffer_bytes: float
    """B_i, its part of the switch's buffer."""

    @property
    def capacity_ns(self) -> float:
        """The queue capacity c_i = B_i / R_i, whatever the traffic is (equation 10)."""
        return time_ns(size_bytes=self.buffer_bytes, rate_bps=self.rate_bps)

    def bound_ns(self, traffic: TokenBucket) -> float:
        """The queue bound p_i of what is sent to the port: b_i / R_i, if r_i <= R_i (equation 9)."""
        if traffic.rate_bps > self.rate_bps * (1 + ROUNDING):
            return math.inf
        return time_ns(size_bytes=traffic.burst_bytes, rate_bps=self.rate_bps)


def port_of(lab: Lab, switch: str, frame_bytes: int) -> SiloPort:
    """A data port: the buffer holds as many whole frames as section 3.5 counts, evenly shared (equation 13).

    The paper takes the Zodiac FX's buffer and number of ports for the Banana Pi too (equation 17).
    """
    device = lab.switches[switch].profile
    reference = device if isinstance(device, Profile) else load_profile(REFERENCE_DEVICE)
    data_ports = reference.ports.count.value - 1  # the control port has no share
    frames = capacity_frames(reference, frame_bytes) // data_ports
    rate_bps = device.ports.link_rate_bps.value / device.tolerance.stretch
    return SiloPort(rate_bps=rate_bps, buffer_bytes=frames * frame_bytes)


@dataclass(kw_only=True)
class _Queue:
    """What is sent to an output port."""

    port: SiloPort
    rate: ExactSum = field(default_factory=ExactSum)
    burst: ExactSum = field(default_factory=ExactSum)

    def shares(self) -> tuple[Share, Share]:
        """The two parts of p_i <= c_i, in the order in which they are checked (equations 9 and 11)."""
        return (
            Share(quantity="rate", used=self.rate.value, allowed=self.port.rate_bps, unit="bit/s"),
            Share(quantity="burst", used=self.burst.value, allowed=self.port.buffer_bytes, unit="bytes"),
        )


class SiloAdmission:
    """Silo's admission control. Every frame of a lab has one size, of which the buffers are counted."""

    def __init__(self, lab: Lab, *, frame_bytes: int) -> None:
        """Start empty."""
        self._register = Register(lab, lambda _source, path: path)
        self._ports = {name: port_of(lab, name, frame_bytes) for name in lab.switches}
        self._queues: dict[Hop, _Queue] = {}

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return "silo"

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """What `request` would answer: accepted if p_i <= c_i at every port of the path (equation 11)."""
        path = self._register.route(flow, path)
        bursts, arrival = [], flow.arrival
        for hop in path:
            requested = {"rate": arrival.rate_bps, "burst": arrival.burst_bytes}
            for share in self._queue(hop).shares():
                if share.used + requested[share.quantity] > share.allowed * (1 + ROUNDING):
                    return Refusal(
                        flow=flow,
                        switch=hop.switch,
                        quantity=f"{share.quantity} of port {hop.output_port}",
                        used=share.used,
                        requested=requested[share.quantity],
                        allowed=share.allowed,
                        unit=share.unit,
                        advice=partial(what_fits_on, self.check, path),
                    )
            bursts.append(arrival.burst_bytes)
            # The burst grows by r c_i at every port that is left; the guarantee is the sum of c_i (12).
            arrival = arrival.delayed(self._ports[hop.switch].capacity_ns)
        delays_ns = tuple(self._ports[hop.switch].capacity_ns for hop in path)
        return Admitted(flow, path, tuple(bursts), delays_ns)

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not. Raises `InputError`."""
        answer = self.check(flow, path)
        if isinstance(answer, Admitted):
            self._register.add(answer)
            for hop, burst_bytes in zip(answer.path, answer.bursts_bytes, strict=True):
                queue = self._queue(hop)
                queue.rate.add(flow.rate_bps)
                queue.burst.add(burst_bytes)
        return answer

    def release(self, flow_id: str) -> None:
        """Give back what a flow uses. Raises `InputError` if it was not admitted."""
        admitted = self._register.remove(flow_id)
        for hop, burst_bytes in zip(admitted.path, admitted.bursts_bytes, strict=True):
            queue = self._queue(hop)
            queue.rate.remove(admitted.flow.rate_bps)
            queue.burst.remove(burst_bytes)

    def release_all(self) -> None:
        """Give back what all flows use."""
        for flow_id in list(self.admitted):
            self.release(flow_id)

    def usage(self, switch: str) -> Usage:
        """What is used of a switch: of each output port that a flow leaves by, its rate and its buffer."""
        used = sorted((hop.output_port, queue) for hop, queue in self._queues.items() if hop.switch == switch)
        shares = (
            Share(
                quantity=f"{share.quantity} of port {number}",
                used=share.used,
                allowed=share.allowed,
                unit=share.unit,
            )
            for number, queue in used
            for share in queue.shares()
        )
        return Usage(shares=tuple(shares), delay_ns=self._ports[switch].capacity_ns)

    def queue_bound_ns(self, switch: str, output_port: int) -> float:
        """p_i of an output port now (equation 9)."""
        queue = self._queues.get(Hop(switch=switch, output_port=output_port))
        if queue is None:
            return 0.0
        return queue.port.bound_ns(TokenBucket(rate_bps=queue.rate.value, burst_bytes=queue.burst.value))

    def queue_capacity_ns(self, switch: str) -> float:
        """c_i of each output port of a switch (equation 10)."""
        return self._ports[switch].capacity_ns

    def _queue(self, hop: Hop) -> _Queue:
        if hop not in self._queues:
            self._queues[hop] = _Queue(port=self._ports[hop.switch])
        return self._queues[hop]
