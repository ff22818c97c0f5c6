"""Mean latency in a slice by equation 1 of the slicing paper (section V)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loko.slicing.document import HtbPort, HtbQueue, Port, TrtcmQueue
from loko.slicing.lengths import Scheduler, counted
from loko.units import US_PER_S

_STEP: Final = 0.005
"""The change of utilisation that the paper calls significant (section V)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanLatency:
    """Equation 1: L_q = 1 / (mu (1 - rho))."""

    groups_per_s: float
    """mu, the effective queue rate."""
    utilisation: float
    """rho, the utilisation."""

    @property
    def mean_us(self) -> float:
        """L_q; infinite if more arrives than can leave."""
        return self._at(self.utilisation)

    @property
    def mean_us_at_more(self) -> float:
        """L_q if half a per cent more of the rate is used."""
        return self._at(self.utilisation + _STEP)

    def _at(self, utilisation: float) -> float:
        if utilisation >= 1:
            return float("inf")
        return US_PER_S / (self.groups_per_s * (1 - utilisation))


def effective_rate(rate_bps: float, group_frames: int, packet_bytes: int) -> float:
    """Return mu of section V, in groups per second."""
    return rate_bps / (group_frames * packet_bytes * 8)


def mean_latency(port: Port, queue: HtbQueue | TrtcmQueue) -> MeanLatency | None:
    """Return equation 1 for the queue's flow; None if it has none.

    A policer does not dequeue at its own rate but at that of its polls (section VI): mu is the polls' rate.
    """
    if queue.flow is None:
        return None
    packet = counted(Scheduler(port.scheduler), queue.flow.frame_bytes)
    offered_bps = queue.flow.rate_bps * packet / queue.flow.frame_bytes
    if isinstance(port, HtbPort):
        assert isinstance(queue, HtbQueue)  # a port of one kind has queues of that kind
        rate_bps = float(queue.rate_bps)
        groups_per_s = effective_rate(rate_bps, port.dequeue.group_frames, packet)
    else:
        groups_per_s = US_PER_S / port.dequeue.poll_us
        rate_bps = groups_per_s * port.dequeue.group_frames * packet * 8
    return MeanLatency(groups_per_s=groups_per_s, utilisation=offered_bps / rate_bps)
