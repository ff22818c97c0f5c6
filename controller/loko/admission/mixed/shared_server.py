"""The one queue of a switch whose server forwards for all ports, as a server beside those of switch chips."""

from __future__ import annotations

from dataclasses import dataclass

from loko.admission.port_queues.device import BESIDE_BYTES, PREAMBLE_BYTES, FlowQueue
from loko.switch_model.allocation import Frontier
from loko.switch_model.calculus import PortServer, RateLatency, time_ns
from loko.switch_model.device import Device


@dataclass(frozen=True, kw_only=True)
class SharedServerQueue(FlowQueue):
    """The queue before a server that all ports share."""

    profile: Device

    def least_ns(self, frame_bytes: int) -> float:
        """Return the least time from a frame's arrival until it is at the next switch: that on the cable."""
        rate_bps = self.profile.ports.link_rate_bps.value
        wire_ns = time_ns(size_bytes=PREAMBLE_BYTES + frame_bytes, rate_bps=rate_bps)
        return wire_ns * self.profile.tolerance.shrink


def shared_queue(profile: Device, splits: Frontier) -> SharedServerQueue:
    """Return the queue of a switch with this frontier (docs/mixed-labs.md, lemma 1).

    Its server has the rate R' and the latency T' that control traffic leaves, and a packetizer, l/R. Its room
    is B - l. Both rates and the room are in bytes with preamble and gap, as ports count them: no frame has a
    smaller share of such bytes than the largest.
    """
    on_wire = (splits.frame_bytes + BESIDE_BYTES) / splits.frame_bytes
    undivided_ns = splits.latency_ns * splits.max_rate_bps / splits.service_rate_bps
    return SharedServerQueue(
        server=PortServer(
            service=RateLatency(rate_bps=splits.max_rate_bps * on_wire, latency_ns=splits.latency_ns),
            before_ns=splits.empty_delay_ns - undivided_ns,
            frame_bytes=float(splits.frame_bytes + BESIDE_BYTES),
        ),
        room_bytes=splits.room_bytes * on_wire,
        profile=profile,
    )
