"""What each sender of an experiment's point does: pure arithmetic on the controller's allocation."""

from __future__ import annotations

from dataclasses import dataclass


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

    @property
    def label(self) -> str:
        """The direction, as the figures name it."""
        return f"{self.source}->{self.destination}"
