"""Sender settings: one description of how hosts send, for all figures, in virtual and in real time.

Section 6.1 of the Loko paper says that mgen sends bursts at line rate, separated by random gaps, and that
tc's token bucket shapes them. It does not state the length of the bursts, their mean rate, or the queue size
of the shaper. `SenderSettings` holds these numbers. `IDENTIFIED` is what the paper's numbers point to
(docs/senders.md); a figure's document may state others, the command line may override them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Final, Self

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from loko.document import InputError, StrictModel
from loko.switch_model.flow import Flow
from loko.units import BITS_NS_PER_BYTE_S
from loko.user_error import validator_message
from loko_testbed.simulation.traffic import Bucket, RandomBursts, Sender

SOCKET_FRAMES: Final = 160
"""Number of frames that the default send buffer of a Linux UDP socket holds."""


class SenderSettings(StrictModel):
    """How every host of a figure sends. No paper prints these numbers; the defaults are those of `SIMPLE`."""

    burst_frames: int = Field(default=0, ge=0, le=1_000_000)
    """Frames that the generator emits in one burst. 0: as many whole frames as the bucket holds."""
    offered_load: float = Field(default=1.0, gt=0, le=10, allow_inf_nan=False)
    """Mean rate of the generator divided by the rate of its shaper."""
    queue_frames: int = Field(default=SOCKET_FRAMES, ge=1, le=10_000_000)
    """Frames that the queue before the shaper holds. Others count as never sent, not as lost."""
    shaper_latency_ns: int = Field(default=0, ge=0, le=10_000_000)
    """Lateness of the shaper's timer: the extra delay of a frame that had to wait for tokens.

    A bucket that is full meanwhile gains no tokens, so a bucket of one frame loses rate for good.
    """

    @model_validator(mode="after")
    def _a_burst_finds_room(self) -> Self:
        if self.burst_frames > self.queue_frames:
            raise ValueError(
                f"a burst of {self.burst_frames} frames finds room for {self.queue_frames} only, so its end"
                " would never be sent; shorten the bursts or make room (queue_frames)"
            )
        return self

    def burst_bytes(self, bucket_bytes: float, frame_bytes: int) -> int:
        """Return the length in bytes of a burst before a bucket of this depth, in whole frames."""
        return (self.burst_frames or int(bucket_bytes) // frame_bytes) * frame_bytes

    def conforming(self, number: int, flow: Flow) -> Sender:
        """Return the sender of a flow, shaped by the flow's own token bucket."""
        return Sender.of(
            number,
            flow,
            RandomBursts(
                bucket=Bucket(
                    rate_bps=int(flow.rate_bps),
                    burst_bytes=int(flow.burst_bytes),
                    latency_ns=self.shaper_latency_ns,
                ),
                offered_rate_bps=int(flow.rate_bps * self.offered_load),
                burst_bytes=self.burst_bytes(flow.burst_bytes, flow.frame_bytes),
                queue_bytes=self.queue_frames * flow.frame_bytes,
            ),
        )

    def described(self) -> dict[str, float]:
        """Return the numbers by name, in the form in which results record assumptions."""
        return {name: float(value) for name, value in self.model_dump().items()}


SIMPLE: Final = SenderSettings()
"""A sender that is always busy: each burst fills the bucket, and the mean rate is the shaper's own."""

IDENTIFIED: Final = SenderSettings(burst_frames=200, offered_load=0.75, queue_frames=1000)
"""The sender that the paper's numbers point to (figure ``loko/senders``): the default of its figures."""


class SenderName(StrEnum):
    """How hosts send, by name."""

    IDENTIFIED = "identified"
    SIMPLE = "simple"


NAMED: Final[Mapping[str, SenderSettings]] = MappingProxyType(
    {SenderName.IDENTIFIED: IDENTIFIED, SenderName.SIMPLE: SIMPLE}
)
"""Senders that documents and the command line may choose by name."""


def _named(name: str) -> SenderSettings:
    if name not in NAMED:
        raise ValueError(f"there is no sender '{name}' (known: {', '.join(NAMED)})")
    return NAMED[name]


NamedSender = Annotated[
    SenderSettings, BeforeValidator(lambda value: _named(value) if isinstance(value, str) else value)
]
"""A sender in a document: one of `NAMED`, or its numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderChoice:
    """The command line's overrides of every figure's description. None: as the figure says."""

    sender: str | None = None
    """One of `NAMED`, in place of the figure's; the other overrides change its numbers."""
    burst_frames: int | None = None
    offered_load: float | None = None
    queue_frames: int | None = None
    shaper_latency_ns: int | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The overrides, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def of(self, senders: SenderSettings) -> SenderSettings:
        """Apply the overrides to a description.

        Raises `InputError` if there is no sender of that name, or the result is contradictory.
        """
        try:
            base = senders if self.sender is None else _named(self.sender)
        except ValueError as error:
            raise InputError(f"{option_of('sender')}: {error}") from None
        try:
            numbers = {name: value for name, value in self.chosen.items() if name != "sender"}
            return SenderSettings.model_validate({**base.model_dump(), **numbers})
        except ValidationError as error:
            first = error.errors()[0]
            names = [str(part) for part in first["loc"]] or list(self.chosen)
            options = ", ".join(option_of(name) for name in names)
            raise InputError(f"{options}: {validator_message(first['msg'])}") from None


AS_DESCRIBED: Final = SenderChoice()


_SOURCES: Final[Mapping[SenderSettings, str]] = MappingProxyType(
    {
        IDENTIFIED: "The papers print none of this: it is inferred from figure 3c and the numbers of packets"
        " (docs/senders.md), which are therefore no predictions.",
        SIMPLE: "The papers print none of this: it is assumed, and fitted to no figure.",
    }
)


def sentence(described: Iterable[Mapping[str, float]]) -> str:
    """Return a sentence on how hosts sent, from values of `SenderSettings.described`; empty without any."""
    each = Counter(SenderSettings.model_validate({**settings, **_whole(settings)}) for settings in described)
    if not each:
        return ""
    ((settings, _),) = each.most_common(1)
    hosts = "All hosts" if len(each) == 1 else "Hosts of most figures, of which each says how,"
    burst = (
        f"bursts of {settings.burst_frames} frames"
        if settings.burst_frames
        else "bursts that fill their bucket"
    )
    rate = "the rate" if settings.offered_load == 1 else f"{settings.offered_load:g} times the rate"
    late = f", the shaper {settings.shaper_latency_ns / 1000:g} us late" if settings.shaper_latency_ns else ""
    return (
        f"{hosts} send {burst}, at {rate} of their shaper, with room for"
        f" {settings.queue_frames} frames before it{late}. "
        + _SOURCES.get(settings, "The papers print none of this; it was chosen for this replay.")
    )


def _whole(described: Mapping[str, float]) -> dict[str, int]:
    return {name: int(value) for name, value in described.items() if name != "offered_load"}


def option_of(name: str) -> str:
    """Return the command-line option that overrides this number."""
    return "--" + name.replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaper:
    """A host's token bucket with a late timer, in front of its line. Counts whole frames with their FCS."""

    frame_bytes: int
    rate_bps: int
    burst_bytes: int
    queue_frames: int
    slot_ns: int
    """Transmission time of a frame with preamble and gap on the host's line."""
    latency_ns: int

    def departures_ns(self, offered_ns: Iterable[int]) -> Iterator[int]:
        """Yield when frames offered at these ascending instants leave; those that find a full queue never do.

        Matches the emulator's shaper, with a latency added; exact in integers. The bucket is full at time 0.
        """
        needed, capacity = self.frame_bytes * BITS_NS_PER_BYTE_S, self.burst_bytes * BITS_NS_PER_BYTE_S
        level, updated_ns, line_free_ns = capacity, 0, 0
        waiting: deque[int] = deque()
        for at_ns in offered_ns:
            while waiting and waiting[0] < at_ns:
                waiting.popleft()
            if len(waiting) >= self.queue_frames:
                continue
            from_ns = max(at_ns, line_free_ns)
            ready_ns = updated_ns - (level - needed) // self.rate_bps if level < needed else updated_ns
            leaves_ns = from_ns if ready_ns <= from_ns else ready_ns + self.latency_ns
            level = min(capacity, level + (leaves_ns - updated_ns) * self.rate_bps) - needed
            updated_ns, line_free_ns = leaves_ns, leaves_ns + self.slot_ns
            waiting.append(leaves_ns)
            yield leaves_ns


def slot_ns(frame_bytes: int, line_rate_bps: float) -> int:
    """Return the transmission time of a frame with its preamble of 8 bytes and the gap of 12."""
    return round((8 + frame_bytes + 12) * 8e9 / line_rate_bps)


def bursts_ns(
    random: np.random.Generator, *, burst_frames: int, mean_gap_ns: float, slot_ns: int, end_ns: int
) -> Iterator[int]:
    """Yield when a generator offers frames until `end_ns`: bursts at line rate with exponential gaps.

    A burst starts no earlier than the previous one ends, as in the emulator (`simulator/src/source.rs`).
    """
    begins_ns, free_ns = 0, 0
    while True:
        begins_ns += round(random.exponential(mean_gap_ns))
        first_ns = max(begins_ns, free_ns)
        if first_ns >= end_ns:
            return
        yield from range(first_ns, min(first_ns + burst_frames * slot_ns, end_ns), slot_ns)
        free_ns = first_ns + burst_frames * slot_ns
