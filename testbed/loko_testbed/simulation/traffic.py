"""Traffic as data: a closed set of ways in which hosts send, for figures and searches in all modes.

`Sender` says who sends which frames to whom; its `Sends` says when. A host may send several flows, each by
one of its interfaces. A runner declares which ways of sending it supports
(`loko_testbed.simulation.runner.Runner.carries`), and refuses the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.flow import Flow

_UDP_SOURCE: Final = 5000
_UDP_DESTINATION: Final = 6000

Instants = NDArray[np.int64]
"""Ascending times in ns from the start of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A token bucket before a host's line, full when a run begins. Counts whole frames with their FCS."""

    rate_bps: float
    burst_bytes: float
    """At least one frame."""
    latency_ns: int = 0
    """Extra delay of a frame that had to wait for tokens. For `RandomBursts` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomBursts:
    """The paper's generator (section 6.1): bursts at line rate with exponential gaps."""

    bucket: Bucket | None
    """None: only the line limits the frames."""
    offered_rate_bps: float
    """Mean rate at which the generator emits frames."""
    burst_bytes: float
    """Length of a burst, at least one frame."""
    queue_bytes: float
    """Size of the queue before the bucket. Frames that do not fit count as never sent, not as lost."""

    @property
    def mean_gap_ns(self) -> float:
        """Mean time between the beginnings of bursts, and from the beginning of a run to its first burst."""
        return self.burst_bytes * 8e9 / self.offered_rate_bps


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """A sender that always has a frame waiting, so that it sends all that the bucket lets pass."""

    bucket: Bucket


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Releases:
    """One frame at each of these instants, or as soon afterwards as the bucket allows."""

    instants_ns: Instants
    bucket: Bucket | None = None
    """None: frames released at one instant leave at line rate."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeTriggered:
    """One frame per slot by the host's own clock: at `offset_ns`, and from then on every `period_ns`."""

    offset_ns: int
    period_ns: int
    clock_rate: float = 1.0
    """Rate of the host's clock relative to the run's."""
    off_ns: Instants = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """By how much each frame misses its instant, in order; frames beyond the last value are on time."""

    def instants_ns(self, duration_ns: int) -> Instants:
        """Return when frames are released in a run of this length, by the run's clock."""
        own_ns = np.arange(self.offset_ns, self.clock_rate * duration_ns, self.period_ns)
        due_ns = np.rint(own_ns / self.clock_rate).astype(np.int64)
        missed = min(due_ns.size, self.off_ns.size)
        due_ns[:missed] += self.off_ns[:missed]
        return due_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp:
    """A bulk transfer over TCP, which sends as its window allows. `Sender.frame_bytes`: a full segment."""

    congestion_control: Literal["cubic", "reno"] = "cubic"
    window_bytes: int = 3 * 2**20
    """Most payload under way: the smaller of the receiver's buffer and the sender's."""


Sends = RandomBursts | Greedy | Releases | TimeTriggered | Tcp

IN_WORDS: Final[Mapping[type[Sends], str]] = {
    RandomBursts: "random bursts",
    Greedy: "all that its bucket lets pass",
    Releases: "frames at given instants",
    TimeTriggered: "frames in slots",
    Tcp: "a transfer over TCP",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The sender of one flow."""

    flow: int
    """Number of the flow in the records, from 0."""
    source: str
    """Name of the sending host in the lab, with the interface by which frames leave if it has several."""
    destination: str
    """Name of the receiving host, with the interface at which frames arrive if it has several."""
    udp_source: int
    udp_destination: int
    frame_bytes: int
    """Size of each frame, including the FCS."""
    sends: Sends
    observed: bool = True
    """Whether its packets are recorded."""

    @classmethod
    def of(cls, number: int, flow: Flow, sends: Sends, *, observed: bool = True) -> Sender:
        """Return the sender of a flow."""
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
        """The flow's direction, ``SOURCE->DESTINATION``."""
        return f"{self.source}->{self.destination}"

    @property
    def where(self) -> str:
        """The flow's name in error messages."""
        return f"flow {self.flow} ({self.label})"

    @property
    def bucket(self) -> Bucket:
        """The bucket that shapes the flow. Raises `ValueError` if there is none."""
        bucket = self.sends.bucket if isinstance(self.sends, RandomBursts | Greedy | Releases) else None
        if bucket is None:
            raise ValueError(f"{self.where}: nothing shapes it")
        return bucket

    def described(self) -> dict[str, Any]:
        """Return all fields as plain values; arrays of instants are replaced by their hashes."""
        plain = asdict(self)
        values = {
            name: hashlib.blake2b(value.tobytes()).hexdigest() if isinstance(value, np.ndarray) else value
            for name, value in plain["sends"].items()
        }
        return {**plain, "sends": {"how": type(self.sends).__name__, **values}}

    def as_flow(self) -> Flow:
        """Return the flow as the controller knows it, for example to fill tables. Raises `ValueError`."""
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
    """Return a flow whose name and UDP ports are derived from its number, so that no two share ports."""
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
    """Return the number from which `flow_of` made the flow."""
    return flow.udp_source - _UDP_SOURCE
