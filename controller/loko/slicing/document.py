"""The document of a sliced port: what `loko model slice FILE` reads, and the replays of labs/slicing too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator

from loko.document import LABS, StrictModel, find, read
from loko.slicing.lengths import MAX_FRAME_BYTES, MIN_FRAME_BYTES, Scheduler, counted

Rate = Annotated[int, Field(ge=1, le=10**12)]
"""A rate in bit/s."""
Bytes = Annotated[int, Field(ge=1, le=10**9)]
FrameBytes = Annotated[int, Field(ge=MIN_FRAME_BYTES, le=MAX_FRAME_BYTES)]

_FOLDER: Final = LABS / "slicing" / "slices"
_DEFAULT_LIMIT: Final = 1000
_R2Q: Final = 10
_LEAST_QUANTUM: Final = 1_000
_MOST_QUANTUM: Final = 200_000
"""HTB's `r2q`, and the limits of the quantum that it computes (net/sched/sch_htb.c)."""


class SliceFlow(StrictModel):
    """Traffic of a slice: a token bucket. Rate and burst count l, the frame with its FCS."""

    rate_bps: Rate
    burst_bytes: Bytes
    frame_bytes: FrameBytes
    """Size of every frame."""

    @model_validator(mode="after")
    def _a_burst_has_a_frame(self) -> Self:
        if self.burst_bytes < self.frame_bytes:
            raise ValueError(
                f"burst_bytes {self.burst_bytes} is below frame_bytes {self.frame_bytes}: no frame could be"
                " sent; give at least one frame"
            )
        return self


class _SliceQueue(StrictModel):
    name: str = Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$")
    flow: SliceFlow | None = None
    """Traffic of the queue, if it is known; latency depends on it."""


class LateDrops(StrictModel):
    """The queue drops what would leave later than this after it came (docs/slicing.md, section 10)."""

    kind: Literal["late"]
    after_us: float = Field(ge=0.001, le=10**6)


class CodelDrops(StrictModel):
    """The queue drops by controlled delay (RFC 8289), as `fq_codel` does in each of its flows."""

    kind: Literal["codel"]
    target_us: float = Field(default=5_000, ge=0.001, le=10**6)
    interval_us: float = Field(default=100_000, ge=0.001, le=10**6)


class HtbQueue(_SliceQueue):
    """A leaf class. Rates and bursts count from the Ethernet header on, without FCS."""

    rate_bps: Rate
    """The assured rate (`min-rate` in Open vSwitch)."""
    ceil_bps: Rate | None = None
    """The highest rate, with borrowing (`max-rate`). Default: `rate_bps`."""
    burst_bytes: Bytes
    cburst_bytes: Bytes | None = None
    """Default: `burst_bytes`, as Open vSwitch sets it."""
    quantum_bytes: Bytes | None = None
    """Bytes that the queue sends in its turn.

    Default: as tc computes them, what `rate_bps` carries in 0.1 s, within 1,000 and 200,000 bytes.
    """
    priority: int = Field(default=0, ge=0, le=7)
    limit_frames: int = Field(default=_DEFAULT_LIMIT, ge=1, le=10**6)
    drops: Annotated[LateDrops | CodelDrops, Field(discriminator="kind")] | None = None
    """Frames that the queue drops although there is room."""

    @property
    def ceiling_bps(self) -> int:
        """`ceil_bps` or its default."""
        return self.rate_bps if self.ceil_bps is None else self.ceil_bps

    @property
    def ceiling_burst_bytes(self) -> int:
        """`cburst_bytes` or its default."""
        return self.burst_bytes if self.cburst_bytes is None else self.cburst_bytes

    @property
    def turn_bytes(self) -> int:
        """`quantum_bytes` or its default."""
        if self.quantum_bytes is not None:
            return self.quantum_bytes
        return min(max(self.rate_bps // 8 // _R2Q, _LEAST_QUANTUM), _MOST_QUANTUM)

    @model_validator(mode="after")
    def _rate_below_ceiling(self) -> Self:
        if self.ceiling_bps < self.rate_bps:
            raise ValueError(
                f"ceil_bps {self.ceil_bps} of queue '{self.name}' is below its rate_bps {self.rate_bps};"
                " raise it, or lower the rate"
            )
        return self


class TrtcmQueue(_SliceQueue):
    """A policer. Rates and bursts count IP packets."""

    cir_bps: Rate
    """Committed information rate."""
    cbs_bytes: Bytes
    """Committed burst size."""
    eir_bps: int = Field(default=0, ge=0, le=10**12)
    """Excess information rate."""
    ebs_bytes: int = Field(default=0, ge=0, le=10**9)
    """Excess burst size."""


class HtbDequeue(StrictModel):
    """How the machine's HTB dequeues, which is measured, not configured."""

    group_frames: int = Field(default=1, ge=1, le=10**4)
    """How many frames a class takes at once."""
    timer_us: float = Field(default=0, ge=0, le=10**6)
    """How late the timer wakes a class that waits."""


class TrtcmDequeue(StrictModel):
    """How the machine's OVS-DPDK polls, which is measured, not configured."""

    group_frames: int = Field(default=1, ge=1, le=10**4)
    """How many frames a poll takes."""
    poll_us: float = Field(gt=0, le=10**6)
    """Time from the first waiting frame to the poll, and from one poll to the next while more wait."""


class _SlicedPort(StrictModel):
    link_rate_bps: Rate
    latency_us: float = Field(default=0, ge=0, le=10**6)
    """The longest time that the machine takes from a frame's last bit in until it is in its queue."""


class HtbPort(_SlicedPort):
    """A port behind `htb`: a root class, with a leaf below it for each queue."""

    scheduler: Literal["htb"]
    root_rate_bps: Rate | None = None
    """Rate of all queues together (`max-rate` of the port's QoS). Default: the link's rate."""
    root_burst_bytes: Bytes = 10 * (MAX_FRAME_BYTES - 4)
    dequeue: HtbDequeue = HtbDequeue()
    queues: list[HtbQueue] = Field(min_length=1)

    @property
    def root_bps(self) -> int:
        """`root_rate_bps` or its default."""
        return self.link_rate_bps if self.root_rate_bps is None else self.root_rate_bps

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _distinct(self.queues)
        if self.root_bps > self.link_rate_bps:
            raise ValueError(
                f"root_rate_bps {self.root_bps} is above the link's {self.link_rate_bps}; lower it"
            )
        for queue in self.queues:
            if queue.ceiling_bps > self.root_bps:
                raise ValueError(
                    f"queue '{queue.name}' may send {queue.ceiling_bps} bit/s, its port only {self.root_bps};"
                    " lower its ceil_bps or rate_bps, or raise root_rate_bps"
                )
        assured = sum(queue.rate_bps for queue in self.queues)
        if assured > self.root_bps:
            raise ValueError(
                f"the queues are assured {assured} bit/s together, their port has {self.root_bps};"
                " lower rates, or raise root_rate_bps"
            )
        return self


class TrtcmPort(_SlicedPort):
    """A port behind `trtcm-policer`: a policer for each queue."""

    scheduler: Literal["trtcm"]
    dequeue: TrtcmDequeue
    queues: list[TrtcmQueue] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _distinct(self.queues)
        for queue in self.queues:
            if queue.flow is None:
                continue
            packet = counted(Scheduler.TRTCM, queue.flow.frame_bytes)
            if packet > max(queue.cbs_bytes, queue.ebs_bytes):
                raise ValueError(
                    f"queue '{queue.name}': no bucket holds a packet of {packet} bytes, so that all are"
                    f" dropped; give cbs_bytes {packet} or more"
                )
        return self


Port = HtbPort | TrtcmPort


def _distinct(queues: list[HtbQueue] | list[TrtcmQueue]) -> None:
    names = [queue.name for queue in queues]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise ValueError(f"two queues are named '{double}'; rename one")


class _PortHead(BaseModel):
    """The key that gives the kind of port."""

    scheduler: Scheduler


def load_slices(name_or_path: str | Path) -> Port:
    """Load a sliced port by name (`htb`, in `labs/slicing/slices`) or path. Raises `InputError`."""
    path = find(name_or_path, _FOLDER, ".yml", "slices")
    if read(path, _PortHead).scheduler is Scheduler.HTB:
        return read(path, HtbPort)
    return read(path, TrtcmPort)
