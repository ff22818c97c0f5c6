"""What the sender of one flow does: the same for every kind of figure, in virtual and in real time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evaluation.senders import Senders
from loko.flow import Flow

_UDP_SOURCE: Final = 5000
_UDP_DESTINATION: Final = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTraffic:
    """One flow's sender: bursts at line rate, exponentially separated, through a token bucket (section 6.1).

    Rates count the frame with its FCS, without preamble. The token bucket holds `shaper_burst_bytes` and
    fills at `shaper_rate_bps`; before it stands a queue of `queue_bytes`, after it the sender's tap.
    """

    flow: int
    """Number of the flow, from 0; its place in the records."""
    source: str
    """Name of the sending host in the lab."""
    destination: str
    udp_source: int
    udp_destination: int
    frame_bytes: int
    """Every frame's size, with FCS."""
    shaper_rate_bps: int
    """m_r x r of equation 8."""
    shaper_burst_bytes: int
    """m_b x b of equation 8, at least one frame."""
    offered_rate_bps: int
    """Mean rate at which the generator hands frames to the shaper's queue."""
    offered_burst_bytes: int
    """Size of each burst that the generator hands over at once, at least one frame."""
    queue_bytes: int
    """Room before the shaper. What does not fit was never sent and is not a loss."""
    observed: bool
    """Whether its packets are recorded."""
    shaper_latency_ns: int = 0
    """How much later than it could a frame leaves that had to wait for tokens."""

    @classmethod
    def conforming(cls, number: int, flow: Flow, how: Senders) -> FlowTraffic:
        """A flow's sender whose shaper is the flow's token bucket."""
        return cls(
            flow=number,
            source=flow.source,
            destination=flow.destination,
            udp_source=flow.udp_source,
            udp_destination=flow.udp_destination,
            frame_bytes=flow.frame_bytes,
            shaper_rate_bps=int(flow.rate_bps),
            shaper_burst_bytes=int(flow.burst_bytes),
            offered_rate_bps=int(flow.rate_bps * how.offered_load),
            offered_burst_bytes=how.burst_bytes(flow.burst_bytes, flow.frame_bytes),
            queue_bytes=how.queue_frames * flow.frame_bytes,
            shaper_latency_ns=how.shaper_latency_ns,
            observed=True,
        )

    @property
    def label(self) -> str:
        """The direction, as the figures name it."""
        return f"{self.source}->{self.destination}"

    def as_flow(self) -> Flow:
        """The flow as the controller knows it, such as to fill the tables. Its bucket is the shaper's."""
        return Flow(
            id=f"flow-{self.flow}",
            source=self.source,
            destination=self.destination,
            udp_source=self.udp_source,
            udp_destination=self.udp_destination,
            rate_bps=float(self.shaper_rate_bps),
            burst_bytes=float(self.shaper_burst_bytes),
            frame_bytes=self.frame_bytes,
        )


def flow_of(
    number: int,
    source: str,
    destination: str,
    *,
    rate_bps: float,
    burst_bytes: float,
    frame_bytes: int,
    called: str = "flow-",
) -> Flow:
    """A flow by its number, which is in its name: no two have the same ports."""
    return Flow(
        id=f"{called}{number}",
        source=source,
        destination=destination,
        udp_source=_UDP_SOURCE + number,
        udp_destination=_UDP_DESTINATION + number,
        rate_bps=rate_bps,
        burst_bytes=burst_bytes,
        frame_bytes=frame_bytes,
    )


def number_of(flow: Flow) -> int:
    """The number that `flow_of` was given."""
    return flow.udp_source - _UDP_SOURCE
