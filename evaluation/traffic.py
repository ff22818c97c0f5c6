"""What hosts send, as data: one closed vocabulary for figures, adversary and duels, in every mode.

`Sender` says who sends which frames to whom, and one of `Sends` when. A host may send several flows.
A runner says itself which of these it carries (`evaluation.runner.Runner.carries`); it refuses the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loko.flow import Flow

_UDP_SOURCE: Final = 5000
_UDP_DESTINATION: Final = 6000

Instants = NDArray[np.int64]
"""In ns after the beginning of a run, rising."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A token bucket before a host's line, full when a run begins. It counts whole frames with their FCS."""

    rate_bps: float
    burst_bytes: float
    """At least one frame."""
    latency_ns: int = 0
    """How much later than it could a frame leaves that had to wait for tokens. Only of `RandomBursts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomBursts:
    """The paper's generator (section 6.1): bursts at line rate, exponentially separated."""

    bucket: Bucket | None
    """None: nothing but the line holds them up."""
    offered_rate_bps: float
    """Mean rate at which the generator hands over frames."""
    burst_bytes: float
    """What it hands over at once, at least one frame."""
    queue_bytes: float
    """Room before the bucket. What does not fit was never sent and is not a loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """All that the bucket lets pass: a frame always waits."""

    bucket: Bucket


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Releases:
    """A frame at each of these instants, or as soon afterwards as the bucket lets it go."""

    instants_ns: Instants
    bucket: Bucket | None = None
    """None: what is released at one instant leaves as fast as the line carries it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeTriggered:
    """A frame in each slot, by the host's own clock: at `offset_ns`, and from then on every period."""

    offset_ns: int
    period_ns: int
    clock_rate: float = 1.0
    """Of the host's clock, over that of the run."""
    off_ns: Instants = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """By how much each frame misses its instant, in order; what is beyond the last is on time."""

    def instants_ns(self, duration_ns: int) -> Instants:
        """When frames are released in a run of this length, by the run's clock."""
        own_ns = np.arange(self.offset_ns, self.clock_rate * duration_ns, self.period_ns)
        due_ns = np.rint(own_ns / self.clock_rate).astype(np.int64)
        missed = min(due_ns.size, self.off_ns.size)
        due_ns[:missed] += self.off_ns[:missed]
        return due_ns


Sends = RandomBursts | Greedy | Releases | TimeTriggered

IN_WORDS: Final[Mapping[type[Sends], str]] = {
    RandomBursts: "random bursts",
    Greedy: "all that its bucket lets pass",
    Releases: "frames at given instants",
    TimeTriggered: "frames in slots",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """One flow's sender."""

    flow: int
    """Number of the flow, from 0; its place in the records."""
    source: str
    """Name of the sending host in the lab. A machine with several interfaces is a host for each of them."""
    destination: str
    udp_source: int
    udp_destination: int
    frame_bytes: int
    """Every frame's size, with FCS."""
    sends: Sends
    observed: bool = True
    """Whether its packets are recorded."""

    @classmethod
    def of(cls, number: int, flow: Flow, sends: Sends, *, observed: bool = True) -> Sender:
        """The sender of a flow."""
        return cls(
            flow=number,
            source=flow.source,
            destination=flow.destination,
            udp_source=flow.udp_source,
            udp_destination=flow.udp_destination,
            frame_bytes=flow.frame_bytes,
            sends=sends,
            observed=observed,
        )

    @property
    def label(self) -> str:
        """The direction, as the figures name it."""
        return f"{self.source}->{self.destination}"

    @property
    def where(self) -> str:
        """The flow, as complaints name it."""
        return f"flow {self.flow} ({self.label})"

    @property
    def bucket(self) -> Bucket:
        """What shapes the flow. Raises `ValueError` if nothing does."""
        bucket = self.sends.bucket if isinstance(self.sends, RandomBursts | Greedy | Releases) else None
        if bucket is None:
            raise ValueError(f"{self.where}: nothing shapes it")
        return bucket

    def described(self) -> dict[str, Any]:
        """All that it depends on, as plain values; of instants a hash."""
        plain = asdict(self)
        values = {
            name: hashlib.blake2b(value.tobytes()).hexdigest() if isinstance(value, np.ndarray) else value
            for name, value in plain["sends"].items()
        }
        return {**plain, "sends": {"how": type(self.sends).__name__, **values}}

    def as_flow(self) -> Flow:
        """The flow as the controller knows it, such as to fill the tables. Raises `ValueError`."""
        return Flow(
            id=f"flow-{self.flow}",
            source=self.source,
            destination=self.destination,
            udp_source=self.udp_source,
            udp_destination=self.udp_destination,
            rate_bps=float(self.bucket.rate_bps),
            burst_bytes=float(self.bucket.burst_bytes),
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
