"""What a bench can do with a switch, whatever and wherever it is.

A bench has the switch's port 1 (in) and port 2 (out) under taps, and the connection of its controller, tapped
as well. Instants are nanoseconds of the bench's own clock; they rise from call to call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.equations import Wire
from loko.device import Ports

Instants = NDArray[np.int64]
ACKNOWLEDGEMENT_NS: Final = 200_000
"""When the controller of a bench acknowledges that does it at a time of its own choice."""
MISSING = -1
"""Instant of a frame that a tap did not see."""


@dataclass(frozen=True, slots=True)
class Passage:
    """When the taps saw each frame of a train begin (its start of frame delimiter); `MISSING` if never."""

    entered_ns: Instants
    left_ns: Instants
    disturbed: NDArray[np.bool_]
    """Frames during which the host of the bench itself lost time: to be left out and counted."""


@dataclass(frozen=True, slots=True)
class ControlFrame:
    """A frame with OpenFlow bytes on the controller's connection."""

    at_ns: int
    from_switch: bool
    length_bytes: int
    """On the wire, with FCS, without preamble."""
    payload: bytes
    disturbed: bool = False
    """Whether the host of the bench itself lost time meanwhile: to be left out and counted."""


def wire_of(ports: Ports) -> Wire:
    """The links of a profile's ports."""
    return Wire(
        rate_bps=ports.link_rate_bps.value,
        preamble_bytes=ports.preamble_bytes.value,
        gap_bytes=ports.interframe_gap_bytes.value,
        tag_bytes=ports.tail_tag_bytes.value,
    )


class Device(Protocol):
    """A switch under test."""

    name: str
    wire: Wire
    warm_up_frames: int
    """So many frames at the beginning of a train do not count: caches, and an emulator's lead, settle."""

    @property
    def now_ns(self) -> int:
        """Where the bench's clock is."""

    @property
    def acknowledgement_ns(self) -> int | None:
        """So long after a segment of the switch the controller acknowledges it; None: nobody knows."""

    @property
    def lateness_ns(self) -> int:
        """By how much an emulated switch usually misses its own instants; 0 of a real switch.

        Of frames since `begin`. What takes less than that is not seen in real time. Raises `RunError`.
        """

    def begin(self, seed: int) -> None:
        """A part of a campaign begins. What the bench itself draws from now on depends on the seed alone."""

    def unplugged(self) -> str | None:
        """Which cable of the bench had no link at some instant since `begin`, in words; None if all had."""

    def revive(self) -> bool:
        """Switch the switch off and on, as it has fallen silent; whether the bench can. Raises `RunError`."""

    def load(self, messages: Sequence[bytes]) -> None:
        """Empty the table and send these FLOW_MODs, confirmed by a barrier. Raises `RunError`."""

    def with_housekeeping(self) -> Device | None:
        """The same switch with the jobs of its unmodified firmware; None if the bench cannot switch them on.

        In real time it is so until the next `begin`.
        """

    def in_openflow13(self) -> Device | None:
        """The same switch in a session of OpenFlow 1.3; None if the bench cannot have one with it.

        What it is sent from now on is of that version. In real time it is so until the next `begin`. Raises
        `RunError`.
        """

    def without_cpu(self) -> Device | None:
        """The same switch with OpenFlow switched off: its integrated switch forwards alone. None without one.

        It has learned where the bench's frames go. A table cannot be loaded.
        In real time it is so until the next `begin`. Raises `RunError`.
        """

    def send(self, gaps_ns: Sequence[int], frames: Sequence[bytes]) -> Passage:
        """Let each frame (without FCS) begin at port 1 so long after the one before, and watch it pass.

        Frames that cannot begin yet because the link is busy follow as closely as it allows.
        """

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        """Send each segment on the controller's connection so long after the one before, and watch."""
